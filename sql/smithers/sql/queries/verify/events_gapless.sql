-- The events of a run are numbered 1..n without a gap, and n is what the run's counter says.
select s.run_id, null::text as node_id, null::integer as iteration,
       format('%%s events from %%s to %%s, the next would be %%s', e.n, e.first, e.last, s.next_event_seq) as detail
  from smithers.run_state s
 cross join lateral (
       select count(*) as n, coalesce(min(x.seq), 0) as first, coalesce(max(x.seq), 0) as last
         from smithers.events x where x.run_id = s.run_id) e
 where (%(run_id)s::text is null or s.run_id = %(run_id)s::text)
   and (e.n <> s.next_event_seq - 1 or e.last <> s.next_event_seq - 1 or (e.n > 0 and e.first <> 1))
 limit %(limit)s
