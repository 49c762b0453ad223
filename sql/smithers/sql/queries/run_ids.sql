-- The run of exactly this id first, then up to five whose ids begin with it (`pattern` is the id, escaped for LIKE).
select r.run_id
  from smithers.runs r
 where r.run_id like %(pattern)s
 order by r.run_id <> %(run_id)s, r.run_id
 limit 6
