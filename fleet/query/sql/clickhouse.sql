create function p05 as (x) -> quantileExactInclusive(0.05)(x);
create function p50 as (x) -> quantileExactInclusive(0.5)(x);
create function p95 as (x) -> quantileExactInclusive(0.95)(x);
create function lower50 as (x) -> arraySort(groupArray(x))[greatest(1, toUInt64(ceil(0.5 * count(x))))];
create function lower90 as (x) -> arraySort(groupArray(x))[greatest(1, toUInt64(ceil(0.9 * count(x))))];
create function lower95 as (x) -> arraySort(groupArray(x))[greatest(1, toUInt64(ceil(0.95 * count(x))))];
create function lower98 as (x) -> arraySort(groupArray(x))[greatest(1, toUInt64(ceil(0.975 * count(x))))];
create function lower99 as (x) -> arraySort(groupArray(x))[greatest(1, toUInt64(ceil(0.99 * count(x))))];
create function joined as (name, nth) -> arrayStringConcat(arraySort((x, y) -> y, groupArray(name), groupArray(nth)), '\n')
