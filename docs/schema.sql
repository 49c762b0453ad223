-- The tables as they are after all migrations. Written by `make schema`; don't edit it.
-- It is here so that a review shows what a migration does.

CREATE SCHEMA smithers;

CREATE FUNCTION smithers.now() RETURNS timestamp with time zone
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ select statement_timestamp()
     + coalesce(nullif(current_setting('smithers.clock_offset', true), ''), '0')::interval $$;

CREATE TABLE smithers.run_state (
    run_id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    priority integer DEFAULT 0 NOT NULL,
    owner bigint,
    epoch bigint DEFAULT 0 NOT NULL,
    claim_id uuid,
    claimed_at timestamp with time zone,
    progressed_at timestamp with time zone,
    resumes integer DEFAULT 0 NOT NULL,
    wanted_seq bigint DEFAULT 0 NOT NULL,
    rendered_seq bigint DEFAULT 0 NOT NULL,
    dirty boolean GENERATED ALWAYS AS ((wanted_seq > rendered_seq)) STORED NOT NULL,
    dirty_since timestamp with time zone,
    next_event_seq bigint DEFAULT 1 NOT NULL,
    frame_no integer DEFAULT 0 NOT NULL,
    last_rank bigint DEFAULT 0 NOT NULL,
    pause_requested_at timestamp with time zone,
    cancel_requested_at timestamp with time zone,
    ended_at timestamp with time zone,
    error jsonb,
    CONSTRAINT run_state_status_check CHECK ((status = ANY (ARRAY['running'::text, 'waiting-approval'::text, 'waiting-event'::text, 'waiting-quota'::text, 'waiting-timer'::text, 'paused'::text, 'finished'::text, 'failed'::text, 'cancelled'::text, 'continued'::text])))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='2000');

CREATE TABLE smithers.leases (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    attempt integer NOT NULL,
    claim_id uuid NOT NULL,
    owner bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    lease_until timestamp with time zone NOT NULL,
    heartbeat_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    start_logged boolean DEFAULT false NOT NULL,
    beat jsonb,
    CONSTRAINT leases_beat_check CHECK (((beat IS NULL) OR (pg_column_size(beat) <= 8192)))
)
WITH (fillfactor='60', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='2000');

CREATE TABLE smithers.approvals (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    seq bigint NOT NULL,
    title text NOT NULL,
    summary text,
    digest text,
    nonce uuid DEFAULT gen_random_uuid() NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    expired_seq bigint,
    decision text COLLATE pg_catalog."C",
    decided_by text,
    note text,
    decided_at timestamp with time zone,
    decided_seq bigint,
    request_id text COLLATE pg_catalog."C",
    superseded boolean DEFAULT false NOT NULL,
    CONSTRAINT approvals_decision_check CHECK ((decision = ANY (ARRAY['approved'::text, 'denied'::text])))
);

CREATE TABLE smithers.attempts (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    attempt integer NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    origin text DEFAULT 'worker'::text NOT NULL COLLATE pg_catalog."C",
    claim_id uuid,
    owner bigint,
    claimed_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    error jsonb,
    response jsonb,
    agent text,
    session jsonb,
    usage jsonb,
    vcs_pointer text,
    cwd text,
    heartbeat_data jsonb,
    seq bigint,
    CONSTRAINT attempts_origin_check CHECK ((origin = ANY (ARRAY['worker'::text, 'static'::text, 'cache'::text, 'fork'::text, 'manual'::text]))),
    CONSTRAINT attempts_state_check CHECK ((state = ANY (ARRAY['in-progress'::text, 'finished'::text, 'failed'::text, 'cancelled'::text, 'abandoned'::text, 'released'::text, 'parked'::text])))
)
WITH (fillfactor='55');

CREATE TABLE smithers.cache (
    key text NOT NULL COLLATE pg_catalog."C",
    output_table text NOT NULL COLLATE pg_catalog."C",
    body jsonb NOT NULL,
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone
);

CREATE TABLE smithers.descriptors (
    run_id text NOT NULL COLLATE pg_catalog."C",
    hash bytea NOT NULL,
    body jsonb NOT NULL
);

CREATE TABLE smithers.effects (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    attempt integer NOT NULL,
    number integer NOT NULL,
    seq bigint NOT NULL,
    name text NOT NULL,
    idempotency_key text,
    claim_id uuid NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE smithers.events (
    run_id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    node_id text COLLATE pg_catalog."C",
    iteration integer,
    attempt integer,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL
);

CREATE TABLE smithers.frames (
    run_id text NOT NULL COLLATE pg_catalog."C",
    frame_no integer NOT NULL,
    upto_seq bigint NOT NULL,
    base_frame_no integer,
    body jsonb,
    trigger text,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE smithers.human_requests (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    seq bigint NOT NULL,
    prompt text NOT NULL,
    schema jsonb,
    opened_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    expired_seq bigint,
    response jsonb,
    answered_by text,
    answered_at timestamp with time zone,
    decided_seq bigint,
    request_id text COLLATE pg_catalog."C",
    superseded boolean DEFAULT false NOT NULL
);

CREATE TABLE smithers.intents (
    id bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    run_id text COLLATE pg_catalog."C",
    owner bigint,
    body jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    done_at timestamp with time zone
);

ALTER TABLE smithers.intents ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME smithers.intents_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE smithers.migrations (
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    breaking boolean NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE smithers.nodes (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    last_attempt integer DEFAULT 0 NOT NULL,
    claim_id uuid,
    failures integer DEFAULT 0 NOT NULL,
    abandoned integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    output_table text COLLATE pg_catalog."C",
    frame_no integer NOT NULL,
    upstream jsonb,
    descriptor_hash bytea,
    error jsonb,
    detail jsonb,
    CONSTRAINT nodes_kind_check CHECK ((kind = ANY (ARRAY['agent'::text, 'compute'::text, 'static'::text, 'approval'::text, 'human'::text, 'event'::text, 'timer'::text, 'loop'::text, 'workflow'::text]))),
    CONSTRAINT nodes_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'ready'::text, 'finished'::text, 'failed'::text, 'skipped'::text, 'cancelled'::text, 'waiting-approval'::text, 'waiting-event'::text, 'waiting-timer'::text, 'waiting-quota'::text])))
)
WITH (fillfactor='55');

CREATE VIEW smithers.node_view AS
 SELECT n.run_id,
    n.node_id,
    n.iteration,
        CASE
            WHEN (l.run_id IS NOT NULL) THEN 'in-progress'::text
            ELSE n.state
        END AS state,
    n.kind,
    n.last_attempt,
    n.failures,
    n.abandoned,
    n.due_at,
    n.output_table,
    n.frame_no,
    n.error,
    n.detail,
    l.attempt AS current_attempt,
    l.owner,
    l.started_at,
    l.heartbeat_at,
    l.lease_until,
    ((l.run_id IS NOT NULL) AND (l.lease_until < smithers.now())) AS stale
   FROM (smithers.nodes n
     LEFT JOIN smithers.leases l USING (run_id, node_id, iteration));

CREATE TABLE smithers.output_tables (
    name text NOT NULL COLLATE pg_catalog."C",
    shape text NOT NULL COLLATE pg_catalog."C",
    table_name text NOT NULL COLLATE pg_catalog."C",
    fields jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE smithers.outputs_archive (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    seq bigint NOT NULL,
    attempt integer NOT NULL,
    claim_id uuid,
    output_table text NOT NULL COLLATE pg_catalog."C",
    body jsonb NOT NULL,
    archived_seq bigint NOT NULL
);

CREATE TABLE smithers.processes (
    id bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL,
    pid integer NOT NULL,
    uuid uuid NOT NULL,
    name text,
    queues text[],
    version text,
    protocol integer DEFAULT 1 NOT NULL,
    started_at timestamp with time zone NOT NULL,
    heartbeat_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    stopped_at timestamp with time zone,
    details jsonb DEFAULT '{}'::jsonb NOT NULL
)
WITH (fillfactor='60');

ALTER TABLE smithers.processes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME smithers.processes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE smithers.protocols (
    protocol integer NOT NULL,
    checksum text NOT NULL,
    release integer[] NOT NULL,
    installed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE smithers.queues (
    name text NOT NULL COLLATE pg_catalog."C",
    max_concurrency integer,
    rate_limit integer,
    rate_seconds integer,
    paused boolean DEFAULT false NOT NULL,
    CONSTRAINT queues_max_concurrency_check CHECK ((max_concurrency >= 0))
);

CREATE TABLE smithers.quota (
    provider text NOT NULL COLLATE pg_catalog."C",
    account text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    reset_at timestamp with time zone,
    parked integer DEFAULT 0 NOT NULL,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE smithers.ready_tasks (
    id bigint NOT NULL,
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    attempt integer NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    priority integer DEFAULT 0 NOT NULL,
    rank bigint NOT NULL,
    ready_at timestamp with time zone NOT NULL,
    alone boolean DEFAULT false NOT NULL,
    limit_key text COLLATE pg_catalog."C",
    descriptor_hash bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='2000');

ALTER TABLE smithers.ready_tasks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME smithers.ready_tasks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE smithers.runs (
    run_id text NOT NULL COLLATE pg_catalog."C",
    workflow text NOT NULL,
    path text NOT NULL,
    source_hash text NOT NULL COLLATE pg_catalog."C",
    pinned boolean DEFAULT true NOT NULL,
    input jsonb NOT NULL,
    config jsonb DEFAULT '{}'::jsonb NOT NULL,
    vcs_type text,
    vcs_root text,
    vcs_revision text,
    parent_run_id text COLLATE pg_catalog."C",
    parent_node_id text COLLATE pg_catalog."C",
    parent_iteration integer,
    depth integer DEFAULT 0 NOT NULL,
    fork_run_id text COLLATE pg_catalog."C",
    fork_frame_no integer,
    request_id text COLLATE pg_catalog."C",
    tags jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT runs_run_id_check CHECK (((octet_length(run_id) >= 1) AND (octet_length(run_id) <= 64)))
);

CREATE TABLE smithers.schedules (
    name text NOT NULL COLLATE pg_catalog."C",
    workflow text NOT NULL,
    path text NOT NULL,
    source_hash text COLLATE pg_catalog."C",
    input jsonb DEFAULT '{}'::jsonb NOT NULL,
    expression text NOT NULL,
    time_zone text DEFAULT 'UTC'::text NOT NULL,
    catch_up text DEFAULT 'one'::text NOT NULL COLLATE pg_catalog."C",
    next_at timestamp with time zone,
    last_nominal timestamp with time zone,
    paused boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT schedules_catch_up_check CHECK ((catch_up = ANY (ARRAY['none'::text, 'one'::text, 'all'::text])))
);

CREATE TABLE smithers.signals (
    run_id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    payload jsonb,
    request_id text COLLATE pg_catalog."C",
    sent_at timestamp with time zone NOT NULL,
    consumed_seq bigint,
    consumed_node_id text COLLATE pg_catalog."C",
    consumed_iteration integer
);

CREATE TABLE smithers.sources (
    source_hash text NOT NULL COLLATE pg_catalog."C",
    manifest jsonb NOT NULL,
    body bytea NOT NULL,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY smithers.sources ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE smithers.steps (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    attempt integer NOT NULL,
    claim_id uuid NOT NULL,
    seq bigint NOT NULL,
    value jsonb,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE smithers.timers (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    seq bigint NOT NULL,
    opened_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    fired_seq bigint,
    fired_at timestamp with time zone,
    superseded boolean DEFAULT false NOT NULL
);

CREATE TABLE smithers.workspace_checkpoints (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    attempt integer NOT NULL,
    number integer NOT NULL,
    seq bigint,
    worktree text NOT NULL COLLATE pg_catalog."C",
    commit_id text NOT NULL,
    tree_id text NOT NULL,
    tier smallint NOT NULL,
    source text NOT NULL COLLATE pg_catalog."C",
    label text,
    tool_use_id text,
    of_attempt integer,
    claim_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT workspace_checkpoints_source_check CHECK ((source = ANY (ARRAY['watch'::text, 'hook'::text, 'wrap'::text, 'recovery'::text, 'final'::text, 'manual'::text])))
);

CREATE TABLE smithers.workspace_gaps (
    run_id text NOT NULL COLLATE pg_catalog."C",
    node_id text NOT NULL COLLATE pg_catalog."C",
    iteration integer NOT NULL,
    attempt integer NOT NULL,
    number integer NOT NULL,
    seq bigint,
    reason text NOT NULL,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL,
    claim_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE smithers.workspace_packs (
    repository text NOT NULL COLLATE pg_catalog."C",
    commit_id text NOT NULL COLLATE pg_catalog."C",
    base_commit text COLLATE pg_catalog."C",
    keyframe boolean NOT NULL,
    run_id text COLLATE pg_catalog."C",
    node_id text COLLATE pg_catalog."C",
    iteration integer,
    attempt integer,
    number integer,
    size_bytes bigint NOT NULL,
    body bytea NOT NULL,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE ONLY smithers.workspace_packs ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE smithers.workspace_states (
    run_id text NOT NULL COLLATE pg_catalog."C",
    worktree text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL,
    path text NOT NULL,
    repository text,
    base_commit text,
    node_id text COLLATE pg_catalog."C",
    iteration integer,
    attempt integer,
    claim_id uuid,
    updated_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY smithers.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (run_id, node_id, iteration, seq);

ALTER TABLE ONLY smithers.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (run_id, node_id, iteration, attempt);

ALTER TABLE ONLY smithers.cache
    ADD CONSTRAINT cache_pkey PRIMARY KEY (key);

ALTER TABLE ONLY smithers.descriptors
    ADD CONSTRAINT descriptors_pkey PRIMARY KEY (run_id, hash);

ALTER TABLE ONLY smithers.effects
    ADD CONSTRAINT effects_pkey PRIMARY KEY (run_id, node_id, iteration, attempt, number);

ALTER TABLE ONLY smithers.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (run_id, seq);

ALTER TABLE ONLY smithers.frames
    ADD CONSTRAINT frames_pkey PRIMARY KEY (run_id, frame_no);

ALTER TABLE ONLY smithers.human_requests
    ADD CONSTRAINT human_requests_pkey PRIMARY KEY (run_id, node_id, iteration, seq);

ALTER TABLE ONLY smithers.intents
    ADD CONSTRAINT intents_pkey PRIMARY KEY (id);

ALTER TABLE ONLY smithers.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (run_id, node_id, iteration);

ALTER TABLE ONLY smithers.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);

ALTER TABLE ONLY smithers.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (run_id, node_id, iteration);

ALTER TABLE ONLY smithers.output_tables
    ADD CONSTRAINT output_tables_pkey PRIMARY KEY (name, shape);

ALTER TABLE ONLY smithers.outputs_archive
    ADD CONSTRAINT outputs_archive_pkey PRIMARY KEY (run_id, node_id, iteration, seq);

ALTER TABLE ONLY smithers.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY smithers.processes
    ADD CONSTRAINT processes_uuid_key UNIQUE (uuid);

ALTER TABLE ONLY smithers.protocols
    ADD CONSTRAINT protocols_pkey PRIMARY KEY (protocol);

ALTER TABLE ONLY smithers.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);

ALTER TABLE ONLY smithers.quota
    ADD CONSTRAINT quota_pkey PRIMARY KEY (provider, account);

ALTER TABLE ONLY smithers.ready_tasks
    ADD CONSTRAINT ready_tasks_key UNIQUE (run_id, node_id, iteration);

ALTER TABLE ONLY smithers.ready_tasks
    ADD CONSTRAINT ready_tasks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY smithers.run_state
    ADD CONSTRAINT run_state_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY smithers.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run_id);

ALTER TABLE ONLY smithers.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (name);

ALTER TABLE ONLY smithers.signals
    ADD CONSTRAINT signals_pkey PRIMARY KEY (run_id, seq);

ALTER TABLE ONLY smithers.sources
    ADD CONSTRAINT sources_pkey PRIMARY KEY (source_hash);

ALTER TABLE ONLY smithers.steps
    ADD CONSTRAINT steps_pkey PRIMARY KEY (run_id, node_id, iteration, name);

ALTER TABLE ONLY smithers.timers
    ADD CONSTRAINT timers_pkey PRIMARY KEY (run_id, node_id, iteration, seq);

ALTER TABLE ONLY smithers.workspace_checkpoints
    ADD CONSTRAINT workspace_checkpoints_pkey PRIMARY KEY (run_id, node_id, iteration, attempt, number);

ALTER TABLE ONLY smithers.workspace_gaps
    ADD CONSTRAINT workspace_gaps_pkey PRIMARY KEY (run_id, node_id, iteration, attempt, number);

ALTER TABLE ONLY smithers.workspace_packs
    ADD CONSTRAINT workspace_packs_pkey PRIMARY KEY (repository, commit_id);

ALTER TABLE ONLY smithers.workspace_states
    ADD CONSTRAINT workspace_states_pkey PRIMARY KEY (run_id, worktree, host);

CREATE INDEX approvals_due_idx ON smithers.approvals USING btree (due_at) WHERE ((due_at IS NOT NULL) AND (decided_seq IS NULL) AND (expired_seq IS NULL) AND (NOT superseded));

CREATE INDEX human_requests_due_idx ON smithers.human_requests USING btree (due_at) WHERE ((due_at IS NOT NULL) AND (decided_seq IS NULL) AND (expired_seq IS NULL) AND (NOT superseded));

CREATE INDEX leases_owner_idx ON smithers.leases USING btree (owner);

CREATE INDEX nodes_due_idx ON smithers.nodes USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX ready_tasks_alone_idx ON smithers.ready_tasks USING btree (queue, priority DESC, rank, id) WHERE alone;

CREATE INDEX ready_tasks_claim_idx ON smithers.ready_tasks USING btree (queue, priority DESC, rank, id) WHERE (NOT alone);

CREATE INDEX run_state_dirty_idx ON smithers.run_state USING btree (priority DESC, dirty_since) WHERE dirty;

CREATE INDEX runs_created_at_idx ON smithers.runs USING btree (created_at);

CREATE UNIQUE INDEX runs_request_id_key ON smithers.runs USING btree (request_id) WHERE (request_id IS NOT NULL);

CREATE INDEX schedules_due_idx ON smithers.schedules USING btree (next_at) WHERE ((next_at IS NOT NULL) AND (NOT paused));

CREATE INDEX signals_inbox_idx ON smithers.signals USING btree (run_id, seq) WHERE (consumed_seq IS NULL);

CREATE UNIQUE INDEX signals_request_id_key ON smithers.signals USING btree (run_id, request_id) WHERE (request_id IS NOT NULL);

CREATE INDEX timers_due_idx ON smithers.timers USING btree (due_at) WHERE ((fired_seq IS NULL) AND (NOT superseded));
