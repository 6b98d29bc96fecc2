"""Graphs with much symmetry: few different eigenvalues, so that what one observer can ever hear is
little (gossip:MUF-X5)."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from bruit.errors import ConfigError
from bruit.graphs.families import ring
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import from_edges

MOST = 20_000  # peers of one of these graphs
MOORE = {2: 5, 3: 10, 7: 50}  # degree and peers; one of degree 57 may exist, nobody knows


def hamming(digits: int, letters: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """Words of so many digits over so many letters, one letter apart: digits + 1 eigenvalues."""
    return _words("hamming", (letters,) * digits, f"{digits}x{letters}", kind, plus)


def rook(rows: int, columns: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """The moves of a rook: same row or same column; strongly regular on a square board."""
    return _words("rook", (rows, columns), f"{rows}x{columns}", kind, plus)


def _words(family: str, sides: tuple[int, ...], size: str, kind: str, plus: int) -> Graph:
    n = int(np.prod(sides, dtype=object)) if sides else 0
    if not sides or min(sides) < 2 or n > MOST:
        raise ConfigError(f"{family}:{size} needs two letters or more, and {MOST} peers at most")
    cells = np.arange(n).reshape(sides)
    edges = [
        np.stack([np.take(cells, a, axis).ravel(), np.take(cells, b, axis).ravel()], axis=1)
        for axis, side in enumerate(sides)
        for a, b in combinations(range(side), 2)
    ]
    name = f"{family}:{size}"
    return from_edges(n, np.concatenate(edges), kind=kind, plus=plus, name=name, group=sides)


def paley(n: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """Peers of a prime number n = 1 mod 4, linked if they differ by a square: three
    eigenvalues."""
    prime = n > 2 and all(n % k for k in range(2, int(n**0.5) + 1))
    if not prime or n % 4 != 1 or n > MOST:
        raise ConfigError(
            f"paley:{n} needs a prime number of peers that is 1 more than a multiple of 4, such as"
            " 13, 29, 37, 61, 101"
        )
    squares = sorted({k * k % n for k in range(1, n)})
    peers = np.arange(n)
    edges = np.concatenate([np.stack([peers, (peers + s) % n], axis=1) for s in squares])
    return from_edges(n, edges, kind=kind, plus=plus, name=f"paley:{n}", group=(n,))


def kneser(points: int, chosen: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """Sets of so many chosen of some points, linked if they share none: chosen + 1 eigenvalues.
    kneser:5x2 is the Petersen graph."""
    if not (0 < 2 * chosen < points and comb(points, chosen) <= 2000):
        raise ConfigError(
            f"kneser:{points}x{chosen} needs more than twice as many points as are chosen, and at"
            " most 2000 sets of them"
        )
    sets = [frozenset(some) for some in combinations(range(points), chosen)]
    edges = [(i, j) for i, j in combinations(range(len(sets)), 2) if not sets[i] & sets[j]]
    return from_edges(len(sets), edges, kind=kind, plus=plus, name=f"kneser:{points}x{chosen}")


def moore(degree: int, *, kind: str = "max", plus: int = 1) -> Graph:
    """As many peers as a degree allows when everybody is two steps from everybody: degree**2 + 1,
    the ring of 5, Petersen's graph, and that of Hoffman and Singleton (degree 7)."""
    if degree not in MOORE:
        raise ConfigError(
            f"no such graph has degree {degree}: there are those of degree 2, 3 and 7, and perhaps"
            " one of degree 57"
        )
    if degree == 2:
        edges = ring(5).edges()
    elif degree == 3:
        edges = kneser(5, 2).edges()
    else:
        edges = np.array(_hoffman_singleton())
    name = f"moore:{degree}"
    return from_edges(MOORE[degree], edges, kind=kind, plus=plus, name=name)


def _hoffman_singleton() -> list[tuple[int, int]]:
    """Five pentagons and five pentagrams; corner j of pentagon h and corner h i + j of pentagram i
    (Robertson)."""
    found = []
    for h in range(5):
        for j in range(5):
            found.append((5 * h + j, 5 * h + (j + 1) % 5))
            found.append((25 + 5 * h + j, 25 + 5 * h + (j + 2) % 5))
            found += [(5 * h + j, 25 + 5 * i + (h * i + j) % 5) for i in range(5)]
    return found
