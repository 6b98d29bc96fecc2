/* What `ask` of the live page answers, looked up in WHAT_IF (website/what_if.py) instead of asked of a server. The one formula is
   epsilon of a Gaussian pair: delta = P(N > e/mu - mu/2) - exp(e) P(N > e/mu + mu/2) = exp(-a^2) (erfcx(a) - erfcx(b)) / 2, with
   a, b = (e/mu -+ mu/2) / sqrt(2), which does not cancel. All is rounded up. */

const ASIDE = 2 ** -30, USUAL = 60, FARTHEST = 1000; // as in bruit/privacy/toolbox/rounding.py

/* exp(x^2) erfc(x): a series of positive terms below 2.5, a continued fraction above. */
function erfcx(x) {
  if (x < 2.5) {
    let term = x, sum = x;
    for (let k = 1; Math.abs(term) > 1e-17 * Math.abs(sum); k++) sum += term *= (2 * x * x) / (2 * k + 1);
    return Math.exp(x * x) - (2 / Math.sqrt(Math.PI)) * sum;
  }
  let below = x;
  for (let k = 120; k >= 1; k--) below = x + k / 2 / below;
  return 1 / (Math.sqrt(Math.PI) * below);
}

function deltaOf(mu, epsilon) {
  const a = (epsilon / mu - mu / 2) / Math.SQRT2, b = (epsilon / mu + mu / 2) / Math.SQRT2;
  return (Math.exp(-a * a) * (erfcx(a) - erfcx(b))) / 2;
}

/* The least epsilon with this delta, in real numbers; a little too large by the width of the search. */
function epsilonOf(mu, delta) {
  if (!(mu > 0) || deltaOf(mu, 0) <= delta) return 0;
  let low = 0, high = (mu * mu) / 2 + mu * Math.sqrt(-2 * Math.log(delta)) + 1e-9;
  for (let k = 0; k < 200 && high - low > 1e-12 * high; k++) {
    const middle = (low + high) / 2;
    if (deltaOf(mu, middle) > delta) low = middle; else high = middle;
  }
  return high * (1 + 1e-9);
}

/* The same for the bits that are sent (fp:FP-0). */
function sentEpsilon(mu, rounding, delta) {
  for (let reach = USUAL; ;) {
    const beta = Math.log(delta) + Math.log(ASIDE) - reach - 4, gamma = rounding / 2 + Math.sqrt(-2 * rounding * beta);
    if (gamma > 2) return Infinity;
    const found = epsilonOf(mu, delta * (1 - ASIDE) * Math.exp(-gamma));
    if (found > FARTHEST) return Infinity;
    if (found <= reach) return found + 2 * gamma;
    reach = found + 1;
  }
}

function upwards(value) {
  if (!Number.isFinite(value) || value === 0) return value === 0 ? 0 : null;
  const near = Number(value.toPrecision(3));
  return near >= value ? near : Number((near + 10 ** (Math.floor(Math.log10(value)) - 2)).toPrecision(3));
}

/* Links from the nearest observer; -1 where there is no way. */
function linksAway(count, edges, watching) {
  const away = Array(count).fill(-1), near = Array.from({ length: count }, () => []);
  for (const [a, b] of edges) { near[a].push(b); near[b].push(a); }
  const waiting = [...watching];
  for (const one of watching) away[one] = 0;
  for (const one of waiting) for (const next of near[one]) if (away[next] < 0) { away[next] = away[one] + 1; waiting.push(next); }
  return away;
}

const middleOf = (values) => {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
};

function byDistance(others, away, losses, epsilons) {
  return [...new Set(others.map((u) => away[u]))].sort((a, b) => a - b).map((distance) => {
    const here = others.filter((u) => away[u] === distance), costs = here.map((u) => epsilons[u]);
    return { distance, peers: here.length, mean: here.reduce((sum, u) => sum + losses[u], 0) / here.length,
      worst: Math.max(...here.map((u) => losses[u])), epsilon: costs.includes(null) ? null : Math.max(...costs) };
  });
}

function sentenceOf(found, others, number) {
  const costs = others.map((u) => found.epsilons[u] ?? Infinity), worst = others[costs.indexOf(Math.max(...costs))];
  const who = found.observers.length === 1 ? `peer ${found.observers[0]}` : `these ${found.observers.length} peers together`;
  return `Without noise ${who} could compute the values of ${found.computable.length} of ${others.length} others. With this noise the ` +
    `worst pair (peer ${worst}) has epsilon ${number(found.epsilons[worst])}, the typical one ${number(upwards(middleOf(costs)))}, at delta ` +
    `${number(found.delta)}, user level; the mean is off by ${number(found.error)} (values in [0, 1]).`;
}

function answerOf(words) {
  if (words.get("level") === "record") throw new Error(WHAT_IF.records);
  const wanted = Number(words.get("peers")), size = WHAT_IF.sizes.reduce((a, b) => (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a));
  const one = WHAT_IF.known[`${words.get("family")}:${size}`], steps = Number(words.get("steps"));
  const noise = Number(words.get("noise")), delta = Number(words.get("delta")), peers = one.picture.places.length;
  const asked = words.get("observers").split(",").map(Number), count = asked.length;
  const observers = Array.from({ length: count }, (_, k) => Math.floor((k * peers) / count));
  const losses = (one.losses[count - 1] || [])[steps - 1];
  if (!losses || !(noise >= 0.0999)) throw new Error("this page knows 1 to 12 rounds, 1 to 3 peers who look on, and noise of at least 0.1; `bruit ui` answers for more");
  const epsilons = losses.map((loss) => (loss < 0 ? null : loss ? upwards(sentEpsilon(Math.sqrt(loss) / noise, one.rounding, delta)) : 0));
  const others = [...losses.keys()].filter((u) => losses[u] >= 0), away = linksAway(peers, one.edges, observers);
  const [spread, left] = one.errors[steps - 1][words.get("accelerated") === "1" ? 1 : 0];
  const found = { graph: one.graph, peers, edges: one.edges, places: one.picture.places, observers, distances: away,
    picture: { ...one.picture, edges: one.picture.edges === "all" ? one.edges : one.picture.edges },
    losses: losses.map((loss) => (loss < 0 ? null : loss)), epsilons, computable: others.filter((u) => losses[u] === 1),
    by_distance: byDistance(others, away, losses, epsilons), error: Math.sqrt((noise * noise * spread) / peers + left * left / 4),
    error_of_local_dp: noise / Math.sqrt(peers), delta, level: "user", changing: false };
  return { ...found, sentence: sentenceOf(found, others, of_server.number) };
}

of_server.ask = async (address) => {
  if (address === "/api/families") return WHAT_IF.families;
  const words = new URLSearchParams(address.split("?")[1]), found = answerOf(words);
  const worst = found.losses.indexOf(Math.max(...found.losses));
  of_server.byId("command").textContent = `bruit epsilon --graph ${found.graph} --steps ${words.get("steps")} --sigma ${words.get("noise")} ` +
    `--of ${worst} --seen-by ${found.observers.join(",")} --delta ${words.get("delta")}`;
  return found;
};
