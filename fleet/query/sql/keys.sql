-- keys: what paths of two builds are matched by: the functions of the path, innermost first, with
-- addresses where a name is missing; or the identifier of the path if it has no function at all.
-- If one of the builds has no names, the paths of both are matched by their identifiers.
with
named as (
  select a.build as build, a.path as path, a.pos as pos, coalesce(f.idx, 0) as idx,
    case when f.function <> '' then f.function else a.address end as name,
    case when f.function <> '' then 1 else 0 end as known
  from addresses a
  left join (select build, address, "index" as idx, max(function) as function from frames group by build, address, "index") f
    on f.build = a.build and f.address = a.address),
keyed as (
  select build, path, joined(name, pos * 1000 + idx) as names, max(known) as known
  from named group by build, path),
builds as (
  select min(known) as named from (select build, max(known) as known from keyed group by build) b),
chosen as (
  select build, path, case when named = 1 and known = 1 then names else cast(path as varchar) end as key, known
  from keyed cross join builds)
select *, dense_rank() over (order by key) as key_number from chosen
