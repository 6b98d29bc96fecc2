"""Graph families with a formula, and three classics; the random ones are here too, from
`random_families`."""

from __future__ import annotations

import math

import numpy as np

from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.graphs.everybody import Complete
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import complete_rule, from_edges, from_networkx
from bruit.graphs.random_families import (
    barabasi_albert,
    erdos_renyi,
    geometric,
    k_out,
    regular,
    stochastic_blocks,
    watts_strogatz,
)

__all__ = [
    "barabasi_albert",
    "complete",
    "erdos_renyi",
    "exponential",
    "florentine",
    "geometric",
    "grid",
    "hypercube",
    "k_out",
    "karate",
    "path",
    "regular",
    "ring",
    "southern_women",
    "star",
    "stochastic_blocks",
    "torus",
    "tree",
    "watts_strogatz",
]


def path(n: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """A line: i ~ i + 1."""
    _check_size("path", n)
    first = np.arange(n - 1)
    return from_edges(
        n, np.stack([first, first + 1], axis=1), kind=kind, plus=plus, name=f"path:{n}"
    )


def ring(n: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """A circle: i ~ i + 1 mod n."""
    _check_size("ring", n)
    return from_edges(n, _circulant(n, [1]), kind=kind, plus=plus, name=f"ring:{n}", group=(n,))


def star(n: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """Peer 0 in the middle, 1..n-1 around it."""
    _check_size("star", n)
    leaves = np.arange(1, n)
    return from_edges(
        n, np.stack([np.zeros_like(leaves), leaves], axis=1), kind=kind, plus=plus, name=f"star:{n}"
    )


def complete(n: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """Everybody with everybody; with plus = 1 the weights are 1/n, so one step averages exactly."""
    _check_size("complete", n)
    if n > 20_000:
        raise ConfigError(
            f"complete:{n} has {n * (n - 1) // 2:,} links; beyond 20000 peers use a sparse graph,"
            f" such as regular:{n},degree=6"
        )
    denominator, options = complete_rule(n, kind, plus)
    return Complete(
        n=n, denominator=denominator, kind=kind, plus=plus, name=f"complete:{n}{options}"
    )


def grid(*sides: int, kind: str = "max", plus: int = 1) -> Graph:
    """A box of any dimension; in two, peer (i, j) of grid(a, b) has index i b + j."""
    name = _check_sides("grid", sides)
    cells = np.arange(math.prod(sides)).reshape(sides)
    steps = [
        np.stack(
            [np.moveaxis(cells, axis, 0)[:-1].ravel(), np.moveaxis(cells, axis, 0)[1:].ravel()],
            axis=1,
        )
        for axis in range(len(sides))
    ]
    return from_edges(cells.size, np.concatenate(steps), kind=kind, plus=plus, name=name)


def torus(*sides: int, kind: str = "max", plus: int = 1) -> Graph:
    """A grid closed on itself along every dimension, indexed as the grid."""
    name = _check_sides("torus", sides)
    cells = np.arange(math.prod(sides)).reshape(sides)
    steps = [
        np.stack([cells.ravel(), np.roll(cells, -1, axis).ravel()], axis=1)
        for axis, side in enumerate(sides)
        if side > 1
    ]
    edges = np.concatenate(steps) if steps else np.zeros((0, 2), dtype=np.int64)
    return from_edges(cells.size, edges, kind=kind, plus=plus, name=name, group=tuple(sides))


def hypercube(m: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """2^m peers, i ~ i xor 2^b."""
    if not 0 <= m <= 26:
        raise ConfigError(f"hypercube:m has 2^m peers with m between 0 and 26, found m = {m}")
    peers = np.arange(2**m)
    steps = [
        np.stack([low, low | 1 << b], axis=1)
        for b in range(m)
        for low in [peers[peers >> b & 1 == 0]]
    ]
    edges = np.concatenate(steps) if steps else np.zeros((0, 2), dtype=np.int64)
    return from_edges(2**m, edges, kind=kind, plus=plus, name=f"hypercube:{m}", group=(2,) * m)


def exponential(n: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """The circulant with offsets +-2^k < n: every peer reaches every other in about log2(n)
    hops."""
    _check_size("exponential", n)
    offsets = [1 << k for k in range(n.bit_length()) if 1 << k < n]
    return from_edges(
        n, _circulant(n, offsets), kind=kind, plus=plus, name=f"exponential:{n}", group=(n,)
    )


def tree(n: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """A balanced binary tree: the parent of i is (i - 1) // 2."""
    _check_size("tree", n)
    child = np.arange(1, n)
    return from_edges(
        n, np.stack([(child - 1) // 2, child], axis=1), kind=kind, plus=plus, name=f"tree:{n}"
    )


def florentine(*, kind: str = "max", plus: int = 1) -> Graph:
    """Marriages among 15 Florentine families, 20 edges (Padgett)."""
    import networkx as nx

    return from_networkx(nx.florentine_families_graph(), kind=kind, plus=plus, name="florentine")


def karate(*, kind: str = "max", plus: int = 1) -> Graph:
    """Zachary's karate club, unweighted: 34 peers, 78 edges."""
    import networkx as nx

    return from_networkx(nx.karate_club_graph(), kind=kind, plus=plus, name="karate")


def southern_women(*, kind: str = "max", plus: int = 1) -> Graph:
    """Davis's 18 women and the 14 events they attended: 32 peers, 89 edges, bipartite."""
    import networkx as nx

    return from_networkx(nx.davis_southern_women_graph(), kind=kind, plus=plus, name="women")


def _circulant(n: int, offsets: list[int]) -> Ints:
    """Edges i ~ i + offset mod n, without the loops of n = 1."""
    peers = np.arange(n)
    if n == 1:
        return np.zeros((0, 2), dtype=np.int64)
    return np.concatenate([np.stack([peers, (peers + offset) % n], axis=1) for offset in offsets])


def _check_size(family: str, n: int) -> None:
    if n < 1:
        raise ConfigError(f"{family} needs at least one peer, found n = {n}")


def _check_sides(family: str, sides: tuple[int, ...]) -> str:
    name = f"{family}:" + "x".join(map(str, sides))
    if not sides or min(sides) < 1:
        raise ConfigError(f"{name}: every side must be at least 1, as in {family}:4x5")
    return name
