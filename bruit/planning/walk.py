"""A token walk: whoever holds the model takes one noisy gradient step and passes it on (walk:RW-7,
RW-14).

The noise of everybody the token met since hides each contribution: on the complete graph of 2000
peers, 12 contributions at (1, 1e-6) need a noise multiplier of 3.4 where local DP needs 14.6. A
plan covers every pair: by one law on the complete graph, by the exact laws of all pairs of a small
graph, else by the Renyi bound of all pairs.
"""

from __future__ import annotations

import math

from bruit.algorithms.tokens.walk_sgd import WalkSGD
from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.planning.noise import Planned
from bruit.planning.option import Option, Traits, descent_error, descent_rate
from bruit.planning.question import Question
from bruit.privacy.ahead.walk_ahead import (
    SegmentLaw,
    complete_law,
    least_noise_of,
    segment_law,
    walk_energies,
    walk_profile,
)
from bruit.privacy.ahead.walk_pairs import summary
from bruit.privacy.theorems.consensus import is_uniform
from bruit.privacy.theorems.walk_hypotheses import FLOATS, limits

EXACT_PAIRS, ALL_PAIRS, ALIKE, FOLLOWED, COARSE = 12, 512, 2048, 4096, 2**14
"""Peers up to which pairs are followed exactly, and up to which all are bounded: any graph, and one
of equal peers."""
START = (
    0.5  # noise multipliers are seldom below: R is that of the least noise that may be the answer
)
BEFORE = (
    "before the walk, over all the ways it may go; after it, `bruit epsilon` tells what the walk"
    " that happened gave away, which may be more or less"
)
SLACK = 1.2  # visits the cap allows, over the mean: as in the published experiments (walk:F-4)
TRAITS = Traits(also=("walk-sgd",), learning=("walk", "walk-sgd"))


def option(question: Question) -> Option:
    """Walk SGD with a cap on contributions; the mean is learned as a model of one number."""
    graph, rounds = _graph(question), question.contributions
    learning = question.job == "learning"
    hops = _hops(question, graph.n)
    z, theorem, rounding = _sent(question, graph, hops)
    error = (
        descent_error(question, hops, z**2) if learning else _mean_error(question, graph.n, hops, z)
    )
    statement = (
        "walk:RW-3, Prop. 7.3, the few visits above the cap left out"
        if learning
        else "walk:RW-14, one contribution each: visits of uniform peers, silent ones add noise too"
    )
    notes = (
        str(limits(rounds, question.cooldown)),
        str(FLOATS),
        "assumed: the last token is not published; losses are convex and smooth, the rate is at "
        "most 2 / beta",
        BEFORE,
    )
    return Option(
        protocol="walk",
        graph=graph.name,
        steps=hops,
        noise_multiplier=z,
        status="proven",
        theorem=theorem,
        spec="walk:RW-14",
        trust="peers follow the protocol and add the full noise",
        error=error,
        at_most=False,
        statement=statement,
        messages=hops / graph.n,
        loss=math.nan,
        notes=notes,
        rounding=rounding,
        algorithm={
            "name": "walk-sgd",
            "rate": descent_rate(question, hops, z**2),
            "cap": rounds,
            "rest": question.cooldown,
        }
        if learning
        else None,
        # gradients are to be short, not cut: rows have length 1
        task={"derivative_clip": question.sensitivity / 2},
    )


def _graph(question: Question) -> Graph:
    """The graph that the token walks on, if its theorem covers the question."""
    if question.caps is not None or question.protect == "mean":
        raise PrivacyError(
            "the walk is planned for the worst pair; after a run `bruit epsilon` tells every pair"
        )
    if not isinstance(question.graph, Graph):
        raise PrivacyError("a token walks on one fixed graph; name one")
    if question.job == "mean" and not is_uniform(question.graph):
        raise PrivacyError(
            "the error of a mean by a walk is known where visits are uniform: on the complete graph"
        )
    return question.graph


def _hops(question: Question, n: int) -> int:
    """As many as asked for; else what the cap allows on average with some slack, or one for each
    peer of a mean."""
    if question.steps is None:
        return (
            max(1, round(question.contributions * n / SLACK)) if question.job == "learning" else n
        )
    if question.steps > question.contributions * n:
        raise PrivacyError(
            f"{question.steps} hops are more than {n} peers can use, who contribute at most"
            f" {question.contributions} times each; ask for {question.contributions * n} steps or"
            " fewer, or for more contributions"
        )
    return question.steps


def _mean_error(question: Question, n: int, hops: int, z: float) -> float:
    """h hops reach a share s = 1 - (1 - 1/n)^h of the peers, each of whom contributes once; every
    hop adds noise.

        sqrt(h z^2 / (s n)^2 + spread (1 - s) / (s n))
    """
    reached = 1 - (1 - 1 / n) ** hops
    return math.sqrt(
        hops * (z / (n * reached)) ** 2 + question.spread * (1 - reached) / (reached * n)
    )


def _sent(question: Question, graph: Graph, hops: int) -> tuple[float, str, float]:
    """The same for what is sent: R of all hops, at no more noise than the answer, and its part of
    epsilon."""
    floor = START
    while True:
        home = Planned(floor, question.dim)
        rounding = hops * home.drawn(
            WalkSGD(rate=1.0).form(hops, question.dim, home.grid, home.reach)
        )
        z, theorem = _least(question.sent(rounding), graph)
        if z >= floor:
            return z, theorem, rounding
        floor /= 16


def _least(question: Question, graph: Graph) -> tuple[float, str]:
    """The least noise multiplier that keeps every pair within the budget, and by which theorem."""
    cap, ahead = question.contributions, "the walk seen from before its start"
    if is_uniform(graph):
        return _least_of(
            question, [complete_law(graph.n, question.colluders, question.cooldown)]
        ), ahead
    if question.colluders > 1:
        raise PrivacyError(
            "colluders on a walk are planned on the complete graph; elsewhere name them after a run"
        )
    if graph.n <= EXACT_PAIRS:
        pairs = [
            (u, v)
            for u in range(1 if graph.group is not None else graph.n)
            for v in range(graph.n)
            if u != v
        ]
        return _least_of(
            question,
            [segment_law(graph.weights, u, [v], question.cooldown, FOLLOWED) for u, v in pairs],
        ), ahead
    if graph.n > (ALL_PAIRS if graph.group is None else ALIKE):
        raise PrivacyError(
            f"all pairs of the {graph.n} peers of {graph.name} take too long; plan a walk on"
            f" complete:{graph.n}, or run it and account for the walk that happened"
        )
    found = summary(graph, question.cooldown).least_noise(question.epsilon, question.delta, cap)
    return found, "the worst pair of a walk on this graph"


def _least_of(question: Question, laws: list[SegmentLaw]) -> float:
    """The search is done for the law seen soonest; the others are checked at its answer, and
    searched if they fail.

    Equal laws are checked once, and first on a coarse grid, which only rounds up."""
    cap, epsilon, delta, z = question.contributions, question.epsilon, question.delta, 0.0
    different = {law.first.round(12).tobytes(): law for law in laws}
    for law in sorted(different.values(), key=lambda law: -law.mean_inverse):
        if z > 0 and walk_energies(law, cap, cells=COARSE).profile(z).delta(epsilon) <= delta:
            continue
        if z == 0 or walk_profile(law, cap, z).delta(epsilon) > delta:
            z = max(z, least_noise_of(law, epsilon, delta, cap))
    return z
