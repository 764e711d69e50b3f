-- examined: the last judgement of each device with a dump.
select device, judged_at, boots, timed, ended, longest, uptime, free, heap, heap_left, heap_rate, heaps
from judged_devices
where device in (select device from dumps)
qualify row_number() over (partition by device order by judged_at desc) = 1
