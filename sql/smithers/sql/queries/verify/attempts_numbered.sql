-- The attempts of a key are numbered 1..n without a gap, and its node counts those that have ended.
select a.run_id, a.node_id, a.iteration,
       case when n.run_id is null then format('%%s attempts without a node', count(*))
            when min(a.attempt) <> 1 or max(a.attempt) <> count(*)
            then format('attempts run from %%s to %%s, but there are %%s', min(a.attempt), max(a.attempt), count(*))
            else format('the node says that %%s attempts have ended, the last that did is %%s', n.last_attempt,
                        coalesce(max(a.attempt) filter (where a.state <> 'in-progress'), 0)) end as detail
  from smithers.attempts a
  left join smithers.nodes n on n.run_id = a.run_id and n.node_id = a.node_id and n.iteration = a.iteration
 where %(run_id)s::text is null or a.run_id = %(run_id)s::text
 group by a.run_id, a.node_id, a.iteration, n.run_id, n.last_attempt
having n.run_id is null or min(a.attempt) <> 1 or max(a.attempt) <> count(*)
    or n.last_attempt <> coalesce(max(a.attempt) filter (where a.state <> 'in-progress'), 0)
 limit %(limit)s
