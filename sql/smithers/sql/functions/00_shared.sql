-- What every actor uses. The story of a run, as functions:
--   operator    create_run → (decide_approval | answer_human | send_signal)* → pause_run | cancel_run | resume_run
--   scheduler   take_runs → load_run → register_outputs → commit_frame … → fail_run | give_up_runs; fire_due
--   worker      claim_tasks → heartbeat* → complete_attempts | end_attempts
--   supervisor  stale_leases → reclaim_attempts; reclaim_runs; expire_processes
-- Locks, in this order everywhere: run_state (sorted by run_id) → ready_tasks → nodes → leases → attempts →
-- outputs → events. The claim starts at ready_tasks (skip locked) and takes no run and no node; beats lock
-- only their leases. SQLSTATEs: SM001 fenced run · SM002 unknown run · SM003 process no longer registered ·
-- SM004 refused (detail is a JSON object with `code`) · SM005 unknown output shape.

-- Raises SM004 with a stable code that the caller shows to a person. Never returns.
create or replace function smithers_p1.refuse(p_code text, p_message text, p_hint text default null, p_details jsonb default '{}')
returns void language plpgsql as $$
begin
    raise exception using errcode = 'SM004', message = p_message, hint = coalesce(p_hint, ''),
        detail = jsonb_build_object('code', p_code, 'details', p_details)::text;
end $$;

create or replace function smithers_p1.is_ended(p_status text) returns boolean
language sql immutable parallel safe
as $$ select p_status in ('finished', 'failed', 'cancelled', 'continued') $$;

-- Locks one run for the rest of the transaction and returns its row. Raises SM002.
create or replace function smithers_p1.lock_run(p_run text) returns smithers.run_state
language plpgsql as $$
declare v_run smithers.run_state;
begin
    select * into v_run from smithers.run_state where run_id = p_run for no key update;
    if not found then
        raise exception using errcode = 'SM002', message = format('there is no run %L', p_run);
    end if;
    return v_run;
end $$;

create or replace function smithers_p1.unpack_events(p jsonb)
returns table (ord bigint, at timestamptz, type text, node_id text, iteration integer, attempt integer, payload jsonb)
language sql immutable strict rows 1
as $$ select e.ord, x.* from jsonb_array_elements(p) with ordinality as e(body, ord),
      jsonb_to_record(e.body) as x(at timestamptz, type text, node_id text, iteration integer, attempt integer, payload jsonb) $$;

-- Appends events to a run whose row the caller has locked; returns the number of the first.
-- p_wake: the facts can change the plan, so the run becomes dirty and leaves waiting-*.
create or replace function smithers_p1.append_events(p_run text, p_events jsonb, p_wake boolean default false)
returns bigint language plpgsql as $$
declare
    v_now timestamptz := smithers.now();
    v_first bigint;
begin
    update smithers.run_state s
       set next_event_seq = s.next_event_seq + jsonb_array_length(p_events),
           wanted_seq = case when p_wake then s.next_event_seq + jsonb_array_length(p_events) - 1 else s.wanted_seq end,
           dirty_since = case when p_wake and not s.dirty then v_now else s.dirty_since end,
           status = case when p_wake and s.status like 'waiting-%' then 'running' else s.status end
     where s.run_id = p_run
    returning s.next_event_seq - jsonb_array_length(p_events) into v_first;
    insert into smithers.events (run_id, seq, at, type, node_id, iteration, attempt, payload)
    select p_run, v_first + e.ord - 1, coalesce(e.at, v_now), e.type, e.node_id, e.iteration, e.attempt, coalesce(e.payload, '{}')
      from smithers_p1.unpack_events(p_events) e;
    return v_first;
end $$;

-- Applies a pause or cancel request of a locked run as soon as no attempt is in flight.
-- True when the run is paused or cancelled now.
create or replace function smithers_p1.settle_request_locked(p_run text) returns boolean
language plpgsql as $$
declare
    v_run smithers.run_state;
    v_status text;
    v_moved jsonb;
begin
    select * into v_run from smithers.run_state where run_id = p_run;
    if smithers_p1.is_ended(v_run.status) or v_run.status = 'paused'
       or (v_run.pause_requested_at is null and v_run.cancel_requested_at is null)
       or exists (select from smithers.leases l where l.run_id = p_run) then
        return false;
    end if;
    v_status := case when v_run.cancel_requested_at is not null then 'cancelled' else 'paused' end;
    if v_status = 'cancelled' then
        with moved as (
            update smithers.nodes n set state = 'cancelled', due_at = null
             where n.run_id = p_run and n.state not in ('finished', 'failed', 'skipped', 'cancelled')
            returning n.node_id, n.iteration)
        select jsonb_agg(jsonb_build_array(m.node_id, m.iteration, 'cancelled')) into v_moved from moved m;
    end if;
    update smithers.run_state
       set status = v_status, owner = null, claim_id = null,
           ended_at = case when v_status = 'cancelled' then smithers.now() end
     where run_id = p_run;
    perform smithers_p1.append_events(p_run, jsonb_build_array(jsonb_build_object(
        'type', 'run-status', 'payload', jsonb_build_object('status', v_status, 'nodes', coalesce(v_moved, '[]')))));
    return true;
end $$;

-- Takes every unclaimed ready task of a locked run back to pending; returns [[node_id, iteration, "pending"]].
-- Deleting the ready rows first means that no claim of this run commits afterwards.
create or replace function smithers_p1.unready_locked(p_run text) returns jsonb
language plpgsql as $$
declare v_moved jsonb;
begin
    delete from smithers.ready_tasks r where r.run_id = p_run;
    with moved as (
        update smithers.nodes n set state = 'pending'
         where n.run_id = p_run and n.state = 'ready'
           and not exists (select from smithers.leases l
                            where l.run_id = n.run_id and l.node_id = n.node_id and l.iteration = n.iteration)
        returning n.node_id, n.iteration)
    select jsonb_agg(jsonb_build_array(m.node_id, m.iteration, 'pending')) into v_moved from moved m;
    return coalesce(v_moved, '[]');
end $$;

-- ───────────────────────────── processes ─────────────────────────────

-- Registers one process start; its uuid is new at every start.
create or replace function smithers_p1.register_process(p jsonb, p_lease interval) returns bigint
language sql as $$
    insert into smithers.processes (kind, host, pid, uuid, name, queues, version, protocol, started_at, heartbeat_at, lease_until, details)
    select p->>'kind', p->>'host', (p->>'pid')::integer, (p->>'uuid')::uuid, p->>'name',
           case when p->'queues' is null or p->'queues' = 'null' then null
                else array(select jsonb_array_elements_text(p->'queues')) end,
           p->>'version', coalesce((p->>'protocol')::integer, 1),
           smithers.now(), smithers.now(), smithers.now() + p_lease, coalesce(p->'details', '{}')
    returning id $$;

-- Renews a process lease; false means that it was declared dead and must register anew.
create or replace function smithers_p1.beat_process(p_id bigint, p_lease interval) returns boolean
language plpgsql as $$
begin
    update smithers.processes set heartbeat_at = smithers.now(), lease_until = smithers.now() + p_lease
     where id = p_id and stopped_at is null;
    return found;
end $$;

create or replace function smithers_p1.stop_process(p_id bigint) returns void
language sql as $$
    update smithers.processes set stopped_at = smithers.now(), lease_until = smithers.now()
     where id = p_id and stopped_at is null $$;

create or replace function smithers_p1.is_live(p_owner bigint) returns boolean
language sql stable as $$
    select exists (select from smithers.processes p
                    where p.id = p_owner and p.stopped_at is null and p.lease_until >= smithers.now()) $$;

-- Which database this is, for the marks of child processes: two databases never sweep each other's.
create or replace function smithers_p1.instance_id() returns text
language sql stable as $$
    select (select system_identifier from pg_control_system())::text || '-' || d.oid::text
      from pg_database d where d.datname = current_database() $$;

-- ───────────────────────────── typed outputs ─────────────────────────────

-- The column that holds a field: its own name unless the engine or Postgres has another use for it.
create or replace function smithers_p1.output_column(p_field text) returns text
language sql immutable strict as $$
    select case when p_field in ('run_id', 'node_id', 'iteration', 'seq', 'attempt', 'claim_id') then p_field || '_'
                when octet_length(p_field) > 60 or p_field like '%\_' then 'f_' || left(md5(p_field), 24)
                else p_field end $$;

create or replace function smithers_p1.output_type(p_type text) returns text
language sql immutable strict as $$
    select case p_type when 'int' then 'numeric' when 'float' then 'double precision' when 'str' then 'text'
                       when 'bool' then 'boolean' when 'datetime' then 'timestamptz' else 'jsonb' end $$;

create or replace function smithers_p1.unpack_outputs(p jsonb)
returns table (run_id text, node_id text, iteration integer, seq bigint, attempt integer, claim_id uuid, output jsonb)
language sql immutable strict rows 1
as $$ select * from jsonb_to_recordset(p) as x(run_id text, node_id text, iteration integer, seq bigint, attempt integer, claim_id uuid, output jsonb) $$;

-- (Re)writes the two functions that belong to an output table: insert_<table>(rows) and select_<table>(run).
-- They are static SQL, so a completion plans nothing anew.
create or replace function smithers_p1.write_output_functions(p_table text, p_fields jsonb) returns void
language plpgsql as $$
declare
    v_columns text;
    v_typed text;
    v_renames text;
    v_drops text;
begin
    select string_agg(format(', %I', smithers_p1.output_column(f->>'name')), '' order by o),
           string_agg(format('%I %s', smithers_p1.output_column(f->>'name'), smithers_p1.output_type(f->>'type')), ', ' order by o),
           string_agg(format(' || jsonb_build_object(%L, t.%I)', f->>'name', smithers_p1.output_column(f->>'name')), '' order by o)
               filter (where smithers_p1.output_column(f->>'name') <> f->>'name'),
           string_agg(format(' || jsonb_build_object(%L, x.output->%L)', smithers_p1.output_column(f->>'name'), f->>'name'), '' order by o)
               filter (where smithers_p1.output_column(f->>'name') <> f->>'name')
      into v_columns, v_typed, v_renames, v_drops
      from jsonb_array_elements(p_fields) with ordinality as e(f, o);
    execute format(
        'create or replace function smithers.%I(p jsonb) returns void language sql as $f$
             insert into smithers.%I (run_id, node_id, iteration, seq, attempt, claim_id%s)
             select x.run_id, x.node_id, x.iteration, x.seq, x.attempt, x.claim_id%s
               from smithers_p1.unpack_outputs(p) x %s $f$',
        'insert_' || p_table, p_table, coalesce(v_columns, ''),
        coalesce(replace(v_columns, ', ', ', o.'), ''),
        case when v_typed is null then ''
             else format('cross join lateral jsonb_to_record(x.output%s) as o(%s)', coalesce(v_drops, ''), v_typed) end);
    execute format(
        'create or replace function smithers.%I(p_run text, p_node text default null, p_iteration integer default null)
         returns table (node_id text, iteration integer, attempt integer, seq bigint, claim_id uuid, output jsonb) language sql stable as $f$
             select t.node_id, t.iteration, t.attempt, t.seq, t.claim_id,
                    (to_jsonb(t) - array[''run_id'', ''node_id'', ''iteration'', ''seq'', ''attempt'', ''claim_id'']::text[]
                     - array[%s]::text[])%s
               from smithers.%I t
              where t.run_id = p_run and (p_node is null or t.node_id = p_node)
                and (p_iteration is null or t.iteration = p_iteration) $f$',
        'select_' || p_table,
        coalesce((select string_agg(format('%L', smithers_p1.output_column(f->>'name')), ', ')
                    from jsonb_array_elements(p_fields) f
                   where smithers_p1.output_column(f->>'name') <> f->>'name'), ''),
        coalesce(v_renames, ''), p_table);
end $$;

-- True when one table can hold both: common fields have one type, all others are nullable.
create or replace function smithers_p1.shape_extends(p_old jsonb, p_new jsonb) returns boolean
language sql immutable strict as $$
    select not exists (
               select from jsonb_array_elements(p_old) o
                where not ((o->>'nullable')::boolean
                           and not exists (select from jsonb_array_elements(p_new) n where n->>'name' = o->>'name'))
                  and not exists (select from jsonb_array_elements(p_new) n
                                   where n->>'name' = o->>'name' and n->>'type' = o->>'type'))
       and not exists (
               select from jsonb_array_elements(p_new) n
                where not (n->>'nullable')::boolean
                  and not exists (select from jsonb_array_elements(p_old) o where o->>'name' = n->>'name')) $$;

-- Makes or widens the table of each output shape [{name, shape, fields: [{name, type, nullable}]}]; idempotent.
-- The only code that runs DDL after migration. Locks: one advisory transaction lock, the widened table.
create or replace function smithers_p1.register_outputs(p jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '10s' as $$
declare
    v_item record;
    v_base record;
    v_table text;
    v_field jsonb;
    v_columns jsonb;
begin
    for v_item in select x.* from jsonb_to_recordset(p) as x(name text, shape text, fields jsonb) order by x.name, x.shape loop
        continue when exists (select from smithers.output_tables t where t.name = v_item.name and t.shape = v_item.shape);
        perform pg_advisory_xact_lock(hashtextextended('smithers.outputs', 0));
        continue when exists (select from smithers.output_tables t where t.name = v_item.name and t.shape = v_item.shape);
        if v_item.name !~ '^[a-z_][a-z0-9_]{0,39}$' then
            perform smithers_p1.refuse('OUTPUT_NAME_INVALID', format('the output name %L is not an identifier of at most 40 characters', v_item.name));
        end if;
        v_table := 'outputs_' || v_item.name;
        select v_table as table_name, jsonb_agg(c.f) as fields into v_base
          from (select distinct on (f->>'name') f from smithers.output_tables u, jsonb_array_elements(u.fields) f
                 where u.table_name = v_table order by f->>'name', (f->>'nullable')::boolean) c
        having count(*) > 0 or exists (select from smithers.output_tables u where u.table_name = v_table);
        if v_base.table_name is not null and smithers_p1.shape_extends(coalesce(v_base.fields, '[]'), v_item.fields) then
            for v_field in select f from jsonb_array_elements(v_item.fields) f
                            where not exists (select from jsonb_array_elements(coalesce(v_base.fields, '[]')) o where o->>'name' = f->>'name') loop
                execute format('alter table smithers.%I add column %I %s', v_table,
                               smithers_p1.output_column(v_field->>'name'), smithers_p1.output_type(v_field->>'type'));
            end loop;
            select jsonb_agg(c.f) into v_columns
              from (select distinct on (f->>'name') f
                      from jsonb_array_elements(coalesce(v_base.fields, '[]') || v_item.fields) f order by f->>'name') c;
        else
            v_columns := v_item.fields;
            if v_base.table_name is not null then
                v_table := v_table || '_' || left(v_item.shape, 8);
            end if;
            execute format(
                'create table if not exists smithers.%I (run_id text collate "C" not null, node_id text collate "C" not null,
                     iteration integer not null, seq bigint not null, attempt integer not null, claim_id uuid%s,
                     constraint %I primary key (run_id, node_id, iteration))',
                v_table,
                coalesce((select string_agg(format(', %I %s', smithers_p1.output_column(f->>'name'), smithers_p1.output_type(f->>'type')), '' order by o)
                            from jsonb_array_elements(v_item.fields) with ordinality as e(f, o)), ''),
                v_table || '_pkey');
        end if;
        perform smithers_p1.write_output_functions(v_table, coalesce(v_columns, '[]'));
        insert into smithers.output_tables (name, shape, table_name, fields, created_at)
        values (v_item.name, v_item.shape, v_table, v_item.fields, smithers.now());
    end loop;
end $$;

-- Inserts accepted outputs, grouped by table: one call of a generated function per table in the batch.
create or replace function smithers_p1.insert_outputs(p jsonb) returns void
language plpgsql as $$
declare v_group record;
begin
    for v_group in select r->>'table' as table_name, jsonb_agg(r) as rows from jsonb_array_elements(p) r group by 1 order by 1 loop
        execute format('select smithers.%I($1)', 'insert_' || v_group.table_name) using v_group.rows;
    end loop;
end $$;

-- The value that a finished node has for its readers: a typed output row, or what its wait recorded. Null if none.
create or replace function smithers_p1.read_output(p_run text, p_node text, p_iteration integer) returns jsonb
language plpgsql stable as $$
declare
    v_node smithers.nodes;
    v_value jsonb;
begin
    select * into v_node from smithers.nodes n
     where n.run_id = p_run and n.node_id = p_node and n.iteration = p_iteration;
    if v_node.output_table is not null and v_node.state = 'finished' then
        execute format('select output from smithers.%I($1, $2, $3)', 'select_' || v_node.output_table)
           into v_value using p_run, p_node, p_iteration;
    elsif v_node.kind = 'approval' then
        select jsonb_build_object('approved', a.decision = 'approved', 'note', a.note, 'decided_by', a.decided_by) into v_value
          from smithers.approvals a
         where a.run_id = p_run and a.node_id = p_node and a.iteration = p_iteration and a.decided_seq is not null and not a.superseded;
    elsif v_node.kind = 'human' then
        select h.response into v_value from smithers.human_requests h
         where h.run_id = p_run and h.node_id = p_node and h.iteration = p_iteration and h.decided_seq is not null and not h.superseded;
    elsif v_node.kind = 'event' then
        select s.payload into v_value from smithers.signals s
         where s.run_id = p_run and s.consumed_node_id = p_node and s.consumed_iteration = p_iteration;
    elsif v_node.kind = 'timer' then
        select jsonb_build_object('due_at', t.due_at) into v_value from smithers.timers t
         where t.run_id = p_run and t.node_id = p_node and t.iteration = p_iteration and t.fired_seq is not null and not t.superseded;
    end if;
    return v_value;
end $$;
