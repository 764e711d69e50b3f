-- held: the bytes of each chosen path in each dump that lacks at most a fifth of its blocks; 0 if the dump has none.
select d.device as device, d.uptime_us as uptime_us, d.at_us as at_us, c.path as path, coalesce(f.bytes, 0) / (1 - d.lost) as held, e.begin_at as begin_at, e.longest as longest
from dated d cross join chosen c cross join ends e left join (select device, boot, dump, path, bytes from facts where path in (select path from chosen)) f
  on f.device = d.device and f.boot = d.boot and f.dump = d.dump and f.path = c.path
where d.lost <= 0.2
