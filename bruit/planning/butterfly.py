"""Butterfly gossip: the exact mean of the noisy values after one exchange per digit
(gossip:MUF-X2).

    m(u -> v) = 1 / prod_{j < i} r_j, i the highest digit in which u and v differ; mean loss about log2(n) / n

Gradient rounds end in exact consensus and compose; relabelling each round in public spreads the
loss over pairs, and the *realized* sum of these very labels is the guarantee.
"""

from __future__ import annotations

import math

import numpy as np

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.errors import PrivacyError
from bruit.graphs.sequence import Butterfly, butterfly
from bruit.planning.noise import least_multiplier, least_noise
from bruit.planning.option import Option, Traits, descent_error, descent_rate, refuse_idle
from bruit.planning.question import Question
from bruit.privacy.theorems.consensus import digit_losses

LARGEST_RADIX = 64
MOST_PEERS = 8_192  # all pairs are added up, round by round
TRAITS = Traits(also=("butterfly-muffliato",), own_graph=True)


def option(question: Question) -> Option:
    """On the butterfly of n peers, relabelled every round when there are several."""
    refuse_idle(question, "steps", "cooldown")
    n, rounds = question.peers, 1 if question.job == "mean" else question.contributions
    graph = _graph(question, rounds)
    m = np.zeros((n, n))
    for number in range(rounds):
        m += digit_losses(graph, number * len(graph.radices))
    np.fill_diagonal(m, np.nan)
    steps = rounds * len(graph.radices)
    facts = GossipSGD(mixing=len(graph.radices)).prepare(graph, steps)
    loss = least_multiplier(question, m)[1]
    z, rounding = least_noise(
        question,
        lambda asked: least_multiplier(asked, m)[0],
        lambda home: n * rounds * home.drawn(OnGrid(home.grid(1.0, facts.data, facts.noise))),
    )
    error = (
        z / math.sqrt(n) if question.job == "mean" else descent_error(question, rounds, z**2 / n)
    )
    statement = (
        "gossip:MUF-X2: z / sqrt(n), exactly"
        if question.job == "mean"
        else "walk:RW-3, averaged gradients"
    )
    rate = descent_rate(question, rounds, z**2 / n)
    learns = {"name": "gossip-sgd", "rate": rate, "mixing": len(graph.radices)}
    return Option(
        protocol="butterfly",
        graph=graph.name,
        steps=steps,
        noise_multiplier=z,
        status="proven",
        theorem="composition of exact-consensus rounds",
        spec="gossip:MUF-X2",
        trust="nobody drops out; observers do not collude",
        error=error,
        at_most=question.job == "learning",
        statement=statement,
        messages=float(rounds * _messages(graph)),
        loss=loss,
        notes=_notes(question, m),
        rounding=rounding,
        algorithm={"name": "averaging"} if question.job == "mean" else learns,
    )


def _graph(question: Question, rounds: int) -> Butterfly:
    """The butterfly of so many peers, if its theorem covers the question."""
    n = question.peers
    if question.colluders > 1:
        raise PrivacyError(
            "the digits of a butterfly are charged per single observer; colluders need the exact "
            "loss"
        )
    if n > MOST_PEERS:
        raise PrivacyError(
            f"a butterfly is planned by adding up all pairs, for up to {MOST_PEERS} peers, found "
            f"{n}"
        )
    graph = butterfly(n, relabel=0 if rounds > 1 else None)
    if max(graph.radices) > LARGEST_RADIX:
        raise PrivacyError(
            f"n = {n} has the prime factor {max(graph.radices)}: its peers would all talk to each "
            f"other"
        )
    return graph


def _messages(graph: Butterfly) -> int:
    return sum(radix - 1 for radix in graph.radices)


def _notes(
    question: Question, m: np.ndarray[tuple[int, int], np.dtype[np.float64]]
) -> tuple[str, ...]:
    typical = float(np.nanmedian(m))
    labels = ("the rounds use the public labels of seed 0",) if question.job == "learning" else ()
    return (f"a typical pair loses {typical:.3g} units", *labels)
