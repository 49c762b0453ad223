-- A request has one decision at most, and each decision or answer woke its run by one event of its own.
with decided as (
    select a.run_id, a.node_id, a.iteration, a.decided_seq as seq, a.superseded, 'approval-decided' as type
      from smithers.approvals a where a.decided_seq is not null and (%(run_id)s::text is null or a.run_id = %(run_id)s::text)
    union all
    select h.run_id, h.node_id, h.iteration, h.decided_seq, h.superseded, 'human-answered'
      from smithers.human_requests h where h.decided_seq is not null and (%(run_id)s::text is null or h.run_id = %(run_id)s::text)),
event as (
    select e.run_id, e.node_id, e.iteration, e.seq, e.type from smithers.events e
     where e.type in ('approval-decided', 'human-answered') and (%(run_id)s::text is null or e.run_id = %(run_id)s::text))
select coalesce(d.run_id, e.run_id) as run_id, coalesce(d.node_id, e.node_id) as node_id,
       coalesce(d.iteration, e.iteration) as iteration,
       case when e.run_id is null then format('the decision says event %%s, which is none of it', d.seq)
            else format('event %%s tells of a decision that is not there', e.seq) end as detail
  from decided d
  full join event e on e.run_id = d.run_id and e.seq = d.seq and e.type = d.type
       and e.node_id = d.node_id and e.iteration = d.iteration
 where d.run_id is null or e.run_id is null
union all
select d.run_id, d.node_id, d.iteration, format('%%s decisions stand', count(*))
  from decided d where not d.superseded group by 1, 2, 3 having count(*) > 1
 limit %(limit)s
