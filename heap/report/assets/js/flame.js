// The flame graph: a canvas in a box that scrolls. Only the rows in sight are drawn.

const rowHeight = 20;

// newFlame returns a flame graph. Options: label, for screen readers; flip, the root is at
// the bottom; text(node), name(node), color(node), hit(node); zoom(node), called by a click;
// focus(node), called when the frame under the keys changes; pick(node), by Shift and click.
function newFlame(options) {
  const canvas = el("canvas", {tabindex: 0, role: "application", "aria-roledescription": "flame graph", "aria-label": options.label});
  const space = el("div", {class: "flame-space"}, canvas);
  const box = el("div", {class: "flame"}, space);
  const f = {box, canvas, rows: [], zoomed: null, focus: null, cut: false, width: 0, drawn: 0};
  const yOf = row => f.flip() ? (f.rows.length - 1 - row) * rowHeight : row * rowHeight;
  f.flip = () => !!options.flip;

  f.show = zoomed => {
    f.zoomed = zoomed;
    f.width = box.clientWidth;
    ({rows: f.rows, cut: f.cut} = layout(zoomed, f.width));
    const height = f.rows.length * rowHeight;
    space.style.height = height + "px";
    f.focus = find(n => n === zoomed) || f.rows[0][0];
    if (f.flip()) box.scrollTop = height;
    else box.scrollTop = Math.max(0, (f.focus ? rowOf(f.focus) - 3 : 0) * rowHeight);
    f.draw();
  };
  const rowOf = frame => f.rows.findIndex(r => r.includes(frame));
  const find = test => {
    for (const row of f.rows) for (const frame of row) if (test(frame.node)) return frame;
    return null;
  };

  f.draw = () => {
    const started = performance.now();
    const height = Math.min(box.clientHeight || 0, Math.max(f.rows.length * rowHeight, rowHeight)), ratio = devicePixelRatio || 1;
    const w = Math.round(f.width * ratio), h = Math.round(height * ratio);
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w; canvas.height = h;
      canvas.style.width = f.width + "px";
      canvas.style.height = height + "px";
    }
    const c = canvas.getContext("2d"), dark = isDark();
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, f.width, height);
    c.font = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";
    c.textBaseline = "middle";
    const letter = c.measureText("m").width || 7, top = box.scrollTop;
    for (let i = 0; i < f.rows.length; i++) {
      const y = yOf(i) - top;
      if (y > height || y < -rowHeight) continue;
      for (const frame of f.rows[i]) drawFrame(c, frame, y, letter, dark);
    }
    if (f.focus && document.activeElement === canvas) {
      c.strokeStyle = css(ink(dark));
      c.lineWidth = 2;
      c.strokeRect(f.focus.x + 1, yOf(rowOf(f.focus)) - top + 1, Math.max(2, f.focus.w - 3), rowHeight - 3);
    }
    f.drawn = performance.now() - started;
  };
  const drawFrame = (c, frame, y, letter, dark) => {
    const {node, x, w} = frame, gap = w > 4 ? 1 : 0.4;
    c.globalAlpha = frame.above ? 0.62 : 1;
    c.fillStyle = css(options.hit(node) ? hitColor(dark) : options.color(node, dark));
    c.fillRect(x, y, Math.max(0.5, w - gap), rowHeight - 1);
    c.globalAlpha = 1;
    const fit = Math.floor((w - 8) / letter);
    if (fit < 2) return;
    let text = options.name(node);
    if (text.length > fit) text = text.slice(0, fit - 1) + "…";
    c.fillStyle = css(ink(dark));
    c.fillText(text, x + 4, y + rowHeight / 2);
  };

  const frameUnder = e => {
    const r = canvas.getBoundingClientRect(), y = e.clientY - r.top + box.scrollTop;
    const row = Math.floor(y / rowHeight);
    return frameAt(f.rows[f.flip() ? f.rows.length - 1 - row : row], e.clientX - r.left);
  };
  const focusOn = (frame, scroll) => {
    f.focus = frame;
    if (scroll) {
      const y = yOf(rowOf(frame));
      if (y < box.scrollTop) box.scrollTop = y;
      else if (y + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = y + rowHeight - box.clientHeight;
    }
    options.focus(frame.node);
    f.draw();
  };
  canvas.addEventListener("pointermove", e => {
    const frame = e.pointerType === "touch" ? null : frameUnder(e);
    canvas.style.cursor = frame ? "pointer" : "";
    if (frame) tip.show(e.clientX, e.clientY, options.text(frame.node)); else tip.hide();
  });
  canvas.addEventListener("pointerleave", tip.hide);
  canvas.addEventListener("click", e => {
    const frame = frameUnder(e);
    if (!frame) return;
    tip.hide();
    focusOn(frame, false);
    if (e.shiftKey) options.pick(frame.node); else options.zoom(frame.node);
  });
  canvas.addEventListener("focus", () => { if (f.focus) focusOn(f.focus, false); });
  canvas.addEventListener("blur", () => f.draw());
  canvas.addEventListener("keydown", e => {
    if (e.ctrlKey || e.altKey || e.metaKey || !f.focus) return;
    const to = neighbor(e.key);
    if (to) focusOn(to, true);
    else if (e.key === "Enter" && e.shiftKey) options.pick(f.focus.node);
    else if (e.key === "Enter") options.zoom(f.focus.node);
    else if (!e.key.startsWith("Arrow")) return;
    e.preventDefault();
  });
  const neighbor = key => {
    const i = rowOf(f.focus), row = f.rows[i], at = row.indexOf(f.focus), middle = f.focus.x + Math.min(1, f.focus.w / 2);
    const inward = f.flip() ? "ArrowUp" : "ArrowDown", outward = f.flip() ? "ArrowDown" : "ArrowUp";
    if (key === "ArrowLeft") return row[at - 1];
    if (key === "ArrowRight") return row[at + 1];
    if (key === outward) return frameAt(f.rows[i - 1], middle);
    const below = key === inward ? frameAt(f.rows[i + 1], middle) : null;
    return below && below.x >= f.focus.x - 1e-6 ? below : null;
  };
  let frame = 0;
  box.addEventListener("scroll", () => {
    tip.hide();
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(f.draw);
  });
  f.at = (x, y) => frameAt(f.rows[y], x);
  return f;
}
