"""What observers know of a network task: scores, references, and for whom joining paid; and the parts
that a peer fits at home. Nothing here is ever sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.linear import SHOWN_APART, distinct_rows
from bruit.tasks.networks.training import STEPS, adam, round_robin
from bruit.tasks.records import Records
from bruit.tasks.scores.joining import Joining
from bruit.tasks.task import Manifest

if TYPE_CHECKING:
    from bruit.tasks.networks.network_task import Torch

BATCH = 64  # records of a step of the references
AT_HOME_STEPS = 200
MOST_WORK = 2e11  # multiplications that references may take: about a minute
Models = tuple[Array, Array]


def evaluated(task: Torch, models: Array) -> dict[str, float]:
    """Metric (mean over models, worst), loss, and on everybody's test records where peers have
    some."""
    if task.judged is not None:
        return _judged(task, task.judged, models)
    metric, losses = _scored(task, models)
    worst = metric.min() if task.higher else metric.max()
    return {
        task.metric: float(metric.mean()),
        "worst": float(worst),
        "loss": float(losses.mean()),
    }


def score_for(task: Torch, peer: int, models: Array) -> Array:
    """The metric of some models on the own test records of one peer  # (k,)."""
    assert task.judged is not None
    part = next(task.judged.parts(np.array([peer]), task.dim))
    return _measure(task, models, part.features, part.targets, part.weights)[0]


def judging(task: Torch) -> Manifest:
    """What models are judged on, where it is not the public part."""
    if task.judged is None:
        return {}
    return {
        "judged_on": "own test records",
        "test": 0.0,  # no score is measured on public records
        "test_records": int(task.judged.sizes.sum()),
    }


def reference_models(task: Torch) -> Models | None:
    """Each peer's own model  # (n, d), and that of all records in one place  # (1, d); None where
    learning them would take too long."""
    batch = min(BATCH, int(task.sizes.max()))
    if 6.0 * STEPS * batch * task.dim * (task.peers + 1) > MOST_WORK:
        return None
    everyone, start = np.arange(task.peers), task.start()
    sizes = task.sizes.astype(np.float64)

    def alone(models: Array, step: int) -> Array:
        return task.gradient_sampled(everyone, models, round_robin(sizes, batch, step))

    pool = task.records.together()
    many = np.array([float(pool.targets.shape[1])])

    def pooled(models: Array, step: int) -> Array:
        places = (round_robin(many, BATCH, step)[0] * many[0]).astype(np.int64)
        rows = task.network.batch(pool.features[:, places], pool.targets[:, places])
        slope = task.network.gradients(models, rows, np.full((1, BATCH), 1.0 / BATCH))
        return slope + task.l2 * models

    begun = np.broadcast_to(start, (task.peers, task.dim))
    return adam(begun, alone), adam(start[None], pooled)


def compared(task: Torch, models: Models | None) -> dict[str, float]:
    """The metric of both, also for the peer that is worst off."""
    if models is None:
        return {}
    each, one = task.evaluate(models[0]), task.evaluate(models[1])
    found = {"alone": each[task.metric], "central": one[task.metric]}
    found |= {"alone_worst": each["worst"], "central_worst": one["worst"]}
    if task.judged is not None:
        found["alone_everybody"] = each["everybody"]
    return found


def comparison(task: Torch, shared: Array) -> tuple[dict[str, float], Joining | None]:
    """The references, and for whom joining paid."""
    models, public = reference_models(task), task.records.held_out
    told = compared(task, models)
    if models is None or task.peers > SHOWN_APART or (public is None and task.judged is None):
        return told, None
    names = cast(list[str], task.records.used.get("peer_names") or [])
    tested = np.full(task.peers, 0 if public is None else len(public.targets))

    def scores(found: Array) -> tuple[float, ...]:
        each = np.broadcast_to(found, (task.peers, task.dim))
        if task.judged is not None:
            return tuple(
                float(score_for(task, peer, each[peer : peer + 1])[0]) for peer in range(task.peers)
            )
        return tuple(_scored(task, each)[0].tolist())

    everyone = np.arange(task.peers)
    return told, Joining(
        metric=task.metric,
        higher=task.higher,
        own_test=task.judged is not None,
        names=tuple(names) or tuple(f"peer {peer}" for peer in range(task.peers)),
        records=tuple(task.sizes.tolist()),
        test_records=tuple((tested if task.judged is None else task.judged.sizes).tolist()),
        alone=scores(models[0]),
        together=scores(shared),
        own_part=scores(task.at_home(everyone, shared)) if task.local else None,
        pooled=scores(models[1]),
        local=task.local,
    )


def fitted_at_home(task: Torch, ids: Ints, models: Array) -> Array:
    """The models of these peers with their local parameters h fitted on their own records:

    argmin over h of  mean loss + (1 / 2m) |h - shared|^2,       200 steps of Adam
    """
    mine, shared = task.parts_at_home(), np.array(models, np.float64)
    if not task.local:
        return shared
    steady = np.isfinite(shared).all(axis=1)  # a run that went astray stays as it is
    some, begun = ids[steady], shared[steady]
    if not len(some):
        return shared
    sizes = task.sizes[some].astype(np.float64)
    batch = min(4 * BATCH, int(sizes.max()))

    def slope(found: Array, step: int) -> Array:
        whole = task.gradient_sampled(some, found, round_robin(sizes, batch, step))
        return np.where(mine, whole + (found - begun) / sizes[:, None], 0.0)

    shared[steady] = adam(begun, slope, AT_HOME_STEPS)
    return shared


def _scored(task: Torch, models: Array) -> tuple[Array, Array]:
    """Metric and loss of each model on the held-out part, or on all peers' records  # (k,)
    twice."""
    first, back = distinct_rows(models)  # peers that were told one model share its scores
    sample = task.records.held_out
    if sample is None:
        pool = task.records.together()
        rows = (pool.features, pool.targets, pool.weights)
    else:
        even = np.full((1, len(sample.targets)), 1.0 / len(sample.targets))
        rows = (sample.features[None], sample.targets[None], even)
    metric, losses = _measure(task, models[first], *rows)
    return metric[back], losses[back]


def _judged(task: Torch, test: Records, models: Array) -> dict[str, float]:
    if models.shape not in ((1, task.dim), (test.peers, task.dim)):
        raise ConfigError(
            f"models are {models.shape}; give one row a peer, {(test.peers, task.dim)}, or one for "
            f"all"
        )
    everywhere, losses = [], []
    for peer in range(test.peers):
        part = next(test.parts(np.array([peer]), task.dim))
        found = _measure(task, models, part.features, part.targets, part.weights)
        everywhere.append(found[0])
        losses.append(found[1][peer if len(models) > 1 else 0])
    scores, everyone = np.stack(everywhere), np.arange(test.peers)  # (peers, models)
    own = scores[everyone, everyone if len(models) > 1 else 0]
    return {
        task.metric: float(own.mean()),
        "worst": float(own.min() if task.higher else own.max()),
        "loss": float(np.mean(losses)),
        "everybody": float(scores.mean()),
    }


def _measure(
    task: Torch, models: Array, features: Array, targets: Array, weights: Array
) -> tuple[Array, Array]:
    from bruit.tasks.networks.with_torch.judging import scored

    found, losses = scored(task.network, models, features, targets, weights)
    if task.classifies:
        return found, losses
    return task.records.label_unit * np.sqrt(found), losses
