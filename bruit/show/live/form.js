/* The form that starts a run: fields made of the schema, the text they make, and what is wrong with it. */

import { ask, byId, element, post } from "/assets/server.js";

const TITLES = { top: "Who talks to whom, and how long", task: "What the peers hold and want", algorithm: "Algorithm",
  privacy: "Noise", engine: "Network" };
const USUAL = new Set(["graph", "steps", "seed", "kind", "data", "split", "mechanism", "clip", "sigma", "epsilon", "delta", "components",
  "level", "sample_rate", "adjacency"]);
const OPEN = new Set(["top", "task", "algorithm", "privacy"]);
let schema = null, pending = 0, checks = 0;
const inputs = new Map(); // "privacy.sigma" -> input

function input(key, field) {
  const id = "field-" + key.replaceAll(".", "-");
  const words = { id, "aria-describedby": (field.help ? id + "-help " : "") + id + "-wrong" };
  let made;
  const choices = field.kind === "boolean" ? ["true", "false"] : field.choices;
  if (choices) {
    made = element("select", words, field.needed ? null : element("option", { value: "" }, standard(field)),
      ...choices.map((one) => element("option", { value: one }, one)));
  } else {
    const numeric = field.kind === "number" || field.kind === "integer";
    made = element("input", { ...words, type: "text", autocomplete: "off", spellcheck: "false",
      inputmode: numeric ? "decimal" : null, placeholder: field.needed ? "needed" : standard(field) });
    if (key === "graph") made.setAttribute("list", "graphs");
  }
  made.field = field;
  made.addEventListener("input", write);
  inputs.set(key, made);
  return element("div", { class: "field" }, element("label", { for: id }, field.name.replaceAll("_", " ")), made,
    field.help ? element("p", { class: "help", id: id + "-help" }, field.help) : null,
    element("p", { class: "wrong", id: id + "-wrong" }));
}

function standard(field) {
  if (field.default === null || field.default === undefined || (Array.isArray(field.default) && !field.default.length)) return "not set";
  return String(field.default);
}

function section(name, fields) {
  const prefix = name === "top" ? "" : name + ".";
  const made = (wanted) => fields.filter((field) => wanted === (field.needed || USUAL.has(field.name) || name === "engine"))
    .map((field) => input(prefix + field.name, field));
  const rare = element("div", { class: "fields" }, ...made(false));
  return element("details", { open: OPEN.has(name), id: "section-" + name }, element("summary", {}, TITLES[name]),
    element("div", { class: "fields" }, ...made(true)),
    rare.childElementCount ? element("details", { class: "rare" }, element("summary", {}, "more"), rare) : null);
}

function parameters(name) {
  for (const key of [...inputs.keys()]) {
    if (key.startsWith("algorithm.") && key !== "algorithm.name") inputs.delete(key);
  }
  byId("algorithm-about").textContent = schema.about[name] || "";
  byId("parameters").replaceChildren(...(schema.algorithms[name] || []).map((field) => input("algorithm." + field.name, field)));
}

/* Fields to text */
function word(text, kind) {
  const value = text.trim();
  if (kind === "array") {
    const parts = value.replace(/^\[|\]$/g, "").split(",").map((part) => part.trim().replace(/^"|"$/g, "")).filter(Boolean);
    return "[" + parts.map((part) => (/^\d+$/.test(part) ? part : JSON.stringify(part))).join(", ") + "]";
  }
  if (kind === "boolean") return value;
  if ((kind === "number" || kind === "integer") && value !== "" && Number.isFinite(Number(value))) {
    const plain = String(Number(value));
    return kind === "number" && /^-?\d+$/.test(plain) ? plain + ".0" : plain;
  }
  return JSON.stringify(value);
}

function write() {
  if (this === inputs.get("algorithm.name")) parameters(this.value);
  const parts = { "": [], task: [], algorithm: [], privacy: [], engine: [] };
  for (const [key, made] of inputs) {
    const [name, last] = key.includes(".") ? key.split(".") : ["", key];
    if (made.value.trim() !== "") parts[name].push(`${last} = ${word(made.value, made.field.kind)}`);
  }
  if (!byId("noisy").checked) parts.privacy = [];
  const text = [parts[""].join("\n")];
  for (const name of ["task", "algorithm", "privacy", "engine"]) {
    const wanted = parts[name].length || name === "task" || name === "algorithm" || (name === "privacy" && byId("noisy").checked);
    if (wanted) text.push([`[${name}]`, ...parts[name]].join("\n"));
  }
  byId("experiment").value = text.join("\n\n") + "\n";
  checkSoon(false);
}

/* Text to fields */
function spell(value) {
  if (typeof value === "number" && value !== 0 && Math.abs(value) < 1e-3) return value.toExponential();
  return Array.isArray(value) ? value.join(", ") : String(value);
}

function fill(values) {
  const algorithm = (values.algorithm || {}).name || "";
  inputs.get("algorithm.name").value = algorithm in schema.algorithms ? algorithm : "";
  parameters(algorithm);
  byId("noisy").checked = "privacy" in values;
  showNoise();
  for (const [key, made] of inputs) {
    const [name, last] = key.includes(".") ? key.split(".") : ["", key];
    const value = name ? (values[name] || {})[last] : values[last];
    if (value !== undefined && made.closest(".rare")) made.closest(".rare").open = true;
    made.value = value === undefined || (value !== null && typeof value === "object" && !Array.isArray(value)) ? "" : spell(value);
  }
}

function showNoise() {
  for (const part of byId("section-privacy").querySelectorAll(":scope > .fields, :scope > .rare")) part.hidden = !byId("noisy").checked;
}

function tellProblems(problems) {
  for (const made of inputs.values()) {
    made.removeAttribute("aria-invalid");
    byId(made.id + "-wrong").textContent = "";
  }
  const elsewhere = [];
  for (const one of problems) {
    const made = inputs.get(one.key);
    if (made) {
      made.setAttribute("aria-invalid", "true");
      byId(made.id + "-wrong").textContent = one.text;
      for (let at = made.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    }
    elsewhere.push((one.line ? `line ${one.line}: ` : "") + one.text);
  }
  if (elsewhere.length) byId("change").open = true;
  byId("wrong").textContent = elsewhere.join("\n");
  byId("experiment").toggleAttribute("aria-invalid", elsewhere.length > 0);
}

/* Until the fields hold what the text says nobody can type there: fields of before would make another text. */
async function check(refill) {
  const mine = ++checks;
  if (refill) byId("fields").inert = true;
  try {
    const found = await post("/api/check", { experiment: byId("experiment").value });
    if (mine !== checks) return found.problems.length === 0; // a later question is under way
    if (refill && Object.keys(found.values).length) fill(found.values);
    tellProblems(found.problems);
    return found.problems.length === 0;
  } catch (error) {
    byId("wrong").textContent = error.message;
    return false;
  } finally {
    if (mine === checks) byId("fields").inert = false;
  }
}

function checkSoon(refill) {
  clearTimeout(pending);
  pending = setTimeout(() => check(refill), 250);
}

export function fresh(taken) {
  const used = new Set(taken.map((one) => one.name));
  const base = byId("example").value || "run";
  let k = 1;
  while (used.has(`${base}-${k}`)) k += 1;
  byId("name").value = `${base}-${k}`;
}

/* An experiment that comes from elsewhere, to be looked at before it is started. */
export async function offer(text, name, taken) {
  byId("example").value = "";
  byId("experiment").value = text;
  byId("change").open = true;
  const used = new Set(taken.map((one) => one.name)), base = name.replace(/[^A-Za-z0-9_.-]/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(0, 50) || "run";
  let k = 1, free = base;
  while (used.has(free)) free = `${base}-${++k}`;
  byId("name").value = free; // before anything is waited for: text and name change together
  await check(true);
  byId("start").focus();
}

export async function makeForm(started, taken) {
  schema = await ask("/api/form");
  const named = { name: "name", kind: "string", choices: Object.keys(schema.algorithms), needed: true, default: null };
  const algorithm = section("algorithm", [named]);
  algorithm.append(element("p", { class: "help", id: "algorithm-about" }), element("div", { class: "fields", id: "parameters" }));
  const privacy = section("privacy", schema.sections.privacy);
  const noisy = element("input", { type: "checkbox", id: "noisy", checked: true });
  privacy.querySelector("summary").after(element("p", {}, element("label", {}, noisy, " with noise")));
  byId("fields").replaceChildren(section("top", schema.top), section("task", schema.sections.task), algorithm, privacy,
    section("engine", schema.sections.engine));
  byId("graphs").replaceChildren(...Object.entries(schema.graphs).map(([name, about]) =>
    element("option", { value: (about.match(/, as (.*)$/) || [null, name])[1] }, about)));
  const example = byId("example");
  example.replaceChildren(...Object.keys(schema.examples).map((name) => element("option", { value: name }, name)),
    element("option", { value: "" }, "an empty form"));
  const load = async () => {
    byId("experiment").value = schema.examples[example.value] || "";
    fresh(taken());
    if (!example.value) { byId("change").open = true; fill({ privacy: {} }); write(); tellProblems([]); } else await check(true);
  };
  example.addEventListener("change", load);
  noisy.addEventListener("change", () => { showNoise(); write(); });
  byId("experiment").addEventListener("input", () => checkSoon(true));
  byId("start-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(pending);
    if (!(await check(false))) { byId("wrong").focus(); return; }
    try {
      const made = await post("/api/runs", { name: byId("name").value.trim(), experiment: byId("experiment").value });
      started(made.name);
    } catch (error) {
      byId("wrong").textContent = error.message;
      byId("wrong").focus();
    }
  });
  await load(); // what is told after this is not overwritten by it
}
