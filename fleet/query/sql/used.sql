-- used: the steady dumps of boots with three or more, once for each direction. In
-- direction -1 the dumps of each boot are in reverse order: a path that shrinks grows in it.
-- i is the index in the boot, k the number of dumps of the boot, at hours since the first (or the number of
-- the dump, if a dump of the device has no uptime), u the time from 0 to 1, half the first i
-- of the second half of the time, third the third of the dumps.
with
numbered as (
  select *,
    row_number() over (partition by device, boot order by dump) - 1 as i,
    count(*) over (partition by device, boot) as k,
    uptime_us - lag(uptime_us) over (partition by device, boot order by dump) as step
  from steady),
timed as (
  select *, min(case when uptime_us < 0 or step <= 0 then 0 else 1 end) over (partition by device) as timed
  from numbered
  where k >= 3),
located as (
  select *, case when timed = 1 then uptime_us / 3.6e9 else i * 1.0 end as at_hours from timed),
spread as (
  select *,
    min(at_hours) over (partition by device, boot) as at_first,
    max(at_hours) over (partition by device, boot) as at_last
  from located),
directed as (
  select device, boot, dump, 1 as dir, i, k, q, timed, heap_free, at_hours - at_first as t, at_last - at_first as span
  from spread
  union all
  select device, boot, dump, -1 as dir, k - 1 - i as i, k, q, timed, heap_free, at_last - at_hours as t, at_last - at_first as span
  from spread)
select *, t / span as u, case when i < floor(k / 3) then 1 when i >= k - floor(k / 3) then 3 else 2 end as third,
  least(greatest(coalesce(min(case when t / span >= 0.5 then i end) over (partition by device, boot, dir), k - 2), 1), k - 2) as half
from directed
