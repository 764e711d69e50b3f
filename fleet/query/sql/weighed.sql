-- weighed: of each device and path, the weight of the evidence for a leak. A device by far the largest of n has that
-- chance 1/(n+1), and less if it is many times as large. What grows as the load does is no leak.
-- The shape of the growth is that of the path, and not of each device.
select s.device as device, s.path as path, s.boots as boots, s.weight as weight, s.shape as shape, s.rate as rate, s.err as err, s.since as since, s.net as net, s.early as early, s.late as late,
  s.jump as jump, s.grown as grown, e.timed as timed, u.net as usual,
  case when u.most_load > 0 and s.net < u.most_load * s.level then -12
    else least(30, weight - shape + 1.3 * greatest(0, weight - shape - 4.4) + case when weight - shape > 0 and s.net > 3 * u.net and s.net > 1.5 * u.swing then {alone} + least(4, 2 * {alone}, greatest(0, ln(greatest(1, s.net) / greatest(16, u.swing, 3 * u.net)))) else 0 end) end as w
from judged s join examined e on e.device = s.device and e.judged_at = s.judged_at join usually u on u.path = s.path
