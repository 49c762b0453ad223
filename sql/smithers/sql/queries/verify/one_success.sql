-- A completed task never runs again: a key has at most one finished attempt, but for those whose output a later
-- retry has moved to the archive.
select a.run_id, a.node_id, a.iteration,
       format('%%s attempts have finished, %%s outputs are archived', count(*), max(o.archived)) as detail
  from smithers.attempts a
 cross join lateral (
       select count(*) as archived from smithers.outputs_archive x
        where x.run_id = a.run_id and x.node_id = a.node_id and x.iteration = a.iteration) o
 where a.state = 'finished' and (%(run_id)s::text is null or a.run_id = %(run_id)s::text)
 group by a.run_id, a.node_id, a.iteration
having count(*) > 1 + max(o.archived)
 limit %(limit)s
