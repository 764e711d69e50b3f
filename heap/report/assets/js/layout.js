// Where the frames of a flame graph are, in rows: the root's first.

// minWidth is the narrowest frame, in pixels. Narrower ones of one caller are drawn
// together, in frames of about restWidth.
const minWidth = 2, restWidth = 24;

// layout returns rows of frames {node, x, w, above}, x and w in pixels: the callers of
// zoomed in full width, then what is below it, up to most frames.
function layout(zoomed, width, most = 400000) {
  const rows = [];
  for (let n = zoomed.parent; n; n = n.parent) rows.push([{node: n, x: 0, w: width, above: true}]);
  rows.reverse();
  const total = sizeOf(zoomed);
  if (!total) return {rows, cut: false};
  let row = [{node: zoomed, x: 0, w: width, above: false}], frames = 0;
  while (row.length) {
    rows.push(row);
    frames += row.length;
    if (frames > most) return {rows, cut: true};
    const next = [];
    for (const f of row) if (!f.node.rest || f.node === zoomed) layChildren(f, width / total, next);
    row = next;
  }
  return {rows, cut: false};
}

function layChildren(frame, scale, out) {
  const list = childrenOf(frame.node);
  let x = frame.x, k = 0;
  for (; k < list.length; k++) {
    const w = sizeOf(list[k]) * scale;
    if (w < minWidth && list.length > 1) break; // all that follow are as narrow
    out.push({node: list[k], x, w, above: false});
    x += w;
  }
  for (let from = k, w = 0; k < list.length; k++) {
    w += sizeOf(list[k]) * scale;
    if (w < restWidth && k + 1 < list.length) continue;
    if (w >= 0.5) out.push({node: k > from ? restOf(frame.node, from, k + 1) : list[k], x, w, above: false});
    x += w;
    from = k + 1;
    w = 0;
  }
}

// frameAt returns the frame of a row at a position in pixels, or null.
function frameAt(row, x) {
  if (!row) return null;
  let from = 0, to = row.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (row[middle].x + row[middle].w <= x) from = middle + 1; else to = middle;
  }
  const f = row[from];
  return f && f.x <= x ? f : null;
}
