/* One run while it goes on: messages along links, curves that grow, what peer 0 could have learned so far. */

import { draw } from "/assets/chart.js";
import { PeerMap, shadeOf } from "/assets/draw.js";
import { byId, element, number, post, seconds } from "/assets/server.js";

const [LOW, HIGH] = [0.05, 20]; // epsilons at the ends of the palette
const LISTED = 8;
let map = null, source = null, run = null;

const blank = (name) => ({ name, began: null, scores: [], leaks: [], watcher: 0, peers: 0, unit: "steps", noise: null, last: null });

function say(text) { byId("state").textContent = text; }

function leaked(peer) {
  const told = run.last;
  if (peer === run.watcher) return `Peer ${peer} is the one who looks on.`;
  if (!told) return `Peer ${peer}: nothing is known yet.`;
  return `Peer ${run.watcher} could have learned about peer ${peer}: epsilon ${number(told.epsilons[peer])} at delta ` +
    `${number(run.delta)}, ${run.level} level.`;
}

function begin(event) {
  run = { ...blank(run.name), ...event };
  const drawn = event.places !== null;
  byId("map-figure").hidden = !drawn;
  byId("too-many").hidden = drawn;
  const noise = event.noise === null ? "without noise" : `noise ${number(event.noise)}`;
  byId("live-about").textContent = `${event.algorithm} on ${event.graph}, ${event.peers} peers, ${event.steps} ${event.unit}, ${noise}.`;
  if (drawn) {
    map.show(event.places, event.edges, event.picture);
    map.color(event.places.map(() => null), [run.watcher]);
  }
  byId("curves").replaceChildren();
  byId("leaks-figure").hidden = true;
  byId("leaks-table").hidden = true;
  byId("told").textContent = event.noise === null ? "Nobody adds noise: whatever arrives is seen as it is." : "";
}

function step(event) {
  const progress = byId("progress");
  progress.max = Math.max(1, event.of);
  progress.value = event.step;
  if (!run.began) {
    run.began = { at: performance.now(), step: event.step };
    say("running");
  }
  const spent = (performance.now() - run.began.at) / 1000, made = event.step - run.began.step;
  const left = made > 0 && event.step < event.of ? `, about ${seconds((spent / made) * (event.of - event.step))} left` : "";
  byId("progress-told").textContent = `${event.step} of ${event.of}${left}`;
  map.pulse(event.said);
  if (Object.keys(event.scores).length) {
    run.scores.push([event.step, event.scores]);
    curves(event.of);
  }
}

function curves(total) {
  for (const [k, name] of Object.keys(run.scores[0][1]).entries()) {
    const id = "curve-" + k;
    if (!byId(id)) {
      const figure = element("figure", {}, element("figcaption", { id: id + "-name" }, name));
      const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      picture.id = id;
      picture.setAttribute("class", "chart");
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-labelledby", id + "-name");
      figure.prepend(picture);
      byId("curves").append(figure);
    }
    const points = run.scores.map(([at, scores]) => [at, scores[name]]);
    draw(byId(id), { series: [{ name, points }], x: total === run.steps ? run.unit : "meetings", y: name, span: [0, total] });
    byId(id + "-name").textContent = `${name}: ${number(points[points.length - 1][1])}`;
  }
}

function leaks(event) {
  run.last = event;
  run.watcher = event.seen_by;
  const others = event.epsilons.map((value, peer) => [peer, value]).filter(([peer]) => peer !== event.seen_by);
  const size = (value) => (value === null ? Infinity : value);
  others.sort((a, b) => size(b[1]) - size(a[1]) || a[0] - b[0]);
  map.color(event.epsilons.map((value) => shadeOf(value, LOW, HIGH)), [event.seen_by]);
  const middle = others.length ? others[Math.floor(others.length / 2)][1] : 0, worst = others.length ? others[0][1] : 0;
  if (!event.final) run.leaks.push([event.step, worst, middle]);
  else run.leaks = [...run.leaks.filter(([at]) => at < event.step), [event.step, worst, middle]];
  const finite = [[0, 0, 0], ...run.leaks].filter(([, most]) => most !== null);
  byId("leaks-figure").hidden = finite.length < 2;
  draw(byId("leaks-chart"), { x: run.unit, y: "epsilon", fromZero: true, span: [0, run.steps], series: [
    { name: "worst peer", points: finite.map(([at, most]) => [at, most]) },
    { name: "typical peer", points: finite.map(([at, , half]) => [at, half]) }] });
  byId("leaks-table").hidden = false;
  byId("leaks-caption").textContent = `What peer ${event.seen_by} could have learned about others, the most exposed first ` +
    `(delta ${number(run.delta)}, ${run.level} level, ` + (event.final ? "accounted for after the run)" : "for the same protocol ended here)");
  byId("leaks").replaceChildren(...others.slice(0, LISTED).map(([peer, value]) =>
    element("tr", {}, element("th", { scope: "row" }, "peer " + peer), element("td", { class: "number" }, number(value)))));
  byId("leaks-rest").textContent = others.length > LISTED ? `and ${others.length - LISTED} peers about whom it learned no more` : "";
  if (map.here < 0) byId("told").textContent = others.length ? "Most of all, " + leaked(others[0][0]).replace("Peer", "peer") : "";
}

function end(state, text) {
  source.close();
  source = null;
  byId("stop").hidden = true;
  byId("progress").hidden = state !== "done";
  say(text);
}

function done(event) {
  byId("progress").value = byId("progress").max;
  byId("progress-told").textContent = "";
  const privacy = event.report.privacy;
  end("done", `done: epsilon of the worst pair ${number(privacy.worst.epsilon)}, typical ${number(privacy.typical.epsilon)}, ` +
    `local DP alone ${number(privacy.local.epsilon)}, at delta ${number(privacy.delta)}, ${privacy.level} level (${privacy.status_in_words})`);
  const link = byId("open-report");
  link.href = `/runs/${encodeURIComponent(run.name)}/report`;
  link.textContent = `open the report of ${run.name}`;
  link.hidden = false;
}

const HEARD = {
  begin, step, leaks, done,
  rehearsing: () => say("rehearsing without data: what will leak when"),
  accounting: (event) => {
    say("accounting: who could have learned what about whom");
    if (event.of) byId("progress-told").textContent = `${Math.round((100 * event.done) / event.of)} %`;
  },
  failed: (event) => end("failed", "failed: " + event.reason),
  stopped: () => end("stopped", "stopped: nothing of it was saved"),
};

export function prepareLive() {
  map = new PeerMap(byId("map"), {
    point: (peer) => { if (run && peer >= 0) byId("told").textContent = leaked(peer); },
    choose: (peer) => { byId("told").textContent = leaked(peer); },
  });
  byId("stop").addEventListener("click", () => post(`/api/runs/${encodeURIComponent(run.name)}/stop`, {}).catch((error) => say(error.message)));
}

export function follow(name, ended) {
  if (source) source.close();
  run = blank(name);
  map.clear();
  byId("live").hidden = false;
  byId("live-title").textContent = name;
  byId("live-about").textContent = "";
  byId("stop").hidden = false;
  byId("open-report").hidden = true;
  const progress = byId("progress");
  progress.hidden = false;
  progress.removeAttribute("value");
  byId("progress-told").textContent = "";
  byId("map-figure").hidden = true;
  byId("curves").replaceChildren();
  byId("leaks-figure").hidden = true;
  byId("leaks-table").hidden = true;
  say("starting");
  source = new EventSource(`/api/runs/${encodeURIComponent(name)}/events`);
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    if (HEARD[event.event]) HEARD[event.event](event);
    if (["done", "failed", "stopped"].includes(event.event)) ended(name, event);
  };
  source.onerror = () => { if (source && source.readyState === EventSource.CLOSED) end("failed", "the server does not tell of this run"); };
}
