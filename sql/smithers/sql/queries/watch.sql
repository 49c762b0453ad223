-- What a follower of one run looks at in each poll, in one statement so that a poll costs one; no row without the run.
-- `events` are those after number `since`; `owner_left` is the seconds that the lease of the run's owner still has,
-- null without one; `resets_at` is the first reset of a quota that it waits for. A claim logs nothing: `claimed` are the
-- newest leases, [[node_id, iteration, attempt], …]. Without `since` there are no events, but `finished` of `mounted` nodes.
select jsonb_build_object(
    'status', s.status, 'last_seq', s.next_event_seq - 1,
    'resets_at', (select min(n.due_at) from smithers.nodes n where n.run_id = s.run_id and n.state = 'waiting-quota'),
    'owner', s.owner,
    'owner_label', o.kind || ':' || o.host || ':' || o.pid,
    'owner_left', extract(epoch from o.lease_until - smithers.now())::double precision,
    'events', (select coalesce(jsonb_agg(to_jsonb(e) - 'run_id' order by e.seq), '[]')
                 from (select * from smithers.events x
                        where x.run_id = %(run_id)s and x.seq > %(since)s::bigint order by x.seq limit %(limit)s) e),
    'claimed', (select coalesce(jsonb_agg(jsonb_build_array(l.node_id, l.iteration, l.attempt)), '[]')
                  from (select * from smithers.leases y where y.run_id = %(run_id)s order by y.started_at desc limit 200) l),
    'finished', (select count(*) from smithers.nodes n where %(since)s::bigint is null and n.run_id = s.run_id
                    and n.kind <> 'loop' and n.state = 'finished'),
    'mounted', (select count(*) from smithers.nodes n where %(since)s::bigint is null and n.run_id = s.run_id and n.kind <> 'loop'),
    'processes', (select coalesce(jsonb_agg(jsonb_build_object(
                             'id', p.id, 'kind', p.kind, 'host', p.host, 'pid', p.pid, 'queues', p.queues)), '[]')
                    from smithers.processes p where p.stopped_at is null and p.lease_until >= smithers.now()))
  from smithers.run_state s
  left join smithers.processes o on o.id = s.owner and o.stopped_at is null
 where s.run_id = %(run_id)s
