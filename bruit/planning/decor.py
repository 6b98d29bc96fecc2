"""DECOR: gossip descent under noise that cancels between neighbors, K exchanges after every gradient
(gossip:COR-1).

Every message may be published: what is charged is who knows which noise. The ratio of the noises and K are
the best of a few, by the proven error: the noise of neighbors does not move the mean model (extra = 0),
and pushes models apart until it is mixed.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.decor import Decor
from bruit.arrays import Array
from bruit.graphs import Graph
from bruit.planning.gossip import graph_to_mix, losses_of_pairs, mixings
from bruit.planning.noise import Planned, least_multiplier, least_noise
from bruit.planning.option import Option, ToldError, Traits, refuse_idle, told_error
from bruit.planning.question import Question
from bruit.planning.utility import correlated_spread

PROTOCOL, RATIOS = "decor", (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
TRAITS = Traits(learning=(PROTOCOL,), simulated=True)


def option(question: Question) -> Option:
    """A gradient of everybody under both noises, K exchanges; round after round."""
    refuse_idle(question, "steps", "cooldown")
    graph, rounds = graph_to_mix(question, "decor"), question.contributions
    exchanges = mixings(graph)
    found = [
        _Ratio(Decor(ratio=ratio, mixing=mixing), losses)
        for ratio in RATIOS
        for losses in [_losses(graph, ratio, rounds)]
        for mixing in exchanges
    ]
    best = min(found, key=lambda way: _bound(question, graph, way, _noise(question, way)).error)
    z, rounding = least_noise(
        question,
        lambda asked: _noise(asked, best),
        partial(_rounding, best.learner, graph, rounds),
    )
    told, learner = _bound(question, graph, best, z), best.learner
    return Option(
        protocol=PROTOCOL,
        graph=graph.name,
        steps=rounds * learner.mixing,
        noise_multiplier=z,
        status="proven",
        theorem="correlated noise, all messages published",
        spec="gossip:COR-1",
        trust="peers follow the protocol and keep secret the noise that they share; nobody drops out",
        error=told.error,
        at_most=True,
        statement="gossip:MUF-X3, the mean model of all rounds",
        messages=float(rounds * learner.mixing * graph.degrees.mean()),
        loss=least_multiplier(question, best.losses)[1],
        notes=(
            "simulated only; real peers share masks with everybody (masked-sgd)",
            f"noise between neighbors of {learner.ratio:g} times that of a release",
        ),
        rounding=rounding,
        algorithm={
            "name": PROTOCOL,
            "rate": told.rate,
            "ratio": learner.ratio,
            "mixing": learner.mixing,
        },
    )


class _Ratio(NamedTuple):
    learner: Decor
    losses: Array  # (n, n), of all rounds


def _losses(graph: Graph, ratio: float, rounds: int) -> Array:
    from bruit.privacy.exact import CorrelatedNoise, correlated_losses

    noise = CorrelatedNoise(pair=ratio)
    return losses_of_pairs(graph, lambda v: correlated_losses(graph, noise, rounds, (v,)))


def _noise(question: Question, way: _Ratio) -> float:
    return least_multiplier(question, way.losses)[0]


def _bound(question: Question, graph: Graph, way: _Ratio, multiplier: float) -> ToldError:
    spread = correlated_spread(graph, way.learner.mixing, way.learner.ratio)
    return told_error(question, graph.n, spread, 0.0, multiplier)


def _rounding(learner: Decor, graph: Graph, rounds: int, home: Planned) -> float:
    """R of a release and of the draws of each edge in every round, at both of its ends."""
    public = learner.prepare(graph, rounds * learner.mixing)
    on = OnGrid(home.grid(1.0, public.data, public.noise))
    links = float(graph.degrees.sum())
    return rounds * (graph.n * home.drawn(on) + links * home.drawn(on, learner.ratio))
