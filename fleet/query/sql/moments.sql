-- moments: the dumps of devices before a time.
select device, boot, dump, uptime_us, received, count, bytes, lost, complete, why, heap_free, coalesce(heaps, '') as heaps
from ({dumps}) d
where toUnixTimestamp64Micro(received) < {until}
order by device, boot, dump
