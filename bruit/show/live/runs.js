/* The list of runs as a tracker: scores beside staying alone, epsilons, dates; sorted, searched, compared. */

import { ask, byId, element, number } from "/assets/server.js";

const LARGEST = 512; // peers up to which epsilons are accounted for without being asked
const chosen = new Set();
let rows = [], order = { key: "date", down: true };

const address = (one) => "/runs/" + encodeURIComponent(one.name);

function when(date) {
  if (!date) return "";
  const at = new Date(date);
  return element("time", { datetime: date }, at.toLocaleString([], { dateStyle: "short", timeStyle: "short" }));
}

function what(one) {
  if (one.reason) return one.reason;
  return one.algorithm ? `${one.algorithm} on ${one.graph}, ${one.peers} peers, ${one.steps} steps` + (one.noisy ? "" : ", no noise") : "";
}

function epsilon(one, which) {
  if (one.state === "broken" || !one.algorithm) return "";
  if (!one.noisy) return "no noise";
  if (!one.privacy) {
    if (one.peers <= LARGEST || which === "typical") return "…";
    const button = element("button", { type: "button" }, "account");
    button.addEventListener("click", () => { button.disabled = true; account(one); });
    return button;
  }
  const told = one.privacy[which];
  const about = `delta ${number(one.privacy.delta)}, ${one.privacy.protects}, ${one.privacy.status_in_words}`;
  return element("span", { title: about }, number(told.epsilon));
}

function score(one, key) {
  if (key === "score" && one.score === null && one.metric) return `${one.metric} is not a number`;
  if (one[key] === null || one[key] === undefined) return "";
  const shown = element("span", {}, one[key].toFixed(4));
  if (key === "score" && one.verdict) shown.append(element("span", { class: one.verdict.worse ? "worse" : "better",
    title: one.verdict.in_words }, one.verdict.worse ? " ▼" : " ▲"), element("span", { class: "hide" }, " " + one.verdict.in_words));
  return key === "score" && one.metric !== "accuracy" ? element("span", {}, shown, element("span", { class: "soft" }, " " + one.metric)) : shown;
}

function row(one) {
  const known = one.state === "saved" || one.state === "interrupted";
  const pick = element("input", { type: "checkbox", "aria-label": "choose " + one.name });
  pick.checked = chosen.has(one.name);
  pick.addEventListener("change", () => { pick.checked ? chosen.add(one.name) : chosen.delete(one.name); tellChosen(); });
  const name = one.state === "broken" ? one.name : element("a", { href: address(one) }, one.name);
  const badge = one.state === "saved" ? null : element("span", { class: "badge " + one.state }, one.state);
  const cell = (label, content, kind = "number") => element("td", { class: kind, "data-label": label }, content || null);
  return element("tr", {}, element("td", { class: "pick" }, known ? pick : null),
    element("th", { scope: "row" }, name, badge ? " " : null, badge),
    cell("score", score(one, "score")), cell("alone", score(one, "alone")), cell("all in one place", score(one, "central")),
    cell("epsilon, worst pair", epsilon(one, "worst")), cell("typical", epsilon(one, "typical")),
    cell("when", when(one.date), "when"), cell("what", what(one), "what"));
}

function tellChosen() {
  byId("compare").disabled = chosen.size < 2;
  byId("chosen").textContent = chosen.size ? `${chosen.size} chosen` : "";
}

function value(one, key) {
  if (key === "what") return what(one);
  if (key === "worst" || key === "typical") {
    if (one.noisy === false) return Infinity;
    return one.privacy ? one.privacy[key].epsilon ?? Infinity : undefined;
  }
  return one[key] ?? undefined;
}

/* What has no value comes last, whichever way it is sorted. */
function sorted() {
  const way = order.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a, order.key), value(b, order.key)];
    if (a.state === "running" || b.state === "running") return (b.state === "running") - (a.state === "running");
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return way * (x < y ? -1 : x > y ? 1 : 0);
  });
}

function show() {
  const wanted = byId("find").value.trim().toLowerCase();
  const shown = sorted().filter((one) => !wanted || (one.name + " " + what(one)).toLowerCase().includes(wanted));
  byId("runs").replaceChildren(...shown.map(row));
  byId("runs-table").hidden = !rows.length;
  byId("no-runs").hidden = shown.length > 0;
  byId("no-runs").textContent = rows.length ? `No run has “${wanted}” in it.` : "There is no run in this folder yet.";
  for (const button of document.querySelectorAll("button.sort")) {
    const mine = button.dataset.key === order.key;
    button.closest("th").setAttribute("aria-sort", mine ? (order.down ? "descending" : "ascending") : "none");
  }
}

async function account(one) {
  try {
    one.privacy = (await ask(`/api/runs/${encodeURIComponent(one.name)}/summary`)).privacy;
  } catch (error) {
    one.state = "broken";
    one.reason = error.message;
  }
  show();
}

export async function listRuns() {
  try {
    rows = await ask("/api/runs");
    for (const name of [...chosen]) if (!rows.some((one) => one.name === name)) chosen.delete(name);
    tellChosen();
    show();
    countUp();
    return rows;
  } catch (error) {
    byId("no-runs").hidden = false;
    byId("no-runs").textContent = error.message;
    return [];
  }
}

async function countUp() {
  for (const one of rows.filter((one) => one.noisy && one.peers <= LARGEST)) await account(one);
  document.body.dataset.accounted = "1";
}

export function prepareList() {
  for (const button of document.querySelectorAll("button.sort")) {
    button.addEventListener("click", () => {
      order = { key: button.dataset.key, down: order.key === button.dataset.key ? !order.down : button.dataset.key === "date" };
      show();
    });
  }
  byId("find").addEventListener("input", show);
  byId("refresh").addEventListener("click", listRuns);
  byId("compare").addEventListener("click", () => {
    location.assign("/compare?" + new URLSearchParams([...chosen].map((name) => ["run", name])));
  });
}
