// A table that sorts, and that has only the rows in sight as elements.

const tableRow = 30;

// newTable returns a table. Options: caption, for screen readers; columns, each {id, title,
// hint, num, low, value(row), cell(row)}, low if a narrow window hides it; rows; open(row),
// called by a click on a row; sort, the column to sort by, and sorted(column), called when
// it changes; chosen(row), whether a row is marked.
function newTable(options) {
  const {columns} = options;
  let sort = columns.find(c => c.id === (options.sort || "").replace("-", "")) || columns.find(c => c.num) || columns[0];
  let up = (options.sort || "").startsWith("-") || !options.sort && !sort.num;
  let rows = [];
  const body = el("tbody"), headers = columns.map(c => {
    const button = el("button", {type: "button", title: c.hint, onclick: () => order(c)}, c.title, el("span", {class: "arrow", "aria-hidden": "true"}));
    return el("th", {scope: "col", class: classes(c)}, c.fixed ? c.title : button);
  });
  const table = el("table", {"aria-label": options.caption}, el("thead", {}, el("tr", {}, headers)), body);
  const box = el("div", {class: "table", tabindex: 0, role: "region", "aria-label": options.caption}, table);
  function classes(c) { return (c.num ? "num" : "text") + (c.low ? " low" : "") + (c.name ? " name" : ""); }

  function order(c) {
    if (c === sort) up = !up;
    else { sort = c; up = !c.num; }
    if (options.sorted) options.sorted((up ? "-" : "") + sort.id);
    arrange();
  }
  function arrange() {
    const compare = (a, b, c) => {
      const x = c.value(a), y = c.value(b);
      return typeof x === "string" ? (x < y ? -1 : x > y ? 1 : 0) : x - y;
    };
    const numbers = columns.filter(c => c.num); // among equal rows, the larger ones first
    rows = options.rows.slice().sort((a, b) => (up ? 1 : -1) * compare(a, b, sort) || numbers.reduce((d, c) => d || compare(b, a, c), 0));
    headers.forEach((th, i) => {
      const on = columns[i] === sort;
      if (on) th.setAttribute("aria-sort", up ? "ascending" : "descending"); else th.removeAttribute("aria-sort");
      const arrow = th.querySelector(".arrow");
      if (arrow) arrow.textContent = on ? (up ? "▲" : "▼") : "";
    });
    table.setAttribute("aria-rowcount", rows.length + 1);
    box.scrollTop = 0;
    render(true);
  }

  let from = -1, to = -1;
  function render(force) {
    const height = box.clientHeight || 600, first = Math.max(0, Math.floor(box.scrollTop / tableRow) - 10);
    const end = Math.min(rows.length, Math.ceil((box.scrollTop + height) / tableRow) + 10);
    if (!force && first === from && end === to) return;
    from = first; to = end;
    const pad = n => {
      const td = el("td"); // no colspan: some columns may be hidden
      td.style.height = n * tableRow + "px";
      return el("tr", {class: "pad", "aria-hidden": "true"}, td);
    };
    const list = rows.slice(first, end).map((r, i) => el("tr", {"aria-rowindex": first + i + 2, class: options.chosen && options.chosen(r) ? "chosen" : null,
      onclick: e => { if (!String(getSelection())) options.open(r, e); }}, columns.map(c => el("td", {class: classes(c)}, c.cell(r)))));
    body.replaceChildren(...(first > 0 ? [pad(first)] : []), ...list, ...(end < rows.length ? [pad(rows.length - end)] : []));
  }
  box.addEventListener("scroll", () => render(false));
  box.addEventListener("keydown", e => {
    const step = {ArrowDown: 1, ArrowUp: -1}[e.key];
    if (!step || e.ctrlKey || e.altKey || e.metaKey) return;
    const buttons = [...body.querySelectorAll("td.name button")], i = buttons.indexOf(document.activeElement);
    const next = buttons[i < 0 ? 0 : i + step];
    if (!next) return;
    e.preventDefault();
    next.focus();
    const key = next.closest("tr").getAttribute("aria-rowindex");
    render(false);
    const again = [...body.children].find(tr => tr.getAttribute("aria-rowindex") === key);
    if (again && document.activeElement === document.body) again.querySelector("td.name button").focus();
  });
  arrange();
  return {box, mark: () => render(true), resize: () => render(true), rows: () => rows};
}
