"""What if: graph, noise, rounds and observers in; who could reconstruct whom, losses by distance
and the error out.

    loss of u      exact, in local-DP units, for the joint view of the observers (gossip:MUF-2); epsilon from it, for
                   what is sent if values are single numbers (fp:FP-1)
    computable     peers whose values the observers could compute if nobody added noise (gossip:REC-1), exactly
    error^2        sigma^2 |P|_F^2 / n + spread |P - J|_2^2,   P = P_T(W), J the mean, spread = 1/4   (gossip:MUF-4)
                   on a butterfly P is the product of the matrices of its rounds

Values lie in [0, 1], so the noise multiplier is sigma. All from the graph alone: O(n^3 + T n^2), n
<= 256; drawings and spectra are kept. What is asked is an experiment file, which `build` turns into
graph, algorithm and noise as for every run: it can be saved, and it runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np

from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.chebyshev import Chebyshev
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence, spectral_gap
from bruit.graphs.coordinates import coordinates, talking
from bruit.how_many import how_many
from bruit.planning.gossip import mixed_rounding
from bruit.planning.noise import Planned
from bruit.privacy.charge import Charge
from bruit.runs.build import Experiment, build
from bruit.runs.file import parse
from bruit.runs.run import rehearse

MOST_PEERS, MOST_STEPS = 256, 50  # what is answered within a second
RECORDS = (
    "this page averages one value of each peer, so there are no records in it to protect one by "
    "one, and it gives no epsilon at record level; `bruit plan --silos` and `bruit epsilon --level "
    "record` answer for training on records, with clip and sample rate"
)
SPREAD = 0.25  # variance of values in [0, 1], at most


def _side(n: int) -> tuple[int, int]:
    """The rectangle of at most n places that is nearest to a square."""
    rows = max(2, math.isqrt(n))
    return rows, max(2, n // rows)


def _named(family: str, n: int) -> str:
    rows, columns = _side(n)
    even, reach = 6 if n > 7 else 2, 1.6 * math.sqrt(math.log(n) / (math.pi * n))
    names = {
        "ring": f"ring:{n}",
        "path": f"path:{n}",
        "star": f"star:{n}",
        "complete": f"complete:{n}",
        "torus": f"torus:{max(3, rows)}x{max(3, columns)}",
        "grid": f"grid:{rows}x{columns}",
        "hypercube": f"hypercube:{n.bit_length() - 1}",
        "exponential": f"exponential:{n}",
        "random": f"er:{n},c=2",
        "regular": f"regular:{n},degree={even}",
        "geometric": f"geometric:{n},radius={reach:.3g}",
        "small-world": f"ws:{max(6, n)},k=4,p=0.1",
        "hubs": f"ba:{max(6, n)},m=3",
        "butterfly": f"butterfly:{2 ** (n.bit_length() - 1)}",
    }
    if family not in names:
        raise ConfigError(f"there is no family {family!r}; choose {', '.join(names)}")
    return names[family]


FAMILIES = (
    "torus",
    "ring",
    "path",
    "grid",
    "star",
    "complete",
    "hypercube",
    "exponential",
    "random",
    "regular",
    "geometric",
    "small-world",
    "hubs",
    "butterfly",
)


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """One question. Sizes a family does not have are replaced by the next smaller one it has."""

    family: str = "torus"
    peers: int = 64
    steps: int = 10
    noise: float = 1.0
    observers: tuple[int, ...] = (0,)
    accelerated: bool = False
    delta: float = 1e-6
    level: str = "user"

    def __post_init__(self) -> None:
        if self.level == "record":
            raise PrivacyError(RECORDS)
        if self.level != "user":
            raise ConfigError(f"level is 'user' or 'record', found {self.level!r}")
        if not 4 <= self.peers <= MOST_PEERS:
            raise ConfigError(
                f"what-if draws 4 to {MOST_PEERS} peers, found {self.peers}; for more use `bruit "
                f"plan`"
            )
        if not 0 <= self.steps <= MOST_STEPS:
            raise ConfigError(f"what-if goes up to {MOST_STEPS} rounds, found {self.steps}")
        if not (self.noise >= 0 and math.isfinite(self.noise)):
            raise ConfigError(f"noise is a standard deviation >= 0, found {self.noise}")
        if not 0 < self.delta < 1:
            raise PrivacyError(
                f"delta must lie strictly between 0 and 1, found {self.delta}; 1e-6 is the usual "
                f"choice"
            )

    def graph(self) -> Graph | GraphSequence:
        return _graph_named(self.graph_name)

    @property
    def graph_name(self) -> str:
        return _named(self.family, self.peers)


def answer(asked: WhatIf) -> dict[str, Any]:
    """All that the page draws, as plain data."""
    graph = asked.graph()
    watching = tuple(sorted({v for v in asked.observers if 0 <= v < graph.n})) or (0,)
    charge = _scaled_charge(graph, asked, watching)
    losses, epsilons = charge.loss, charge.epsilons(asked.delta)
    links = _links(graph.name, asked.steps)
    away = np.min([links.distances(v) for v in watching], axis=0)
    others = np.setdiff1d(np.arange(graph.n), watching)
    known = list(_computable(graph.name, watching, asked.steps))
    error, picture = predicted_error(graph, asked), _picture(graph.name, asked.steps)
    return {
        "graph": graph.name,
        "peers": graph.n,
        "edges": links.edges().tolist(),
        "picture": picture,
        "places": picture["places"],
        "observers": list(watching),
        "distances": away.tolist(),
        "losses": [None if v in watching else float(losses[v]) for v in range(graph.n)],
        "epsilons": [
            None if v in watching or math.isinf(epsilons[v]) else float(epsilons[v])
            for v in range(graph.n)
        ],
        "computable": known,
        "by_distance": _by_distance(losses, epsilons, away, others),
        "error": error,
        "error_of_local_dp": asked.noise / math.sqrt(graph.n),
        "delta": asked.delta,
        "level": asked.level,
        "changing": not isinstance(graph, Graph),
        "sentence": _sentence(asked, list(watching), others, losses, epsilons, known, error),
    }


def experiment(asked: WhatIf) -> str:
    """The same question as an experiment file: a private mean of values that are drawn."""
    graph = asked.graph()
    fast = asked.accelerated and isinstance(graph, Graph)
    return (
        f"# What if: {asked.family}, {how_many(graph.n, 'peer')}, "
        f"{how_many(asked.steps, 'round')}, noise {asked.noise:g}\n"
        + _file(graph.name, asked.steps, asked.noise, fast, asked.delta)
    )


def _file(name: str, steps: int, noise: float, fast: bool, delta: float) -> str:
    algorithm = Chebyshev.name() if fast else Averaging.name()
    text = (
        f'graph = "{name}"\nsteps = {steps}\nseed = 0\n\n[task]\nkind = "mean"\n\n'
        f'[algorithm]\nname = "{algorithm}"\n'
    )
    if not noise:
        return text
    return (
        f"{text}\n[privacy]\nclip = 0.5  # values are cut to a range of length 1\n"
        f"sigma = {float(noise)!r}\ndelta = {delta:g}\n"
    )


@lru_cache(maxsize=64)
def _built(name: str, steps: int = 1, noise: float = 1.0, fast: bool = False) -> Experiment:
    """Graph, algorithm and noise of a question, built and checked as those of every run. No run has
    0 rounds; a question about them is built with one."""
    return build(parse(_file(name, max(1, steps), noise, fast, 1e-6)))


def _scaled_charge(
    graph: Graph | GraphSequence, asked: WhatIf, watching: tuple[int, ...]
) -> Charge:
    """What the accountant charges for this noise. On a fixed graph dragging the noise asks for
    nothing new."""
    if not isinstance(graph, Graph):
        return _charge(graph.name, watching, asked.steps, asked.noise or 1.0).scaled(
            1.0 if asked.noise else 0.0
        )
    charge = _charge(graph.name, watching, asked.steps, 1.0).scaled(asked.noise)
    return replace(charge, rounding=_rounding(graph, asked)) if asked.noise else charge


def _rounding(graph: Graph, asked: WhatIf) -> float:
    """R of the messages, with this noise (fp:FP-1)."""
    ways = [False, True] if asked.accelerated and spectral_gap(graph) > 1e-12 else [False]
    built = [cast(Averaging | Chebyshev, _built(graph.name, fast=fast).algorithm) for fast in ways]
    return max(
        mixed_rounding(algorithm, graph, asked.steps, Planned(asked.noise, 1))
        for algorithm in built
    )


def predicted_error(graph: Graph | GraphSequence, asked: WhatIf) -> float:
    """Root mean square distance of a peer's estimate from the true mean: noise exactly, values at
    worst."""
    if not isinstance(graph, Graph):
        size, left = _mixed(graph.name, asked.steps)
        return math.sqrt(asked.noise**2 * size / graph.n + SPREAD * left**2)
    from bruit.graphs.spectrum import chebyshev_gamma

    gap = spectral_gap(graph)
    gamma = chebyshev_gamma(gap) if asked.accelerated and 0 < gap < 1 else 1.0
    levels = np.array(_eigenvalues(graph.name))
    before = now = np.ones(graph.n)
    for t in range(asked.steps):
        before, now = now, levels * now if t == 0 else gamma * levels * now + (1 - gamma) * before
    left = float(np.abs(now[:-1]).max())  # the last one is the mean's
    return math.sqrt(asked.noise**2 * float((now**2).sum()) / graph.n + SPREAD * left**2)


def _graph_named(name: str) -> Graph | GraphSequence:
    return _built(name).graph


@lru_cache(maxsize=64)
def _links(name: str, steps: int) -> Graph:
    """Who talks to whom, in some round if the graph changes."""
    graph = _graph_named(name)
    return graph if isinstance(graph, Graph) else talking(graph, max(1, steps))


@lru_cache(maxsize=64)
def _eigenvalues(name: str) -> tuple[float, ...]:
    """Of the symmetric weights, in rising order."""
    graph = _graph_named(name)
    return (
        tuple(np.linalg.eigvalsh(graph.weights.toarray()).tolist())
        if isinstance(graph, Graph)
        else ()
    )


@lru_cache(maxsize=64)
def _mixed(name: str, steps: int) -> tuple[float, float]:
    """|P|_F^2 and |P - J|_2 of the product of so many rounds."""
    graph = _graph_named(name)
    P = np.eye(graph.n)
    for t in range(steps):
        P = np.asarray((graph if isinstance(graph, Graph) else graph.at(t)).weights @ P)
    return float((P**2).sum()), float(np.linalg.norm(P - 1 / graph.n, 2))


@lru_cache(maxsize=64)
def _picture(name: str, steps: int) -> dict[str, Any]:
    graph = _graph_named(name)
    return coordinates(graph, None if isinstance(graph, Graph) else max(1, steps)).plain()


@lru_cache(maxsize=64)
def _charge(name: str, watching: tuple[int, ...], steps: int, noise: float) -> Charge:
    """What the accountant charges with this noise multiplier.

    Accelerated gossip shows the same on one fixed graph (gossip:MUF-2)."""
    asked = _built(name, steps, noise)
    blank = rehearse(asked.algorithm, asked.graph, asked.privacy, steps)
    return blank.accountant().charge(watching)


@lru_cache(maxsize=64)
def _computable(name: str, watching: tuple[int, ...], steps: int) -> tuple[int, ...]:
    from bruit.adversary.attacks.reconstruct import reconstructible

    found = reconstructible(_graph_named(name), watching, steps).peers
    return tuple(int(v) for v in found if v not in watching)


def _by_distance(
    losses: Array, epsilons: Array, away: Ints, others: Ints
) -> list[dict[str, float | None]]:
    """Mean and largest loss, and the largest epsilon, at every distance from the nearest
    observer."""
    rows: list[dict[str, float | None]] = []
    for far in np.unique(away[others]):
        here = others[away[others] == far]
        worst = float(epsilons[here].max())
        rows.append(
            {
                "distance": int(far),
                "peers": len(here),
                "mean": float(losses[here].mean()),
                "worst": float(losses[here].max()),
                "epsilon": None if math.isinf(worst) else worst,
            }
        )
    return rows


def _sentence(
    asked: WhatIf,
    watching: list[int],
    others: Ints,
    losses: Array,
    epsilons: Array,
    known: list[int],
    error: float,
) -> str:
    who = f"peer {watching[0]}" if len(watching) == 1 else f"these {len(watching)} peers together"
    without = f"Without noise {who} could compute the values of {len(known)} of {how_many(len(others), 'other')}."
    if not len(others):
        return "Everybody looks on: there is nobody left to protect."
    if not asked.noise:
        return f"{without} There is no noise."
    worst = int(others[np.argmax(losses[others])])
    middle = float(np.median(epsilons[others]))
    return (
        f"{without} With this noise the worst pair (peer {worst}) has epsilon"
        f" {epsilons[worst]:.3g}, the typical one {middle:.3g}, at delta {asked.delta:g}, user"
        f" level; the mean is off by {error:.3g} (values in [0, 1])."
    )
