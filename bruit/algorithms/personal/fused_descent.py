"""The compiled path of `personalized` on logistic tasks.

Who wakes when is drawn first, so that everything but the models is known ahead; noise has the same
addresses and the ledger the same lines as on the generic path.
"""

from typing import NamedTuple

import numpy as np

from bruit.algorithms.door import Door
from bruit.algorithms.messages import Links
from bruit.algorithms.task_door import TaskDoor
from bruit.algorithms.tokens.walk_compiled import refusal
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.mechanisms.mechanism import Additive
from bruit.privacy.events import Exact
from bruit.tasks import Logistic, Records
from bruit.tasks.personal import Personal

CHUNK = 1 << 17  # numbers of noise drawn at once: they stay in cache


class _LinearProblem(NamedTuple):
    start: Ints  # (n + 1,) of the records
    features: Array  # (records, d)
    targets: Array  # (records,)
    ridge: Array  # (n,)
    bound: float  # on the slope of a record's loss


def descend(
    models: Array,
    spent: Ints,
    graph: Graph,
    woken: Ints,
    door: Door,
    coupling: float,
    trust: Array,
    smoothness: Array,
    allowed: Array,
) -> tuple[Array, Ints]:
    """Models and reads spent after these wake-ups in order."""
    from bruit.algorithms.compiled.personal import logistic_descent, wake_counts

    private, problem = _fusible(door)
    mechanism, links = private.mechanism, Links.of_graph(graph)
    models, spent = np.array(models, order="C"), spent.copy()
    step, awake, reads = wake_counts(woken, spent, allowed, trust > 0)
    weights = _normalized(links, graph.n)
    share = coupling / (coupling + trust * smoothness)
    clip, norm, spacing, farthest = np.inf, 2, 0.0, np.inf
    if mechanism is not None:
        clip, norm, spacing, farthest = (
            mechanism.inside,
            mechanism.norm,
            mechanism.spacing,
            mechanism.farthest,
        )
    each = len(woken) if mechanism is None else max(64, CHUNK // private.dim)
    for begin in range(0, len(woken), max(each, 1)):
        here = slice(begin, begin + each)
        noise = np.zeros((0, private.dim))
        if mechanism is not None:
            noise = mechanism.noise(
                private.dice, woken[here], step[here], 0, private.dim, private.run
            )
        bad = logistic_descent(
            woken[here],
            awake[here],
            reads[here],
            noise,
            links.start,
            links.senders,
            weights,
            models,
            *problem,
            clip,
            norm,
            spacing,
            farthest,
            coupling,
            trust,
            share,
        )
        if bad >= 0:
            raise ConfigError(
                f"the gradient of peer {woken[begin + bad]} at wake-up {begin + bad} is not "
                "finite; declare a larger smoothness"
            )
    event = Exact() if mechanism is None else mechanism.event_of(private.dim)
    private.ledger.record(woken[reads], step[reads], step[reads], event)
    return models, spent


def _normalized(links: Links, n: int) -> Array:
    """The weight of every link, over the sum of its peer's weights."""
    links_each = np.diff(links.start)
    degrees = np.bincount(np.repeat(np.arange(n), links_each), links.weights, n)
    return np.asarray(links.weights / np.repeat(degrees, links_each))


def reason(door: Door) -> str:
    """Why the compiled descent cannot read through this door; empty if it can."""
    return refusal(_fusible, door)


def _fusible(door: Door) -> tuple[TaskDoor, _LinearProblem]:
    """The door and the records of a run that is compiled; otherwise what stands in the way."""
    if not isinstance(door, TaskDoor):
        raise ConfigError("the fused descent reads tasks; run this one with Bulk()")
    if door.mechanism is not None and not isinstance(door.mechanism, Additive):
        raise ConfigError(
            f"the fused descent adds noise, which {door.mechanism.kind} is not; run this one with "
            f"Bulk()"
        )
    if door.budget is not None:
        raise ConfigError(
            "the fused descent does not look at a budget before each release; run this one with "
            "Bulk()"
        )
    task = door.task
    ridge = task.ridge if isinstance(task, Personal) else np.zeros(task.peers)
    shared = task.shared if isinstance(task, Personal) else task
    if not isinstance(shared, Logistic):
        raise ConfigError(
            "the fused descent is compiled for logistic tasks; run this one with Bulk()"
        )
    bound = np.inf if shared.derivative_clip is None else shared.derivative_clip
    return door, _LinearProblem(*_flat(shared.records), ridge + shared.l2, bound)


def _flat(records: Records) -> tuple[Ints, Array, Array]:
    """Every peer's records one after the other, without padding."""
    start = np.concatenate(([0], np.cumsum(records.sizes)))
    features, targets = np.empty((start[-1], records.columns)), np.empty(start[-1])
    for block in records.blocks:
        real = np.arange(block.targets.shape[1]) < records.sizes[block.peers][:, None]
        rows = (start[block.peers][:, None] + np.arange(block.targets.shape[1]))[real]
        features[rows], targets[rows] = block.features[real], block.targets[real]
    return start, features, targets
