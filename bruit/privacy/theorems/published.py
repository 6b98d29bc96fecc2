"""The printed pairwise losses of Muffliato, in rounds and by meetings. NOT A GUARANTEE: kept to
reproduce figures and to compare.

The printed theorem adds up the divergences of the single messages, although all of them carry the
same noise; the sum is no upper bound of what they tell together. Path 0-1-2 after two steps:
printed 1/3 for peer 2 in the view of 0, true 1. For a bound that holds see
bruit.privacy.exact.krylov. (Cyffers, Even, Bellet, Massoulie, Muffliato, arXiv:2206.05091;
gossip:MUF-1, MUF-5.)

Given the meetings of randomized Muffliato it is (Theorem 6.4; gossip:MUF-7)

    m_uv = sum over the meetings of v, at which w tells x_w = sum_u B_wu (x_u + noise_u), of B_wu^2 / ||B_w||^2

with B the product of the pair averages so far. An example: path 0-1-2, meetings {0, 1}, {1, 2},
{0, 1}. For peer 2 in the view of 0 it says 2/3. The truth is 1, since 0 knows by then what 1 and
itself put in. For a bound that holds see bruit.privacy.theorems.meetings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.privacy.exact import (
    GraphAt,
    checked_observers,
    checked_steps,
    meeting_rows,
    sequence_rows,
)
from bruit.privacy.guarantee import Hypothesis, Status
from bruit.privacy.question import Peers
from bruit.privacy.theorem import STANDING, Facts, Theorem, one_release
from bruit.privacy.theorems.meetings import KNOWN

if TYPE_CHECKING:
    from bruit.graphs.graph import Graph, Weights

COLUMNS = 64
"""Columns of W^t advanced together: the working set stays in cache."""


def published_pairwise(graph: "Graph", steps: int) -> Array:
    """NOT A GUARANTEE. m[u, v] = sum over t < T, w in N(v) of (W^t)_{w,u}^2 / ||(W^t)_{w,.}||^2; nan on the diagonal.

    Not clipped: neighbors often exceed 1, where local DP is better. Column w of W^t needs only
    column w, so blocks of columns are streamed; on a graph with a translation group one observer
    tells all. W is symmetric.
    """
    checked_steps(steps)
    n = graph.n
    if steps == 0:
        m = np.zeros((n, n))
    elif graph.group is not None:
        one = _sums(graph.weights, steps, graph.neighbors(0)).sum(axis=1)
        m = np.stack([one[graph.translate(v)] for v in range(n)], axis=1)
    else:
        adjacency = graph.weights.copy()
        adjacency.data = np.ones_like(adjacency.data)
        adjacency.setdiag(0.0)
        m = np.ascontiguousarray((adjacency @ _sums(graph.weights, steps, np.arange(n)).T).T)
    np.fill_diagonal(m, np.nan)
    return m


def _sums(weights: "Weights", steps: int, senders: Ints) -> Array:
    """sum over t < T of (W^t)_{u,w}^2 / ||(W^t)_{.,w}||^2 for some w  # (n, senders)."""
    shares = np.zeros((int(weights.shape[0]), senders.size))
    for first in range(0, senders.size, COLUMNS):
        chosen = senders[first : first + COLUMNS]
        block = np.zeros((shares.shape[0], chosen.size))
        block[chosen, np.arange(chosen.size)] = 1.0
        for t in range(steps):
            squares = block * block
            shares[:, first : first + chosen.size] += squares / squares.sum(axis=0)
            if t + 1 < steps:
                block = np.asarray(weights @ block)
    return shares


def published_rows(messages: Array) -> Array:
    """NOT A GUARANTEE. The printed sum for the messages of any sequence: squared entries over
    squared row norms.

    messages are the rows received from others, e.g. `sequence_rows(...).messages`; the observers'
    own entries are included.
    """
    rows = np.asarray(messages, dtype=np.float64)
    if rows.ndim != 2:
        raise ConfigError(
            f"the messages have shape {rows.shape}; give one row per message and one column per "
            f"peer"
        )
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if (norms == 0.0).any():
        raise ConfigError(
            f"message {int(np.argmin(norms))} is all zero; remove messages that carry nothing"
        )
    return np.asarray(((rows / norms) ** 2).sum(axis=0))


def published_losses(graphs: GraphAt, n: int, steps: int, observers: Sequence[int] | Ints) -> Array:
    """NOT A GUARANTEE. The printed sum on a public sequence of graphs, for one or several observers
    (gossip:MUF-10)."""
    return published_rows(sequence_rows(graphs, n, steps, observers).messages)


def published_group(
    graphs: GraphAt,
    n: int,
    steps: int,
    observers: Sequence[int] | Ints,
    group: Sequence[int] | Ints,
) -> float:
    """NOT A GUARANTEE. The printed group loss, a plain sum: it misses that members may move alike
    (gossip:MUF-12).

    Star of 6, leaf 1 observes three steps, group {2, 3, 4, 5}: printed 1.333, true 4.
    """
    return float(
        published_losses(graphs, n, steps, observers)[
            np.unique(np.asarray(group, dtype=np.int64))
        ].sum()
    )


def published_walk(graph: "Graph", observer: int, steps: int) -> Array:
    """NOT A GUARANTEE. n max_{w in N(v)} W_{vw}^-2 sum_{t=1..T} (W^t)_{uv}^2 for all u
    (gossip:MUF-5)."""
    v = int(checked_observers(graph.n, [observer])[0])
    neighbors = graph.neighbors(v)
    if neighbors.size == 0:
        return np.zeros(graph.n)
    row = graph.weights[[v]].toarray()[0]
    column = np.zeros(graph.n)
    column[v] = 1.0
    total = np.zeros(graph.n)
    for _ in range(checked_steps(steps)):
        column = np.asarray(graph.weights @ column)
        total += column**2
    return graph.n * float(row[neighbors].min()) ** -2 * total


def source_6_4(n: int, a: Ints, b: Ints, seen_by: Peers) -> Array:
    """NOT A GUARANTEE. The printed sum over the meetings {a_t, b_t}, in order, for all peers
    # (n,).

    >>> source_6_4(3, np.array([0, 1, 0]), np.array([1, 2, 1]), 0)[1:].round(6).tolist()
    [1.166667, 0.666667]
    """
    return published_rows(meeting_rows(n, a, b, np.atleast_1d(seen_by)).messages)


@dataclass(frozen=True)
class PublishedMeetings(Theorem):
    """Theorem 6.4 for the meetings that happened: NOT a bound."""

    title: ClassVar[str] = "the printed loss of randomized Muffliato, which is not a guarantee"
    spec: ClassVar[str] = "gossip:MUF-7 printed"
    status: ClassVar[Status] = "published"
    about: tuple[str, ...] = field(default=("pair-averaging",), kw_only=True)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        return (one_release(facts), KNOWN, *STANDING)

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        return source_6_4(facts.n, facts.meetings.a, facts.meetings.b, observers)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ("not a guarantee: messages that share noise are added up as if each had its own",)
