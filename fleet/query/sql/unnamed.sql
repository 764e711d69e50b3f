-- unnamed: the addresses without frames.
select distinct build, address
from (select build, arrayJoin(addresses) as address from (select distinct build, path, addresses from paths) p) a
where (build, address) not in (select build, address from frames)
order by build, address
