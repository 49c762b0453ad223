-- The token of an output is the token of a finished attempt and of its node, which is finished and names the table.
select o.run_id, o.node_id, o.iteration,
       case when n.run_id is null then format('a row in %%s without a node', o.output_table)
            when n.state <> 'finished' then format('a row in %%s, but the node is %%s', o.output_table, n.state)
            when n.output_table is distinct from o.output_table
            then format('a row in %%s, but the node names %%s', o.output_table, coalesce(n.output_table, 'none'))
            when n.last_attempt <> o.attempt or n.claim_id is distinct from o.claim_id
            then format('the output is of attempt %%s, the node accepted %%s or another claim', o.attempt, n.last_attempt)
            when a.run_id is null then format('there is no attempt %%s', o.attempt)
            when a.state <> 'finished' then format('attempt %%s is %%s', o.attempt, a.state)
            else format('output and attempt %%s differ in claim or event number', o.attempt) end as detail
  from smithers_p1.output_rows(%(run_id)s::text) o
  left join smithers.nodes n on n.run_id = o.run_id and n.node_id = o.node_id and n.iteration = o.iteration
  left join smithers.attempts a
    on a.run_id = o.run_id and a.node_id = o.node_id and a.iteration = o.iteration and a.attempt = o.attempt
 where n.run_id is null or n.state <> 'finished' or n.output_table is distinct from o.output_table
    or n.last_attempt <> o.attempt or n.claim_id is distinct from o.claim_id
    or a.run_id is null or a.state <> 'finished' or a.claim_id is distinct from o.claim_id or a.seq is distinct from o.seq
 limit %(limit)s
