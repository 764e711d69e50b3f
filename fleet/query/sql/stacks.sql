-- stacks: the frames of some call paths, innermost first.
select a.build as build, a.path as path, a.address as address, f.function as function, f.file as file, f.line as line, f.missing as missing
from addresses a
left join (select distinct * from frames) f on f.build = a.build and f.address = a.address
order by a.build, a.path, a.pos, f."index"
