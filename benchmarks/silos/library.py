"""One split of the four hospitals through the library itself: `python -m benchmarks.silos library`.

The tables are made by many splits and draws at once, in plain floats (bruit.planning.silos.descent).
Here `masked-sgd` runs on the same patients with the same settings: masks, integers, discrete noise,
ballots and its own account of epsilon. Without noise the two models must be equal up to the grain;
with noise their accuracies must have the same mean, within 3 standard errors (deviations here are
over draws of noise).
"""

from __future__ import annotations

import math

import numpy as np

import bruit as br
from benchmarks.silos.heart import ADJACENCIES, DELTA, EPSILONS, trained
from benchmarks.silos.tables import Measured, measured
from bruit.arrays import Array
from bruit.mechanisms import RecordSums
from bruit.planning.silos.compared import SiloOption
from bruit.planning.silos.plan import plan_silos
from bruit.planning.silos.question import SilosQuestion
from bruit.planning.silos.trial import Tried
from bruit.privacy.events import Adjacency
from bruit.tasks.logistic import Logistic
from bruit.tasks.records import Records
from bruit.tasks.scores.own_scores import score_for


def run(splits: int = 1, draws: int = 40) -> list[Measured]:
    """Both ways, for every budget; `draws` runs of the library, ten times as many of the other."""
    rows: list[Measured] = []
    for seed in range(1, splits + 1):
        task = Logistic.load(
            "heart_disease",
            split="owner",
            test=0.0,
            rows="none",
            columns_file="heart_disease",
            own_test=1 / 3,
            seed=seed,
        )
        rows += [
            row
            for epsilon in EPSILONS
            for adjacency in ADJACENCIES
            for row in _both(task, epsilon, adjacency, draws)
        ]
    return rows


def _both(task: Logistic, epsilon: float, adjacency: Adjacency, draws: int) -> list[Measured]:
    held = tuple(task.records.sizes.tolist())
    question = SilosQuestion(
        records=held,
        dim=task.dim,
        epsilon=epsilon,
        delta=DELTA,
        adjacency=adjacency,
    )
    option = plan_silos(question).option("masked")
    setting = Tried(
        steps=option.steps, clip=option.clip, rate=option.rate, level=option.noise / option.clip
    )
    features, labels = _rows(task.records)
    many = trained(features, labels, setting, 10 * draws, np.random.default_rng(3))[0]
    plain = _accuracies(task, many)
    runs = [
        _run(task, option.noise_multiplier * option.clip, option, adjacency, s)
        for s in range(draws)
    ]
    real = np.array([_accuracies(task, one.estimates[:1])[0] for one in runs])
    spent = float(runs[0].epsilon(of=0, seen_by=1, delta=DELTA))
    silent = _run(task, 0.0, option, adjacency, 0).estimates[0]
    quiet = Tried(steps=option.steps, clip=option.clip, rate=option.rate, level=0.0)
    same = trained(features, labels, quiet, 1, np.random.default_rng(3))[0, 0]
    apart = float(np.abs(silent - same).max())
    error = math.sqrt(real.var(ddof=1) / len(real) + plain.var(ddof=1) / len(plain))
    off = float(real.mean() - plain.mean()) / error
    words = f"without noise the models differ by {apart:.1e}; {off:+.1f} standard errors apart"
    return [
        measured("masked, as in the tables", plain, epsilon=epsilon, adjacency=adjacency),
        measured(
            "masked, masked-sgd itself",
            real,
            epsilon=spent,
            adjacency=adjacency,
            settings=words,
            goal=float(plain.mean()) - 3 * error if off < 3 else 1.0,
        ),
    ]


def _run(
    task: Logistic, sigma: float, option: SiloOption, adjacency: Adjacency, seed: int
) -> br.Run:
    held = int(task.records.sizes.sum())
    return br.run(
        br.MaskedSGD(rate=option.rate, colluders=1, spare=0),
        f"complete:{task.peers}",
        task,
        privacy=RecordSums(
            clip=option.clip, sigma=sigma, adjacency=adjacency, divisor=held / task.peers
        ),
        steps=option.steps,
        seed=seed,
    )


def _rows(records: Records) -> tuple[Array, Array]:
    """All records of all peers as one problem  # (1, r, d), (1, r) of 0 and 1."""
    features, labels = [], []
    for part in records.parts(np.arange(records.peers), records.columns):
        real = part.weights > 0
        features.append(part.features[real])
        labels.append((part.targets[real] > 0).astype(np.float64))
    return np.concatenate(features)[None], np.concatenate(labels)[None]


def _accuracies(task: Logistic, models: Array) -> Array:
    """Mean over the hospitals of the accuracy on their test patients  # (k,)."""
    assert task.judged is not None
    found = [score_for(task, task.judged, u, models) for u in range(task.peers)]
    return np.asarray(np.stack(found).mean(axis=0))
