-- addresses: as in addresses.sql; ClickHouse has arrayEnumerate and no generate_subscripts.
select build, path, pair.1 as address, toInt64(pair.2) as pos
from (select distinct build, path, addresses from paths where path in (select path from wanted)) p
array join arrayZip(addresses, arrayEnumerate(addresses)) as pair
