-- breaking: no
-- Every table of the engine. A run is rows: `runs` never changes, `run_state` is the run's mutex and
-- counter, `nodes` is what the plan reads, `ready_tasks` and `leases` are the queue, the rest is record.
-- Per-run tables lead with run_id so that runs can be sharded. There are no foreign keys on purpose:
-- their checks would lock the run row in every claim. Text keys compare bytewise (collate "C").

create schema if not exists smithers;

-- The one clock of the engine. Tests shift it for a whole fleet with
-- `alter database … set smithers.clock_offset = '1 hour'`.
create function smithers.now() returns timestamptz
language sql stable parallel safe
as $$ select statement_timestamp()
     + coalesce(nullif(current_setting('smithers.clock_offset', true), ''), '0')::interval $$;

-- ───────────────────────────── runs ─────────────────────────────

create table smithers.runs (
    run_id           text collate "C" not null,
    workflow         text not null,
    path             text not null,
    source_hash      text collate "C" not null,
    pinned           boolean not null default true,
    input            jsonb not null,
    config           jsonb not null default '{}',
    vcs_type         text,
    vcs_root         text,
    vcs_revision     text,
    parent_run_id    text collate "C",
    parent_node_id   text collate "C",
    parent_iteration integer,
    depth            integer not null default 0,
    fork_run_id      text collate "C",
    fork_frame_no    integer,
    request_id       text collate "C",
    tags             jsonb not null default '{}',
    created_at       timestamptz not null,
    constraint runs_pkey primary key (run_id),
    constraint runs_run_id_check check (octet_length(run_id) between 1 and 64)
);
create unique index runs_request_id_key on smithers.runs (request_id) where request_id is not null;
create index runs_created_at_idx on smithers.runs (created_at);

-- `dirty` is in the predicate of the only index, so further facts of a dirty run stay HOT.
create table smithers.run_state (
    run_id              text collate "C" not null,
    status              text collate "C" not null,
    priority            integer not null default 0,
    owner               bigint,
    epoch               bigint not null default 0,
    claim_id            uuid,
    claimed_at          timestamptz,
    progressed_at       timestamptz,
    resumes             integer not null default 0,
    wanted_seq          bigint not null default 0,
    rendered_seq        bigint not null default 0,
    dirty               boolean not null generated always as (wanted_seq > rendered_seq) stored,
    dirty_since         timestamptz,
    next_event_seq      bigint not null default 1,
    frame_no            integer not null default 0,
    last_rank           bigint not null default 0,
    pause_requested_at  timestamptz,
    cancel_requested_at timestamptz,
    ended_at            timestamptz,
    error               jsonb,
    constraint run_state_pkey primary key (run_id),
    constraint run_state_status_check check (status in (
        'running', 'waiting-approval', 'waiting-event', 'waiting-quota', 'waiting-timer',
        'paused', 'finished', 'failed', 'cancelled', 'continued'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
create index run_state_dirty_idx on smithers.run_state (priority desc, dirty_since) where dirty;

-- last_attempt counts the attempts that ended; with claim_id it is the accepted one of a finished node.
create table smithers.nodes (
    run_id          text collate "C" not null,
    node_id         text collate "C" not null,
    iteration       integer not null,
    state           text collate "C" not null,
    kind            text collate "C" not null,
    last_attempt    integer not null default 0,
    claim_id        uuid,
    failures        integer not null default 0,
    abandoned       integer not null default 0,
    due_at          timestamptz,
    output_table    text collate "C",
    frame_no        integer not null,
    upstream        jsonb,
    descriptor_hash bytea,
    error           jsonb,
    detail          jsonb,
    constraint nodes_pkey primary key (run_id, node_id, iteration),
    constraint nodes_state_check check (state in (
        'pending', 'ready', 'finished', 'failed', 'skipped', 'cancelled',
        'waiting-approval', 'waiting-event', 'waiting-timer', 'waiting-quota')),
    constraint nodes_kind_check check (kind in (
        'agent', 'compute', 'static', 'approval', 'human', 'event', 'timer', 'loop', 'workflow'))
) with (fillfactor = 55);
create index nodes_due_idx on smithers.nodes (due_at) where due_at is not null;

create table smithers.descriptors (
    run_id text collate "C" not null,
    hash   bytea not null,
    body   jsonb not null,
    constraint descriptors_pkey primary key (run_id, hash)
);

-- ───────────────────────────── the queue ─────────────────────────────

-- Only what can be claimed now: the claim moves the row to `leases`. The table is as small as the backlog.
create table smithers.ready_tasks (
    id              bigint generated always as identity,
    run_id          text collate "C" not null,
    node_id         text collate "C" not null,
    iteration       integer not null,
    attempt         integer not null,
    queue           text collate "C" not null,
    priority        integer not null default 0,
    rank            bigint not null,
    ready_at        timestamptz not null,
    alone           boolean not null default false,
    limit_key       text collate "C",
    descriptor_hash bytea not null,
    constraint ready_tasks_pkey primary key (id),
    constraint ready_tasks_key unique (run_id, node_id, iteration)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
create index ready_tasks_claim_idx on smithers.ready_tasks (queue, priority desc, rank, id) where not alone;
create index ready_tasks_alone_idx on smithers.ready_tasks (queue, priority desc, rank, id) where alone;

-- A token is current if and only if its row is here. Beats touch no indexed column, so they are HOT.
create table smithers.leases (
    run_id       text collate "C" not null,
    node_id      text collate "C" not null,
    iteration    integer not null,
    attempt      integer not null,
    claim_id     uuid not null,
    owner        bigint not null,
    queue        text collate "C" not null,
    lease_until  timestamptz not null,
    heartbeat_at timestamptz not null,
    started_at   timestamptz not null,
    start_logged boolean not null default false,
    beat         jsonb,
    constraint leases_pkey primary key (run_id, node_id, iteration),
    constraint leases_beat_check check (beat is null or pg_column_size(beat) <= 8192)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
create index leases_owner_idx on smithers.leases (owner);

create table smithers.attempts (
    run_id         text collate "C" not null,
    node_id        text collate "C" not null,
    iteration      integer not null,
    attempt        integer not null,
    state          text collate "C" not null,
    origin         text collate "C" not null default 'worker',
    claim_id       uuid,
    owner          bigint,
    claimed_at     timestamptz not null,
    started_at     timestamptz,
    finished_at    timestamptz,
    error          jsonb,
    response       jsonb,
    agent          text,
    session        jsonb,
    usage          jsonb,
    vcs_pointer    text,
    cwd            text,
    heartbeat_data jsonb,
    seq            bigint,
    constraint attempts_pkey primary key (run_id, node_id, iteration, attempt),
    constraint attempts_state_check check (state in (
        'in-progress', 'finished', 'failed', 'cancelled', 'abandoned', 'released', 'parked')),
    constraint attempts_origin_check check (origin in ('worker', 'static', 'cache', 'fork', 'manual'))
) with (fillfactor = 55);

create table smithers.steps (
    run_id     text collate "C" not null,
    node_id    text collate "C" not null,
    iteration  integer not null,
    name       text collate "C" not null,
    attempt    integer not null,
    claim_id   uuid not null,
    seq        bigint not null,
    value      jsonb,
    created_at timestamptz not null,
    constraint steps_pkey primary key (run_id, node_id, iteration, name)
);

create table smithers.queues (
    name            text collate "C" not null,
    max_concurrency integer,
    rate_limit      integer,
    rate_seconds    integer,
    paused          boolean not null default false,
    constraint queues_pkey primary key (name),
    constraint queues_max_concurrency_check check (max_concurrency >= 0)
);

create table smithers.processes (
    id           bigint generated always as identity,
    kind         text collate "C" not null,
    host         text not null,
    pid          integer not null,
    uuid         uuid not null,
    name         text,
    queues       text[],
    version      text,
    protocol     integer not null default 1,
    started_at   timestamptz not null,
    heartbeat_at timestamptz not null,
    lease_until  timestamptz not null,
    stopped_at   timestamptz,
    details      jsonb not null default '{}',
    constraint processes_pkey primary key (id),
    constraint processes_uuid_key unique (uuid)
) with (fillfactor = 60);

create table smithers.quota (
    provider   text collate "C" not null,
    account    text collate "C" not null default '',
    reset_at   timestamptz,
    parked     integer not null default 0,
    detail     jsonb not null default '{}',
    updated_at timestamptz not null,
    constraint quota_pkey primary key (provider, account)
);

-- ───────────────────────────── record ─────────────────────────────

create table smithers.events (
    run_id    text collate "C" not null,
    seq       bigint not null,
    at        timestamptz not null,
    type      text collate "C" not null,
    node_id   text collate "C",
    iteration integer,
    attempt   integer,
    payload   jsonb not null default '{}',
    constraint events_pkey primary key (run_id, seq)
);

create table smithers.frames (
    run_id        text collate "C" not null,
    frame_no      integer not null,
    upto_seq      bigint not null,
    base_frame_no integer,
    body          jsonb,
    trigger       text,
    created_at    timestamptz not null,
    constraint frames_pkey primary key (run_id, frame_no)
);

-- ───────────────────────────── waits ─────────────────────────────
-- `seq` numbers the event that opened the request; a reset (resume, retry) supersedes it and asks anew.

create table smithers.approvals (
    run_id      text collate "C" not null,
    node_id     text collate "C" not null,
    iteration   integer not null,
    seq         bigint not null,
    title       text not null,
    summary     text,
    digest      text,
    nonce       uuid not null default gen_random_uuid(),
    opened_at   timestamptz not null,
    due_at      timestamptz,
    expired_seq bigint,
    decision    text collate "C",
    decided_by  text,
    note        text,
    decided_at  timestamptz,
    decided_seq bigint,
    request_id  text collate "C",
    superseded  boolean not null default false,
    constraint approvals_pkey primary key (run_id, node_id, iteration, seq),
    constraint approvals_decision_check check (decision in ('approved', 'denied'))
);
create index approvals_due_idx on smithers.approvals (due_at)
    where due_at is not null and decided_seq is null and expired_seq is null and not superseded;

create table smithers.human_requests (
    run_id      text collate "C" not null,
    node_id     text collate "C" not null,
    iteration   integer not null,
    seq         bigint not null,
    prompt      text not null,
    schema      jsonb,
    opened_at   timestamptz not null,
    due_at      timestamptz,
    expired_seq bigint,
    response    jsonb,
    answered_by text,
    answered_at timestamptz,
    decided_seq bigint,
    request_id  text collate "C",
    superseded  boolean not null default false,
    constraint human_requests_pkey primary key (run_id, node_id, iteration, seq)
);
create index human_requests_due_idx on smithers.human_requests (due_at)
    where due_at is not null and decided_seq is null and expired_seq is null and not superseded;

create table smithers.signals (
    run_id             text collate "C" not null,
    seq                bigint not null,
    name               text collate "C" not null,
    payload            jsonb,
    request_id         text collate "C",
    sent_at            timestamptz not null,
    consumed_seq       bigint,
    consumed_node_id   text collate "C",
    consumed_iteration integer,
    constraint signals_pkey primary key (run_id, seq)
);
create unique index signals_request_id_key on smithers.signals (run_id, request_id) where request_id is not null;
create index signals_inbox_idx on smithers.signals (run_id, seq) where consumed_seq is null;

create table smithers.timers (
    run_id     text collate "C" not null,
    node_id    text collate "C" not null,
    iteration  integer not null,
    seq        bigint not null,
    opened_at  timestamptz not null,
    due_at     timestamptz not null,
    fired_seq  bigint,
    fired_at   timestamptz,
    superseded boolean not null default false,
    constraint timers_pkey primary key (run_id, node_id, iteration, seq)
);
create index timers_due_idx on smithers.timers (due_at) where fired_seq is null and not superseded;

-- ───────────────────────────── outputs ─────────────────────────────

-- Which table holds which shape of which model; the tables outputs_* are made by register_outputs only.
create table smithers.output_tables (
    name       text collate "C" not null,
    shape      text collate "C" not null,
    table_name text collate "C" not null,
    fields     jsonb not null,
    created_at timestamptz not null,
    constraint output_tables_pkey primary key (name, shape)
);

create table smithers.outputs_archive (
    run_id       text collate "C" not null,
    node_id      text collate "C" not null,
    iteration    integer not null,
    seq          bigint not null,
    attempt      integer not null,
    claim_id     uuid,
    output_table text collate "C" not null,
    body         jsonb not null,
    archived_seq bigint not null,
    constraint outputs_archive_pkey primary key (run_id, node_id, iteration, seq)
);

create table smithers.sources (
    source_hash text collate "C" not null,
    manifest    jsonb not null,
    body        bytea not null,
    created_at  timestamptz not null,
    constraint sources_pkey primary key (source_hash)
);
alter table smithers.sources alter column body set storage external;

create table smithers.cache (
    key          text collate "C" not null,
    output_table text collate "C" not null,
    body         jsonb not null,
    run_id       text collate "C" not null,
    node_id      text collate "C" not null,
    iteration    integer not null,
    created_at   timestamptz not null,
    expires_at   timestamptz,
    constraint cache_pkey primary key (key)
);

-- ───────────────────────────── workspace ─────────────────────────────

create table smithers.workspace_states (
    run_id      text collate "C" not null,
    worktree    text collate "C" not null,
    host        text not null,
    path        text not null,
    repository  text,
    base_commit text,
    node_id     text collate "C",
    iteration   integer,
    attempt     integer,
    claim_id    uuid,
    updated_at  timestamptz not null,
    constraint workspace_states_pkey primary key (run_id, worktree, host)
);

create table smithers.workspace_checkpoints (
    run_id      text collate "C" not null,
    node_id     text collate "C" not null,
    iteration   integer not null,
    attempt     integer not null,
    number      integer not null,
    seq         bigint,
    worktree    text collate "C" not null,
    commit_id   text not null,
    tree_id     text not null,
    tier        smallint not null,
    source      text collate "C" not null,
    label       text,
    tool_use_id text,
    of_attempt  integer,
    claim_id    uuid not null,
    created_at  timestamptz not null,
    constraint workspace_checkpoints_pkey primary key (run_id, node_id, iteration, attempt, number),
    constraint workspace_checkpoints_source_check check (source in ('watch', 'hook', 'wrap', 'recovery', 'final', 'manual'))
);

create table smithers.workspace_gaps (
    run_id     text collate "C" not null,
    node_id    text collate "C" not null,
    iteration  integer not null,
    attempt    integer not null,
    number     integer not null,
    seq        bigint,
    reason     text not null,
    detail     jsonb not null default '{}',
    claim_id   uuid not null,
    created_at timestamptz not null,
    constraint workspace_gaps_pkey primary key (run_id, node_id, iteration, attempt, number)
);

create table smithers.workspace_packs (
    repository  text collate "C" not null,
    commit_id   text collate "C" not null,
    base_commit text collate "C",
    keyframe    boolean not null,
    run_id      text collate "C",
    node_id     text collate "C",
    iteration   integer,
    attempt     integer,
    number      integer,
    size_bytes  bigint not null,
    body        bytea not null,
    created_at  timestamptz not null,
    constraint workspace_packs_pkey primary key (repository, commit_id)
);
alter table smithers.workspace_packs alter column body set storage external;

-- ───────────────────────────── effects, intents, schedules ─────────────────────────────

create table smithers.effects (
    run_id          text collate "C" not null,
    node_id         text collate "C" not null,
    iteration       integer not null,
    attempt         integer not null,
    number          integer not null,
    seq             bigint not null,
    name            text not null,
    idempotency_key text,
    claim_id        uuid not null,
    payload         jsonb not null default '{}',
    created_at      timestamptz not null,
    constraint effects_pkey primary key (run_id, node_id, iteration, attempt, number)
);

create table smithers.intents (
    id         bigint generated always as identity,
    kind       text collate "C" not null,
    run_id     text collate "C",
    owner      bigint,
    body       jsonb not null,
    created_at timestamptz not null,
    done_at    timestamptz,
    constraint intents_pkey primary key (id)
);

create table smithers.schedules (
    name         text collate "C" not null,
    workflow     text not null,
    path         text not null,
    source_hash  text collate "C",
    input        jsonb not null default '{}',
    expression   text not null,
    time_zone    text not null default 'UTC',
    catch_up     text collate "C" not null default 'one',
    next_at      timestamptz,
    last_nominal timestamptz,
    paused       boolean not null default false,
    created_at   timestamptz not null,
    constraint schedules_pkey primary key (name),
    constraint schedules_catch_up_check check (catch_up in ('none', 'one', 'all'))
);
create index schedules_due_idx on smithers.schedules (next_at) where next_at is not null and not paused;

-- ───────────────────────────── views ─────────────────────────────

-- Nodes as people see them: `in-progress` is derived from the lease, never stored.
create view smithers.node_view as
select n.run_id, n.node_id, n.iteration,
       case when l.run_id is not null then 'in-progress' else n.state end as state,
       n.kind, n.last_attempt, n.failures, n.abandoned, n.due_at, n.output_table, n.frame_no, n.error, n.detail,
       l.attempt as current_attempt, l.owner, l.started_at, l.heartbeat_at, l.lease_until,
       l.run_id is not null and l.lease_until < smithers.now() as stale
from smithers.nodes n
left join smithers.leases l using (run_id, node_id, iteration);
