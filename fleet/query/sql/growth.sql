-- growth: what the call paths of a device hold in the first and the last steady dump of its last build, those
-- that differ most first.
with
ends as (
  select min_by(boot, [boot, dump]) as boot1, min_by(dump, [boot, dump]) as dump1, min_by(q, [boot, dump]) as q1,
    max_by(boot, [boot, dump]) as boot2, max_by(dump, [boot, dump]) as dump2, max_by(q, [boot, dump]) as q2
  from steady
  where build = (select max_by(build, [boot, dump]) from steady))
select path, max(f.build) as build,
  sum(case when f.boot = boot1 and f.dump = dump1 then f.bytes / q1 else 0 end) as bytes1,
  sum(case when f.boot = boot2 and f.dump = dump2 then f.bytes / q2 else 0 end) as bytes2
from facts f cross join ends
where (f.boot = boot1 and f.dump = dump1) or (f.boot = boot2 and f.dump = dump2)
group by path
order by bytes2 - bytes1 desc, path
