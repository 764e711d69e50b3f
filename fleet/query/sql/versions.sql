-- versions: the version of each build that most of its devices report.
select build, fw
from (
  select build, fw, row_number() over (partition by build order by case when fw = '' then 1 else 0 end, devices desc, fw desc) as nth
  from (select build, fw, count(distinct device) as devices from dumps group by build, fw) d) v
where nth = 1
