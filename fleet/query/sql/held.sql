-- held: the bytes of each chosen path in each dump that lacks at most a fifth of its blocks; 0 if the dump has none.
select d.device as device, d.uptime_us as uptime_us, c.path as path, coalesce(f.bytes, 0) / (1 - d.lost) as held,
  (select max(uptime_us) from dumps where lost <= 0.2) as longest, date_diff('day', (select min(received) from dumps where lost <= 0.2), d.received) as since_first
from dumps d cross join chosen c left join (select device, boot, dump, path, bytes from facts where path in (select path from chosen)) f
  on f.device = d.device and f.boot = d.boot and f.dump = d.dump and f.path = c.path
where d.lost <= 0.2
