-- found: of each path with evidence, the sums over the devices that leak (it is more likely than not), and over the others.
select path, count(*) as varies, sum(leaks) as grew,
  p50(case when leaks = 1 and timed then rate end) as rate, p95(case when leaks = 1 and timed then rate end) as rate95,
  p50(case when leaks = 1 and timed then err end) as err,
  sum(case when leaks = 1 and since > 0 then 1 else 0 end) as begun, p50(case when leaks = 1 and since > 0 then since / 1e6 end) as since,
  sum(case when leaks = 1 and since = 0 and grown > 0 then jump else 0 end) as jump, sum(case when leaks = 1 and since = 0 and grown > 0 then grown else 0 end) as grown,
  sum(shaped) as n, sum(shaped * early) as a, sum(shaped * late) as b, sum(shaped * early * early) as aa, sum(shaped * early * late) as ab,
  sum(shaped * late * late) as bb, sum(early) as a1, sum(late) as b1, sum(early * early) as aa1, sum(early * late) as ab1, sum(late * late) as bb1,
  sum(leaks * net) as up, sum((1 - leaks) * net) as rest, sum((1 - leaks) * net * net) as rest2,
  sum(case when leaks = 1 and net >= 1.5 * usual then 1 else 0 end) as near, max(weight) as most, coalesce(avg(case when leaks = 1 then shape end), 0) as shape
from (
  select w.*, leaks * case when since = 0 or boots >= 5 then 1 else 0 end as shaped
  from (
    select w.*, case when share * exp(w) >= 1 - share then 1 else 0 end as leaks
    from weighed w join shared s on s.path = w.path) w) w
group by path
