-- compared: of each device of two builds the steady dumps that are compared. Like uptime: from half of
-- the limit to the limit, which half of the devices of each build have reached. A device that ran both builds and reached
-- less with one is compared up to that: in sixteenths of the limit, since the times between dumps must not make one of
-- the uptimes longer. Like number: the last ones, as many as half of the devices of each build have. The value of a
-- device is the sum of its bytes divided by weight. n is the number of the device and the build.
with
longest as (select build, device, max(uptime_us) as uptime from steady group by build, device),
limits as (
  select min(most) as most from (select build, p50(uptime) as most from longest group by build) b),
own as (
  select device, max(most) * case when count(*) = 2 then floor(16 * min(uptime) / max(most)) / 16 else 1 end as uptime
  from longest cross join limits group by device),
alike as (
  select s.build as build, s.device as device, boot, dump, q, most / 3.6e9 as hours,
    row_number() over (partition by s.build, s.device order by boot desc, dump desc) as nth
  from steady s join own on own.device = s.device cross join limits
  where most < 0 or uptime_us > most / 2 and uptime_us <= most and (uptime_us <= own.uptime or own.uptime <= most / 2)),
counts as (
  select min(most) as at_most from (
    select build, p50(n) as most from (select build, device, count(*) as n from alike group by build, device) a group by build) b)
select dense_rank() over (order by device, build) as n, device, boot, dump, build, q * count(*) over (partition by build, device) as weight, hours
from alike a cross join counts c
where nth <= at_most
