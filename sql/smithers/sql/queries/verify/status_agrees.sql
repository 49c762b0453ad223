-- The status of a run is what its nodes say: one that waits has a node that waits so and none that is ready, a finished
-- one has neither, and exactly the ended ones have the time of their end.
select s.run_id, null::text as node_id, null::integer as iteration,
       format('it is %%s (ended at %%s) with %%s ready and %%s waiting nodes, %%s of them %%s', s.status,
              coalesce(s.ended_at::text, 'never'), n.ready, n.waiting, n.such, s.status) as detail
  from smithers.run_state s
 cross join lateral (
       select count(*) filter (where x.state = 'ready') as ready,
              count(*) filter (where starts_with(x.state, 'waiting-')) as waiting,
              count(*) filter (where x.state = s.status) as such
         from smithers.nodes x where x.run_id = s.run_id) n
 where (%(run_id)s::text is null or s.run_id = %(run_id)s::text)
   and ((s.status in ('finished', 'failed', 'cancelled', 'continued')) <> (s.ended_at is not null)
        or (s.status = 'finished' and n.ready + n.waiting > 0)
        or (starts_with(s.status, 'waiting-') and (n.ready > 0 or n.such = 0)))
 limit %(limit)s
