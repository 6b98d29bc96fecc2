"""A table dealt to 16 and to 100 peers: masked sums, a trusted curator and local noise, with the same
steps, clip and rate, at epsilon 1 and 3.

Settings are what `bruit plan --silos` chooses for masked sums on made-up problems of the same size; the
curator and local noise get the same ones, so that only the noise differs. Random splits, two thirds
for training, delta 1e-5.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from benchmarks.silos.fitting import fit
from benchmarks.silos.rows import Rows, Splits, split
from benchmarks.silos.tables import Measured, measured
from bruit.arrays import Array
from bruit.planning.silos.compared import SilosPlan
from bruit.planning.silos.descent import DescentSettings, descend
from bruit.planning.silos.plan import plan_silos
from bruit.planning.silos.question import SilosQuestion
from bruit.privacy.events import Adjacency, record_event
from bruit.privacy.toolbox.pld import compose_epsilon

DELTA = 1e-5
PEERS = (16, 100)
EPSILONS = (1.0, 3.0)
ADJACENCIES: tuple[Adjacency, ...] = ("replace", "add-remove")
NEAR = 0.005
"""How near the curator a masked run should come."""


def compare(rows: Rows, splits: int, draws: int) -> list[Measured]:
    """All rows of the table; one split is in memory at a time."""
    held = round(2 / 3 * len(rows.labels))
    plans = [
        plan_silos(
            SilosQuestion(
                records=(held // peers,) * peers,
                dim=rows.features.shape[1],
                epsilon=epsilon,
                delta=DELTA,
                adjacency=adjacency,
            )
        )
        for adjacency in ADJACENCIES
        for peers in PEERS
        for epsilon in EPSILONS
    ]
    found: dict[tuple[int, str], list[Array]] = {}
    pooled, blind = [], []
    for number in range(splits):
        data = split(rows, 1, first=number)
        pooled.append(_accuracy(data, fit(data.features, data.labels)[:, None])[0])
        share = float(data.answers.mean())
        blind.append(max(share, 1 - share))
        for place, plan in enumerate(plans):
            for name, accuracy in _measure(data, plan, draws, number).items():
                found.setdefault((place, name), []).append(accuracy)
        print(f"split {number + 1} of {splits}", file=sys.stderr)
    shown = [
        measured("the larger class, no data at all", np.array(blind)),
        measured("pooled, no privacy", np.array(pooled)),
    ]
    for place, plan in enumerate(plans):
        shown += _rows(plan, {name: np.array(found[place, name]) for name in NAMES})
    return shown


NAMES = ("alone", "local", "masked", "curator", "without noise")


def _measure(data: Splits, plan: SilosPlan, draws: int, number: int) -> dict[str, Array]:
    """Accuracy of each protocol on one split  # (draws,)."""
    asked, option = plan.question, plan.option("masked")
    n, a = asked.silos, asked.colluders
    used = sum(asked.records)
    seed = np.random.default_rng([number, n, round(10 * asked.epsilon), len(asked.adjacency)])
    sigma = option.noise_multiplier * option.clip
    noises = {
        "local": sigma * math.sqrt(n),
        "masked": sigma * math.sqrt(n / (n - a)),
        "curator": sigma,
        "without noise": 0.0,
    }
    many = np.ones(draws * len(noises))
    models = descend(
        data.features[:, :used],
        data.labels[:, :used],
        float(used),
        DescentSettings(
            clip=option.clip * many,
            rate=option.rate * many,
            noise=np.repeat(list(noises.values()), draws),
            steps=option.steps,
        ),
        seed,
    )
    accuracies = _accuracy(data, models)[0].reshape(len(noises), draws)
    own = plan.alone[0]
    alone = descend(
        data.features[:, : asked.records[0]],
        data.labels[:, : asked.records[0]],
        float(asked.records[0]),
        DescentSettings(
            clip=own.clip * np.ones(draws),
            rate=own.rate * np.ones(draws),
            noise=own.level * own.clip * np.ones(draws),
            steps=own.steps,
        ),
        seed,
    )
    return {"alone": _accuracy(data, alone)[0], **dict(zip(noises, accuracies, strict=True))}


def _rows(plan: SilosPlan, found: dict[str, Array]) -> list[Measured]:
    asked, option = plan.question, plan.option("masked")
    spent = compose_epsilon(
        [(record_event(option.noise_multiplier, 1.0, asked.adjacency), option.attempts)], DELTA
    )
    words = {
        "alone": f"T = {plan.alone[0].steps}",
        "masked": f"T = {option.steps}, C = {option.clip:g}, rate {option.rate:.3g}, "
        f"z {option.noise_multiplier:.4g}",
    }
    goal = float(found["curator"].mean()) - NEAR
    return [
        measured(
            f"{asked.silos} peers, {name}",
            found[name],
            epsilon=None if name == "without noise" else spent,
            adjacency=asked.adjacency,
            settings=words.get(name, ""),
            goal=goal if name == "masked" else None,
        )
        for name in NAMES
    ]


def _accuracy(data: Splits, models: Array) -> Array:
    """Of models (1, k, d) on the test rows  # (1, k)."""
    right = (data.fresh @ models.transpose(0, 2, 1) > 0) == (data.answers > 0.5)[:, :, None]
    return np.asarray(right.mean(axis=1))
