-- What people and programs do to runs. Every call carries a client-made request_id where a repeat must
-- return the first result. A fact and the wake of its run are one transaction; pause and cancel take the
-- unclaimed work away first, under the run lock, so nothing of the run is claimed after they commit.

-- Creates a run, or returns the one that this request_id made before. p = {run_id, workflow, path, source_hash,
-- pinned, input, config, vcs_type, vcs_root, vcs_revision, request_id, tags, priority}.
create or replace function smithers_p1.create_run(p jsonb) returns jsonb
language plpgsql as $$
declare
    v_now timestamptz := smithers.now();
    v_existing text;
begin
    insert into smithers.runs (run_id, workflow, path, source_hash, pinned, input, config, vcs_type, vcs_root, vcs_revision, request_id, tags, created_at)
    values (p->>'run_id', p->>'workflow', p->>'path', p->>'source_hash', coalesce((p->>'pinned')::boolean, true), p->'input',
            coalesce(p->'config', '{}'), p->>'vcs_type', p->>'vcs_root', p->>'vcs_revision', p->>'request_id', coalesce(p->'tags', '{}'), v_now)
    on conflict do nothing;
    if not found then
        select run_id into v_existing from smithers.runs where request_id = p->>'request_id';
        if found then
            return jsonb_build_object('run_id', v_existing, 'created', false);
        end if;
        perform smithers_p1.refuse('RUN_EXISTS', format('a run with the id %s exists already', p->>'run_id'),
            'continue it with --resume, or choose another --run-id');
    end if;
    insert into smithers.run_state (run_id, status, priority, wanted_seq, next_event_seq, dirty_since, progressed_at)
    values (p->>'run_id', 'running', coalesce((p->>'priority')::integer, 0), 1, 2, v_now, v_now);
    insert into smithers.events (run_id, seq, at, type, payload)
    values (p->>'run_id', 1, v_now, 'run-created', jsonb_build_object('status', 'running', 'workflow', p->>'workflow', 'source_hash', p->>'source_hash'));
    perform pg_notify('smithers_dirty', p->>'run_id');
    return jsonb_build_object('run_id', p->>'run_id', 'created', true);
end $$;

create or replace function smithers_p1.refuse_ended(p_run smithers.run_state) returns void
language plpgsql as $$
begin
    if smithers_p1.is_ended(p_run.status) then
        perform smithers_p1.refuse('RUN_ALREADY_ENDED', format('run %s is %s already', p_run.run_id, p_run.status),
            format('smithers status %s shows how it ended', p_run.run_id), jsonb_build_object('status', p_run.status));
    end if;
end $$;

-- Decides the open approval of a node (of the only one open when node_id is null). A second decision is refused;
-- the same request_id again returns the first result. p = {run_id, node_id, iteration, decision, by, note, request_id}
create or replace function smithers_p1.decide_approval(p jsonb) returns jsonb
language plpgsql as $$
declare
    v_run smithers.run_state;
    v_open smithers.approvals;
    v_count integer;
    v_names text;
    v_seq bigint;
begin
    v_run := smithers_p1.lock_run(p->>'run_id');
    select * into v_open from smithers.approvals a
     where a.run_id = v_run.run_id and a.request_id = p->>'request_id';
    if found then
        return jsonb_build_object('run_id', v_run.run_id, 'node_id', v_open.node_id, 'iteration', v_open.iteration,
            'decision', v_open.decision, 'decided_by', v_open.decided_by, 'seq', v_open.decided_seq, 'repeated', true, 'status', v_run.status);
    end if;
    perform smithers_p1.refuse_ended(v_run);
    select count(*), string_agg(format('%s (iteration %s)', a.node_id, a.iteration), ', ' order by a.seq) into v_count, v_names
      from smithers.approvals a
     where a.run_id = v_run.run_id and not a.superseded and a.decided_seq is null and a.expired_seq is null
       and (p->>'node_id' is null or (a.node_id = p->>'node_id' and (p->>'iteration' is null or a.iteration = (p->>'iteration')::integer)));
    if v_count > 1 then
        perform smithers_p1.refuse('APPROVAL_AMBIGUOUS', format('%s approvals are open: %s', v_count, v_names), 'name one with --node and --iteration');
    elsif v_count = 0 then
        select * into v_open from smithers.approvals a
         where a.run_id = v_run.run_id and a.decided_seq is not null
           and (p->>'node_id' is null or a.node_id = p->>'node_id')
           and (p->>'iteration' is null or a.iteration = (p->>'iteration')::integer)
         order by a.seq desc limit 1;
        if found then
            perform smithers_p1.refuse('APPROVAL_ALREADY_DECIDED',
                format('approval %s (iteration %s) was %s already by %s', v_open.node_id, v_open.iteration, v_open.decision, coalesce(v_open.decided_by, 'somebody')),
                'the first decision stands');
        end if;
        perform smithers_p1.refuse('APPROVAL_UNKNOWN',
            case when p->>'node_id' is null then format('run %s has no open approval', v_run.run_id)
                 else format('run %s has no open approval at node %s', v_run.run_id, p->>'node_id') end,
            format('smithers why %s shows what the run waits for', v_run.run_id));
    end if;
    v_seq := v_run.next_event_seq;
    update smithers.approvals a
       set decision = p->>'decision', decided_by = p->>'by', note = p->>'note', decided_at = smithers.now(),
           decided_seq = v_seq, request_id = p->>'request_id'
     where a.run_id = v_run.run_id and not a.superseded and a.decided_seq is null and a.expired_seq is null
       and (p->>'node_id' is null or (a.node_id = p->>'node_id' and (p->>'iteration' is null or a.iteration = (p->>'iteration')::integer)))
    returning a.* into v_open;
    perform smithers_p1.append_events(v_run.run_id, jsonb_build_array(jsonb_build_object('type', 'approval-decided',
        'node_id', v_open.node_id, 'iteration', v_open.iteration,
        'payload', jsonb_build_object('decision', v_open.decision, 'by', v_open.decided_by, 'note', v_open.note))), true);
    perform pg_notify('smithers_dirty', v_run.run_id);
    return jsonb_build_object('run_id', v_run.run_id, 'node_id', v_open.node_id, 'iteration', v_open.iteration,
        'decision', v_open.decision, 'decided_by', v_open.decided_by, 'seq', v_seq, 'repeated', false,
        'status', (select s.status from smithers.run_state s where s.run_id = v_run.run_id));
end $$;

-- Answers an open human request. p = {run_id, node_id, iteration, response, by, request_id}
create or replace function smithers_p1.answer_human(p jsonb) returns jsonb
language plpgsql as $$
declare
    v_run smithers.run_state;
    v_open smithers.human_requests;
    v_count integer;
    v_seq bigint;
begin
    v_run := smithers_p1.lock_run(p->>'run_id');
    select * into v_open from smithers.human_requests h
     where h.run_id = v_run.run_id and h.request_id = p->>'request_id';
    if found then
        return jsonb_build_object('run_id', v_run.run_id, 'node_id', v_open.node_id, 'iteration', v_open.iteration,
            'seq', v_open.decided_seq, 'repeated', true, 'status', v_run.status);
    end if;
    perform smithers_p1.refuse_ended(v_run);
    select count(*) into v_count from smithers.human_requests h
     where h.run_id = v_run.run_id and not h.superseded and h.decided_seq is null and h.expired_seq is null
       and (p->>'node_id' is null or (h.node_id = p->>'node_id' and (p->>'iteration' is null or h.iteration = (p->>'iteration')::integer)));
    if v_count <> 1 then
        perform smithers_p1.refuse(case when v_count = 0 then 'HUMAN_REQUEST_UNKNOWN' else 'HUMAN_REQUEST_AMBIGUOUS' end,
            case when v_count = 0 then format('run %s has no such open request for a person', v_run.run_id)
                 else format('%s requests are open', v_count) end,
            format('smithers human list %s shows the open ones', v_run.run_id));
    end if;
    v_seq := v_run.next_event_seq;
    update smithers.human_requests h
       set response = p->'response', answered_by = p->>'by', answered_at = smithers.now(), decided_seq = v_seq, request_id = p->>'request_id'
     where h.run_id = v_run.run_id and not h.superseded and h.decided_seq is null and h.expired_seq is null
       and (p->>'node_id' is null or (h.node_id = p->>'node_id' and (p->>'iteration' is null or h.iteration = (p->>'iteration')::integer)))
    returning h.* into v_open;
    perform smithers_p1.append_events(v_run.run_id, jsonb_build_array(jsonb_build_object('type', 'human-answered',
        'node_id', v_open.node_id, 'iteration', v_open.iteration, 'payload', jsonb_build_object('by', v_open.answered_by))), true);
    perform pg_notify('smithers_dirty', v_run.run_id);
    return jsonb_build_object('run_id', v_run.run_id, 'node_id', v_open.node_id, 'iteration', v_open.iteration,
        'seq', v_seq, 'repeated', false, 'status', (select s.status from smithers.run_state s where s.run_id = v_run.run_id));
end $$;

-- Puts a signal into the inbox of a run; the first wait of its name consumes it. p = {run_id, name, payload, request_id}
create or replace function smithers_p1.send_signal(p jsonb) returns jsonb
language plpgsql as $$
declare
    v_run smithers.run_state;
    v_seq bigint;
begin
    v_run := smithers_p1.lock_run(p->>'run_id');
    select seq into v_seq from smithers.signals where run_id = v_run.run_id and request_id = p->>'request_id';
    if found then
        return jsonb_build_object('run_id', v_run.run_id, 'name', p->>'name', 'seq', v_seq, 'repeated', true, 'status', v_run.status);
    end if;
    perform smithers_p1.refuse_ended(v_run);
    if (select count(*) from (select from smithers.signals where run_id = v_run.run_id limit 100000) s) >= 100000 then
        perform smithers_p1.refuse('TOO_MANY_SIGNALS', format('run %s has taken 100,000 signals', v_run.run_id));
    end if;
    v_seq := v_run.next_event_seq;
    insert into smithers.signals (run_id, seq, name, payload, request_id, sent_at)
    values (v_run.run_id, v_seq, p->>'name', p->'payload', p->>'request_id', smithers.now());
    perform smithers_p1.append_events(v_run.run_id, jsonb_build_array(jsonb_build_object('type', 'signal-received',
        'payload', jsonb_build_object('name', p->>'name'))), true);
    perform pg_notify('smithers_dirty', v_run.run_id);
    return jsonb_build_object('run_id', v_run.run_id, 'name', p->>'name', 'seq', v_seq, 'repeated', false,
        'status', (select s.status from smithers.run_state s where s.run_id = v_run.run_id));
end $$;

-- Asks a run to pause or cancel. No claim of the run commits afterwards; with nothing in flight it is done at
-- once, else when the last attempt has ended. Pausing a paused run is fine; an ended run is refused.
create or replace function smithers_p1.request_stop(p_run text, p_kind text) returns jsonb
language plpgsql as $$
declare
    v_run smithers.run_state;
    v_moved jsonb;
begin
    v_run := smithers_p1.lock_run(p_run);
    perform smithers_p1.refuse_ended(v_run);
    v_moved := smithers_p1.unready_locked(p_run);
    update smithers.run_state
       set pause_requested_at = case when p_kind = 'pause' then coalesce(pause_requested_at, smithers.now()) else pause_requested_at end,
           cancel_requested_at = case when p_kind = 'cancel' then coalesce(cancel_requested_at, smithers.now()) else cancel_requested_at end,
           status = case when p_kind = 'cancel' and status = 'paused' then 'running' else status end
     where run_id = p_run;
    perform smithers_p1.append_events(p_run, jsonb_build_array(jsonb_build_object('type', 'run-' || p_kind || '-requested',
        'payload', jsonb_build_object('nodes', v_moved))), v_run.status <> 'paused' or p_kind = 'cancel');
    perform smithers_p1.settle_request_locked(p_run);
    perform pg_notify('smithers_dirty', p_run);
    return (select jsonb_build_object('run_id', s.run_id, 'status', s.status,
                       'in_flight', (select count(*) from smithers.leases l where l.run_id = s.run_id))
              from smithers.run_state s where s.run_id = p_run);
end $$;

create or replace function smithers_p1.pause_run(p_run text) returns jsonb
language sql as $$ select smithers_p1.request_stop(p_run, 'pause') $$;

create or replace function smithers_p1.cancel_run(p_run text) returns jsonb
language sql as $$ select smithers_p1.request_stop(p_run, 'cancel') $$;

-- Makes a parked or ended run runnable again: failed and cancelled nodes go back to pending with a fresh budget,
-- their undecided or denied requests are asked anew, finished ones stay. Runs that are `running` only get dirty.
-- Answers whose it is when a living process owns it.
create or replace function smithers_p1.resume_run(p_run text) returns jsonb
language plpgsql as $$
declare
    v_run smithers.run_state;
    v_nodes jsonb;
    v_owner text;
begin
    v_run := smithers_p1.lock_run(p_run);
    if v_run.status = 'continued' then
        perform smithers_p1.refuse_ended(v_run);
    end if;
    select format('%s:%s:%s', p.kind, p.host, p.pid) into v_owner from smithers.processes p
     where p.id = v_run.owner and p.stopped_at is null and p.lease_until >= smithers.now();
    with reset as (
        update smithers.nodes n set state = 'pending', failures = 0, abandoned = 0, due_at = null, error = null, detail = null
         where n.run_id = p_run and n.state in ('failed', 'cancelled')
        returning n.node_id, n.iteration)
    select coalesce(jsonb_agg(jsonb_build_array(r.node_id, r.iteration, 'pending')), '[]') into v_nodes from reset r;
    perform smithers_p1.supersede_waits(p_run, v_nodes);
    update smithers.run_state
       set status = case when smithers_p1.is_ended(status) or status = 'paused' then 'running' else status end,
           pause_requested_at = null, cancel_requested_at = null, error = null, ended_at = null, resumes = 0
     where run_id = p_run;
    perform smithers_p1.append_events(p_run, jsonb_build_array(jsonb_build_object('type', 'run-resumed',
        'payload', jsonb_build_object('from', v_run.status, 'nodes', v_nodes))), true);
    update smithers.run_state set status = 'running' where run_id = p_run and status <> 'running';
    perform pg_notify('smithers_dirty', p_run);
    return jsonb_build_object('run_id', p_run, 'from', v_run.status, 'status', 'running', 'owner', v_owner);
end $$;

-- Makes a run go on with another stored code version; what stood in the queue is planned anew. The caller has compared
-- what must not differ (path, root). Refused while a living process advances the run.
create or replace function smithers_p1.accept_source(p_run text, p_hash text) returns jsonb
language plpgsql as $$
declare
    v_run smithers.run_state;
    v_before text;
    v_nodes jsonb;
begin
    v_run := smithers_p1.lock_run(p_run);
    select r.source_hash into v_before from smithers.runs r where r.run_id = p_run;
    if v_before <> p_hash then
        if smithers_p1.is_live(v_run.owner) then
            perform smithers_p1.refuse('RUN_OWNED', format('run %s is being advanced right now', p_run),
                format('smithers pause %s, then try again', p_run));
        end if;
        v_nodes := smithers_p1.unready_locked(p_run);
        update smithers.runs set source_hash = p_hash where run_id = p_run;
        perform smithers_p1.append_events(p_run, jsonb_build_array(jsonb_build_object('type', 'run-source-accepted',
            'payload', jsonb_build_object('from', v_before, 'to', p_hash, 'nodes', v_nodes))));
    end if;
    return jsonb_build_object('run_id', p_run, 'from', v_before, 'to', p_hash);
end $$;

-- The requests of nodes that were taken back are answered "stale" from now on.
create or replace function smithers_p1.supersede_waits(p_run text, p_nodes jsonb) returns void
language plpgsql as $$
begin
    update smithers.approvals a set superseded = true
      from jsonb_array_elements(p_nodes) n
     where a.run_id = p_run and a.node_id = n->>0 and a.iteration = (n->>1)::integer and not a.superseded;
    update smithers.human_requests h set superseded = true
      from jsonb_array_elements(p_nodes) n
     where h.run_id = p_run and h.node_id = n->>0 and h.iteration = (n->>1)::integer and not h.superseded;
    update smithers.timers t set superseded = true
      from jsonb_array_elements(p_nodes) n
     where t.run_id = p_run and t.node_id = n->>0 and t.iteration = (n->>1)::integer and not t.superseded;
end $$;

-- Stores a bundle once; returns true when it was new.
create or replace function smithers_p1.put_source(p_hash text, p_manifest jsonb, p_body bytea) returns boolean
language plpgsql as $$
begin
    insert into smithers.sources (source_hash, manifest, body, created_at) values (p_hash, p_manifest, p_body, smithers.now())
    on conflict do nothing;
    return found;
end $$;

create or replace function smithers_p1.get_source(p_hash text) returns table (manifest jsonb, body bytea)
language sql stable as $$ select s.manifest, s.body from smithers.sources s where s.source_hash = p_hash $$;

-- The keys and tokens of every output row, of one run or of all, whatever its table: what `verify` compares.
create or replace function smithers_p1.output_rows(p_run text default null)
returns table (output_table text, run_id text, node_id text, iteration integer, seq bigint, attempt integer, claim_id uuid)
language plpgsql stable as $$
declare v_table text;
begin
    for v_table in select distinct t.table_name from smithers.output_tables t order by 1 loop
        return query execute format(
            'select %L::text, o.run_id, o.node_id, o.iteration, o.seq, o.attempt, o.claim_id
               from smithers.%I o where $1 is null or o.run_id = $1', v_table, v_table) using p_run;
    end loop;
end $$;
