"""Mixing weights: from edges by the rules of gossip:GM-2, or given by the user and checked by
gossip:GM-1."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array, issparse

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.graphs.edge_files import EdgeFile, ego_path, read_edges
from bruit.graphs.graph import Graph, Weights
from bruit.graphs.validity import TOLERANCE
from bruit.how_many import how_many

if TYPE_CHECKING:
    import networkx as nx

KINDS = ("max", "sum", "laplacian")


class Mixing(NamedTuple):
    """The weight fields of a Graph: floats and their exact fractions."""

    weights: Weights
    numerators: Ints
    denominators: Ints


def mixing(n: int, edges: Ints, kind: str = "max", plus: int = 1) -> Mixing:
    """Hamilton (Metropolis) weights and variants on distinct edges (gossip:GM-2, walk:F-5).

        max        W[u, v] = 1 / (plus + max(d_u, d_v))
        sum        W[u, v] = 1 / (plus + d_u + d_v)
        laplacian  W[u, v] = 1 / (plus + d_max), that is W = I - L / (plus + d_max)

    and W[u, u] = 1 - sum of the row. plus = 1, the default, always leaves self-weights; with plus =
    0 regular bipartite graphs oscillate for ever.
    """
    _check_rule(kind, plus)
    if n == 0:
        raise ConfigError("a graph needs at least one peer, found 0")
    rows, indptr, indices = _pattern(n, edges)
    degrees = np.diff(indptr).astype(np.int64) - 1
    if kind == "max":
        denominators = plus + np.maximum(degrees[rows], degrees[indices])
    elif kind == "sum":
        denominators = plus + degrees[rows] + degrees[indices]
    else:
        denominators = np.full(len(indices), plus + degrees.max(), dtype=np.int64)
    diagonal = np.flatnonzero(rows == indices)
    # Where a row has one denominator D, (D - d) / D is exact: a zero self-weight must not become
    # rounding dust.
    denominators[diagonal] = 0
    highest = np.maximum.reduceat(denominators, indptr[:-1])
    denominators[diagonal] = np.iinfo(np.int64).max
    equal = highest == np.minimum.reduceat(denominators, indptr[:-1])
    denominators[diagonal] = 1
    numerators = np.ones(len(indices), dtype=np.int64)
    numerators[diagonal] = 0
    data = numerators / denominators
    kept = 1.0 - csr_array((data, indices, indptr), shape=(n, n)) @ np.ones(n)
    kept[equal] = (highest - degrees)[equal] / highest[equal]
    data[diagonal] = kept
    return Mixing(csr_array((data, indices, indptr), shape=(n, n)), numerators, denominators)


def from_edges(
    n: int,
    edges: ArrayLike,
    *,
    kind: str = "max",
    plus: int = 1,
    name: str | None = None,
    labels: tuple[str, ...] | None = None,
    positions: Array | None = None,
    group: tuple[int, ...] | None = None,
) -> Graph:
    """A graph on peers 0..n-1 with the weights of gossip:GM-2.

    Self-loops are dropped with a warning (the self-weight comes from the rule), repeated edges
    count once. `name` is the graph without its weight options, which are added to it when they are
    not the default.
    """
    pairs = np.asarray(edges)
    if pairs.size == 0:
        pairs = np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ConfigError(
            f"edges must be pairs of integers, found an array of {pairs.dtype} of shape "
            f"{pairs.shape}"
        )
    pairs = pairs.astype(np.int64)
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if len(outside):
        a, b = pairs[outside[0]]
        raise ConfigError(f"edge ({a}, {b}) names a peer outside 0..{n - 1}")
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        warnings.warn(
            f"{how_many(int(loops.sum()), 'self-loop')} dropped, the first at peer {pairs[loops][0, 0]}: "
            "self-weights come from the mixing rule",
            stacklevel=2,
        )
        pairs = pairs[~loops]
    keys = np.minimum(pairs[:, 0], pairs[:, 1]) * n + np.maximum(pairs[:, 0], pairs[:, 1])
    keys.sort()
    keys = keys[
        np.diff(keys, prepend=-1) > 0
    ]  # np.unique hashes large arrays, several times slower
    found = mixing(n, np.stack([keys // n, keys % n], axis=1), kind, plus)
    return Graph(
        weights=found.weights,
        numerators=found.numerators,
        denominators=found.denominators,
        name=(name or f"given:{n}") + _options(kind, plus),
        labels=labels,
        positions=positions,
        group=group,
    )


def from_matrix(
    matrix: ArrayLike | Weights,
    *,
    name: str | None = None,
    labels: tuple[str, ...] | None = None,
    edges: ArrayLike | None = None,
) -> Graph:
    """A graph with given weights, refused when they are no gossip matrix (gossip:GM-1, tolerance
    1e-9).

    The floats are dyadic rationals: they are the exact weights, and the exact diagonal is 1 - (sum
    of the row). A matrix of a sequence need not be irreducible or aperiodic, so these two are left
    to `Graph.validity`. With `edges`, a positive weight elsewhere is refused.
    """
    try:
        W = matrix if issparse(matrix) else np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigError(
            f"the mixing weights are not a matrix of numbers: {str(matrix)[:60]}"
        ) from None
    if W.ndim != 2 or W.shape[0] != W.shape[1] or W.shape[0] == 0:
        raise ConfigError(
            f"a mixing matrix is square with at least one peer, found shape {W.shape}"
        )
    n = W.shape[0]
    entries = coo_array(W, dtype=np.float64)
    entries.sum_duplicates()
    _check_entries(entries, edges)
    dense_order = csr_array(entries)
    off = ((dense_order + dense_order.T) * 0.5).tocoo()
    off_row, off_col = off.coords
    keep = (off_row != off_col) & (off.data > 0)
    rows = np.concatenate([off_row[keep], np.arange(n)]).astype(np.int32)
    cols = np.concatenate([off_col[keep], np.arange(n)]).astype(np.int32)
    rounded = (np.bincount(off_row[keep], minlength=n) + 1) * 2.0**-53
    sums: Array = np.bincount(off_row[keep], weights=off.data[keep], minlength=n).astype(np.float64)
    most = float(sums.max()) if (sums > 1 + rounded).any() else 1.0
    data, sums = (
        off.data[keep] / most,
        sums / most,
    )  # 1e-9 more than 1 at most: no exact diagonal may be negative
    given = dense_order.diagonal()
    # What the user wrote on the diagonal is kept when it differs from 1 - sum by rounding only: a
    # float of the diagonal
    # is within 2 degree + 1 units of 2^-53 of the exact one, which the arithmetic of gossip charges
    # (fp:FP-1).
    kept = np.where(np.abs(given - (1 - sums)) <= rounded, given, 1 - sums).clip(min=0.0)
    weights = csr_array(coo_array((np.concatenate([data, kept]), (rows, cols)), shape=(n, n)))
    weights.sort_indices()
    numerators, exponents = _dyadic(weights)
    return Graph(
        weights=weights,
        numerators=numerators,
        denominators=np.ones_like(numerators),
        name=name or f"given:{n}",
        labels=labels,
        exponents=exponents,
    )


def from_networkx(
    g: nx.Graph[object], *, kind: str = "max", plus: int = 1, name: str | None = None
) -> Graph:
    """Any undirected networkx graph; edge attributes are ignored.

    Nodes 0..n-1 are peers 0..n-1, in whatever order the graph lists them. Other whole numbers
    become peers in increasing order; names become peers in the order of `g.nodes`. In both cases
    `labels` keeps what they were.
    """
    if g.is_directed():
        raise ConfigError(
            "a directed graph was given, but gossip needs undirected edges; use g.to_undirected()"
        )
    nodes = list(g.nodes)
    numbers = [
        int(node)
        for node in nodes
        if isinstance(node, int | np.integer) and not isinstance(node, bool)
    ]
    if len(numbers) == len(nodes):
        nodes = [nodes[place] for place in np.argsort(numbers).tolist()]
    index = {node: i for i, node in enumerate(nodes)}
    edges = np.array([(index[edge[0]], index[edge[1]]) for edge in g.edges], dtype=np.int64)
    labels = None if list(index) == list(range(len(index))) else tuple(str(node) for node in index)
    return from_edges(len(index), edges, kind=kind, plus=plus, name=name, labels=labels)


def from_edge_list(
    path: str | Path, *, kind: str = "max", plus: int = 1, sha256: str | None = None
) -> Graph:
    """A text file (or .gz) of two columns of ids, comments after #; peers are the ids in sorted
    order.

    A third column holds weights, and `kind` and `plus` are not needed: mixing weights as they stand
    when those of no peer add up to more than 1, else similarities, divided by the largest sum. An
    edge may be told in both directions, with the same weight; a line with the same id twice names a
    peer and is no edge. `sha256` is what the file must be, to the last byte: whoever agreed on a
    graph finds out when it has another one.
    """
    found = read_edges(Path(path), sha256)
    if found.weights is None:
        return from_edges(
            len(found.labels),
            found.edges,
            kind=kind,
            plus=plus,
            name=f"file:{path}",
            labels=found.labels,
        )
    if (kind, plus) != ("max", 1):
        raise ConfigError(
            f"{path} gives a weight to every edge; leave kind= and plus= out, or the third column"
        )
    return _weighted(found, path)


def _weighted(found: EdgeFile, path: str | Path) -> Graph:
    """The graph of given weights: every pair once, whichever direction it was told in."""
    n, given = len(found.labels), found.weights if found.weights is not None else np.zeros(0)
    a, b = found.edges.min(axis=1), found.edges.max(axis=1)
    keys, first, place = np.unique(a * n + b, return_index=True, return_inverse=True)
    odd = np.flatnonzero(given != given[first][place])
    if len(odd):
        u, v = (found.labels[peer] for peer in found.edges[odd[0]])
        raise ConfigError(
            f"{path} gives the edge of {u} and {v} two weights, {given[first][place][odd[0]]:g} and"
            f" {given[odd[0]]:g}; a weight is mutual"
        )
    keep = (keys // n != keys % n) & (given[first] > 0)
    half = coo_array((given[first][keep], (keys[keep] // n, keys[keep] % n)), shape=(n, n))
    W = csr_array(half + half.T)
    sums = np.asarray(W @ np.ones(n))
    largest = float(sums.max(initial=0.0))
    if largest > 1 + TOLERANCE:
        W, sums = W * (1.0 / largest), sums / largest
    kept = csr_array((np.maximum(0.0, 1.0 - sums), np.arange(n), np.arange(n + 1)), shape=(n, n))
    return from_matrix(csr_array(W + kept), name=f"file:{path}", labels=found.labels)


def from_ego(
    ego_id: int, folder: str | Path | None = None, *, kind: str = "max", plus: int = 1
) -> Graph:
    """The giant component of a Facebook ego network, ego removed, relabelled by sorted id (McAuley,
    Leskovec 2012).

    The data folder is `folder`, else $BRUIT_DATA, else ../shared/data beside the current directory
    or the repository.
    """
    edges, labels, _ = read_edges(ego_path(ego_id, folder))
    whole = from_edges(len(labels), edges)
    component = whole.components()
    members = np.flatnonzero(component == np.bincount(component).argmax())
    place = np.full(whole.n, -1)
    place[members] = np.arange(len(members))
    inside = place[whole.edges()]
    return from_edges(
        len(members),
        inside[(inside >= 0).all(axis=1)],
        kind=kind,
        plus=plus,
        name=f"ego:{ego_id}",
        labels=tuple(labels[v] for v in members),
    )


def complete_rule(n: int, kind: str, plus: int) -> tuple[int, str]:
    """The denominator of all links when everybody has n - 1 neighbors (`mixing`), and what the name
    says of the rule."""
    _check_rule(kind, plus)
    return max(1, plus + (2 if kind == "sum" else 1) * (n - 1)), _options(kind, plus)


def _options(kind: str, plus: int) -> str:
    """Weight options as a name tells them: those that are not the default."""
    return ("" if kind == "max" else f",kind={kind}") + ("" if plus == 1 else f",plus={plus}")


def _check_rule(kind: str, plus: int) -> None:
    if kind not in KINDS:
        raise ConfigError(f"weights have kind 'max', 'sum' or 'laplacian', found {kind!r}")
    if plus not in (0, 1):
        raise ConfigError(f"plus must be 0 or 1, found {plus!r}")


def _pattern(
    n: int, edges: Ints
) -> tuple[
    Ints, np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.int32]]
]:
    """Rows, row starts and sorted columns of the symmetric pattern of the edges plus the
    diagonal."""
    a, b, own = edges[:, 0], edges[:, 1], np.arange(n)
    keys = np.concatenate([a * n + b, b * n + a, own * (n + 1)])
    keys.sort()
    rows = keys // n
    indices = (keys - rows * n).astype(np.int32)
    indptr = np.zeros(n + 1, dtype=np.int32)
    indptr[1:] = np.cumsum(np.bincount(rows, minlength=n))
    return rows, indptr, indices


def _check_entries(
    entries: coo_array[np.float64, tuple[int, int]], edges: ArrayLike | None
) -> None:
    """Refuse what is no gossip matrix, naming the first bad entry or row."""
    n = entries.shape[0]
    rows, cols = entries.coords
    data = entries.data

    def refuse(bad: np.ndarray[tuple[int], np.dtype[np.bool_]], what: str) -> None:
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise ConfigError(what.format(value=data[k], at=f"({rows[k]}, {cols[k]})"))

    refuse(~np.isfinite(data), "weight {value} at {at}; every weight must be a number in [0, 1]")
    refuse(
        data < -TOLERANCE, "negative weight {value} at {at}; a mixing matrix has weights in [0, 1]"
    )
    W = csr_array(entries)
    gap = coo_array(abs(W - W.T))
    if (gap.data > TOLERANCE).any():
        k = int(np.flatnonzero(gap.data > TOLERANCE)[0])
        i, j = int(gap.row[k]), int(gap.col[k])
        raise ConfigError(f"not symmetric at ({i}, {j}): {W[i, j]} against {W[j, i]} at ({j}, {i})")
    sums = np.asarray(W @ np.ones(n))
    wrong = np.flatnonzero(np.abs(sums - 1) > TOLERANCE)
    if len(wrong):
        raise ConfigError(
            f"row {wrong[0]} sums to {sums[wrong[0]]:.9g}; every row of a mixing matrix sums to 1"
        )
    if edges is not None:
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        allowed = np.concatenate([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]])
        keys = rows.astype(np.int64) * n + cols
        refuse(
            (rows != cols) & (data > TOLERANCE) & ~np.isin(keys, allowed),
            "weight {value} at {at}, not an edge",
        )


def _dyadic(weights: Weights) -> tuple[Ints, Ints]:
    """Numerator and exponent with weight = numerator / 2^exponent exactly, numerator odd; 0 / 1 on
    the diagonal."""
    mantissas, powers = np.frexp(weights.data)
    numerators = np.ldexp(mantissas, 53).astype(np.int64)
    exponents = 53 - powers.astype(np.int64)
    rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    off = rows != weights.indices
    lowest = np.where(off, numerators & -numerators, 1)
    zeros = np.log2(lowest).astype(np.int64)
    return np.where(off, numerators >> zeros, 0), np.where(off, exponents - zeros, 0)
