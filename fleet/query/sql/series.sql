-- series: facts by device: a text for each column is much faster than a row for each fact.
select device, toString(groupArray(path)) as paths, toString(groupArray(boot)) as boots, toString(groupArray(dump)) as dumps,
  toString(groupArray(count)) as blocks, toString(groupArray(bytes)) as held
from ({facts}) f
group by device
order by device
