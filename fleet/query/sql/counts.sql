-- counts: the devices, the boots and the call paths of a build.
select count(distinct device) as devices, (select count(*) from (select distinct device, boot from dumps) b) as boots,
  (select count(distinct path) from paths) as paths
from dumps
