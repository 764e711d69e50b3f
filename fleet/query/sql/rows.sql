-- rows: what the version of a build is computed from.
select build, count(*) as n, cast(max(received) as varchar) as last_at from dumps group by build
union all
select build, count(*) as n, '' as last_at from frames group by build
