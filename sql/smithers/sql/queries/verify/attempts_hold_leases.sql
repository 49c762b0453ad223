-- An attempt is in progress if and only if its lease is there, with the same token and owner.
select coalesce(l.run_id, a.run_id) as run_id, coalesce(l.node_id, a.node_id) as node_id,
       coalesce(l.iteration, a.iteration) as iteration,
       case when l.run_id is null then format('attempt %%s is in progress without a lease', a.attempt)
            when a.run_id is null then format('the lease of attempt %%s has no attempt in progress', l.attempt)
            else format('lease and attempt %%s differ in claim or owner', l.attempt) end as detail
  from (select * from smithers.leases x where %(run_id)s::text is null or x.run_id = %(run_id)s::text) l
  full join (select * from smithers.attempts x
              where x.state = 'in-progress' and (%(run_id)s::text is null or x.run_id = %(run_id)s::text)) a
    on a.run_id = l.run_id and a.node_id = l.node_id and a.iteration = l.iteration and a.attempt = l.attempt
 where l.run_id is null or a.run_id is null
    or a.claim_id is distinct from l.claim_id or a.owner is distinct from l.owner
 limit %(limit)s
