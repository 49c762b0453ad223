-- What a monitoring system wants to know of a whole database: how many tasks could be claimed in each queue and how long
-- the oldest has been waiting (seconds), and how many runs there are in each status.
select jsonb_build_object(
    'queues', (select coalesce(jsonb_agg(jsonb_build_object('queue', q.queue, 'depth', q.depth, 'oldest', q.oldest)), '[]')
                 from (select r.queue, count(*) as depth,
                              extract(epoch from smithers.now() - min(r.ready_at))::double precision as oldest
                         from smithers.ready_tasks r group by r.queue) q),
    'runs', (select coalesce(jsonb_object_agg(s.status, s.runs), '{}')
               from (select status, count(*) as runs from smithers.run_state group by status) s))
