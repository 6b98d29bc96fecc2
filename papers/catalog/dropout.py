"""Thesis, Figure C.5 and Table C.2: averaging when peers come and go (gossip:EXP-16)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bruit.arrays import Array, Bools, Ints
from papers.figures.sections import Cell
from papers.reproduce.drawing import curves
from papers.reproduce.figure import Check, Figure, Finding

SOURCE = {0.0: 1.7e-2, 0.1: 1.8e-2, 0.5: 1.5e-2, 0.9: 1.4e-2}  # +- 0.6e-2 to 0.7e-2
PEERS, CHANCE, MOST = 1000, 0.002, 4000


@dataclass(frozen=True)
class Averaging:
    """One averaging among peers who come and go."""

    steps: int
    loss: float  # printed, of peer 0, mean over observers
    spread: Array  # variance around the noisy mean, step by step


def present_links(n: int, present: Bools, rng: np.random.Generator) -> Ints:
    """The links of one step: Erdos-Renyi among whoever is there  # (links, 2)."""
    there = np.flatnonzero(present)
    count = rng.binomial(len(there) * (len(there) - 1) // 2, CHANCE * PEERS / n)
    pairs = rng.integers(0, max(len(there), 1), (2 * count + 8, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return np.asarray(there[rng.permutation(pairs)[:count]], np.int64)


def step_weights(n: int, links: Ints) -> sparse.csr_array:
    """W of one step, 1 / (1 + the larger degree) on links, the rest on oneself."""
    degrees = np.bincount(links.ravel(), minlength=n)
    values = 1.0 / (1.0 + degrees[links].max(axis=1)) if len(links) else np.zeros(0)
    a, b = (links[:, 0], links[:, 1]) if len(links) else (np.zeros(0, int), np.zeros(0, int))
    own = 1.0 - np.bincount(np.concatenate((a, b)), np.concatenate((values, values)), n)
    rows = np.concatenate((a, b, np.arange(n)))
    columns = np.concatenate((b, a, np.arange(n)))
    return sparse.csr_array((np.concatenate((values, values, own)), (rows, columns)), (n, n))


def averaging(n: int, dropout: float, seed: int) -> Averaging:
    """Gossip of noisy values until they agree up to the error of the noisy mean.

    The printed loss of a message (W^t x)_w is M_wu^2 / |M_w|^2 with M = W_t ... W_1, in local-DP
    units; the source omits the messages of the first step. NOT A GUARANTEE: messages share noise.
    """
    rng = np.random.default_rng([seed, round(100 * dropout)])
    values = rng.random(n)
    noisy = values + rng.normal(size=n)
    limit = max(3 * (noisy.mean() - values.mean()) ** 2, 3 / (12 * n))
    mixed, loss = np.eye(n), np.zeros(n)
    spread = [float(noisy.var())]
    while spread[-1] > limit and len(spread) <= MOST:
        links = present_links(n, rng.random(n) >= dropout, rng)
        if len(spread) > 1:
            seen = mixed[:, 0] ** 2 / (mixed**2).sum(axis=1)
            np.add.at(loss, links[:, 0], seen[links[:, 1]])
            np.add.at(loss, links[:, 1], seen[links[:, 0]])
        mixed = step_weights(n, links) @ mixed
        spread.append(float((mixed @ noisy).var()))
    return Averaging(len(spread) - 1, float(loss[1:].mean()), np.array(spread))


def who_comes_and_goes(quick: bool) -> Finding:
    """Figure C.5 and Table C.2."""
    n, seeds = (200, 2) if quick else (PEERS, 10)
    rows: list[tuple[Cell, ...]] = []
    lines = {}
    ratios, steps = [], []
    for dropout, printed in SOURCE.items():
        runs = [averaging(n, dropout, seed) for seed in range(seeds)]
        losses = np.array([one.loss for one in runs])
        steps.append(float(np.mean([one.steps for one in runs])))
        ratios.append(float(losses.mean()) / printed)
        rows.append((dropout, printed, float(losses.mean()), float(losses.std()), steps[-1]))
        lines[f"dropout {dropout:g}"] = (np.arange(len(runs[0].spread)), runs[0].spread)
    return Finding(
        header=("dropout", "loss, source", "printed loss", "deviation", "steps"),
        rows=rows,
        checks=(
            Check(
                "the four losses are the source's within a factor of 1.6",
                max(max(ratios), 1 / min(ratios)) <= 1.6,
                too_small=quick,
            ),
            Check("the more drop out, the more steps", steps == sorted(steps)),
        ),
        draw=curves(lines, "steps", "variance around the noisy mean", log="xy"),
        settings={"peers": n, "links": f"fresh, chance {CHANCE * PEERS / n:g}", "runs": seeds},
        words="losses by the printed formula, which is no guarantee: messages share their noise",
    )


FIGURES = (
    Figure(
        id="th-C.5",
        also=("th-C.5a", "th-C.5b", "th-tC.2"),
        title="Averaging among peers who come and go",
        number="Figure C.5 and Table C.2",
        page="p. 166",
        repeat=who_comes_and_goes,
        criterion="losses within a factor of 1.6; steps grow with dropout",
        cpu_s=115,
        theory=("gossip:EXP-16",),
    ),
)
