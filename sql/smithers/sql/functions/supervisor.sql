-- What a supervisor does: give back what dead processes held. Recovery is a loop over state; any number of
-- supervisors is harmless, since every reclaim compares the token and the expired lease again.

-- Attempts whose lease has expired, oldest first.
create or replace function smithers_p1.stale_leases(p_limit integer default 500)
returns table (run_id text, node_id text, iteration integer, attempt integer, claim_id uuid, owner bigint, late_seconds double precision)
language sql stable as $$
    select l.run_id, l.node_id, l.iteration, l.attempt, l.claim_id, l.owner, extract(epoch from smithers.now() - l.lease_until)::double precision
      from smithers.leases l where l.lease_until < smithers.now() order by l.lease_until limit p_limit $$;

-- Abandons attempts whose lease has expired (looked at again here): lease gone, attempt abandoned, node pending
-- again, or failed as POISONED after p_poison such ends. items: [{run_id, node_id, iteration, attempt, claim_id}].
-- Locks as end_attempts.
create or replace function smithers_p1.reclaim_attempts(p_items jsonb, p_poison integer)
returns table (ord bigint, accepted boolean)
language plpgsql as $$
declare
    v_abandoned constant jsonb := '{"state": "abandoned", "error": {"code": "ABANDONED",
        "message": "the lease of this attempt expired: its worker died or lost the database"}}';
begin
    return query select e.* from smithers_p1.end_attempts(
        (select coalesce(jsonb_agg(i || v_abandoned order by o), '[]') from jsonb_array_elements(p_items) with ordinality as x(i, o)),
        true, p_poison) e;
end $$;

-- Runs whose owner is dead: stamped with the supervisor as owner in one update and handed on (owner null, dirty
-- stays as it is) in the same transaction. Returns the runs. Locks: runs (skip locked).
create or replace function smithers_p1.reclaim_runs(p_owner bigint, p_claim uuid, p_limit integer default 100)
returns table (run_id text, previous_owner bigint)
language plpgsql as $$
#variable_conflict use_column
declare v_run record;
begin
    for v_run in
        select s.run_id, s.owner, s.status from smithers.run_state s
         where s.owner is not null and s.owner <> p_owner and not smithers_p1.is_live(s.owner)
         order by s.run_id limit p_limit for no key update skip locked
    loop
        update smithers.run_state s
           set owner = p_owner, epoch = s.epoch + 1, claim_id = p_claim, claimed_at = smithers.now(),
               resumes = case when s.progressed_at <= s.claimed_at then s.resumes + 1 else s.resumes end
         where s.run_id = v_run.run_id;
        perform smithers_p1.append_events(v_run.run_id, jsonb_build_array(jsonb_build_object('type', 'run-reclaimed',
            'payload', jsonb_build_object('from', v_run.owner, 'by', p_owner))), v_run.status not in ('paused', 'finished', 'failed', 'cancelled', 'continued'));
        update smithers.run_state s set owner = null, claim_id = null where s.run_id = v_run.run_id;
        perform pg_notify('smithers_dirty', v_run.run_id);
        run_id := v_run.run_id;
        previous_owner := v_run.owner;
        return next;
    end loop;
end $$;

-- Declares processes dead whose lease ended p_grace ago; they must register anew.
create or replace function smithers_p1.expire_processes(p_grace interval)
returns table (id bigint, kind text, host text, pid integer)
language sql as $$
    with dead as (
        select p.id from smithers.processes p where p.stopped_at is null and p.lease_until < smithers.now() - p_grace
         order by p.id for no key update skip locked)
    update smithers.processes p set stopped_at = smithers.now() from dead d where p.id = d.id
    returning p.id, p.kind, p.host, p.pid $$;

-- Owners that are current, for the sweep of a host: a marked process of any other owner is an orphan.
create or replace function smithers_p1.live_owners() returns table (id bigint)
language sql stable as $$ select p.id from smithers.processes p where p.stopped_at is null and p.lease_until >= smithers.now() $$;

-- Claim ids that hold a lease, for the same sweep.
create or replace function smithers_p1.live_claims(p_claims uuid[]) returns table (claim_id uuid)
language sql stable as $$ select distinct l.claim_id from smithers.leases l where l.claim_id = any (p_claims) $$;

-- The beat of a supervisor and one look at everything that it repairs, so that an idle one costs one query a poll: is
-- there an expired lease, a run whose owner is dead, a row that is p_late overdue, a process whose lease ended p_grace
-- ago? `current` is false when the supervisor itself was declared dead. Locks: its own row in processes.
create or replace function smithers_p1.beat_and_look(p_owner bigint, p_lease interval, p_late interval, p_grace interval)
returns table (current boolean, leases boolean, runs boolean, due boolean, processes boolean)
language plpgsql as $$
declare v_current boolean := smithers_p1.beat_process(p_owner, p_lease);
begin
    return query
    select v_current,
           exists (select from smithers.leases l where l.lease_until < smithers.now()),
           exists (select from smithers.run_state s
                    where s.owner is not null and s.owner <> p_owner and not smithers_p1.is_live(s.owner)),
           exists (select from smithers_p1.due_runs(smithers.now() - p_late, 1)),
           exists (select from smithers.processes p
                    where p.stopped_at is null and p.lease_until < smithers.now() - p_grace);
end $$;
