-- An attempt that has ended has exactly one end event, numbered as its row says, after at most one start event; one in
-- progress has none.
with event as (
    select e.run_id, e.node_id, e.iteration, e.attempt,
           count(*) filter (where e.type = 'attempt-started') as starts,
           count(*) filter (where e.type <> 'attempt-started') as ends,
           min(e.seq) filter (where e.type = 'attempt-started') as start_seq,
           min(e.seq) filter (where e.type <> 'attempt-started') as end_seq,
           min(e.type) filter (where e.type <> 'attempt-started') as end_type
      from smithers.events e
     where e.attempt is not null and starts_with(e.type, 'attempt-')
       and (%(run_id)s::text is null or e.run_id = %(run_id)s::text)
     group by 1, 2, 3, 4)
select coalesce(a.run_id, e.run_id) as run_id, coalesce(a.node_id, e.node_id) as node_id,
       coalesce(a.iteration, e.iteration) as iteration,
       format('attempt %%s is %%s (event %%s) with %%s start events and %%s end events (%%s, %%s)',
              coalesce(a.attempt, e.attempt), coalesce(a.state, 'not there'), coalesce(a.seq::text, 'none'),
              coalesce(e.starts, 0), coalesce(e.ends, 0), coalesce(e.end_type, 'none'), coalesce(e.end_seq::text, 'none')) as detail
  from (select * from smithers.attempts x where %(run_id)s::text is null or x.run_id = %(run_id)s::text) a
  full join event e on e.run_id = a.run_id and e.node_id = a.node_id and e.iteration = a.iteration and e.attempt = a.attempt
 where a.run_id is null or coalesce(e.starts, 0) > 1
    or coalesce(e.ends, 0) <> case when a.state = 'in-progress' then 0 else 1 end
    or e.end_type <> 'attempt-' || a.state
    or e.end_seq is distinct from a.seq
    or e.start_seq > e.end_seq
 limit %(limit)s
