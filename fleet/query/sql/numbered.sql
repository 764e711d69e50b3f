-- numbered: the dumps of the devices; device numbers the devices, n the dumps of a device, from 0.
select dense_rank() over (order by device) as number, device, boot, dump,
  row_number() over (partition by device order by boot, dump) - 1 as n,
  uptime_us, received, count, bytes, lost, complete, why, heap_free
from dumps
