-- Stored structures in order, of one run or of all: full ones have no base, the others are changes since their base.
select f.run_id, f.frame_no, f.base_frame_no, f.body
  from smithers.frames f
 where f.body is not null and (%(run_id)s::text is null or f.run_id = %(run_id)s::text)
 order by f.run_id, f.frame_no
