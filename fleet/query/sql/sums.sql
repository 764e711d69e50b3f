-- sums: what the devices hold of each path in their compared dumps.
select build, path, arrayStringConcat(groupArray(device), ' ') as devices, toString(groupArray(held)) as helds
from (
  select f.device as device, c.build as build, f.path as path, sum(f.bytes / c.weight) as held
  from facts f join compared c on c.device = f.device and c.boot = f.boot and c.dump = f.dump
  group by f.device, c.build, f.path) h
group by build, path
