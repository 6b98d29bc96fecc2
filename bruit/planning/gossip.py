"""Gossip averaging (Muffliato): neighbors mix noisy values until everybody is near the mean
(gossip:MUF-2, MUF-4).

A neighbor hears the noisy value itself, so the worst pair always loses one local-DP unit: for the
worst pair, gossip needs the noise of local DP. The mean loss falls with n: it is (rank - 1) / n, at
most T d_v / n (gossip:MUF-3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.chebyshev import Chebyshev
from bruit.algorithms.gossip.chebyshev import Public as Accelerated
from bruit.algorithms.gossip.exchange import message_form
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.algorithms.gossip.muffliato import muffliato
from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.graphs import Graph, spectral_gap
from bruit.planning.noise import Planned, least_multiplier, least_noise
from bruit.planning.option import Option, Traits, descent_error, descent_rate, refuse_idle
from bruit.planning.question import Question
from bruit.privacy.theorems.consensus import is_uniform

EXACT_PEERS = 300
"""Up to here all pairs are computed; beyond, the proven bound on the mean is used."""
MOST_MIXING_PEERS = 100
TRAITS = Traits(
    also=("averaging", "chebyshev", "muffliato", "gossip-sgd"), learning=("gossip-sgd",)
)


def option(question: Question) -> Option:
    """Plain or accelerated gossip on the question's graph."""
    refuse_idle(question, "cooldown")
    graph = fixed_graph(question)
    if question.job == "learning":
        refuse_idle(question, "steps")
        return _learning(question, graph)
    if is_uniform(graph):
        raise PrivacyError(
            "on the complete graph everybody hears every noisy value at once: this is local DP"
        )
    steps, needed = _settled(question, graph)
    z, rounding = least_noise(question, needed.multiplier, partial(_mixed, graph, steps))
    notes = (
        ("the worst pair, a neighbor, loses one unit whatever the noise",)
        if question.protect == "mean"
        else ()
    )
    return Option(
        protocol="gossip",
        graph=graph.name,
        steps=steps,
        noise_multiplier=z,
        status="proven",
        theorem="the exact loss of linear gossip",
        spec=needed.how,
        trust=_trust(question),
        error=_error(question, graph, z, steps),
        at_most=True,
        statement="gossip:MUF-4",
        messages=float(steps * graph.degrees.mean()),
        loss=needed.loss,
        notes=notes,
        rounding=rounding,
        algorithm={"name": "chebyshev"},
    )


def _settled(question: Question, graph: Graph) -> tuple[int, _Needed]:
    """How many rounds, and the noise for them: if none are asked for, they depend on the noise, and
    it on them."""
    if question.steps is not None:
        return question.steps, _needed(question, graph, question.steps)
    steps = muffliato(graph, 1.0 / question.mu, question.spread / question.sensitivity**2).steps
    needed = _needed(question, graph, steps)
    for _ in range(8):
        wanted = muffliato(
            graph, needed.multiplier(question), question.spread / question.sensitivity**2
        ).steps
        if wanted == steps:
            break
        steps, needed = wanted, _needed(question, graph, wanted)
    return steps, needed


def mixed_rounding(
    algorithm: Averaging | Chebyshev, graph: Graph, steps: int, home: Planned
) -> float:
    """R of one release each and of a message each in every round."""
    public = algorithm.prepare(graph, steps)
    facts, gamma = (
        (public.exchange, public.gamma) if isinstance(public, Accelerated) else (public, 1.0)
    )
    form = message_form(facts, home, gamma=gamma)
    return graph.n * (home.drawn(OnGrid(form.grid)) + (steps + 1) * home.drawn(form, facts.dither))


def _mixed(graph: Graph, steps: int, home: Planned) -> float:
    """The same whether gossip is plain or accelerated."""
    ways = (Averaging(), Chebyshev(), Chebyshev(tuned=True))
    return max(mixed_rounding(algorithm, graph, steps, home) for algorithm in ways)


def _taught(graph: Graph, rounds: int, home: Planned) -> float:
    """The same for a gradient each in every round."""
    facts = GossipSGD().prepare(graph, rounds)
    form = message_form(facts, home, more=0.5)
    return graph.n * (
        rounds * home.drawn(OnGrid(form.grid)) + (rounds + 1) * home.drawn(form, facts.dither)
    )


def fixed_graph(question: Question) -> Graph:
    if not isinstance(question.graph, Graph):
        found = (
            "none was given"
            if question.graph is None
            else f"found the sequence {question.graph.name}"
        )
        raise PrivacyError(f"gossip needs one fixed graph; {found}")
    return question.graph


def graph_to_mix(question: Question, title: str) -> Graph:
    """The graph of a question about learning whose exchanges are chosen here."""
    graph = fixed_graph(question)
    if question.job != "learning":
        raise PrivacyError(f"{title} learns a model; for a mean see renoised")
    if question.colluders > 1:
        raise PrivacyError(
            "colluders are planned for other protocols; ask `bruit epsilon` for their loss here"
        )
    if graph.n > MOST_MIXING_PEERS:
        raise PrivacyError(
            f"its exchanges are chosen by computing all pairs, for up to {MOST_MIXING_PEERS} peers, found"
            f" {graph.n}; ask `bruit epsilon` about {graph.name}"
        )
    return graph


def mixings(graph: Graph) -> list[int]:
    """Few exchanges, and as many as mix to 1/e and to 1/n."""
    gap = min(spectral_gap(graph), 0.999)
    if gap <= 1e-12:
        raise PrivacyError(f"the spectral gap of {graph.name} is 0: peers never agree; connect it")
    once = math.ceil(-1 / math.log1p(-gap))
    return sorted({1, once, math.ceil(once * math.log(graph.n))})


def losses_of_pairs(graph: Graph, view: Callable[[int], Array]) -> Array:
    """m[u, v] from what one observer v sees, for all of them; one view is enough where peers are all
    alike  # (n, n), nan on the diagonal."""
    from bruit.privacy.exact import one_blas_thread

    with one_blas_thread():
        if graph.group is not None:
            one = view(0)
            m = np.stack([one[graph.translate(v)] for v in range(graph.n)], axis=1)
        else:
            m = np.stack([view(v) for v in range(graph.n)], axis=1)
    np.fill_diagonal(m, np.nan)
    return np.asarray(m)


def _trust(question: Question) -> str:
    together = "" if question.colluders == 1 else f", at most {question.colluders} collude"
    return f"peers follow the protocol and look only at what they receive{together}"


class _Needed(NamedTuple):
    """The noise multiplier in real numbers, the loss behind it, and the statement."""

    multiplier: Callable[[Question], float]
    loss: float
    how: str


def _by_loss(loss: float, how: str) -> _Needed:
    return _Needed(lambda asked: math.sqrt(loss) / asked.mu, loss, how)


def _needed(question: Question, graph: Graph, steps: int) -> _Needed:
    if question.caps is None and question.protect == "worst":
        return _by_loss(1.0, "gossip:MUF-2")
    if question.colluders > 1:
        raise PrivacyError(
            "colluders are planned for the worst pair; name them to `bruit epsilon` for their own "
            "loss"
        )
    if graph.n <= EXACT_PEERS or question.caps is not None:
        from bruit.privacy.exact import pairwise

        m = pairwise(graph, steps).m
        return _Needed(
            lambda asked: least_multiplier(asked, m)[0],
            least_multiplier(question, m)[1],
            "gossip:MUF-2",
        )
    if graph.group is not None:
        from bruit.privacy.exact import leverage

        one = leverage(graph, [0], steps).loss[:, None].copy()
        one[0] = np.nan
        return _by_loss(float(np.nansum(one)) / graph.n, "gossip:MUF-2")
    return _by_loss(min(1.0, steps * float(graph.degrees.max()) / graph.n), "gossip:MUF-3")


def _error(question: Question, graph: Graph, z: float, steps: int) -> float:
    """Root mean square over peers: MUF-4 bounds half of the mean square."""
    from bruit.planning.utility import accelerated_error

    return math.sqrt(2 * accelerated_error(spectral_gap(graph), graph.n, z, steps, question.spread))


def _learning(question: Question, graph: Graph) -> Option:
    """Gossip SGD off the butterfly: hidden models react to what they heard, so every round counts
    in full."""
    rounds, n = question.contributions, graph.n
    z, rounding = least_noise(
        question,
        lambda asked: math.sqrt(rounds) / asked.strictest_mu,
        partial(_taught, graph, rounds),
    )
    return Option(
        protocol="gossip",
        graph=graph.name,
        steps=rounds,
        noise_multiplier=z,
        status="proven",
        theorem="local DP: composition of the ledger's lines",
        spec="gossip:MUF-9 ldp",
        trust="nobody: all messages may be public",
        error=descent_error(question, rounds, z**2 / n),
        at_most=False,
        statement="walk:RW-3, averaged gradients, if every round mixed completely",
        messages=float(rounds * graph.degrees.mean()),
        loss=float(rounds),
        notes=("no theorem covers adaptive gradients on a graph without exact consensus",),
        rounding=rounding,
        algorithm={"name": "gossip-sgd", "rate": descent_rate(question, rounds, z**2 / n)},
    )
