-- last: the last dump of each device.
select build, fw, device, boot, dump, time, uptime_us, bytes, count, complete from dumps
qualify row_number() over (partition by device order by boot desc, dump desc) = 1
