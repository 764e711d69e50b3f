-- evidence: of each path, the logarithm of the likelihood ratio of "a share of the devices leaks" to "none does", for the share
-- that has the largest. Devices without a row hold the path unchanged.
select path, max(ratio) as lod, max_by(tried, ratio) as share
from (
  select path, share as tried, sum(ln(1 - share + share * exp(w))) + (max(devices) - count(*)) * max(none) as ratio
  from weighed cross join shares group by path, share) l
group by path
having max(ratio) > 0
order by max(ratio) desc, path
limit 1000
