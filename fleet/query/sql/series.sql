-- series: facts by device: an array for each column is much smaller than a row for each fact.
select device, groupArray(path) as paths, groupArray(boot) as boots, groupArray(dump) as dumps, groupArray(count) as blocks, groupArray(bytes) as held
from ({facts}) f
group by device
order by device
