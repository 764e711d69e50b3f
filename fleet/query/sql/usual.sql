-- usual: of each path, how much it changes on devices on which it does not leak, and how much it grows.
select s.path as path, sum(net) as net_sum, sum(level) as level_sum,
  coalesce(p98(case when weight - shape < 0 then abs(net) end), 0) as net,
  coalesce(p98(case when weight - shape < 0 then greatest(abs(net), swing) end), 0) as swing,
  case when 2 * count(case when level > 0 then 1 end) > (select count(*) from examined where boots > 0)
    then p50(case when level > 0 then net / level end) else 0 end as growth,
  count(distinct s.device) as devices, max(seen) as seen
from judged s join examined e on e.device = s.device and e.judged_at = s.judged_at
group by s.path
