-- moments: the dumps by device.
select device, boot, dump, uptime_us, received, count, bytes, lost, complete, why, heap_free, coalesce(heaps, '') as heaps from dumps order by device, boot, dump
