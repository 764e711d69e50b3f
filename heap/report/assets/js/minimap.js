// The whole flame graph in small, above one that is zoomed: where the zoomed frame is in it.

const miniRow = 3, miniRows = 16;

// newMinimap returns the picture. Options: root; color(node), hit(node); zoom(node), called by
// a click on a frame.
function newMinimap(options) {
  const canvas = el("canvas", {"aria-hidden": "true"}), box = el("div", {class: "minimap", title: "the whole graph; click to zoom to a frame", hidden: true}, canvas);
  let rows = [];

  function show(zoomed) {
    box.hidden = !zoomed.parent;
    if (box.hidden) return;
    const width = box.clientWidth, ratio = devicePixelRatio || 1;
    rows = layout(options.root, width, 20000).rows.slice(0, miniRows);
    const height = rows.length * miniRow;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const c = canvas.getContext("2d"), dark = isDark();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    rows.forEach((row, i) => {
      for (const f of row) {
        c.fillStyle = css(options.hit(f.node) ? hitColor(dark) : options.color(f.node, dark));
        c.fillRect(f.x, i * miniRow, Math.max(0.5, f.w - 0.4), miniRow - 0.5);
      }
    });
    const [from, to] = placeIn(zoomed, width);
    c.fillStyle = dark ? "rgb(0 0 0 / .55)" : "rgb(255 255 255 / .65)";
    c.fillRect(0, 0, from, height);
    c.fillRect(to, 0, width - to, height);
    c.strokeStyle = css(ink(dark));
    c.lineWidth = 2;
    c.strokeRect(from + 1, 1, Math.max(2, to - from - 2), height - 2);
  }

  canvas.addEventListener("click", e => {
    const r = canvas.getBoundingClientRect();
    const frame = frameAt(rows[Math.floor((e.clientY - r.top) / miniRow)], e.clientX - r.left);
    if (frame) options.zoom(frame.node);
  });
  return {box, show};
}

// placeIn returns where a node is in the whole graph: from and to, in pixels of its width.
function placeIn(node, width) {
  let from = 0, to = width;
  const chain = [];
  for (let n = node; n.parent; n = n.parent) chain.unshift(n);
  for (const n of chain) {
    const all = sizeOf(n.parent);
    let before = 0;
    for (const c of childrenOf(n.parent)) {
      if (c === n) break;
      before += sizeOf(c);
    }
    const scale = (to - from) / all;
    from += before * scale;
    to = from + sizeOf(n) * scale;
  }
  return [from, to];
}
