-- builds: what runs, newest first. bytes is the median of the devices' last steady dumps.
with
last as (
  select build, device, max_by(bytes / q, [boot, dump]) as bytes, max_by(heap_free, [boot, dump]) as heap_free from steady group by build, device),
medians as (
  select build, p50(bytes) as bytes, p50(case when heap_free >= 0 then heap_free end) as heap_free from last group by build)
select d.build as build, max(m.fw) as fw, count(distinct d.device) as devices, count(*) as dumps, min(d.received) as first_seen, max(d.received) as last_seen,
  coalesce(max(m.bytes), 0) as bytes, coalesce(max(m.heap_free), -1) as heap_free, avg(d.lost) as lost
from dumps d
join (
  select v.build as build, v.fw as fw, n.bytes as bytes, n.heap_free as heap_free from versions v left join medians n on n.build = v.build) m
  on m.build = d.build
group by d.build
order by last_seen desc, build
