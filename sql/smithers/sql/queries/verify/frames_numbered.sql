-- The frames of a run are numbered 1..m, each has seen at least what the one before has, and none what isn't there.
select s.run_id, null::text as node_id, null::integer as iteration,
       format('%%s frames from %%s to %%s, the run is at %%s; the last event is %%s, the frames have seen %%s',
              f.n, f.first, f.last, s.frame_no, s.next_event_seq - 1, f.upto) as detail
  from smithers.run_state s
 cross join lateral (
       select count(*) as n, coalesce(min(x.frame_no), 0) as first, coalesce(max(x.frame_no), 0) as last,
              coalesce(max(x.upto_seq), 0) as upto
         from smithers.frames x where x.run_id = s.run_id) f
 where (%(run_id)s::text is null or s.run_id = %(run_id)s::text)
   and (f.n <> s.frame_no or f.last <> s.frame_no or (f.n > 0 and f.first <> 1) or f.upto >= s.next_event_seq)
union all
select b.run_id, null, null, format('frame %%s has seen %%s, the one before it %%s', b.frame_no, b.upto_seq, b.before)
  from (select f.run_id, f.frame_no, f.upto_seq,
               lag(f.upto_seq) over (partition by f.run_id order by f.frame_no) as before
          from smithers.frames f where %(run_id)s::text is null or f.run_id = %(run_id)s::text) b
 where b.upto_seq < b.before
 limit %(limit)s
