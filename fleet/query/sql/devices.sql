-- devices: the devices with their last build; those with the least free memory first.
select *
from (
  select device, max_by(build, [boot, dump]) as build, max_by(fw, [boot, dump]) as fw, min(received) as first_seen, max(received) as last_seen,
    count(*) as dumps, count(distinct boot) as boots, max_by(bytes, [boot, dump]) as bytes, max_by(heap_free, [boot, dump]) as heap_free
  from dumps
  group by device) d
order by case when heap_free < 0 then 1 else 0 end, heap_free, device
