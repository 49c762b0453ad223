-- The attempts of a run, or of one of its nodes, in the order in which they were claimed: each with the process that had it.
select jsonb_build_object(
           'node_id', a.node_id, 'iteration', a.iteration, 'attempt', a.attempt, 'state', a.state, 'origin', a.origin,
           'claimed_at', a.claimed_at, 'started_at', a.started_at, 'finished_at', a.finished_at, 'error', a.error,
           'agent', a.agent, 'heartbeat_data', a.heartbeat_data,
           'host', p.host, 'pid', p.pid, 'worker', p.name)
  from smithers.attempts a
  left join smithers.processes p on p.id = a.owner
 where a.run_id = %(run_id)s
   and (%(node_id)s::text is null or a.node_id = %(node_id)s::text)
   and (%(iteration)s::integer is null or a.iteration = %(iteration)s::integer)
 order by a.claimed_at, a.node_id, a.iteration, a.attempt
