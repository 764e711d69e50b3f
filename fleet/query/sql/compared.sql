-- compared: of each device the steady dumps of one uptime, so that builds are compared at like
-- uptime: from half of the limit to the limit. The limit is the uptime that half of the devices of
-- each build have reached. share is the weight of a dump in the mean of its device, number stands for the device.
with
longest as (select build, device, max(uptime_us) as uptime from steady group by build, device),
limits as (
  select min(most) as most from (select build, p50(uptime) as most from longest group by build) b)
select dense_rank() over (order by s.build, device) as number, s.build as build, device, boot, dump, q, 1.0 / count(*) over (partition by s.build, device) as share, most / 3.6e9 as hours
from steady s cross join limits
where most < 0 or uptime_us <= most and uptime_us > most / 2
