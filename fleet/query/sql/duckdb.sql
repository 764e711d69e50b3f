create macro p05(x) as quantile_cont(x, 0.05);
create macro p50(x) as quantile_cont(x, 0.5);
create macro p95(x) as quantile_cont(x, 0.95);
create macro p98(x) as quantile_cont(x, 0.98);
