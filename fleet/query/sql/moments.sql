-- moments: the dumps by device.
select number, boot, uptime_us, received, count, bytes, lost, complete, why, heap_free from numbered order by number, n
