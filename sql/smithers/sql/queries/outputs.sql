-- Values of the finished nodes of a run, in the order in which they were mounted; of one node or of one key if named.
select jsonb_build_object('node_id', n.node_id, 'iteration', n.iteration, 'kind', n.kind, 'attempt', n.last_attempt,
           'value', smithers_p1.read_output(n.run_id, n.node_id, n.iteration))
  from smithers.nodes n
 where n.run_id = %(run_id)s::text and n.state = 'finished' and n.kind <> 'loop'
   and (%(node_id)s::text is null or n.node_id = %(node_id)s::text)
   and (%(iteration)s::integer is null or n.iteration = %(iteration)s::integer)
 order by n.frame_no, n.node_id, n.iteration
