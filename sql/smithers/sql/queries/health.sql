-- What is asked of any Postgres, with or without our tables, as any role: its clock with our offset (seconds since 1970,
-- taken while this runs), version, connections and their limit, whether commits survive a crash, whether it can be written.
select jsonb_build_object(
    'now', extract(epoch from clock_timestamp()
               + coalesce(nullif(current_setting('smithers.clock_offset', true), ''), '0')::interval)::double precision,
    'version', current_setting('server_version_num')::integer,
    'max_connections', current_setting('max_connections')::integer,
    'connections', (select coalesce(sum(d.numbackends), 0)::integer from pg_stat_database d),
    'fsync', current_setting('fsync'),
    'full_page_writes', current_setting('full_page_writes'),
    'synchronous_commit', current_setting('synchronous_commit'),
    'read_only', current_setting('transaction_read_only') = 'on',
    'in_recovery', pg_is_in_recovery())
