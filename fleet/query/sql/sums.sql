-- sums: what the devices hold of each path in their compared dumps, in thousandths of a byte: whole numbers are read faster.
select path, toString(groupArray(n)) as devices, toString(groupArray(cast(floor(1000 * held + 0.5) as bigint))) as helds
from (
  select c.n as n, f.path as path, sum(f.bytes / c.weight) as held
  from facts f join compared c on c.device = f.device and c.boot = f.boot and c.dump = f.dump
  group by c.n, f.path) h
group by path
