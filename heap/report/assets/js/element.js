// Elements. Text is set as text, so that no name is ever markup.

const byID = id => document.getElementById(id);

function el(tag, attrs, ...children) {
  return fill(document.createElement(tag), attrs, children);
}

function svg(tag, attrs, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);
}

function fill(e, attrs, children) {
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v === true) e.setAttribute(k, "");
    else if (v !== false && v != null) e.setAttribute(k, v);
  }
  e.append(...children.flat().filter(c => c != null && c !== false));
  return e;
}

// sparkline draws values over the dumps.
function sparkline(points, label, width = 120) {
  const h = 22, max = Math.max(...points), min = Math.min(...points);
  const xy = points.map((p, i) => `${(2 + i * (width - 4) / Math.max(points.length - 1, 1)).toFixed(1)},${(h - 3 - (max > min ? (p - min) / (max - min) : 0.5) * (h - 6)).toFixed(1)}`);
  return svg("svg", {class: "spark", width, height: h, role: "img", "aria-label": label}, svg("polyline", {points: xy.join(" ")}));
}

// The tooltip is one for the page, near the pointer and within the window.
const tip = {
  box: null,
  show(x, y, lines) {
    if (!tip.box) document.body.append(tip.box = el("div", {id: "tip", "aria-hidden": "true"}));
    tip.box.replaceChildren(...lines);
    tip.box.hidden = false;
    const {offsetWidth: w, offsetHeight: h} = tip.box;
    const left = x + 14 + w > innerWidth ? x - w - 10 : x + 14;
    const top = y + 18 + h > innerHeight ? y - h - 10 : y + 18;
    tip.box.style.left = Math.max(4, Math.min(left, innerWidth - w - 4)) + "px";
    tip.box.style.top = Math.max(4, top) + "px";
  },
  hide() { if (tip.box) tip.box.hidden = true; },
};
