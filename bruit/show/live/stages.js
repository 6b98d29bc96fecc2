/* Rounds as columns and peers as rows: who exchanges with whom in which round, and what of it reaches one peer. */

const SPACE = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [640, 420, 46, 16, 12, 34];
const LABELS = 32; // peers up to which every row has its number

function svg(name, attributes, text) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/* By column, the peers whose values may be in what `peer` holds at the end. */
function reaching(links, peer) {
  const sets = Array(links.length + 1);
  sets[links.length] = new Set([peer]);
  for (let t = links.length - 1; t >= 0; t--) {
    sets[t] = new Set(sets[t + 1]);
    for (const [a, b] of links[t]) {
      if (sets[t + 1].has(a)) sets[t].add(b);
      if (sets[t + 1].has(b)) sets[t].add(a);
    }
  }
  return sets;
}

export function drawStages(target, stages, peer) {
  const n = stages.rows.length, columns = stages.links.length + 1, sets = reaching(stages.links, peer);
  const px = (t) => LEFT + (t / Math.max(1, columns - 1)) * (WIDTH - LEFT - RIGHT);
  const py = (one) => TOP + ((stages.rows[one] + 0.5) / n) * (HEIGHT - TOP - BOTTOM);
  target.replaceChildren();
  target.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const faint = [], strong = [];
  stages.links.forEach((links, t) => {
    const line = (from, to) => `M${px(t).toFixed(1)} ${py(from).toFixed(1)}L${px(t + 1).toFixed(1)} ${py(to).toFixed(1)}`;
    for (let one = 0; one < n; one++) (sets[t].has(one) && sets[t + 1].has(one) ? strong : faint).push(line(one, one));
    for (const [a, b] of links) {
      for (const [from, to] of [[a, b], [b, a]]) (sets[t + 1].has(to) ? strong : faint).push(line(from, to));
    }
  });
  target.append(svg("path", { class: "stage", d: faint.join("") }), svg("path", { class: "stage reached", d: strong.join("") }));
  for (let t = 0; t < columns; t++) {
    for (let one = 0; one < n; one++) {
      target.append(svg("circle", { class: sets[t].has(one) ? "stop reached" : "stop", cx: px(t), cy: py(one), r: n > 64 ? 1.4 : 3 }));
    }
    if (t) target.append(svg("text", { x: (px(t - 1) + px(t)) / 2, y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, "round " + t));
  }
  const every = Math.ceil(n / LABELS);
  for (let one = 0; one < n; one++) {
    if (stages.rows[one] % every === 0) target.append(svg("text", { x: LEFT - 8, y: py(one) + 4, "text-anchor": "end" }, one));
  }
}
