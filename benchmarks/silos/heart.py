"""Four hospitals: `python -m benchmarks.silos heart [--splits 40 --draws 12] [--json]`.

Fed-Heart-Disease in FLamby's preparation, columns by bruit's own agreed file; two thirds of every
center's patients for training, mean over the four centers of the accuracy on each center's own test
patients; delta 1e-4. Steps, clip and rate of every private row are what `bruit plan --silos` chooses
on made-up problems of the same size: no accuracy on these patients chose any of them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from benchmarks.silos.fitting import RIDGE, fit, fit_intercept
from benchmarks.silos.rows import Splits, heart, split
from benchmarks.silos.tables import Budget, Measured, measured
from bruit.arrays import Array
from bruit.planning.silos.compared import SiloOption, SilosPlan
from bruit.planning.silos.descent import DescentSettings, descend
from bruit.planning.silos.plan import plan_silos
from bruit.planning.silos.question import SilosQuestion
from bruit.planning.silos.trial import Tried
from bruit.privacy.events import Adjacency, record_event
from bruit.privacy.toolbox.pld import compose_epsilon

DELTA = 1e-4
EPSILONS = (0.1, 1.0)
ADJACENCIES: tuple[Adjacency, ...] = ("replace", "add-remove")
GOALS = {
    (0.1, "replace"): 0.70,
    (0.1, "add-remove"): 0.77,
    (1.0, "replace"): 0.79,
    (1.0, "add-remove"): 0.79,
}
NEAR = 0.01
"""How near the best of alone and pooled a model with a part fitted at home should come."""


def run(splits: int = 40, draws: int = 12) -> list[Measured]:
    """All rows of the table."""
    data = split(heart(), splits)
    rows = without_privacy(data)
    best = max(row.mean for row in rows if "own patients" in row.what or "pooled" in row.what)
    for epsilon in EPSILONS:
        for adjacency in ADJACENCIES:
            question = SilosQuestion(
                records=tuple(np.bincount(data.owners).tolist()),
                dim=data.features.shape[2],
                epsilon=epsilon,
                delta=DELTA,
                adjacency=adjacency,
            )
            rows += with_privacy(data, plan_silos(question), draws, best)
            rows.append(with_spare(data, plan_silos(replace(question, dropouts=1)), draws))
    return rows


def without_privacy(data: Splits) -> list[Measured]:
    """What is known without any data, and without noise."""
    centers = range(int(data.owners.max()) + 1)
    ill = np.stack([data.answers[:, data.fresh_owners == u].mean(axis=1) for u in centers], axis=1)
    pooled = fit(data.features, data.labels)[:, None, :]
    apart = np.eye(len(centers))
    own_intercept = fit(_with(data.features, apart[data.owners]), data.labels)[:, None, :]
    everywhere = _judged(data, own_intercept, _with(data.fresh, apart[data.fresh_owners]))
    alone = np.stack([_alone_fit(data, u) for u in centers], axis=1)  # (splits, centers, d)
    return [
        measured("everybody is ill, no data at all", ill),
        measured("pooled, no privacy", _judged(data, pooled)),
        measured("pooled, an intercept per hospital, no privacy", everywhere),
        measured("alone, no privacy, own patients", _own(data, alone)),
        measured("alone, no privacy, everybody's patients", _judged(data, alone)),
    ]


def with_privacy(data: Splits, plan: SilosPlan, draws: int, best: float) -> list[Measured]:
    """The private rows of one budget; `best` of alone and pooled without privacy."""
    asked = plan.question
    told = Budget(epsilon=asked.epsilon, adjacency=asked.adjacency)
    centers = range(asked.silos)
    seed = np.random.default_rng([7, round(1000 * asked.epsilon), len(asked.adjacency)])
    alone = []
    for u in centers:
        here = data.owners == u
        alone.append(
            trained(data.features[:, here], data.labels[:, here], plan.alone[u], draws, seed)
        )
    own = np.stack([_accuracy(data, alone[u], u) for u in centers], axis=2)
    rows = [
        measured("alone, private, own patients", own, settings=_steps(plan.alone), **told),
        measured(
            "alone, private, everybody's patients",
            np.stack([_judged(data, model) for model in alone], axis=2),
            settings=_steps(plan.alone),
            **told,
        ),
    ]
    models = {}
    for name in ("local", "masked", "curator"):
        option = plan.option(name)
        setting = Tried(
            steps=option.steps,
            clip=option.clip,
            rate=option.rate,
            level=option.noise / option.clip,
        )
        models[name] = trained(data.features, data.labels, setting, draws, seed)
        rows.append(
            measured(
                f"together, {NAMES[name]}",
                _judged(data, models[name]),
                epsilon=_spent(plan, option),
                adjacency=asked.adjacency,
                settings=_settings(setting),
                goal=GOALS[asked.epsilon, asked.adjacency] if name == "masked" else None,
            )
        )
    option = plan.option("masked")
    silent = Tried(steps=option.steps, clip=option.clip, rate=option.rate, level=0.0)
    rows.append(
        measured(
            "the masked run without noise",
            _judged(data, trained(data.features, data.labels, silent, 1, seed)),
            settings=_settings(silent),
            **told,
        )
    )
    return rows + at_home(data, models["masked"], own, best, told)


def with_spare(data: Splits, plan: SilosPlan, draws: int) -> Measured:
    """The masked run whose promise includes a quarter of spare attempts for peers that fall silent;
    here nobody does."""
    option, asked = plan.option("masked"), plan.question
    setting = Tried(
        steps=option.steps, clip=option.clip, rate=option.rate, level=option.noise / option.clip
    )
    seed = np.random.default_rng([8, round(1000 * asked.epsilon), len(asked.adjacency)])
    return measured(
        "the same, a quarter of the attempts spare",
        _judged(data, trained(data.features, data.labels, setting, draws, seed)),
        epsilon=_spent(plan, option),
        adjacency=asked.adjacency,
        settings=f"{_settings(setting)}, {option.attempts} attempts",
    )


def _spent(plan: SilosPlan, option: SiloOption) -> float:
    event = record_event(option.noise_multiplier, option.sample_rate, plan.question.adjacency)
    return compose_epsilon([(event, option.attempts)], DELTA)


NAMES = {
    "local": "every hospital adds all of the noise itself",
    "masked": "noise made together, one colluder tolerated",
    "curator": "trusted curator",
}


def trained(
    features: Array, labels: Array, setting: Tried, draws: int, seed: np.random.Generator
) -> Array:
    """Models of so many draws of noise  # (splits, draws, d)."""
    many = np.ones(draws)
    settings = DescentSettings(
        clip=setting.clip * many,
        rate=setting.rate * many,
        noise=setting.level * setting.clip * many,
        steps=setting.steps,
    )
    return descend(features, labels, float(features.shape[1]), settings, seed)


def at_home(
    data: Splits, shared: Array, private_own: Array, best: float, told: Budget
) -> list[Measured]:
    """Parts fitted at home on top of the last shared model: free, they never leave the house.

    An intercept; scale and intercept; all parameters, pulled toward these. Judged on one's own
    patients, hospital by hospital too.
    """
    splits, draws, d = shared.shape
    centers = range(int(data.owners.max()) + 1)
    found: dict[str, list[Array]] = {name: [] for name in HOME}
    for u in centers:
        here, there = data.owners == u, data.fresh_owners == u
        rows = np.repeat(data.features[:, here], draws, axis=0)
        labels = np.repeat(data.labels[:, here], draws, axis=0)
        fresh = np.repeat(data.fresh[:, there], draws, axis=0)
        answers = np.repeat(data.answers[:, there], draws, axis=0)
        models = shared.reshape(-1, d)
        scores = (rows @ models[:, :, None])[:, :, 0]
        judged = (fresh @ models[:, :, None])[:, :, 0]
        constant = fit_intercept(rows, labels, models, RIDGE)
        two = fit(np.stack([scores, np.ones_like(scores)], axis=2), labels)
        center = two[:, :1] * models
        pulled = fit(rows, labels, center=center, offset=np.repeat(two[:, 1:], rows.shape[1], 1))
        said = {
            "the shared model as it is": judged,
            "intercept at home": judged + constant[:, None],
            "scale and intercept at home": two[:, :1] * judged + two[:, 1:],
            "all parameters at home": (fresh @ pulled[:, :, None])[:, :, 0] + two[:, 1:],
        }
        for name, value in said.items():
            right = ((value > 0) == (answers > 0.5)).mean(axis=1)
            found[name].append(right.reshape(splits, draws))
    alone = np.stack([_accuracy(data, _alone_fit(data, u)[:, None], u) for u in centers], axis=2)
    rows_found = []
    for name in HOME:
        own = np.stack(found[name], axis=2)  # (splits, draws, centers)
        goal = best - NEAR if name == HOME[-1] and told["epsilon"] == 1.0 else None
        gain = (own - alone).mean(axis=1)
        safer = (own - private_own).mean(axis=1)
        rows_found.append(
            measured(
                f"own patients: {name}",
                own,
                goal=goal,
                settings=f"by hospital {_list(own.mean(axis=(0, 1)))}; over alone without privacy "
                f"{_points(gain)}; over alone private {_points(safer)}",
                **told,
            )
        )
    return rows_found


HOME = (
    "the shared model as it is",
    "intercept at home",
    "scale and intercept at home",
    "all parameters at home",
)


def _points(gains: Array) -> str:
    """Mean and standard error over splits of a gain in points, hospital by hospital."""
    error = gains.std(axis=0, ddof=1) / math.sqrt(len(gains)) if len(gains) > 1 else gains[0]
    return ", ".join(
        f"{100 * mean:+.1f}+-{100 * one:.1f}"
        for mean, one in zip(gains.mean(axis=0).tolist(), error.tolist(), strict=True)
    )


def _list(accuracies: Array) -> str:
    return ", ".join(f"{one:.3f}" for one in accuracies.tolist())


def _with(features: Array, more: Array) -> Array:
    """The same columns in every split beside the others."""
    return np.concatenate([features, np.broadcast_to(more, (len(features), *more.shape))], axis=2)


def _alone_fit(data: Splits, u: int) -> Array:
    here = data.owners == u
    return fit(data.features[:, here], data.labels[:, here])


def _accuracy(data: Splits, models: Array, u: int) -> Array:
    """Of models (splits, k, d) on the test patients of hospital u  # (splits, k)."""
    there = data.fresh_owners == u
    scores = data.fresh[:, there] @ models.transpose(0, 2, 1)
    right = (scores > 0) == (data.answers[:, there] > 0.5)[:, :, None]
    return np.asarray(right.mean(axis=1))


def _judged(data: Splits, models: Array, fresh: Array | None = None) -> Array:
    """Mean over the hospitals of the accuracy on their test patients  # (splits, k)."""
    rows = data.fresh if fresh is None else fresh
    right = (rows @ models.transpose(0, 2, 1) > 0) == (data.answers > 0.5)[:, :, None]
    centers = range(int(data.fresh_owners.max()) + 1)
    found = [right[:, data.fresh_owners == u].mean(axis=1) for u in centers]
    return np.asarray(np.stack(found).mean(axis=0))


def _own(data: Splits, models: Array) -> Array:
    """Each hospital's own model (splits, centers, d) on its own test patients, mean over hospitals."""
    centers = range(models.shape[1])
    own = [_accuracy(data, models[:, u : u + 1], u) for u in centers]
    return np.asarray(np.stack(own).mean(axis=0))


def _settings(setting: Tried) -> str:
    return (
        f"T = {setting.steps}, C = {setting.clip:g}, rate {setting.rate:.3g}, noise of the sum "
        f"{setting.level * setting.clip:.3g}"
    )


def _steps(settings: tuple[Tried, ...]) -> str:
    return f"T = {', '.join(str(one.steps) for one in settings)}"
