-- What a worker does: claim, beat, end. Every statement about an attempt joins its `leases` row by
-- (key, attempt, claim_id) in the same transaction; no row means FENCED and the item is not accepted.
-- Batch arguments are one jsonb document unpacked by a strict function declared ROWS 1: without it a
-- statement planned on empty tables walks whole primary keys for ever.

create or replace function smithers_p1.unpack_items(p jsonb)
returns table (ord bigint, run_id text, node_id text, iteration integer, attempt integer, claim_id uuid, body jsonb)
language sql immutable strict rows 1
as $$ select e.ord, x.*, e.body from jsonb_array_elements(p) with ordinality as e(body, ord),
      jsonb_to_record(e.body) as x(run_id text, node_id text, iteration integer, attempt integer, claim_id uuid) $$;

-- Locks the runs of a batch, sorted: first step of every transaction that changes rows of several runs.
create or replace function smithers_p1.lock_runs(p_items jsonb) returns void
language plpgsql as $$
begin
    perform from smithers.run_state s
      where s.run_id in (select i.run_id from smithers_p1.unpack_items(p_items) i)
      order by s.run_id for no key update;
end $$;

-- Takes up to p_limit ready tasks of the queues, in their order; each row moves to a lease and an attempt.
-- A key with an abandoned attempt (`alone`) comes by itself and only when p_free > 0: it is never buffered.
-- Locks: ready_tasks (skip locked) → leases → attempts; `queues` only where that queue has a limit.
-- Touches no run and no node. Raises SM003 when the process is not registered any more.
create or replace function smithers_p1.claim_tasks(
    p_owner bigint, p_claim uuid, p_queues text[], p_limit integer, p_free integer, p_lease interval)
returns table (run_id text, node_id text, iteration integer, attempt integer, claim_id uuid, queue text,
               source_hash text, failures integer, waited_ms double precision, descriptor jsonb, needs jsonb)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := smithers.now();
    v_ids bigint[] := '{}';
    v_queue text;
    v_limit integer;
    v_left integer;
    v_paused boolean;
    v_alone bigint;
begin
    perform from smithers.processes p where p.id = p_owner and p.stopped_at is null;
    if not found then
        raise exception using errcode = 'SM003', message = format('process %s is not registered', p_owner);
    end if;
    foreach v_queue in array p_queues loop
        v_left := p_limit - cardinality(v_ids);
        exit when v_left <= 0;
        select q.max_concurrency, q.paused into v_limit, v_paused from smithers.queues q
         where q.name = v_queue and (q.max_concurrency is not null or q.paused) for update;
        if found then
            continue when v_paused;
            v_left := least(v_left, v_limit - (select count(*) from smithers.leases l where l.queue = v_queue)::integer);
            continue when v_left <= 0;
        end if;
        if p_free > 0 and cardinality(v_ids) = 0 then
            select r.id into v_alone from smithers.ready_tasks r where r.queue = v_queue and r.alone
             order by r.priority desc, r.rank, r.id limit 1 for update skip locked;
            if found then
                v_ids := array[v_alone];
                exit;
            end if;
        end if;
        v_ids := v_ids || array(
            select r.id from smithers.ready_tasks r where r.queue = v_queue and not r.alone
             order by r.priority desc, r.rank, r.id limit v_left for update skip locked);
    end loop;
    if cardinality(v_ids) = 0 then
        return;
    end if;
    return query
    with moved as (
        delete from smithers.ready_tasks r where r.id = any (v_ids) returning r.*),
    leased as (
        insert into smithers.leases (run_id, node_id, iteration, attempt, claim_id, owner, queue, lease_until, heartbeat_at, started_at)
        select m.run_id, m.node_id, m.iteration, m.attempt, p_claim, p_owner, m.queue, v_now + p_lease, v_now, v_now from moved m),
    tried as (
        insert into smithers.attempts (run_id, node_id, iteration, attempt, state, origin, claim_id, owner, claimed_at)
        select m.run_id, m.node_id, m.iteration, m.attempt, 'in-progress', 'worker', p_claim, p_owner, v_now from moved m)
    select m.run_id, m.node_id, m.iteration, m.attempt, p_claim, m.queue, r.source_hash, n.failures,
           (extract(epoch from v_now - m.ready_at) * 1000)::double precision, d.body,
           (select jsonb_object_agg(need->>'param',
                       smithers_p1.read_output(m.run_id, need->>'node_id', (need->>'iteration')::integer))
              from jsonb_array_elements(d.body->'needs') need)
      from moved m
      join smithers.runs r on r.run_id = m.run_id
      join smithers.nodes n on n.run_id = m.run_id and n.node_id = m.node_id and n.iteration = m.iteration
      join smithers.descriptors d on d.run_id = m.run_id and d.hash = m.descriptor_hash
     order by m.priority desc, m.rank, m.id;
end $$;

-- One beat for all attempts of a worker and for its process row. Returns only the items that are not fine:
-- 'lost' (fenced: kill, write nothing), 'cancelled' (kill, then end as cancelled). Locks only its leases.
-- Raises SM003 when the process was declared dead.
create or replace function smithers_p1.heartbeat(p_owner bigint, p_items jsonb, p_lease interval)
returns table (run_id text, node_id text, iteration integer, attempt integer, claim_id uuid, verdict text)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare v_now timestamptz := smithers.now();
begin
    if not smithers_p1.beat_process(p_owner, p_lease) then
        raise exception using errcode = 'SM003', message = format('process %s is not registered', p_owner);
    end if;
    return query
    with item as materialized (
        select * from smithers_p1.unpack_items(p_items) i order by i.run_id, i.node_id, i.iteration),
    beaten as (
        update smithers.leases l
           set heartbeat_at = v_now, lease_until = v_now + p_lease,
               beat = case when i.body->'beat' is null then l.beat else i.body->'beat' end
          from item i
         where l.run_id = i.run_id and l.node_id = i.node_id and l.iteration = i.iteration
           and l.attempt = i.attempt and l.claim_id = i.claim_id
        returning i.ord)
    select i.run_id, i.node_id, i.iteration, i.attempt, i.claim_id,
           case when b.ord is null then 'lost' else 'cancelled' end
      from item i
      left join beaten b on b.ord = i.ord
      left join smithers.run_state s on s.run_id = i.run_id
     where b.ord is null or s.cancel_requested_at is not null;
end $$;

-- Logs the start of attempts that have been running for a beat (a short one is logged with its end).
-- Locks: runs → leases → events.
create or replace function smithers_p1.log_starts(p_items jsonb) returns integer
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    v_run record;
    v_count integer := 0;
begin
    perform smithers_p1.lock_runs(p_items);
    for v_run in
        with item as materialized (
            select * from smithers_p1.unpack_items(p_items) i order by i.run_id, i.node_id, i.iteration),
        logged as (
            update smithers.leases l set start_logged = true from item i
             where l.run_id = i.run_id and l.node_id = i.node_id and l.iteration = i.iteration
               and l.attempt = i.attempt and l.claim_id = i.claim_id and not l.start_logged
            returning l.*)
        select l.run_id, jsonb_agg(smithers_p1.started_event(l) order by l.started_at, l.node_id, l.iteration) as events
          from logged l group by l.run_id order by l.run_id
    loop
        perform smithers_p1.append_events(v_run.run_id, v_run.events);
        v_count := v_count + jsonb_array_length(v_run.events);
    end loop;
    return v_count;
end $$;

create or replace function smithers_p1.started_event(p_lease smithers.leases) returns jsonb
language sql stable as $$
    select jsonb_build_object('type', 'attempt-started', 'at', p_lease.started_at, 'node_id', p_lease.node_id,
        'iteration', p_lease.iteration, 'attempt', p_lease.attempt, 'payload', jsonb_build_object('owner', p_lease.owner)) $$;

-- Finishes attempts: output row, attempt, node, events and the wake of the run are one transaction.
-- items: [{run_id, node_id, iteration, attempt, claim_id, name, shape, output, seconds, response, usage, agent, session}]
-- Returns per item whether its token was current. Locks: runs (sorted) → nodes → leases → attempts → outputs → events.
-- Raises SM005 when an output shape is not registered.
create or replace function smithers_p1.complete_attempts(p_items jsonb, p_notify boolean default true)
returns table (ord bigint, accepted boolean)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := smithers.now();
    v_done jsonb;
    v_run text;
begin
    perform smithers_p1.lock_runs(p_items);
    perform from smithers_p1.unpack_items(p_items) i
      where not exists (select from smithers.output_tables t where t.name = i.body->>'name' and t.shape = i.body->>'shape');
    if found then
        raise exception using errcode = 'SM005', message = 'an output shape of this batch is not registered';
    end if;
    with item as materialized (
        select * from smithers_p1.unpack_items(p_items) i order by i.run_id, i.node_id, i.iteration),
    gone as (
        delete from smithers.leases l using item i
         where l.run_id = i.run_id and l.node_id = i.node_id and l.iteration = i.iteration
           and l.attempt = i.attempt and l.claim_id = i.claim_id
        returning i.ord, i.body, l.*),
    slot as (
        select g.*, sum(case when g.start_logged then 1 else 2 end) over (partition by g.run_id order by g.ord) as upto from gone g),
    bump as (
        update smithers.run_state s
           set next_event_seq = s.next_event_seq + t.n, wanted_seq = s.next_event_seq + t.n - 1,
               dirty_since = case when s.dirty then s.dirty_since else v_now end
          from (select run_id, max(upto) as n from slot group by run_id) t
         where s.run_id = t.run_id
        returning s.run_id, s.next_event_seq - t.n as first, s.pause_requested_at is not null or s.cancel_requested_at is not null as asked),
    done as (
        select s.*, b.first + s.upto - 1 as seq, b.asked, t.table_name
          from slot s join bump b on b.run_id = s.run_id
          join smithers.output_tables t on t.name = s.body->>'name' and t.shape = s.body->>'shape'),
    node as (
        update smithers.nodes n
           set state = 'finished', last_attempt = d.attempt, claim_id = d.claim_id, output_table = d.table_name, due_at = null, error = null
          from done d where n.run_id = d.run_id and n.node_id = d.node_id and n.iteration = d.iteration),
    attempt as (
        update smithers.attempts a
           set state = 'finished', finished_at = v_now, seq = d.seq,
               started_at = coalesce(v_now - make_interval(secs => (d.body->>'seconds')::double precision), d.started_at),
               response = nullif(d.body->'response', 'null'), usage = nullif(d.body->'usage', 'null'),
               agent = d.body->>'agent', session = nullif(d.body->'session', 'null'), heartbeat_data = d.beat
          from done d where a.run_id = d.run_id and a.node_id = d.node_id and a.iteration = d.iteration and a.attempt = d.attempt),
    started as (
        insert into smithers.events (run_id, seq, at, type, node_id, iteration, attempt, payload)
        select d.run_id, d.seq - 1, d.started_at, 'attempt-started', d.node_id, d.iteration, d.attempt, jsonb_build_object('owner', d.owner)
          from done d where not d.start_logged),
    finished as (
        insert into smithers.events (run_id, seq, at, type, node_id, iteration, attempt, payload)
        select d.run_id, d.seq, v_now, 'attempt-finished', d.node_id, d.iteration, d.attempt, '{"node": "finished"}' from done d)
    select jsonb_agg(jsonb_build_object('ord', d.ord, 'asked', d.asked, 'table', d.table_name, 'run_id', d.run_id, 'node_id', d.node_id,
               'iteration', d.iteration, 'seq', d.seq, 'attempt', d.attempt, 'claim_id', d.claim_id, 'output', d.body->'output'))
      into v_done from done d;
    perform smithers_p1.insert_outputs(coalesce(v_done, '[]'));
    for v_run in select distinct d->>'run_id' from jsonb_array_elements(v_done) d where (d->>'asked')::boolean loop
        perform smithers_p1.settle_request_locked(v_run);
    end loop;
    if p_notify then
        perform smithers_p1.notify_dirty(v_done);
    end if;
    return query select i.ord, d.ord is not null
                   from smithers_p1.unpack_items(p_items) i
                   left join (select (e->>'ord')::bigint as ord from jsonb_array_elements(v_done) e) d on d.ord = i.ord;
end $$;

-- One notification per run of the batch, or a bare one when they are many.
create or replace function smithers_p1.notify_dirty(p_rows jsonb) returns void
language plpgsql as $$
declare v_runs text[] := array(select distinct r->>'run_id' from jsonb_array_elements(p_rows) r limit 9);
begin
    if cardinality(v_runs) > 8 then
        perform pg_notify('smithers_dirty', '');
    else
        perform pg_notify('smithers_dirty', r) from unnest(v_runs) r;
    end if;
end $$;

-- Ends attempts without a result. items: token + {state, retry_in, due_at, error, response, usage, agent, session}
--   failed     node pending with a due time (retry_in seconds given) or failed
--   released   node pending (at once, or after retry_in seconds); no budget used
--   parked     node waiting-quota until due_at; no budget used
--   cancelled  node cancelled
--   abandoned  (supervisor only, and only when the lease has expired) node pending, or failed as POISONED
-- Locks as complete_attempts. Returns per item whether its token was current.
create or replace function smithers_p1.end_attempts(p_items jsonb, p_notify boolean default true, p_poison integer default null)
returns table (ord bigint, accepted boolean)
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    v_now timestamptz := smithers.now();
    v_done jsonb;
    v_run text;
begin
    perform smithers_p1.lock_runs(p_items);
    with item as materialized (
        select i.*, i.body->>'state' as state, (i.body->>'retry_in')::double precision as retry_in, nullif(i.body->'error', 'null') as error
          from smithers_p1.unpack_items(p_items) i order by i.run_id, i.node_id, i.iteration),
    gone as (
        delete from smithers.leases l using item i
         where l.run_id = i.run_id and l.node_id = i.node_id and l.iteration = i.iteration
           and l.attempt = i.attempt and l.claim_id = i.claim_id
           and (i.state <> 'abandoned' or l.lease_until < v_now)
        returning i.ord, i.body, i.state, i.retry_in, i.error, l.*),
    slot as (
        select g.*, sum(case when g.start_logged then 1 else 2 end) over (partition by g.run_id order by g.ord) as upto from gone g),
    bump as (
        update smithers.run_state s
           set next_event_seq = s.next_event_seq + t.n, wanted_seq = s.next_event_seq + t.n - 1,
               dirty_since = case when s.dirty then s.dirty_since else v_now end
          from (select run_id, max(upto) as n from slot group by run_id) t
         where s.run_id = t.run_id
        returning s.run_id, s.next_event_seq - t.n as first, s.cancel_requested_at is not null as cancelling,
                  s.pause_requested_at is not null or s.cancel_requested_at is not null as asked),
    done as (
        select s.*, b.first + s.upto - 1 as seq, b.asked,
               case when s.state = 'cancelled' then 'cancelled'
                    when s.state = 'failed' and s.retry_in is null then 'failed'
                    when s.state = 'abandoned' and n.abandoned + 1 >= p_poison then 'failed'
                    when s.state = 'parked' then 'waiting-quota'
                    else 'pending' end as node_state,
               case when s.state = 'abandoned' and n.abandoned + 1 >= p_poison then jsonb_build_object(
                        'code', 'POISONED', 'message', format('%s attempts ended without a word from their worker', n.abandoned + 1))
                    else s.error end as node_error,
               case when s.state = 'parked' then (s.body->>'due_at')::timestamptz
                    when s.retry_in is not null then v_now + make_interval(secs => s.retry_in) end as node_due
          from slot s join bump b on b.run_id = s.run_id
          join smithers.nodes n on n.run_id = s.run_id and n.node_id = s.node_id and n.iteration = s.iteration),
    node as (
        update smithers.nodes n
           set state = d.node_state, last_attempt = d.attempt, due_at = d.node_due,
               error = case when d.node_state in ('failed', 'waiting-quota') or d.state = 'failed' then d.node_error else n.error end,
               failures = n.failures + case when d.state = 'failed' then 1 else 0 end,
               abandoned = n.abandoned + case when d.state = 'abandoned' then 1 else 0 end
          from done d where n.run_id = d.run_id and n.node_id = d.node_id and n.iteration = d.iteration),
    attempt as (
        update smithers.attempts a
           set state = d.state, finished_at = v_now, seq = d.seq, error = d.node_error, started_at = d.started_at,
               response = nullif(d.body->'response', 'null'), usage = nullif(d.body->'usage', 'null'),
               agent = d.body->>'agent', session = nullif(d.body->'session', 'null'), heartbeat_data = d.beat
          from done d where a.run_id = d.run_id and a.node_id = d.node_id and a.iteration = d.iteration and a.attempt = d.attempt),
    started as (
        insert into smithers.events (run_id, seq, at, type, node_id, iteration, attempt, payload)
        select d.run_id, d.seq - 1, d.started_at, 'attempt-started', d.node_id, d.iteration, d.attempt, jsonb_build_object('owner', d.owner)
          from done d where not d.start_logged),
    ended as (
        insert into smithers.events (run_id, seq, at, type, node_id, iteration, attempt, payload)
        select d.run_id, d.seq, v_now, 'attempt-' || d.state, d.node_id, d.iteration, d.attempt,
               jsonb_strip_nulls(jsonb_build_object('node', d.node_state, 'due_at', d.node_due,
                   'error', case when d.node_error is not null
                                 then jsonb_build_object('code', d.node_error->'code', 'message', left(d.node_error->>'message', 500)) end))
          from done d)
    select jsonb_agg(jsonb_build_object('ord', d.ord, 'run_id', d.run_id, 'asked', d.asked)) into v_done from done d;
    for v_run in select distinct d->>'run_id' from jsonb_array_elements(v_done) d where (d->>'asked')::boolean loop
        perform smithers_p1.settle_request_locked(v_run);
    end loop;
    if p_notify then
        perform smithers_p1.notify_dirty(v_done);
    end if;
    return query select i.ord, d.ord is not null
                   from smithers_p1.unpack_items(p_items) i
                   left join (select (e->>'ord')::bigint as ord from jsonb_array_elements(v_done) e) d on d.ord = i.ord;
end $$;

-- After an outcome unknown: per token 'mine' (the lease is current), 'done' (accepted by this token), 'lost'.
create or replace function smithers_p1.attempt_outcomes(p_items jsonb)
returns table (ord bigint, outcome text)
language sql stable as $$
    select i.ord,
           case when exists (select from smithers.leases l
                              where l.run_id = i.run_id and l.node_id = i.node_id and l.iteration = i.iteration
                                and l.attempt = i.attempt and l.claim_id = i.claim_id) then 'mine'
                when exists (select from smithers.attempts a
                              where a.run_id = i.run_id and a.node_id = i.node_id and a.iteration = i.iteration
                                and a.attempt = i.attempt and a.claim_id = i.claim_id
                                and a.state not in ('in-progress', 'abandoned')) then 'done'
                else 'lost' end
      from smithers_p1.unpack_items(p_items) i $$;

-- Claims whose reply never arrived: everything that this claim id holds, as claim_tasks returned it.
create or replace function smithers_p1.claimed_by(p_owner bigint, p_claim uuid)
returns table (run_id text, node_id text, iteration integer, attempt integer, claim_id uuid, queue text,
               source_hash text, failures integer, waited_ms double precision, descriptor jsonb, needs jsonb)
language sql stable as $$
    select l.run_id, l.node_id, l.iteration, l.attempt, l.claim_id, l.queue, r.source_hash, n.failures, 0, d.body,
           (select jsonb_object_agg(need->>'param',
                       smithers_p1.read_output(l.run_id, need->>'node_id', (need->>'iteration')::integer))
              from jsonb_array_elements(d.body->'needs') need)
      from smithers.leases l
      join smithers.runs r on r.run_id = l.run_id
      join smithers.nodes n on n.run_id = l.run_id and n.node_id = l.node_id and n.iteration = l.iteration
      join smithers.descriptors d on d.run_id = l.run_id and d.hash = n.descriptor_hash
     where l.owner = p_owner and l.claim_id = p_claim $$;
