-- No task was made ready before the end of what it depends on was in the log.
with ready as (
    select e.run_id, m.value->>0 as node_id, (m.value->>1)::integer as iteration, max(e.seq) as seq
      from smithers.events e, jsonb_array_elements(e.payload->'nodes') m
     where e.type = 'node-ready' and (%(run_id)s::text is null or e.run_id = %(run_id)s::text)
     group by 1, 2, 3),
ended as (
    select e.run_id, e.node_id, e.iteration, min(e.seq) as seq
      from smithers.events e
     where e.node_id is not null and e.payload->>'node' in ('finished', 'failed', 'skipped')
       and (%(run_id)s::text is null or e.run_id = %(run_id)s::text)
     group by 1, 2, 3)
select n.run_id, n.node_id, n.iteration,
       format('it was made ready by event %%s, but %%s (iteration %%s) ended %%s', r.seq, u.value->>0, u.value->>1,
              coalesce('by event ' || d.seq, 'never')) as detail
  from smithers.nodes n
  join ready r on r.run_id = n.run_id and r.node_id = n.node_id and r.iteration = n.iteration
 cross join lateral jsonb_array_elements(n.upstream) u
  left join ended d on d.run_id = n.run_id and d.node_id = u.value->>0 and d.iteration = (u.value->>1)::integer
 where n.state in ('ready', 'finished') and (%(run_id)s::text is null or n.run_id = %(run_id)s::text)
   and (d.seq is null or d.seq > r.seq)
 limit %(limit)s
