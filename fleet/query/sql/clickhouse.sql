create function p05 as (x) -> quantileExactInclusive(0.05)(x);
create function p50 as (x) -> quantileExactInclusive(0.5)(x);
create function p95 as (x) -> quantileExactInclusive(0.95)(x)
