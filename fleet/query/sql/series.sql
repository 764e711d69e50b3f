-- series: the values of each path of each device: the numbers of the dumps that have it, its blocks
-- and its bytes there. A path that is equal in all dumps of a device is left out.
with
sizes as (select number, count(*) as dumps from numbered group by number),
paths_of as (
  select d.number as number, f.path as path, collected(n) as places, collected(f.count) as blocks, collected(f.bytes) as held,
    count(*) as facts, max(f.count) - min(f.count) + max(f.bytes) - min(f.bytes) as range
  from facts f join numbered d on f.device = d.device and f.boot = d.boot and f.dump = d.dump
  group by d.number, f.path)
select p.number as number, path, places, blocks, held
from paths_of p join sizes s on p.number = s.number
where facts < dumps or range > 0
order by p.number, path
