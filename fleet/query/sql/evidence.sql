-- evidence: the rule of heap/docs/leaks.md for each candidate: the numbers that package profile
-- computes for the log of one device, of those that have a word. A boot is summed up first,
-- then the boots of a device.
with
held as (
  select f.device as device, f.path as path, f.boot as boot, f.dump as dump, f.count as count, f.bytes as bytes
  from facts f join (select distinct device, path from candidates) c on f.device = c.device and f.path = c.path),
series as (
  select c.device as device, c.path as path, c.dir as dir, c.size as size, c.may_stand as may_stand, u.boot as boot, u.i as i, u.k as k, u.half as half,
    u.u as u, u.t as t, u.span as span, u.q as q, u.timed as timed, u.heap_free as heap_free,
    coalesce(f.count, 0) / u.q as blocks, coalesce(f.bytes, 0) / u.q as bytes
  from candidates c
  join used u on u.device = c.device and u.dir = c.dir
  left join held f on f.device = u.device and f.path = c.path and f.boot = u.boot and f.dump = u.dump),
changes as (
  select *, case when i > 0 then blocks - lag(blocks) over (partition by device, path, dir, boot order by i) else 0 end as change
  from series where may_stand = 1),
still as (
  select device, path, dir, 1 as by_bytes from changes group by device, path, dir having sum(abs(change)) <= 0.2 * count(*)),
valued as (
  select s.device as device, s.path as path, s.dir as dir, boot, i, k, half, u, t, span, q, timed, heap_free,
    coalesce(by_bytes, 0) as by_bytes, case when by_bytes = 1 then 1 else size end as size,
    case when by_bytes = 1 then bytes else blocks end as x,
    case when by_bytes = 1 then 8 else 0.5 end as least_step
  from series s left join still on s.device = still.device and s.path = still.path and s.dir = still.dir),
-- the floor of the dump before is the lesser of its value and of the floor
windows as (
  select *,
    min(x) over (partition by device, path, dir, boot order by i rows between current row and unbounded following) as f,
    min(x) over (partition by device, path, dir, boot order by i rows between unbounded preceding and unbounded following) as f_first,
    last_value(x) over (partition by device, path, dir, boot order by i rows between unbounded preceding and unbounded following) as f_last,
    lag(x) over (partition by device, path, dir, boot order by i) as x_before,
    lag(t) over (partition by device, path, dir, boot order by i) as t_before
  from valued),
steps as (
  select *, f_last - f_first as g, case when i > 0 then greatest(0.0, f - x_before) end as df, t - t_before as dt from windows),
boots as (
  select device, path, dir, boot, max(by_bytes) as by_bytes, max(size) as size, max(timed) as timed, max(k) as k,
    max(g) as g, max(span) as span,
    max(case when i = half then f - f_first end) as early,
    max(case when g > 0 then abs((f - f_first) / g - u) else 0 end) as bend,
    sum(case when i > 0 and df > least_step then 1 else 0 end) as rose,
    sum(case when i > 0 then 1.0 / (i + 1) else 0 end) as chance,
    sum(case when i > 0 then 1.0 / (i + 1) - 1.0 / ((i + 1) * (i + 1)) else 0 end) as variance,
    sum(case when by_bytes = 0 and (i = 0 or i = k - 1) then x * (1 - q) / q else 0 end) as lost,
    sum(case when i > 0 then (df - g / span * dt) * (df - g / span * dt) else 0 end) as squares,
    max(case when i = k - 1 then heap_free end) as heap_free
  from steps group by device, path, dir, boot),
devices as (
  select device, path, dir, max(by_bytes) as by_bytes, max(size) as size, max(timed) as timed,
    sum(k) as dumps, count(*) as boots, max(k) as longest, sum(g) as g, sum(span) as span,
    sum(early) as early, sum(g - early) as late, sum(g * bend) as bend,
    sum(rose) as rose, sum(chance) as chance, sum(variance) as variance, sum(lost) as lost,
    sum(squares * k / (k - 1)) as squares, max_by(heap_free, boot) as heap_free
  from boots group by device, path, dir),
judged as (
  select *, (rose - chance) / sqrt(variance) as z, bend / g as d, 2 * least(early, late) / g as h2,
    g * size / span as rate, (g - 2 * sqrt(lost)) * size as gain
  from devices where g > 0)
select *,
  case when z >= 4 and d <= 0.15 and h2 >= 0.75 and longest >= 6 then 3
       when z >= 3.5 and d <= 0.24 and h2 >= 0.65 then 2
       else 1 end as word
from judged
where gain > 0 and z >= 2 and d <= 0.40 and h2 >= 0.50
