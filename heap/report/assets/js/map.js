// The tab of the heap map: where blocks and holes are, as btheap map writes it.

const mapColumns = 64; // cells in a row of the picture

// mapSeries returns what the chart shows of each moment: from the blocks, or else as the
// allocator says.
function mapSeries(moments) {
  return moments.map(({blocks: b, allocator: a}) => b ? {used: b.used, free: b.free, largest: b.largest, fragmentation: b.fragmentation} :
    {used: (a.size ?? a.free) - a.free, free: a.free, largest: a.largest ?? 0, fragmentation: a.fragmentation ?? 0});
}

// cellAddress returns the first address of a cell of a range, in hexadecimal.
function cellAddress(range, cell) {
  const at = BigInt(range.start) + BigInt(Math.floor(range.length * cell / range.cells.length));
  return "0x" + at.toString(16).padStart(8, "0");
}

// drawMap draws the tab.
function drawMap(ctx, panel) {
  const {map} = ctx.m.data, {moments} = map, now = moments[ctx.state.at];
  const pick = at => ctx.set({at});
  const chart = moments.length > 1 ? newMapChart(map, pick) : null;
  if (chart) {
    panel.append(el("div", {class: "bar"},
      el("label", {}, "Moment", el("select", {id: "moment", onchange: e => pick(Number(e.target.value))},
        moments.map((x, i) => el("option", {value: i, selected: i === ctx.state.at}, moments.some(y => y.boot !== x.boot) ? `${x.name}, boot ${x.boot}` : x.name)))),
      el("span", {class: "legend"}, [["used", "used"], ["free", "free"], ["largest", "largest hole"]].map(([c, text]) => el("span", {class: "key " + c}, text)))),
    chart.box);
    chart.show(ctx.state.at);
  }
  panel.append(...mapSummary(map, now));
  const pictures = now.ranges.map(r => drawRange(r));
  panel.append(...pictures);
  const tables = [];
  if (now.pins.length) tables.push(pinTable(ctx, now));
  if (now.sizes.length) tables.push(sizeTable(now));
  for (const [title, table] of tables) panel.append(el("h2", {class: "small"}, title), table.box);
  if (now.blocks && !now.pins.length) panel.append(el("p", {class: "muted"}, "No block lies between two holes that are larger than what is between them."));
  for (const [, table] of tables) table.resize();
  return {resize() { if (chart) chart.show(ctx.state.at); for (const [, table] of tables) table.resize(); }, redraw() {}};
}

function mapSummary(map, now) {
  const out = [], {blocks: b, allocator: a} = now, percent = part => (100 * part).toFixed(1) + " %";
  if (b) {
    out.push(el("p", {id: "map-summary"}, el("b", {}, now.name), `: ${grouped(b.used)} of ${grouped(b.size)} bytes used by ${plural(b.count, "block")}; ${grouped(b.free)} free in ${plural(b.holes, "hole")}, the largest of ${grouped(b.largest)}: `,
      el("b", {}, `fragmentation ${percent(b.fragmentation)}`), "."));
    const more = [map.about, `Gaps below ${plural(now.least_hole, "byte")} are not counted as holes.`];
    if (b.outside) more.push(`${plural(b.outside, "block")} outside of the heap.`);
    if (b.overlap) more.push(`${plural(b.overlap, "block overlaps", "blocks overlap")}: the log lacks the lines that freed them, or is wrong.`);
    out.push(el("p", {class: "muted"}, more.join(" ")));
  } else {
    out.push(el("p", {id: "map-summary"}, el("b", {}, now.name), ": the blocks have no addresses."));
  }
  if (a) out.push(el("p", {}, allocatorText(a, percent)));
  return out;
}

// allocatorText returns what the allocator says of the heap with the least free memory. A value that it does not say is null.
function allocatorText(a, percent) {
  return `The allocator says${a.name ? " of heap " + a.name : ""}: ${grouped(a.free)} ` + (a.size === null ? "bytes free" : `of ${grouped(a.size)} bytes free`) +
    (a.largest === null ? "" : `, the largest free block ${grouped(a.largest)}, fragmentation ${percent(a.fragmentation)}`) +
    (a.min === null ? "" : `; at least ${grouped(a.min)} were free since the boot`) + ".";
}

// drawRange draws a range of addresses, a row of cells after the other, darker the more of a
// cell is used.
function drawRange(range) {
  const n = range.cells.length, columns = Math.min(mapColumns, n), rows = Math.ceil(n / columns);
  const full = range.cells.filter(c => c > 0).length;
  const label = `${range.start}, ${grouped(range.length)} bytes: ${full} of ${n} cells have blocks`;
  const cells = range.cells.map((part, i) => svg("rect", {x: i % columns, y: Math.floor(i / columns), width: 1, height: 1, class: part ? "used" : "hole", "fill-opacity": part ? (0.15 + 0.85 * part / 100).toFixed(2) : 1}));
  const picture = svg("svg", {class: "cells", viewBox: `0 0 ${columns} ${rows}`, preserveAspectRatio: "none", role: "img", "aria-label": label}, cells);
  const box = el("div", {class: "range"}, el("div", {class: "place"}, `${cellAddress(range, 0)}, ${grouped(range.length)} bytes`), picture);
  picture.style.height = rows * 12 + "px";
  picture.addEventListener("pointermove", e => {
    const r = picture.getBoundingClientRect();
    const i = Math.min(rows - 1, Math.floor((e.clientY - r.top) / r.height * rows)) * columns + Math.min(columns - 1, Math.floor((e.clientX - r.left) / r.width * columns));
    if (i < 0 || i >= n) return tip.hide();
    tip.show(e.clientX, e.clientY, [el("b", {}, `${cellAddress(range, i)} to ${cellAddress(range, i + 1)}`), el("div", {}, `${range.cells[i]} % used`)]);
  });
  picture.addEventListener("pointerleave", tip.hide);
  return box;
}

function pinTable(ctx, now) {
  const rows = now.pins.filter(p => !ctx.hits || p.stack.some(s => ctx.hits[ctx.keys[s]]));
  const number = (id, title, hint, low) => ({id, title, hint, low, num: true, value: r => r[id], cell: r => grouped(r[id])});
  return ["Blocks that keep holes apart" + (now.left ? ` (${plural(now.left, "call path")} more)` : ""), newTable({caption: "call paths whose blocks keep holes apart", rows, sort: "kept", open: r => openPath(ctx, r), columns: [
    {id: "path", title: "Call path", hint: "innermost first", name: true, value: r => r.stack.map(s => ctx.m.sites[s][0]).join(" ").toLowerCase(), cell: r => pathCell(ctx, r.stack, () => openPath(ctx, r))},
    number("kept", "Kept", "bytes of the smaller holes beside the blocks"), number("count", "Blocks", "", true), number("bytes", "Bytes", "of the blocks", true),
    {id: "address", title: "Address", hint: "of the block between the largest holes", low: true, value: r => r.address.padStart(18), cell: r => r.address},
  ]})];
}

function sizeTable(now) {
  const rows = now.sizes;
  const most = Math.max(...rows.map(r => Math.max(r.hole_bytes, r.block_bytes)), 1);
  const bar = (v, kind) => [el("span", {class: "num"}, grouped(v)), svg("svg", {class: "bar-of " + kind, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"}, svg("rect", {width: 100 * v / most, height: 10}))];
  return ["Sizes", newTable({caption: "holes and blocks by size", rows, sort: "-min", open() {}, columns: [
    {id: "min", title: "Size", hint: "bytes", num: true, value: r => r.min, cell: r => r.max > r.min ? `${short(r.min, BYTES)} to ${short(r.max + 1, BYTES)}` : grouped(r.min)},
    {id: "holes", title: "Holes", num: true, low: true, value: r => r.holes, cell: r => grouped(r.holes)},
    {id: "hole_bytes", title: "Bytes in holes", num: true, value: r => r.hole_bytes, cell: r => bar(r.hole_bytes, "free")},
    {id: "blocks", title: "Blocks", num: true, low: true, value: r => r.blocks, cell: r => grouped(r.blocks)},
    {id: "block_bytes", title: "Bytes in blocks", num: true, value: r => r.block_bytes, cell: r => bar(r.block_bytes, "used")},
  ]})];
}

// newMapChart returns the chart of what is used and free, and of the largest hole, over the
// moments. picked(i) is called with the moment that is chosen.
function newMapChart(map, picked) {
  const {moments} = map, series = mapSeries(moments), height = 150, left = 62, right = 14, top = 12, bottom = 24;
  const box = el("div", {class: "timeline", id: "map-chart", tabindex: 0, role: "slider", "aria-label": "moment of the heap map", "aria-valuemin": 1, "aria-valuemax": moments.length});
  let width = 0, scale, at = 0;
  const describe = i => `${moments[i].name}: ${short(series[i].used, BYTES)} used, ${short(series[i].free, BYTES)} free, largest hole ${short(series[i].largest, BYTES)}, fragmentation ${(100 * series[i].fragmentation).toFixed(1)} %`;
  const px = i => left + scale.x.get(i) * (width - left - right);
  const under = e => nearestDump(scale, (e.clientX - box.getBoundingClientRect().left - left) / (width - left - right));

  function show(now) {
    at = now;
    width = Math.max(box.clientWidth, 200);
    scale = timeScale(moments, bootsOf(moments));
    const max = Math.max(...series.map(s => Math.max(s.used, s.free)), 1), yTicks = byteTicks(max, 3);
    const y = v => top + (height - top - bottom) * (1 - v / Math.max(max, yTicks[yTicks.length - 1])), parts = [];
    for (const v of yTicks) parts.push(svg("line", {class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v)}), svg("text", {x: left - 6, y: y(v) + 4, "text-anchor": "end"}, short(v, BYTES)));
    let free = 0; // from where the axis has no label yet: one of each boot, and the last moment
    for (const p of scale.parts) {
      for (const kind of ["used", "free", "largest"]) parts.push(svg("polyline", {class: "line " + kind, points: p.list.map(i => `${px(i).toFixed(1)},${y(series[i][kind]).toFixed(1)}`).join(" ")}));
      const first = p.list[0], last = p.list[p.list.length - 1], late = p.first > 50 * p.span;
      const text = i => !scale.timed ? String(i + 1) : late && i > first ? "+" + duration(moments[i].time - p.first) : duration(moments[i].time);
      if (px(first) >= free) {
        parts.push(svg("text", {x: px(first), y: height - 7, "text-anchor": "middle"}, text(first)));
        free = px(first) + 60;
      }
      if (p === scale.parts[scale.parts.length - 1] && px(last) >= free) parts.push(svg("text", {x: px(last), y: height - 7, "text-anchor": last === moments.length - 1 ? "end" : "middle"}, text(last)));
    }
    parts.push(svg("g", {class: "cursor now"}, svg("line", {x1: px(at), x2: px(at), y1: top - 4, y2: height - bottom}), svg("circle", {cx: px(at), cy: y(series[at].largest), r: 5})));
    box.replaceChildren(svg("svg", {width, height, "aria-hidden": "true"}, parts));
    box.setAttribute("aria-valuenow", at + 1);
    box.setAttribute("aria-valuetext", describe(at));
  }
  box.addEventListener("pointermove", e => tip.show(e.clientX, e.clientY, [describe(under(e))]));
  box.addEventListener("pointerleave", tip.hide);
  box.addEventListener("click", e => { picked(under(e)); byID("map-chart").focus({preventScroll: true}); });
  box.addEventListener("keydown", e => {
    const step = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -moments.length, End: moments.length}[e.key];
    if (!step || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    e.stopPropagation();
    picked(Math.max(0, Math.min(moments.length - 1, at + step)));
    byID("map-chart").focus({preventScroll: true});
  });
  return {box, show};
}
