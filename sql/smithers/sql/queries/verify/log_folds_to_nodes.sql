-- Folding the log gives the nodes: the last word of the events about a node is its state. A node is pending when a
-- frame mounts it; `node-ready`, requests to stop, resumes and ends of runs carry lists.
with word as (
    select e.run_id, e.seq, e.node_id, e.iteration, e.payload->>'node' as state
      from smithers.events e
     where e.node_id is not null and e.payload ? 'node' and (%(run_id)s::text is null or e.run_id = %(run_id)s::text)
    union all
    select e.run_id, e.seq, m.value->>0, (m.value->>1)::integer, 'pending'
      from smithers.events e, jsonb_array_elements(e.payload->'mounted') m
     where e.type = 'frame-committed' and (%(run_id)s::text is null or e.run_id = %(run_id)s::text)
    union all
    select e.run_id, e.seq, m.value->>0, (m.value->>1)::integer,
           case when e.type = 'node-ready' then 'ready' else m.value->>2 end
      from smithers.events e, jsonb_array_elements(e.payload->'nodes') m
     where e.payload ? 'nodes' and (%(run_id)s::text is null or e.run_id = %(run_id)s::text)),
last as (
    select distinct on (w.run_id, w.node_id, w.iteration) w.* from word w
     order by w.run_id, w.node_id, w.iteration, w.seq desc)
select coalesce(n.run_id, w.run_id) as run_id, coalesce(n.node_id, w.node_id) as node_id,
       coalesce(n.iteration, w.iteration) as iteration,
       format('the node is %%s, the log says %%s', coalesce(n.state, 'not there'),
              coalesce(w.state || ' (event ' || w.seq || ')', 'nothing')) as detail
  from (select * from smithers.nodes x where %(run_id)s::text is null or x.run_id = %(run_id)s::text) n
  full join last w on w.run_id = n.run_id and w.node_id = n.node_id and w.iteration = n.iteration
 where n.state is distinct from w.state
 limit %(limit)s
