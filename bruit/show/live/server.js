/* Talking to the page's own server, and making elements whose content is text, never markup. */

export async function ask(address, options = {}) {
  let response;
  try {
    response = await fetch(address, { headers: { "X-Bruit": "1", "Content-Type": "application/json" }, ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server does not answer; is `bruit ui` still running?");
  }
  const told = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error; // called off while the answer came in: that is no empty answer
    return {};
  });
  if (!response.ok) throw new Error(told.error || "the server answered " + response.status);
  return told;
}

export const post = (address, content) => ask(address, { method: "POST", body: JSON.stringify(content) });

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return made;
}

export const byId = (name) => document.getElementById(name);

export function number(value) {
  if (value === null || value === undefined) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e5) return String(value.toExponential(1)).replace(".0e", "e").replace("e+", "e");
  return String(Number(value.toPrecision(3)));
}

/* A score that is no finite number comes as null. */
export const scored = (value) => (Number.isFinite(value) ? number(value) : "not a number");

export function seconds(count) {
  if (!Number.isFinite(count)) return "";
  if (count < 90) return Math.max(1, Math.round(count)) + " s";
  return count < 5400 ? Math.round(count / 60) + " min" : (count / 3600).toFixed(1) + " h";
}
