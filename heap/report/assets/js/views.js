// The contents of the tabs. Each view is made with the page's context ctx: {m, state, w,
// keys, set(change)}, where set changes the state and draws again.

const siteOfKey = (ctx, key) => ctx.m.sites[key];

function titleOf(ctx, node) {
  if (node.rest) return `${grouped(node.list.length)} smaller`;
  if (node.key < 0) return "all";
  return nameOf(siteOfKey(ctx, node.key), ctx.state.group);
}

// moduleOf is the module of a site, where the source file does not name it already.
function placesOf(ctx, sites) {
  const places = [...new Set(sites.map(s => placeOf(ctx.m.sites[s])).filter(Boolean))];
  const modules = [...new Set(sites.map(s => ctx.m.sites[s][3]).filter(Boolean))];
  const few = (list, n) => list.slice(0, n).join(", ") + (list.length > n ? ` and ${grouped(list.length - n)} more` : "");
  return {places: few(places, 3), modules: few(modules, 2)};
}

// changeText is what a value is, and in a difference what it became.
function changeText(now, base, diff, weight) {
  return diff ? `${signed(now - base)} ${weight === COUNT ? "allocations" : "bytes"} (${grouped(base)} → ${grouped(now)})` : unit(now, weight);
}

// aboutNode describes a tree node in lines, for the tooltip and for the text below a graph.
function aboutNode(ctx, node) {
  const {w, state} = ctx, a = amounts(node), all = w.total.gain[0] + w.total.loss[0], lines = [el("b", {}, titleOf(ctx, node))];
  if (node.rest) lines.push(el("div", {class: "muted"}, "too narrow to draw one by one; click to zoom in"));
  const {places, modules} = placesOf(ctx, sitesOf(node));
  if (places) lines.push(el("div", {class: "place"}, places));
  if (modules) lines.push(el("div", {class: "place"}, "in " + modules));
  lines.push(el("div", {}, changeText(a.bytes, a.baseBytes, w.diff, BYTES)), el("div", {}, changeText(a.count, a.baseCount, w.diff, COUNT)));
  if (!w.diff) lines.push(el("div", {}, `${share(sizeOf(node), all)} of all ${state.weight === COUNT ? "allocations" : "bytes"}`));
  else if (node.gain && node.loss) lines.push(el("div", {}, `${grouped(node.gain)} gained, ${grouped(node.loss)} lost`));
  const own = state.weight === COUNT ? a.ownCount : a.ownBytes;
  if (!node.tree.callers && node.parent && node.key >= 0 && !w.diff && own && own !== sizeOf(node)) lines.push(el("div", {}, `${unit(own, state.weight)} by itself`));
  const growth = growthOf(ctx, node);
  if (growth) lines.push(growth);
  return lines;
}

// growthOf is how a node grew since the first dump of the boot, with a line of its values.
function growthOf(ctx, node) {
  const {m, state} = ctx;
  if (state.cost !== "live" || m.dumps.length < 2) return null;
  const list = bootsOf(m.dumps).find(b => b.list.includes(state.now)).list.filter(d => m.dumps[d].steady || d === state.now);
  const points = seriesOf(node, state.weight), first = list[0];
  if (list.length < 2) return null;
  return el("div", {class: "growth"}, sparkline(list.map(d => points[d]), "over the dumps"),
    state.now === first ? "" : `${signed(points[state.now] - points[first])} since ${m.dumps[first].name}`);
}

function flameOptions(ctx) {
  return {
    name: n => titleOf(ctx, n),
    hit: n => n.key >= 0 && ctx.hits && ctx.hits[n.key],
    color: (n, dark) => {
      if (n.rest) return ctx.w.diff ? changeColor(n.gain, n.loss, dark) : restColor(dark);
      if (ctx.w.diff) return changeColor(n.gain, n.loss, dark);
      if (n.key < 0) return rootColor(dark);
      const s = siteOfKey(ctx, n.key);
      return frameColor(nameOf(s, ctx.state.group), ctx.hueOf(s), dark);
    },
    text: n => aboutNode(ctx, n),
    pick: n => { if (n.key >= 0) ctx.set({tab: "functions", fn: String(n.key)}); },
  };
}

// drawFlame draws the flame graph of the tab.
function drawFlame(ctx, panel) {
  const {w, state} = ctx, root = state.invert ? inverted(w, ctx.keys) : forward(w, ctx.keys), zoomed = findPlace(root, state.zoom);
  if (!sizeOf(root)) {
    panel.append(el("p", {class: "empty"}, emptyText(ctx)));
    return null;
  }
  const about = el("div", {id: "about"});
  const describe = node => {
    const pick = node.key >= 0 ? el("button", {type: "button", onclick: () => ctx.set({tab: "functions", fn: String(node.key)})}, "Callers and callees") : null;
    about.replaceChildren(el("div", {"aria-live": "polite"}, aboutNode(ctx, node)), el("div", {class: "bar"}, pick));
  };
  const zoom = node => {
    ctx.set({zoom: placeKey(node)}, false);
    out.disabled = !node.parent;
    flame.show(node);
    minimap.show(node);
    flame.canvas.focus({preventScroll: true});
    describe(node);
  };
  const out = el("button", {type: "button", id: "out", disabled: !zoomed.parent, onclick: () => zoom(root)}, "Zoom out");
  const minimap = newMinimap({...flameOptions(ctx), root, zoom: node => zoom(node)});
  const flame = newFlame({...flameOptions(ctx), label: state.invert ? "flame graph, innermost functions first" : "flame graph", zoom, focus: describe});
  panel.append(el("div", {class: "bar"},
    el("button", {type: "button", id: "invert", "aria-pressed": state.invert, title: "draw the innermost functions first ( i )", onclick: () => ctx.set({invert: !state.invert, zoom: ""})}, "Invert"), out,
    el("span", {class: "muted hint"}, "Click: zoom. Shift and click: callers and callees. Arrow keys and Enter work, too.")), minimap.box, flame.box, about);
  flame.show(zoomed);
  minimap.show(zoomed);
  describe(zoomed);
  ctx.flame = flame;
  return {resize: () => { flame.show(flame.zoomed); minimap.show(flame.zoomed); }, redraw: flame.draw};
}

function emptyText(ctx) {
  if (ctx.state.module || ctx.state.thread || ctx.state.only && ctx.state.search) return "No call path matches the filter.";
  return ctx.w.diff ? "No call path differs between the two dumps." : "Nothing is live here.";
}

// nameCell is the cell of a function: its name, and place and module beside it.
function nameCell(ctx, site, text, open) {
  const where = [shortPlace(site, ctx.state.group === "line"), site[1] ? site[3] : ""].filter(Boolean).join(" · ");
  return [el("button", {type: "button", title: [text, placeOf(site), site[3]].filter(Boolean).join("\n"), onclick: e => { e.stopPropagation(); open(); }}, text),
    where && where !== text ? el("span", {class: "where"}, where) : null];
}

// drawFunctions draws the table of functions, and of the chosen one who calls it, what it
// calls and its source.
function drawFunctions(ctx, panel) {
  const {w, state, m} = ctx, diff = w.diff, weight = state.weight;
  if (!ctx.functions || ctx.functions.w !== w || ctx.functions.keys !== ctx.keys) ctx.functions = {w, keys: ctx.keys, rows: functionRows(w, ctx.keys)};
  let rows = ctx.functions.rows.slice();
  if (ctx.hits) rows = rows.filter(r => ctx.hits[r.key]);
  const all = weight === COUNT ? w.total.count[0] : w.total.bytes[0];
  const amount = (id, title, hint, name, low) => ({id, title, hint, num: true, low,
    value: r => r[name] - (diff ? r[baseName(name)] : 0), cell: r => diff ? changeSpan(r[name] - r[baseName(name)]) : grouped(r[name])});
  const baseName = name => name.replace("bytes", "baseBytes").replace("count", "baseCount");
  const part = (id, title, name) => ({id, title, hint: "share of the whole", num: true, low: true, value: r => r[name], cell: r => share(r[name], all)});
  const own = "of call paths in which the function is innermost", total = "of all call paths with the function";
  const main = weight === COUNT ? "count" : "bytes", other = weight === COUNT ? "bytes" : "count";
  const titles = {bytes: "bytes", count: "count"};
  const columns = [
    {id: "name", title: "Function", hint: "name", name: true, value: r => nameOf(m.sites[r.key], state.group).toLowerCase(),
      cell: r => nameCell(ctx, m.sites[r.key], nameOf(m.sites[r.key], state.group), () => choose(r))},
    amount("self", "Self " + titles[main], own, "own_" + main), diff ? null : part("self-share", "Self %", "own_" + main),
    amount("total", "Total " + titles[main], total, main), diff ? null : part("total-share", "Total %", main),
    amount("self-other", "Self " + titles[other], own, "own_" + other, true), amount("total-other", "Total " + titles[other], total, other, true),
  ].filter(Boolean);
  const side = el("div", {class: "side"});
  const choose = r => {
    ctx.set({fn: String(r.key)}, false);
    table.mark();
    show();
  };
  const table = newTable({caption: "functions", columns, rows, open: choose, sort: ctx.sort || "self", sorted: s => { ctx.sort = s; }, chosen: r => String(r.key) === ctx.state.fn});
  let views = [];
  function show() {
    const key = Number(ctx.state.fn);
    side.replaceChildren();
    views = [];
    split.classList.toggle("open", ctx.state.fn !== "");
    if (ctx.state.fn !== "" && key < m.sites.length) views = drawSandwich(ctx, side, key);
  }
  const split = el("div", {class: "split"}, el("div", {class: "main"},
    el("p", {class: "muted"}, `${plural(rows.length, "function")}${ctx.hits ? " that match" : ""}. Self: ${own}. Total: ${total}.`), table.box), side);
  panel.append(split);
  table.resize();
  show();
  return {resize: () => { table.resize(); for (const v of views) v.show(v.zoomed); }, redraw: () => views.forEach(v => v.draw())};
}

function changeSpan(n) {
  return el("span", {class: n > 0 ? "gain" : n < 0 ? "loss" : ""}, signed(n));
}

// drawSandwich draws the callers of a function above it and its callees below.
function drawSandwich(ctx, side, key) {
  const {w, m, state} = ctx, site = m.sites[key], members = outermost(m, ctx.keys, key);
  const callees = forward(w, ctx.keys, members, key), callers = inverted(w, ctx.keys, members, key);
  const close = el("button", {type: "button", "aria-label": "close", onclick: () => ctx.set({fn: ""})}, "×");
  side.append(el("div", {class: "bar"}, el("h2", {}, nameOf(site, state.group)), el("span", {class: "grow"}), close));
  if (!sizeOf(callees)) {
    side.append(el("p", {class: "empty"}, emptyText(ctx)));
    return [];
  }
  side.append(el("div", {class: "about"}, aboutNode(ctx, callees).slice(1)));
  const views = [];
  for (const [title, root, flip] of [["Callers", callers, true], ["Callees", callees, false]]) {
    if (!childrenOf(root).length) {
      side.append(el("p", {class: "muted"}, flip ? "It is the outermost frame: no callers." : "It calls nothing that allocates: no callees."));
      continue;
    }
    const flame = newFlame({...flameOptions(ctx), label: `${title.toLowerCase()} of ${nameOf(site, state.group)}`, flip, zoom: n => flame.show(n), focus: () => {}});
    side.append(el("h3", {}, title), flame.box);
    flame.show(root);
    views.push(flame);
  }
  return views;
}

// pathCell is a call path in one line, the innermost function first.
function pathCell(ctx, stack, open) {
  const names = stack.map(s => nameOf(ctx.m.sites[s], "function"));
  const full = stack.map(s => [nameOf(ctx.m.sites[s], "function"), placeOf(ctx.m.sites[s])].filter(Boolean).join("  ")).join("\n");
  return [el("button", {type: "button", title: full, onclick: e => { e.stopPropagation(); open(); }}, names[0] || "all call paths"),
    el("span", {class: "where"}, names.slice(1).map(n => "← " + n).join(" "))];
}

// openPath shows a call path in the flame graph.
function openPath(ctx, row) {
  if (row.node > 0) ctx.set({tab: "flame", invert: false, cost: "live", search: "", only: false, module: "", thread: "", group: ctx.state.group, zoom: String(row.node)});
}

// badge returns the classes of a verdict: red if it is sure, yellow if it is a leak.
const badge = x => "badge " + (x.sure ? "leak" : x.verdict.startsWith("leak") ? "likely" : "");

// growthPicture draws a growth: values, floor, segments, begin, and the way to exhaustion.
function growthPicture(p) {
  return p && svg("svg", {class: "growth", viewBox: "0 0 640 180", role: "img", "aria-label": p.label},
    p.shapes.map(s => svg("path", {class: s.class, d: s.d})), p.texts.map(t => svg("text", {x: t.x, y: t.y, "text-anchor": t.anchor}, t.text)));
}

// drawLeaks draws the ranked leaks, as btheap leaks lists them.
function drawLeaks(ctx, panel) {
  const {m} = ctx, {leaks} = m.data;
  panel.append(el("div", {class: "verdict"}, leaks.summary.map((s, i) => el("p", {class: i ? "muted" : "lead"}, s))));
  for (const h of leaks.heaps || []) {
    panel.append(el("div", {class: "heap"}, el("span", {class: badge(h)}, h.verdict), el("div", {class: "what"}, h.lines.map((s, i) => el("p", {class: i ? "muted" : "lead"}, s)), growthPicture(h.picture))));
  }
  const rows = leaks.rows.filter(r => !ctx.hits || r.stack.some(s => ctx.hits[ctx.keys[s]]));
  if (!rows.length) {
    if (ctx.hits) panel.append(el("p", {class: "empty"}, "No leak matches the search."));
    return {resize() {}, redraw() {}};
  }
  panel.append(el("ol", {class: "leaks"}, rows.map(r => el("li", {},
    el("span", {class: badge(r)}, r.verdict),
    el("div", {class: "what"},
      el("button", {type: "button", class: "link", disabled: r.node <= 0, onclick: () => openPath(ctx, r), title: "open in the flame graph"}, nameOf(m.sites[r.stack[0]] || ["(no frames)", "", 0, ""], "function")),
      el("span", {class: "where"}, r.stack.length ? shortPlace(m.sites[r.stack[0]]) : ""),
      el("div", {class: "chain", title: r.stack.map(s => m.sites[s][0]).join("\n")}, r.stack.slice(1).map(s => "← " + nameOf(m.sites[s], "function")).join(" ")),
      el("div", {class: "muted"}, r.text),
      (r.parts || []).map(([frames, rate]) => el("div", {class: "chain"}, frames + "  " + rate)),
      growthPicture(r.picture)),
    el("div", {class: "rate"}, el("b", {class: r.grows ? "gain" : ""}, r.rate),
      el("div", {class: "muted"}, `${grouped(r.first.count)} → ${grouped(r.last.count)} blocks, ${grouped(r.first.bytes)} → ${grouped(r.last.bytes)} bytes`)),
    sparkline(r.points, r.points.map(grouped).join(", "), 160)))));
  return {resize() {}, redraw() {}};
}
