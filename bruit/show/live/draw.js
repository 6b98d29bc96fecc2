/* A map of peers on a canvas: links once, peers in colors, messages as pulses along links. Stays quick for 1000 peers.

   Colors: shade in [0, 1] from the palette, null for "nothing", and thick rims for whoever looks on. Arrow keys go to the
   nearest peer in that direction, Enter or the space bar chooses it. */

const PULSE = 700; // milliseconds a message is under way
const MOST_PULSES = 150;
const MARGIN = 0.06;

export function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    shades: Array.from({ length: 16 }, (_, k) => read("--c" + k)), paper: read("--paper"), ink: read("--ink"),
    soft: read("--soft"), faint: read("--s0"), link: read("--link"), pulse: read("--s2"), ring: read("--s1"),
  };
}

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/* On a scale of factors: 0 at `low`, 1 at `high`, null for nothing at all; what has no bound is the darkest. */
export function shadeOf(value, low, high) {
  if (value === null || value === undefined) return 1;
  if (!(value > 0)) return null;
  return Math.max(0, Math.min(1, Math.log(value / low) / Math.log(high / low)));
}

export class PeerMap {
  constructor(canvas, { point = () => {}, choose = () => {} } = {}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.backdrop = document.createElement("canvas");
    this.point = point;
    this.choose = choose;
    this.clear();
    new ResizeObserver(() => this.refit()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.refit());
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.go(-1));
    canvas.addEventListener("click", (event) => {
      const peer = this.peerAt(event);
      if (peer >= 0) this.choose(peer);
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.go(-1));
  }

  clear() {
    this.places = [];
    this.edges = [];
    this.picture = { aspect: null, edges: [], stubs: [] };
    this.shades = [];
    this.rings = new Set();
    this.watchers = new Set();
    this.here = -1;
    this.pulses = [];
    this.drawing = false;
  }

  /* `picture`, if there is one, is what bruit.graphs.coordinates says of how to draw: the shape of the box, which links are
     lines, and the short ends of those that go around. Messages travel along all `edges`. */
  show(places, edges, picture = null) {
    this.clear();
    this.places = places;
    this.edges = edges || [];
    this.picture = picture || { aspect: null, edges: this.edges, stubs: [] };
    this.shades = places.map(() => null);
    this.refit();
  }

  color(shades, watchers, rings = []) {
    this.shades = shades;
    this.watchers = new Set(watchers);
    this.rings = new Set(rings);
    this.redraw();
  }

  /* Messages under way; null is everybody to all neighbors, of which some are drawn. */
  pulse(said) {
    if (still() || !this.places.length) return;
    let shown = said;
    if (said === null) {
      const step = Math.max(1, Math.ceil(this.edges.length / 60));
      const from = Math.floor(Math.random() * step);
      shown = this.edges.filter((_, k) => k % step === from).flatMap(([a, b]) => [[a, b], [b, a]]);
    }
    const now = performance.now();
    for (const [a, b] of shown.slice(0, MOST_PULSES - this.pulses.length)) {
      this.pulses.push({ a, b, from: now + Math.random() * 150 });
    }
    this.redraw();
  }

  refit() {
    const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    if (!box.width) return;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.size = [this.canvas.width, this.canvas.height];
    this.theme = theme();
    const free = this.size.map((side) => side - 2 * MARGIN * Math.min(...this.size));
    const aspect = this.picture.aspect || free[0] / free[1], wide = Math.min(free[0], free[1] * aspect);
    const most = Math.min(11 * ratio, 0.17 * Math.sqrt((this.size[0] * this.size[1]) / Math.max(1, this.places.length)));
    this.radius = Math.max(3 * ratio, Math.min(most, 0.6 * (this.picture.spacing ?? 1) * wide)); // few peers cover another
    const at = ([x, y]) => [this.size[0] / 2 + wide * (x - 0.5), this.size[1] / 2 + (wide / aspect) * (y - 0.5)];
    this.spots = this.places.map(at);
    this.backdrop.width = this.size[0];
    this.backdrop.height = this.size[1];
    const context = this.backdrop.getContext("2d");
    context.strokeStyle = this.theme.faint;
    const lines = this.picture.edges;
    context.globalAlpha = lines.length > 2000 ? 0.12 : lines.length > 300 ? 0.25 : 0.6;
    context.lineWidth = ratio;
    context.beginPath();
    for (const [a, b] of lines) {
      context.moveTo(...this.spots[a]);
      context.lineTo(...this.spots[b]);
    }
    context.stroke();
    context.globalAlpha = 0.45;
    context.beginPath();
    for (const [from, to] of this.picture.stubs) {
      context.moveTo(...at(from));
      context.lineTo(...at(to));
    }
    context.stroke();
    this.redraw();
  }

  redraw() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame((now) => {
      this.drawing = false;
      this.paint(now);
      this.pulses = this.pulses.filter((one) => now < one.from + PULSE);
      if (this.pulses.length) this.redraw();
    });
  }

  paint(now) {
    const context = this.context, full = 2 * Math.PI, colors = this.theme;
    if (!this.spots || this.spots.length !== this.places.length) return;
    context.clearRect(0, 0, ...this.size);
    context.drawImage(this.backdrop, 0, 0);
    context.fillStyle = colors.pulse;
    for (const one of this.pulses) {
      const part = (now - one.from) / PULSE;
      if (part < 0 || part > 1 || !this.spots[one.a] || !this.spots[one.b]) continue;
      const [x, y] = this.spots[one.a], [u, v] = this.spots[one.b];
      context.beginPath();
      context.arc(x + (u - x) * part, y + (v - y) * part, Math.max(2, this.radius * 0.35), 0, full);
      context.fill();
    }
    const order = [...this.spots.keys()].filter((peer) => !this.watchers.has(peer)).concat([...this.watchers]);
    for (const peer of order) {
      if (!this.spots[peer]) continue;
      const [x, y] = this.spots[peer], shade = this.shades[peer], watching = this.watchers.has(peer);
      context.beginPath();
      context.arc(x, y, this.radius, 0, full);
      context.fillStyle = watching || shade === null ? colors.paper : colors.shades[Math.min(15, Math.floor(shade * 16))];
      context.fill();
      context.lineWidth = watching ? Math.max(3, this.radius * 0.5) : Math.max(1, this.radius * 0.12);
      context.strokeStyle = watching ? colors.ink : colors.soft;
      context.stroke();
      if (this.rings.has(peer)) this.ring(x, y, this.radius * 1.6, colors.ring, this.radius * 0.35);
    }
    if (this.here >= 0) this.ring(...this.spots[this.here], this.radius * 2.1, colors.link, this.radius * 0.45);
  }

  ring(x, y, radius, color, width) {
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    this.context.strokeStyle = color;
    this.context.lineWidth = Math.max(2, width);
    this.context.stroke();
  }

  peerAt(event) {
    const box = this.canvas.getBoundingClientRect(), ratio = this.size ? this.size[0] / box.width : 1;
    const x = (event.clientX - box.left) * ratio, y = (event.clientY - box.top) * ratio;
    let best = -1, least = (Math.max(this.radius * 2, 14 * ratio)) ** 2;
    (this.spots || []).forEach(([u, v], peer) => {
      const far = (u - x) ** 2 + (v - y) ** 2;
      if (far < least) { least = far; best = peer; }
    });
    return best;
  }

  hover(event) {
    const peer = this.peerAt(event);
    if (peer !== this.here) this.go(peer);
  }

  go(peer) {
    this.here = peer;
    this.point(peer);
    this.redraw();
  }

  /* The nearest peer within a right angle around the direction. */
  toward(across, down) {
    const [x, y] = this.spots[this.here];
    let best = this.here, least = Infinity;
    this.spots.forEach(([u, v], peer) => {
      const along = (u - x) * across + (v - y) * down, aside = Math.abs((u - x) * down) + Math.abs((v - y) * across);
      const cost = along + 2 * aside;
      if (along > 0.5 && aside <= along && cost < least) { least = cost; best = peer; }
    });
    return best;
  }

  key(event) {
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    if (!this.places.length) return;
    if (ways[event.key]) this.go(this.here < 0 ? 0 : this.toward(...ways[event.key]));
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.places.length - 1);
    else if (event.key === "PageDown") this.go((this.here + 1) % this.places.length);
    else if (event.key === "PageUp") this.go((this.here - 1 + this.places.length) % this.places.length);
    else if ((event.key === "Enter" || event.key === " ") && this.here >= 0) this.choose(this.here);
    else return;
    event.preventDefault();
  }
}
