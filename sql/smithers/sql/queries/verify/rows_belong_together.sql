-- Every run has its state and its stored source; every node, event, frame and lease has its run; every task that was
-- queued has its descriptor.
select coalesce(r.run_id, s.run_id) as run_id, null::text as node_id, null::integer as iteration,
       case when r.run_id is null then 'its row in runs is missing'
            when s.run_id is null then 'its row in run_state is missing'
            else 'its source is not stored' end as detail
  from (select * from smithers.runs x where %(run_id)s::text is null or x.run_id = %(run_id)s::text) r
  full join (select * from smithers.run_state x where %(run_id)s::text is null or x.run_id = %(run_id)s::text) s
    on s.run_id = r.run_id
 where r.run_id is null or s.run_id is null
    or not exists (select from smithers.sources c where c.source_hash = r.source_hash)
union all
select n.run_id, n.node_id, n.iteration,
       case when not exists (select from smithers.run_state s where s.run_id = n.run_id) then 'it has no run'
            else 'its descriptor is missing' end
  from smithers.nodes n
 where (%(run_id)s::text is null or n.run_id = %(run_id)s::text)
   and (not exists (select from smithers.run_state s where s.run_id = n.run_id)
        or (n.descriptor_hash is not null
            and not exists (select from smithers.descriptors d where d.run_id = n.run_id and d.hash = n.descriptor_hash)))
union all
select e.run_id, null, null, format('%%s events without a run', count(*))
  from smithers.events e
 where (%(run_id)s::text is null or e.run_id = %(run_id)s::text)
   and not exists (select from smithers.run_state s where s.run_id = e.run_id)
 group by e.run_id
union all
select l.run_id, l.node_id, l.iteration, format('its lease names process %%s, which never was', l.owner)
  from smithers.leases l
 where (%(run_id)s::text is null or l.run_id = %(run_id)s::text)
   and not exists (select from smithers.processes p where p.id = l.owner)
 limit %(limit)s
