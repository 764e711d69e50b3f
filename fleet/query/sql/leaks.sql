-- leaks: the paths of a build that grow on more devices than they shrink on. (fleet/docs/fleet-leaks.md)
with
fleet as (select count(distinct device) as examined from used),
paths_of as (
  select path, max(examined) as examined,
    sum(case when dir = 1 then 1 else 0 end) as grew, sum(case when dir = -1 then 1 else 0 end) as shrank,
    sum(case when dir = 1 and word >= 3 then 1 else 0 end) as said_leak,
    sum(case when dir = 1 and word >= 2 then 1 else 0 end) as said_probably,
    sum(case when dir = 1 then bend * size else 0 end) as bend,
    sum(case when dir = 1 then g * size else 0 end) as g,
    sum(case when dir = 1 then gain else 0 end) as gain,
    sum(case when dir = 1 then rose - chance else 0 end) as excess,
    sum(case when dir = 1 then dumps - chance else 0 end) as most,
    p50(case when dir = 1 and timed = 1 then rate end) as rate_median,
    p95(case when dir = 1 and timed = 1 then rate end) as rate_p95,
    p50(case when dir = 1 and timed = 1 and heap_free >= 0 then heap_free / rate end) as hours
  from evidence cross join fleet group by path),
nets as (
  select path, sum(net) as net, sum(ahead) as ahead, sum(r.bend) as bent, sum(r.bend * r.bend) as bent2 from rises r group by path),
judged as (
  select p.*, (grew - shrank) / sqrt(grew + shrank) as z, bend / g as d,
    case when ahead > 0 and ahead < net
      then 1 - (abs(bent) + 2 * sqrt(greatest(0.0, bent2 - bent * bent / examined))) / least(ahead, net - ahead) else 0 end as h2,
    greatest(least(2.0, 1.0 * examined), 0.1 * examined) as enough
  from paths_of p join nets n on p.path = n.path where grew > 0)
select path, examined, grew, shrank, greatest(0, grew - shrank) / examined as share, z, d, h2,
  rate_median, rate_p95, hours,
  gain / examined as gain,
  case when (z >= 4 or said_leak >= enough) and d <= 0.20 and h2 >= 0.80 then 3
       when (z >= 3.5 or said_probably >= enough) and d <= 0.25 and h2 >= 0.80 then 2
       when (z >= 2 or grew >= enough) and d <= 0.40 and h2 >= 0.60 then 1
       else 0 end as word,
  gain / examined * greatest(0, grew - shrank) / (grew + shrank)
    * pow(1 - d, 6) * greatest(0.0, h2) * greatest(0.0, h2) * (excess / most + 0.02) as score
from judged
order by case when word >= 2 then word else 0 end desc, score desc, path
