"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const {dumps, sites, parent, site, growth, growthTotal} = data;
const BYTES = 0, COUNT = 1;

// ---- numbers and elements ----

const grouped = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
const unit = (n, w) => w === COUNT ? grouped(n) + (Math.abs(n) === 1 ? " allocation" : " allocations") : grouped(n) + (Math.abs(n) === 1 ? " byte" : " bytes");
const signed = n => (n > 0 ? "+" : n < 0 ? "−" : "") + grouped(Math.abs(n));
const share = (part, all) => all ? (100 * part / all).toFixed(1) + "%" : "0.0%";
const place = s => sites[s][1] ? sites[s][1] + (sites[s][2] ? ":" + sites[s][2] : "") : sites[s][3];
const fullName = s => sites[s][0] + (place(s) ? "  " + place(s) : "");

// el makes an element; text is set as text, so that no name is ever markup.
function el(tag, attrs, ...children) {
  const e = document.createElement(tag);
  fill(e, attrs, children);
  return e;
}
function svg(tag, attrs, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(e, attrs, children);
  return e;
}
function fill(e, attrs, children) {
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v === true) e.setAttribute(k, "");
    else if (v !== false && v != null) e.setAttribute(k, v);
  }
  e.append(...children.filter(c => c != null));
}

// ---- state; it is in the address, so that a view can be sent ----

const last = dumps.length - 1;
const state = {tab: "flame", now: last, base: -1, weight: BYTES, invert: false, search: "", zoom: "", theme: "", sort: "", cum: false};
function readHash() {
  const p = new URLSearchParams(location.hash.slice(1));
  const int = (k, from, to, or) => { const n = Number(p.get(k)); return p.has(k) && Number.isInteger(n) && n >= from && n <= to ? n : or; };
  if (["flame", "table", "growth"].includes(p.get("tab"))) state.tab = p.get("tab");
  if (state.tab === "growth" && !growth) state.tab = "flame";
  state.now = int("dump", 0, last, last);
  state.base = int("base", 0, last, -1);
  state.weight = p.get("weight") === "count" ? COUNT : BYTES;
  state.invert = p.get("invert") === "1";
  state.search = p.get("search") || "";
  if (["light", "dark"].includes(p.get("theme"))) state.theme = p.get("theme");
}
function writeHash() {
  const p = new URLSearchParams();
  if (state.tab !== "flame") p.set("tab", state.tab);
  if (state.now !== last) p.set("dump", state.now);
  if (state.base >= 0) p.set("base", state.base);
  if (state.weight === COUNT) p.set("weight", "count");
  if (state.invert) p.set("invert", "1");
  if (state.search) p.set("search", state.search);
  if (state.theme) p.set("theme", state.theme);
  history.replaceState(null, "", "#" + p);
}

// ---- the tree of call paths ----
// Of a dump, what a path gained and lost against the base dump; with no base all of it
// is gained. A frame is as wide as gains and losses together, so that nothing cancels.

function selfOf() {
  const gain = new Float64Array(parent.length), loss = new Float64Array(parent.length);
  const value = d => {
    const v = new Float64Array(parent.length), list = dumps[d].values;
    for (let i = 0; i < list.length; i += 3) v[list[i]] = list[i + 1 + state.weight];
    return v;
  };
  const now = value(state.now), base = state.base >= 0 ? value(state.base) : null;
  for (let i = 0; i < parent.length; i++) {
    const d = now[i] - (base ? base[i] : 0);
    if (d > 0) gain[i] = d; else loss[i] = -d;
  }
  return {gain, loss, now, base};
}

// build makes the tree that is drawn: from the outermost frame, or inverted from the
// innermost. A node is {site, gain, loss, children, parent, depth}.
function build() {
  const self = selfOf();
  const root = {site: -1, gain: 0, loss: 0, selfGain: 0, selfLoss: 0, children: new Map(), parent: null, depth: 0};
  const child = (node, s) => {
    let c = node.children.get(s);
    if (!c) {
      c = {site: s, gain: 0, loss: 0, selfGain: 0, selfLoss: 0, children: new Map(), parent: node, depth: node.depth + 1};
      node.children.set(s, c);
    }
    return c;
  };
  const path = [];
  for (let i = 0; i < parent.length; i++) {
    const g = self.gain[i], l = self.loss[i];
    if (g + l === 0) continue;
    path.length = 0;
    for (let n = i; n > 0; n = parent[n]) path.push(site[n]); // innermost first; 0 is the root
    if (!state.invert) path.reverse();
    let node = root;
    node.gain += g; node.loss += l;
    for (const s of path) {
      node = child(node, s);
      node.gain += g; node.loss += l;
    }
    node.selfGain += g; node.selfLoss += l;
  }
  each(root, node => { node.list = [...node.children.values()].sort((a, b) => b.gain + b.loss - a.gain - a.loss); });
  return root;
}

// each visits a node, and then what is below it if visit does not return false. It does
// not call itself: stacks can be deeper than a browser's.
function each(node, visit) {
  for (const work = [node]; work.length;) {
    const n = work.pop();
    if (visit(n) !== false) for (let i = n.list.length; i-- > 0;) work.push(n.list[i]);
  }
}

const key = node => { const k = []; for (let n = node; n.parent; n = n.parent) k.push(n.site); return k.reverse().join("."); };
function find(root, k) {
  let n = root;
  for (const s of k ? k.split(".") : []) {
    n = n.children.get(Number(s));
    if (!n) return root;
  }
  return n;
}

// ---- search ----

let matcher = null;
function compile() {
  matcher = null;
  if (!state.search) return "";
  try {
    matcher = new RegExp(state.search, "i");
    return "";
  } catch (e) {
    const plain = state.search.toLowerCase();
    matcher = {test: s => s.toLowerCase().includes(plain)};
    return "not a regular expression; searched as text";
  }
}
const hitCache = new Map();
function hit(s) {
  if (!matcher || s < 0) return false;
  let h = hitCache.get(s);
  if (h === undefined) hitCache.set(s, h = matcher.test(sites[s][0]) || matcher.test(sites[s][1]) || matcher.test(sites[s][3]));
  return h;
}
// matched returns what of a tree is under a frame that matches.
function matched(node) {
  let sum = 0;
  each(node, n => {
    if (!hit(n.site)) return true;
    sum += n.gain + n.loss;
    return false;
  });
  return sum;
}

// ---- flame graph ----

const rowHeight = 19;
let root, zoomed, shown = [];

// color follows the name, so that a function looks the same everywhere; in a diff it
// follows the net change.
function color(node) {
  if (state.base >= 0) {
    const all = node.gain + node.loss, net = all ? (node.gain - node.loss) / all : 0;
    const strength = 88 - Math.round(28 * Math.abs(net));
    return net > 0 ? `hsl(8 75% ${strength}%)` : net < 0 ? `hsl(212 75% ${strength}%)` : "hsl(0 0% 86%)";
  }
  let h = 0;
  const name = sites[node.site][3] || sites[node.site][0];
  for (let i = 0; i < name.length; i++) h = (h * 31 + name.charCodeAt(i)) >>> 0;
  let v = 0;
  const f = sites[node.site][0];
  for (let i = 0; i < f.length; i++) v = (v * 31 + f.charCodeAt(i)) >>> 0;
  return `hsl(${20 + h % 40} ${70 + v % 20}% ${68 + v % 14}%)`;
}

function amount(node, all) {
  if (state.base >= 0) {
    const parts = [];
    if (node.gain) parts.push("+" + grouped(node.gain));
    if (node.loss) parts.push("−" + grouped(node.loss));
    return parts.join(" ") + (state.weight === COUNT ? " allocations" : " bytes");
  }
  return unit(node.gain, state.weight) + ", " + share(node.gain, all);
}

function drawFlame(panel) {
  const all = root.gain + root.loss;
  const box = el("div", {id: "flame", role: "group", "aria-label": "flame graph"});
  panel.append(box);
  if (!all) {
    box.append(el("p", {}, state.base >= 0 ? "No call path differs between the two dumps." : "The dump holds nothing that is shown."));
    return;
  }
  const width = Math.max(box.clientWidth, 400), total = zoomed.gain + zoomed.loss;
  let deepest = 0, narrow = 0;
  shown = [];
  const put = (node, x, w, above) => {
    const px = w * width;
    if (px < 1) { narrow++; return; }
    deepest = Math.max(deepest, node.depth);
    const label = node.site < 0 ? "all" : sites[node.site][0];
    const classes = "frame" + (hit(node.site) ? " hit" : "") + (above ? " above" : "");
    const b = el("button", {class: classes, "aria-label": `${label}, ${amount(node, all)}`,
      onclick: () => zoom(node), onfocus: () => describe(node, all), onmouseenter: () => describe(node, all)}, px > 20 ? label : "");
    b.style.left = (100 * x) + "%";
    b.style.width = (100 * w) + "%";
    b.style.top = (node.depth * rowHeight) + "px";
    b.style.background = node.site < 0 ? "hsl(210 8% 82%)" : color(node);
    b.tabIndex = node === zoomed ? 0 : -1;
    node.button = b;
    shown.push(node);
    box.append(b);
  };
  const line = [];
  for (let n = zoomed.parent; n; n = n.parent) line.push(n);
  line.reverse().forEach(n => put(n, 0, 1, true));
  zoomed.x = 0;
  each(zoomed, node => {
    const w = (node.gain + node.loss) / total;
    put(node, node.x, w, false);
    if (w * width < 1) return false;
    let at = node.x;
    for (const c of node.list) {
      c.x = at;
      at += (c.gain + c.loss) / total;
    }
    return true;
  });
  box.style.height = ((deepest + 1) * rowHeight) + "px";
  panel.append(el("div", {id: "about"}, el("span", {class: "muted"}, "Point at a frame, or move with the arrow keys.")));
  if (narrow) panel.append(el("p", {class: "muted noprint"}, grouped(narrow) + (narrow === 1 ? " frame is" : " frames are") + " too narrow to show; select a frame to widen what is in it."));
}

function describe(node, all) {
  const about = byID("about");
  if (!about) return;
  const lines = [el("b", {}, node.site < 0 ? "all" : sites[node.site][0])];
  if (node.site >= 0 && place(node.site)) lines.push("  " + place(node.site));
  if (node.site >= 0 && sites[node.site][1] && sites[node.site][3]) lines.push("  in " + sites[node.site][3]);
  lines.push(el("br"), amount(node, all));
  const own = node.selfGain + node.selfLoss;
  if (own && own !== node.gain + node.loss) lines.push(`; ${state.base >= 0 ? signed(node.selfGain - node.selfLoss) : grouped(own)} of it here, not in the frames below`);
  about.replaceChildren(...lines);
}

function zoom(node) {
  state.zoom = key(node);
  draw();
  if (zoomed.button) zoomed.button.focus();
}

function moveFocus(e) {
  const node = shown.find(n => n.button === document.activeElement);
  if (!node) return false;
  const siblings = node.parent ? node.parent.list.filter(n => shown.includes(n) && n.button.isConnected) : [node];
  const i = siblings.indexOf(node);
  const to = {ArrowUp: node.parent, ArrowDown: node.list.find(n => shown.includes(n)), ArrowLeft: siblings[i - 1], ArrowRight: siblings[i + 1]}[e.key];
  if (!to || !to.button || !to.button.isConnected) return e.key.startsWith("Arrow");
  node.button.tabIndex = -1;
  to.button.tabIndex = 0;
  to.button.focus();
  describe(to, root.gain + root.loss);
  return true;
}

// ---- table ----

function rowsOf() {
  const self = selfOf(), rows = new Map();
  const row = s => {
    let r = rows.get(s);
    if (!r) rows.set(s, r = {site: s, flat: 0, cum: 0, flatBase: 0, cumBase: 0});
    return r;
  };
  const seen = new Set();
  for (let i = 0; i < parent.length; i++) {
    const now = self.now[i], base = self.base ? self.base[i] : 0;
    if (!now && !base) continue;
    if (i === 0) continue;
    const r = row(site[i]);
    r.flat += now; r.flatBase += base;
    seen.clear();
    for (let n = i; n > 0; n = parent[n]) {
      if (seen.has(site[n])) continue;
      seen.add(site[n]);
      const c = row(site[n]);
      c.cum += now; c.cumBase += base;
    }
  }
  return [...rows.values()];
}

const tableLimit = 500;
function drawTable(panel) {
  const diff = state.base >= 0, all = total(state.now);
  const columns = diff
    ? [["flat", r => r.flat - r.flatBase, signed], ["flat before", r => r.flatBase, grouped], ["cumulative", r => r.cum - r.cumBase, signed], ["cumulative before", r => r.cumBase, grouped]]
    : [["flat", r => r.flat, grouped], ["flat share", r => r.flat, n => share(n, all)], ["cumulative", r => r.cum, grouped], ["cumulative share", r => r.cum, n => share(n, all)]];
  let sort = columns.find(c => c[0] === state.sort) || columns[0];
  let rows = rowsOf();
  if (matcher) rows = rows.filter(r => hit(r.site));
  rows.sort((a, b) => sort[1](b) - sort[1](a) || fullName(a.site).localeCompare(fullName(b.site)));
  const head = el("tr", {}, ...columns.map(c => el("th", {class: "num", "aria-sort": c === sort ? "descending" : "none", scope: "col"},
    el("button", {onclick: () => { state.sort = c[0]; draw(); }}, c[0] + (c === sort ? " ▾" : "")))), el("th", {scope: "col"}, "call site"));
  const body = rows.slice(0, tableLimit).map(r => el("tr", {}, ...columns.map(c => {
    const v = c[1](r);
    return el("td", {class: "num" + (diff && c[2] === signed ? v > 0 ? " gain" : v < 0 ? " loss" : "" : "")}, c[2](v));
  }), el("td", {class: "name"}, el("button", {title: "find it in the flame graph", onclick: () => {
    state.search = "^" + sites[r.site][0].replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$"; state.tab = "flame"; draw();
  }}, fullName(r.site)))));
  panel.append(el("table", {}, el("caption", {class: "muted"}, (state.weight === COUNT ? "Allocations" : "Bytes") + " by call site: flat, where it is the innermost frame shown; cumulative, where it is any."),
    el("thead", {}, head), el("tbody", {}, ...body)));
  if (rows.length > tableLimit) panel.append(el("p", {class: "muted"}, `The first ${grouped(tableLimit)} of ${grouped(rows.length)} call sites.`));
  if (!rows.length) panel.append(el("p", {}, matcher ? "No call site matches." : "The dump holds nothing that is shown."));
}

const total = d => dumps[d][state.weight === COUNT ? "count" : "bytes"];

// ---- growth ----

function spark(points) {
  const w = 120, h = 24, max = Math.max(...points), min = Math.min(...points, max);
  const xy = points.map((p, i) => `${(2 + i * (w - 4) / Math.max(points.length - 1, 1)).toFixed(1)},${(h - 3 - (max > min ? (p - min) / (max - min) : .5) * (h - 6)).toFixed(1)}`);
  return svg("svg", {width: w, height: h, role: "img", "aria-label": points.map(grouped).join(", ")}, svg("polyline", {class: "spark", points: xy.join(" ")}));
}

function drawGrowth(panel) {
  const list = growth[state.weight].filter(g => !matcher || g.stack.some(hit));
  const each = list.filter(g => g.every).length;
  panel.append(el("p", {}, each ? grouped(each) + (each === 1 ? " call path" : " call paths") + " grew in every dump." : "No call path grew in every dump.",
    el("span", {class: "muted"}, ` The slope is that of the straight line which fits ${state.weight === COUNT ? "the allocations" : "the bytes"} of all ${dumps.length} dumps best, by least squares.`)));
  const row = (g, name) => el("tr", {}, el("td", {class: "num " + (g.slope > 0 ? "gain" : "loss")}, signed(g.slope)),
    el("td", {class: "num"}, grouped(g.points[0])), el("td", {class: "num"}, grouped(g.points[g.points.length - 1])), el("td", {}, spark(g.points)),
    el("td", {}, g.every ? "yes" : ""), el("td", {class: "path"}, ...name));
  const rows = [row(growthTotal[state.weight], ["all call paths"])];
  for (const g of list) rows.push(row(g, g.stack.map(s => el("div", {}, fullName(s)))));
  panel.append(el("table", {}, el("thead", {}, el("tr", {}, ...["slope per dump", "first", "last"].map(t => el("th", {class: "num", scope: "col"}, t)),
    ...["over the dumps", "every dump", "call path, innermost first"].map(t => el("th", {scope: "col"}, t)))), el("tbody", {}, ...rows)));
}

// ---- dumps over time ----

function drawTimeline() {
  const w = Math.max(Math.min(900, 40 * dumps.length), 240), h = 90, base = h - 18, max = Math.max(...dumps.map((_, i) => total(i)), 1);
  const step = w / dumps.length;
  const bars = dumps.flatMap((d, i) => {
    const height = Math.max(1, total(i) / max * (base - 14));
    const g = svg("g", {tabindex: 0, role: "button", "aria-label": `${d.name}, ${unit(total(i), state.weight)}`,
      onclick: e => pick(i, e.shiftKey), onkeydown: e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); pick(i, e.shiftKey); } }},
      svg("title", {}, `${d.name}: ${unit(total(i), state.weight)}`),
      svg("rect", {class: "dump" + (i === state.now ? " now" : i === state.base ? " base" : ""), x: (i * step + step * .1).toFixed(1), y: (base - height).toFixed(1), width: (step * .8).toFixed(1), height: height.toFixed(1)}));
    const every = Math.ceil(dumps.length * 46 / w);
    if (i % every === 0) g.append(svg("text", {x: (i * step + step / 2).toFixed(1), y: h - 5, "text-anchor": "middle"}, d.label));
    return [g];
  });
  return [el("div", {class: "muted noprint"}, "Dumps: select one to see it; with Shift, to compare with it."),
    svg("svg", {width: w, height: h, viewBox: `0 0 ${w} ${h}`}, ...bars)];
}
function pick(i, shift) {
  if (shift) state.base = state.base === i || i === state.now ? -1 : i;
  else { state.now = i; if (state.base === i) state.base = -1; }
  draw();
}

// ---- page ----

const byID = id => document.getElementById(id);
const dark = () => state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

// The controls are made once, so that they keep the focus; sync shows the state in them.
function controls() {
  const options = none => [none ? el("option", {value: -1}, none) : null, ...dumps.map((d, i) => el("option", {value: i}, d.name))];
  const choose = (label, id, none, set) => el("label", {}, label, el("select", {id, onchange: e => { set(Number(e.target.value)); draw(); }}, ...options(none)));
  const button = (id, text, title, set) => el("button", {id, title, onclick: () => { set(); draw(); }}, text);
  const tab = (id, text) => el("button", {role: "tab", id: "tab-" + id, onclick: () => { state.tab = id; draw(); }}, text);
  const many = dumps.length > 1;
  return [
    el("div", {class: "bar"},
      many ? choose("dump", "now", "", n => { state.now = n; if (state.base === n) state.base = -1; }) : null,
      many ? choose("compared with", "base", "nothing", n => { state.base = n === state.now ? -1 : n; }) : null,
      button("weight", "allocations", "bytes or allocations ( w )", () => { state.weight = 1 - state.weight; }),
      button("invert", "invert", "from the innermost frames outward ( i )", () => { state.invert = !state.invert; state.zoom = ""; }),
      el("input", {id: "search", type: "search", placeholder: "search functions ( / )", "aria-label": "search functions", oninput: e => { state.search = e.target.value; draw(); }}),
      el("span", {id: "found", class: "muted", role: "status"}), el("span", {class: "grow"}),
      button("theme", "dark", "dark or light ( d )", () => { state.theme = dark() ? "light" : "dark"; })),
    many ? el("div", {class: "panel", id: "timeline"}) : null,
    el("p", {id: "summary"}),
    el("div", {class: "bar", role: "tablist"}, tab("flame", "flame graph"), tab("table", "table"), growth ? tab("growth", "growth") : null),
    el("div", {class: "panel tabpanel", id: "panel", role: "tabpanel"}),
  ].filter(Boolean);
}

function sync() {
  document.documentElement.dataset.theme = dark() ? "dark" : "light";
  if (dumps.length > 1) {
    byID("now").value = state.now;
    byID("base").value = state.base;
  }
  byID("weight").setAttribute("aria-pressed", state.weight === COUNT);
  byID("invert").setAttribute("aria-pressed", state.invert);
  byID("theme").setAttribute("aria-pressed", dark());
  if (byID("search").value !== state.search) byID("search").value = state.search;
  for (const t of document.querySelectorAll("[role=tab]")) t.setAttribute("aria-selected", t.id === "tab-" + state.tab);
  byID("panel").setAttribute("aria-labelledby", "tab-" + state.tab);
}

function summary() {
  const d = dumps[state.now], out = [`${d.name}: ${unit(d.bytes, BYTES)} in ${unit(d.count, COUNT)}`];
  if (d.time) out.push(`, at ${d.time}`);
  if (state.base >= 0) {
    const change = total(state.now) - total(state.base);
    out.push("; compared with " + dumps[state.base].name + ": ", el("span", {class: change > 0 ? "gain" : "loss"}, signed(change) + (state.weight === COUNT ? " allocations" : " bytes")),
      `, ${grouped(root.gain)} gained and ${grouped(root.loss)} lost`);
  }
  out.push(".");
  if (d.warning) out.push(" ", el("span", {class: "warn"}, d.warning));
  return out;
}

function draw() {
  hitCache.clear();
  const trouble = compile();
  root = build();
  zoomed = find(root, state.zoom);
  sync();
  if (dumps.length > 1) byID("timeline").replaceChildren(...drawTimeline());
  byID("summary").replaceChildren(...summary());
  const panel = byID("panel");
  panel.replaceChildren();
  ({flame: drawFlame, table: drawTable, growth: drawGrowth})[state.tab](panel);
  byID("found").textContent = matcher ? `${share(matched(root), root.gain + root.loss)} under frames that match` + (trouble ? "; " + trouble : "") : "";
  writeHash();
}

document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.altKey || e.metaKey) return;
  const typing = ["INPUT", "SELECT"].includes(document.activeElement.tagName);
  if (typing) {
    if (e.key === "Escape") document.activeElement.blur();
    return;
  }
  if (e.key.startsWith("Arrow")) { if (moveFocus(e)) e.preventDefault(); return; }
  const act = {"/": () => byID("search").focus(), Escape: () => { state.zoom = ""; state.search = ""; draw(); },
    i: () => { state.invert = !state.invert; state.zoom = ""; draw(); }, w: () => { state.weight = 1 - state.weight; draw(); },
    d: () => { state.theme = dark() ? "light" : "dark"; draw(); },
    1: () => { state.tab = "flame"; draw(); }, 2: () => { state.tab = "table"; draw(); }, 3: () => { if (growth) { state.tab = "growth"; draw(); } }}[e.key];
  if (act) { e.preventDefault(); act(); }
});
byID("subtitle").textContent = data.subtitle;
if (data.notes.length) byID("notes").append(el("h2", {}, "Notes"), el("ul", {}, ...data.notes.map(n => el("li", {}, n))));
let resizing;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(draw, 100); });
addEventListener("hashchange", () => { readHash(); draw(); });
byID("app").append(...controls());
readHash();
draw();
})();
