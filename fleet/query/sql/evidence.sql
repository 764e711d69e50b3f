-- evidence: the rule of docs/leaks.md for each candidate: the numbers that package profile
-- computes for the log of one device, of those that have a word. A boot is summed up first,
-- then the boots of a device.
with
series as (
  select c.device as device, c.path as path, c.dir as dir, u.boot as boot, u.i as i, u.k as k, u.half as half, u.u as u,
    u.t as t, u.span as span, u.q as q, u.timed as timed, u.heap_free as heap_free,
    coalesce(f.count, 0) as count, coalesce(f.bytes, 0) as bytes
  from candidates c
  join used u on u.device = c.device and u.dir = c.dir
  left join facts f on f.device = u.device and f.path = c.path and f.boot = u.boot and f.dump = u.dump),
changes as (
  select *, case when i > 0 then count / q - lag(count / q) over (partition by device, path, dir, boot order by i) else 0 end as change
  from series),
units as (
  select device, path, dir,
    case when sum(abs(change)) <= 0.2 * count(*) then 1 else 0 end as by_bytes,
    sum(bytes) / sum(count) as size
  from changes group by device, path, dir),
valued as (
  select s.*, by_bytes, case when by_bytes = 1 then 1 else size end as size,
    case when by_bytes = 1 then bytes / q else count / q end as x,
    case when by_bytes = 1 then 8 else 0.5 end as least_step
  from series s join units t on s.device = t.device and s.path = t.path and s.dir = t.dir),
floors as (
  select *,
    min(x) over (partition by device, path, dir, boot order by i rows between current row and unbounded following) as f
  from valued),
steps as (
  select *,
    min(f) over (partition by device, path, dir, boot) as f_first,
    max(f) over (partition by device, path, dir, boot) - min(f) over (partition by device, path, dir, boot) as g,
    f - lag(f) over (partition by device, path, dir, boot order by i) as df,
    t - lag(t) over (partition by device, path, dir, boot order by i) as dt
  from floors),
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
  case when z >= 4 and d <= 0.20 and h2 >= 0.75 and longest >= 6 then 3
       when z >= 3.5 and d <= 0.25 and h2 >= 0.65 then 2
       else 1 end as word
from judged
where gain > 0 and z >= 2 and d <= 0.40 and h2 >= 0.50
