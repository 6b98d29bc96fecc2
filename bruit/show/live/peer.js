/* What the operator of one real peer may see, twice a second. */

import { ask, byId, element, number } from "/assets/server.js";

const STATES = {
  waiting: "This peer has told nothing yet: start it with `bruit peer run`.",
  gathering: "This peer waits for its neighbors; nothing is released before they are there.",
  running: "This peer is running.",
  quiet: "This peer has not told anything for a while: it does not run, or hangs.",
  stopped: "This peer was stopped before the end; start it again and it goes on.",
  failed: "This peer has ended, and not as asked:",
  done: "The experiment has ended for this peer.",
};
const NAMES = { sent: "messages sent", unconfirmed: "messages nobody confirmed", skipped: "calls of its clock that did not happen", meetings: "meetings", bytes_sent: "bytes sent", bytes_received: "bytes received",
  missed: "went on without somebody", left_over: "of these never made up for", silent_releases: "releases of noise alone", releases: "releases of its data", releases_planned: "releases that its noise is made for",
  releases_sure: "probability that these are enough", budget_agreed: "epsilon that was agreed on", run: "run" };

function put(target, text) { if (target.textContent !== text) target.textContent = text; }

function tiles(found) {
  const shown = [[number(found.epsilon), `epsilon spent, against everybody (delta ${number(found.delta)})`]];
  shown.push(found.budget === null ? ["none", "budget of its own"] : [number(found.budget_left), `left of a budget of ${number(found.budget)}`]);
  shown.push([String(found.missed), "times it went on without somebody"]);
  const refused = Object.values(found.refused || {}).reduce((sum, one) => sum + one, 0);
  shown.push([String(refused), "refused"]);
  byId("tiles").replaceChildren(...shown.map(([value, text]) => element("li", {}, element("strong", {}, value), " ", element("span", {}, text))));
}

function rows(found) {
  const listed = Object.entries(NAMES).filter(([key]) => found[key] !== undefined && found[key] !== null).map(([key, name]) => [name, found[key]]);
  for (const [kind, count] of Object.entries(found.refused || {})) listed.push(["refused: " + kind, count]);
  for (const [name, value] of Object.entries(found.metrics || {})) listed.push([name + " of its model", typeof value === "number" ? number(value) : value]);
  byId("numbers").replaceChildren(...listed.map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "number" }, value))));
}

async function look() {
  try {
    const found = await ask("/api/peer");
    put(byId("wrong"), "");
    put(byId("who"), `Peer ${found.peer}: ${found.name}`);
    put(byId("state"), [STATES[found.state] || found.state, ...(found.problems || [])].join(" "));
    byId("others").replaceChildren(...found.others.map((one) => element("li", {}, `peer ${one.peer}: ${one.name}`)));
    if (found.step !== undefined) {
      byId("progress").hidden = false;
      byId("progress").max = Math.max(1, found.steps);
      byId("progress").value = found.step;
      put(byId("progress-told"), `step ${found.step} of ${found.steps}`);
      put(byId("connected"), found.state === "running" ? `${found.connected} of ${found.neighbors} neighbors are connected.`
        : found.state === "gathering" ? `${found.connected} of ${found.neighbors} neighbors are connected; waiting for ${(found.waiting_for || []).join(", ") || "peers further away"}.`
        : found.state === "quiet" ? `${found.neighbors} neighbors; ${found.connected} were connected when it last told.`
          : `${found.neighbors} neighbors; it does not run, so nobody is connected.`);
      tiles(found);
      rows(found);
    }
  } catch (error) {
    put(byId("wrong"), error.message);
  }
  setTimeout(look, document.hidden ? 5000 : 500);
}

look();
