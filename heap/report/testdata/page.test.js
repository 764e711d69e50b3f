// Tests of the parts of the page's script that need no browser. Run by node --test, with
// the directory of the script in the environment variable SCRIPTS.
"use strict";
const test = require("node:test"), assert = require("node:assert"), fs = require("node:fs"), vm = require("node:vm"), path = require("node:path");

for (const part of ["format", "model", "tree", "layout", "color", "state", "timeline", "map"])
  vm.runInThisContext(fs.readFileSync(path.join(process.env.SCRIPTS, part + ".js"), "utf8"), part + ".js");
const $ = name => vm.runInThisContext(name); // a const of the script is no property of the global object

// random returns numbers from 0 to 1, the same in each run.
function random(seed) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

// paths makes a model of call paths: each a list of function names, outermost first, and
// its values [bytes, count] by dump.
function modelOf(list, dumps = list[0][1].length, more = {}) {
  const data = {dumps: [], sites: [], parent: [-1], site: [-1], values: [], open: dumps - 1, notes: [], ...more};
  for (let i = 0; i < dumps; i++) data.dumps.push({name: `dump ${i + 1}`, boot: 1, time: null, bytes: 0, count: 0, steady: true, ...(more.facts || [])[i]});
  const sites = new Map(), nodes = new Map(), found = new Map();
  for (const [names, values] of list) {
    let node = 0;
    for (const name of names) {
      if (!sites.has(name)) { sites.set(name, data.sites.length); data.sites.push([name.split(":")[0], "a.c", Number(name.split(":")[1] || 1), name[0] === "l" ? "lib" : "app"]); }
      const key = node + " " + sites.get(name);
      if (!nodes.has(key)) { nodes.set(key, data.parent.length); data.parent.push(node); data.site.push(sites.get(name)); }
      node = nodes.get(key);
    }
    found.set(node, values);
  }
  for (const [node, values] of [...found].sort((a, b) => a[0] - b[0])) {
    const changes = values.flatMap((v, d) => d > 0 && v[0] === values[d - 1][0] && v[1] === values[d - 1][1] || d === 0 && !v[0] && !v[1] ? [] : [[d, v[0], v[1]]]);
    data.values.push(node, changes.length, ...changes.flat());
  }
  return newModel(data);
}

const view = change => ({now: 0, base: -1, cost: "live", weight: 0, filters: [], ...change});
const leak = [
  [["main", "parse", "strdup"], [[100, 1], [200, 2], [300, 3], [400, 4]]],
  [["main", "load", "read"], [[5000, 1], [0, 0], [5000, 1], [0, 0]]],
  [["main", "ring"], [[1024, 1], [1024, 1], [1024, 1], [1024, 1]]],
];
const tree = (node, name) => ({[name(node)]: node.gain + node.loss, ...(childrenOf(node).length ? {below: childrenOf(node).map(c => tree(c, name))} : {})});
const named = m => n => n.key < 0 ? "all" : m.sites[n.key][0];

// randomModel makes some hundred call paths over few functions, so that they recur and meet.
function randomModel(seed, n = 300, dumps = 3) {
  const r = random(seed), list = new Map();
  for (let i = 0; i < n; i++) {
    const names = ["main"];
    for (let k = 0; k < 1 + r() * 12; k++) names.push("f" + Math.floor(r() * 6) + ":" + Math.floor(r() * 2));
    list.set(names.join(), [names, Array.from({length: dumps}, () => r() < 0.3 ? [0, 0] : [Math.floor(r() * 1000), 1 + Math.floor(r() * 9)])]);
  }
  return [modelOf([...list.values()]), [...list.values()]];
}

test("numbers", () => {
  assert.equal(grouped(1234567), "1,234,567");
  assert.equal(grouped(-1234), "-1,234");
  assert.equal(signed(-1234), "−1,234");
  assert.equal(signed(0), "0");
  assert.equal(unit(1, 1), "1 allocation");
  assert.equal(unit(1424, 0), "1,424 bytes");
  assert.equal(short(1536, 0), "1.5 KiB");
  assert.equal(short(1500, 1), "1.5k");
  assert.equal(short(0, 0), "0 B");
  assert.equal(duration(90, 90), "90 s");
  assert.equal(duration(5400, 5400), "90 min");
  assert.equal(duration(0.0015), "1.5 ms");
  assert.equal(duration(864000, 864000), "10 d");
  assert.equal(share(1, 0), "0.0%");
});

test("the heap map's numbers", () => {
  assert.deepEqual(mapSeries([{blocks: {used: 3, free: 4, largest: 2, fragmentation: 0.5}, allocator: {size: 9, free: 9, largest: 9, min: 9, fragmentation: 0}}, {blocks: null, allocator: {size: 10, free: 4, largest: 1, min: 0, fragmentation: 0.75}}]),
    [{used: 3, free: 4, largest: 2, fragmentation: 0.5}, {used: 6, free: 4, largest: 1, fragmentation: 0.75}]);
  const range = {start: "0xffffffff80001000", length: 4096, cells: new Array(64)}; // 64 bytes a cell
  assert.equal(cellAddress(range, 0), "0xffffffff80001000");
  assert.equal(cellAddress(range, 33), "0xffffffff80001840");
  assert.equal(cellAddress({start: "0x20", length: 64, cells: [0, 0]}, 1), "0x00000040");
});

test("ticks are round, rise, and are few", () => {
  assert.deepEqual(ticks(1.4, 3), [0, 0.5, 1]);
  assert.deepEqual(ticks(100, 4), [0, 50, 100]);
  assert.deepEqual(byteTicks(3 * 1024 * 1024, 3), [0, 1, 2, 3].map(v => v * 1024 * 1024));
  assert.deepEqual(timeTicks(7200, 4), [0, 1800, 3600, 5400, 7200]);
  for (const f of [ticks, byteTicks, timeTicks]) for (const max of [0, 1e-9, 0.3, 1, 59, 61, 3599, 3601, 86400, 3e5, 1e9, 1e15]) for (const n of [1, 2, 3, 10, 40]) {
    const list = f(max, n);
    assert.ok(list.length >= 1 && list.length <= n + 2, `${f.name}(${max}, ${n}): ${list.length}`);
    assert.ok(list.every((v, i) => i === 0 ? v === 0 : v > list[i - 1] && v <= max * 1.001), `${f.name}(${max}, ${n}): ${list}`);
  }
});

test("values of a dump", () => {
  const m = modelOf(leak);
  const sum = (d, w) => valuesAt(m, d, w).reduce((a, b) => a + b, 0);
  assert.deepEqual([0, 1, 2, 3].map(d => sum(d, 0)), [6124, 1224, 6324, 1424]);
  assert.deepEqual([0, 1, 2, 3].map(d => sum(d, 1)), [3, 3, 5, 5]);
});

test("what leaked is what came and never went back", () => {
  const m = modelOf(leak), got = leakedValues(m, 0);
  assert.equal(got.reduce((a, b) => a + b, 0), 300);
  // Two boots are added up; an incomplete dump has no part.
  const facts = [1, 1, 1, 2, 2, 2].map((boot, i) => ({boot, steady: i !== 4}));
  const two = modelOf([[["main"], [[10, 1], [20, 2], [30, 3], [10, 1], [0, 0], [25, 2]]]], 6, {facts});
  assert.equal(leakedValues(two, 0).reduce((a, b) => a + b, 0), 20 + 15);
});

test("the tree from the outermost function", () => {
  const m = modelOf(leak), w = weigh(m, view({now: 3}));
  assert.deepEqual(tree(forward(w, keysOf(m, "function")), named(m)),
    {all: 1424, below: [{main: 1424, below: [{ring: 1024}, {parse: 400, below: [{strdup: 400}]}]}]});
});

test("the tree from the innermost function", () => {
  const m = modelOf(leak), w = weigh(m, view({now: 3}));
  assert.deepEqual(tree(inverted(w, keysOf(m, "function")), named(m)),
    {all: 1424, below: [{ring: 1024, below: [{main: 1024}]}, {strdup: 400, below: [{parse: 400, below: [{main: 400}]}]}]});
});

test("a difference has gains and losses, and nothing cancels", () => {
  const m = modelOf(leak), w = weigh(m, view({now: 3, base: 2})), root = forward(w, keysOf(m, "function"));
  assert.deepEqual([root.gain, root.loss], [100, 5000]);
  const a = amounts(childrenOf(root)[0]);
  assert.deepEqual([a.bytes, a.baseBytes, a.count, a.baseCount], [1424, 6324, 5, 5]);
});

test("callers and callees of a function count each call path once, however it recurs", () => {
  const m = modelOf([[["main", "f", "f", "g"], [[8, 1]]], [["main", "g", "f"], [[4, 1]]], [["main", "h"], [[2, 1]]]]);
  const w = weigh(m, view()), keys = keysOf(m, "function"), f = m.sites.findIndex(s => s[0] === "f"), members = outermost(m, keys, f);
  assert.deepEqual(tree(forward(w, keys, members, f), named(m)), {f: 12, below: [{f: 8, below: [{g: 8}]}]});
  assert.deepEqual(tree(inverted(w, keys, members, f), named(m)), {f: 12, below: [{main: 8}, {g: 4, below: [{main: 4}]}]});
  const row = functionRows(w, keys).find(r => r.key === f);
  assert.deepEqual([row.bytes, row.own_bytes, row.count], [12, 4, 2]);
});

test("random trees: values are those of the call paths, by a slower way", () => {
  for (let seed = 1; seed <= 5; seed++) {
    const [m, list] = randomModel(seed), name = n => n.split(":")[0];
    const w = weigh(m, view({now: 1})), keys = keysOf(m, "function");
    for (const [root, order] of [[forward(w, keys), p => p], [inverted(w, keys), p => p.slice().reverse()]]) {
      const want = new Map();
      for (const [path, values] of list) {
        const p = order(path.map(name));
        for (let i = 1; values[1][0] && i <= p.length; i++) { const k = p.slice(0, i).join(); want.set(k, (want.get(k) || 0) + values[1][0]); }
      }
      const got = new Map(), walk = (n, at) => { for (const c of childrenOf(n)) { const p = [...at, m.sites[c.key][0]]; got.set(p.join(), c.gain); walk(c, p); } };
      walk(root, []);
      assert.deepEqual(got, want);
      const any = childrenOf(childrenOf(root)[0])[0];
      const series = seriesOf(any, 0);
      assert.equal(series[1], any.gain);
    }
    for (const r of functionRows(w, keys)) {
      const f = m.sites[r.key][0], through = list.filter(([p]) => p.map(name).includes(f)), own = list.filter(([p]) => name(p[p.length - 1]) === f);
      assert.equal(r.bytes, through.reduce((a, [, v]) => a + v[1][0], 0));
      assert.equal(r.own_bytes, own.reduce((a, [, v]) => a + v[1][0], 0));
      assert.equal(r.count, through.reduce((a, [, v]) => a + v[1][1], 0));
    }
  }
});

test("filters leave out call paths", () => {
  const m = modelOf(leak), marked = matchingSites(m, matcherOf("PARSE").test);
  const w = weigh(m, view({now: 3, filters: [marked]}));
  assert.equal(w.total.gain[0], 400);
  const none = weigh(m, view({now: 3, filters: [marked, matchingSites(m, matcherOf("^ring$").test)]}));
  assert.equal(none.total.gain[0], 0);
});

test("text that is no regular expression is searched as text", () => {
  assert.equal(matcherOf("").test, null);
  assert.ok(matcherOf("vector<int").test("std::vector<int>"));
  const found = matcherOf("operator(");
  assert.ok(found.plain && found.test("foo::operator()(int)") && !found.test("foo"));
});

test("functions are told apart by file and module, lines where asked", () => {
  const m = modelOf([[["main:1", "f:1"], [[1, 1]]], [["main:2", "f:1"], [[2, 1]]]]);
  const tree1 = tree(forward(weigh(m, view()), keysOf(m, "function")), named(m));
  assert.deepEqual(tree1, {all: 3, below: [{main: 3, below: [{f: 3}]}]});
  const lines = childrenOf(forward(weigh(m, view()), keysOf(m, "line")));
  assert.deepEqual(lines.map(n => n.gain), [2, 1]);
});

test("frames fill their callers and do not overlap; all bytes are drawn", () => {
  for (let seed = 1; seed <= 2; seed++) {
    const [m] = randomModel(seed, 2000);
    const w = weigh(m, view()), keys = keysOf(m, "function");
    for (const root of [forward(w, keys), inverted(w, keys), childrenOf(forward(w, keys))[0]]) for (const width of [300, 1200]) {
      const {rows, cut} = layout(root, width);
      assert.equal(cut, false);
      for (const row of rows) {
        let at = 0;
        for (const f of row) {
          assert.ok(f.x >= at - 1e-6, `frame at ${f.x}, the one before it ends at ${at}`);
          at = f.x + f.w;
        }
        assert.ok(at <= width + 1e-6);
        assert.ok(row.length <= 2 * width);
      }
      // Inverted, the row of innermost functions takes all of the width.
      if (root.tree.callers) assert.ok(Math.abs(rows[1].reduce((a, f) => a + f.w, 0) - width) < 1);
    }
  }
});

test("what is too narrow is one frame, which a zoom widens", () => {
  const list = Array.from({length: 5000}, (_, i) => [["main", "f" + i], [[1, 1]]]);
  const m = modelOf([...list, [["main", "big"], [[5000, 1]]]]), root = forward(weigh(m, view()), keysOf(m, "line"));
  const {rows} = layout(root, 1000);
  assert.equal(rows[2].length, 1 + 21); // 500 pixels in frames of 24
  const rest = rows[2][1];
  assert.ok(rest.node.rest && rest.node.gain === 240 && Math.abs(rest.w - 24) < 1e-6);
  assert.equal(amounts(rest.node).count, 240);
  assert.equal(seriesOf(rest.node, 1)[0], 240);
  assert.equal(rows[2].slice(1).reduce((a, f) => a + f.node.gain, 0), 5000);
  const again = findPlace(root, placeKey(rest.node));
  assert.ok(again.rest.from === 1 && again.rest.to === 241 && again.gain === 240);
  const wide = layout(again, 1000).rows, last = wide[wide.length - 1];
  assert.ok(last.length === 240 && last.every(f => !f.node.rest));
  assert.equal(frameAt(last, 999.5), last[239]);
  assert.equal(frameAt(last, 1001), null);
  assert.equal(frameAt(undefined, 3), null);
});

test("places are found again, in both directions; nonsense is the whole", () => {
  const [m] = randomModel(7), keys = keysOf(m, "function"), w = weigh(m, view());
  for (const root of [forward(w, keys), inverted(w, keys)]) {
    const walk = n => { assert.equal(findPlace(root, placeKey(n)), n); childrenOf(n).forEach(walk); };
    walk(root);
    for (const text of ["", "x", "1^", "99999999", "3~0-0", "3~0-99999", "3~2-1", "-1", "1^2^3", "~0-1~0-1~0-1"]) assert.ok(findPlace(root, text));
    assert.equal(findPlace(root, "99999999"), root);
  }
});

test("stacks of 50,000 frames", () => {
  const names = Array.from({length: 50000}, (_, i) => "f" + i), m = modelOf([[names, [[10, 1]]]]);
  const w = weigh(m, view()), keys = keysOf(m, "function");
  for (const root of [forward(w, keys), inverted(w, keys)]) assert.equal(layout(root, 800).rows.length, 50001);
  assert.equal(functionRows(w, keys).length, 50000);
});

test("the state in the address", () => {
  const m = modelOf(leak);
  assert.equal(writeState(m, newState(m)), "");
  for (const text of ["dump=1&base=0&weight=count&group=line&invert=1&search=a%26b&only=1&module=app&zoom=3&theme=dark", "cost=leaked&fn=2"])
    assert.equal(writeState(m, readState(m, text)), text);
  for (const text of ["dump=9", "dump=", "dump=1.5", "base=3", "tab=growth", "cost=0", "module=none", "group=toString", "theme=pink", "boot=2"])
    assert.equal(writeState(m, readState(m, text)), "", text);
});

test("text on frames has the contrast of WCAG AA", () => {
  for (const dark of [false, true]) {
    const hold = (color, what) => assert.ok(contrast(color, ink(dark)) >= 4.5, `${what}, ${dark ? "dark" : "light"}: ${contrast(color, ink(dark)).toFixed(2)}`);
    for (let i = 0; i < 300; i++) hold(frameColor("function" + i, "module" + i * 7, dark), "a frame");
    for (const [gain, loss] of [[1, 0], [0, 1], [1, 1], [3, 1], [1, 3], [0, 0]]) hold(changeColor(gain, loss, dark), `gain ${gain}, loss ${loss}`);
    for (const color of ["hitColor", "restColor", "rootColor"]) hold($(color)(dark), color);
  }
  assert.ok(Math.abs(contrast([0, 0, 0], [0, 0, 100]) - 21) < 0.01);
  assert.ok(Math.abs(contrast([0, 0, 46.3], [0, 0, 100]) - 4.54) < 0.1); // #767676, the gray that just passes on white
});

test("frames have the hue of their module, or of their file where there is one module", () => {
  const sites = [["f", "a.c", 1, "app"], ["g", "b.c", 2, "lib"], ["h", "", 0, ""]];
  assert.deepEqual(sites.map(hueOf(sites)), ["app", "lib", "h"]);
  assert.deepEqual(sites.slice(0, 1).concat([["g", "b.c", 2, "app"]]).map(hueOf([sites[0], ["g", "b.c", 2, "app"]])), ["a.c", "b.c"]);
  assert.deepEqual(sites.slice(0, 1).map(hueOf([sites[0]])), ["f"]);
});

test("the axis is in time where dumps have one", () => {
  const dumps = times => times.map(time => ({time, boot: 1, label: ""})), list = n => Array.from({length: n}, (_, i) => i);
  assert.deepEqual(timesOf(dumps([0, 60, 120]), list(3)), [0, 60, 120]);
  assert.deepEqual(timesOf(dumps([0, null, 120]), list(3)), [0, 60, 120]);
  assert.deepEqual(timesOf(dumps([0, 60, 120, 22, 240]), list(5)), [0, 60, 120, 180, 240]); // t=22 was cut
  assert.deepEqual(timesOf(dumps([0, 999999, 120, 180]), list(4)), [0, 60, 120, 180]);
  assert.deepEqual(timesOf(dumps([null, 60, 120, null]), list(4)), [0, 60, 120, 180]);
  assert.equal(timesOf(dumps([null, null, 120]), list(3)), null);
  assert.ok(timeScale(dumps([0, 60, 120, 22, 240]), [{boot: 1, list: list(5)}]).timed);
  assert.ok(!timeScale(dumps([null, null, 120]), [{boot: 1, list: list(3)}]).timed);
});
