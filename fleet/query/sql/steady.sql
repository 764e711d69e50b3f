-- steady: the dumps of a running program: not those that lack over a fifth of their blocks or an unknown part of
-- them, and not those at the end of a program: with why=exit, or the last of a boot that is over, with less than half
-- of the bytes before. q is the fraction of the blocks that arrived. (heap/docs/leaks.md)
with
whole as (
  select build, device, boot, dump, uptime_us, heap_free, bytes, count, 1 - lost as q, bytes / (1 - lost) as held,
    lag(bytes / (1 - lost)) over (partition by build, device, boot order by dump) as prior,
    max(boot) over (partition by build, device) as running,
    row_number() over (partition by build, device, boot order by dump desc) as from_end
  from dumps
  where lost <= 0.2 and (complete or lost > 0) and why <> 'exit')
select build, device, boot, dump, uptime_us, heap_free, bytes, count, q
from whole
where from_end > 1 or boot = running or prior is null or held >= prior / 2
