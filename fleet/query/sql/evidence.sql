-- evidence: of each path, the logarithm of the likelihood ratio of "a share of the devices leaks" to "none does", for the share
-- that has the largest. Devices without a row hold the path unchanged.
select path, max(lod) as lod, max_by(share, lod) as share
from (
  select path, share, sum(ln(1 - share + share * exp(w))) + (max(devices) - count(*)) * max(none) as lod
  from weighed cross join shares group by path, share) l
group by path
having max(lod) > 0
order by lod desc, path
limit 1000
