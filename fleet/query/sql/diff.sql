-- diff: the bytes per device of each call path in the builds 'before' and 'after', and at how
-- many devices they exceed the percentiles 50, 90, 95, 97.5 and 99 of the devices of both builds.
with
devices as (select number, max(build) as build from compared group by number),
sizes as (
  select sum(case when build = 'BEFORE' then 1 else 0 end) as n1, sum(case when build = 'AFTER' then 1 else 0 end) as n2 from devices),
held as (
  select number, f.path as path, sum(f.bytes / q * share) as bytes
  from facts f join compared c on c.device = f.device and c.boot = f.boot and c.dump = f.dump
  group by number, f.path),
-- rounded: a sum in another order must not be on the other side of a limit
found as (
  select key_number, h.number as number, floor(sum(h.bytes) * 1000 + 0.5) / 1000 as bytes
  from held h
  join devices d on d.number = h.number
  join keys k on k.build = d.build and k.path = h.path
  group by key_number, h.number),
-- a device without the path holds 0
grid as (
  select a.key_number as key_number, d.build as build, coalesce(f.bytes, 0) as bytes
  from (select distinct key_number from found) a cross join devices d
  left join found f on f.key_number = a.key_number and f.number = d.number),
limits as (
  select key_number, lower50(bytes) as t50, lower90(bytes) as t90, lower95(bytes) as t95, lower98(bytes) as t98, lower99(bytes) as t99 from grid group by key_number),
counts as (
  select g.key_number as key_number,
    sum(case when build = 'BEFORE' then bytes else 0 end) as bytes1, sum(case when build = 'AFTER' then bytes else 0 end) as bytes2,
    sum(case when build = 'BEFORE' and bytes > 0 then 1 else 0 end) as with1, sum(case when build = 'AFTER' and bytes > 0 then 1 else 0 end) as with2,
    sum(case when build = 'BEFORE' and bytes > t50 then 1 else 0 end) as a50, sum(case when build = 'AFTER' and bytes > t50 then 1 else 0 end) as b50,
    sum(case when build = 'BEFORE' and bytes > t90 then 1 else 0 end) as a90, sum(case when build = 'AFTER' and bytes > t90 then 1 else 0 end) as b90,
    sum(case when build = 'BEFORE' and bytes > t95 then 1 else 0 end) as a95, sum(case when build = 'AFTER' and bytes > t95 then 1 else 0 end) as b95,
    sum(case when build = 'BEFORE' and bytes > t98 then 1 else 0 end) as a98, sum(case when build = 'AFTER' and bytes > t98 then 1 else 0 end) as b98,
    sum(case when build = 'BEFORE' and bytes > t99 then 1 else 0 end) as a99, sum(case when build = 'AFTER' and bytes > t99 then 1 else 0 end) as b99
  from grid g join limits l on g.key_number = l.key_number group by g.key_number)
select p.key as key, n1, n2, bytes1 / greatest(n1, 1) as mean1, bytes2 / greatest(n2, 1) as mean2, with1, with2, a50, b50, a90, b90, a95, b95, a98, b98, a99, b99,
  path1, path2
from counts c cross join sizes
join (select key_number, max(key) as key, max(case when build = 'BEFORE' then path else -1 end) as path1, max(case when build = 'AFTER' then path else -1 end) as path2
  from keys group by key_number) p on p.key_number = c.key_number
order by mean2 - mean1 desc, p.key
