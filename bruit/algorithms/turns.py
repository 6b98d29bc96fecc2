"""Turns: how often a peer may read its data in one run, as a law, and how many turns are enough
with high probability.

The number of turns is fixed for rounds and rings, random where a token walks, clocks ring or
participants are drawn:

    a walk            a visit of the token; contributions are renewals, so P(N_u > K) is a sum of convolutions: exact
    wakes             N_u is Poisson with mean T
    meetings          N_u is Poisson with mean T times the rates of all clocks that lead to a meeting of u
    activations       N_u is binomial, one draw an activation, which all make together
    drawn members     N_u is binomial, one draw an iteration

`enough` is the least K for which the sum over peers of P(N_u > K) is at most 1 - sure: with
probability `sure` or more nobody has more than K turns. It speaks of the schedule as agreed on.
Somebody who is away, or who sends tokens of its own making, can bring a peer more turns: what holds
then is the budget at the door, not this number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.schedules.wakes.schedule import Wakes
from bruit.algorithms.schedules.walk.schedule import UNIFORM, Walk
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence

SURE = 0.999  # with this probability, or more, nobody has more turns than the noise is made for
LARGEST = 5e9  # products of numbers up to which the law of a walk is computed


class Turns(NamedTuple):
    """When an algorithm lets a peer read: at positions `begin` to `end` of a walk, `rest` hops
    after the last time or later, `cap` times at most. `draws` = (iterations, chance, members): who
    takes part is drawn in every iteration."""

    begin: int = 0
    end: int | None = None
    rest: int = 1
    cap: int | None = None
    draws: tuple[int, float, int] | None = None


class Enough(NamedTuple):
    """So many turns are enough, with this probability; 1.0 where the number is fixed. `law` says
    what is random."""

    turns: int
    sure: float
    law: str = ""


def enough(
    schedule: Schedule, graph: Graph | GraphSequence, steps: int, turns: Turns, sure: float = SURE
) -> Enough | None:
    """How many turns of a peer are enough; None where the schedule alone does not tell (rounds in
    which nobody is drawn: they are counted by running them)."""
    found = _enough(schedule, graph, steps, turns, 1.0 - sure, sure)
    if found is not None and turns.cap is not None and turns.cap <= found.turns:
        return Enough(turns.cap, 1.0)
    return found


def _enough(
    schedule: Schedule,
    graph: Graph | GraphSequence,
    steps: int,
    turns: Turns,
    rare: float,
    sure: float,
) -> Enough | None:
    if turns.draws is not None:
        return Enough(_least_binomial(*turns.draws, rare), sure, "who is drawn to take part")
    if not isinstance(graph, Graph):
        return None
    if isinstance(schedule, Walk):
        length = max(0, (steps if turns.end is None else turns.end) - turns.begin)
        if schedule.order == "ring":
            around = graph.n * -(-turns.rest // graph.n)
            return Enough(-(-length // around), 1.0)
        return Enough(_least_visits(schedule, graph, length, turns, rare), sure, "the random walk")
    if isinstance(schedule, Wakes | Pairs) and schedule.activations is not None:
        return Enough(_least_activations(schedule, graph, rare), sure, "the peers' timetable")
    if isinstance(schedule, Wakes):
        return Enough(
            _least_poisson(np.full(graph.n, float(steps)), rare), sure, "the peers' clocks"
        )
    if isinstance(schedule, Pairs):
        return Enough(
            _least_poisson(steps * meeting_rates(schedule, graph), rare), sure, "the peers' clocks"
        )
    return None


def _least_activations(schedule: Wakes | Pairs, graph: Graph, rare: float) -> int:
    """Of so many activations each has the same chance to be one of a given peer."""
    from scipy.special import bdtrc

    total = int(schedule.activations or 0)
    rates = meeting_rates(schedule, graph) if isinstance(schedule, Pairs) else np.ones(graph.n)
    chances = np.minimum(rates / graph.n, 1.0)
    return _least(
        lambda k: float(bdtrc(k, total, chances).sum()) if k < total else 0.0, total, rare
    )


def _least(excess: Callable[[int], float], most: int, rare: float) -> int:
    """The least whole number up to `most` whose excess probability, which falls, is at most
    `rare`."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if excess(middle) <= rare else (middle + 1, high)
    return low


def _least_binomial(iterations: int, chance: float, members: int, rare: float) -> int:
    from scipy.special import bdtrc

    return _least(
        lambda k: members * float(bdtrc(k, iterations, chance)) if k < iterations else 0.0,
        iterations,
        rare,
    )


def _least_poisson(means: Array, rare: float) -> int:
    from scipy.special import pdtrc

    most = int(means.max() + 64 * math.sqrt(means.max()) + 256)
    return _least(lambda k: float(pdtrc(k, means).sum()), most, rare)


def meeting_rates(pairs: Pairs, graph: Graph) -> Array:
    """How often each peer meets somebody in one unit of time, in the mean  # (n,)."""
    rates = np.ones(graph.n)
    if pairs.law == "edges":
        rates = np.asarray(graph.degrees * (graph.n / max(int(graph.degrees.sum()), 1)), np.float64)
    if graph.implicit:  # all peers are alike: whoever calls others is called as often
        around, weights = graph.row(0)
        active = float(weights[around != 0].sum()) if pairs.law == "weights" else 1.0
        return 2 * active * rates
    matrix = graph.weights
    rows = np.repeat(np.arange(graph.n), np.diff(matrix.indptr))
    off = matrix.indices != rows
    if pairs.law == "weights":
        chance = matrix.data * off
    else:
        chance = off / np.maximum(graph.degrees, 1)[rows]
    chance = chance * rates[rows]
    calls = np.bincount(rows, chance, graph.n) + np.bincount(matrix.indices, chance, graph.n)
    return np.asarray(calls, np.float64)


def _least_visits(walk: Walk, graph: Graph, length: int, turns: Turns, rare: float) -> int:
    """The least K with sum over peers of P(N_u > K) <= rare, for contributions of a random walk.

    With H the hop of the first contribution and R the hops between two of them, N_u > K is H + R_1
    + .. + R_K < length. The laws of sums are products of power series cut off at `length`, which is
    exact; powers are found by doubling.
    """
    if length <= 0:
        return 0
    first, between, weights = _laws(walk, graph, length, turns)

    def excess(law: Array) -> float:
        return float(weights @ law.sum(axis=1))

    if excess(first) <= rare:
        return 0
    powers = [between]
    while excess(_product(first, powers[-1])) > rare:
        powers.append(_product(powers[-1], powers[-1]))
    found, now = 0, first
    for place in reversed(range(len(powers))):
        further = _product(now, powers[place])
        if excess(further) > rare:
            found, now = found + 2**place, further
    return found + 1


def _product(a: Array, b: Array) -> Array:
    """Rows of power series multiplied, cut off at their length."""
    length = a.shape[1]
    size = 1 << (2 * length - 1).bit_length()
    whole = np.fft.irfft(np.fft.rfft(a, size, axis=1) * np.fft.rfft(b, size, axis=1), size, axis=1)
    return np.asarray(np.maximum(whole[:, :length], 0.0))


def _laws(walk: Walk, graph: Graph, length: int, turns: Turns) -> tuple[Array, Array, Array]:
    """By kind of peer: the law of the hop of its first contribution after `begin`, of the hops
    between two, and how many such peers there are  # (kinds, length), (kinds, length), (kinds,)."""
    n = graph.n
    if graph.alike:  # every hop is to a peer drawn uniformly
        here = np.arange(length)
        drawn = np.asarray((1 / n) * (1 - 1 / n) ** here, np.float64)
        between = np.where(
            here >= turns.rest, (1 / n) * (1 - 1 / n) ** np.maximum(here - turns.rest, 0), 0.0
        )
        if walk.first == UNIFORM or turns.begin:
            return drawn[None], between[None], np.array([float(n)])
        known = np.where(here == 0, 1.0, 0.0)
        others = np.concatenate((np.zeros(1), drawn[:-1]))
        return np.stack((known, others)), np.stack((between, between)), np.array([1.0, n - 1.0])
    if float(n) * graph.weights.nnz * (length + turns.begin + turns.rest) > LARGEST:
        raise ConfigError(
            f"how often a walk of {length} hops on {graph.name} visits a peer takes too long to"
            " compute; say the noise by privacy.sigma, and give sites a [budget]"
        )
    back: Any = graph.weights.T.tocsr()
    place = (
        np.full((n, 1), 1 / n)
        if walk.first == UNIFORM
        else (np.arange(n) == int(walk.first))[:, None] * 1.0
    )
    for _ in range(turns.begin):
        place = back @ place
    start = np.broadcast_to(
        np.asarray(place), (n, n)
    ).copy()  # column u: where the token is, if u has not been visited
    again = np.eye(n)
    for _ in range(min(turns.rest, length)):
        again = np.asarray(back @ again)
    between = np.zeros((n, length))
    between[:, turns.rest :] = _arrivals(back, again, max(0, length - turns.rest))
    return _arrivals(back, start, length), between, np.ones(n)


def _arrivals(back: Any, place: Array, length: int) -> Array:
    """When the token of column u is first at u, by hop; what has arrived is taken out  # (n,
    length)."""
    found = np.zeros((len(place), length))
    for hop in range(length):
        found[:, hop] = np.diagonal(place)
        np.fill_diagonal(place, 0.0)
        if hop + 1 < length:
            place = np.asarray(back @ place)
    return found
