// What is shown, and its form in the address, so that a view can be sent.

const tabNames = ["leaks", "flame", "functions", "map"];

// newState returns the state of a page that is opened without one.
function newState(m) {
  return {tab: m.data.leaks && m.data.leaks.rows.length ? "leaks" : "flame", now: m.data.open, base: -1, cost: "live", weight: BYTES,
    invert: false, group: "function", search: "", only: false, module: "", thread: "", boot: 0, fn: "", zoom: "", at: m.data.map ? m.data.map.open : -1, theme: ""};
}

// readState returns the state of an address's fragment. Of a value that is none, the
// default stays.
function readState(m, fragment) {
  const s = newState(m), p = new URLSearchParams(fragment), last = m.dumps.length - 1;
  const int = (name, key, from, to) => {
    const n = Number(p.get(name));
    if (p.has(name) && p.get(name) !== "" && Number.isInteger(n) && n >= from && n <= to) s[key] = n;
  };
  const one = (name, key, list) => { if (list.includes(p.get(name))) s[key] = p.get(name); };
  one("tab", "tab", tabNames.filter(t => hasTab(m, t)));
  int("dump", "now", 0, last);
  int("base", "base", 0, last);
  if (p.get("cost") === "leaked" && canLeak(m)) s.cost = "leaked";
  const cost = m.costs.findIndex(c => c.name === p.get("cost"));
  if (cost >= 0) s.cost = cost;
  if (s.cost !== "live" || s.base === s.now) s.base = -1;
  if (p.get("weight") === "count") s.weight = COUNT;
  if (m.data.map) int("at", "at", 0, m.data.map.moments.length - 1);
  one("group", "group", Object.keys(groupings));
  one("theme", "theme", ["light", "dark"]);
  s.invert = p.get("invert") === "1";
  s.only = p.get("only") === "1";
  s.search = p.get("search") || "";
  if (m.sites.some(site => site[3] === p.get("module"))) s.module = p.get("module") || "";
  if (threadsOf(m).includes(p.get("thread"))) s.thread = p.get("thread");
  if (m.dumps.some(d => String(d.boot) === p.get("boot"))) s.boot = Number(p.get("boot"));
  s.fn = p.get("fn") || "";
  s.zoom = p.get("zoom") || "";
  return s;
}

// writeState returns the fragment of a state: what differs from a page just opened.
function writeState(m, s) {
  const p = new URLSearchParams(), d = newState(m);
  if (s.tab !== d.tab) p.set("tab", s.tab);
  if (s.now !== d.now) p.set("dump", s.now);
  if (s.base >= 0) p.set("base", s.base);
  if (s.cost !== "live") p.set("cost", s.cost === "leaked" ? "leaked" : m.costs[s.cost].name);
  if (s.weight === COUNT) p.set("weight", "count");
  if (s.group !== d.group) p.set("group", s.group);
  if (s.invert) p.set("invert", "1");
  if (s.search) p.set("search", s.search);
  if (s.only) p.set("only", "1");
  if (s.module) p.set("module", s.module);
  if (s.thread) p.set("thread", s.thread);
  if (s.boot) p.set("boot", s.boot);
  if (s.fn) p.set("fn", s.fn);
  if (s.zoom) p.set("zoom", s.zoom);
  if (s.at !== d.at) p.set("at", s.at);
  if (s.theme) p.set("theme", s.theme);
  return p.toString();
}

function hasTab(m, tab) {
  switch (tab) {
  case "leaks": return !!m.data.leaks;
  case "map": return !!m.data.map;
  }
  return true;
}

// canLeak reports whether a boot has enough dumps to compute what was allocated and not freed since.
function canLeak(m) {
  return bootsOf(m.dumps).some(b => b.list.filter(d => m.dumps[d].steady).length > 2);
}
