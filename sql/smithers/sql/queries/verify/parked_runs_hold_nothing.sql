-- A run that isn't running has no owner, holds no lease and has nothing in a queue; an owner has a claim.
select s.run_id, null::text as node_id, null::integer as iteration,
       case when (s.owner is null) <> (s.claim_id is null) then 'owner and claim do not go together'
            else format('it is %%s with %%s leases, %%s queued tasks, owner %%s', s.status, l.n, r.n, coalesce(s.owner::text, 'none'))
       end as detail
  from smithers.run_state s
 cross join lateral (select count(*) as n from smithers.leases x where x.run_id = s.run_id) l
 cross join lateral (select count(*) as n from smithers.ready_tasks x where x.run_id = s.run_id) r
 where (%(run_id)s::text is null or s.run_id = %(run_id)s::text)
   and ((s.owner is null) <> (s.claim_id is null)
        or (s.status <> 'running' and (s.owner is not null or l.n > 0 or r.n > 0)))
 limit %(limit)s
