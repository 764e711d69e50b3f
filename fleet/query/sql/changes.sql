-- changes: the means of each path before and after the update, by device.
select f.device as device, max(w.updated) as updated, w.build as build, f.path as path,
  sum(case when w.later = 0 then f.bytes / w.q else 0 end) / max(w.n0) as held0, sum(case when w.later = 1 then f.bytes / w.q else 0 end) / max(w.n1) as held1
from facts f join (
  select w.device as device, w.boot as boot, w.dump as dump, w.build as build, w.q as q, w.later as later, b.updated as updated, b.n0 as n0, b.n1 as n1
  from windowed w join whole b on b.device = w.device) w
on w.device = f.device and w.boot = f.boot and w.dump = f.dump
group by f.device, w.build, f.path
