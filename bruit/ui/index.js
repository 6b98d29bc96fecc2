import { fresh, makeForm } from "/assets/form.js";
import { follow, prepareLive } from "/assets/live.js";
import { listRuns } from "/assets/runs.js";
import { byId } from "/assets/server.js";

let found = [];

async function refresh() {
  found = await listRuns(watch);
}

function watch(name) {
  follow(name, async (_, event) => {
    if (event.event === "failed") byId("wrong").textContent = event.reason;
    await refresh();
    fresh(found);
  });
  byId("live-title").focus();
}

prepareLive();
refresh().then(() => makeForm(async (name) => {
  byId("wrong").textContent = "";
  watch(name);
  await refresh();
}, () => found)).catch((error) => { byId("wrong").textContent = error.message; });
byId("refresh").addEventListener("click", refresh);
