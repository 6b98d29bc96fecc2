/* One run at its own address: while it goes on, messages along links and curves that grow; then what came of it.
   The view is that of any peer. */

import { draw } from "/assets/chart.js";
import { PeerMap, shadeOf } from "/assets/draw.js";
import { drawStages } from "/assets/stages.js";
import { ask, byId, element, number, post, scored, seconds } from "/assets/server.js";

const [LOW, HIGH] = [0.05, 20]; // epsilons at the ends of the palette
const LISTED = 8;
const name = decodeURIComponent(location.pathname.split("/")[2] || "");
const where = encodeURIComponent(name);
const run = { began: null, scores: [], leaks: [], watcher: 0, followed: 0, peers: 0, unit: "steps", at: 0, last: null,
  ahead: null, picture: null, references: {}, metric: null, ended: false };
let map = null, source = null, asking = 0;

function say(text) { byId("state").textContent = text; }

function leaked(peer) {
  const told = run.last;
  if (peer === run.watcher) return `Peer ${peer} is the one who looks on.`;
  if (!told) return `Peer ${peer}: nothing is known yet.`;
  return `Peer ${run.watcher} could have learned about peer ${peer}: epsilon ${number(told.epsilons[peer])} at delta ` +
    `${number(run.delta)}, ${run.protects}.`;
}

function begin(event) {
  Object.assign(run, event, { picture: event.picture || null });
  const noise = event.noise === null ? "without noise" : `noise of standard deviation ${number(event.noise)}`;
  byId("about").textContent = event.headline || `${event.algorithm} on ${event.graph}, ${event.peers} peers, ${event.steps} ${event.unit}, ${noise}.`;
  byId("views").hidden = false;
  byId("watcher").max = String(event.peers - 1);
  byId("map-figure").hidden = !run.picture;
  byId("too-many").hidden = Boolean(run.picture);
  byId("view-told").textContent = run.picture ? "or choose a peer on the map" : "";
  if (run.picture) {
    map.show(run.picture.places, event.edges || run.picture.edges, run.picture);
    map.color(run.picture.places.map(() => null), [run.watcher]);
    byId("drawn-how").textContent = run.picture.sentence || "";
  }
  stages();
  byId("told").textContent = event.noise === null ? "Nobody adds noise: whatever arrives is seen as it is." : "";
}

function stages() {
  const found = run.picture && run.picture.stages;
  byId("stages-figure").hidden = !found;
  if (found) drawStages(byId("stages"), found, run.watcher);
}

function step(event) {
  const progress = byId("progress");
  byId("learning").hidden = false;
  progress.max = Math.max(1, event.of);
  progress.value = run.at = event.step;
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
  if (run.ahead) foresee();
}

/* Every score over time, the task's own first, beside what peers have alone and what all data in one place would give. */
function curves(total) {
  const names = Object.keys(run.scores[0][1]).sort((a, b) => (b === run.metric) - (a === run.metric));
  for (const [k, score] of names.entries()) {
    const id = "curve-" + k;
    if (!byId(id)) {
      const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      picture.id = id;
      picture.setAttribute("class", "chart");
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-labelledby", id + "-name");
      byId("curves").append(element("figure", {}, element("p", { class: "finding", id: id + "-name" }, score), picture));
    }
    const points = run.scores.map(([at, scores]) => [at, scores[score]]), now = points[points.length - 1][1];
    const mine = score === run.metric ? run.references : {};
    const lines = [["alone", "each peer alone"], ["central", "all data in one place"]].filter(([key]) => Number.isFinite(mine[key]))
      .map(([key, text]) => ({ name: `${text} ${number(mine[key])}`, value: mine[key] }));
    draw(byId(id), { series: [{ name: "together", points }], lines, x: total === run.steps ? run.unit : "meetings", y: score, span: [0, total] });
    byId(id + "-name").textContent = `${score === "worst" ? `${names[0]} of the worst peer` : score}: ${scored(now)}` + (run.ended ? "" : " so far");
  }
}

/* A view: of whom the worker tells, of whom it was asked ahead, or at the end. */
function leaks(event) {
  run.last = event;
  const others = event.epsilons.map((value, peer) => [peer, value]).filter(([peer]) => peer !== event.seen_by);
  const size = (value) => (value === null ? Infinity : value);
  others.sort((a, b) => size(b[1]) - size(a[1]) || a[0] - b[0]);
  if (run.picture) map.color(event.epsilons.map((value) => shadeOf(value, LOW, HIGH)), [event.seen_by]);
  const middle = others.length ? others[Math.floor(others.length / 2)][1] : 0, worst = others.length ? others[0][1] : 0;
  run.leaks = [...run.leaks.filter(([at]) => at < event.step), [event.step, worst, middle]];
  const finite = [[0, 0, 0], ...run.leaks].filter(([, most]) => most !== null);
  byId("leaks-figure").hidden = finite.length < 3;
  byId("leaks-finding").textContent = `Epsilon in the view of peer ${event.seen_by} only rises`;
  draw(byId("leaks-chart"), { x: run.unit, y: "epsilon", fromZero: true, span: [0, run.steps], series: [
    { name: "worst peer", points: finite.map(([at, most]) => [at, most]) },
    { name: "typical peer", points: finite.map(([at, , half]) => [at, half]) }] });
  byId("leaks-table").hidden = false;
  byId("leaks-caption").textContent = `What peer ${event.seen_by} could have learned about others, the most exposed first ` +
    `(delta ${number(run.delta)}, ${run.protects}, ` + (event.final ? "accounted for after the run)" : "for the same protocol ended here)");
  byId("leaks").replaceChildren(...others.slice(0, LISTED).map(([peer, value]) =>
    element("tr", {}, element("th", { scope: "row" }, "peer " + peer), element("td", { class: "number" }, number(value)))));
  byId("leaks-rest").textContent = others.length > LISTED ? `and ${others.length - LISTED} peers about whom it learned no more` : "";
  if (map.here < 0) byId("told").textContent = others.length ? "Most of all, " + leaked(others[0][0]).replace("Peer", "peer") : "";
}

/* What was computed ahead for another peer, up to where the run is now. */
function foresee() {
  const covering = run.ahead.find(([at]) => at >= run.at) || run.ahead[run.ahead.length - 1];
  if (!covering || (run.last && run.last.step === covering[0])) return;
  for (const [at, epsilons] of run.ahead.filter(([at]) => at <= covering[0])) {
    if (!run.last || at > run.last.step) leaks({ seen_by: run.watcher, step: at, epsilons, final: false });
  }
}

async function look(peer) {
  if (!Number.isInteger(peer) || peer < 0 || peer >= run.peers || peer === run.watcher) return;
  Object.assign(run, { watcher: peer, leaks: [], last: null, ahead: null });
  byId("watcher").value = String(peer);
  if (run.picture) map.color(run.picture.places.map(() => null), [peer]);
  stages();
  const mine = ++asking;
  byId("view-told").textContent = `asking for the view of peer ${peer} ...`;
  try {
    const found = await ask(`/api/runs/${where}/view/${peer}`);
    if (mine !== asking) return;
    byId("view-told").textContent = run.picture ? "or choose a peer on the map" : "";
    if (found.final) leaks(found);
    else { run.ahead = found.ahead; foresee(); }
  } catch (error) {
    if (mine === asking) byId("view-told").textContent = error.message;
  }
}

function sentence(text) { return `${text[0].toUpperCase()}${text.slice(1)}.`; }

function tile(value, text, first = false) {
  return element("li", { class: first ? "first" : null }, element("strong", {}, value), " ", element("span", {}, text));
}

/* The end: the score beside alone and central, the epsilons, what can be done with it. */
function told(report) {
  const privacy = report.privacy, scores = report.metrics, metric = run.metric || Object.keys(scores)[0];
  run.metric = metric;
  run.references = report.references || {};
  run.ended = true;
  const tiles = [];
  if (metric in scores) {
    tiles.push(tile(scored(scores[metric]), `${metric}, together`, true));
    if (Number.isFinite(run.references.alone)) tiles.push(tile(number(run.references.alone), `${metric}, each peer alone`));
    if (Number.isFinite(run.references.central)) tiles.push(tile(number(run.references.central), `${metric}, all data in one place, no privacy`));
  }
  if (run.noise !== null) {
    tiles.push(tile(number(privacy.worst.epsilon), `epsilon, worst pair (delta ${number(privacy.delta)}, ${privacy.protects})`));
    const at = `(delta ${number(privacy.delta)}, ${privacy.protects})`;
    if (report.attempts) {
      const made = report.attempts;
      tiles.push(tile(number(made.promised), `epsilon, promised: for all ${made.limit} attempts, with ${Math.max(...made.charged)} charged ${at}`));
    } else tiles.push(tile(number(privacy.typical.epsilon), `epsilon, typical pair ${at}`));
    tiles.push(tile(number(privacy.local.epsilon), `epsilon, ${privacy.last_row} ${at}`));
  }
  byId("tiles").replaceChildren(...tiles);
  byId("tiles").hidden = false;
  byId("both-levels").hidden = !report.levels;
  byId("both-levels").textContent = report.levels ? sentence(report.levels.in_words) : "";
  byId("attempts").hidden = !report.attempts;
  if (report.attempts) {
    byId("attempts-told").textContent = sentence(`${report.attempts.in_words} (delta ${number(privacy.delta)}, ${privacy.protects})`);
    byId("spoken").replaceChildren(...report.attempts.spoken.map((part) => element("tr", {},
      element("th", { scope: "row" }, part.first === part.last ? part.first : `${part.first} to ${part.last}`),
      element("td", { class: "number" }, part.attempts), element("td", {}, part.in_words))));
  }
  joined(report.joining);
  const worth = report.verdict ? report.verdict.in_words : metric in scores ? `${metric} ${scored(scores[metric])}` : "done";
  const protection = run.noise === null ? "no noise: nothing is protected" :
    `epsilon of the worst pair ${number(privacy.worst.epsilon)} at delta ${number(privacy.delta)}, ${privacy.protects} (${privacy.status_in_words})`;
  byId("headline").textContent = sentence(`${worth}; ${protection}`);
  const advice = (report.verdict && report.verdict.advice) || [];
  byId("advice").hidden = !advice.length;
  byId("helps").replaceChildren(...advice.map((text) => element("li", {}, text)));
  if (run.scores.length) curves(run.total || run.steps);
  byId("open-report").href = `/runs/${where}/report`;
  byId("open-report").hidden = false;
  byId("model").href = `/runs/${where}/model.json`;
  byId("model").hidden = !report.model;
}

/* Alone, together and pooled, peer by peer, and their spread; of many peers the spread only. */
function joined(found) {
  byId("joining").hidden = !found;
  if (!found) return;
  const columns = [["alone", found.alone], ["together", found.together], ["with its own part", found.own_part],
    ["pooled", found.pooled], ["gain", found.gains]].filter(([, numbers]) => numbers);
  const row = (name, cells) => element("tr", {}, element("th", { scope: "row" }, name),
    ...cells.map((value) => element("td", { class: "number" }, typeof value === "number" ? number(value) : value)));
  const mean = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
  const deviation = (numbers) => Math.sqrt(numbers.reduce((sum, one) => sum + (one - mean(numbers)) ** 2, 0) / (numbers.length - 1));
  const shown = found.names.length <= 16 ? found.names : [], told = found.in_words;
  byId("joining-told").textContent = sentence(told);
  byId("joining-caption").textContent = `${found.metric} on ${found.own_test ? "its own test records" : "records that no peer holds"}`;
  byId("joining-columns").replaceChildren(...["peer", "learns from", "judged on", ...columns.map(([name]) => name)].map((name, at) =>
    element("th", { scope: "col", class: at ? "number" : null }, name)));
  byId("joining-rows").replaceChildren(
    ...shown.map((name, peer) => row(name, [String(found.records[peer]), String(found.test_records[peer]), ...columns.map(([, numbers]) => numbers[peer])])),
    ...(found.names.length < 2 ? [] : [["mean over peers", mean], ["standard deviation over peers", deviation]].map(([name, of]) =>
      row(name, ["", "", ...columns.map(([, numbers]) => of(numbers))]))));
}

function ending(report) {
  return report.interrupted ? `${report.interrupted.in_words}; what was done is kept` : "done";
}

function end(text) {
  if (source) source.close();
  source = null;
  byId("stop").hidden = byId("learning").hidden = byId("counting").hidden = true;
  say(text);
}

const HEARD = {
  begin: (event) => { byId("stop").hidden = false; begin(event); },
  step: (event) => { run.total = event.of; step(event); },
  leaks: (event) => { if (event.seen_by === run.watcher) leaks(event); else if (event.final) { run.ahead = null; const peer = run.watcher; run.watcher = -1; run.later = peer; } },
  rehearsing: () => say("rehearsing without data: what will leak when"),
  accounting: (event) => {
    say("accounting: who could have learned what about whom");
    byId("counting").hidden = false;
    if (!event.of) { byId("accounting").removeAttribute("value"); return; }
    byId("accounting").max = event.of;
    byId("accounting").value = event.done;
    byId("accounting-told").textContent = `${Math.round((100 * event.done) / event.of)} %`;
  },
  done: (event) => { told(event.report); end(ending(event.report)); if (run.later !== undefined) look(run.later); },
  failed: (event) => end("failed: " + event.reason),
  stopping: () => say("stopping after this step, to keep what is done; Stop once more ends it at once"),
  stopped: (event) => {
    if (event.saved) location.reload(); // its folder says what there is
    else end("stopped: nothing of it was saved");
  },
};

function follow() {
  say("starting");
  byId("stop").hidden = false;
  source = new EventSource(`/api/runs/${where}/events`);
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    if (HEARD[event.event]) HEARD[event.event](event);
  };
  source.onopen = () => Object.assign(run, { scores: [], leaks: [], last: null, began: null }); // it tells all from the first
  source.onerror = () => {
    if (source && source.readyState === EventSource.CLOSED) end("the server does not tell of this run any more; reload the page");
    else say("the server does not answer; trying again (is `bruit ui` still running?)");
  };
}

async function show() {
  document.title = `${name} - Bruit`;
  byId("name").textContent = name;
  byId("again").href = "/?" + new URLSearchParams({ again: name });
  map = new PeerMap(byId("map"), {
    point: (peer) => { if (peer >= 0) byId("told").textContent = leaked(peer); },
    choose: (peer) => look(peer),
  });
  byId("stop").addEventListener("click", () => post(`/api/runs/${where}/stop`, {}).catch((error) => say(error.message)));
  byId("watcher").addEventListener("change", () => look(Number(byId("watcher").value)));
  say("reading");
  try {
    const found = await ask(`/api/runs/${where}`);
    if (found.state !== "saved") { follow(); return; }
    byId("again").hidden = !found.experiment; // made in Python: there is no file to change
    begin(found);
    run.scores = found.history.filter(([, scores]) => Object.keys(scores).length);
    run.total = run.scores.length ? Math.max(found.steps, ...run.scores.map(([at]) => at)) : found.steps;
    told(found.report);
    say(found.report.interrupted ? ending(found.report) : "");
    run.watcher = -1; // nobody's view is shown yet
    await look(0);
    document.body.dataset.shown = "1";
  } catch (error) {
    byId("again").hidden = true;
    say(error.message);
  }
}

show();
