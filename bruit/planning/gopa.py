"""GOPA: canceling noise between neighbors and a share of a curator's noise from everybody
(perso:GOPA-3, 4, 8).

    own^2 = (1 + s) / (n_H mu^2),   pair noise such that theta = mu^2;   error of the mean own / sqrt(n)

n_H = n minus the colluders, whoever they are. On a complete graph theta is known exactly for every
coalition; on a random k-out graph, which needs fewer exchanges, the k-out theorem holds from 81
honest peers on; that one is quoted.
"""

from __future__ import annotations

import math
from functools import partial

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import sum_grid
from bruit.errors import PrivacyError
from bruit.how_many import how_many
from bruit.planning.noise import Planned, least_noise
from bruit.planning.option import Option, Traits, refuse_idle, rounded_up
from bruit.planning.question import Question
from bruit.privacy.ahead.gopa_k_out import FEWEST, Crowd, least_k, spread
from bruit.privacy.guarantee import Status
from bruit.privacy.toolbox.gaussian import mu_of

SURPLUS = 0.01
"""s: the own noise above the least possible, which the noise between neighbors may spend."""
TRAITS = Traits(own_graph=True)


def option(question: Question) -> Option:
    """The mean of one value per peer; GOPA brings its own graph."""
    if question.job != "mean":
        raise PrivacyError("GOPA averages one value per peer: it sums, not learns")
    if question.caps is not None:
        raise PrivacyError(
            "what GOPA publishes everybody sees: there is nothing to choose between pairs"
        )
    refuse_idle(question, "steps", "cooldown")
    honest = question.peers - question.colluders
    if honest < 2:
        raise PrivacyError(
            f"with {how_many(question.colluders, 'colluder')} among {question.peers} peers all "
            "neighbors of the last one collude, and only local noise protects it: use local-dp"
        )
    sparse = _k_out(question, honest) if honest >= FEWEST else None
    return _complete(question, honest) if sparse is None else sparse


def _own(honest: int, mu: float) -> float:
    return math.sqrt((1 + SURPLUS) / honest) / mu


def _complete(question: Question, honest: int) -> Option:
    n = question.peers
    # both noises are those of mu = 1, divided by mu
    rest, one = SURPLUS / (1 + SURPLUS), _own(honest, 1.0)
    ratio = math.sqrt(max(0.0, ((1 - 1 / honest) / rest - one**2) / honest)) / one
    own, rounding = least_noise(
        question, lambda asked: _own(honest, asked.mu), partial(_rounding, n, n - 1, ratio)
    )
    title = "the exact view of GOPA"
    return _stated(
        question=question,
        graph=f"complete:{n}",
        degree=n - 1,
        own=own,
        ratio=ratio,
        theorem=title,
        spec="perso:GOPA-3",
        status="proven",
        honest=honest,
        rounding=rounding,
    )


def _rounding(n: int, degree: int, ratio: float, home: Planned) -> float:
    """R of the own noises of all; those that cancel add nothing to it (fp:FP-3)."""
    return n * home.drawn(OnGrid(sum_grid(home, n, 1.0 + ratio * math.sqrt(degree))))


def _k_out(question: Question, honest: int) -> Option | None:
    """None where the theorem would need more picks than half of the peers: complete is then as
    cheap."""
    n, crowd = (
        question.peers,
        Crowd(question.peers, (question.peers - question.colluders) / question.peers),
    )
    try:
        k = least_k(crowd, question.delta / 3)
    except PrivacyError:
        return None
    if 2 * k >= n:
        return None
    ratio = math.sqrt(spread(crowd, k) * (1 + SURPLUS) / SURPLUS) / _own(honest, 1.0)
    own, rounding = least_noise(
        question,
        lambda asked: _own(honest, mu_of(asked.epsilon, asked.delta / 3)),
        partial(_rounding, n, n - 1, ratio),
    )
    degree = 2 * k - k * k / (n - 1)
    theorem, graph = "GOPA on a random k-out graph", f"kout:{n},k={k}"
    return _stated(
        question=question,
        graph=graph,
        degree=degree,
        own=own,
        ratio=ratio,
        theorem=theorem,
        spec="perso:GOPA-4",
        status="quoted",
        honest=honest,
        rounding=rounding,
    )


def _stated(
    question: Question,
    graph: str,
    degree: float,
    own: float,
    ratio: float,
    theorem: str,
    spec: str,
    status: Status,
    honest: int,
    rounding: float,
) -> Option:
    noise = f"noise between neighbors of {rounded_up(ratio * own)} sensitivities, ratio {rounded_up(ratio)}"
    cost = f"{2 * degree:.4g} of the messages are keys and confirmations of a few dozen bytes; one carries the value"
    return Option(
        protocol="gopa",
        graph=graph,
        steps=1,
        noise_multiplier=own,
        status=status,
        theorem=theorem,
        spec=spec,
        trust=f"{honest} of {question.peers} peers are honest and stay",
        error=own / math.sqrt(question.peers),
        at_most=False,
        statement="perso:GOPA-5: own / sqrt(n)",
        messages=2 * degree + 1,
        loss=question.mu**2 * own**2,
        notes=(
            noise,
            cost,
            "who drops out is rolled back, as long as it has published nothing",
            "between real peers with `bruit mean --book`",
        ),
        rounding=rounding,
        algorithm={"name": "gopa", "ratio": float(rounded_up(ratio))},
    )
