-- A run that has not ended has a reason to move: a lease, a queued task, a due time, an open request, an event that it
-- waits for, a pause, or a fact that no frame has seen.
select s.run_id, null::text as node_id, null::integer as iteration,
       format('it is %%s, and nothing will ever move it', s.status) as detail
  from smithers.run_state s
 where (%(run_id)s::text is null or s.run_id = %(run_id)s::text)
   and s.status not in ('paused', 'finished', 'failed', 'cancelled', 'continued') and not s.dirty
   and not exists (select from smithers.leases l where l.run_id = s.run_id)
   and not exists (select from smithers.ready_tasks r where r.run_id = s.run_id)
   and not exists (select from smithers.nodes n where n.run_id = s.run_id and (n.due_at is not null or n.state = 'waiting-event'))
   and not exists (select from smithers.timers t where t.run_id = s.run_id and t.fired_seq is null and not t.superseded)
   and not exists (select from smithers.approvals a
                    where a.run_id = s.run_id and a.decided_seq is null and a.expired_seq is null and not a.superseded)
   and not exists (select from smithers.human_requests h
                    where h.run_id = s.run_id and h.decided_seq is null and h.expired_seq is null and not h.superseded)
 limit %(limit)s
