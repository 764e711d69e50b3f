-- top: the call paths of a build by the mean of the bytes in the devices' last steady dumps.
with
last as (
  select device, max_by(boot, [boot, dump]) as boot, max_by(dump, [boot, dump]) as dump, max_by(q, [boot, dump]) as q from steady group by device),
fleet as (select count(*) as examined from last)
select f.path as path, max(examined) as examined, count(*) as devices, sum(f.bytes / q) / max(examined) as mean,
  p50(f.bytes / q) as median_held, p95(f.bytes / q) as p95_held, sum(f.count / q) / max(examined) as blocks
from facts f join last l on f.device = l.device and f.boot = l.boot and f.dump = l.dump
cross join fleet
group by f.path
order by mean desc, path
