// The page: its controls, its state, and what is drawn when.

const isDark = () => document.documentElement.dataset.theme === "dark";

function startPage() {
  const m = newModel(JSON.parse(byID("data").textContent)), {dumps} = m, many = dumps.length > 1;
  const boots = bootsOf(dumps), ctx = {m, state: null, set, hits: null, sort: ""};
  let view = null, cached = "", last = {what: "", at: 0};
  ctx.hueOf = hueOf(m.sites);

  // set changes the state and shows it. Without draw, only the address changes. Back in the
  // browser returns to the state before, but not to each letter of a search, or to each moment
  // on the way of an arrow key.
  function set(change, again = true) {
    const before = location.hash.slice(1), what = Object.keys(change).sort().join(), at = performance.now();
    ctx.state = {...ctx.state, ...change};
    const after = writeState(m, ctx.state);
    if (after !== before) {
      const goesOn = what === last.what && at - last.at < 1000;
      history[goesOn ? "replaceState" : "pushState"](null, "", "#" + after);
      last = {what, at};
    }
    if (again) draw();
  }
  const wantsDark = () => ctx.state.theme ? ctx.state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const timeline = many ? newTimeline({dumps, picked: (now, base) => set({now, base, cost: "live"})}) : null;

  // ---- controls; they are made once, so that they keep the focus ----

  const choose = (id, label, options, change) => el("label", {}, label, el("select", {id, onchange: e => set(change(e.target.value))}, options.map(([v, t]) => el("option", {value: v}, t))));
  const tabs = [["leaks", "Leaks"], ["flame", "Flame graph"], ["functions", "Functions"], ["map", "Heap map"]].filter(([t]) => hasTab(m, t));
  const dumpOptions = dumps.map((d, i) => [i, boots.length > 1 ? `${d.name}, boot ${d.boot}` : d.name]);
  const modules = [...new Set(m.sites.map(s => s[3]).filter(Boolean))].sort();
  const threads = threadsOf(m);
  const costs = [["live", "live"], ...(canLeak(m) ? [["leaked", "leaked"]] : []), ...m.costs.map((c, i) => [i, c.name])];
  const toNumber = v => v === "live" || v === "leaked" ? v : Number(v);
  const peak = dumps.reduce((a, d, i) => d.bytes > dumps[a].bytes ? i : a, 0);
  function inBoot(boot) {
    if (!boot || dumps[ctx.state.now].boot === boot) return {boot, base: -1};
    const list = boots.find(b => b.boot === boot).list, steady = list.filter(d => dumps[d].steady);
    return {boot, base: -1, now: (steady.length ? steady : list).slice(-1)[0]};
  }
  function controls() {
    const tabList = el("div", {role: "tablist", "aria-label": "views", class: "tabs"}, tabs.map(([t, name]) =>
      el("button", {type: "button", role: "tab", id: "tab-" + t, "aria-controls": "panel", onclick: () => set({tab: t})}, name)));
    tabList.addEventListener("keydown", e => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[e.key];
      if (!step) return;
      e.preventDefault();
      e.stopPropagation();
      const next = tabs[(tabs.findIndex(([t]) => t === ctx.state.tab) + step + tabs.length) % tabs.length][0];
      set({tab: next});
      byID("tab-" + next).focus();
    });
    return [
      many ? el("section", {class: "panel", "aria-label": "dumps over time"},
        el("div", {class: "bar"},
          boots.length > 1 ? choose("boot", "Boot", [[0, `all ${boots.length}`], ...boots.map(b => [b.boot, b.boot])], v => inBoot(Number(v))) : null,
          choose("now", "Dump", dumpOptions, v => ({now: Number(v), base: ctx.state.base === Number(v) ? -1 : ctx.state.base, cost: "live"})),
          choose("base", "compared with", [[-1, "nothing"], ...dumpOptions], v => ({base: Number(v) === ctx.state.now ? -1 : Number(v), cost: "live"})),
          el("button", {type: "button", id: "peak", title: "the dump with the most bytes", onclick: () => set({now: peak, base: -1, boot: 0, cost: "live"})}, "Peak"),
          el("span", {class: "grow"}), el("span", {class: "muted hint"}, "Click: show a moment. Drag: show a difference.")), timeline.box) : null,
      el("p", {id: "summary", "aria-live": "polite"}),
      el("div", {class: "bar filters", role: "search"},
        costs.length > 1 ? choose("cost", "Show", costs, v => ({cost: toNumber(v), base: -1})) : null,
        el("div", {class: "switch", role: "group", "aria-label": "unit"}, [["Bytes", BYTES], ["Count", COUNT]].map(([text, weight]) =>
          el("button", {type: "button", id: weight === COUNT ? "count" : "bytes", title: "bytes or allocations ( w )", onclick: () => set({weight})}, text))),
        choose("group", "by", Object.keys(groupings).map(g => [g, g]), group => ({group, zoom: "", fn: ""})),
        modules.length > 1 ? choose("module", "Module", [["", "all"], ...modules.map(name => [name, name])], module => ({module, zoom: ""})) : null,
        threads.length > 1 ? choose("thread", "Thread", [["", "all"], ...threads.map(name => [name, name])], thread => ({thread, zoom: ""})) : null,
        el("input", {id: "search", type: "search", placeholder: "Search ( / )", "aria-label": "search functions, files and modules", oninput: e => typed(e.target.value)}),
        el("label", {}, el("input", {id: "only", type: "checkbox", onchange: e => set({only: e.target.checked, zoom: ""})}), "only these"),
        el("span", {id: "found", class: "muted", role: "status"})),
      tabList, el("section", {class: "panel", id: "panel", role: "tabpanel", tabindex: -1})];
  }
  let typing;
  function typed(search) {
    clearTimeout(typing);
    ctx.state.search = search;
    typing = setTimeout(() => set(ctx.state.only ? {search, zoom: ""} : {search}), dumps.length && m.n > 20000 ? 200 : 0);
  }

  function sync() {
    const s = ctx.state;
    document.documentElement.dataset.theme = wantsDark() ? "dark" : "light";
    for (const [id, value] of Object.entries({boot: s.boot, now: s.now, base: s.base, cost: s.cost, group: s.group, module: s.module, thread: s.thread}))
      if (byID(id)) byID(id).value = value;
    byID("bytes").setAttribute("aria-pressed", s.weight === BYTES);
    byID("count").setAttribute("aria-pressed", s.weight === COUNT);
    byID("theme").textContent = wantsDark() ? "Light" : "Dark";
    byID("only").checked = s.only;
    if (byID("search").value !== s.search) byID("search").value = s.search;
    for (const [t] of tabs) {
      const on = t === s.tab;
      byID("tab-" + t).setAttribute("aria-selected", on);
      byID("tab-" + t).tabIndex = on ? 0 : -1;
    }
    byID("panel").setAttribute("aria-labelledby", "tab-" + s.tab);
    if (timeline) timeline.show(s);
  }

  // ---- what is shown ----

  function draw() {
    const s = ctx.state, found = matcherOf(s.search);
    tip.hide();
    ctx.keys = ctx.grouping === s.group ? ctx.keys : keysOf(m, s.group);
    ctx.grouping = s.group;
    const matching = found.test ? matchingSites(m, found.test) : null, filters = [];
    ctx.hits = null;
    if (matching) { // a group of sites matches if one of them does
      ctx.hits = new Uint8Array(m.sites.length);
      matching.forEach((hit, i) => { if (hit) ctx.hits[ctx.keys[i]] = 1; });
      if (s.only) filters.push(matching);
    }
    if (s.module) filters.push(Uint8Array.from(m.sites, site => site[3] === s.module ? 1 : 0));
    if (s.thread) filters.push(Uint8Array.from(m.sites, site => site[0] === s.thread ? 1 : 0));
    const key = [s.now, s.base, s.cost, s.weight, s.module, s.thread, s.only ? s.search : ""].join("\n");
    if (key !== cached) ctx.w = weigh(m, {...s, filters});
    cached = key;
    sync();
    byID("summary").replaceChildren(...summary());
    byID("found").textContent = matching ? foundText(matching, found.plain) : "";
    const panel = byID("panel");
    panel.replaceChildren();
    view = {leaks: drawLeaks, flame: drawFlame, functions: drawFunctions, map: drawMap}[s.tab](ctx, panel);
  }

  function foundText(matching, plain) {
    const w = ctx.w, in_ = under(m, matching);
    let sum = 0;
    for (let i = 1; i < m.n; i++) if (in_[i]) sum += w.gain[i] + w.loss[i];
    return `${share(sum, w.total.gain[0] + w.total.loss[0])} in call paths that match` + (plain ? "; searched as text, as it is not a regular expression" : "");
  }

  function summary() {
    const s = ctx.state, w = ctx.w, d = dumps[s.now], out = [];
    const sum = `${unit(w.total.bytes[0], BYTES)} in ${unit(w.total.count[0], COUNT)}`;
    if (s.cost !== "live") {
      const cost = s.cost === "leaked" ? {name: "leaked", about: "allocated after the first dump of a boot, and not freed since"} : m.costs[s.cost];
      return [el("b", {}, cost.name), `: ${sum}`, cost.about ? el("span", {class: "muted"}, `; ${cost.about}`) : null, "."].filter(Boolean);
    }
    out.push(el("b", {}, d.name), boots.length > 1 ? ` of boot ${d.boot}` : "", `: ${sum}`, d.time != null ? `, at ${duration(d.time)}` : "");
    if (s.base >= 0) {
      const weight = s.weight === COUNT ? "count" : "bytes", change = w.total[weight][0] - w.total[s.weight === COUNT ? "baseCount" : "baseBytes"][0];
      out.push(`; compared with ${dumps[s.base].name}: `, el("span", {class: change > 0 ? "gain" : "loss"}, `${signed(change)} ${s.weight === COUNT ? "allocations" : "bytes"}`),
        `, ${grouped(w.total.gain[0])} gained and ${grouped(w.total.loss[0])} lost`);
    }
    out.push(".");
    if (d.warning) out.push(" ", el("span", {class: "warn"}, d.warning));
    if (d.aside) out.push(" ", el("span", {class: "muted"}, d.aside));
    if (s.now === m.data.open && m.data.openWhy && s.base < 0) out.push(" ", el("span", {class: "muted"}, m.data.openWhy));
    return out;
  }

  // ---- keys and start ----

  const help = keyList(tabs.length, many);
  document.body.append(help);
  const showKeys = () => help.showModal();
  const toggleTheme = () => set({theme: wantsDark() ? "light" : "dark"});
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.altKey || e.metaKey || e.defaultPrevented || help.open) return;
    const at = document.activeElement;
    if (at.tagName === "SELECT" || at.tagName === "INPUT" && at.type !== "checkbox") {
      if (e.key !== "Escape") return;
      if (at.id === "search" && ctx.state.search) set({search: "", only: false});
      at.blur();
      return;
    }
    const tab = tabs[Number(e.key) - 1];
    const act = {"?": showKeys, "/": () => byID("search").focus(), Escape: () => set({zoom: "", search: "", only: false, module: "", thread: ""}), i: () => set({invert: !ctx.state.invert, zoom: ""}),
      w: () => set({weight: 1 - ctx.state.weight}), d: toggleTheme}[e.key] || (tab && (() => set({tab: tab[0]})));
    if (act) { e.preventDefault(); act(); }
  });
  byID("subtitle").textContent = m.data.subtitle;
  byID("theme").addEventListener("click", toggleTheme);
  byID("theme").hidden = false;
  byID("keys").addEventListener("click", showKeys);
  byID("keys").hidden = false;
  if (m.data.notes.length) byID("notes").append(el("h2", {}, "Notes"), el("ul", {}, m.data.notes.map(n => el("li", {}, n))));
  let resizing, width = innerWidth;
  addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => {
      if (timeline && innerWidth !== width) timeline.show(ctx.state);
      width = innerWidth;
      if (view) view.resize();
    }, 60);
  });
  addEventListener("hashchange", () => { ctx.state = readState(m, location.hash.slice(1)); draw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  ctx.state = readState(m, location.hash.slice(1));
  byID("app").append(...controls().filter(Boolean));
  draw();
  return ctx;
}

// keyList returns the dialog that lists the keys of a page with so many tabs.
function keyList(tabs, timeline) {
  const rows = [["/", "search"], ["Esc", "clear the search and the filters, show the whole heap"], ["1" + (tabs > 1 ? " to " + tabs : ""), "tabs"], ["w", "bytes or allocations"],
    ["i", "draw the innermost functions first"], ["d", "dark or light"], ["Arrow keys", "in the flame graph: from frame to frame"], ["Enter", "zoom to a frame"],
    ["Shift and Enter", "callers and callees of a frame"], ...(timeline ? [["Left, Right", "on the line: the dump before or after"], ["Shift, Left or Right", "on the line: the dump to compare with"]] : []),
    ["Alt and Left", "back to the view before"], ["?", "this list"]];
  const close = el("button", {type: "button", autofocus: true, onclick: () => box.close()}, "Close");
  const box = el("dialog", {id: "help", "aria-labelledby": "help-title"}, el("h2", {id: "help-title"}, "Keys"),
    el("table", {}, el("tbody", {}, rows.map(([key, what]) => el("tr", {}, el("th", {scope: "row"}, el("kbd", {}, key)), el("td", {}, what))))), close);
  return box;
}
