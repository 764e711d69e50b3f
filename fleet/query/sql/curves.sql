-- curves: of each chosen path, the bytes that the devices of the build hold, by the 24th part of the longest uptime, and by day.
select path, daily, slot, p05(held) as low, p50(held) as median, p95(held) as high, count(distinct device) as devices
from (
  select path, device, held, 0 as daily, least(23, floor(24.0 * uptime_us / longest))::bigint as slot from held where uptime_us >= 0 and longest > 0
  union all
  select path, device, held, 1 as daily, since_first::bigint as slot from held) h
group by path, daily, slot
order by path, daily, slot
