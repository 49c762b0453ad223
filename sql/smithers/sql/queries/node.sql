-- One node in one pass, the last one unless it is named: its row of node_view, how many passes there are, what it waits
-- for with their states, and what was to be done (its descriptor).
with chosen as (
    select v.* from smithers.node_view v
     where v.run_id = %(run_id)s and v.node_id = %(node_id)s
       and (%(iteration)s::integer is null or v.iteration = %(iteration)s::integer)
     order by v.iteration desc limit 1)
select jsonb_build_object(
           'node', to_jsonb(c),
           'passes', (select count(*) from smithers.nodes n where n.run_id = c.run_id and n.node_id = c.node_id),
           'upstream', (select coalesce(jsonb_agg(jsonb_build_object(
                                   'node_id', u.node_id, 'iteration', u.iteration, 'state', u.state)
                                   order by u.node_id, u.iteration), '[]')
                          from smithers.nodes n
                         cross join lateral jsonb_array_elements(coalesce(n.upstream, '[]')) e
                          join smithers.node_view u on u.run_id = n.run_id and u.node_id = e->>0
                               and u.iteration = (e->>1)::integer
                         where n.run_id = c.run_id and n.node_id = c.node_id and n.iteration = c.iteration),
           'descriptor', (select d.body from smithers.nodes n
                            join smithers.descriptors d on d.run_id = n.run_id and d.hash = n.descriptor_hash
                           where n.run_id = c.run_id and n.node_id = c.node_id and n.iteration = c.iteration))
  from chosen c
