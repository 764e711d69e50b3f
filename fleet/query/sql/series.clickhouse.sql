-- series: the facts by device, in ClickHouse: an array for each column is much smaller than a row for each fact.
select device, groupArray(path) as paths, groupArray(boot) as boots, groupArray(dump) as dumps, groupArray(count) as blocks, groupArray(bytes) as held
from facts
group by device
order by device
settings optimize_aggregation_in_order = 1
