"""A graph and a noise for each peer when pairs trust each other unequally.

Given caps[u, v], the epsilon that v may learn about u, peers average noisy values on a graph; peer
u adds noise of its own multiplier z_u. With D = diag(z) the view of v is K_v (x + D eta), so what v
learns about u is exactly

    mu(u -> v)^2 = || projection of e_u on row(K_v D) ||^2 / z_u^2                                       (gossip:LG-1)

Q an orthonormal basis of row(K_v): the projector on row(K_v D) is D Q (Q^T D^2 Q)^-1 Q^T D.
Candidate graphs link the pairs that trust each other most, from a spanning tree of largest least
trust upwards. For each graph the noises are found by raising those of violated pairs until every
cap holds; the graph of least error sqrt(sum z_u^2) / n wins. Every cap of the answer is checked
again; without that check there is no answer. All of it is ideal, about real numbers: the dithers
and grids of fp:FP-1 are for equal noises, and the accountant charges a run with unequal ones as
local DP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, from_edges, spectral_gap
from bruit.privacy.exact import row_space
from bruit.privacy.toolbox.gaussian import epsilons, mu_of

MOST_PEERS, SWEEPS = 128, 200


@dataclass(frozen=True, eq=False, kw_only=True)
class TrustPlan:
    """The graph, the rounds, and every peer's noise multiplier; `epsilon[u, v]` is what v may learn
    about u."""

    graph: Graph
    steps: int
    multipliers: Array  # (n,)
    epsilon: Array  # (n, n), nan on the diagonal
    error: float
    local_error: float
    equal_error: float


def facts_of(plan: TrustPlan, caps: Array, delta: float) -> dict[str, Any]:
    """The plan as plain data, beside what local DP would give."""
    return {
        "peers": len(caps),
        "edges": plan.graph.edges().tolist(),
        "steps": plan.steps,
        "noise_multipliers": plan.multipliers.tolist(),
        "noise_multiplier": float(plan.multipliers.max()),
        "status": "ideal",
        "delta": delta,
        "level": "user",
        "tightest": float(np.nanmax(plan.epsilon / caps)),
        "predicted": {
            "error_of_the_mean": plan.error,
            "upper_bound": False,
            "statement": "gossip:LG-1: sqrt(sum z_u^2) / n, once mixed",
        },
        "alternatives": [
            {
                "protocol": "local-dp, a noise per peer",
                "predicted": {"error_of_the_mean": plan.local_error},
            },
            {
                "protocol": "local-dp, one noise for all",
                "predicted": {"error_of_the_mean": plan.equal_error},
            },
        ],
    }


def write_trust(plan: TrustPlan, folder: Path) -> None:
    """Links and noises as two files of a folder; nothing is overwritten."""
    for name in ("edges.txt", "noise_multipliers.csv"):
        if (folder / name).exists():
            raise ConfigError(f"{folder / name} exists; choose another folder for --save")
    folder.mkdir(parents=True, exist_ok=True)
    np.savetxt(folder / "edges.txt", plan.graph.edges(), fmt="%d")
    np.savetxt(
        folder / "noise_multipliers.csv",
        np.stack((np.arange(len(plan.multipliers)), plan.multipliers), axis=1),
        fmt=("%d", "%.12g"),
        delimiter=",",
        header="peer,noise_multiplier",
        comments="",
    )


def read_trust(path: str | Path, epsilon: float, peers: int | None = None) -> Array:
    """caps[u, v] from a CSV file with the columns of, seen_by, epsilon; pairs it does not name get
    `epsilon`."""
    import csv

    try:
        with open(path, newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    missing = {"of", "seen_by", "epsilon"} - set(rows[0] if rows else ())
    if missing:
        raise ConfigError(
            f"{path} needs the columns of, seen_by, epsilon; it lacks {', '.join(sorted(missing))}"
        )
    found = [_pair(path, number, row) for number, row in enumerate(rows, 2)]
    n = max(max(u, v) for u, v, _ in found) + 1 if peers is None else peers
    caps = np.full((n, n), float(epsilon))
    for number, (u, v, value) in enumerate(found, 2):
        if max(u, v) >= n:
            raise ConfigError(
                f"{path}, line {number}: there is no peer {max(u, v)}, the peers are 0..{n - 1}"
            )
        caps[u, v] = value
    np.fill_diagonal(caps, np.nan)
    return caps


def _pair(path: str | Path, number: int, row: dict[str, str]) -> tuple[int, int, float]:
    try:
        u, v, value = int(row["of"]), int(row["seen_by"]), float(row["epsilon"])
    except (TypeError, ValueError):
        wanted = "of and seen_by are peers and epsilon is a number"
        raise ConfigError(f"{path}, line {number}: {wanted}, found {row}") from None
    if u == v:
        raise PrivacyError(
            f"{path}, line {number}: peer {u} has no secrets from itself; name two peers"
        )
    if u < 0 or v < 0 or not value > 0:
        raise PrivacyError(
            f"{path}, line {number}: peers are >= 0 and epsilon is positive, found {row}"
        )
    return u, v, value


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
    best: TrustPlan | None = None
    for graph in _candidates(np.minimum(limits, limits.T)):
        steps = _rounds(graph, float(local.mean()), spread)
        bases = [row_space(graph, [v], steps) for v in range(n)]
        multipliers = _allocate(bases, limits, local) * (
            1 + 1e-9
        )  # rounded up: a cap that is met holds
        mu = _reached(bases, multipliers)
        if not np.all(mu <= limits):
            continue
        off = ~np.eye(n, dtype=bool)
        table = np.full((n, n), np.nan)
        table[off] = epsilons(mu[off], delta)
        error = float(np.sqrt(np.sum(multipliers**2))) / n
        if best is None or error < best.error:
            best = TrustPlan(
                graph=graph,
                steps=steps,
                multipliers=multipliers,
                epsilon=table,
                error=error,
                local_error=floor,
                equal_error=equal,
            )
    if best is None:
        raise PrivacyError(
            "no noise found for these caps on any graph tried; raise the smallest caps"
        )
    return best


def _limits(caps: Array, delta: float) -> Array:
    """The largest mu of every pair, infinite on the diagonal  # (n, n)."""
    off = ~np.eye(len(caps), dtype=bool)
    if np.any(np.isnan(caps[off])) or np.any(caps[off] <= 0):
        raise PrivacyError(
            "every pair needs a positive epsilon; a pair without one has no bound to keep"
        )
    values, place = np.unique(caps[off], return_inverse=True)
    limits = np.full(caps.shape, np.inf)
    limits[off] = np.array([mu_of(float(value), delta) for value in values])[place]
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


def _rounds(graph: Graph, multiplier: float, spread: float) -> int:
    from bruit.algorithms.gossip.muffliato import muffliato

    return (
        min(muffliato(graph, multiplier, spread).steps, 4 * graph.n)
        if spectral_gap(graph) < 1
        else 1
    )


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


def _allocate(bases: list[Array], limits: Array, start: Array) -> Array:
    """Noises that keep every limit: shrink all as far as they go, then raise whoever is exposed.

    A peer's own noise is divided out of what is learned about it, so raising z_u always helps u;
    others lose the cover u gave only when z_u falls. Multiplicative updates settle where each
    peer's worst pair is tight."""
    multipliers = start.copy()
    for _ in range(SWEEPS):
        ratio = np.max(_reached(bases, multipliers) / limits, axis=1)
        if np.all(np.abs(ratio - 1) < 1e-10):
            break
        multipliers *= np.maximum(ratio, 1e-3)
    for _ in range(SWEEPS):
        ratio = np.max(_reached(bases, multipliers) / limits, axis=1)
        if np.all(ratio <= 1 + 1e-12):
            return multipliers
        multipliers = np.where(ratio > 1, multipliers * ratio * (1 + 1e-12), multipliers)
    return multipliers


def exposed(plan: TrustPlan, caps: Array) -> Bools:
    """Pairs whose epsilon passes its cap: none, for a plan that was made for these caps."""
    with np.errstate(invalid="ignore"):
        return plan.epsilon > caps * (1 + 1e-9)
