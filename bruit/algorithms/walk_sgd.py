"""Walk SGD: a token carries the model from neighbor to neighbor, and whoever holds it takes one gradient step.

    x <- x - rate * (g_v(x) + noise)        v: the current holder; then the token goes to w with probability W[v, w]

Each peer contributes at most `cap` times and rests `rest` hops after a contribution; a silent visit adds the same
noise without a gradient, so that visits look alike.
Learns: the minimizer of sum_v pi_v f_v with pi the stationary law.  Shows: the token to whom it visits.
Spec: gossip:GO-4, DS-2, walk:RW-7, RW-14; arXiv:2402.07471, Algorithm 1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Door, Home, TaskDoor
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules import Walk
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.privacy.events import Exact, Mask
from bruit.privacy.network.theorem import Theorem
from bruit.privacy.network.walk import RealizedWalk
from bruit.tasks import Logistic, Records

CHUNK = 1 << 17  # numbers of noise drawn at once: they stay in cache


class State(NamedTuple):
    token: Array  # (n, d) the model as the peer last held it
    spent: Ints  # (n,) contributions so far
    latest: Ints  # (n,) hop of the last contribution


@dataclass(frozen=True)
class WalkSGD(Algorithm[State]):
    rate: float = 0.1
    cap: int | None = None
    rest: int = 1
    batch: int | None = None
    schedule: Walk = Walk()

    def __post_init__(self) -> None:
        if self.rest < 1 or (self.cap is not None and self.cap < 1):
            raise ConfigError(f"walk-sgd needs cap >= 1 and rest >= 1, found cap = {self.cap}, rest = {self.rest}")

    def start(self, home: Home) -> State:
        lanes = len(home.ids)
        return State(home.beginning(), np.zeros(lanes, np.int64), np.full(lanes, -(2**40), np.int64))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(state.token)

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        token = inbox.only()
        may = home.clock - state.latest >= self.rest
        if self.cap is not None:
            may &= state.spent < self.cap
        update = home.gradient(token, where=may, batch=self.batch)
        if home.sigma > 0:
            update = home.mask(update, home.sigma, where=~may)
        latest = np.where(may, home.clock, state.latest)
        return State(token - self.rate * update, state.spent + may, latest)

    def estimate(self, state: State) -> Array:
        return state.token

    def fused_walk(self, state: State, path: Ints, door: Door) -> State:
        """The path is drawn first: contributions, visit counts and addresses of noise are known ahead of the model."""
        from bruit.kernels.walk import contributions, logistic_steps

        private, task = self._fusible(door)
        mechanism = private.mechanism
        token, spent, latest = state.token.copy(), state.spent.copy(), state.latest.copy()
        may, step = contributions(path, spent, latest, -1 if self.cap is None else self.cap, self.rest)
        start, records = _eights(task.records)
        bound = np.inf if task.derivative_clip is None else task.derivative_clip
        clip, spacing = (np.inf, 0.0) if mechanism is None else (mechanism.clip, mechanism.spacing)
        x = token[path[0]].copy() if len(path) else token[0]
        hops = max(64, CHUNK // task.dim)
        for begin in range(0, len(path), hops):
            here = slice(begin, begin + hops)
            noise = _noise(private, path[here], step[here], may[here])
            bad = logistic_steps(path[here], may[here], noise, start, task.records.sizes, records, token, x, self.rate,
                                 task.l2, bound, clip, spacing)  # fmt: skip
            if bad >= 0:
                peer = path[begin + bad]
                raise ConfigError(f"the gradient of peer {peer} at hop {begin + bad} is not finite; lower the rate")
        _record(private, path, step, may)
        return State(token, spent, latest)

    def _fusible(self, door: Door) -> tuple[TaskDoor, Logistic]:
        """The door and task of a walk that is compiled; otherwise what stands in the way."""
        if not isinstance(door, TaskDoor) or not isinstance(door.task, Logistic):
            raise ConfigError("the fused walk is compiled for logistic tasks; run this one with Bulk()")
        if door.budget is not None:
            raise ConfigError("the fused walk does not look at a budget before each release; run this one with Bulk()")
        if self.batch is not None:
            raise ConfigError(f"the fused walk reads all records of a peer, found batch = {self.batch}; use Bulk()")
        if door.mechanism is not None and door.mechanism.norm != 2:
            raise ConfigError(f"the fused walk clips in L2, found the {door.mechanism.kind} mechanism; use Bulk()")
        return door, door.task

    def guarantees(self) -> tuple[Theorem, ...]:
        return (RealizedWalk(self.rate),)


def _noise(door: TaskDoor, path: Ints, step: Ints, may: Bools) -> Array:
    """The noise of every hop, at the addresses `Home` uses: a release is the first draw of a step, a mask the next."""
    noise = np.zeros((len(path), door.dim))
    if door.mechanism is None or door.sigma == 0:
        return noise
    if may.all():
        return door.mechanism.noise(door.dice, path, step, 0, door.dim, door.run)
    noise[may] = door.mechanism.noise(door.dice, path[may], step[may], 0, door.dim, door.run)
    noise[~may] = door.sigma * door.dice.normal("noise", path[~may], step[~may], 1, door.dim, door.run)
    return noise  # (hops, d)


def _record(door: TaskDoor, path: Ints, step: Ints, may: Bools) -> None:
    """The ledger lines of all hops: contributions first, then the silent ones if they carry noise."""
    clock, data = np.arange(len(path)), Exact() if door.mechanism is None else door.mechanism.event()
    if may.all():
        door.ledger.record(path, step, clock, data)
        return
    door.ledger.record(path[may], step[may], clock[may], data)
    if door.sigma > 0:
        door.ledger.record(path[~may], step[~may], clock[~may], Mask(float(door.sigma)))


def _eights(records: Records) -> tuple[Ints, Array]:
    """Every peer's records in blocks of eight, each multiplied by its label, as `logistic_steps` wants them."""
    counts = -(-records.sizes // 8)
    start = np.concatenate(([0], np.cumsum(counts)))
    signed = np.zeros((start[-1], records.columns, 8))
    for block in records.blocks:
        for begin in range(0, block.targets.shape[1], 8):
            rows, some = np.flatnonzero(counts[block.peers] > begin // 8), slice(begin, begin + 8)
            labeled = block.features[rows, some] * block.targets[rows, some, None]  # padding is zero and stays zero
            signed[start[block.peers[rows]] + begin // 8, :, : labeled.shape[1]] = labeled.swapaxes(1, 2)
    return start, signed  # (n + 1,), (blocks, d, 8)
