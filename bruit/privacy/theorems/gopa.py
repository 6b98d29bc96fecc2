"""The exact view of colluders in GOPA: own noise, and noise that cancels between neighbors
(perso:GOPA-3, 7, 8).

    masked_u = x_u + sum over neighbors of Delta_uv + eta_u,   Delta_uv = -Delta_vu ~ N(0, pair^2), eta_u ~ N(0, own^2)
    view of all who are not honest:   N(x, own^2 I + pair^2 L),  L the Laplacian of the honest peers' own graph
    theta_v = [(own^2 I + pair^2 L)^-1]_vv <= 1 / (m own^2) + [L^+]_vv / pair^2,  m the size of v's component

and the view is exactly mu-GDP with mu = sensitivity sqrt(theta_v). Everybody may see all masked
values; observers also know their own noises and every Delta exchanged with them or with peers that
dropped out. A peer whose neighbors are all observers or gone has theta = 1 / own^2: only its own
noise protects it. In local-DP units the loss is own^2 theta.
Hypotheses: honest peers' exchanges with each other are never opened; the graph, dropouts and
colluders do not depend on the data. On a grid only the peers' own noises count (fp:FP-3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.domains import positive
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.privacy.events import Mask
from bruit.privacy.exact import (
    inverse_diagonal,
    laplacian_among,
    pseudo_inverse_diagonal,
)
from bruit.privacy.guarantee import Guarantee, Hypothesis, gaussian
from bruit.privacy.question import Peers, question
from bruit.privacy.theorem import IDEALLY, STANDING, Facts, Theorem, one_release

TITLE, SPEC = "the exact view of GOPA", "perso:GOPA-3"
CLOSED = Hypothesis(
    "exchanges between honest peers are never opened, and their seeds stay secret", checked=False
)
ADVICE = (
    "more neighbors, or more noise between them, brings the loss down to 1/n of a release",
    "fewer colluders and dropouts: only exchanges between honest peers hide anything",
)


def thetas(
    graph: Graph, own_sigma: float, pair_sigma: float, honest: Iterable[int] | None = None
) -> Array:
    """theta_v of every honest peer, in the view of all others together; nan elsewhere  # (n,).

    >>> from bruit.graphs import from_edges
    >>> graph = from_edges(4, [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)])
    >>> thetas(graph, 0.5**0.5, 10**0.5).round(6).tolist()
    [0.518519, 0.530563, 0.518519, 0.530563]
    """
    _check_noise(own_sigma, pair_sigma)
    chosen = _honest(graph.n, honest)
    found = np.full(graph.n, np.nan)
    found[chosen] = inverse_diagonal(laplacian_among(graph, chosen), own_sigma, pair_sigma)
    return found


def theta_bounds(
    graph: Graph, own_sigma: float, pair_sigma: float, honest: Iterable[int] | None = None
) -> Array:
    """1 / (m own^2) + [L^+]_vv / pair^2, m the size of v's component: the closed upper bound
    # (n,)."""
    _check_noise(own_sigma, pair_sigma)
    if pair_sigma == 0:
        raise PrivacyError(
            "the bound needs noise between neighbors, found pair_sigma = 0; use thetas"
        )
    chosen = _honest(graph.n, honest)
    among = laplacian_among(graph, chosen)
    found = np.full(graph.n, np.nan)
    found[chosen] = (
        1 / (among.sizes * own_sigma**2) + pseudo_inverse_diagonal(among) / pair_sigma**2
    )
    return found


def worst_curious(
    graph: Graph, own_sigma: float, pair_sigma: float, honest: Iterable[int] | None = None
) -> float:
    """The largest theta when one of the honest peers is curious too and joins the colluders
    (perso:GOPA-8).

    >>> from bruit.graphs import star
    >>> round(worst_curious(star(10), 1.0, 100.0), 6)
    1.0
    """
    chosen = _honest(graph.n, honest)
    if len(chosen) < 2:
        raise PrivacyError(
            f"a curious peer and its victim are two honest peers, found {len(chosen)}"
        )
    left = (np.delete(chosen, place) for place in range(len(chosen)))
    return max(float(np.nanmax(thetas(graph, own_sigma, pair_sigma, rest))) for rest in left)


def complete_theta(honest: int, own_sigma: float, pair_sigma: float) -> float:
    """theta on a complete graph, whoever the colluders are: (1/m) / own^2 + (1 - 1/m) / (own^2 + m
    pair^2)."""
    _check_noise(own_sigma, pair_sigma)
    if honest < 1:
        raise PrivacyError(f"theta is for at least 1 honest peer, found {honest}")
    return 1 / (honest * own_sigma**2) + (1 - 1 / honest) / (own_sigma**2 + honest * pair_sigma**2)


def sufficient_epsilon(theta: float, delta: float) -> float:
    """The source's sufficient conditions (4.2), (4.3); never below the exact epsilon.

        theta / 2 + sqrt(theta) max(1, sqrt(2 log(2 / (delta sqrt(2 pi)))))

    >>> round(sufficient_epsilon(0.530563083, 1e-5), 6)
    3.726072
    """
    if not theta >= 0:
        raise PrivacyError(f"theta is a number >= 0, found {theta}")
    if not 0 < delta < 1:
        raise PrivacyError(
            f"delta must be between 0 and 1, both excluded, found {delta}; 1e-6 is the usual choice"
        )
    tail = max(0.0, 2 * math.log(2 / (delta * math.sqrt(2 * math.pi))))
    return theta / 2 + math.sqrt(theta) * max(1.0, math.sqrt(tail))


def residual_variance(
    own_sigma: float, pair_sigma: float, online: int, open_edges: int = 0
) -> float:
    """Variance of the published mean: own^2 / online, plus pair^2 / online^2 for every exchange not
    rolled back."""
    _check_noise(own_sigma, pair_sigma)
    if online < 1 or open_edges < 0:
        raise PrivacyError(
            f"a mean needs peers online and a count of exchanges >= 0, found {online} and "
            f"{open_edges}"
        )
    return own_sigma**2 / online + open_edges * pair_sigma**2 / online**2


def gopa_guarantee(
    graph: Graph,
    own_sigma: float,
    pair_sigma: float,
    of: int,
    seen_by: Peers,
    dropped: Iterable[int] = (),
    opened: Iterable[int] = (),
    sensitivity: float = 1.0,
) -> Guarantee:
    """What the observers learn about one peer; `dropped` published nothing, `opened` were rolled
    back afterwards.

    `sensitivity` is how far one value may move in L2; vectors count once, not once per coordinate
    (perso:GOPA-8).
    """
    _check_noise(own_sigma, pair_sigma)
    if not sensitivity > 0:
        raise PrivacyError(f"the sensitivity is a positive number, found {sensitivity}")
    asked = question(graph.n, of, seen_by)
    gone, shown = set(dropped), set(opened)
    if of in gone:
        raise PrivacyError(
            f"peer {of} dropped out and published nothing: there is nothing to learn about it"
        )
    honest = set(range(graph.n)) - set(asked.observers) - gone - shown
    alone = of in shown
    theta = 1 / own_sigma**2 if alone else float(thetas(graph, own_sigma, pair_sigma, honest)[of])
    z = own_sigma / sensitivity
    notes = [
        f"theta = {theta:.6g}; the source's conditions would say epsilon ="
        f" {sufficient_epsilon(theta * sensitivity**2, 1e-6):.6g} at delta = 1e-06"
    ]
    if alone or not honest & set(graph.neighbors(of).tolist()):
        notes.append(_unprotected(of))
    return Guarantee(
        theorem=TITLE,
        spec=SPEC,
        status="ideal",
        level="user",
        of=asked.of,
        against=asked.against,
        hypotheses=(CLOSED, *IDEALLY),
        profile=gaussian(theta * own_sigma**2, z),
        loss=theta * own_sigma**2,
        noise_multiplier=z,
        notes=tuple(notes),
        seen=_seen(len(asked.observers)),
        advice=ADVICE,
    )


@dataclass(frozen=True)
class GopaView(Theorem):
    """The same for a run: everybody but the observers is honest, and `ratio` is pair / own.

    Noise is exchanged over the links of round 0, those that were up: a peer whose links were all
    down has none."""

    ratio: float
    title: ClassVar[str] = TITLE
    spec: ClassVar[str] = SPEC
    about: tuple[str, ...] = field(default=("gopa",), kw_only=True)

    def __post_init__(self) -> None:
        positive(self, "ratio", error=PrivacyError)

    def conditions(self, facts: Facts) -> tuple[Hypothesis, ...]:
        once = one_release(facts)
        self._check_cover(facts)
        cover = Hypothesis(
            "every peer added noise that cancels against its neighbors', before the first message",
            True,
        )
        return (once, cover, CLOSED, *STANDING)

    def _check_cover(self, facts: Facts) -> None:
        wanted = Mask(self.ratio * facts.sigma)
        places = [
            k
            for k, event in enumerate(facts.ledger.events)
            if isinstance(event, Mask) and event.sigma == wanted.sigma
        ]
        lacking = np.flatnonzero(facts.ledger.counts()[:, places].sum(axis=1) == 0)
        if facts.steps and len(lacking):
            raise PrivacyError(
                f"peer {lacking[0]} has no line of canceling noise of sigma = {wanted.sigma:g} in"
                " the ledger; only its own release protects it"
            )

    def rounding(self, facts: Facts) -> float:
        return facts.all_rounding()

    def losses(self, facts: Facts, observers: tuple[int, ...]) -> Array:
        if facts.steps == 0:
            return np.isin(np.arange(facts.n), observers).astype(np.float64)
        honest = np.setdiff1d(np.arange(facts.n), observers)
        if not len(honest):
            return np.ones(facts.n)
        return np.nan_to_num(thetas(facts.at(0), 1.0, self.ratio, honest), nan=1.0)

    def notes(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        honest = np.setdiff1d(np.arange(facts.n), observers)
        if not facts.steps or not len(honest):
            return ()
        among = laplacian_among(facts.at(0), honest)
        alone = among.peers[among.sizes == 1]
        whole = (
            "computed as if all masked values were published, which is more than a few rounds show"
        )
        return (whole, *(_unprotected(int(u)) for u in alone[:3]))

    def seen(self, facts: Facts, observers: tuple[int, ...]) -> str:
        return _seen(len(observers))

    def advice(self, facts: Facts, observers: tuple[int, ...]) -> tuple[str, ...]:
        return ADVICE

    def ends_known(self, facts: Facts) -> bool:
        return (
            facts.steps > 0
        )  # masked values count as published; without a round nothing was masked or said


def _unprotected(peer: int) -> str:
    return f"all neighbors of peer {peer} are observers, gone or opened: only its own noise protects it"


def _seen(observers: int) -> str:
    own = "the observer's" if observers == 1 else "the observers'"
    return f"all masked values, and {own} own values, noises and exchanges"


def _check_noise(own_sigma: float, pair_sigma: float) -> None:
    if not (own_sigma > 0 and math.isfinite(own_sigma)):
        raise PrivacyError(
            f"everybody's own noise must be positive, found own_sigma = {own_sigma}:"
            " without it the sum is exact and protects nobody"
        )
    if not (pair_sigma >= 0 and math.isfinite(pair_sigma)):
        raise PrivacyError(
            f"noise between neighbors is a number >= 0, found pair_sigma = {pair_sigma}"
        )


def _honest(n: int, honest: Iterable[int] | None) -> Ints:
    chosen = np.arange(n) if honest is None else np.unique(np.fromiter(honest, np.int64))
    if not len(chosen):
        raise PrivacyError("nobody is honest: there is nobody left to protect")
    if chosen[0] < 0 or chosen[-1] >= n:
        raise PrivacyError(
            f"honest peers are among 0..{n - 1}, found {int(chosen[0])}..{int(chosen[-1])}"
        )
    return chosen
