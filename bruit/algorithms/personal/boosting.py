"""Boosting: everyone combines given base predictors, one more at each step, and stays close to its
neighbors.

    g = d_u c_u gradient_u + coupling (d_u x_u - sum_v w_uv x_v),    k = argmax |g_k|,    s = -radius sign(g_k) e_k
    x_u <- (1 - t) x_u + t s,    t = 2 / (2 + own steps)                                        (Frank-Wolfe)

A message is not a model: it says which predictor was taken and with which sign, and neighbors
rebuild the model, whose steps are public. It repeats the last `memory` choices, so that one unread
or lost is made good; if more are missing, what the copy lacks fades with the steps that follow, as
(missed step / step)^2. Among K predictors a choice takes ceil(log2(2 K + 1)) bits, so a message is
ceil(memory log2(2 K + 1) / 8) bytes and the number of steps, 8 bytes.
Learns: the minimizer of sum_u d_u c_u f_u(x_u) + (coupling/2) sum_{u<v} w_uv |x_u - x_v|^2 over |x_u|_1 <= radius.
Shows: its last choices, to each neighbor.
Spec: perso:PERSO-6; Zantedeschi, Bellet and Tommasi 2020, arXiv:1901.08460.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message, Slots
from bruit.algorithms.personal.neighborhood import Standing, around, standing
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.arrays import Array, Ints
from bruit.domains import chance, counts, nonnegative, positive
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence

Packed = NDArray[np.uint8]
LONGEST = 2**53  # steps that a peer may claim to have made: a float holds them exactly


class Choices(NamedTuple):
    """What a peer says: its last choices, the latest first, bit by bit, and how many it made."""

    packed: Packed  # (n, bytes)
    steps: Ints  # (n,)


def pack(taken: Ints, predictors: int) -> Packed:
    """Choices -K..K as bits, one after the other: predictor k with sign s is s (k + 1), 0 is no
    choice yet."""
    width = (2 * predictors).bit_length()
    bits = (taken + predictors)[:, :, None] >> np.arange(width) & 1
    return np.packbits(bits.astype(np.uint8).reshape(len(taken), -1), axis=1)


def unpack(packed: Packed, predictors: int, memory: int) -> Ints:
    """The choices again; what no honest peer packs becomes the last predictor  # (n, memory)."""
    width = (2 * predictors).bit_length()
    bits = np.unpackbits(packed, axis=1, count=memory * width).reshape(len(packed), memory, width)
    codes: Ints = bits.astype(np.int64) @ (1 << np.arange(width))
    return np.minimum(codes, 2 * predictors) - predictors


class State(NamedTuple):
    model: Array  # (n, d)
    # (n, memory) predictor k with sign s is s (k + 1), the latest first; 0 is no choice yet
    taken: Ints
    steps: Ints  # (n,)
    copy: Slots  # (copies, d) the models of the neighbors, rebuilt
    heard: Slots  # (copies, 1) how many of their steps are in it


@dataclass(frozen=True)
class Boosting(Algorithm[State]):
    asks: ClassVar[str | None] = "gradients from zero on"
    coupling: float = 1.0
    radius: float = 1.0
    memory: int = 8
    confidences: tuple[float, ...] | None = None
    schedule: Wakes = Wakes()

    def __post_init__(self) -> None:
        nonnegative(self, "coupling")
        positive(self, "radius")
        counts(self, "memory")
        chance(self, "confidences")

    def prepare(self, graph: Graph | GraphSequence, horizon: int) -> Standing:
        return standing(self.confidences, None, graph)

    def start(self, home: Home) -> State:
        lanes = len(home.ids)
        if home.beginning().any():
            raise ConfigError(
                "boosting begins where neighbors know each other's models: at zero;"
                " carry 'nothing', and leave start out"
            )
        none = np.zeros((lanes, self.memory), np.int64)
        return State(home.zeros(), none, np.zeros(lanes, np.int64), home.slots(), home.slots(1))

    def emit(self, state: State, edges: Edges) -> Message:
        return edges.broadcast(Choices(pack(state.taken, state.model.shape[1]), state.steps))

    def absorb(self, state: State, inbox: Inbox, home: Home) -> State:
        copy, heard = self._rebuild(state, inbox)
        near = around(Inbox(inbox.links, copy.rows, True, None), copy.rows)
        copy, heard = state.copy.with_those(copy), state.heard.with_those(heard)
        trust = home.public.confidence[home.ids]
        slope = trust[:, None] * home.gradient(state.model, where=trust > 0) + self.coupling * (
            state.model - near
        )
        best, lanes = np.abs(slope).argmax(axis=1), np.arange(len(home.ids))
        sign = np.where(slope[lanes, best] > 0, -1, 1)
        steps = state.steps + 1
        model = state.model.copy()
        self._step(model, sign * (best + 1), steps)
        taken = np.concatenate(((sign * (best + 1))[:, None], state.taken[:, :-1]), axis=1)
        return State(model, taken, steps, copy, heard)

    def _step(self, models: Array, choice: Ints, steps: Ints) -> None:
        """One step of each model toward its chosen corner of the ball, in place."""
        length = 2.0 / (steps + 2.0)
        models *= (1 - length)[:, None]
        models[np.arange(len(models)), np.abs(choice) - 1] += length * self.radius * np.sign(choice)

    def _rebuild(self, state: State, inbox: Inbox) -> tuple[Slots, Slots]:
        """The models of the neighbors that were heard, brought up to what they said last."""
        received, edges = inbox.rows, inbox.links.edges
        known_models, known_steps = state.copy.on(edges), state.heard.on(edges)
        packed = cast(Packed, inbox.copies(received.packed))
        taken = unpack(packed, state.model.shape[1], self.memory)
        steps = np.clip(inbox.copies(received.steps).astype(np.int64), 0, LONGEST)
        models, known = known_models.rows.copy(), known_steps.rows[:, 0].astype(np.int64)
        reach = np.maximum(
            known, steps - self.memory
        )  # steps before this one are told no more: only their length is
        models *= ((known + 1.0) * (known + 2.0) / ((reach + 1.0) * (reach + 2.0)))[:, None]
        missing = steps - reach
        for back in reversed(range(int(missing.max(initial=0)))):
            rows = np.flatnonzero(missing > back)
            fresh = models[rows]
            self._step(fresh, taken[rows, back], steps[rows] - back)
            models[rows] = fresh
        newest = np.maximum(known, steps).astype(np.float64)[:, None]
        return known_models.replace(models), known_steps.replace(newest)

    def estimate(self, state: State) -> Array:
        return state.model
