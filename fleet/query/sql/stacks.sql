-- stacks: the frames of some call paths, innermost first. Of several rows of a frame, one with a name is preferred.
select a.build as build, a.path as path, a.address as address, f.function as function, f.file as file, f.line as line, f.missing as missing
from addresses a
left join (
  select build, address, "index" as idx, max(function) as function, max_by(file, function) as file, max_by(line, function) as line, min(missing) as missing
  from frames group by build, address, "index") f
  on f.build = a.build and f.address = a.address
order by a.build, a.path, a.pos, f.idx
