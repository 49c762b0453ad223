-- Runs, newest first: the run that is named, or those in some states, or those that have not ended, or all. Each is one
-- document {run, facts}: the columns of runs and run_state, and the counts from which the verdict follows.
select jsonb_build_object(
    'run', jsonb_build_object(
               'run_id', r.run_id, 'workflow', r.workflow, 'path', r.path, 'source_hash', r.source_hash,
               'pinned', r.pinned, 'created_at', r.created_at, 'parent_run_id', r.parent_run_id, 'tags', r.tags)
           || (to_jsonb(s) - 'last_rank'),
    'owner', case when p.id is not null then jsonb_build_object(
                 'id', p.id, 'kind', p.kind, 'host', p.host, 'pid', p.pid, 'name', p.name, 'lease_until', p.lease_until,
                 'live', p.stopped_at is null and p.lease_until >= smithers.now()) end,
    'facts', jsonb_build_object(
        'now', smithers.now(),
        'nodes', n.states, 'failed', n.failed, 'skipped', n.skipped, 'exhausted', n.exhausted, 'retrying', n.retrying,
        'leases', l.leases, 'stale', l.stale, 'lease_until', l.lease_until,
        'ready', q.queues, 'ready_at', q.ready_at,
        'open', w.open, 'due_at', d.due_at))
  from smithers.runs r
  join smithers.run_state s on s.run_id = r.run_id
  left join smithers.processes p on p.id = s.owner
 cross join lateral (
       select coalesce(jsonb_object_agg(g.state, g.n), '{}') as states,
              coalesce(sum(g.n) filter (where g.state = 'failed'), 0) as failed,
              coalesce(sum(g.n) filter (where g.state = 'skipped'), 0) as skipped,
              coalesce(sum(g.exhausted), 0) as exhausted,
              coalesce(sum(g.retrying), 0) as retrying
         from (select v.state, count(*) as n,
                      count(*) filter (where v.kind = 'loop' and v.detail->>'exhausted' = 'true') as exhausted,
                      count(*) filter (where v.state = 'pending' and v.due_at is not null) as retrying
                 from smithers.node_view v where v.run_id = r.run_id group by v.state) g) n
 cross join lateral (
       select count(*) as leases, count(*) filter (where x.lease_until < smithers.now()) as stale, min(x.lease_until) as lease_until
         from smithers.leases x where x.run_id = r.run_id) l
 cross join lateral (
       select coalesce(jsonb_object_agg(g.queue, g.n), '{}') as queues, min(g.ready_at) as ready_at
         from (select x.queue, count(*) as n, min(x.ready_at) as ready_at
                 from smithers.ready_tasks x where x.run_id = r.run_id group by x.queue) g) q
 cross join lateral (
       select (select count(*) from smithers.approvals a
                where a.run_id = r.run_id and not a.superseded and a.decided_seq is null and a.expired_seq is null)
            + (select count(*) from smithers.human_requests h
                where h.run_id = r.run_id and not h.superseded and h.decided_seq is null and h.expired_seq is null)
            + (select count(*) from smithers.nodes x where x.run_id = r.run_id and x.state = 'waiting-event') as open) w
 cross join lateral (
       select min(x.due_at) as due_at from (
           select y.due_at from smithers.nodes y where y.run_id = r.run_id and y.due_at is not null
           union all
           select y.due_at from smithers.timers y where y.run_id = r.run_id and y.fired_seq is null and not y.superseded
           union all
           select y.due_at from smithers.approvals y
            where y.run_id = r.run_id and y.decided_seq is null and y.expired_seq is null and not y.superseded
           union all
           select y.due_at from smithers.human_requests y
            where y.run_id = r.run_id and y.decided_seq is null and y.expired_seq is null and not y.superseded) x) d
 where (%(run_id)s::text is null or r.run_id = %(run_id)s::text)
   and (%(statuses)s::text[] is null or s.status = any (%(statuses)s::text[]))
   and (%(ended)s::boolean or s.status not in ('finished', 'failed', 'cancelled', 'continued'))
 order by r.created_at desc, r.run_id desc
 limit %(limit)s::bigint
