-- How many living processes there are of each kind and release.
select jsonb_build_object('kind', p.kind, 'version', p.version, 'processes', count(*))
  from smithers.processes p
 where p.stopped_at is null and p.lease_until >= smithers.now()
 group by p.kind, p.version
 order by p.kind, p.version
