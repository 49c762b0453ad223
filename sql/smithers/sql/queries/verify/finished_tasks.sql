-- A task is finished if and only if it has exactly one output row and exactly one finish event that is not of an
-- archived output.
with output as (
    select o.run_id, o.node_id, o.iteration, count(*) as n from smithers_p1.output_rows(%(run_id)s::text) o group by 1, 2, 3),
archived as (
    select x.run_id, x.node_id, x.iteration, count(*) as n from smithers.outputs_archive x
     where %(run_id)s::text is null or x.run_id = %(run_id)s::text group by 1, 2, 3),
event as (
    select e.run_id, e.node_id, e.iteration, count(*) as n from smithers.events e
     where e.type = 'attempt-finished' and (%(run_id)s::text is null or e.run_id = %(run_id)s::text) group by 1, 2, 3)
select n.run_id, n.node_id, n.iteration,
       format('the node is %%s with %%s outputs, %%s finish events, %%s archived outputs', n.state,
              coalesce(o.n, 0), coalesce(e.n, 0), coalesce(x.n, 0)) as detail
  from smithers.nodes n
  left join output o on o.run_id = n.run_id and o.node_id = n.node_id and o.iteration = n.iteration
  left join archived x on x.run_id = n.run_id and x.node_id = n.node_id and x.iteration = n.iteration
  left join event e on e.run_id = n.run_id and e.node_id = n.node_id and e.iteration = n.iteration
 where n.kind in ('agent', 'compute', 'static') and (%(run_id)s::text is null or n.run_id = %(run_id)s::text)
   and (coalesce(o.n, 0) <> case when n.state = 'finished' then 1 else 0 end
        or coalesce(e.n, 0) <> coalesce(x.n, 0) + case when n.state = 'finished' then 1 else 0 end)
 limit %(limit)s
