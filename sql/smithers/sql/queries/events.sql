-- Events of a run after number `since`, in order.
select e.seq, e.at, e.type, e.node_id, e.iteration, e.attempt, e.payload
  from smithers.events e
 where e.run_id = %(run_id)s and e.seq > %(since)s
 order by e.seq
 limit %(limit)s
