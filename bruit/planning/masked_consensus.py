"""Masked consensus: gossip gradient descent with a theorem on any graph, K exchanges after every
gradient (gossip:MUF-X3).

A stranger loses a part of a unit a round where gossip SGD is charged a whole one; a neighbor still hears
almost the noisy gradient itself. So it is for budgets on the mean, and for caps that ask little of
neighbors. Exchanges, message noise tau and mask omega are the best of a few.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import message_form
from bruit.algorithms.gossip.masked_consensus import MaskedConsensus
from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.planning.gossip import graph_to_mix, losses_of_pairs, mixings
from bruit.planning.noise import Planned, least_multiplier, least_noise
from bruit.planning.option import Option, ToldError, Traits, refuse_idle, told_error
from bruit.planning.question import Question
from bruit.planning.utility import masked_extra_variance, masked_spread
from bruit.privacy.theorems.consensus import is_uniform

PROTOCOL, TAUS, MASKS = "masked-consensus", (0.2, 0.5, 2.0), (0.3, 1.0)
TRAITS = Traits(learning=(PROTOCOL,))


def option(question: Question) -> Option:
    """A gradient of everybody, K exchanges, a mask; round after round."""
    refuse_idle(question, "steps", "cooldown")
    graph, rounds = _graph(question), question.contributions
    found = [_way(question, graph, *ways) for ways in _ways(graph)]
    best = min(found, key=lambda way: _bound(question, graph, way, _noise(question, way)).error)
    z, rounding = least_noise(
        question,
        lambda asked: least_multiplier(asked, best.losses)[0],
        partial(_rounding, best.learner, graph, rounds),
    )
    told = _bound(question, graph, best, z)
    learner, typical = best.learner, float(np.nanmedian(best.losses)) / rounds
    return Option(
        protocol=PROTOCOL,
        graph=graph.name,
        steps=rounds * learner.mixing,
        noise_multiplier=z,
        status="proven",
        theorem="gradient descent with masked consensus",
        spec="gossip:MUF-X3",
        trust="peers follow the protocol and look only at what they receive; nobody drops out",
        error=told.error,
        at_most=True,
        statement="gossip:MUF-X3, the mean model of all rounds",
        messages=float(rounds * learner.mixing * graph.degrees.mean()),
        loss=least_multiplier(question, best.losses)[1],
        notes=(f"a typical pair loses {typical:.2g} units a round",),
        rounding=rounding,
        algorithm={
            "name": PROTOCOL,
            "rate": told.rate,
            "mixing": learner.mixing,
            "tau": learner.tau,
            "omega": learner.omega,
        },
    )


class _RoundChoice(NamedTuple):
    learner: MaskedConsensus
    losses: Array  # (n, n), of all rounds


def _graph(question: Question) -> Graph:
    graph = graph_to_mix(question, "masked consensus")
    if is_uniform(graph):
        raise PrivacyError(
            "on the complete graph everybody hears every noisy gradient at once: this is local DP"
        )
    return graph


def _ways(graph: Graph) -> list[tuple[int, float, float]]:
    return [(mixing, tau, omega) for mixing in mixings(graph) for tau in TAUS for omega in MASKS]


def _way(question: Question, graph: Graph, mixing: int, tau: float, omega: float) -> _RoundChoice:
    from bruit.privacy.exact import MaskedRound, masked_losses

    each = MaskedRound(mixing, tau, omega)
    m = losses_of_pairs(graph, lambda v: masked_losses(graph, [each], v))
    learner = MaskedConsensus(mixing=mixing, tau=tau, omega=omega)
    return _RoundChoice(learner, question.contributions * np.minimum(m, 1.0))


def _noise(question: Question, way: _RoundChoice) -> float:
    return least_multiplier(question, way.losses)[0]


def _bound(question: Question, graph: Graph, way: _RoundChoice, z: float) -> ToldError:
    each = (way.learner.mixing, way.learner.tau, way.learner.omega)
    extra = masked_extra_variance(graph, *each)
    return told_error(question, graph.n, masked_spread(graph, *each), extra, z)


def _rounding(learner: MaskedConsensus, graph: Graph, rounds: int, home: Planned) -> float:
    """R of a release, a noise on every copy of every message, and a mask, in every round."""
    public = learner.prepare(graph, rounds * learner.mixing)
    copies = message_form(public.exchange, home, more=1.0, memory=public.memory, copies=True)
    mask = message_form(public.exchange, home, more=1.0, memory=public.memory)
    each = home.drawn(OnGrid(copies.grid)) + learner.mixing * home.drawn(copies, learner.tau)
    return graph.n * rounds * (each + home.drawn(mask, learner.omega))
