-- A timer fires once and never early; every firing has its event.
with timer as (select * from smithers.timers t where %(run_id)s::text is null or t.run_id = %(run_id)s::text),
event as (
    select e.run_id, e.node_id, e.iteration, count(*) as n from smithers.events e
     where e.type = 'timer-fired' and (%(run_id)s::text is null or e.run_id = %(run_id)s::text) group by 1, 2, 3),
fired as (
    select t.run_id, t.node_id, t.iteration, count(*) as n from timer t where t.fired_seq is not null group by 1, 2, 3)
select t.run_id, t.node_id, t.iteration, format('it was due at %%s and fired at %%s', t.due_at, t.fired_at) as detail
  from timer t where t.fired_at < t.due_at or (t.fired_at is null) <> (t.fired_seq is null)
union all
select coalesce(f.run_id, e.run_id), coalesce(f.node_id, e.node_id), coalesce(f.iteration, e.iteration),
       format('%%s timers have fired, %%s events tell of it', coalesce(f.n, 0), coalesce(e.n, 0))
  from fired f
  full join event e on e.run_id = f.run_id and e.node_id = f.node_id and e.iteration = f.iteration
 where f.n is distinct from e.n
 limit %(limit)s
