"use strict";
(function () {
  const block = document.getElementById("pair-data");
  if (!block) return;
  const data = JSON.parse(block.textContent);
  const unknown = data.losses.length;
  const side = Math.ceil(data.n / data.block);
  document.documentElement.classList.add("scripted");

  function unpack(text) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    if (data.bytes === 1) return bytes;
    const wide = new Uint16Array(bytes.length / 2);
    for (let i = 0; i < wide.length; i++) wide[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
    return wide;
  }
  const codes = unpack(data.codes);
  const leaks = data.leaks ? unpack(data.leaks) : null;
  const learns = data.learns ? unpack(data.learns) : null;
  function pairsOf(text) {
    const raw = atob(text || ""), found = [];
    for (let i = 0; i < raw.length; i += 4) {
      const at = (k) => raw.charCodeAt(i + k) | (raw.charCodeAt(i + k + 1) << 8);
      found.push([at(0), at(2)]);
    }
    return found;
  }
  const links = pairsOf(data.links), around = pairsOf(data.around);

  function codeOf(you, other, direction) {
    if (leaks) return (direction === "leaks" ? leaks : learns)[data.you.indexOf(you) * data.n + other];
    return direction === "leaks" ? codes[you * data.n + other] : codes[other * data.n + you];
  }
  function says(code) {
    if (code === unknown) return "nothing to say";
    return "epsilon " + data.epsilons[code] + " at delta " + data.delta + ", " + data.protects + " (loss " +
      data.losses[code] + ")";
  }

  /* The map of peers */
  const map = document.getElementById("map"), chooser = document.getElementById("you");
  const told = document.getElementById("told");
  const dots = Array.from(map.querySelectorAll("circle"));
  const radios = Array.from(document.querySelectorAll("input[name=direction]"));
  let here = -1;
  const direction = () => radios.find((radio) => radio.checked).value;
  const you = () => Number(chooser.value);

  function sentence(other) {
    const me = data.labels[you()], them = data.labels[other];
    if (other === you()) return "This is you: " + me + ".";
    const code = codeOf(you(), other, direction());
    return direction() === "leaks" ? them + " could have learned about " + me + ": " + says(code) + "."
      : me + " could have learned about " + them + ": " + says(code) + ".";
  }
  function color() {
    let most = -1, at = -1;
    dots.forEach(function (dot, peer) {
      const code = peer === you() ? unknown : codeOf(you(), peer, direction());
      const shade = code === unknown ? -2 : data.shades[code];
      dot.setAttribute("class", (shade === -2 ? "you" : shade === -1 ? "none" : "c" + ((shade * 16) >> 8)) +
        (peer === here ? " here" : ""));
      if (code !== unknown && code > most) { most = code; at = peer; }
    });
    told.textContent = at < 0 ? "There is nobody else." : "Most of all, " + sentence(at);
    const spot = (peer) => dots[peer].getAttribute("cx") + " " + dots[peer].getAttribute("cy");
    const mine = (link) => link.includes(you());
    document.getElementById("own").setAttribute("d", links.filter(mine).map(([a, b]) => "M" + spot(a) + "L" + spot(b)).join(""));
    around.filter(mine).forEach(([a, b]) => dots[a === you() ? b : a].classList.add("met"));
    spread();
  }

  /* Rounds as stages: who may know something of what the chosen peer said */
  const stageBlock = document.getElementById("stage-data");
  const stage = stageBlock ? JSON.parse(stageBlock.textContent) : null;
  function spread() {
    if (!stage) return;
    const up = (peer) => stage.top + stage.row * stage.rows[peer];
    let known = new Set([you()]), lines = "", spots = "";
    stage.x.forEach(function (x, t) {
      known.forEach((peer) => { spots += "M" + x + " " + up(peer) + "h0"; });
      if (t === stage.links.length) return;
      const next = new Set(known), to = stage.x[t + 1];
      const line = (a, b) => { lines += "M" + x + " " + up(a) + "L" + to + " " + up(b); };
      known.forEach((peer) => line(peer, peer));
      for (let k = 0; k < stage.links[t].length; k += 2) {
        const a = stage.links[t][k], b = stage.links[t][k + 1];
        if (known.has(a)) { next.add(b); line(a, b); }
        if (known.has(b)) { next.add(a); line(b, a); }
      }
      known = next;
    });
    document.getElementById("spread").setAttribute("d", lines);
    document.getElementById("spread-spots").setAttribute("d", spots);
    document.getElementById("spread-told").textContent = "After " + stage.links.length + " rounds " +
      (known.size === stage.n ? "everybody" : known.size + " of " + stage.n + " peers") + " may know something of what " +
      data.labels[you()] + " said";
  }
  function point(peer) {
    if (here >= 0) dots[here].classList.remove("here");
    here = peer;
    dots[here].classList.add("here");
    told.textContent = sentence(peer);
  }
  function choose(peer) {
    if (!data.you.includes(peer)) { point(peer); return; }
    chooser.value = String(peer);
    color();
  }
  chooser.addEventListener("change", color);
  radios.forEach((radio) => radio.addEventListener("change", color));
  const peerAt = (event) => event.target.dataset && event.target.dataset.peer;
  map.addEventListener("pointerover", function (event) {
    if (peerAt(event) !== undefined) point(Number(peerAt(event)));
  });
  map.addEventListener("click", function (event) {
    if (peerAt(event) !== undefined) choose(Number(peerAt(event)));
  });
  map.addEventListener("keydown", function (event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) point((here + step + data.n) % data.n);
    else if ((event.key === "Enter" || event.key === " ") && here >= 0) choose(here);
    else return;
    event.preventDefault();
  });

  /* The matrix of all pairs */
  const canvas = document.getElementById("heat"), context = canvas.getContext("2d");
  const pairTold = document.getElementById("pair-told");
  let left = 0, top = 0, span = side, row = 0, column = 0, marked = false, palette = [];

  function readColors() {
    const style = getComputedStyle(document.documentElement);
    const rgb = (name) => {
      const text = style.getPropertyValue(name).trim();
      return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
    };
    const stops = Array.from({ length: 16 }, (_, k) => rgb("--c" + k));
    const paper = rgb("--paper"), soft = rgb("--rule");
    const mixed = (shade) => {
      const place = (shade / 255) * 15, k = Math.min(14, Math.floor(place)), part = place - k;
      return [0, 1, 2].map((c) => Math.round(stops[k][c] * (1 - part) + stops[k + 1][c] * part));
    };
    palette = data.shades.map((shade) => (shade < 0 ? paper : mixed(shade)));
    palette.push(soft);
  }
  function worstIn(firstRow, lastRow, firstColumn, lastColumn) {
    let worst = -1;
    for (let i = firstRow; i <= lastRow; i++) {
      for (let j = firstColumn; j <= lastColumn; j++) {
        const code = codes[i * side + j];
        if (code !== unknown && code > worst) worst = code;
      }
    }
    return worst < 0 ? unknown : worst;
  }
  function paint() {
    const size = canvas.width, image = context.createImageData(size, size), cells = [];
    for (let k = 0; k < size; k++) {
      const from = Math.min(side - 1, Math.floor((k * span) / size));
      cells.push([from, Math.max(from, Math.min(side - 1, Math.ceil(((k + 1) * span) / size) - 1))]);
    }
    for (let y = 0; y < size; y++) {
      for (let x = 0; x < size; x++) {
        const shade = palette[worstIn(top + cells[y][0], top + cells[y][1], left + cells[x][0], left + cells[x][1])];
        const at = 4 * (y * size + x);
        image.data[at] = shade[0]; image.data[at + 1] = shade[1]; image.data[at + 2] = shade[2]; image.data[at + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
    if (marked) {
      const cell = size / span;
      context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--link");
      context.lineWidth = 3;
      context.strokeRect((column - left) * cell - 1.5, (row - top) * cell - 1.5, Math.max(cell, 4) + 3, Math.max(cell, 4) + 3);
    }
  }
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  function group(cell) {
    if (data.block === 1) return data.labels[cell];
    return "peers " + cell * data.block + " to " + Math.min(data.n - 1, (cell + 1) * data.block - 1);
  }
  function mark(i, j) {
    row = clamp(i, 0, side - 1);
    column = clamp(j, 0, side - 1);
    marked = true;
    top = clamp(top, Math.max(0, row - span + 1), Math.min(side - span, row));
    left = clamp(left, Math.max(0, column - span + 1), Math.min(side - span, column));
    pairTold.textContent = row === column && data.block === 1 ? group(row) + " has no secrets from itself."
      : group(column) + " could have learned about " + group(row) + ": " + says(codes[row * side + column]) + ".";
    paint();
  }
  function zoom(factor) {
    const middle = marked ? [row, column] : [top + span / 2, left + span / 2];
    span = clamp(Math.round(span * factor), Math.min(4, side), side);
    top = clamp(Math.round(middle[0] - span / 2), 0, side - span);
    left = clamp(Math.round(middle[1] - span / 2), 0, side - span);
    paint();
  }
  const zooms = { closer: () => zoom(0.5), farther: () => zoom(2), whole: () => zoom(side) };
  document.querySelectorAll("[data-zoom]").forEach(function (button) {
    button.addEventListener("click", () => zooms[button.dataset.zoom]());
  });
  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    return [top + Math.floor(((event.clientY - box.top) / box.height) * span),
      left + Math.floor(((event.clientX - box.left) / box.width) * span)];
  }
  let dragged = null;
  canvas.addEventListener("pointerdown", function (event) {
    dragged = { x: event.clientX, y: event.clientY, left: left, top: top, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", function (event) {
    if (!dragged || span === side) return;
    const cell = canvas.getBoundingClientRect().width / span;
    const across = Math.round((dragged.x - event.clientX) / cell), down = Math.round((dragged.y - event.clientY) / cell);
    if (!across && !down && !dragged.moved) return;
    dragged.moved = true;
    left = clamp(dragged.left + across, 0, side - span);
    top = clamp(dragged.top + down, 0, side - span);
    paint();
  });
  canvas.addEventListener("pointerup", function (event) {
    if (dragged && !dragged.moved) mark(...cellAt(event));
    dragged = null;
  });
  canvas.addEventListener("dblclick", () => zoom(0.5));
  canvas.addEventListener("keydown", function (event) {
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const far = event.shiftKey ? Math.max(1, Math.round(span / 8)) : 1;
    if (moves[event.key]) mark(row + moves[event.key][0] * far, column + moves[event.key][1] * far);
    else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") zoom(side);
    else return;
    event.preventDefault();
  });
  function repaint() { readColors(); paint(); }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  matchMedia("print").addEventListener("change", repaint);
  color();
  repaint();
})();
