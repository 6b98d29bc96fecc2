"""A graph, circles and a noise for each peer when pairs trust each other unequally.

Given caps[u, v], the epsilon that v may learn about u, peers average noisy values on a graph; peer
u adds noise of its own multiplier z_u. With D = diag(z) the view of v is K_v (x + D eta), so what v
learns about u is exactly

    mu(u -> v)^2 = || projection of e_u on row(K_v D) ||^2 / z_u^2                     (silo:SILO-8)

Q an orthonormal basis of row(K_v): the projector on row(K_v D) is D Q (Q^T D^2 Q)^-1 Q^T D.
Candidate graphs link the pairs that trust each other most, from a spanning tree of largest least
trust upwards. Candidate circles are cliques of mutual trust: their members first average among
themselves, so that others see the mean of a circle only, behind the noise of all its members, z_u =
z / sqrt(members) each (silo:SILO-11). Planned for is then whoever knows the means of all circles
and the members of its own, on whatever graph. For each candidate the noises are found by raising
those of violated pairs until every cap holds; the least error sqrt(sum z_u^2) / n wins. The winner
is rehearsed: every cap is checked by the account of that run, rounding included, and all noises
are raised together until it holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence, from_edges, spectral_gap
from bruit.graphs.sequence import after_circles
from bruit.privacy.exact import row_space
from bruit.privacy.toolbox.gaussian import epsilons, mu_of

MOST_PEERS, SWEEPS = 128, 200


@dataclass(frozen=True, eq=False, kw_only=True)
class TrustPlan:
    """The graph, the rounds, and every peer's noise multiplier; `epsilon[u, v]` is what v may learn
    about u."""

    graph: Graph | GraphSequence
    steps: int
    algorithm: str
    circles: tuple[tuple[int, ...], ...]  # of several members; empty without
    multipliers: Array  # (n,)
    epsilon: Array  # (n, n), nan on the diagonal
    theorem: str
    status: str
    error: float
    local_error: float
    equal_error: float


def plan_trust(caps: Array, delta: float = 1e-6, spread: float = 0.25) -> TrustPlan:
    """The best graph and noises found; every cap holds, exactly accounted."""
    n = len(caps)
    if caps.shape != (n, n) or n < 2 or n > MOST_PEERS:
        raise ConfigError(
            f"unequal trust is planned for 2 to {MOST_PEERS} peers, one cap per pair; found "
            f"{caps.shape}"
        )
    limits = _limits(caps, delta)
    local = 1.0 / np.min(limits, axis=1)
    floor = float(np.sqrt(np.sum(local**2))) / n
    equal = float(local.max()) / math.sqrt(n)
    found = [*_plain(limits, local, spread), *_in_circles(limits, local, spread)]
    if not found:
        raise PrivacyError(
            "no noise found for these caps on any graph tried; raise the smallest caps"
        )
    chosen = min(found, key=lambda one: float(np.sum(one.multipliers**2)))
    return _settled(chosen, limits, delta, floor, equal)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Candidate:
    """A network that keeps every cap in real numbers."""

    graph: Graph | GraphSequence
    steps: int
    algorithm: str
    circles: tuple[tuple[int, ...], ...]
    multipliers: Array


def _plain(limits: Array, local: Array, spread: float) -> list[_Candidate]:
    """Gossip on graphs of trust, without circles."""
    n, found = len(limits), []
    for graph in _candidates(np.minimum(limits, limits.T)):
        steps, algorithm = _rounds(graph, float(local.mean()), spread)
        bases = [row_space(graph, [v], steps) for v in range(n)]
        multipliers = _allocate(bases, limits, local, np.arange(n))
        if np.all(_reached(bases, multipliers) <= limits * (1 + 1e-9)):
            found.append(
                _Candidate(
                    graph=graph,
                    steps=steps,
                    algorithm=algorithm,
                    circles=(),
                    multipliers=multipliers,
                )
            )
    return found


def _in_circles(limits: Array, local: Array, spread: float) -> list[_Candidate]:
    """Means of circles first, for cliques at every level of mutual trust."""
    n, mutual, found = len(limits), np.minimum(limits, limits.T), []
    for circles in {cliques(mutual, level) for level in _levels(mutual)}:
        circle = np.zeros(n, np.int64)
        for number, members in enumerate(circles):
            circle[list(members)] = number
        means = (circle[:, None] == np.arange(len(circles))) * 1.0
        means /= np.sqrt(means.sum(axis=0))
        bases = []
        for v in range(n):
            own = np.eye(n)[:, circle == circle[v]]
            bases.append(np.concatenate((own, np.delete(means, circle[v], axis=1)), axis=1))
        multipliers = _allocate(bases, limits, local, circle)
        if not np.all(_reached(bases, multipliers) <= limits * (1 + 1e-9)):
            continue
        network = after_circles(circles)
        error = float(np.sqrt(np.sum(multipliers**2))) / n
        slow = abs(1 - spectral_gap(network.graph))
        close = math.log(10 * math.sqrt(n) * max(1.0, math.sqrt(spread) / error))
        found.append(
            _Candidate(
                graph=network,
                steps=1 + (1 if slow < 1e-12 else max(1, math.ceil(close / -math.log(slow)))),
                algorithm="averaging",
                circles=tuple(members for members in circles if len(members) > 1),
                multipliers=multipliers,
            )
        )
    return found


MOST_LEVELS = 8


def _levels(mutual: Array) -> list[float]:
    """Levels of mutual trust at which somebody may be in a circle: all but the lowest."""
    off = ~np.eye(len(mutual), dtype=bool)
    known = np.unique(mutual[off])[1:]
    if len(known) > MOST_LEVELS:
        known = known[np.linspace(0, len(known) - 1, MOST_LEVELS).astype(int)]
    return [float(level) for level in known]


def cliques(mutual: Array, level: float) -> tuple[tuple[int, ...], ...]:
    """Circles in which everybody trusts everybody at least that much: each peer joins the circle
    of most trust among those all of whose members it trusts, and that trust it. Trust is not
    passed on: a friend's friend stays outside."""
    circles: list[list[int]] = []
    for u in range(len(mutual)):
        fit = [circle for circle in circles if np.all(mutual[u, circle] >= level)]
        if fit:
            max(fit, key=lambda circle: (float(mutual[u, circle].min()), len(circle))).append(u)
        else:
            circles.append([u])
    return tuple(tuple(circle) for circle in circles)


GROWTH, TRIALS = 1e-4, 60  # of all noises, until the rehearsed run keeps every cap


def _settled(
    chosen: _Candidate, limits: Array, delta: float, floor: float, equal: float
) -> TrustPlan:
    """The plan as it runs: what its rehearsal is charged, rounding included, is within every
    cap."""
    from bruit.algorithms.algorithm import algorithm_from
    from bruit.mechanisms import GaussianPerPeer
    from bruit.runs.run import rehearse

    n = len(limits)
    off = ~np.eye(n, dtype=bool)
    caps = np.full((n, n), np.inf)
    finite = off & np.isfinite(limits)
    caps[finite] = epsilons(limits[finite], delta)
    multipliers = chosen.multipliers
    for _ in range(TRIALS):
        noise = GaussianPerPeer(clip=0.5, sigmas=multipliers.tolist())
        algorithm = algorithm_from({"name": chosen.algorithm})
        run = rehearse(algorithm, chosen.graph, noise, chosen.steps)
        accountant = run.accountant()
        charge = accountant.charges(delta)
        table = np.where(off, charge.epsilons(delta), np.nan)
        if np.all(table[off] <= caps[off]):
            break
        multipliers = multipliers * (1 + GROWTH)
    else:
        raise PrivacyError(
            "the planned noise does not keep the caps once it is rounded to a grid; make the"
            " noises less different, by raising the smallest caps"
        )
    about = accountant.guarantee(0, (1,), delta)
    return TrustPlan(
        graph=chosen.graph,
        steps=chosen.steps,
        algorithm=chosen.algorithm,
        circles=chosen.circles,
        multipliers=multipliers,
        epsilon=table,
        theorem=f"{about.theorem} ({about.spec})",
        status=about.status,
        error=float(np.sqrt(np.sum(multipliers**2))) / n,
        local_error=floor,
        equal_error=equal,
    )


def _limits(caps: Array, delta: float) -> Array:
    """The largest mu of every pair, infinite on the diagonal  # (n, n)."""
    off = ~np.eye(len(caps), dtype=bool)
    if np.any(np.isnan(caps[off])) or np.any(caps[off] <= 0):
        raise PrivacyError(
            "every pair needs a positive epsilon; a pair without one has no bound to keep"
        )
    bare = np.flatnonzero(np.all(np.isinf(caps) | ~off, axis=1))
    if len(bare):
        raise PrivacyError(
            f"peer {bare[0]} hides nothing from anybody, and would have no noise, which nobody else"
            " could hide behind; give it a cap, 1000 is next to none"
        )
    values, place = np.unique(caps[off], return_inverse=True)
    limits = np.full(caps.shape, np.inf)
    most = [mu_of(float(value), delta) if value < np.inf else np.inf for value in values]
    limits[off] = np.array(most)[place]
    return limits


def _candidates(mutual: Array) -> list[Graph]:
    """Graphs that link pairs by falling mutual trust: a tree of largest least trust, then more and
    more pairs."""
    n = len(mutual)
    a, b = (np.asarray(ends, np.int64) for ends in np.triu_indices(n, 1))
    order = np.argsort(-mutual[a, b], kind="stable")
    tree = _spanning(n, a[order], b[order])
    graphs = []
    for extra in sorted({0, n // 2, n, 2 * n, 4 * n, len(order)}):
        chosen = np.unique(np.concatenate((tree, np.arange(min(extra, len(order))))))
        pairs = np.stack((a[order][chosen], b[order][chosen]), axis=1)
        graphs.append(from_edges(n, [(int(x), int(y)) for x, y in pairs]))
    return graphs


def _spanning(n: int, a: Ints, b: Ints) -> Ints:
    """Places of the edges of a spanning tree, taken greedily in the given order (Kruskal)."""
    root = list(range(n))

    def top(x: int) -> int:
        while root[x] != x:
            root[x] = root[root[x]]
            x = root[x]
        return x

    kept = []
    for place, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if top(x) != top(y):
            root[top(x)] = top(y)
            kept.append(place)
    return np.array(kept, dtype=np.int64)


def _rounds(graph: Graph, multiplier: float, spread: float) -> tuple[int, str]:
    """How long to mix, and by which algorithm; Chebyshev's loss is that of plain gossip."""
    from bruit.algorithms.gossip.muffliato import muffliato

    if spectral_gap(graph) >= 1:
        return 1, "averaging"
    preset = muffliato(graph, multiplier, spread)
    if preset.steps > 4 * graph.n:
        return 4 * graph.n, preset.algorithm.name()
    return preset.steps, preset.algorithm.name()


def _reached(bases: list[Array], multipliers: Array) -> Array:
    """mu(u -> v) for all pairs, 0 on the diagonal  # (n, n)."""
    n = len(multipliers)
    mu = np.zeros((n, n))
    for v, basis in enumerate(bases):
        scaled = multipliers[:, None] * basis
        share = np.sum(np.linalg.qr(scaled)[0] ** 2, axis=1)
        reached = basis.any(axis=1)
        mu[:, v] = np.where(reached, np.sqrt(np.clip(share, 0.0, 1.0)) / multipliers, 0.0)
    np.fill_diagonal(mu, 0.0)
    return mu


def _allocate(bases: list[Array], limits: Array, start: Array, circle: Ints) -> Array:
    """Noises that keep every limit: shrink all as far as they go, then raise whoever is exposed.
    Members of a circle add equal shares.

    A peer's own noise is divided out of what is learned about it, so raising z_u always helps u;
    others lose the cover u gave only when z_u falls. Multiplicative updates settle where each
    peer's worst pair is tight."""

    def ratios(noises: Array) -> Array:
        """How far each peer, or somebody of its circle, is above its limits."""
        alone = np.max(_reached(bases, noises) / limits, axis=1)
        most = np.zeros(int(circle.max()) + 1)
        np.maximum.at(most, circle, alone)
        return np.asarray(most[circle])

    multipliers = start.copy()
    for _ in range(SWEEPS):
        ratio = ratios(multipliers)
        if np.all(np.abs(ratio - 1) < 1e-10):
            break
        multipliers *= np.maximum(ratio, 1e-3)
    for _ in range(SWEEPS):
        ratio = ratios(multipliers)
        if np.all(ratio <= 1 + 1e-12):
            return multipliers
        multipliers = np.where(ratio > 1, multipliers * ratio * (1 + 1e-12), multipliers)
    return multipliers


def exposed(plan: TrustPlan, caps: Array) -> Bools:
    """Pairs whose epsilon passes its cap: none, for a plan that was made for these caps."""
    with np.errstate(invalid="ignore"):
        return plan.epsilon > caps * (1 + 1e-9)
