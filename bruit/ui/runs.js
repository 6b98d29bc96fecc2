/* The list of runs: what is saved, what goes on, what is broken. */

import { ask, byId, element } from "/assets/server.js";

const WORDS = { saved: "saved", running: "running", failed: "failed", stopped: "stopped", broken: "broken" };

function row(one, watch) {
  const where = encodeURIComponent(one.name);
  const about = one.state === "saved" ? `${one.algorithm} on ${one.graph}, ${one.peers} peers, ${one.steps} steps` : one.reason || "";
  let action = null;
  if (one.state === "saved") action = element("a", { href: `/runs/${where}/report`, target: "_blank", rel: "noopener" }, "report of " + one.name);
  else if (one.state !== "broken") {
    action = element("button", { type: "button" }, (one.state === "running" ? "watch " : "look at ") + one.name);
    action.addEventListener("click", () => watch(one.name));
  }
  return element("tr", {}, element("th", { scope: "row" }, one.name),
    element("td", {}, element("span", { class: "badge " + one.state }, WORDS[one.state] || one.state)),
    element("td", {}, about), element("td", {}, action));
}

export async function listRuns(watch) {
  const rows = byId("runs"), none = byId("no-runs");
  try {
    const found = await ask("/api/runs");
    rows.replaceChildren(...found.map((one) => row(one, watch)));
    byId("runs-table").hidden = !found.length;
    none.hidden = found.length > 0;
    none.textContent = "There is no run in this folder yet: start one below.";
    return found;
  } catch (error) {
    none.hidden = false;
    none.textContent = error.message;
    return [];
  }
}
