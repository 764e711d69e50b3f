-- rises: how much the floor of each path of each device rose, forward and backward in time,
-- in the first and in the second half of the time. That needs the floor at three dumps only:
-- it is the minimum of all values, the minimum of the second half, and the last value.
-- net is the change of the value from the first dump to the last, net1 its part in the first
-- half, and straight1 that part if the value changed along a straight line.
with
boots as (
  select device, boot, max(k) as k,
    min(case when dir = 1 then half end) as half, min(case when dir = -1 then half end) as half_back,
    max(case when dir = 1 and i = half then u end) as u_half
  from used group by device, boot),
places as (
  select u.device, u.boot, u.dump, u.q,
    case when u.i >= b.half then 1 else 0 end as late,
    case when b.k - 1 - u.i >= b.half_back then 1 else 0 end as early,
    u.i, b.k, b.u_half
  from used u join boots b on u.device = b.device and u.boot = b.boot
  where u.dir = 1),
halves as (
  select device, boot, max(k) as dumps, max(u_half) as u_half, sum(late) as dumps_late, sum(early) as dumps_early from places group by device, boot),
minima as (
  select f.device as device, f.path as path, f.boot as boot,
    count(*) as n, sum(late) as n_late, sum(early) as n_early,
    min(count / q) as c, min(case when late = 1 then count / q end) as c_late, min(case when early = 1 then count / q end) as c_early,
    max(case when i = k - 1 then count / q end) as c_last, max(case when i = 0 then count / q end) as c_first, max(count / q) as c_most,
    min(bytes / q) as b, min(case when late = 1 then bytes / q end) as b_late, min(case when early = 1 then bytes / q end) as b_early,
    max(case when i = k - 1 then bytes / q end) as b_last, max(case when i = 0 then bytes / q end) as b_first
  from facts f join places p on f.device = p.device and f.boot = p.boot and f.dump = p.dump
  group by f.device, f.path, f.boot),
-- a dump without the path holds 0
floors as (
  select m.device as device, m.path as path, dumps, u_half,
    case when n < dumps then 0 else c end as c, case when n_late < dumps_late then 0 else c_late end as c_late,
    case when n_early < dumps_early then 0 else c_early end as c_early,
    coalesce(c_last, 0) as c_last, coalesce(c_first, 0) as c_first, c_most,
    case when n < dumps then 0 else b end as b, case when n_late < dumps_late then 0 else b_late end as b_late,
    case when n_early < dumps_early then 0 else b_early end as b_early,
    coalesce(b_last, 0) as b_last, coalesce(b_first, 0) as b_first
  from minima m join halves h on m.device = h.device and m.boot = h.boot)
select device, path, sum(c_most - c) as varies, sum(dumps) as dumps,
  sum(c_late - c) as c_up1, sum(c_last - c_late) as c_up2, sum(c_early - c) as c_down1, sum(c_first - c_early) as c_down2,
  sum(b_late - b) as b_up1, sum(b_last - b_late) as b_up2, sum(b_early - b) as b_down1, sum(b_first - b_early) as b_down2,
  sum(b_late - b_early) as net1, sum(b_last - b_first) as net, sum((b_last - b_first) * u_half) as straight1
from floors group by device, path
