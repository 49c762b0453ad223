-- Whether anything in this database needs a process that serves these queues now (`active`), the seconds until the
-- earliest due row (`due_in`, null when there is none), and the living processes. A run that waits for people or
-- events, or is paused, needs nobody.
select jsonb_build_object(
    'active', exists (select from smithers.run_state s
                       where s.dirty and s.status not in ('paused', 'finished', 'failed', 'cancelled', 'continued'))
              or exists (select from smithers.ready_tasks r where r.queue = any (%(queues)s))
              or exists (select from smithers.leases),
    'due_in', smithers_p1.next_due(),
    'processes', (select coalesce(jsonb_agg(jsonb_build_object(
                             'id', p.id, 'kind', p.kind, 'host', p.host, 'pid', p.pid, 'queues', p.queues)), '[]')
                    from smithers.processes p where p.stopped_at is null and p.lease_until >= smithers.now()))
