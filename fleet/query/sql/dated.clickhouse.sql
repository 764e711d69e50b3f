-- dated: as in dated.sql; ClickHouse has another name for epoch_us.
select d.device as device, d.build as build, d.boot as boot, d.dump as dump, toUnixTimestamp64Micro(case when r.n > 1 then d.received else d.time end) as at_us
from dumps d join (select device, count(distinct received) as n from dumps group by device) r on r.device = d.device
