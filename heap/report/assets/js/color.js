// Colors of frames. They are computed, so that a test can hold their contrast.

function hashText(text) {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  h ^= h >>> 15;
  return h >>> 0;
}

// hueOf returns the function that says what of a site has a hue of its own: its module; in
// one module its file; in one file its function.
function hueOf(sites) {
  const differ = part => new Set(sites.map(s => s[part]).filter(Boolean)).size > 1;
  if (differ(3)) return s => s[3] || s[1] || s[0];
  if (differ(1)) return s => s[1] || s[0];
  return s => s[0];
}

// frameColor returns hue, saturation and lightness of a frame: the hue of what it belongs to
// (see hueOf), a shade of its name.
function frameColor(name, owner, dark) {
  const hues = [28, 205, 160, 48, 265, 340, 185, 95, 12, 230];
  const hue = hues[hashText(owner) % hues.length], shade = hashText(name) % 9;
  return dark ? [hue, 34 + shade, 25 + shade] : [hue, 62 + shade * 2, 74 + shade * 1.4];
}

// changeColor returns the color of a frame of a difference: red for what grew, blue for
// what shrank, the stronger the less cancels.
function changeColor(gain, loss, dark) {
  const all = gain + loss, net = all ? (gain - loss) / all : 0;
  if (net === 0) return dark ? [0, 0, 30] : [0, 0, 86];
  const strength = Math.abs(net);
  return dark ? [net > 0 ? 6 : 212, 30 + 30 * strength, 28 + 6 * strength] : [net > 0 ? 8 : 212, 60 + 20 * strength, 90 - 16 * strength];
}

const css = ([h, s, l]) => `hsl(${h} ${s}% ${l}%)`;

// rgb returns red, green and blue from 0 to 1.
function rgb([h, s, l]) {
  s /= 100; l /= 100;
  const a = s * Math.min(l, 1 - l);
  return [0, 8, 4].map(n => {
    const k = (n + h / 30) % 12;
    return l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1));
  });
}

// contrast returns the ratio of WCAG 2.1 of two colors.
function contrast(a, b) {
  const luminance = c => {
    const [r, g, b] = rgb(c).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

// ink returns the color of text on frames.
const ink = dark => dark ? [210, 20, 95] : [210, 30, 11];
const restColor = dark => dark ? [210, 8, 24] : [210, 14, 90];
const rootColor = dark => dark ? [210, 10, 30] : [210, 16, 82];
const hitColor = dark => dark ? [285, 45, 42] : [285, 75, 84];
