-- curves: of each chosen path, the bytes that the devices of the build hold, by the 24th part of the longest uptime (axis 0), and by
-- day (1).
select path, axis, slot, p05(held) as low, p50(held) as median, p95(held) as high, count(distinct device) as devices
from (
  select path, device, held, 0 as axis, least(23, floor(24.0 * uptime_us / longest))::bigint as slot from held where uptime_us >= 0 and longest > 0
  union all
  select path, device, held, 1 as axis, (floor(at_us / 8.64e10) - floor(begin_at / 8.64e10))::bigint as slot from held) h
group by path, axis, slot
order by path, axis, slot
