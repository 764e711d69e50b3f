-- addresses: the addresses of the wanted call paths; pos is 1 for the innermost.
select build, path, unnest(addresses) as address, generate_subscripts(addresses, 1) as pos
from (select distinct build, path, addresses from paths where path in (select path from wanted)) p
