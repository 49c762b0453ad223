-- What a scheduler does: take dirty runs, load them in one snapshot, commit one frame. The run token is
-- (owner, epoch, claim_id); a stale one raises SM001 and nothing is written.

-- Dirty runs for p_owner: those it owns already and those whose owner is none or dead (taken with epoch + 1).
-- A run taken over p_resume_limit times without progress is failed here and not returned.
-- Locks: run_state (skip locked).
create or replace function smithers_p1.take_runs(p_owner bigint, p_claim uuid, p_limit integer, p_resume_limit integer)
returns table (run_id text, epoch bigint, claim_id uuid, source_hash text, status text, stopping boolean)
language plpgsql as $$
#variable_conflict use_column
declare
    v_now timestamptz := smithers.now();
    v_run smithers.run_state;
    v_resumes integer;
begin
    for v_run in
        select s.* from smithers.run_state s
         where s.dirty and s.status not in ('paused', 'finished', 'failed', 'cancelled', 'continued')
           and (s.owner is null or s.owner = p_owner or not smithers_p1.is_live(s.owner))
         order by s.priority desc, s.dirty_since limit p_limit for no key update skip locked
    loop
        if v_run.owner is distinct from p_owner then
            v_resumes := case when v_run.owner is not null and v_run.progressed_at <= v_run.claimed_at then v_run.resumes + 1 else v_run.resumes end;
            if v_resumes >= p_resume_limit then
                perform smithers_p1.end_run_locked(v_run.run_id, jsonb_build_object('code', 'RESUME_LIMIT',
                    'message', format('%s schedulers in a row died while they advanced this run', v_resumes)));
                continue;
            end if;
            update smithers.run_state s
               set owner = p_owner, epoch = s.epoch + 1, claim_id = p_claim, claimed_at = v_now, resumes = v_resumes
             where s.run_id = v_run.run_id
            returning s.* into v_run;
        end if;
        return query select v_run.run_id, v_run.epoch, v_run.claim_id, r.source_hash, v_run.status,
                            v_run.pause_requested_at is not null or v_run.cancel_requested_at is not null
                       from smithers.runs r where r.run_id = v_run.run_id;
    end loop;
end $$;

-- Everything that a render reads, as one document from one snapshot.
create or replace function smithers_p1.load_run(p_run text) returns jsonb
language plpgsql stable set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    v_outputs jsonb := '[]';
    v_part jsonb;
    v_table text;
begin
    for v_table in select distinct n.output_table from smithers.nodes n where n.run_id = p_run and n.output_table is not null loop
        execute format('select jsonb_agg(jsonb_build_array(t.node_id, t.iteration, t.output)) from smithers.%I($1) t', 'select_' || v_table)
           into v_part using p_run;
        v_outputs := v_outputs || coalesce(v_part, '[]');
    end loop;
    return jsonb_build_object(
        'now', smithers.now(),
        'run', (select to_jsonb(s) || jsonb_build_object('workflow', r.workflow, 'source_hash', r.source_hash, 'input', r.input, 'config', r.config)
                  from smithers.run_state s join smithers.runs r using (run_id) where s.run_id = p_run),
        'nodes', (select coalesce(jsonb_agg(jsonb_build_array(n.node_id, n.iteration, n.state, n.kind, n.last_attempt, n.failures, n.abandoned,
                             n.due_at, encode(n.descriptor_hash, 'hex'), l.run_id is not null, n.error, n.detail)), '[]')
                    from smithers.nodes n left join smithers.leases l using (run_id, node_id, iteration) where n.run_id = p_run),
        'outputs', v_outputs,
        'approvals', (select coalesce(jsonb_agg(jsonb_build_object('node_id', a.node_id, 'iteration', a.iteration, 'decision', a.decision,
                                 'note', a.note, 'decided_by', a.decided_by, 'due_at', a.due_at, 'expired', a.expired_seq is not null)), '[]')
                        from smithers.approvals a where a.run_id = p_run and not a.superseded),
        'human', (select coalesce(jsonb_agg(jsonb_build_object('node_id', h.node_id, 'iteration', h.iteration, 'response', h.response, 'due_at', h.due_at,
                             'status', case when h.decided_seq is not null then 'answered' when h.expired_seq is not null then 'expired' else 'pending' end)), '[]')
                    from smithers.human_requests h where h.run_id = p_run and not h.superseded),
        'events', (select coalesce(jsonb_agg(jsonb_build_object('node_id', s.consumed_node_id, 'iteration', s.consumed_iteration, 'payload', s.payload)), '[]')
                     from smithers.signals s where s.run_id = p_run and s.consumed_seq is not null),
        'signals', (select coalesce(jsonb_agg(jsonb_build_object('seq', s.seq, 'name', s.name, 'payload', s.payload) order by s.seq), '[]')
                      from smithers.signals s where s.run_id = p_run and s.consumed_seq is null),
        'timers', (select coalesce(jsonb_agg(jsonb_build_object('node_id', t.node_id, 'iteration', t.iteration, 'due_at', t.due_at, 'fired', t.fired_seq is not null)), '[]')
                     from smithers.timers t where t.run_id = p_run and not t.superseded));
end $$;

-- The last full frame body and the deltas since, for a scheduler that takes a run over.
create or replace function smithers_p1.load_frames(p_run text)
returns table (frame_no integer, base_frame_no integer, body jsonb)
language sql stable as $$
    select f.frame_no, f.base_frame_no, f.body from smithers.frames f
     where f.run_id = p_run and f.body is not null
       and f.frame_no >= coalesce((select max(g.frame_no) from smithers.frames g
                                    where g.run_id = p_run and g.body is not null and g.base_frame_no is null), 0)
     order by f.frame_no $$;

create or replace function smithers_p1.check_run_token(p_run smithers.run_state, p jsonb) returns void
language plpgsql as $$
begin
    if p_run.owner is distinct from (p->>'owner')::bigint or p_run.epoch <> (p->>'epoch')::bigint
       or p_run.claim_id is distinct from (p->>'claim_id')::uuid then
        raise exception using errcode = 'SM001', message = format('run %s is advanced by another process now', p_run.run_id);
    end if;
end $$;

create or replace function smithers_p1.unpack_nodes(p jsonb)
returns table (ord bigint, node_id text, iteration integer, body jsonb)
language sql immutable strict rows 1
as $$ select e.ord, e.body->>'node_id', (e.body->>'iteration')::integer, e.body
        from jsonb_array_elements(p) with ordinality as e(body, ord) $$;

-- New rows are pending; known ones get the new descriptor unless they are done. Returns [[node_id, iteration, kind]] of the new ones.
create or replace function smithers_p1.mount_nodes(p_run text, p_frame integer, p_nodes jsonb) returns jsonb
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare v_mounted jsonb;
begin
    with item as materialized (select * from smithers_p1.unpack_nodes(p_nodes) i order by i.node_id, i.iteration),
    mounted as (
        insert into smithers.nodes as n (run_id, node_id, iteration, state, kind, frame_no, upstream, descriptor_hash)
        select p_run, i.node_id, i.iteration, 'pending', i.body->>'kind', p_frame, nullif(i.body->'upstream', 'null'), decode(i.body->>'descriptor_hash', 'hex')
          from item i
        on conflict (run_id, node_id, iteration) do update
           set kind = excluded.kind, upstream = excluded.upstream, descriptor_hash = excluded.descriptor_hash
         where n.state in ('pending', 'cancelled', 'failed')
            or n.state like 'waiting-%'
        returning n.node_id, n.iteration, n.kind, n.frame_no = p_frame and n.state = 'pending' as fresh)
    select jsonb_agg(jsonb_build_array(m.node_id, m.iteration, m.kind)) filter (where m.fresh) into v_mounted from mounted m;
    return coalesce(v_mounted, '[]');
end $$;

-- Compare-and-set moves of nodes from the state that was rendered; a mismatch skips that node (a fact came between).
-- A ready task that was claimed meanwhile is not moved. Returns the moves that were applied.
create or replace function smithers_p1.move_nodes(p_run text, p_moves jsonb) returns jsonb
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare v_moved jsonb;
begin
    delete from smithers.ready_tasks r
     using smithers_p1.unpack_nodes(p_moves) i
     where i.body->>'from' = 'ready' and r.run_id = p_run and r.node_id = i.node_id and r.iteration = i.iteration;
    with item as materialized (
        select i.*, i.body->>'from' as was, i.body->>'to' as now_is from smithers_p1.unpack_nodes(p_moves) i order by i.node_id, i.iteration),
    moved as (
        update smithers.nodes n
           set state = i.now_is, error = nullif(i.body->'error', 'null'), detail = coalesce(nullif(i.body->'detail', 'null'), n.detail),
               due_at = coalesce((i.body->>'due_at')::timestamptz,
                                 smithers.now() + make_interval(secs => (i.body->>'due_in')::double precision))
          from item i
         where n.run_id = p_run and n.node_id = i.node_id and n.iteration = i.iteration and n.state = i.was
           and (i.was <> 'ready' or not exists (
                    select from smithers.leases l where l.run_id = p_run and l.node_id = i.node_id and l.iteration = i.iteration))
        returning i.ord, i.body)
    select jsonb_agg(m.body order by m.ord) into v_moved from moved m;
    return coalesce(v_moved, '[]');
end $$;

-- Pending nodes that may run now go to ready and into the queue. Their rank interleaves the runs of a queue:
-- a run starts where the queue is, so ten thousand tasks of another run do not stand before its first.
create or replace function smithers_p1.ready_nodes(p_run text, p_ready jsonb) returns jsonb
language plpgsql set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    v_now timestamptz := smithers.now();
    v_ready jsonb;
    v_head bigint;
    v_tail bigint;
    v_rank bigint;
begin
    select s.last_rank into v_rank from smithers.run_state s where s.run_id = p_run;
    select r.rank into v_head from smithers.ready_tasks r
     where r.queue = p_ready->0->>'queue' and not r.alone order by r.priority desc, r.rank, r.id limit 1;
    v_rank := case when v_head is null then 0 else greatest(v_head - 1, v_rank) end;
    with item as materialized (
        select i.*, row_number() over (order by i.ord) as place from smithers_p1.unpack_nodes(p_ready) i order by i.node_id, i.iteration),
    moved as (
        update smithers.nodes n set state = 'ready', due_at = null from item i
         where n.run_id = p_run and n.node_id = i.node_id and n.iteration = i.iteration and n.state = 'pending'
        returning i.ord, i.place, i.body, n.node_id, n.iteration, n.last_attempt + 1 as attempt, n.abandoned, n.descriptor_hash),
    queued as (
        insert into smithers.ready_tasks (run_id, node_id, iteration, attempt, queue, priority, rank, ready_at, alone, descriptor_hash)
        select p_run, m.node_id, m.iteration, m.attempt, m.body->>'queue', (m.body->>'priority')::integer, v_rank + m.place, v_now,
               m.abandoned > 0, m.descriptor_hash from moved m order by m.place
        returning rank)
    select jsonb_agg(jsonb_build_array(m.node_id, m.iteration, m.attempt) order by m.place), (select max(q.rank) from queued q)
      into v_ready, v_tail from moved m;
    if v_tail is not null then
        update smithers.run_state set last_rank = v_tail where run_id = p_run;
    end if;
    return coalesce(v_ready, '[]');
end $$;

-- Static tasks finish in the frame: attempt (origin static), output and node under the run's claim id.
create or replace function smithers_p1.finish_statics(p_run text, p_claim uuid, p_first_seq bigint, p_statics jsonb) returns jsonb
language plpgsql as $$
declare
    v_now timestamptz := smithers.now();
    v_done jsonb;
begin
    with item as materialized (
        select i.*, t.table_name from smithers_p1.unpack_nodes(p_statics) i
          join smithers.output_tables t on t.name = i.body->>'name' and t.shape = i.body->>'shape'),
    node as (
        update smithers.nodes n
           set state = 'finished', last_attempt = n.last_attempt + 1, claim_id = p_claim, output_table = i.table_name, due_at = null
          from item i
         where n.run_id = p_run and n.node_id = i.node_id and n.iteration = i.iteration and n.state = 'pending'
        returning i.ord, n.node_id, n.iteration, n.last_attempt as attempt, i.table_name, i.body->'output' as output),
    numbered as (select n.*, p_first_seq + row_number() over (order by n.ord) - 1 as seq from node n),
    attempt as (
        insert into smithers.attempts (run_id, node_id, iteration, attempt, state, origin, claim_id, claimed_at, started_at, finished_at, seq)
        select p_run, n.node_id, n.iteration, n.attempt, 'finished', 'static', p_claim, v_now, v_now, v_now, n.seq from numbered n)
    select jsonb_agg(jsonb_build_object('table', n.table_name, 'run_id', p_run, 'node_id', n.node_id, 'iteration', n.iteration,
               'seq', n.seq, 'attempt', n.attempt, 'claim_id', p_claim, 'output', n.output) order by n.seq) into v_done from numbered n;
    perform smithers_p1.insert_outputs(coalesce(v_done, '[]'));
    return coalesce(v_done, '[]');
end $$;

-- Opens the requests and timers of waits that this frame mounted, and consumes signals. p_seq is the frame's event number.
create or replace function smithers_p1.open_waits(p_run text, p jsonb, p_seq bigint) returns void
language plpgsql as $$
declare v_now timestamptz := smithers.now();
begin
    insert into smithers.approvals (run_id, node_id, iteration, seq, title, summary, digest, opened_at, due_at)
    select p_run, i.node_id, i.iteration, p_seq, i.body->>'title', i.body->>'summary', i.body->>'digest', v_now,
           v_now + make_interval(secs => (i.body->>'timeout')::double precision)
      from smithers_p1.unpack_nodes(p->'approvals') i
     where exists (select from smithers.nodes n where n.run_id = p_run and n.node_id = i.node_id and n.iteration = i.iteration and n.state = 'waiting-approval')
       and not exists (select from smithers.approvals a
                        where a.run_id = p_run and a.node_id = i.node_id and a.iteration = i.iteration and not a.superseded);
    insert into smithers.human_requests (run_id, node_id, iteration, seq, prompt, schema, opened_at, due_at)
    select p_run, i.node_id, i.iteration, p_seq, i.body->>'prompt', nullif(i.body->'schema', 'null'), v_now,
           v_now + make_interval(secs => (i.body->>'timeout')::double precision)
      from smithers_p1.unpack_nodes(p->'human') i
     where exists (select from smithers.nodes n where n.run_id = p_run and n.node_id = i.node_id and n.iteration = i.iteration and n.state = 'waiting-approval')
       and not exists (select from smithers.human_requests h
                        where h.run_id = p_run and h.node_id = i.node_id and h.iteration = i.iteration and not h.superseded);
    insert into smithers.timers (run_id, node_id, iteration, seq, opened_at, due_at)
    select p_run, i.node_id, i.iteration, p_seq, v_now,
           coalesce((i.body->>'until')::timestamptz, v_now + make_interval(secs => (i.body->>'seconds')::double precision))
      from smithers_p1.unpack_nodes(p->'timers') i
     where exists (select from smithers.nodes n where n.run_id = p_run and n.node_id = i.node_id and n.iteration = i.iteration and n.state like 'waiting-%')
       and not exists (select from smithers.timers t
                        where t.run_id = p_run and t.node_id = i.node_id and t.iteration = i.iteration and not t.superseded);
    update smithers.signals s
       set consumed_seq = p_seq, consumed_node_id = i.node_id, consumed_iteration = i.iteration
      from smithers_p1.unpack_nodes(p->'consume') i
     where s.run_id = p_run and s.seq = (i.body->>'signal_seq')::bigint and s.consumed_seq is null
       and exists (select from smithers.nodes n where n.run_id = p_run and n.node_id = i.node_id and n.iteration = i.iteration and n.state = 'finished');
end $$;

-- One frame: descriptors, mounted nodes, moves, statics, waits, ready tasks, status, events. p = the document of the
-- renderer plus the run token {owner, epoch, claim_id}. Decisions that end or park the run apply only if no fact came
-- after the load (wanted_seq); otherwise the frame commits without them and the run stays dirty. Under a pause or
-- cancel request nothing is made ready. Fused: p.completions are attempts of this run that were part of what was
-- rendered (complete_attempts; one that is not accepted raises SM001 and nothing is written), p.claim = {owner, claim_id,
-- queues, limit, free, lease} claims in the same commit (claim_tasks).
-- Locks: the run → ready_tasks → nodes → leases → attempts → outputs → events. Raises SM001.
create or replace function smithers_p1.commit_frame(p jsonb, p_notify boolean default true) returns jsonb
language plpgsql as $$
declare
    v_now timestamptz := smithers.now();
    v_run smithers.run_state;
    v_id text := p->>'run_id';
    v_current boolean;
    v_stopping boolean;
    v_frame integer;
    v_seq bigint;
    v_mounted jsonb := '[]';
    v_moved jsonb := '[]';
    v_statics jsonb := '[]';
    v_ready jsonb := '[]';
    v_events jsonb := '[]';
    v_status text;
    v_ends boolean;
    v_wanted bigint := (p->>'wanted_seq')::bigint;
    v_claimed jsonb;
begin
    v_run := smithers_p1.lock_run(v_id);
    perform smithers_p1.check_run_token(v_run, p);
    v_current := v_run.wanted_seq = v_wanted;
    if p ? 'completions' and p->'completions' <> '[]' then
        if exists (select from smithers_p1.complete_attempts(p->'completions', false) c where not c.accepted) then
            raise exception using errcode = 'SM001', message = format('an attempt of run %s was taken back before its frame', v_id);
        end if;
        select * into v_run from smithers.run_state where run_id = v_id;
        if v_current then
            v_wanted := v_run.wanted_seq;
        end if;
    end if;
    v_stopping := v_run.pause_requested_at is not null or v_run.cancel_requested_at is not null;
    v_frame := v_run.frame_no + 1;
    v_seq := v_run.next_event_seq;    -- the number of this frame's own event, the first of those below

    if p->'descriptors' <> '[]' then
        insert into smithers.descriptors (run_id, hash, body)
        select v_id, decode(d->>'hash', 'hex'), d->'body' from jsonb_array_elements(p->'descriptors') d on conflict do nothing;
    end if;
    if p->'mount' <> '[]' then
        v_mounted := smithers_p1.mount_nodes(v_id, v_frame, p->'mount');
    end if;
    if p->'moves' <> '[]' then
        v_moved := smithers_p1.move_nodes(v_id, p->'moves');
        perform smithers_p1.supersede_waits(v_id, coalesce(
            (select jsonb_agg(jsonb_build_array(m->'node_id', m->'iteration')) from jsonb_array_elements(v_moved) m
              where m->>'to' = 'cancelled'), '[]'));
    end if;
    if p->'statics' <> '[]' and not v_stopping then
        v_statics := smithers_p1.finish_statics(v_id, v_run.claim_id, v_seq + 1, p->'statics');
    end if;
    if p->'approvals' <> '[]' or p->'human' <> '[]' or p->'timers' <> '[]' or p->'consume' <> '[]' then
        perform smithers_p1.open_waits(v_id, p, v_seq);
    end if;
    if p->'ready' <> '[]' and not v_stopping then
        v_ready := smithers_p1.ready_nodes(v_id, p->'ready');
    end if;

    -- A claim of a task that this frame wanted to take back changes no wanted_seq: the lease shows it.
    v_status := case when v_stopping then v_run.status
                     when not v_current then 'running'
                     when exists (select from smithers.leases l where l.run_id = v_id) then 'running'
                     else p->>'status' end;
    v_ends := smithers_p1.is_ended(v_status);
    v_events := smithers_p1.frame_events(p, v_frame, v_mounted, v_moved, v_statics, v_ready,
                                         case when v_status <> v_run.status then v_status end);
    update smithers.run_state s
       set rendered_seq = v_wanted, frame_no = v_frame, status = v_status, resumes = 0, progressed_at = v_now,
           owner = case when v_status = 'running' then s.owner end,
           claim_id = case when v_status = 'running' then s.claim_id end,
           dirty_since = case when v_current then null else s.dirty_since end,
           ended_at = case when v_ends then v_now end,
           error = case when v_status = 'finished' then null else coalesce(nullif(p->'error', 'null'), s.error) end
     where s.run_id = v_id;
    if v_events <> '[]' then
        perform smithers_p1.append_events(v_id, v_events);
    end if;
    insert into smithers.frames (run_id, frame_no, upto_seq, base_frame_no, body, trigger, created_at)
    values (v_id, v_frame, v_seq + jsonb_array_length(v_events) - 1, (p->'structure'->>'base')::integer,
            nullif(p->'structure'->'body', 'null'), p->>'trigger', v_now);
    if v_stopping then
        perform smithers_p1.settle_request_locked(v_id);
    end if;
    if p_notify and v_ready <> '[]' then
        perform pg_notify('smithers_ready', q.queue)
           from (select distinct r->>'queue' as queue from jsonb_array_elements(p->'ready') r) q;
    end if;
    if p ? 'claim' then
        select jsonb_agg(to_jsonb(c)) into v_claimed
          from smithers_p1.claim_tasks((p->'claim'->>'owner')::bigint, (p->'claim'->>'claim_id')::uuid,
                   array(select jsonb_array_elements_text(p->'claim'->'queues')), (p->'claim'->>'limit')::integer,
                   (p->'claim'->>'free')::integer, make_interval(secs => (p->'claim'->>'lease')::double precision)) c;
    end if;
    return jsonb_build_object('frame_no', v_frame, 'status', v_status, 'claimed', coalesce(v_claimed, '[]'), 'applied_end', v_current and not v_stopping,
        'ready', jsonb_array_length(v_ready), 'dirty', not v_current, 'moved', jsonb_array_length(v_moved));
end $$;

-- The events of a frame in their order: the frame itself, finished statics, each move, one node-ready, the new status.
-- Nothing for a frame that changed nothing.
create or replace function smithers_p1.frame_events(p jsonb, p_frame integer, p_mounted jsonb, p_moved jsonb, p_statics jsonb, p_ready jsonb, p_status text)
returns jsonb language plpgsql as $$
declare v_events jsonb := '[]';
begin
    if p_mounted = '[]' and p_moved = '[]' and p_statics = '[]' and p_ready = '[]' and p_status is null then
        return v_events;
    end if;
    v_events := jsonb_build_array(jsonb_build_object('type', 'frame-committed',
        'payload', jsonb_build_object('frame_no', p_frame, 'mounted', p_mounted)));
    select v_events || coalesce(jsonb_agg(jsonb_build_object('type', 'attempt-finished', 'node_id', s->>'node_id', 'iteration', s->'iteration',
               'attempt', s->'attempt', 'payload', jsonb_build_object('node', 'finished', 'origin', 'static')) order by o), '[]')
      into v_events from jsonb_array_elements(p_statics) with ordinality as e(s, o);
    select v_events || coalesce(jsonb_agg(jsonb_build_object('type', 'node-' || (m->>'to'), 'node_id', m->>'node_id', 'iteration', m->'iteration',
               'payload', jsonb_strip_nulls(jsonb_build_object('node', m->'to', 'error', m->'error', 'detail', m->'detail'))) order by o), '[]')
      into v_events from jsonb_array_elements(p_moved) with ordinality as e(m, o);
    if p_ready <> '[]' then
        v_events := v_events || jsonb_build_object('type', 'node-ready', 'payload', jsonb_build_object('nodes', p_ready));
    end if;
    if p_status is not null then
        v_events := v_events || jsonb_build_object('type', 'run-status',
            'payload', jsonb_strip_nulls(jsonb_build_object('status', p_status, 'error', case when p_status = 'failed' then p->'error' end)));
    end if;
    return v_events;
end $$;

-- Fails a locked run at once: nothing of it is claimable, its leases are gone (late writers are fenced).
create or replace function smithers_p1.end_run_locked(p_run text, p_error jsonb) returns void
language plpgsql as $$
declare
    v_nodes jsonb;
    v_events jsonb;
    v_first bigint;
begin
    v_nodes := smithers_p1.unready_locked(p_run);
    with gone as (delete from smithers.leases l where l.run_id = p_run returning l.*),
    attempt as (
        update smithers.attempts a set state = 'cancelled', finished_at = smithers.now(), started_at = g.started_at,
               error = jsonb_build_object('code', 'RUN_FAILED', 'message', 'the run failed while this attempt was in flight')
          from gone g where a.run_id = g.run_id and a.node_id = g.node_id and a.iteration = g.iteration and a.attempt = g.attempt),
    node as (
        update smithers.nodes n set state = 'cancelled', last_attempt = g.attempt from gone g
         where n.run_id = g.run_id and n.node_id = g.node_id and n.iteration = g.iteration)
    select coalesce(jsonb_agg(smithers_p1.started_event(g)) filter (where not g.start_logged), '[]')
           || coalesce(jsonb_agg(jsonb_build_object('type', 'attempt-cancelled', 'node_id', g.node_id, 'iteration', g.iteration,
                  'attempt', g.attempt, 'payload', jsonb_build_object('node', 'cancelled'))), '[]')
      into v_events from gone g;
    update smithers.run_state set status = 'failed', owner = null, claim_id = null, error = p_error, ended_at = smithers.now(),
           rendered_seq = wanted_seq, dirty_since = null
     where run_id = p_run;
    v_first := smithers_p1.append_events(p_run, v_events || jsonb_build_object('type', 'run-status',
        'payload', jsonb_build_object('status', 'failed', 'error', p_error, 'nodes', v_nodes)));
    update smithers.attempts a set seq = e.seq from smithers.events e
     where e.run_id = p_run and e.seq >= v_first and e.type = 'attempt-cancelled'
       and a.run_id = p_run and a.node_id = e.node_id and a.iteration = e.iteration and a.attempt = e.attempt;
end $$;

-- A render that raised, hung or never settled fails its run, visibly and once. p = run token + {error}. Raises SM001.
create or replace function smithers_p1.fail_run(p jsonb) returns void
language plpgsql as $$
declare v_run smithers.run_state;
begin
    v_run := smithers_p1.lock_run(p->>'run_id');
    perform smithers_p1.check_run_token(v_run, p);
    perform smithers_p1.end_run_locked(v_run.run_id, p->'error');
end $$;

-- A run with a pause or cancel request is settled when nothing is in flight; either way its render is not wanted.
-- p = run token. Raises SM001.
create or replace function smithers_p1.settle_request(p jsonb) returns jsonb
language plpgsql as $$
declare v_run smithers.run_state;
begin
    v_run := smithers_p1.lock_run(p->>'run_id');
    perform smithers_p1.check_run_token(v_run, p);
    if v_run.pause_requested_at is not null or v_run.cancel_requested_at is not null then
        update smithers.run_state set rendered_seq = wanted_seq, dirty_since = null, progressed_at = smithers.now() where run_id = v_run.run_id;
        perform smithers_p1.settle_request_locked(v_run.run_id);
    end if;
    return (select jsonb_build_object('status', s.status) from smithers.run_state s where s.run_id = v_run.run_id);
end $$;

-- Hands runs back, at a drain or when they were idle.
create or replace function smithers_p1.give_up_runs(p_owner bigint, p_runs text[]) returns integer
language plpgsql as $$
declare v_count integer;
begin
    with mine as (
        select s.run_id from smithers.run_state s where s.run_id = any (p_runs) and s.owner = p_owner order by s.run_id for no key update)
    update smithers.run_state s set owner = null, claim_id = null from mine m where s.run_id = m.run_id;
    get diagnostics v_count = row_count;
    return v_count;
end $$;

create or replace function smithers_p1.due_runs(p_before timestamptz, p_limit integer) returns table (run_id text)
language sql stable as $$
    select d.run_id from (
        (select n.run_id from smithers.nodes n join smithers.run_state s using (run_id)
          where n.due_at <= p_before and not smithers_p1.is_ended(s.status) order by n.due_at limit p_limit)
        union
        (select t.run_id from smithers.timers t join smithers.run_state s using (run_id)
          where t.due_at <= p_before and t.fired_seq is null and not t.superseded and not smithers_p1.is_ended(s.status) order by t.due_at limit p_limit)
        union
        (select a.run_id from smithers.approvals a join smithers.run_state s using (run_id)
          where a.due_at <= p_before and a.decided_seq is null and a.expired_seq is null and not a.superseded
            and not smithers_p1.is_ended(s.status) order by a.due_at limit p_limit)
        union
        (select h.run_id from smithers.human_requests h join smithers.run_state s using (run_id)
          where h.due_at <= p_before and h.decided_seq is null and h.expired_seq is null and not h.superseded
            and not smithers_p1.is_ended(s.status) order by h.due_at limit p_limit)) d $$;

-- Fires what is due: timers, expiries, retries, quota resets. Each once; each wakes its run in this transaction.
-- Locks: runs (sorted, skip locked) → nodes → timers/requests → events. Returns how many rows fired.
create or replace function smithers_p1.fire_due(p_limit integer default 100, p_late interval default '0') returns integer
language plpgsql as $$
declare
    v_now timestamptz := smithers.now();
    v_run smithers.run_state;
    v_events jsonb;
    v_count integer := 0;
begin
    for v_run in
        select s.* from smithers.run_state s
         where s.run_id in (select d.run_id from smithers_p1.due_runs(v_now - p_late, p_limit) d) and not smithers_p1.is_ended(s.status)
         order by s.run_id for no key update skip locked
    loop
        v_events := smithers_p1.fire_run_locked(v_run.run_id, v_run.next_event_seq, v_now);
        if v_events <> '[]' then
            perform smithers_p1.append_events(v_run.run_id, v_events, true);
            perform pg_notify('smithers_dirty', v_run.run_id);
            v_count := v_count + jsonb_array_length(v_events);
        end if;
    end loop;
    return v_count;
end $$;

-- A due node: a retry, a parked quota (its reset), or a wait with a timeout. The event of a row carries its number.
create or replace function smithers_p1.fire_run_locked(p_run text, p_seq bigint, p_now timestamptz) returns jsonb
language plpgsql as $$
declare
    v_events jsonb;
    v_part jsonb;
begin
    with due as (
        select n.run_id, n.node_id, n.iteration, n.state as was from smithers.nodes n
         where n.run_id = p_run and n.due_at <= p_now order by n.node_id, n.iteration for no key update),
    moved as (
        update smithers.nodes n
           set due_at = null, state = case when n.state = 'waiting-quota' then 'pending' else n.state end
          from due d where n.run_id = d.run_id and n.node_id = d.node_id and n.iteration = d.iteration
        returning n.node_id, n.iteration, d.was, n.state)
    select coalesce(jsonb_agg(jsonb_build_object(
               'type', case m.was when 'waiting-quota' then 'quota-reset' when 'pending' then 'retry-due' else 'wait-expired' end,
               'node_id', m.node_id, 'iteration', m.iteration, 'payload', jsonb_build_object('node', m.state))), '[]')
      into v_events from moved m;
    with fired as (
        update smithers.timers t set fired_seq = p_seq + jsonb_array_length(v_events), fired_at = p_now
         where t.run_id = p_run and t.due_at <= p_now and t.fired_seq is null and not t.superseded
        returning t.node_id, t.iteration, t.due_at)
    select jsonb_agg(jsonb_build_object('type', 'timer-fired', 'node_id', f.node_id, 'iteration', f.iteration,
               'payload', jsonb_build_object('due_at', f.due_at))) into v_part from fired f;
    v_events := v_events || coalesce(v_part, '[]');
    with fired as (
        update smithers.approvals a set expired_seq = p_seq + jsonb_array_length(v_events)
         where a.run_id = p_run and a.due_at <= p_now and a.decided_seq is null and a.expired_seq is null and not a.superseded
        returning a.node_id, a.iteration)
    select jsonb_agg(jsonb_build_object('type', 'wait-expired', 'node_id', f.node_id, 'iteration', f.iteration)) into v_part from fired f;
    v_events := v_events || coalesce(v_part, '[]');
    with fired as (
        update smithers.human_requests h set expired_seq = p_seq + jsonb_array_length(v_events)
         where h.run_id = p_run and h.due_at <= p_now and h.decided_seq is null and h.expired_seq is null and not h.superseded
        returning h.node_id, h.iteration)
    select jsonb_agg(jsonb_build_object('type', 'wait-expired', 'node_id', f.node_id, 'iteration', f.iteration)) into v_part from fired f;
    return v_events || coalesce(v_part, '[]');
end $$;

-- Seconds until the earliest due row of a run that is not ended (negative when it is late); null when nothing is due.
create or replace function smithers_p1.next_due() returns double precision
language sql stable as $$
    select extract(epoch from min(d.due_at) - smithers.now())::double precision from (
        (select n.due_at from smithers.nodes n join smithers.run_state s using (run_id)
          where n.due_at is not null and not smithers_p1.is_ended(s.status) order by n.due_at limit 1)
        union all
        (select t.due_at from smithers.timers t join smithers.run_state s using (run_id)
          where t.fired_seq is null and not t.superseded and not smithers_p1.is_ended(s.status) order by t.due_at limit 1)
        union all
        (select a.due_at from smithers.approvals a join smithers.run_state s using (run_id)
          where a.due_at is not null and a.decided_seq is null and a.expired_seq is null and not a.superseded
            and not smithers_p1.is_ended(s.status) order by a.due_at limit 1)
        union all
        (select h.due_at from smithers.human_requests h join smithers.run_state s using (run_id)
          where h.due_at is not null and h.decided_seq is null and h.expired_seq is null and not h.superseded
            and not smithers_p1.is_ended(s.status) order by h.due_at limit 1)) d $$;
