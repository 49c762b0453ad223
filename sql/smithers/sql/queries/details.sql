-- One run from close by, as one document: the rows of node_view in the order in which they were mounted, what is open
-- (approvals, questions, timers, events awaited, inbox), the last ended attempt of nodes that failed or try again, and
-- what stands in the queues.
with arg as (select %(run_id)s::text as run_id)
select jsonb_build_object(
    'nodes', (select coalesce(jsonb_agg(to_jsonb(v) - 'run_id' order by v.frame_no, v.node_id, v.iteration), '[]')
                from smithers.node_view v where v.run_id = (select run_id from arg)),
    'approvals', (select coalesce(jsonb_agg(jsonb_build_object(
                             'node_id', a.node_id, 'iteration', a.iteration, 'title', a.title, 'summary', a.summary,
                             'opened_at', a.opened_at, 'due_at', a.due_at) order by a.seq, a.node_id, a.iteration), '[]')
                    from smithers.approvals a
                   where a.run_id = (select run_id from arg)
                     and not a.superseded and a.decided_seq is null and a.expired_seq is null),
    'humans', (select coalesce(jsonb_agg(jsonb_build_object(
                          'node_id', h.node_id, 'iteration', h.iteration, 'prompt', h.prompt,
                          'opened_at', h.opened_at, 'due_at', h.due_at) order by h.seq, h.node_id, h.iteration), '[]')
                 from smithers.human_requests h
                where h.run_id = (select run_id from arg)
                  and not h.superseded and h.decided_seq is null and h.expired_seq is null),
    'timers', (select coalesce(jsonb_agg(jsonb_build_object(
                          'node_id', t.node_id, 'iteration', t.iteration, 'opened_at', t.opened_at,
                          'due_at', t.due_at) order by t.due_at, t.node_id, t.iteration), '[]')
                 from smithers.timers t
                where t.run_id = (select run_id from arg) and not t.superseded and t.fired_seq is null),
    'inbox', (select coalesce(jsonb_agg(jsonb_build_object('seq', g.seq, 'name', g.name, 'sent_at', g.sent_at) order by g.seq), '[]')
                from smithers.signals g where g.run_id = (select run_id from arg) and g.consumed_seq is null),
    'failures', (select coalesce(jsonb_agg(jsonb_build_object(
                            'node_id', n.node_id, 'iteration', n.iteration, 'attempt', a.attempt, 'state', a.state,
                            'finished_at', a.finished_at, 'error', a.error) order by a.finished_at, n.node_id, n.iteration), '[]')
                   from smithers.nodes n
                   join smithers.attempts a on a.run_id = n.run_id and a.node_id = n.node_id
                        and a.iteration = n.iteration and a.attempt = n.last_attempt
                  where n.run_id = (select run_id from arg) and a.state <> 'finished'
                    and (n.state = 'failed' or n.due_at is not null)),
    'ready', (select coalesce(jsonb_agg(jsonb_build_object(
                         'queue', q.queue, 'tasks', q.n, 'since', q.since, 'paused', coalesce(u.paused, false),
                         'max_concurrency', u.max_concurrency,
                         'in_use', (select count(*) from smithers.leases l where l.queue = q.queue)) order by q.queue), '[]')
                from (select t.queue, count(*) as n, min(t.ready_at) as since from smithers.ready_tasks t
                       where t.run_id = (select run_id from arg) group by t.queue) q
                left join smithers.queues u on u.name = q.queue))
