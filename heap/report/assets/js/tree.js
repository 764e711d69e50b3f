// Trees to draw. The children of a tree node are made when they are asked for, so that
// the cost of a picture depends on what is visible.

// weigh returns the values of a view: of each node itself and with all below it. gain and
// loss are what a node has more and less than in the base; without a base all is gain. A
// frame is as wide as both together, so that nothing cancels.
function weigh(m, view) {
  const value = w => {
    const now = view.cost === "live" ? valuesAt(m, view.now, w) : costValues(m, view.cost, w);
    return {now, base: view.base >= 0 ? valuesAt(m, view.base, w) : null};
  };
  const both = [value(BYTES), value(COUNT)];
  let pass = null;
  for (const sites of view.filters) {
    const in_ = under(m, sites);
    pass = pass ? pass.map((p, i) => p & in_[i]) : in_;
  }
  const empty = () => new Float64Array(m.n);
  const w = {m, pass, diff: view.base >= 0, gain: empty(), loss: empty(), bytes: both[0].now, count: both[1].now};
  if (w.diff) {
    w.baseBytes = both[0].base;
    w.baseCount = both[1].base;
  }
  const {now, base} = both[view.weight];
  for (let i = 0; i < m.n; i++) {
    if (pass && !pass[i]) {
      w.bytes[i] = w.count[i] = 0;
      if (w.diff) w.baseBytes[i] = w.baseCount[i] = 0;
      continue;
    }
    const d = now[i] - (base ? base[i] : 0);
    if (d > 0) w.gain[i] = d; else w.loss[i] = -d;
  }
  w.total = {};
  for (const name of ["gain", "loss", "bytes", "count", "baseBytes", "baseCount"]) {
    if (!w[name]) continue;
    const sum = w.total[name] = Float64Array.from(w[name]);
    for (let i = m.n - 1; i > 0; i--) sum[m.parent[i]] += sum[i];
  }
  return w;
}

// newNode makes a tree node. Of a tree of callees, nodes holds model nodes; of callers,
// nodes holds where the values are, and at the frame of each that is drawn.
function newNode(tree, key, parent) {
  return {tree, key, parent, depth: parent ? parent.depth + 1 : 0, nodes: [], at: tree.callers ? [] : null,
    gain: 0, loss: 0, list: null, rest: null, series: [null, null]};
}

function addMember(node, value, at) {
  const t = node.tree;
  node.nodes.push(value);
  if (at !== undefined) node.at.push(at);
  node.gain += t.values.gain[value];
  node.loss += t.values.loss[value];
}

// forward returns the tree of what is below some model nodes: callees below callers.
function forward(w, keys, nodes = [0], key = -1) {
  const root = newNode({w, keys, callers: false, values: w.total, whole: true}, key, null);
  for (const n of nodes) addMember(root, n);
  return root;
}

// inverted returns the tree of callers below callees. It begins at the nodes with values
// of their own; or with nodes, at their callers.
function inverted(w, keys, nodes, key = -1) {
  const m = w.m;
  const root = newNode({w, keys, callers: true, values: nodes ? w.total : w, whole: !!nodes}, key, null);
  if (nodes) for (const n of nodes) addMember(root, n, m.parent[n]);
  else for (let i = 1; i < m.n; i++) if (w.gain[i] + w.loss[i] > 0) addMember(root, i, i);
  return root;
}

// outermost returns the nodes with a key that are not below another one with it: each
// call path once, however often it recurs.
function outermost(m, keys, key) {
  const inside = new Uint8Array(m.n), list = [];
  for (let i = 1; i < m.n; i++) {
    const own = keys[m.site[i]] === key;
    if (own && !inside[m.parent[i]]) list.push(i);
    inside[i] = own || inside[m.parent[i]] ? 1 : 0;
  }
  return list;
}

const sizeOf = node => node.gain + node.loss;

// childrenOf returns the children of a tree node, the largest first.
function childrenOf(node) {
  if (node.list) return node.list;
  const {w, keys, values, callers} = node.tree, m = w.m, groups = new Map();
  const put = (at, value) => {
    const key = keys[m.site[at]];
    let c = groups.get(key);
    if (!c) groups.set(key, c = newNode(node.tree, key, node));
    if (callers) addMember(c, value, m.parent[at]); else addMember(c, value);
  };
  node.nodes.forEach((n, i) => {
    if (callers) {
      if (node.at[i] > 0) put(node.at[i], n);
      return;
    }
    for (let k = m.childStart[n]; k < m.childStart[n + 1]; k++) {
      const c = m.children[k];
      if (values.gain[c] + values.loss[c] > 0) put(c, c);
    }
  });
  return node.list = [...groups.values()].sort((a, b) => sizeOf(b) - sizeOf(a) || a.key - b.key);
}

// restOf returns some children of a node as one node: those from one index to another.
function restOf(node, from, to) {
  const r = newNode(node.tree, -2, node);
  r.rest = {from, to};
  r.list = childrenOf(node).slice(from, to);
  for (const c of r.list) {
    r.gain += c.gain;
    r.loss += c.loss;
  }
  return r;
}

// amounts returns what a tree node holds now and in the base, in bytes and allocations; own
// is of its function itself, in a tree of callees.
function amounts(node) {
  const out = {bytes: 0, count: 0, baseBytes: 0, baseCount: 0, ownBytes: 0, ownCount: 0};
  const add = n => {
    const {w, values, callers} = n.tree;
    for (const v of n.nodes) {
      for (const name of ["bytes", "count", "baseBytes", "baseCount"]) if (values[name]) out[name] += values[name][v];
      if (!callers) {
        out.ownBytes += w.bytes[v];
        out.ownCount += w.count[v];
      }
    }
  };
  if (node.rest) node.list.forEach(add); else add(node);
  return out;
}

// seriesOf returns what a tree node holds in each dump.
function seriesOf(node, weight) {
  if (node.series[weight]) return node.series[weight];
  const {w, whole} = node.tree, m = w.m, sum = new Float64Array(m.dumps.length);
  const work = node.rest ? node.list.flatMap(c => c.nodes) : node.nodes.slice();
  while (work.length) {
    const n = work.pop();
    if (!w.pass || w.pass[n]) addSeries(m, n, weight, sum);
    if (whole) for (let k = m.childStart[n]; k < m.childStart[n + 1]; k++) work.push(m.children[k]);
  }
  return node.series[weight] = sum;
}

// sitesOf returns the sites that a tree node stands for, at most most.
function sitesOf(node, most = 50) {
  const {w, callers} = node.tree, found = new Set();
  if (node.key < 0) return [];
  for (let i = 0; i < node.nodes.length && found.size < most; i++) {
    found.add(callers ? callerSite(node, i) : w.m.site[node.nodes[i]]);
  }
  return [...found].filter(s => s >= 0);
}

// callerSite returns the site of a node of a tree of callers; at is one frame further out.
function callerSite(node, i) {
  const m = node.tree.w.m;
  let n = node.nodes[i];
  const steps = node.depth - (node.tree.whole ? 0 : 1);
  for (let s = 0; s < steps && n > 0; s++) n = m.parent[n];
  return n > 0 ? m.site[n] : -1;
}

// placeKey returns the text by which findPlace finds a tree node again: a model node of it,
// in a tree of callers ^ and the steps outward, and ~from-to for some of its children.
function placeKey(node) {
  if (node.rest) return `${placeKey(node.parent)}~${node.rest.from}-${node.rest.to}`;
  if (!node.parent) return "";
  return node.tree.callers ? node.nodes[0] + "^" + node.depth : String(node.nodes[0]);
}

// findPlace returns the node that placeKey described, or the nearest one outside it.
function findPlace(root, text) {
  const found = /^(\d*)(?:\^(\d+))?((?:~\d+-\d+)*)$/.exec(text || "");
  if (!found) return root;
  const m = root.tree.w.m, keys = root.tree.keys, path = [];
  let n = Number(found[1] || 0), left = found[2] ? Number(found[2]) : Infinity;
  if (n >= m.n) return root;
  for (; n > 0 && left > 0; n = m.parent[n], left--) path.push(keys[m.site[n]]);
  if (!root.tree.callers) path.reverse();
  let node = root;
  for (const key of path) {
    const next = childrenOf(node).find(c => c.key === key);
    if (!next) return node;
    node = next;
  }
  for (const range of found[3].split("~").slice(1)) {
    const [from, to] = range.split("-").map(Number);
    if (from >= to || to > childrenOf(node).length) break;
    node = restOf(node, from, to);
  }
  return node;
}

// functionRows adds up by key: own_ is what a function holds itself, the rest what it and
// what it calls hold. A recursive call counts once.
function functionRows(w, keys) {
  const m = w.m, names = ["bytes", "count", "baseBytes", "baseCount"].filter(n => w[n]), used = new Uint8Array(m.n);
  for (const n of names) for (let i = 1; i < m.n; i++) if (w.total[n][i] !== 0) used[i] = 1;
  // Whether a call recurs depends on the callers, so the walk goes down and up again.
  const open = new Int32Array(m.sites.length), first = new Uint8Array(m.n);
  const stack = Array.from(m.children.subarray(m.childStart[0], m.childStart[1]));
  while (stack.length) {
    const i = stack.pop();
    if (i < 0) { // what is below node ~i is done
      open[keys[m.site[~i]]]--;
      continue;
    }
    if (!used[i]) continue;
    first[i] = open[keys[m.site[i]]]++ === 0 ? 1 : 0;
    stack.push(~i);
    for (let k = m.childStart[i]; k < m.childStart[i + 1]; k++) stack.push(m.children[k]);
  }
  const rows = new Map();
  for (let i = 1; i < m.n; i++) {
    const key = keys[m.site[i]];
    if (used[i] && !rows.has(key)) rows.set(key, {key, bytes: 0, count: 0, baseBytes: 0, baseCount: 0, own_bytes: 0, own_count: 0, own_baseBytes: 0, own_baseCount: 0});
  }
  for (const n of names) {
    const all = new Float64Array(m.sites.length), own = new Float64Array(m.sites.length);
    for (let i = 1; i < m.n; i++) {
      const key = keys[m.site[i]];
      if (first[i]) all[key] += w.total[n][i];
      own[key] += w[n][i];
    }
    for (const r of rows.values()) {
      r[n] = all[r.key];
      r["own_" + n] = own[r.key];
    }
  }
  return [...rows.values()];
}
