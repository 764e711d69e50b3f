-- growth: what the call paths of a device hold in its first and its last steady dump, those that
-- differ most first.
with
ends as (
  select min_by(boot, received) as boot1, min_by(dump, received) as dump1, min_by(q, received) as q1,
    max_by(boot, received) as boot2, max_by(dump, received) as dump2, max_by(q, received) as q2
  from steady)
select path, max(f.build) as build,
  sum(case when f.boot = boot1 and f.dump = dump1 then f.bytes / q1 else 0 end) as bytes1,
  sum(case when f.boot = boot2 and f.dump = dump2 then f.bytes / q2 else 0 end) as bytes2
from facts f cross join ends
where (f.boot = boot1 and f.dump = dump1) or (f.boot = boot2 and f.dump = dump2)
group by path
order by bytes2 - bytes1 desc, path
