-- leaking: the devices on which these paths leak.
select w.device as device, w.path as path, w.rate as rate, e.free as free, e.ended as ended, e.longest as longest, e.uptime as uptime,
  e.heap as heap, e.heap_left as heap_left, e.heap_rate as heap_rate, e.heaps as heaps
from weighed w join shared s on s.path = w.path join examined e on e.device = w.device
where s.share * exp(w.w) >= 1 - s.share and w.timed and w.rate > 0
order by device, path
