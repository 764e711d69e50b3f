-- leaking: the devices on which these paths leak.
select l.device as device, l.path as path, l.rate as rate, e.free as free, e.ended as ended, e.longest as longest, e.uptime as uptime,
  e.heap as heap, e.heap_left as heap_left, e.heap_rate as heap_rate, e.heaps as heaps
from (
  select w.device as device, w.path as path, w.rate as rate
  from weighed w join shared s on s.path = w.path
  where s.share * exp(w.w) >= 1 - s.share and w.timed and w.rate > 0) l
join examined e on e.device = l.device
order by l.device, l.path
