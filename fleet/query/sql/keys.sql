-- keys: what paths of two builds are matched by: the functions of the path, innermost first, with
-- addresses where a name is missing; or the identifier of the path if it has no function at all.
with
named as (
  select a.build as build, a.path as path, a.pos as pos, coalesce(f.idx, 0) as idx,
    case when f.function <> '' then f.function else a.address end as name,
    case when f.function <> '' then 1 else 0 end as known
  from addresses a
  left join (select build, address, "index" as idx, max(function) as function from frames group by build, address, "index") f
    on f.build = a.build and f.address = a.address),
keyed as (
  select build, path, case when max(known) = 1 then joined(name, pos * 1000 + idx) else cast(path as varchar) end as key, max(known) as known
  from named group by build, path)
select *, dense_rank() over (order by key) as key_number from keyed
