"""What if: graph, noise, rounds and observers in; who could reconstruct whom, losses by distance and the error out.

    loss of u      exact, in local-DP units, for the joint view of the observers (gossip:MUF-2); epsilon from it, for
                   what is sent if values are single numbers (fp:FP-1)
    computable     peers whose values the observers could compute if nobody added noise (gossip:REC-1), exactly
    error^2        sigma^2 |P|_F^2 / n + spread |P - J|_2^2,   P = P_T(W), J the mean, spread = 1/4   (gossip:MUF-4)

Values lie in [0, 1], so the noise multiplier is sigma. All from the graph alone: O(n^3 + T n^2), n <= 256; drawings and
spectra are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from bruit.algorithms.averaging import Averaging
from bruit.algorithms.chebyshev import Chebyshev
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, spectral_gap
from bruit.graphs import graph as named
from bruit.graphs.coordinates import coordinates
from bruit.planning.gossip import mixed_rounding
from bruit.planning.precision import Planned
from bruit.privacy.account import Charge

MOST_PEERS, MOST_STEPS = 256, 50  # what is answered within a second
SPREAD = 0.25  # variance of values in [0, 1], at most


def _side(n: int) -> tuple[int, int]:
    """The rectangle of at most n places that is nearest to a square."""
    rows = max(2, math.isqrt(n))
    return rows, max(2, n // rows)


def _named(family: str, n: int) -> str:
    rows, columns = _side(n)
    even, reach = 6 if n > 7 else 2, 1.6 * math.sqrt(math.log(n) / (math.pi * n))
    names = {
        "ring": f"ring:{n}", "path": f"path:{n}", "star": f"star:{n}", "complete": f"complete:{n}",
        "torus": f"torus:{max(3, rows)}x{max(3, columns)}", "grid": f"grid:{rows}x{columns}",
        "hypercube": f"hypercube:{n.bit_length() - 1}", "exponential": f"exponential:{n}",
        "random": f"er:{n},c=2", "regular": f"regular:{n},degree={even}",
        "geometric": f"geometric:{n},radius={reach:.3g}",
        "small-world": f"ws:{max(6, n)},k=4,p=0.1", "hubs": f"ba:{max(6, n)},m=3",
    }  # fmt: skip
    if family not in names:
        raise ConfigError(f"there is no family {family!r}; choose {', '.join(names)}")
    return names[family]


FAMILIES = ("torus", "ring", "path", "grid", "star", "complete", "hypercube", "exponential", "random", "regular",
            "geometric", "small-world", "hubs")  # fmt: skip


@dataclass(frozen=True)
class WhatIf:
    """One question. Sizes a family does not have are replaced by the next smaller one it has."""

    family: str = "torus"
    peers: int = 64
    steps: int = 10
    noise: float = 1.0
    observers: tuple[int, ...] = (0,)
    accelerated: bool = False
    delta: float = 1e-6

    def __post_init__(self) -> None:
        if not 4 <= self.peers <= MOST_PEERS:
            raise ConfigError(f"what-if draws 4 to {MOST_PEERS} peers, found {self.peers}; for more use `bruit plan`")
        if not 0 <= self.steps <= MOST_STEPS:
            raise ConfigError(f"what-if goes up to {MOST_STEPS} rounds, found {self.steps}")
        if not (self.noise >= 0 and math.isfinite(self.noise)):
            raise ConfigError(f"noise is a standard deviation >= 0, found {self.noise}")
        if not 0 < self.delta < 1:
            raise PrivacyError(f"delta must lie strictly between 0 and 1, found {self.delta}; 1e-6 is the usual choice")

    def graph(self) -> Graph:
        return _drawn(_named(self.family, self.peers))


def answer(asked: WhatIf) -> dict[str, Any]:
    """All that the page draws, as plain data."""
    graph = asked.graph()
    watching = sorted({v for v in asked.observers if 0 <= v < graph.n}) or [0]
    charge = _charge(graph.name, tuple(watching), asked.steps).scaled(asked.noise)
    if asked.noise:
        charge = replace(charge, rounding=_rounding(graph, asked))
    losses, epsilons = charge.loss, charge.epsilons(asked.delta)
    away = np.min([graph.distances(v) for v in watching], axis=0)
    others = np.setdiff1d(np.arange(graph.n), watching)
    known = list(_computable(graph.name, tuple(watching), asked.steps))
    error = predicted_error(graph, asked)
    return {
        "graph": graph.name, "peers": graph.n, "edges": graph.edges().tolist(),
        "picture": _picture(graph.name), "places": _picture(graph.name)["places"], "observers": watching,
        "distances": away.tolist(),
        "losses": [None if v in watching else float(losses[v]) for v in range(graph.n)],
        "epsilons": [None if v in watching or math.isinf(epsilons[v]) else float(epsilons[v]) for v in range(graph.n)],
        "computable": known, "by_distance": _by_distance(losses, epsilons, away, others),
        "error": error, "error_of_local_dp": asked.noise / math.sqrt(graph.n), "delta": asked.delta, "level": "user",
        "sentence": _sentence(asked, graph, watching, others, losses, epsilons, known, error),
    }  # fmt: skip


def _rounding(graph: Graph, asked: WhatIf) -> float:
    """R of the messages, with this noise (fp:FP-1)."""
    ways: list[Averaging | Chebyshev] = [Averaging()]
    if asked.accelerated and spectral_gap(graph) > 1e-12:
        ways.append(Chebyshev())
    return max(mixed_rounding(algorithm, graph, asked.steps, Planned(asked.noise, 1)) for algorithm in ways)


def predicted_error(graph: Graph, asked: WhatIf) -> float:
    """Root mean square distance of a peer's estimate from the true mean: noise exactly, values at worst."""
    from bruit.graphs.spectrum import chebyshev_gamma

    gap = spectral_gap(graph)
    gamma = chebyshev_gamma(gap) if asked.accelerated and 0 < gap < 1 else 1.0
    levels = np.array(_eigenvalues(graph.name))
    before = now = np.ones(graph.n)
    for t in range(asked.steps):
        before, now = now, levels * now if t == 0 else gamma * levels * now + (1 - gamma) * before
    left = float(np.abs(now[:-1]).max())  # the last one is the mean's
    return math.sqrt(asked.noise**2 * float((now**2).sum()) / graph.n + SPREAD * left**2)


@lru_cache(maxsize=64)
def _drawn(name: str) -> Graph:
    made = named(name)
    if not isinstance(made, Graph):
        raise ConfigError(f"{made.name} changes over time; what-if draws one fixed graph")
    return made


@lru_cache(maxsize=64)
def _eigenvalues(name: str) -> tuple[float, ...]:
    """Of the symmetric weights, in rising order."""
    return tuple(np.linalg.eigvalsh(_drawn(name).weights.toarray()).tolist())


@lru_cache(maxsize=64)
def _picture(name: str) -> dict[str, Any]:
    return coordinates(_drawn(name)).plain()


@lru_cache(maxsize=64)
def _charge(name: str, watching: tuple[int, ...], steps: int) -> Charge:
    """What the accountant charges with noise multiplier 1, whatever the noise: dragging it asks for nothing new.

    Accelerated gossip shows the same on one fixed graph (gossip:MUF-2)."""
    from bruit.experiment import rehearse
    from bruit.mechanisms import Gaussian

    unit = Gaussian(clip=0.5, sigma=1.0)
    return rehearse(Averaging(), _drawn(name), unit, steps).accountant().charge(watching)


@lru_cache(maxsize=64)
def _computable(name: str, watching: tuple[int, ...], steps: int) -> tuple[int, ...]:
    from bruit.attacks.reconstruct import reconstructible

    found = reconstructible(_drawn(name), watching, steps).peers
    return tuple(int(v) for v in found if v not in watching)


def _by_distance(losses: Array, epsilons: Array, away: Ints, others: Ints) -> list[dict[str, float | None]]:
    """Mean and largest loss, and the largest epsilon, at every distance from the nearest observer."""
    rows: list[dict[str, float | None]] = []
    for far in np.unique(away[others]):
        here = others[away[others] == far]
        worst = float(epsilons[here].max())
        rows.append({"distance": int(far), "peers": len(here), "mean": float(losses[here].mean()),
                     "worst": float(losses[here].max()), "epsilon": None if math.isinf(worst) else worst})  # fmt: skip
    return rows


def _sentence(asked: WhatIf, graph: Graph, watching: list[int], others: Ints, losses: Array, epsilons: Array,
              known: list[int], error: float) -> str:  # fmt: skip
    who = f"peer {watching[0]}" if len(watching) == 1 else f"these {len(watching)} peers together"
    without = f"Without noise {who} could compute the values of {len(known)} of {len(others)} others."
    if not len(others):
        return "Everybody looks on: there is nobody left to protect."
    if not asked.noise:
        return f"{without} There is no noise."
    worst = int(others[np.argmax(losses[others])])
    middle = float(np.median(epsilons[others]))
    return (f"{without} With this noise the worst pair (peer {worst}) has epsilon {epsilons[worst]:.3g}, the typical"
            f" one {middle:.3g}, at delta {asked.delta:g}, user level; the mean is off by {error:.3g} (values in"
            " [0, 1]).")
