-- addresses: the addresses of call paths; pos is 1 for the innermost.
select build, path, tupleElement(pair, 1) as address, tupleElement(pair, 2) as pos
from (
  select build, path, arrayJoin(arrayZip(addresses, arrayEnumerate(addresses))) as pair
  from (select distinct build, path, addresses from paths where path in ({paths})) p) a
