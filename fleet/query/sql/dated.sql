-- dated: the calendar time of each dump in µs: of receipt; of a device whose dumps were received at once, by its clock.
select d.device as device, d.build as build, d.boot as boot, d.dump as dump, d.uptime_us as uptime_us, d.lost as lost,
  toUnixTimestamp64Micro(case when r.n > 1 then d.received else d.time end) as at_us
from dumps d join (select device, count(distinct received) as n from dumps group by device) r on r.device = d.device
