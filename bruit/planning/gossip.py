"""Gossip averaging (Muffliato): neighbors mix noisy values until everybody is near the mean (gossip:MUF-2, MUF-4).

A neighbor hears the noisy value itself, so the worst pair always loses one local-DP unit: for the worst pair, gossip
needs the noise of local DP. The mean loss falls with n: it is (rank - 1) / n, at most T d_v / n (gossip:MUF-3).
"""

from __future__ import annotations

import math

import numpy as np

from bruit.algorithms.muffliato import muffliato
from bruit.errors import PrivacyError
from bruit.graphs import Graph, spectral_gap
from bruit.planning.noise import least_multiplier
from bruit.planning.option import Option, descent_error
from bruit.planning.question import Question
from bruit.privacy.network.consensus import is_uniform

EXACT_PEERS = 300
"""Up to here all pairs are computed; beyond, the proven bound on the mean is used."""


def option(question: Question) -> Option:
    """Plain or accelerated gossip on the question's graph."""
    graph = fixed_graph(question)
    if question.job == "learning":
        return _learning(question, graph)
    if is_uniform(graph):
        raise PrivacyError("on the complete graph everybody hears every noisy value at once: this is local DP")
    z = 1.0 / question.mu
    for _ in range(8):  # the number of rounds depends on the noise, and the noise on the rounds
        steps = question.steps or muffliato(graph, z, question.spread / question.sensitivity**2).steps
        needed, loss, how = _needed(question, graph, steps)
        if abs(needed - z) <= 1e-9 * needed:
            break
        z = needed
    z = max(z, needed)
    notes = ("the worst pair, a neighbor, loses one unit whatever the noise",) if question.protect == "mean" else ()
    return Option(
        "gossip", graph.name, steps, z, "proven", "the exact loss of linear gossip", how,
        _trust(question), _error(question, graph, z, steps), True, "gossip:MUF-4",
        float(steps * graph.degrees.mean()), loss, notes,
    )  # fmt: skip


def fixed_graph(question: Question) -> Graph:
    if not isinstance(question.graph, Graph):
        found = "none was given" if question.graph is None else f"found the sequence {question.graph.name}"
        raise PrivacyError(f"gossip needs one fixed graph; {found}")
    return question.graph


def _trust(question: Question) -> str:
    together = "" if question.colluders == 1 else f", at most {question.colluders} collude"
    return f"peers follow the protocol and look only at what they receive{together}"


def _needed(question: Question, graph: Graph, steps: int) -> tuple[float, float, str]:
    """Noise multiplier, the loss behind it, and the statement."""
    if question.caps is None and question.protect == "worst":
        return 1 / question.mu, 1.0, "gossip:MUF-2"
    if question.colluders > 1:
        raise PrivacyError("colluders are planned for the worst pair; name them to `bruit epsilon` for their own loss")
    if graph.n <= EXACT_PEERS or question.caps is not None:
        from bruit.privacy.network.pairwise import pairwise

        z, loss = least_multiplier(question, pairwise(graph, steps).m)
        return z, loss, "gossip:MUF-2"
    if graph.group is not None:
        from bruit.privacy.network.krylov import leverage

        one = leverage(graph, [0], steps).loss[:, None].copy()
        one[0] = np.nan
        loss = float(np.nansum(one)) / graph.n
        return math.sqrt(loss) / question.mu, loss, "gossip:MUF-2"
    loss = min(1.0, steps * float(graph.degrees.max()) / graph.n)
    return math.sqrt(loss) / question.mu, loss, "gossip:MUF-3"


def _error(question: Question, graph: Graph, z: float, steps: int) -> float:
    """Root mean square over peers: MUF-4 bounds half of the mean square."""
    from bruit.planning.utility import accelerated_error

    return math.sqrt(2 * accelerated_error(spectral_gap(graph), graph.n, z, steps, question.spread))


def _learning(question: Question, graph: Graph) -> Option:
    """Gossip SGD off the butterfly: hidden models react to what they heard, so every round counts in full."""
    rounds, n = question.contributions, graph.n
    z = math.sqrt(rounds) / question.mu
    return Option(
        "gossip", graph.name, rounds, z, "proven", "local DP: composition of the ledger's lines", "gossip:MUF-9 ldp",
        "nobody: all messages may be public", descent_error(question, rounds, z**2 / n), False,
        "walk:RW-3, averaged gradients, if every round mixed completely", float(rounds * graph.degrees.mean()),
        float(rounds), ("no theorem covers adaptive gradients on a graph without exact consensus",),
    )  # fmt: skip


