"""Graphs written out: links with their weights, and rounds of meetings, in each of which some pairs
exchange, weights 1/2, and everybody else rests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bruit.errors import ConfigError
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import from_edges, from_matrix
from bruit.graphs.sequence import ListedGraphs

Round = Sequence[tuple[int, int]]


def of_meetings(rounds: Sequence[Round], n: int | None = None) -> ListedGraphs:
    """A graph a round, whose links are the meetings of that round; no peer is in two of them.
    `n` peers: as many as are named, if left out.

    >>> of_meetings([[(0, 1), (2, 3)], [(0, 2)]]).name
    'meetings:0-1+2-3/0-2'
    """
    if not rounds:
        raise ConfigError("rounds of meetings need at least one round")
    named = max((max(pair) for pairs in rounds for pair in pairs), default=-1) + 1
    peers = named if n is None else n
    if peers < max(named, 1):
        raise ConfigError(f"peer {named - 1} meets somebody, and there are {peers} peers")
    text = "/".join("+".join(f"{a}-{b}" for a, b in pairs) for pairs in rounds)
    name = f"meetings:{text}" + ("" if peers == named else f",peers={peers}")
    graphs = []
    for number, pairs in enumerate(rounds):
        ends = [u for pair in pairs for u in pair]
        if len(set(ends)) < len(ends):
            twice = next(u for u in ends if ends.count(u) > 1)
            raise ConfigError(
                f"peer {twice} is in two meetings of round {number}; a peer is in one"
            )
        graphs.append(from_edges(peers, list(pairs), name=f"{name}@{number}"))
    return ListedGraphs(tuple(graphs), peers, name)


def of_links(links: Sequence[tuple[int, int, float]], n: int | None = None) -> Graph:
    """Links with their mixing weights; everybody keeps the rest of its own. `n` peers: as many as are
    named, if left out.

    >>> of_links([(0, 1, 0.25), (1, 2, 0.5)]).name
    'links:0-1=0.25/1-2=0.5'
    """
    named = max((max(a, b) for a, b, _ in links), default=-1) + 1
    peers = named if n is None else n
    if peers < max(named, 1):
        raise ConfigError(f"peer {named - 1} has a link, and there are {peers} peers")
    matrix = np.zeros((peers, peers))
    for a, b, weight in links:
        if a == b or matrix[a, b] or not weight > 0:
            raise ConfigError(
                f"{a}-{b}={weight:g}: a link joins two peers, once, by a weight above 0"
            )
        matrix[a, b] = matrix[b, a] = weight
    matrix[np.diag_indices(peers)] = 1 - matrix.sum(axis=1)
    text = "/".join(f"{a}-{b}={float(weight)!r}" for a, b, weight in links)
    return from_matrix(matrix, name=f"links:{text}" + ("" if peers == named else f",peers={peers}"))


def read_meetings(text: str) -> list[list[tuple[int, int]]]:
    """Rounds from their text.

    >>> read_meetings("0-1+2-3//0-2")
    [[(0, 1), (2, 3)], [], [(0, 2)]]
    """
    rounds = [part.split("+") if part.strip() else [] for part in text.split("/")]
    return [[_pair(pair, "a round is pairs of peers, 0-1+2-3") for pair in one] for one in rounds]


def read_links(text: str) -> list[tuple[int, int, float]]:
    """Links from their text.

    >>> read_links("0-1=0.25/1-2=0.5")
    [(0, 1, 0.25), (1, 2, 0.5)]
    """
    wanted, found = "a link has a weight, 0-1=0.25", []
    for part in text.split("/"):
        ends, _, weight = part.partition("=")
        try:
            found.append((*_pair(ends, wanted), float(weight)))
        except ValueError:
            raise ConfigError(f"{wanted}, found {part!r}") from None
    return found


def _pair(text: str, wanted: str) -> tuple[int, int]:
    ends = text.strip().split("-")
    if len(ends) != 2 or not all(end.isdecimal() for end in ends):
        raise ConfigError(f"{wanted}, found {text!r}")
    return int(ends[0]), int(ends[1])
