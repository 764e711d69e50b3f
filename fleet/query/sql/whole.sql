-- whole: the devices with dumps before and after, and how many.
select device, max(updated) as updated, sum(1 - later) as n0, sum(later) as n1
from windowed group by device
having sum(1 - later) > 0 and sum(later) > 0
