-- exhaustion: the hours until the heaps of the devices are full that grow on the wanted paths.
select count(*) as devices, p50(heap_free / rate) as hours, p05(heap_free / rate) as hours_p05
from (
  select device, max_by(heap_free, dumps) as heap_free, sum(rate) as rate
  from evidence where dir = 1 and timed = 1 and path in (select path from wanted)
  group by device) d
where heap_free >= 0 and rate > 0
