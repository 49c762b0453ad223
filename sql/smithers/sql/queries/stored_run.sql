-- What a resume compares with the file at hand; no row without the run.
select jsonb_build_object('run_id', r.run_id, 'workflow', r.workflow, 'path', r.path, 'source_hash', r.source_hash,
           'pinned', r.pinned, 'input', r.input, 'config', r.config, 'vcs_type', r.vcs_type, 'vcs_root', r.vcs_root,
           'request_id', r.request_id, 'status', s.status,
           'cancel_requested_at', s.cancel_requested_at, 'pause_requested_at', s.pause_requested_at)
  from smithers.runs r join smithers.run_state s using (run_id)
 where r.run_id = %(run_id)s
