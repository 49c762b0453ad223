-- Whether anything in this database needs a process now (`active`), and until when nothing does (`due_in` seconds to the
-- earliest due row, null when there is none). A run that waits for people or events, or is paused, needs none.
select jsonb_build_object(
    'active', exists (select from smithers.run_state s
                       where s.dirty and s.status not in ('paused', 'finished', 'failed', 'cancelled', 'continued'))
              or exists (select from smithers.ready_tasks) or exists (select from smithers.leases),
    'due_in', smithers_p1.next_due())
