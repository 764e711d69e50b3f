-- unjudged: the devices that sent dumps since they were judged by this rule.
select device
from (select device, max_by(boot, [boot, dump]) as last_boot, max_by(dump, [boot, dump]) as last_dump from dumps group by device) d
where (device, last_boot, last_dump) not in (
  select device, boot, dump
  from (select device, boot, dump, rule from judged_devices qualify row_number() over (partition by device order by judged_at desc) = 1) k
  where rule = {rule})
order by device
