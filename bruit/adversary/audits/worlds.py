"""Worlds: pairs of neighboring data sets on which a mistake would show.

    ends        peer u puts -clip e or +clip e into every release, all others zeros; losses are straight lines
    reacting    everybody's loss is Huber's, so gradients depend on the model and exceed the clip; u's canary lies far
                outside of the clip on either side
    records     the experiment's own records, and the same canary in the place of peer u's

The first is the worst case of every theorem on linear views, and its best score is known. The
others catch what straight lines cannot show: a missing clip, a clip after the noise, answers to
reactions. All are neighbors at user and at record level, since a mechanism bounds the whole row.

Where sums of records are released (silo:SILO-1) every peer of the first two holds one record, and
the canary of the third takes the place of one record of peer u, whose others stay. If records come
or go, the first of two neighbors is without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.mechanisms import Mechanism, RandomizedResponse
from bruit.tasks.record_gradients import chosen, summed, voted
from bruit.tasks.task import Constants, Manifest, Task

FAR = 1000.0
"""Canaries and reactions reach so many clips."""

DISTANCE = 1e4
"""Centers of reactions lie so many times the value away, over the smoothness: farther than models
go."""


@dataclass(frozen=True, eq=False)
class Neighbors(Task):
    """Two neighboring data sets; lane c n + i is peer i of copy c, and odd copies hold the second
    one.

    As losses they are straight lines f_i(x) = <v_i, x>: the gradient is v_i everywhere, the
    proximal point x - rho v_i, the value v_i."""

    left: Array  # (n, d)
    right: Array  # (n, d)

    def __post_init__(self) -> None:
        if self.left.shape != self.right.shape or self.left.ndim != 2:
            raise ConfigError(
                f"neighboring data sets need one shape (peers, dim), found {self.left.shape} and"
                f" {self.right.shape}"
            )

    @classmethod
    def opposite(cls, peers: int, of: int, clip: float, dim: int = 1) -> Neighbors:
        """Peer `of` moves from -clip to +clip along the first axis, everybody else stays at
        zero."""
        right = np.zeros((peers, dim))
        right[_known(peers, of), 0] = clip
        return cls(-right, right)

    @property
    def peers(self) -> int:
        return len(self.left)

    @property
    def dim(self) -> int:
        return int(self.left.shape[1])

    @property
    def metric(self) -> str:
        return "loss"

    def value(self, ids: Ints) -> Array:
        copy, peer = np.divmod(ids, self.peers)
        return np.where((copy % 2 == 1)[:, None], self.right[peer], self.left[peer])

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self.value(ids)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.value(ids)

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        """From one end of the range to the other, with the sum of the value."""
        return np.asarray(np.clip(self.value(ids).sum(axis=1), 0.0, ceiling))

    def record_counts(self) -> Ints:
        return np.ones(self.peers, np.int64)

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        """A peer has one record."""
        return summed(self.value(ids)[:, None], chosen(coins, rate, len(ids), 1), clip, unit)

    def clip_votes(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float
    ) -> Ints:
        """A row of zeros is no record: where records come or go it has no vote."""
        rows = self.value(ids)[:, None]
        taken = chosen(coins, rate, len(ids), 1) & rows.any(axis=2)
        return voted(rows, taken, clip)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return x - rho * self.value(ids)

    def evaluate(self, models: Array) -> dict[str, float]:
        return {"loss": float((models * self.left.mean(axis=0)).sum(axis=1).mean())}

    def constants(self) -> Constants:
        """Straight lines are smooth with any constant; a tiny one is declared, since theorems
        divide by it."""
        longest = float(np.linalg.norm(np.stack((self.left, self.right)), axis=2).max(initial=0.0))
        return Constants(longest, 1e-12, 0.0, "declared")

    def describe(self) -> Manifest:
        return {
            "task": "Neighbors",
            "peers": self.peers,
            "dim": self.dim,
            "data": {"name": "worst case"},
        }

    def references(self) -> dict[str, float]:
        return {}


@dataclass(frozen=True, eq=False)
class Reacting(Task):
    """Huber's losses around c_i = distance * value_i: the gradient is k (x - c_i) cut to length g,
    a reaction to the model. Values of zero pull everywhere; others so far away that their pull has
    length g wherever models go.

        prox(x) = c + (x - c) / (1 + rho k)  within k |z - c| <= g,     else  x - rho g (x - c) / |x - c|

    Convex, k-smooth and g-Lipschitz. Lanes and sides as in `Neighbors`. `gone`: whose record is
    missing in the first data set."""

    values: Neighbors
    smoothness: float
    length: float
    gone: int | None = None

    def _away(self, ids: Ints, x: Array) -> Array:
        return np.asarray(x - DISTANCE / self.smoothness * self.value(ids))

    @property
    def peers(self) -> int:
        return self.values.peers

    @property
    def dim(self) -> int:
        return self.values.dim

    @property
    def metric(self) -> str:
        return "loss"

    def value(self, ids: Ints) -> Array:
        return self.values.value(ids)

    def gradient(self, ids: Ints, x: Array) -> Array:
        pull = self.smoothness * self._away(ids, x)
        size = np.linalg.norm(pull, axis=1, keepdims=True)
        return np.asarray(pull * np.minimum(1.0, self.length / np.maximum(size, 1e-300)))

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        return self.values.cut_losses(ids, x, ceiling)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.gradient(ids, x)

    def record_counts(self) -> Ints:
        return self.values.record_counts()

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        """A peer has one record."""
        taken = self._taken(ids, coins, rate)
        return summed(self.gradient(ids, x)[:, None], taken, clip, unit)

    def clip_votes(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float
    ) -> Ints:
        return voted(self.gradient(ids, x)[:, None], self._taken(ids, coins, rate), clip)

    def _taken(self, ids: Ints, coins: Array | None, rate: float) -> Bools:
        """Whose record is in the batch."""
        taken = chosen(coins, rate, len(ids), 1)
        if self.gone is None:
            return taken
        copy, peer = np.divmod(ids, self.peers)
        there: Bools = taken & ~((peer == self.gone) & (copy % 2 == 0))[:, None]
        return there

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        away = self._away(ids, x)
        size = np.linalg.norm(away, axis=1, keepdims=True)
        near = away * (rho * self.smoothness / (1 + rho * self.smoothness))
        far = away * (rho * self.length / np.maximum(size, 1e-300))
        return np.asarray(
            x
            - np.where(
                self.smoothness * size <= self.length * (1 + rho * self.smoothness), near, far
            )
        )

    def evaluate(self, models: Array) -> dict[str, float]:
        return self.values.evaluate(models)

    def constants(self) -> Constants:
        return Constants(self.length, self.smoothness, 0.0, "declared")

    def describe(self) -> Manifest:
        return {**self.values.describe(), "task": "Reacting"}

    def references(self) -> dict[str, float]:
        return {}


@dataclass(frozen=True, eq=False)
class Canary(Task):
    """A task whose peer `of` holds a canary instead of its records; the others answer from theirs,
    on both sides."""

    task: Task
    of: int
    canary: Task

    @property
    def peers(self) -> int:
        return self.task.peers

    @property
    def dim(self) -> int:
        return self.task.dim

    @property
    def width(self) -> int:
        return self.task.width

    @property
    def metric(self) -> str:
        return self.task.metric

    def start(self) -> Array:
        return self.task.start()

    def _each(self, ids: Ints, ask: Callable[[Task, Ints, Ints], Array]) -> Array:
        """Answers of the records for all but the canary's lanes, which the canary gives."""
        peers = ids % self.peers
        here = np.flatnonzero(peers == self.of)
        answer = ask(self.task, peers, np.arange(len(ids)))
        if len(here):
            answer = np.array(answer, np.float64)
            answer[here] = ask(self.canary, ids[here], here)
        return answer

    def value(self, ids: Ints) -> Array:
        return self._each(ids, lambda task, who, _: task.value(who))

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self._each(ids, lambda task, who, rows: task.gradient(who, x[rows]))

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        return self._each(ids, lambda task, who, rows: task.cut_losses(who, x[rows], ceiling))

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self._each(
            ids, lambda task, who, rows: task.gradient_sampled(who, x[rows], uniforms[rows])
        )

    def record_counts(self) -> Ints:
        return self.task.record_counts()

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        """The canary is the first record of its peer, with the coin of that one."""
        here, tossed, own = self._tossed(ids, coins)
        total = self.task.clipped_sum(ids % self.peers, x, tossed, rate, clip, unit)
        if len(here):
            total[here] += self.canary.clipped_sum(ids[here], x[here], own, rate, clip, unit)
        return total

    def clip_votes(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float
    ) -> Ints:
        here, tossed, own = self._tossed(ids, coins)
        total = self.task.clip_votes(ids % self.peers, x, tossed, rate, clip)
        if len(here):
            total[here] += self.canary.clip_votes(ids[here], x[here], own, rate, clip)
        return total

    def _tossed(self, ids: Ints, coins: Array | None) -> tuple[Ints, Array, Array]:
        """Which lanes hold the canary, the coins of all other records, and the canary's."""
        here = np.flatnonzero(ids % self.peers == self.of)
        most = int(self.record_counts().max(initial=1))
        tossed = np.zeros((len(ids), most)) if coins is None else coins.copy()
        own = tossed[here, :1].copy()
        tossed[here, 0] = 2.0  # above every rate
        return here, tossed, own

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return self._each(ids, lambda task, who, rows: task.prox(who, x[rows], rho))

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        return self.task.pair_value(x, y, uniform)

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        return self.task.pair_gradient(models, x, y, uniform)

    def evaluate(self, models: Array) -> dict[str, float]:
        return self.task.evaluate(models)

    def constants(self) -> Constants:
        return self.task.constants()

    def describe(self) -> Manifest:
        return {**self.task.describe(), "canary": self.of}

    def references(self) -> dict[str, float]:
        return self.task.references()


@dataclass(frozen=True, eq=False)
class World:
    """One pair of neighboring data sets and the direction in which they differ; `straight`: answers
    ignore models."""

    name: str
    data: Task
    direction: Array  # (d,) of unit length
    straight: bool


def worlds(
    mechanism: Mechanism | None,
    peers: int,
    of: int,
    dim: int,
    smoothness: float,
    task: Task | None = None,
) -> list[World]:
    """The worlds of an audit. With the experiment's task its records are one of them; without,
    `reacting` is."""
    if isinstance(mechanism, RandomizedResponse):
        return _answers(mechanism, peers, of, task)
    half, far = _reach(mechanism)
    diagonal = (
        np.full(dim, dim**-0.5) if mechanism is None or mechanism.norm == 2 else np.eye(dim)[-1]
    )
    comes = mechanism is not None and mechanism.adjacency == "add-remove"
    ends = Neighbors.opposite(peers, of, half, dim)
    if comes:  # a record of zeros and none at all are the same to a sum
        ends = Neighbors(np.zeros_like(ends.left), ends.right)
    found = [World("ends", ends, np.eye(dim)[0], True)]
    reacting = Reacting(_apart(peers, of, far * diagonal), smoothness, far, of if comes else None)
    if task is None or task.width == task.dim:
        found.append(World("reacting", reacting, diagonal, False))
    if task is not None:
        width = task.width
        along = (
            np.full(width, width**-0.5)
            if mechanism is None or mechanism.norm == 2
            else np.eye(width)[-1]
        )
        canary = replace(reacting, values=_apart(peers, of, far * along))
        found.append(World("records", Canary(task, of, canary), along, False))
    return found


def _answers(mechanism: RandomizedResponse, peers: int, of: int, task: Task | None) -> list[World]:
    """Values with a single 1: peer `of` tells the first or the last one."""
    first, last = np.eye(mechanism.values)[0], np.eye(mechanism.values)[-1]
    left = np.tile(first, (peers, 1))
    right = left.copy()
    right[_known(peers, of)] = last
    both, along = Neighbors(left, right), (last - first) / np.sqrt(2.0)
    if task is not None:
        return [World("records", Canary(task, of, both), along, False)]
    return [World("ends", both, along, True)]


def _apart(peers: int, of: int, center: Array) -> Neighbors:
    """Peer `of` on either side of zero, everybody else there."""
    right = np.zeros((peers, len(center)))
    right[_known(peers, of)] = center
    return Neighbors(-right, right)


def _reach(mechanism: Mechanism | None) -> tuple[float, float]:
    """How far from zero a release may lie, and how far canaries do: outside of the clip, where
    there is one."""
    if mechanism is None:
        return 1.0, FAR
    if mechanism.unclipped:
        raise ConfigError(
            "noise that clips nothing was measured for the answers of its own records, which no"
            " canary gives; audit one of its releases with audit_mechanism"
        )
    return mechanism.clip, FAR * mechanism.clip


def _known(peers: int, of: int) -> int:
    if not 0 <= of < peers:
        raise ConfigError(f"there is no peer {of} to audit: the peers are 0..{peers - 1}")
    return of
