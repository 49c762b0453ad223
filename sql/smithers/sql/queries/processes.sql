-- The processes whose lease is current, as one list.
select coalesce(jsonb_agg(jsonb_build_object(
           'id', p.id, 'kind', p.kind, 'host', p.host, 'pid', p.pid, 'name', p.name, 'queues', p.queues,
           'started_at', p.started_at, 'lease_until', p.lease_until) order by p.id), '[]')
  from smithers.processes p
 where p.stopped_at is null and p.lease_until >= smithers.now()
