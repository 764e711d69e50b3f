// The heap over time: a line through the dumps, boots one after the other.

// timesOf returns the times of a boot's dumps, in seconds. A dump without one, or with one
// that does not fit its neighbors, is placed evenly between those. It is null if fewer than
// half of the dumps have a time.
function timesOf(dumps, list) {
  const known = longestRise(list.map(d => dumps[d].time));
  if (known.length * 2 < list.length || known.length < Math.min(2, list.length)) return null;
  const at = i => dumps[list[i]].time, out = [];
  const step = known.length > 1 ? (at(known[known.length - 1]) - at(known[0])) / (known[known.length - 1] - known[0]) : 0;
  let k = 0;
  for (let i = 0; i < list.length; i++) {
    while (k < known.length && known[k] < i) k++;
    const before = known[k - 1], after = known[k];
    if (after === i) out.push(at(i));
    else if (before === undefined) out.push(Math.max(0, at(after) - step * (after - i)));
    else if (after === undefined) out.push(at(before) + step * (i - before));
    else out.push(at(before) + (at(after) - at(before)) * (i - before) / (after - before));
  }
  return out;
}

// longestRise returns the places of the longest part of a list, not necessarily connected,
// that never falls. Places without a number are not in it.
function longestRise(values) {
  const tails = [], before = new Array(values.length).fill(-1);
  values.forEach((v, i) => {
    if (v == null) return;
    let from = 0, to = tails.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (values[tails[middle]] <= v) from = middle + 1; else to = middle;
    }
    before[i] = from ? tails[from - 1] : -1;
    tails[from] = i;
  });
  const out = [];
  for (let i = tails.length ? tails[tails.length - 1] : -1; i >= 0; i = before[i]) out.unshift(i);
  return out;
}

// timeScale returns where dumps are on a line from 0 to 1, and what its axis says: by time
// where dumps have one, else by number. A boot is as wide as its time, but at least half of
// an even share.
function timeScale(dumps, boots) {
  const times = boots.map(b => timesOf(dumps, b.list)), timed = times.every(Boolean) && times.some(list => list[list.length - 1] > list[0]);
  const spans = boots.map((b, i) => timed ? times[i][b.list.length - 1] - times[i][0] : b.list.length - 1);
  const weights = spans.map(s => timed ? s : Math.max(s, 0.5));
  const all = weights.reduce((a, b) => a + b, 0), least = boots.length > 1 ? all / boots.length / 2 : 0;
  const widths = weights.map(w => Math.max(w, least)), sum = widths.reduce((a, b) => a + b, 0) || 1;
  const gap = boots.length > 1 ? 0.02 : 0, usable = 1 - gap * (boots.length - 1);
  const x = new Map(), parts = [];
  let at = 0;
  boots.forEach((b, i) => {
    const width = widths[i] / sum * usable, first = timed ? times[i][0] : 0, s = spans[i];
    b.list.forEach((d, k) => x.set(d, at + (s > 0 ? width * (timed ? times[i][k] - first : k) / s : width / 2)));
    parts.push({boot: b.boot, from: at, to: at + width, first, span: s, list: b.list});
    at += width + gap;
  });
  return {timed, x, parts};
}

// nearestDump returns the dump whose place is nearest.
function nearestDump(scale, x) {
  let best = -1, distance = Infinity;
  for (const [d, at] of scale.x) if (Math.abs(at - x) < distance) { distance = Math.abs(at - x); best = d; }
  return best;
}

// newTimeline returns the picture. Options: dumps; picked(now, base), base is -1 unless a
// span was drawn.
function newTimeline(options) {
  const {dumps} = options, height = 144, left = 62, right = 14, top = 30, bottom = 24;
  const box = el("div", {class: "timeline", tabindex: 0, role: "slider", "aria-label": "moment", "aria-valuemin": 1, "aria-valuemax": dumps.length});
  let scale, drag = null, state, width = 0;
  const px = d => left + scale.x.get(d) * (width - left - right);
  const under = e => nearestDump(scale, (e.clientX - box.getBoundingClientRect().left - left) / (width - left - right));
  const value = d => dumps[d][state.weight === COUNT ? "count" : "bytes"];

  function show(s) {
    state = s;
    width = Math.max(box.clientWidth, 200);
    const boots = bootsOf(dumps).filter(b => !s.boot || b.boot === s.boot);
    scale = timeScale(dumps, boots);
    const shown = boots.flatMap(b => b.list), max = Math.max(...shown.map(value), 1);
    const yTicks = s.weight === COUNT ? ticks(max, 3) : byteTicks(max, 3), plot = height - top - bottom;
    const y = v => top + plot * (1 - v / Math.max(max, yTicks[yTicks.length - 1]));
    const parts = [];
    for (const v of yTicks) {
      parts.push(svg("line", {class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v)}),
        svg("text", {x: left - 6, y: y(v) + 4, "text-anchor": "end"}, short(v, s.weight)));
    }
    let lastLabel = -Infinity;
    for (const p of scale.parts) {
      const x0 = left + p.from * (width - left - right), x1 = left + p.to * (width - left - right), line = p.list.map(d => `${px(d).toFixed(1)},${y(value(d)).toFixed(1)}`);
      parts.push(svg("polygon", {class: "area", points: `${px(p.list[0]).toFixed(1)},${y(0)} ${line.join(" ")} ${px(p.list[p.list.length - 1]).toFixed(1)},${y(0)}`}),
        svg("polyline", {class: "line", points: line.join(" ")}));
      if (scale.parts.length > 1) {
        if (p !== scale.parts[0]) parts.push(svg("line", {class: "boot", x1: x0 - 4, x2: x0 - 4, y1: 4, y2: height - bottom}));
        if (x1 - x0 > 44) parts.push(svg("text", {x: x0, y: 11}, `boot ${p.boot}`));
      }
      for (const [at, text] of axis(p, x1 - x0)) {
        const x = x0 + (p.span > 0 ? at / p.span : 0.5) * (x1 - x0);
        if (x - lastLabel < text.length * 7 + 6 || x > width - text.length * 3) continue;
        parts.push(svg("line", {class: "tick", x1: x, x2: x, y1: height - bottom, y2: height - bottom + 4}), svg("text", {x, y: height - 7, "text-anchor": "middle"}, text));
        lastLabel = x;
      }
    }
    for (const d of shown) {
      const bad = dumps[d].warning && !dumps[d].minor;
      if (bad || shown.length <= 150)
        parts.push(svg("circle", {class: "dot" + (bad ? " bad" : dumps[d].warning ? " minor" : dumps[d].steady ? "" : " aside"), cx: px(d).toFixed(1), cy: y(value(d)).toFixed(1), r: bad ? 4 : 2.5}));
    }
    if (s.base >= 0 && scale.x.has(s.base) && scale.x.has(s.now)) {
      const [a, b] = [px(s.base), px(s.now)].sort((p, q) => p - q);
      parts.push(svg("rect", {class: "span", x: a, width: Math.max(1, b - a), y: top, height: plot}));
    }
    const peak = shown.reduce((a, b) => value(b) > value(a) ? b : a, shown[0]);
    if (shown.length > 1) parts.push(mark(peak, y(value(peak)), "peak"));
    if (s.base >= 0 && scale.x.has(s.base)) parts.push(cursor(s.base, "base"));
    if (scale.x.has(s.now)) parts.push(cursor(s.now, "now"));
    box.replaceChildren(svg("svg", {width, height, "aria-hidden": "true"}, parts));
    box.setAttribute("aria-valuenow", s.now + 1);
    box.setAttribute("aria-valuetext", describe(s.now) + (s.base >= 0 ? `; compared with ${describe(s.base)}` : ""));
    function cursor(d, kind) {
      return svg("g", {class: "cursor " + kind}, svg("line", {x1: px(d), x2: px(d), y1: top - 4, y2: height - bottom}), svg("circle", {cx: px(d), cy: y(value(d)), r: 5}));
    }
    function mark(d, at, text) {
      const x = px(d), label = text + " " + short(value(d), s.weight), end = x + 8 + label.length * 8 > width; // 8 pixels a letter, in bold
      return svg("g", {class: "mark"}, svg("path", {d: `M${x} ${at - 5}l-4 -6h8z`}), svg("text", {x: x + (end ? -8 : 8), y: at - 5, "text-anchor": end ? "end" : "start"}, label));
    }
  }

  // axis returns the labels of a boot: seconds or dumps from its first, and text.
  function axis(part, w) {
    const n = Math.max(2, Math.floor(w / 80));
    if (!scale.timed) {
      const every = Math.max(1, Math.ceil(part.list.length * 46 / w));
      return part.list.flatMap((d, i) => i % every === 0 ? [[i, dumps[d].label]] : []);
    }
    if (part.first > 50 * part.span) // long after the boot: from the first dump on
      return timeTicks(part.span, n).map(t => [t, t ? "+" + duration(t, part.span) : duration(part.first)]);
    return timeTicks(part.first + part.span, Math.max(1, n * (part.first + part.span) / part.span))
      .filter(t => t >= part.first).map(t => [t - part.first, duration(t, part.first + part.span)]);
  }

  function describe(d) {
    const at = dumps[d].time == null ? "" : ", " + duration(dumps[d].time);
    return `${dumps[d].name}${bootsOf(dumps).length > 1 && at ? `, boot ${dumps[d].boot}` : ""}${at}: ${unit(dumps[d].bytes, BYTES)} in ${unit(dumps[d].count, COUNT)}`;
  }

  box.addEventListener("pointerdown", e => {
    if (e.button) return;
    drag = {from: under(e), x: e.clientX, moved: false};
    box.setPointerCapture(e.pointerId);
    e.preventDefault();
    box.focus({preventScroll: true});
  });
  box.addEventListener("pointermove", e => {
    if (!scale) return;
    const d = under(e);
    if (drag && Math.abs(e.clientX - drag.x) > 4) drag.moved = true;
    if (drag && drag.moved && drag.from !== d) show({...state, base: Math.min(drag.from, d), now: Math.max(drag.from, d)});
    const lines = [el("b", {}, describe(d))];
    if (dumps[d].warning) lines.push(el("div", {class: "warn"}, dumps[d].warning));
    else if (dumps[d].aside) lines.push(el("div", {}, dumps[d].aside));
    tip.show(e.clientX, e.clientY, lines);
  });
  box.addEventListener("pointerup", e => {
    if (!drag) return;
    const d = under(e), {from, moved} = drag;
    drag = null;
    tip.hide();
    if (e.shiftKey && !moved) pickBase(d);
    else if (moved && from !== d) options.picked(Math.max(from, d), Math.min(from, d));
    else options.picked(d, -1);
  });
  box.addEventListener("pointercancel", () => { drag = null; show(state); });
  box.addEventListener("pointerleave", tip.hide);
  const pickBase = d => options.picked(state.now, d === state.now || d === state.base ? -1 : d);
  box.addEventListener("keydown", e => {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const shown = [...scale.x.keys()], at = d => Math.max(0, shown.indexOf(d)), last = shown.length - 1;
    const step = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -last, End: last, PageDown: -10, PageUp: 10}[e.key];
    if (!step && e.key !== "Home" && e.key !== "End") return;
    e.preventDefault();
    e.stopPropagation();
    const to = from => shown[Math.max(0, Math.min(last, at(from) + step))];
    if (e.shiftKey) {
      const d = to(state.base >= 0 ? state.base : state.now);
      options.picked(state.now, d === state.now ? -1 : d);
    } else {
      const d = to(state.now);
      options.picked(d, d === state.base ? -1 : state.base);
    }
  });
  return {box, show};
}
