create macro p50(x) as quantile_cont(x, 0.5);
create macro p05(x) as quantile_cont(x, 0.05);
create macro p95(x) as quantile_cont(x, 0.95);
create macro lower50(x) as quantile_disc(x, 0.5);
create macro lower90(x) as quantile_disc(x, 0.9);
create macro lower95(x) as quantile_disc(x, 0.95);
create macro lower98(x) as quantile_disc(x, 0.975);
create macro lower99(x) as quantile_disc(x, 0.99);
create macro joined(name, nth) as string_agg(name, chr(10) order by nth);
