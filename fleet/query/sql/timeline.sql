-- timeline: the dumps of a device, oldest first.
select build, fw, boot, dump, received, uptime_us, bytes, count, complete, lost, why, heap_size, heap_free
from dumps
order by boot, dump
