"""What the weights say of speed: spectral gap, mixing time, diameter, Chebyshev parameters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Literal

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs.graph import Graph
from bruit.graphs.names import fixed_graph

DENSE = 512
DENSE_MIXING = 3000


def spectral_gap(graph: Graph | str) -> float:
    """min (1 - |lambda|) over the eigenvalues of W except one eigenvalue 1 (gossip:GM-3).

    Zero when disconnected or periodic (decided on the structure, not on floats); 1 with a warning
    for one peer.
    """
    graph = fixed_graph(graph)
    if graph.n == 1:
        warnings.warn("a single peer has no spectral gap; 1 is returned", stacklevel=2)
        return 1.0
    facts = graph.validity()
    if not (facts.irreducible and facts.aperiodic):
        return 0.0
    if graph.group is not None or graph.n <= DENSE:
        low, second = _ends(graph)
    else:
        second = _extreme(graph, "LA")
        # Gershgorin: no eigenvalue is below 2 min W[v, v] - 1; often that already settles which end
        # decides.
        low = _lowest_possible(graph)
        low = low if abs(low) <= second else _extreme(graph, "SA")
    return min(max(0.0, 1 - max(abs(low), abs(second))), 1.0)


def second_eigenvalue(graph: Graph | str) -> float:
    """lambda_2, the largest eigenvalue of W but one (walk:F-5 uses 1 - lambda_2).

    1 when disconnected; 0 with a warning for one peer.
    """
    graph = fixed_graph(graph)
    if graph.n == 1:
        warnings.warn("a single peer has no second eigenvalue; 0 is returned", stacklevel=2)
        return 0.0
    if not graph.is_connected():
        return 1.0
    if graph.group is not None or graph.n <= DENSE:
        return _ends(graph)[1]
    return _extreme(graph, "LA")


def mixing_time(graph: Graph | str, iota: float = 0.25) -> float:
    """min t such that max over v of the total variation between row v of W^t and uniform is <= iota
    (gossip:GO-4).

    Infinite when periodic or disconnected. Distances within 1e-12 of iota count as reached.
    """
    if not 0 < iota < 1:
        raise ConfigError(f"the mixing time needs iota between 0 and 1, found {iota}")
    graph = fixed_graph(graph)
    facts = graph.validity()
    if not (facts.irreducible and facts.aperiodic):
        return math.inf
    if graph.n > DENSE_MIXING and graph.group is None:
        return float(_mixing_by_steps(graph, iota))
    distance = _distance_to_uniform(graph)
    high = 1
    if distance(0) <= iota + 1e-12:
        return 0.0
    while distance(high) > iota + 1e-12:
        high *= 2
    low = high // 2
    while high - low > 1:  # the distance never grows with t
        middle = (low + high) // 2
        low, high = (low, middle) if distance(middle) <= iota + 1e-12 else (middle, high)
    return float(high)


def diameter(graph: Graph | str) -> float:
    """The largest number of hops between two peers, exactly; infinite when disconnected.

    Bounds on every eccentricity from few searches (Takes, Kosters 2011): e(u) is at least max(d,
    e(v) - d) and at most e(v) + d with d = distance(u, v). Peers whose upper bound cannot beat the
    largest found are done with.
    """
    graph = fixed_graph(graph)
    hops = graph.distances(0)
    if (hops < 0).any():
        return math.inf
    best = int(hops.max())
    if graph.group is not None:
        return float(best)
    upper, lower = best + hops, np.maximum(hops, best - hops)
    open_peers = upper > best
    open_peers[0] = False
    far = True
    while open_peers.any():
        left = np.flatnonzero(open_peers)
        v = int(left[upper[left].argmax()] if far else left[lower[left].argmin()])
        far = not far
        hops = graph.distances(v)
        eccentricity = int(hops.max())
        best = max(best, eccentricity)
        upper = np.minimum(upper, eccentricity + hops)
        lower = np.maximum(lower, np.maximum(hops, eccentricity - hops))
        open_peers &= upper > best
        open_peers[v] = False
    return float(best)


def chebyshev_gamma(gap: float) -> float:
    """The printed parameter of accelerated gossip, 2 (1 - sqrt(gap (1 - gap/4))) / (1 - gap/2)^2
    (gossip:GO-2).

    With gap = 1 it is not 1 and spoils exact consensus: use `chebyshev_gamma_star` there.
    """
    _check_gap(gap)
    return 2 * (1 - math.sqrt(gap * (1 - gap / 4))) / (1 - gap / 2) ** 2


def chebyshev_gamma_star(gap: float) -> float:
    """The best constant parameter for a spectrum in [-(1 - gap), 1 - gap]: 2 / (1 + sqrt(1 - (1 -
    gap)^2))."""
    _check_gap(gap)
    return 2 / (1 + math.sqrt(gap * (2 - gap)))


def _check_gap(gap: float) -> None:
    if not 0 < gap <= 1:
        raise ConfigError(
            f"acceleration needs a spectral gap in (0, 1], found {gap}; a gap of 0 never converges:"
            " connect the graph or use plus=1 weights"
        )


def _fourier(graph: Graph, group: tuple[int, ...]) -> Array:
    """All eigenvalues of a group graph: the Fourier transform of what peer 0 receives."""
    heard, weights = graph.row(0)
    first = np.zeros(graph.n)
    first[heard] = weights
    return np.fft.fftn(first.reshape(group or (1,))).real


def _ends(graph: Graph) -> tuple[float, float]:
    """The smallest eigenvalue and the second largest, from the whole spectrum; n >= 2."""
    if graph.group is not None:
        rest = _fourier(graph, graph.group).ravel()[1:]
        return float(rest.min()), float(rest.max())
    values = np.linalg.eigvalsh(graph.weights.toarray())
    return float(values[0]), float(values[-2])


def _extreme(graph: Graph, which: Literal["SA", "LA"]) -> float:
    """One end of the spectrum of W with the average taken out.

    Lanczos first; where it stalls (long, thin graphs with tiny gaps) a sparse factorization beyond
    that end is cheap.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n = graph.n
    start = (
        np.arange(n) * 0.6180339887498949 % 1 - 0.5
    )  # fixed and generic: the result does not depend on a seed
    # Subtracting 2 on the average moves eigenvalue 1 to -1 (for LA); subtracting 0 leaves it for
    # SA.
    shift = 2.0 if which == "LA" else 0.0
    operator = LinearOperator(
        (n, n), matvec=lambda x: graph.weights @ x - shift * np.mean(x), dtype=np.float64
    )
    try:
        return float(
            eigsh(
                operator,
                k=1,
                which=which,
                v0=start,
                ncv=40,
                maxiter=100,
                tol=1e-12,
                return_eigenvectors=False,
            )[0]
        )
    except ArpackNoConvergence:
        count, beyond = (2, 1 + 1e-9) if which == "LA" else (1, _lowest_possible(graph) - 1e-9)
        values = eigsh(
            graph.weights.tocsc(),
            k=count,
            sigma=beyond,
            which="LM",
            v0=start,
            return_eigenvectors=False,
        )
        return float(values.min())


def _lowest_possible(graph: Graph) -> float:
    return 2 * float(graph.self_weights().min()) - 1


def _distance_to_uniform(graph: Graph) -> Callable[[int], float]:
    """t -> max over v of half the l1 distance of row v of W^t to uniform; one row is enough for a
    group graph."""
    n = graph.n
    if graph.group is not None:
        spectrum = _fourier(graph, graph.group)
        return lambda t: 0.5 * float(np.abs(np.fft.ifftn(spectrum**t).real - 1 / n).sum())
    values, vectors = np.linalg.eigh(graph.weights.toarray())
    return lambda t: (
        0.5 * float(np.abs((vectors * values**t) @ vectors.T - 1 / n).sum(axis=1).max())
    )


def _mixing_by_steps(graph: Graph, iota: float) -> int:
    """The same for large graphs, without any n x n array: blocks of rows walk until each has
    mixed."""
    n, block, longest = graph.n, 64, 0
    for start in range(0, n, block):
        rows = np.zeros((n, min(block, n - start)))
        rows[np.arange(start, start + rows.shape[1]), np.arange(rows.shape[1])] = 1
        t = 0
        while t < longest or 0.5 * np.abs(rows - 1 / n).sum(axis=0).max() > iota + 1e-12:
            rows = np.asarray(graph.weights @ rows)
            t += 1
        longest = t
    return longest
