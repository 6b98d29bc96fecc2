/* Curves as SVG: a few lines over one axis, straight or in factors of ten, each with its name beside it. */

import { number } from "/assets/server.js";

const SPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [480, 250, 62, 12, 14, 42];

function svg(name, attributes, text) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

function ticks(low, high, factors) {
  if (factors) {
    const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9), step = Math.max(1, Math.ceil((last - first) / 5));
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, k) => first + k * step);
  }
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((part) => part * power >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + 1e-9 * step; at += step) found.push(at);
  return found;
}

/* Names of curves at their right end, moved apart so that none covers another. */
function label(target, names) {
  let lowest = -Infinity;
  for (const one of names.sort((a, b) => a.at - b.at)) {
    lowest = Math.max(one.at, lowest + 15);
    const side = one.x < WIDTH - RIGHT - 80 ? { x: one.x + 8, "text-anchor": "start" } : { x: WIDTH - RIGHT, "text-anchor": "end" };
    target.append(svg("text", { class: `say b${one.k}`, y: lowest - 6, ...side }, one.name));
  }
}

/* Names of lines to compare with, above them at the left; lines too close for two rows of text share one, the upper first. */
function labelLines(target, names) {
  const rows = [];
  for (const one of names.sort((a, b) => a.at - b.at)) {
    const last = rows[rows.length - 1];
    if (last && one.at - last.at < 18) last.name += "; " + one.name;
    else rows.push({ ...one });
  }
  for (const row of rows) target.append(svg("text", { class: "say b0", x: LEFT + 4, y: row.at - 6, "text-anchor": "start" }, row.name));
}

/* series: [{name, points: [[x, y]], dots}]; lines: [{name, value}], to compare with; factors: y in powers of ten, nothing
   below `floor` is drawn. */
export function draw(target, { series, lines = [], x, y, span, factors = false, floor = 1e-6, fromZero = false }) {
  const level = (value) => (factors ? Math.log10(value) : value);
  const shown = (value) => Number.isFinite(value) && (!factors || value >= floor);
  const points = series.flatMap((one) => one.points).filter(([, value]) => shown(value));
  target.replaceChildren();
  target.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  if (!points.length) return;
  const across = points.map((point) => point[0]);
  const up = [...points.map((point) => level(point[1])), ...lines.map((one) => level(one.value))];
  const [left, right] = span || [Math.min(...across), Math.max(...across)];
  let low = fromZero ? 0 : Math.min(...up), high = Math.max(...up);
  if (factors) { low = Math.floor(low + 1e-9); high = Math.max(low + 1, Math.ceil(high - 1e-9)); }
  if (high - low < 1e-12) { high += Math.abs(high) * 0.05 || 0.5; low -= fromZero ? 0 : Math.abs(low) * 0.05 || 0.5; }
  const px = (value) => LEFT + ((value - left) / (right - left || 1)) * (WIDTH - LEFT - RIGHT);
  const py = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  for (const at of ticks(low, high, factors)) {
    target.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: py(at), y2: py(at) }));
    target.append(svg("text", { x: LEFT - 8, y: py(at) + 4, "text-anchor": "end" }, number(factors ? 10 ** at : at)));
  }
  for (const at of ticks(left, right === left ? left + 1 : right, false)) {
    if (!Number.isInteger(at)) continue;
    const side = px(at) + 3.2 * String(at).length > WIDTH ? "end" : "middle"; // a long number stays within
    target.append(svg("text", { x: px(at), y: HEIGHT - BOTTOM + 18, "text-anchor": side }, at));
  }
  target.append(svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
  target.append(svg("text", { class: "title", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, x));
  target.append(svg("text", { class: "title", x: 14, y: (TOP + HEIGHT - BOTTOM) / 2, "text-anchor": "middle",
    transform: `rotate(-90 14 ${(TOP + HEIGHT - BOTTOM) / 2})` }, y));
  const names = [], beside = [];
  for (const one of lines) {
    const at = py(level(one.value));
    target.append(svg("line", { class: "line dashed s0", x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }));
    beside.push({ name: one.name, at });
  }
  series.forEach((one, k) => {
    const drawn = one.points.filter(([, value]) => shown(value)).map(([at, value]) => [px(at), py(level(value))]);
    target.append(svg("polyline", { class: `line s${k + 1}`, points: drawn.map((point) => point.join(",")).join(" ") }));
    if (one.dots || drawn.length === 1) {
      drawn.forEach(([cx, cy]) => target.append(svg("circle", { class: `dot s${k + 1}`, cx, cy, r: 4 })));
    }
    if (drawn.length && one.name) names.push({ name: one.name, at: drawn[drawn.length - 1][1], x: drawn[drawn.length - 1][0], k: k + 1 });
  });
  labelLines(target, beside);
  label(target, names);
}
