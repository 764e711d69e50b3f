-- ends: the first dump of a build, and the longest uptime.
select coalesce(min(at_us), 0) as begin_at, coalesce(max(uptime_us), 0) as longest from dated where lost <= 0.2
