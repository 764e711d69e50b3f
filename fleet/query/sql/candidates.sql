-- candidates: the paths by device and direction whose floor rose in both halves of the time,
-- as h2 demands. That leaves out most paths before evidence.sql computes the floor at each dump.
-- may_stand is 1 if the number of blocks may stand still, so that the bytes are examined.
with
directions as (
  select device, path, 1 as dir, varies, dumps, size, c_up1 as c1, c_up2 as c2, b_up1 as b1, b_up2 as b2 from rises
  union all
  select device, path, -1 as dir, varies, dumps, size, c_down1 as c1, c_down2 as c2, b_down1 as b1, b_down2 as b2 from rises)
select device, path, dir, size, case when varies <= 0.201 * dumps then 1 else 0 end as may_stand
from directions
-- 0.499: the sums are not exact
where (c1 + c2 > 0 and 2 * least(c1, c2) >= 0.499 * (c1 + c2))
   or (varies <= 0.201 * dumps and b1 + b2 > 0 and 2 * least(b1, b2) >= 0.499 * (b1 + b2))
