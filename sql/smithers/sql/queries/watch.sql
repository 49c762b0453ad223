-- What a follower of one run looks at in each poll, in one statement so that a poll costs one; no row without the run.
-- `events` are those after number `since`; `owner_left` is the seconds that the lease of the run's owner still has,
-- null without one; `resets_at` is the first reset of a quota that it waits for.
select jsonb_build_object(
    'status', s.status, 'last_seq', s.next_event_seq - 1,
    'resets_at', (select min(n.due_at) from smithers.nodes n where n.run_id = s.run_id and n.state = 'waiting-quota'),
    'owner', s.owner,
    'owner_label', o.kind || ':' || o.host || ':' || o.pid,
    'owner_left', extract(epoch from o.lease_until - smithers.now())::double precision,
    'events', (select coalesce(jsonb_agg(to_jsonb(e) - 'run_id' order by e.seq), '[]')
                 from (select * from smithers.events x
                        where x.run_id = %(run_id)s and x.seq > %(since)s order by x.seq limit %(limit)s) e),
    'processes', (select coalesce(jsonb_agg(jsonb_build_object(
                             'id', p.id, 'kind', p.kind, 'host', p.host, 'pid', p.pid, 'queues', p.queues)), '[]')
                    from smithers.processes p where p.stopped_at is null and p.lease_until >= smithers.now()))
  from smithers.run_state s
  left join smithers.processes o on o.id = s.owner and o.stopped_at is null
 where s.run_id = %(run_id)s
