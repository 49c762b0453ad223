-- A node is ready if and only if it stands in the queue (for its next attempt) or holds a lease, never both.
select coalesce(n.run_id, r.run_id, l.run_id) as run_id, coalesce(n.node_id, r.node_id, l.node_id) as node_id,
       coalesce(n.iteration, r.iteration, l.iteration) as iteration,
       case when n.run_id is null then 'it is queued or held, but there is no node'
            when r.run_id is not null and l.run_id is not null then 'it is queued and held'
            when n.state = 'ready' and r.run_id is null and l.run_id is null then 'it is ready, but neither queued nor held'
            when n.state <> 'ready' and r.run_id is not null then format('it is %%s, but still queued', n.state)
            when n.state <> 'ready' then format('it is %%s, but still held', n.state)
            else format('attempt %%s is queued or held after %%s ended ones', coalesce(r.attempt, l.attempt), n.last_attempt)
       end as detail
  from (select * from smithers.nodes x where %(run_id)s::text is null or x.run_id = %(run_id)s::text) n
  full join (select * from smithers.ready_tasks x where %(run_id)s::text is null or x.run_id = %(run_id)s::text) r
    on r.run_id = n.run_id and r.node_id = n.node_id and r.iteration = n.iteration
  full join (select * from smithers.leases x where %(run_id)s::text is null or x.run_id = %(run_id)s::text) l
    on l.run_id = coalesce(n.run_id, r.run_id) and l.node_id = coalesce(n.node_id, r.node_id)
   and l.iteration = coalesce(n.iteration, r.iteration)
 where n.run_id is null
    or (n.state = 'ready') <> (r.run_id is not null or l.run_id is not null)
    or (r.run_id is not null and l.run_id is not null)
    or coalesce(r.attempt, l.attempt) <> n.last_attempt + 1
 limit %(limit)s
