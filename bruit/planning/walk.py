"""A token walk: whoever holds the model takes one noisy gradient step and passes it on (walk:RW-7, RW-14).

The noise of everybody the token met since hides each contribution: on the complete graph of 2000 peers, 12
contributions at (1, 1e-6) need a noise multiplier of 3.4 where local DP needs 14.6.
"""

from __future__ import annotations

import math

from bruit.errors import PrivacyError
from bruit.graphs import Graph
from bruit.planning.option import Option, descent_error
from bruit.planning.question import Question
from bruit.privacy.network.consensus import is_uniform
from bruit.privacy.network.walk_ahead import (
    SegmentLaw,
    complete_law,
    least_noise_of,
    segment_law,
    walk_energies,
    walk_profile,
)

ALL_PAIRS, SAMPLED, FOLLOWED, COARSE = 12, 3, 4096, 2**14
SLACK = 1.2  # visits the cap allows, over the mean: as in the published experiments (walk:F-4)


def option(question: Question) -> Option:
    """Walk SGD with a cap on contributions; the mean is learned as a model of one number."""
    if question.caps is not None or question.protect == "mean":
        raise PrivacyError("the walk is planned for the worst pair; after a run `bruit epsilon` tells every pair")
    if not isinstance(question.graph, Graph):
        raise PrivacyError("a token walks on one fixed graph; name one")
    graph, rounds = question.graph, question.contributions
    laws, proven = _laws(question, graph)
    z = _least(question, laws)
    learning = question.job == "learning"
    if not learning and not is_uniform(graph):
        raise PrivacyError("the error of a mean by a walk is known where visits are uniform: on the complete graph")
    hops = max(1, round(rounds * graph.n / SLACK)) if learning else graph.n
    error = descent_error(question, hops, z**2) if learning else _mean_error(question, graph.n, z)
    statement = ("walk:RW-3, Prop. 7.3, the few visits above the cap left out" if learning else
                 "walk:RW-14, one contribution each: visits of uniform peers, silent ones add noise too")  # fmt: skip
    notes = ["the last token is not published; losses are convex and smooth, the rate is at most 2 / beta"]
    if not proven:
        notes.append(f"the worst of {len(laws)} pairs of neighbors stands for all: account for the walk that happened")
    return Option(
        "walk", graph.name, hops, z, "proven" if proven else "heuristic", "the walk seen from before its start",
        "walk:RW-14", "peers follow the protocol and add the full noise", error, False, statement, hops / graph.n,
        math.nan, tuple(notes),
    )  # fmt: skip


def _mean_error(question: Question, n: int, z: float) -> float:
    """n hops reach a share s = 1 - (1 - 1/n)^n of the peers, each of whom contributes once; every hop adds noise.

        sqrt(n z^2 / (s n)^2 + spread (1 - s) / (s n))
    """
    reached = 1 - (1 - 1 / n) ** n
    return math.sqrt(z**2 / (n * reached**2) + question.spread * (1 - reached) / (reached * n))


def _least(question: Question, laws: list[SegmentLaw]) -> float:
    """The search is done for the law seen soonest; the others are checked at its answer, and searched if they fail.

    Equal laws are checked once, and first on a coarse grid, which only rounds up."""
    cap, epsilon, delta, z = question.contributions, question.epsilon, question.delta, 0.0
    different = {law.first.round(12).tobytes(): law for law in laws}
    for law in sorted(different.values(), key=lambda law: -law.mean_inverse):
        if z > 0 and walk_energies(law, cap, cells=COARSE).profile(z).delta(epsilon) <= delta:
            continue
        if z == 0 or walk_profile(law, cap, z).delta(epsilon) > delta:
            z = max(z, least_noise_of(law, epsilon, delta, cap))
    return z


def _laws(question: Question, graph: Graph) -> tuple[list[SegmentLaw], bool]:
    """How soon a contribution is seen: one law on the complete graph, all pairs of a small one, some of a large one."""
    if is_uniform(graph):
        return [complete_law(graph.n, question.colluders, question.cooldown)], True
    if question.colluders > 1:
        raise PrivacyError("colluders on a walk are planned on the complete graph; elsewhere name them after a run")
    every = graph.n <= ALL_PAIRS
    peers = [0] if graph.group is not None else range(graph.n if every else min(SAMPLED, graph.n))
    pairs = [(u, v) for u in peers for v in (range(graph.n) if every else graph.neighbors(u)[:SAMPLED]) if u != v]
    return [segment_law(graph.weights, u, [int(v)], question.cooldown, FOLLOWED) for u, v in pairs], every
