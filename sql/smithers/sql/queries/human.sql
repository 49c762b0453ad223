-- Open questions to people, oldest first; of one run if named.
select jsonb_build_object('run_id', h.run_id, 'workflow', r.workflow, 'node_id', h.node_id, 'iteration', h.iteration,
           'prompt', h.prompt, 'schema', h.schema, 'opened_at', h.opened_at, 'due_at', h.due_at)
  from smithers.human_requests h
  join smithers.runs r on r.run_id = h.run_id
  join smithers.run_state s on s.run_id = h.run_id
 where not h.superseded and h.decided_seq is null and h.expired_seq is null
   and s.status not in ('finished', 'failed', 'cancelled', 'continued')
   and (%(run_id)s::text is null or h.run_id = %(run_id)s::text)
 order by h.opened_at, h.run_id, h.node_id, h.iteration
