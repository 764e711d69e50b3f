-- rises: how much the floor of each path of each device rose, forward and backward in time,
-- in the first and in the second half of the time. That needs the floor at three dumps only:
-- it is the minimum of all values, the minimum of the second half, and the last value.
-- net is the change of the mean value from the first third of the dumps to the last third, bend
-- by how much the change to the middle third differs from that of a straight line, and ahead the
-- change to the middle third of a straight line.
with
boots as (
  select device, boot, max(k) as k,
    min(case when dir = 1 then half end) as half, min(case when dir = -1 then half end) as half_back,
    avg(case when dir = 1 and third = 1 then u end) as u1, avg(case when dir = 1 and third = 2 then u end) as u2,
    avg(case when dir = 1 and third = 3 then u end) as u3
  from used group by device, boot),
places as (
  select u.device as device, u.boot as boot, u.dump as dump, u.q as q,
    case when u.i >= b.half then 1 else 0 end as late,
    case when b.k - 1 - u.i >= b.half_back then 1 else 0 end as early,
    u.i as i, b.k as k, u.third as third,
    1.0 / count(*) over (partition by u.device, u.boot, u.third) as share, (u2 - u1) / (u3 - u1) as ahead
  from used u join boots b on u.device = b.device and u.boot = b.boot
  where u.dir = 1),
halves as (
  select device, boot, max(k) as dumps, sum(late) as dumps_late, sum(early) as dumps_early from places group by device, boot),
minima as (
  select f.device as device, f.path as path, f.boot as boot,
    count(*) as n, sum(late) as n_late, sum(early) as n_early,
    min(count / q) as c, min(case when late = 1 then count / q end) as c_late, min(case when early = 1 then count / q end) as c_early,
    max(case when i = k - 1 then count / q end) as c_last, max(case when i = 0 then count / q end) as c_first, max(count / q) as c_most,
    min(bytes / q) as b, min(case when late = 1 then bytes / q end) as b_late, min(case when early = 1 then bytes / q end) as b_early,
    max(case when i = k - 1 then bytes / q end) as b_last, max(case when i = 0 then bytes / q end) as b_first,
    sum(case when third = 1 then bytes / q * share else 0 end) as m1, sum(case when third = 2 then bytes / q * share else 0 end) as m2,
    sum(case when third = 3 then bytes / q * share else 0 end) as m3, max(ahead) as ahead
  from facts f join places p on f.device = p.device and f.boot = p.boot and f.dump = p.dump
  group by f.device, f.path, f.boot),
-- a dump without the path holds 0
floors as (
  select m.device as device, m.path as path, dumps, m1, m2, m3, ahead,
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
  sum(m3 - m1) as net, sum((m3 - m1) * ahead) as ahead, sum(m2 - m1 - (m3 - m1) * ahead) as bend
from floors group by device, path
