-- What a follower of one run looks at in each poll; no row without the run. `owner_left` is the seconds that the lease
-- of the run's owner still has, null without an owner.
select jsonb_build_object(
    'status', s.status, 'dirty', s.dirty, 'last_seq', s.next_event_seq - 1, 'error', s.error, 'now', smithers.now(),
    'in_flight', (select count(*) from smithers.leases l where l.run_id = s.run_id),
    'owner', s.owner, 'owner_live', smithers_p1.is_live(s.owner),
    'owner_label', (select p.kind || ':' || p.host || ':' || p.pid from smithers.processes p where p.id = s.owner),
    'owner_left', (select extract(epoch from p.lease_until - smithers.now())::double precision
                     from smithers.processes p where p.id = s.owner and p.stopped_at is null),
    'lease_left', (select extract(epoch from max(l.lease_until) - smithers.now())::double precision
                     from smithers.leases l where l.run_id = s.run_id))
  from smithers.run_state s
 where s.run_id = %(run_id)s
