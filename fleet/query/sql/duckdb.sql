-- The words of ClickHouse that the SQL of all questions has, in DuckDB.
create macro p05(x) as quantile_cont(x, 0.05);
create macro p50(x) as quantile_cont(x, 0.5);
create macro p95(x) as quantile_cont(x, 0.95);
create macro p98(x) as quantile_cont(x, 0.98);
create macro groupArray(x) as list(x);
create macro toString(x) as x::varchar;
create macro arrayJoin(x) as unnest(x);
create macro arrayZip(x, y) as list_zip(x, y);
create macro arrayEnumerate(x) as generate_series(1, len(x));
create macro tupleElement(x, n) as struct_extract_at(x, n);
create macro toInt64(x) as x::bigint;
create macro toUnixTimestamp64Micro(x) as epoch_us(x);
create macro fromUnixTimestamp64Micro(x) as make_timestamp(x::bigint);
