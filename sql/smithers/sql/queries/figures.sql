-- What a run has cost, as one document: finished steps, completions that were begun again, interrupted attempts, the
-- first start; and which of the processes `owners` ended without saying so.
select jsonb_build_object(
           'steps', (select count(*) from smithers.nodes n
                      where n.run_id = %(run_id)s and n.state = 'finished' and n.kind <> 'loop'),
           'repeated', (select count(*) from smithers.attempts a
                          join smithers.attempts done using (run_id, node_id, iteration)
                         where a.run_id = %(run_id)s and done.state = 'finished' and a.attempt <> done.attempt
                           and (a.state = 'finished' or a.attempt > done.attempt)),
           'interrupted', (select count(*) from smithers.attempts a
                            where a.run_id = %(run_id)s and a.state in ('abandoned', 'released')),
           'first_start', (select min(a.started_at) from smithers.attempts a where a.run_id = %(run_id)s),
           'lost', (select coalesce(jsonb_agg(p.id order by p.id), '[]') from smithers.processes p
                     where p.id = any (%(owners)s)
                       and case when p.stopped_at is null then p.lease_until < smithers.now()
                                else p.stopped_at > p.lease_until end))
