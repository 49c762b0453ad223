-- Folding the log gives the status: the last event that names one, and then a fact that wakes a run that waits, or a
-- request to cancel one that is paused.
with named as (
    select distinct on (e.run_id) e.run_id, e.seq,
           case when e.type = 'run-resumed' then 'running' else e.payload->>'status' end as status
      from smithers.events e
     where e.type in ('run-created', 'run-status', 'run-resumed') and (%(run_id)s::text is null or e.run_id = %(run_id)s::text)
     order by e.run_id, e.seq desc),
folded as (
    select m.run_id,
           case when starts_with(m.status, 'waiting-') and exists (
                     select from smithers.events e
                      where e.run_id = m.run_id and e.seq > m.seq
                        and e.type in ('approval-decided', 'human-answered', 'signal-received', 'timer-fired', 'wait-expired',
                                       'retry-due', 'quota-reset', 'run-pause-requested', 'run-cancel-requested', 'run-reclaimed'))
                then 'running'
                when m.status = 'paused' and exists (
                     select from smithers.events e
                      where e.run_id = m.run_id and e.seq > m.seq and e.type = 'run-cancel-requested')
                then 'running'
                else m.status end as status
      from named m)
select s.run_id, null::text as node_id, null::integer as iteration,
       format('the run is %%s, the log says %%s', s.status, coalesce(f.status, 'nothing')) as detail
  from smithers.run_state s
  left join folded f on f.run_id = s.run_id
 where (%(run_id)s::text is null or s.run_id = %(run_id)s::text) and f.status is distinct from s.status
 limit %(limit)s
