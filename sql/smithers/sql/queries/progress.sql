-- What a live view of one run is drawn from, asked only after something has changed; no row without the run.
-- `frames` are the stored structures after frame `after`, from the last full one on; `nodes` are the rows of `keys`
-- ([[node_id, iteration], …], null: all), with the times of the attempt that runs or ran last.
with arg as (select %(run_id)s::text as run_id, %(keys)s::jsonb as keys, %(after)s::integer as after),
chosen as (
    select v.* from arg join smithers.node_view v on v.run_id = arg.run_id where arg.keys is null
    union all
    select v.* from arg cross join jsonb_array_elements(arg.keys) k
      join smithers.node_view v on v.run_id = arg.run_id and v.node_id = k->>0 and v.iteration = (k->>1)::integer)
select jsonb_build_object(
    'now', smithers.now(), 'status', s.status, 'created_at', r.created_at, 'ended_at', s.ended_at,
    'frames', (select coalesce(jsonb_agg(jsonb_build_object(
                          'frame_no', f.frame_no, 'base', f.base_frame_no, 'body', f.body) order by f.frame_no), '[]')
                 from smithers.frames f
                where f.run_id = s.run_id and f.body is not null and f.frame_no > (select after from arg)
                  and f.frame_no >= coalesce((select max(g.frame_no) from smithers.frames g
                                               where g.run_id = s.run_id and g.body is not null and g.base_frame_no is null), 0)),
    'nodes', (select coalesce(jsonb_agg(jsonb_build_object(
                         'node_id', c.node_id, 'iteration', c.iteration, 'state', c.state, 'kind', c.kind,
                         'attempt', coalesce(c.current_attempt, c.last_attempt), 'due_at', c.due_at,
                         'started_at', coalesce(c.started_at, a.started_at), 'ended_at', a.finished_at,
                         'error', coalesce(c.error, a.error), 'detail', c.detail)), '[]')
                from chosen c
                left join smithers.attempts a on c.current_attempt is null and a.run_id = s.run_id
                      and a.node_id = c.node_id and a.iteration = c.iteration and a.attempt = c.last_attempt))
  from smithers.run_state s
  join smithers.runs r on r.run_id = s.run_id
 where s.run_id = (select run_id from arg)
