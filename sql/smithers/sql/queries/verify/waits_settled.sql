-- A finished wait has exactly one decision, answer, taken signal or fired timer; and once a frame has seen everything,
-- a node that still waits for a person or a timer has its request open.
with wait as (
    select n.run_id, n.node_id, n.iteration, n.kind, n.state,
           case when n.state = 'finished' and n.kind = 'approval' then (
                     select count(*) from smithers.approvals a
                      where a.run_id = n.run_id and a.node_id = n.node_id and a.iteration = n.iteration
                        and not a.superseded and a.decision = 'approved')
                when n.state = 'finished' and n.kind = 'human' then (
                     select count(*) from smithers.human_requests h
                      where h.run_id = n.run_id and h.node_id = n.node_id and h.iteration = n.iteration
                        and not h.superseded and h.decided_seq is not null)
                when n.state = 'finished' and n.kind = 'event' then (
                     select count(*) from smithers.signals g
                      where g.run_id = n.run_id and g.consumed_node_id = n.node_id and g.consumed_iteration = n.iteration)
                when n.kind = 'timer' then (
                     select count(*) from smithers.timers t
                      where t.run_id = n.run_id and t.node_id = n.node_id and t.iteration = n.iteration
                        and not t.superseded and (t.fired_seq is not null) = (n.state = 'finished'))
                else (select count(*) from smithers.approvals a
                       where a.run_id = n.run_id and a.node_id = n.node_id and a.iteration = n.iteration
                         and not a.superseded and a.decided_seq is null and a.expired_seq is null)
                   + (select count(*) from smithers.human_requests h
                       where h.run_id = n.run_id and h.node_id = n.node_id and h.iteration = n.iteration
                         and not h.superseded and h.decided_seq is null and h.expired_seq is null) end as n
      from smithers.nodes n
      join smithers.run_state s on s.run_id = n.run_id
     where (%(run_id)s::text is null or n.run_id = %(run_id)s::text)
       and ((n.kind in ('approval', 'human', 'event', 'timer') and n.state = 'finished')
            or (n.state in ('waiting-approval', 'waiting-timer') and not s.dirty
                and s.pause_requested_at is null and s.cancel_requested_at is null
                and s.status not in ('paused', 'finished', 'failed', 'cancelled', 'continued'))))
select w.run_id, w.node_id, w.iteration,
       format('the %%s node is %%s with %%s %%s', w.kind, w.state, w.n,
              case when w.state = 'finished' then 'facts that finish it' else 'open requests' end) as detail
  from wait w
 where w.n <> 1
 limit %(limit)s
