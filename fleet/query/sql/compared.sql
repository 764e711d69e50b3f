-- compared: of each device of two builds the steady dumps that are compared. Like uptime: from half of
-- the limit to the limit, which half of the devices of each build have reached. Like number: the last
-- ones, as many as half of the devices of each build have. The value of a device is the sum
-- of its bytes divided by weight.
with
longest as (select build, device, max(uptime_us) as uptime from steady group by build, device),
limits as (
  select min(most) as most from (select build, p50(uptime) as most from longest group by build) b),
alike as (
  select s.build as build, device, boot, dump, q, most / 3.6e9 as hours,
    row_number() over (partition by s.build, device order by boot desc, dump desc) as nth
  from steady s cross join limits
  where most < 0 or uptime_us <= most and uptime_us > most / 2),
counts as (
  select min(most) as at_most from (
    select build, p50(n) as most from (select build, device, count(*) as n from alike group by build, device) a group by build) b)
select device, boot, dump, build, q * count(*) over (partition by build, device) as weight, hours
from alike a cross join counts c
where nth <= at_most
order by device, boot, dump
