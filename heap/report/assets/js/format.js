// Numbers as text. Every function here is pure.

const BYTES = 0, COUNT = 1;

function grouped(n) {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

function signed(n) {
  return (n > 0 ? "+" : n < 0 ? "−" : "") + grouped(Math.abs(n));
}

function plural(n, one, many = one + "s") {
  return grouped(n) + " " + (Math.abs(n) === 1 ? one : many);
}

function unit(n, weight) {
  return plural(n, weight === COUNT ? "allocation" : "byte");
}

function share(part, all) {
  return all ? (100 * part / all).toFixed(1) + "%" : "0.0%";
}

// short writes a number in three or four digits, for axes: 1.5k, 20M. Bytes have powers of 1,024.
function short(n, weight) {
  const step = weight === COUNT ? 1000 : 1024;
  const names = weight === COUNT ? ["", "k", "M", "G", "T", "P", "E"] : [" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"];
  let i = 0, v = Math.abs(n);
  while (v >= step && i < names.length - 1) { v /= step; i++; }
  const digits = i === 0 || v >= 100 ? 0 : 1;
  return (n < 0 ? "−" : "") + v.toFixed(digits).replace(/\.0$/, "") + names[i];
}

// duration writes seconds with the unit that suits a span of seconds.
function duration(seconds, span = seconds) {
  const trim = v => Number(v.toFixed(v < 10 ? 2 : 1)).toString();
  if (span >= 3 * 86400) return trim(seconds / 86400) + " d";
  if (span >= 3 * 3600) return trim(seconds / 3600) + " h";
  if (span >= 180) return trim(seconds / 60) + " min";
  if (span >= 1 || span === 0) return trim(seconds) + " s";
  if (span >= 1e-3) return trim(seconds * 1e3) + " ms";
  return trim(seconds * 1e6) + " µs";
}

// ticks returns round values from 0 to max, about n of them. Times are cut at 1, 2, 5, 10, 15, 30 and 60.
function ticks(max, n, steps = [1, 2, 5, 10]) {
  if (!(max > 0)) return [0];
  const rough = max / n;
  const base = steps[steps.length - 1];
  let scale = 1;
  while (rough > scale * base) scale *= base;
  while (rough <= scale) scale /= base;
  const step = scale * steps.find(s => scale * s >= rough);
  const list = [];
  for (let i = 0; i * step <= max * 1.0001; i++) list.push(i * step);
  return list;
}

function byteTicks(max, n) {
  let scale = 1;
  while (max / scale >= 1024) scale *= 1024;
  return ticks(max / scale, n).map(v => v * scale);
}

function timeTicks(max, n) {
  if (max < 60) return ticks(max, n);
  for (const [unitOf, steps] of [[60, [1, 2, 5, 10, 15, 30, 60]], [3600, [1, 2, 3, 6, 12, 24]]])
    if (max < unitOf * 60 || unitOf === 3600 && max < 3 * 86400) return ticks(max / unitOf, n, steps).map(v => v * unitOf);
  return ticks(max / 86400, n).map(v => v * 86400);
}
