-- The tables of btfleet. They have the columns of package store in the same order, and day, the day of receipt. A row with the
-- key of another replaces it, or that with the largest value of the column in parentheses stays: a batch that is written again
-- changes nothing. The rows of a device are in the order in which leaks reads them.
create table if not exists paths (
  build LowCardinality(String) codec(ZSTD(1)),
  path Int64 codec(Delta, ZSTD(1)),
  addresses Array(String) codec(ZSTD(1)),
  day Date
) engine = ReplacingMergeTree(day)
order by (build, path)
ttl day + interval {days} day;

create table if not exists facts (
  build LowCardinality(String) codec(ZSTD(1)),
  device String codec(ZSTD(1)),
  path Int64 codec(Delta, ZSTD(1)),
  boot Int64 codec(Delta, ZSTD(1)),
  dump Int64 codec(Delta, ZSTD(1)),
  time DateTime64(6, 'UTC') codec(Delta, ZSTD(1)),
  count Int64 codec(Delta, ZSTD(1)),
  bytes Int64 codec(Delta, ZSTD(1)),
  complete Bool codec(ZSTD(1)),
  lost Float64 codec(ZSTD(1)),
  day Date
) engine = ReplacingMergeTree()
partition by day
order by (build, device, path, boot, dump)
ttl day + interval {days} day
settings ttl_only_drop_parts = 1;

create table if not exists dumps (
  build LowCardinality(String) codec(ZSTD(1)),
  fw LowCardinality(String) codec(ZSTD(1)),
  device String codec(ZSTD(1)),
  boot Int64 codec(Delta, ZSTD(1)),
  dump Int64 codec(Delta, ZSTD(1)),
  time DateTime64(6, 'UTC') codec(Delta, ZSTD(1)),
  uptime_us Int64 codec(Delta, ZSTD(1)),
  received DateTime64(6, 'UTC') codec(Delta, ZSTD(1)),
  bytes Int64 codec(Delta, ZSTD(1)),
  count Int64 codec(Delta, ZSTD(1)),
  complete Bool codec(ZSTD(1)),
  lost Float64 codec(ZSTD(1)),
  why LowCardinality(String) codec(ZSTD(1)),
  heap_size Int64 codec(Delta, ZSTD(1)),
  heap_free Int64 codec(Delta, ZSTD(1)),
  heap_largest Int64 codec(Delta, ZSTD(1)),
  heap_minimum Int64 codec(Delta, ZSTD(1)),
  heaps String codec(ZSTD(1)),
  labels Map(String, String) codec(ZSTD(1)),
  upload String codec(ZSTD(1)),
  day Date
) engine = ReplacingMergeTree()
partition by day
order by (build, device, boot, dump)
ttl day + interval {days} day
settings ttl_only_drop_parts = 1;

create table if not exists frames (
  build LowCardinality(String) codec(ZSTD(1)),
  address String codec(ZSTD(1)),
  `index` Int32 codec(ZSTD(1)),
  function String codec(ZSTD(1)),
  file LowCardinality(String) codec(ZSTD(1)),
  line Int32 codec(ZSTD(1)),
  missing LowCardinality(String) codec(ZSTD(1))
) engine = ReplacingMergeTree()
order by (build, address, `index`, function, file, line, missing);

create table if not exists judged (
  build LowCardinality(String) codec(ZSTD(1)),
  device String codec(ZSTD(1)),
  path Int64 codec(Delta, ZSTD(1)),
  judged_at Int64 codec(Delta, ZSTD(1)),
  boots Int64 codec(Delta, ZSTD(1)),
  seen Int64 codec(Delta, ZSTD(1)),
  weight Float64 codec(ZSTD(1)),
  shape Float64 codec(ZSTD(1)),
  rate Float64 codec(ZSTD(1)),
  err Float64 codec(ZSTD(1)),
  since Int64 codec(Delta, ZSTD(1)),
  net Float64 codec(ZSTD(1)),
  swing Float64 codec(ZSTD(1)),
  level Float64 codec(ZSTD(1)),
  early Float64 codec(ZSTD(1)),
  late Float64 codec(ZSTD(1)),
  jump Float64 codec(ZSTD(1)),
  grown Float64 codec(ZSTD(1)),
  day Date
) engine = ReplacingMergeTree(judged_at)
order by (build, device, path)
ttl day + interval {days} day;

create table if not exists judged_devices (
  build LowCardinality(String) codec(ZSTD(1)),
  device String codec(ZSTD(1)),
  judged_at Int64 codec(Delta, ZSTD(1)),
  rule Int64 codec(Delta, ZSTD(1)),
  boot Int64 codec(Delta, ZSTD(1)),
  dump Int64 codec(Delta, ZSTD(1)),
  boots Int64 codec(Delta, ZSTD(1)),
  timed Bool codec(ZSTD(1)),
  ended Float64 codec(ZSTD(1)),
  longest Float64 codec(ZSTD(1)),
  uptime Float64 codec(ZSTD(1)),
  free Int64 codec(Delta, ZSTD(1)),
  heap String codec(ZSTD(1)),
  heap_left Int64 codec(Delta, ZSTD(1)),
  heap_rate Float64 codec(ZSTD(1)),
  heaps Int64 codec(Delta, ZSTD(1)),
  day Date
) engine = ReplacingMergeTree(judged_at)
order by (build, device)
ttl day + interval {days} day;
