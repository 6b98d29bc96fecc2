/* What if: every change asks the server again; only the latest answer is drawn. The question is the page's address. */

import { draw } from "/assets/chart.js";
import { PeerMap, shadeOf } from "/assets/draw.js";
import { drawStages } from "/assets/stages.js";
import { ask, byId, element, number } from "/assets/server.js";

const LOWEST = 0.01; // loss at the pale end of the palette
let observers = [0], shown = null, asked = null, waiting = 0, drawn = "";

const value = (name) => Number(byId(name).value);
const noise = () => (value("noise") <= -41 ? 0 : 10 ** (value("noise") / 20)); // 0, then factors from 0.01 to 100

const map = new PeerMap(byId("map"), { point: tellPeer, choose: toggle });

function tellPeer(peer) {
  if (!shown || peer < 0 || peer >= shown.peers) { byId("told").textContent = ""; return; }
  if (shown.observers.includes(peer)) { byId("told").textContent = `Peer ${peer} looks on.`; return; }
  const known = shown.computable.includes(peer) ? "; computable without noise" : "";
  byId("told").textContent = `Peer ${peer}: loss ${number(shown.losses[peer])}, epsilon ${number(shown.epsilons[peer])} ` +
    `at delta ${number(shown.delta)}, ${shown.level} level${known}.`;
}

function toggle(peer) {
  observers = observers.includes(peer) ? observers.filter((one) => one !== peer) : [...observers, peer];
  if (!observers.length) observers = [peer];
  byId("colluders").value = String(observers.length);
  change();
}

function spread() {
  const count = value("colluders"), all = shown ? shown.peers : value("peers");
  observers = Array.from({ length: Math.min(count, all) }, (_, k) => Math.floor((k * all) / count));
  change();
}

function tellSliders() {
  const told = { peers: value("peers"), steps: value("steps"), noise: number(noise()), colluders: observers.length,
    delta: "1e" + value("delta") };
  for (const [name, text] of Object.entries(told)) {
    byId(name + "-told").textContent = text;
    byId(name).setAttribute("aria-valuetext", String(text));
  }
}

function change() {
  tellSliders();
  clearTimeout(waiting);
  waiting = setTimeout(question, 40);
}

async function question() {
  if (asked) asked.abort();
  const mine = new AbortController();
  asked = mine;
  const words = new URLSearchParams({ family: byId("family").value, peers: value("peers"), steps: value("steps"), noise: Number(noise().toPrecision(4)),
    observers: observers.join(","), accelerated: byId("accelerated").checked ? 1 : 0, delta: "1e" + value("delta"), level: byId("level").value });
  history.replaceState(null, "", "?" + words);
  byId("experiment").href = "/?" + words;
  byId("copied").textContent = "";
  const began = performance.now();
  try {
    const found = await ask("/api/what-if?" + words, { signal: mine.signal });
    byId("wrong").textContent = "";
    show(found);
    document.body.dataset.answered = String(Math.round(performance.now() - began));
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("wrong").textContent = error.message;
    showNothing();
  }
}

/* A question without an answer: no number of another question stays on the page. */
function showNothing() {
  shown = null;
  drawn = "";
  for (const name of ["sentence", "told"]) byId(name).textContent = "";
  for (const part of document.querySelectorAll(".answer, #stages-figure")) part.hidden = true;
}

function show(found) {
  shown = found;
  for (const part of document.querySelectorAll(".answer")) part.hidden = false;
  observers = found.observers;
  tellSliders();
  byId("peers-told").textContent = found.peers === value("peers") ? found.peers : `${found.peers} (the nearest this graph has)`;
  if (drawn !== found.graph) {
    map.show(found.places, found.edges, found.picture);
    byId("drawn-how").textContent = found.picture.sentence;
    drawn = found.graph;
  }
  byId("accelerated").disabled = found.changing;
  byId("stages-figure").hidden = !found.picture.stages;
  if (found.picture.stages) drawStages(byId("stages"), found.picture.stages, found.observers[0]);
  map.color(found.losses.map((loss) => (loss === null ? null : shadeOf(loss, LOWEST, 1))), found.observers, found.computable);
  byId("sentence").textContent = found.sentence;
  const others = found.peers - found.observers.length;
  const worst = found.by_distance.map((row) => row.epsilon);
  byId("tile-known").textContent = `${found.computable.length} of ${others}`;
  byId("tile-worst").textContent = others ? number(worst.includes(null) ? null : Math.max(...worst)) : "none";
  byId("tile-error").textContent = number(found.error);
  byId("tile-local").textContent = number(found.error_of_local_dp);
  draw(byId("distance-chart"), { x: "distance in links", y: "loss in local-DP units", factors: true, span: [0, Math.max(1, ...found.by_distance.map((row) => row.distance))], series: [
    { name: "worst", dots: true, points: found.by_distance.map((row) => [row.distance, row.worst]) },
    { name: "mean", dots: true, points: found.by_distance.map((row) => [row.distance, row.mean]) }] });
  byId("distances").replaceChildren(...found.by_distance.map((row) => element("tr", {},
    element("th", { scope: "row" }, row.distance < 0 ? "not reached" : row.distance), element("td", { class: "number" }, row.peers),
    element("td", { class: "number" }, number(row.mean)), element("td", { class: "number" }, number(row.worst)),
    element("td", { class: "number" }, number(row.epsilon)))));
}

for (const name of ["peers", "steps", "noise", "delta"]) byId(name).addEventListener("input", change);
for (const name of ["family", "accelerated", "level"]) byId(name).addEventListener("change", change);
byId("colluders").addEventListener("input", spread);
byId("question").addEventListener("submit", (event) => event.preventDefault());
/* The question in the address, if there is one; what it does not say stays as it is. */
function restore() {
  const words = new URLSearchParams(location.search);
  const set = (name, text) => { if (text !== null && Number.isFinite(Number(text))) byId(name).value = String(text); };
  if (words.has("family")) byId("family").value = words.get("family");
  if (words.get("level") === "record") byId("level").value = "record";
  if (!byId("family").value) byId("family").selectedIndex = 0;
  set("peers", words.get("peers"));
  set("steps", words.get("steps"));
  const size = Number(words.get("noise"));
  if (words.has("noise") && size >= 0) set("noise", size === 0 ? -41 : Math.round(20 * Math.log10(size)));
  if (words.has("delta") && Number(words.get("delta")) > 0) set("delta", Math.round(Math.log10(Number(words.get("delta")))));
  byId("accelerated").checked = words.get("accelerated") === "1";
  const who = (words.get("observers") || "").split(",").filter((part) => /^\d+$/.test(part)).map(Number);
  if (who.length) observers = [...new Set(who)];
  byId("colluders").value = String(observers.length);
}

byId("copy").addEventListener("click", async () => {
  try { await navigator.clipboard.writeText(location.href); byId("copied").textContent = "copied"; }
  catch { byId("copied").textContent = "copy it from the address bar"; }
});
ask("/api/families").then((families) => {
  byId("family").replaceChildren(...families.map((name) => element("option", { value: name }, name)));
  restore();
  change();
}).catch((error) => { byId("wrong").textContent = error.message; });
