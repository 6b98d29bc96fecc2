"""Random graph families, a function of an explicit seed (gossip:GRAPH-1).

Each draws from np.random.default_rng(seed). With `connected` (the default where disconnection is
likely or possible) the graph is drawn again, from the same generator, until it is connected, at
most ATTEMPTS times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse import coo_array

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError
from bruit.graphs.graph import Graph
from bruit.graphs.mixing import from_edges
from bruit.graphs.validity import components_of

ATTEMPTS = 200


def erdos_renyi(
    n: int,
    q: float | None = None,
    c: float | None = None,
    seed: int = 0,
    connected: bool = True,
    *,
    kind: str = "max",
    plus: int = 1,
) -> Graph:
    """Each edge on its own with probability q, or q = c ln(n) / n; mostly connected when c > 1."""
    _check_peers("er", n)
    if (q is None) == (c is None):
        raise ConfigError("er needs exactly one of q (edge probability) and c (q = c ln n / n)")
    if c is not None and not 0 <= c < math.inf:
        raise ConfigError(f"er needs c >= 0, found {c}")
    chance = q if q is not None else min(1.0, (c or 0.0) * math.log(n) / n)
    _check_probability("er", "q", chance)
    name = _name(f"er:{n}", {"q": q, "c": c}, seed, connected)
    edges = _draw(
        name, n, seed, connected, lambda rng: _triangle(_hits(rng, n * (n - 1) // 2, chance))
    )
    return from_edges(n, edges, kind=kind, plus=plus, name=name)


def geometric(
    n: int,
    radius: float,
    seed: int = 0,
    connected: bool = True,
    *,
    kind: str = "max",
    plus: int = 1,
) -> Graph:
    """Uniform points of the unit square, an edge between any two nearer than the radius; keeps
    their positions."""
    from scipy.spatial import cKDTree

    _check_peers("geometric", n)
    if not 0 < radius < math.inf:
        raise ConfigError(f"geometric needs radius > 0, found {radius}")
    points: list[Array] = []

    def near(rng: np.random.Generator) -> Ints:
        points[:] = [rng.random((n, 2))]
        return cKDTree(points[0]).query_pairs(radius, output_type="ndarray").astype(np.int64)

    name = _name(f"geometric:{n}", {"radius": radius}, seed, connected)
    edges = _draw(name, n, seed, connected, near)
    return from_edges(n, edges, kind=kind, plus=plus, name=name, positions=points[0])


def regular(
    n: int, degree: int, seed: int = 0, connected: bool = True, *, kind: str = "max", plus: int = 1
) -> Graph:
    """A simple graph where everybody has the same degree: stubs paired at random, then loops and
    repeats re-paired.

    The law is uniform up to the repairs, which touch about degree^2 / 4 edges whatever n.
    """
    _check_peers("regular", n)
    if not 0 <= degree < n:
        raise ConfigError(f"regular needs a degree between 0 and n - 1 = {n - 1}, found {degree}")
    if n * degree % 2:
        raise ConfigError(f"regular needs n * degree even, found {n} * {degree} = {n * degree}")
    if connected and degree < 2 and n > degree + 1:
        raise ConfigError(
            f"a graph of {n} peers of degree {degree} cannot be connected; take degree >= 3 or "
            "connected=false"
        )
    name = _name(f"regular:{n}", {"degree": degree}, seed, connected)
    edges = _draw(name, n, seed, connected, lambda rng: _regular_edges(rng, n, degree, name))
    return from_edges(n, edges, kind=kind, plus=plus, name=name)


def watts_strogatz(
    n: int,
    k: int,
    p: float,
    seed: int = 0,
    connected: bool = True,
    *,
    kind: str = "max",
    plus: int = 1,
) -> Graph:
    """A ring where all know their k nearest (k even); each edge moves its far end with probability
    p."""
    _check_peers("ws", n)
    if k < 0 or k % 2 or k >= max(n, 1):
        raise ConfigError(f"ws needs an even k between 0 and n - 1 = {n - 1}, found {k}")
    _check_probability("ws", "p", p)
    name = _name(f"ws:{n}", {"k": k, "p": p}, seed, connected)
    edges = _draw(name, n, seed, connected, lambda rng: _rewired_ring(rng, n, k, p, name))
    return from_edges(n, edges, kind=kind, plus=plus, name=name)


def barabasi_albert(n: int, m: int, seed: int = 0, *, kind: str = "max", plus: int = 1) -> Graph:
    """Preferential attachment: from a star of m + 1 peers, each newcomer links to m others in
    proportion to degree."""
    if not 1 <= m < n:
        raise ConfigError(f"ba needs m between 1 and n - 1 = {n - 1}, found {m}")
    rng = _generator(seed)
    ends = [
        end for leaf in range(1, m + 1) for end in (0, leaf)
    ]  # each peer appears once per edge it has
    for newcomer in range(m + 1, n):
        chosen: set[int] = set()
        while len(chosen) < m:
            chosen.update(ends[i] for i in rng.integers(len(ends), size=m - len(chosen)).tolist())
        for friend in sorted(chosen):
            ends += (friend, newcomer)
    name = _name(f"ba:{n}", {"m": m}, seed, True)
    return from_edges(
        n, np.array(ends, dtype=np.int64).reshape(-1, 2), kind=kind, plus=plus, name=name
    )


def stochastic_blocks(
    sizes: Sequence[int],
    p_in: float,
    p_out: float,
    seed: int = 0,
    connected: bool = True,
    *,
    kind: str = "max",
    plus: int = 1,
) -> Graph:
    """Communities: an edge with probability p_in inside a block, p_out between blocks."""
    if not sizes or min(sizes) < 1:
        raise ConfigError(
            f"sbm needs blocks of at least one peer, as in sbm:75+75+50, found {list(sizes)}"
        )
    _check_probability("sbm", "p_in", p_in)
    _check_probability("sbm", "p_out", p_out)
    starts = np.concatenate([[0], np.cumsum(sizes)])

    def blocks(rng: np.random.Generator) -> Ints:
        parts = []
        for i, size in enumerate(sizes):
            parts.append(starts[i] + _triangle(_hits(rng, size * (size - 1) // 2, p_in)))
            for j in range(i + 1, len(sizes)):
                a, b = np.divmod(_hits(rng, size * sizes[j], p_out), sizes[j])
                parts.append(np.stack([starts[i] + a, starts[j] + b], axis=1))
        return np.concatenate(parts)

    n = int(starts[-1])
    name = _name(
        "sbm:" + "+".join(map(str, sizes)), {"p_in": p_in, "p_out": p_out}, seed, connected
    )
    return from_edges(n, _draw(name, n, seed, connected, blocks), kind=kind, plus=plus, name=name)


def k_out(
    n: int, k: int, seed: int = 0, connected: bool = True, *, kind: str = "max", plus: int = 1
) -> Graph:
    """Everybody picks k distinct others; an edge joins two peers when one picked the other."""
    _check_peers("kout", n)
    if not 0 <= k < n:
        raise ConfigError(f"kout needs k between 0 and n - 1 = {n - 1}, found {k}")

    def picks(rng: np.random.Generator) -> Ints:
        owner = np.repeat(np.arange(n), k)
        if 2 * k > n:  # most others: shuffle them all rather than draw and redraw
            shuffled = rng.random((n, n - 1)).argsort(axis=1)[:, :k].ravel()
            return np.stack([owner, (owner + 1 + shuffled) % n], axis=1)
        choice = (owner + rng.integers(1, max(n, 2), size=n * k)) % n
        while len(again := _later_repeats(owner * n + choice)):
            choice[again] = (owner[again] + rng.integers(1, n, size=len(again))) % n
        return np.stack([owner, choice], axis=1)

    name = _name(f"kout:{n}", {"k": k}, seed, connected)
    return from_edges(n, _draw(name, n, seed, connected, picks), kind=kind, plus=plus, name=name)


def _draw(
    name: str, n: int, seed: int, connected: bool, sample: Callable[[np.random.Generator], Ints]
) -> Ints:
    """Edges of one sample, or of the first connected one."""
    rng = _generator(seed)
    for _ in range(ATTEMPTS):
        edges = sample(rng)
        if not connected or _joins(n, edges):
            return edges
    raise ConfigError(
        f"{name}: none of {ATTEMPTS} draws is connected; ask for more edges, or connected=false"
    )


def _generator(seed: int) -> np.random.Generator:
    if seed < 0:
        raise ConfigError(f"a seed must be >= 0, found {seed}")
    return np.random.default_rng(seed)


def _joins(n: int, edges: Ints) -> bool:
    if len(edges) < n - 1:
        return False
    links = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return components_of(links.tocsr())[0] == 1


def _hits(rng: np.random.Generator, trials: int, chance: float) -> Ints:
    """Which of many independent trials succeed, in time of the successes: the gaps between them are
    geometric."""
    if chance == 0 or trials == 0:
        return np.zeros(0, dtype=np.int64)
    if chance == 1:
        return np.arange(trials)
    found, last = [], -1
    while last < trials:
        expected = (trials - last) * chance
        # Capped gaps keep the sum of rare, enormous ones inside 64 bits; a capped gap is past the
        # end anyway.
        gaps = rng.geometric(chance, size=int(expected + 5 * math.sqrt(expected) + 10)).clip(
            max=trials + 1
        )
        found.append(last + np.cumsum(gaps))
        last = int(found[-1][-1])
    places = np.concatenate(found)
    inside: Ints = places[places < trials]
    return inside


def _triangle(places: Ints) -> Ints:
    """The pair (a, b), a < b, at each place of the list (0,1), (0,2), (1,2), (0,3), ..."""
    b = ((1 + np.sqrt(1 + 8 * places.astype(np.float64))) / 2).astype(np.int64)
    b -= b * (b - 1) // 2 > places
    b += b * (b + 1) // 2 <= places
    return np.stack([places - b * (b - 1) // 2, b], axis=1)


def _keys(n: int, edges: Ints) -> Ints:
    return np.minimum(edges[:, 0], edges[:, 1]) * n + np.maximum(edges[:, 0], edges[:, 1])


def _later_repeats(keys: Ints) -> Ints:
    """Where a key was already met at an earlier place."""
    ordered = np.sort(keys)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    suspects = np.flatnonzero(np.isin(keys, twice)) if len(twice) else np.zeros(0, dtype=np.int64)
    _, first = np.unique(keys[suspects], return_index=True)
    return np.delete(suspects, first)


def _broken(n: int, edges: Ints) -> Ints:
    """Edges that are loops or repeat an earlier edge."""
    bad: Bools = edges[:, 0] == edges[:, 1]
    bad[_later_repeats(_keys(n, edges))] = True
    return np.flatnonzero(bad)


def _regular_edges(rng: np.random.Generator, n: int, degree: int, name: str) -> Ints:
    if degree > (n - 1) // 2:  # dense: remove a sparse regular graph from the complete one
        whole = np.stack(np.triu_indices(n, 1), axis=1)
        removed = _regular_edges(rng, n, n - 1 - degree, name)
        kept: Ints = whole[~np.isin(_keys(n, whole), _keys(n, removed))]
        return kept
    for _ in range(ATTEMPTS):
        edges: Ints = rng.permutation(np.repeat(np.arange(n), degree)).reshape(-1, 2)
        broken = _broken(n, edges)
        for _ in range(ATTEMPTS):
            if not len(broken):
                return edges
            broken = broken[~_switched(rng, n, edges, broken)]
    raise ConfigError(f"{name}: no simple graph found; try another seed")


def _switched(rng: np.random.Generator, n: int, edges: Ints, broken: Ints) -> Bools:
    """Switch broken edges (a, b) with random others (c, d) into (a, c) and (b, d), where both are
    new; says which."""
    partner = rng.choice(len(edges), size=len(broken), replace=False)
    first = np.stack([edges[broken, 0], edges[partner, 0]], axis=1)
    second = np.stack([edges[broken, 1], edges[partner, 1]], axis=1)
    present, proposed = (
        np.sort(_keys(n, edges)),
        np.concatenate([_keys(n, first), _keys(n, second)]),
    )
    known = present[np.searchsorted(present, proposed).clip(max=len(present) - 1)] == proposed
    known[_later_repeats(proposed)] = True
    good: Bools = ~known.reshape(2, -1).any(axis=0) & ~np.isin(partner, broken)
    good &= (first[:, 0] != first[:, 1]) & (second[:, 0] != second[:, 1])
    edges[broken[good]], edges[partner[good]] = first[good], second[good]
    return good


def _rewired_ring(rng: np.random.Generator, n: int, k: int, p: float, name: str) -> Ints:
    near = np.tile(np.arange(n), k // 2)
    far = (near + np.repeat(np.arange(1, k // 2 + 1), n)) % n
    edges: Ints = np.stack([near, far], axis=1)
    if k == n - 1:  # everybody knows everybody: no edge has where to move
        return edges
    moved = np.flatnonzero(rng.random(len(edges)) < p)
    order = np.concatenate([np.setdiff1d(np.arange(len(edges)), moved), moved])
    edges, fixed = (
        edges[order],
        len(edges) - len(moved),
    )  # edges that stay come first, so only moved ones can repeat
    again = np.arange(fixed, len(edges))
    for _ in range(10 * ATTEMPTS):
        if not len(again):
            return edges
        edges[again, 1] = rng.integers(n, size=len(again))
        again = _broken(n, edges)
    raise ConfigError(f"{name}: too dense to rewire; take a smaller k")


def _name(head: str, options: dict[str, float | None], seed: int, connected: bool) -> str:
    """The short string that makes the same graph again; defaults are left out."""
    parts = [
        f"{key}={value:g}" if float(f"{value:g}") == value else f"{key}={float(value)!r}"
        for key, value in options.items()
        if value is not None
    ]
    parts += [f"seed={seed}"] if seed else []
    parts += [] if connected else ["connected=false"]
    return ",".join([head, *parts])


def _check_peers(family: str, n: int) -> None:
    if n < 1:
        raise ConfigError(f"{family} needs at least one peer, found n = {n}")


def _check_probability(family: str, key: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ConfigError(f"{family} needs {key} between 0 and 1, found {value}")
