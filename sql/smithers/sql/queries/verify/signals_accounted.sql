-- Signals sent = taken + in the inbox: each row has its event and the other way round, and what took one is a finished
-- wait for events that took no other.
with signal as (select * from smithers.signals g where %(run_id)s::text is null or g.run_id = %(run_id)s::text),
event as (
    select e.run_id, e.seq from smithers.events e
     where e.type = 'signal-received' and (%(run_id)s::text is null or e.run_id = %(run_id)s::text))
select coalesce(g.run_id, e.run_id) as run_id, null::text as node_id, null::integer as iteration,
       case when e.run_id is null then format('signal %%s has no event', g.seq)
            else format('event %%s tells of a signal that is not there', e.seq) end as detail
  from signal g full join event e on e.run_id = g.run_id and e.seq = g.seq
 where g.run_id is null or e.run_id is null
union all
select g.run_id, g.consumed_node_id, g.consumed_iteration,
       format('signal %%s was taken by a node that is %%s', g.seq, coalesce(n.kind || ' and ' || n.state, 'not there'))
  from signal g
  left join smithers.nodes n
    on n.run_id = g.run_id and n.node_id = g.consumed_node_id and n.iteration = g.consumed_iteration
 where g.consumed_seq is not null and (n.run_id is null or n.kind <> 'event' or n.state <> 'finished')
union all
select g.run_id, g.consumed_node_id, g.consumed_iteration, format('it took %%s signals', count(*))
  from signal g where g.consumed_seq is not null group by 1, 2, 3 having count(*) > 1
 limit %(limit)s
