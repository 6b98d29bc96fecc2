"""Private ADMM: a token's proximal steps compiled against a numpy loop, and all peers' at once
against one by one."""

from __future__ import annotations

import numpy as np

import bruit as br
from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.arrays import Array, Ints
from bruit.graphs import complete
from bruit.tasks import Logistic, Records, Ridge

PEERS, RECORDS, COLUMNS, GAMMA = 2000, 8, 8, 0.5
NOISE = br.Gaussian(clip=1.0, sigma=1.0)


def task_of(kind: type[Ridge] | type[Logistic]) -> Ridge | Logistic:
    rng = np.random.default_rng(0)
    features, targets = (
        rng.normal(size=(PEERS * RECORDS, COLUMNS)),
        rng.normal(size=PEERS * RECORDS),
    )
    labels = targets if kind is Ridge else np.sign(targets)
    return kind(Records.of(features, labels, np.repeat(np.arange(PEERS), RECORDS), rows="unit"))


def point(task: Ridge | Logistic, features: Array, targets: Array, w: Array) -> Array:
    """A proximal point as one writes it first: normal equations, or Newton with a full Hessian."""
    m, eye = len(targets), np.eye(len(w))
    if isinstance(task, Ridge):
        solved = np.linalg.solve(
            features.T @ features / m + eye / GAMMA, features.T @ targets / m + w / GAMMA
        )
        return np.asarray(solved, np.float64)
    x = w.copy()
    while True:
        pulls = 1 / (1 + np.exp(targets * (features @ x)))
        gradient = -(targets * pulls) @ features / m + (x - w) / GAMMA
        if gradient @ gradient < 1e-20:
            return x
        hessian = (features.T * (pulls * (1 - pulls))) @ features / m + eye / GAMMA
        x -= np.linalg.solve(hessian, gradient)


def numpy_loop(task: Ridge | Logistic, path: Ints) -> Array:
    """The walk, hop by hop, with noise from PCG64."""
    block, rng = task.records.blocks[0], np.random.default_rng(0)
    u, zhat = np.zeros((PEERS, COLUMNS)), np.zeros(COLUMNS)
    for v in path:
        w = 2 * zhat - u[v]
        slope = (w - point(task, block.features[v], block.targets[v], w)) / GAMMA
        slope *= min(1.0, NOISE.clip / np.sqrt(slope @ slope))
        change = zhat - u[v] - GAMMA * (slope + NOISE.sigma * rng.standard_normal(COLUMNS))
        u[v] += change
        zhat = zhat + change / PEERS
    return zhat


def one_by_one(task: Ridge | Logistic, rows: Array) -> None:
    block = task.records.blocks[0]
    for v in range(PEERS):
        point(task, block.features[v], block.targets[v], rows[v])


def compare(answer: Answer, kind: type[Ridge] | type[Logistic], hops: int) -> None:
    """Adds the rows of one task: the walk, and one round of all peers, as federated ADMM takes
    it."""
    task, graph, name = task_of(kind), complete(PEERS), kind.__name__.lower()
    few, path = hops // 20, np.random.default_rng(1).integers(PEERS, size=hops // 20)
    rows = np.random.default_rng(2).normal(size=(PEERS, COLUMNS))

    def run(engine: br.Bulk, steps: int) -> br.Run:
        return br.run(
            br.WalkADMM(gamma=GAMMA),
            graph,
            task,
            privacy=NOISE,
            steps=steps,
            evaluate_every=0,
            engine=engine,
        )

    seconds = interleaved(
        {
            "loop": lambda: numpy_loop(task, path),
            "generic": lambda: run(br.Bulk(), few // 5),
            "fused": lambda: run(br.Bulk(fused=True), hops),
            "each": lambda: one_by_one(task, rows),
            "all": lambda: task.prox(np.arange(PEERS), rows, GAMMA),
        }
    )
    cost = {"loop": few, "generic": few // 5, "fused": hops, "each": PEERS, "all": PEERS}
    labels = {
        "loop": "walk, numpy loop, PCG64 noise",
        "generic": "walk, br.run, generic",
        "fused": "walk, br.run, fused",
        "each": "proximal points, peer by peer",
        "all": "proximal points, all peers at once",
    }
    for key, label in labels.items():
        answer.add(f"{name}: {label}", seconds[key] / cost[key] * 1e6, "CPU us a step")
    ratio = seconds["loop"] / few / (seconds["fused"] / hops)
    together = seconds["each"] / seconds["all"]
    answer.goals.append(
        Goal(f"{name}: fused walk, times faster than the numpy loop", ratio, 20, at_least=True)
    )
    answer.goals.append(
        Goal(f"{name}: all peers at once, times faster than one by one", together, 3, at_least=True)
    )


def measure(quick: bool = False) -> Answer:
    answer = Answer(
        f"how fast is private ADMM? {PEERS} peers of {RECORDS} records, {COLUMNS} columns", quick
    )
    for kind in (Ridge, Logistic):
        compare(answer, kind, 2000 if quick else 20_000)
    return answer


if __name__ == "__main__":
    main(measure)
