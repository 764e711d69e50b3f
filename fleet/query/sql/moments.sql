-- moments: the dumps of devices.
select device, boot, dump, uptime_us, received, count, bytes, lost, complete, why, heap_free, coalesce(heaps, '') as heaps from dumps
where device in ({devices}) and toUnixTimestamp64Micro(received) < {until}
order by device, boot, dump
