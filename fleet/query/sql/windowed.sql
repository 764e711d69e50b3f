-- windowed: the steady dumps before and after a span of updates, of the devices that were updated in it, and of those that were not
-- until the end.
select s.device as device, s.boot as boot, s.dump as dump, s.build as build, s.q as q, s.late as later, case when u.up < {end} then 1 else 0 end as updated
from (
  select s.device as device, s.boot as boot, s.dump as dump, s.build as build, s.q as q, d.late as late
  from steady s join (select device, boot, dump, case when at_us >= {to} then 1 else 0 end as late from dated
    where at_us < {from} or at_us >= {to} and at_us < {end}) d
  on d.device = s.device and d.boot = s.boot and d.dump = s.dump) s
join (select device, min(case when build = {after} then at_us else {never} end) as up from dated group by device) u on u.device = s.device
where u.up >= {end} or u.up >= {from} and u.up <= {to} and s.late = case when s.build = {after} then 1 else 0 end
