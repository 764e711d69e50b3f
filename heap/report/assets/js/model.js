// The data of the page as arrays by node. A node is a call site below its callers; node 0
// is the root, and a node's parent has a lower number.

function newModel(data) {
  const n = data.parent.length;
  const m = {
    data, n,
    dumps: data.dumps, sites: data.sites, costs: data.costs || [],
    parent: Int32Array.from(data.parent), site: Int32Array.from(data.site),
    childStart: new Int32Array(n + 1), children: new Int32Array(Math.max(0, n - 1)),
    // Node i changes at points changeStart[i] to changeStart[i+1]: in dump `changeDump` its
    // value becomes `changeBytes`, `changeCount`, and stays until the next change.
    changeStart: new Int32Array(n + 1),
  };
  for (let i = 1; i < n; i++) m.childStart[m.parent[i] + 1]++;
  for (let i = 0; i < n; i++) m.childStart[i + 1] += m.childStart[i];
  const used = m.childStart.slice(0, n);
  for (let i = 1; i < n; i++) m.children[used[m.parent[i]]++] = i;
  let points = 0;
  for (let i = 0; i < data.values.length; i += 2 + 3 * data.values[i + 1]) points += data.values[i + 1];
  m.changeDump = new Int32Array(points);
  m.changeBytes = new Float64Array(points);
  m.changeCount = new Float64Array(points);
  let at = 0, node = 0;
  for (let i = 0; i < data.values.length;) {
    while (node < data.values[i]) m.changeStart[++node] = at;
    const to = i + 2 + 3 * data.values[i + 1];
    for (i += 2; i < to; i += 3, at++) {
      m.changeDump[at] = data.values[i];
      m.changeBytes[at] = data.values[i + 1];
      m.changeCount[at] = data.values[i + 2];
    }
  }
  while (node < n) m.changeStart[++node] = at;
  return m;
}

// valuesAt returns what each node holds itself in a dump.
function valuesAt(m, dump, weight) {
  const out = new Float64Array(m.n), from = weight === COUNT ? m.changeCount : m.changeBytes;
  for (let i = 0; i < m.n; i++) {
    let found = -1;
    for (let k = m.changeStart[i]; k < m.changeStart[i + 1] && m.changeDump[k] <= dump; k++) found = k;
    if (found >= 0) out[i] = from[found];
  }
  return out;
}

// costValues returns what each node has of a cost other than what is live: its index in
// m.costs, or "leaked".
function costValues(m, cost, weight) {
  if (cost === "leaked") return leakedValues(m, weight);
  const out = new Float64Array(m.n), list = m.costs[cost].values;
  for (let i = 0; i < list.length; i += 3) out[list[i]] = list[i + 1 + weight];
  return out;
}

// leakedValues returns what came to each node after the first dump of a boot and never
// went back: its last value less its lowest, over the dumps that can be compared.
function leakedValues(m, weight) {
  const out = new Float64Array(m.n), from = weight === COUNT ? m.changeCount : m.changeBytes;
  const boots = bootsOf(m.dumps).map(b => b.list.filter(d => m.dumps[d].steady)).filter(list => list.length > 1);
  for (let i = 0; i < m.n; i++) {
    if (m.changeStart[i] === m.changeStart[i + 1]) continue;
    let k = m.changeStart[i] - 1;
    for (const list of boots) {
      let low = Infinity, value = 0;
      for (const d of list) {
        while (k + 1 < m.changeStart[i + 1] && m.changeDump[k + 1] <= d) k++;
        value = k >= m.changeStart[i] ? from[k] : 0;
        if (value < low) low = value;
      }
      out[i] += value - low;
    }
  }
  return out;
}

// bootsOf returns the boots in order, with the indexes of their dumps.
function bootsOf(dumps) {
  const boots = [];
  dumps.forEach((d, i) => {
    const last = boots[boots.length - 1];
    if (last && last.boot === d.boot) last.list.push(i);
    else boots.push({boot: d.boot, list: [i]});
  });
  return boots;
}

// threadsOf returns the names of the threads, if the outermost frames are threads.
function threadsOf(m) {
  if (!m.data.threads) return [];
  return [...new Set(Array.from(m.children.subarray(m.childStart[0], m.childStart[1]), n => m.sites[m.site[n]][0]))].sort();
}

// addSeries adds to sum, by dump, what a node holds itself.
function addSeries(m, node, weight, sum) {
  const from = weight === COUNT ? m.changeCount : m.changeBytes;
  for (let k = m.changeStart[node]; k < m.changeStart[node + 1]; k++) {
    if (from[k] === 0) continue;
    const to = k + 1 < m.changeStart[node + 1] ? m.changeDump[k + 1] : sum.length;
    for (let d = m.changeDump[k]; d < to; d++) sum[d] += from[k];
  }
}

// matcherOf returns a test for text that a user typed: a regular expression, or if it is
// none, plain text. It is null for no text.
function matcherOf(text) {
  if (!text) return {test: null, plain: false};
  try {
    const re = new RegExp(text, "i");
    return {test: s => re.test(s), plain: false};
  } catch (e) {
    const lower = text.toLowerCase();
    return {test: s => s.toLowerCase().includes(lower), plain: true};
  }
}

// matchingSites returns for each site whether its function, file or module matches.
function matchingSites(m, test) {
  return Uint8Array.from(m.sites, s => test(s[0]) || test(s[1]) || test(s[3]) ? 1 : 0);
}

// under returns for each node whether it or a caller of it is marked.
function under(m, marked) {
  const out = new Uint8Array(m.n);
  for (let i = 1; i < m.n; i++) out[i] = out[m.parent[i]] | marked[m.site[i]];
  return out;
}

// groupings maps how functions are told apart to the parts of a site that count.
const groupings = {
  function: s => s[0] + "\0" + s[1] + "\0" + s[3],
  line: s => s[0] + "\0" + s[1] + "\0" + s[2] + "\0" + s[3],
  file: s => s[1] || s[3] || s[0],
  module: s => s[3] || s[1] || s[0],
};

// keysOf numbers the sites that count as one by the first of them.
function keysOf(m, grouping) {
  const known = new Map();
  return Int32Array.from(m.sites, (s, i) => {
    const text = groupings[grouping](s);
    if (!known.has(text)) known.set(text, i);
    return known.get(text);
  });
}

// nameOf is what a frame is called.
function nameOf(site, grouping) {
  if (grouping === "file") return site[1] || site[3] || site[0];
  if (grouping === "module") return site[3] || site[1] || site[0];
  return site[0] || site[1] || site[3] || "(unknown)";
}

// placeOf is where a site is.
function placeOf(site) {
  return site[1] ? site[1] + (site[2] ? ":" + site[2] : "") : "";
}

// shortPlace is placeOf with at most two names of the path.
function shortPlace(site, line = true) {
  const file = site[1].split(/[/\\]/).slice(-2).join("/");
  return file && line && site[2] ? file + ":" + site[2] : file;
}
