/* The first page: start a run, and find one again. */

import { makeForm, offer } from "/assets/form.js";
import { listRuns, prepareList } from "/assets/runs.js";
import { ask, byId } from "/assets/server.js";

/* An experiment that another page sent here: a what-if question, or the file of an earlier run. */
async function sentHere() {
  const words = new URLSearchParams(location.search);
  if (words.has("again")) {
    const found = await ask(`/api/runs/${encodeURIComponent(words.get("again"))}`);
    if (!found.experiment) throw new Error(`the run ${words.get("again")} was made in Python and holds no experiment file`);
    return { text: found.experiment, name: words.get("again") };
  }
  if (!words.has("family")) return null;
  const found = await ask("/api/what-if/experiment?" + words);
  return { text: found.experiment, name: "what-if-" + words.get("family") };
}

async function begin() {
  prepareList();
  const found = await listRuns();
  byId("welcome").hidden = found.some((one) => one.state !== "broken");
  await makeForm((name) => { location.assign("/runs/" + encodeURIComponent(name)); }, () => found);
  const sent = await sentHere();
  if (sent) await offer(sent.text, sent.name, found);
}

begin().catch((error) => { byId("wrong").textContent = error.message; });
