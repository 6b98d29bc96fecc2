"""Points that neighbors pass on: what gossip over pairs of points shares (perso:PAIR-2 to PAIR-9).

Every peer keeps the point it released at the start and holds another one, which wanders: when two
peers meet they swap what they hold. A held point carries the number of the peer it came from, which
is public, so that nobody pairs a point with itself: h(x, x) = 0 by hand, since a corrected h would
not vanish there (perso:PAIR-10).

Synchronous algorithms exchange on one public edge a round, drawn for all by `home.common`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bruit.algorithms.door import Door
from bruit.algorithms.home import Home
from bruit.algorithms.messages import Edges, Inbox, Message
from bruit.algorithms.schedules.pairs.schedule import Pairs
from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence

CHUNK = 1 << 21  # numbers of points gathered at once by the compiled paths


class Public(NamedTuple):
    edges: Ints  # (E, 2) the edges a public draw chooses from
    peers: int


class Passing(NamedTuple):
    """One point on its way: the numbers shown by its owner, and who that is."""

    point: Array  # (n, w)
    origin: Ints  # (n,)


def public(graph: Graph | GraphSequence, name: str) -> Public:
    """The edges and the number of peers."""
    known = fixed(graph, name)
    return Public(known.edges(), known.n)


def fixed(graph: Graph | GraphSequence, name: str) -> Graph:
    """A graph on which points get everywhere; others are refused."""
    if not isinstance(graph, Graph):
        raise ConfigError(f"{name} needs one fixed graph, found the sequence {graph.name}")
    if graph.edge_count < 2 or not graph.is_connected():
        found = f"{graph.edge_count} edge" if graph.edge_count < 2 else "parts that never meet"
        raise ConfigError(
            f"{name} needs a connected graph of at least two edges, found {graph.name} with"
            f" {found}: points would never get everywhere (perso:PAIR-3)"
        )
    return graph


def partners(edges: Ints, draws: Array, ids: Ints) -> Ints:
    """With whom each lane swaps when the uniform draws, one a lane, choose an edge; -1 for
    nobody."""
    chosen = edges[drawn_edges(edges, draws)]
    return np.where(
        chosen[:, 0] == ids, chosen[:, 1], np.where(chosen[:, 1] == ids, chosen[:, 0], -1)
    )


def drawn_edges(edges: Ints, draws: Array) -> Ints:
    """The number of the edge each uniform draw means."""
    return np.minimum((draws * len(edges)).astype(np.int64), len(edges) - 1)


def tell(edges: Edges, points: list[tuple[Ints, Array]]) -> Message:
    """Rows for one partner each: a copy to anybody else holds zeros; several partners, several
    groups of columns."""
    lanes = np.repeat(np.arange(len(edges.ids)), np.diff(edges.start))
    copies = [
        np.where((edges.peers == partner[lanes])[:, None], rows[lanes], 0.0)
        for partner, rows in points
    ]
    return Message(np.concatenate(copies, axis=1), each=True)


def from_partner(inbox: Inbox, partner: Ints, columns: slice) -> tuple[Bools, Array]:
    """Whether each lane heard its partner (links may be down), and the columns it was told; zeros
    if not."""
    lanes = np.repeat(np.arange(len(partner)), np.diff(inbox.links.start))
    copies = inbox.copies()[:, columns]
    hits = np.flatnonzero(inbox.senders == partner[lanes])
    met, rows = np.zeros(len(partner), bool), np.zeros((len(partner), copies.shape[1]))
    met[lanes[hits]], rows[lanes[hits]] = True, copies[hits]
    return met, rows


def packed(held: Passing, *more: Array) -> Array:
    """One row a lane: what else is told, the point, where it came from."""
    return np.concatenate((*more, held.point, held.origin[:, None].astype(np.float64)), axis=1)


def swapped(held: Passing, rows: Array, met: Bools | None = None) -> Passing:
    """What the lanes hold after hearing `packed` rows, those that met somebody."""
    width = held.point.shape[1]
    point, origin = rows[:, -1 - width : -1], rows[:, -1].astype(np.int64)
    if met is None:
        return Passing(point, origin)
    return Passing(np.where(met[:, None], point, held.point), np.where(met, origin, held.origin))


def between(home: Home, first: Passing, second: Passing) -> Array:
    """n / (n - 1) h of the two points of each lane, 0 for a point with itself: classical
    U-statistics on average."""
    peers = home.public.peers
    apart = (first.origin != second.origin)[:, None]
    return np.where(apart, home.pair_value(first.point, second.point) * (peers / (peers - 1)), 0.0)


def between_peers(door: Door, points: Array, first: Ints, second: Ints) -> Array:
    """`between` for points named by their owners, in chunks  # (k, dim)."""
    found, peers = np.zeros((len(first), door.dim)), len(points)
    step = max(1, CHUNK // points.shape[1])
    for begin in range(0, len(first), step):
        a, b = first[begin : begin + step], second[begin : begin + step]
        values = door.pair_value(points[a], points[b]) * (peers / (peers - 1))
        found[begin : begin + step] = np.where((a != b)[:, None], values, 0.0)
    return found


def activity(schedule: Pairs, graph: Graph) -> Array:
    """p_k, the chance that peer k takes part in a meeting; they sum to 2 (perso:PAIR-4)  # (n,)."""
    law, ends = schedule.entries(graph)
    chance = np.diff(law, prepend=0.0)
    meet = ends[:, 0] != ends[:, 1]
    taking = sum(np.bincount(ends[meet, side], chance[meet], graph.n) for side in (0, 1))
    return np.asarray(taking * (2.0 / np.sum(taking)))


def slope_between(home: Home, models: Array, first: Passing, second: Passing) -> Array:
    """The gradient of the task's loss of the two points of each lane, 0 for a point with itself
    # (lanes, dim)."""
    apart = (first.origin != second.origin)[:, None]
    return np.where(apart, home.pair_gradient(models, first.point, second.point), 0.0)
