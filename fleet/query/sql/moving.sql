-- moving: the number of paths, of boots, of paths of one boot alone, and of devices with such paths.
select count(*) as paths, (select count(*) from (select distinct device, boot from dumps) b) as boots,
  coalesce(sum(case when device1 = device2 and boot1 = boot2 then 1 else 0 end), 0) as once,
  count(distinct case when device1 = device2 and boot1 = boot2 then device1 end) as devices
from (
  select path, min(device) as device1, max(device) as device2, min(boot) as boot1, max(boot) as boot2 from facts group by path) p
