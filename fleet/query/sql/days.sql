-- days: the median of the complete dumps of each build and day, and the devices.
select received::date as on_day, build, coalesce(p50(case when complete then bytes end), -1)::double as bytes, count(distinct device)::bigint as ran
from dumps
group by on_day, build
order by on_day, build
