"""Re-noised gossip: a little fresh noise on every message makes the loss fall with distance again
(gossip:MUF-X1).

For the mean loss it beats plain gossip by far, at a few percent more variance; a neighbor still
hears almost the noisy value itself, so for the worst pair it needs nearly the noise of local DP.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from bruit.algorithms.door import OnGrid
from bruit.algorithms.gossip.exchange import message_form
from bruit.algorithms.gossip.renoised import Public, Renoised
from bruit.arrays import Array
from bruit.errors import PrivacyError
from bruit.graphs import Graph, spectral_gap
from bruit.planning.gossip import fixed_graph
from bruit.planning.noise import Planned, least_multiplier, least_noise
from bruit.planning.option import Option, refuse_idle
from bruit.planning.question import Question
from bruit.planning.topologies.weights import MOST_LINKS, MOST_PEERS, MOST_ROUNDS, Wanted, tuned
from bruit.planning.utility import renoised_most_variance
from bruit.privacy.theorems.consensus import is_uniform
from bruit.privacy.toolbox.gaussian import mu_of

TAU, EXACT_PEERS, SAMPLED, LONGEST = 0.1, 160, 2, 2000


def option(question: Question) -> Option:
    """Message noise of 0.1 sigma, tapered in the second half of the rounds; where pairs have caps of
    their own, the weights of the links and the message noise are made for them."""
    refuse_idle(question, "cooldown")
    graph = _graph(question)
    steps = question.steps or _rounds(question, graph)
    found = [_planned(question, graph, steps, TAU)]
    if question.caps is not None and graph.n <= MOST_PEERS and len(graph.edges()) <= MOST_LINKS:
        for rounds in sorted({question.steps or min(k * steps, MOST_ROUNDS) for k in (1, 2, 4)}):
            weighted, tau = tuned(Wanted(graph, _limits(question), rounds, question.spread))
            found.append(_planned(question, weighted, rounds, tau))
    return min(found, key=lambda one: one.error)


def _limits(question: Question) -> Array:
    """The mu of every pair, infinite on the diagonal."""
    allowed = question.allowed
    values, place = np.unique(allowed, return_inverse=True)
    mu = np.array([mu_of(float(value), question.delta) for value in values])
    limits = mu[place].reshape(allowed.shape)
    np.fill_diagonal(limits, np.inf)
    return np.asarray(limits)


def _planned(question: Question, graph: Graph, steps: int, tau: float) -> Option:
    m, proven = _losses(graph, steps, tau, question.caps is not None)
    notes: tuple[str, ...] = ()
    if graph is not question.graph:
        notes = ("the weights of the links were made for these caps",)
    if not proven:
        notes = (
            f"losses of {SAMPLED} observers stand for all: run `bruit epsilon` for a guarantee",
        )
    if (
        not proven and question.protect == "worst"
    ):  # at least what is proven: nobody loses more than by local DP
        m, proven, notes = (
            np.ones((1, 1)),
            True,
            ("one unit a pair, as by local DP: not all pairs were computed",),
        )
    loss = least_multiplier(question, m)[1]
    z, rounding = least_noise(
        question,
        lambda asked: least_multiplier(asked, m)[0],
        partial(_rounding, Renoised(tau).prepare(graph, steps), graph.n),
    )
    return Option(
        protocol="renoised",
        graph=graph.name,
        steps=steps,
        noise_multiplier=z,
        status="proven" if proven else "heuristic",
        theorem="re-noised gossip",
        spec="gossip:MUF-X1",
        trust="peers follow the protocol and look only at what they receive",
        error=_error(question, graph, z, steps, tau),
        at_most=True,
        statement="gossip:MUF-X1",
        messages=float(steps * graph.degrees.mean()),
        loss=loss,
        notes=notes,
        rounding=rounding,
        algorithm={"name": "renoised", "tau": tau},
    )


def _graph(question: Question) -> Graph:
    """The graph that was asked for, if re-noised gossip is for this question."""
    graph = fixed_graph(question)
    if question.job != "mean":
        raise PrivacyError(
            "re-noised gossip averages one release per peer; for learning see butterfly and walk"
        )
    if is_uniform(graph):
        raise PrivacyError(
            "on the complete graph everybody hears every noisy value at once: this is local DP"
        )
    if question.colluders > 1:
        raise PrivacyError(
            "colluders are planned for other protocols; ask `bruit epsilon` for their loss here"
        )
    return graph


def _rounding(public: Public, n: int, home: Planned) -> float:
    """R of one release each and of a noise on every copy of every message."""
    form = message_form(public.exchange, home, memory=public.memory, copies=True)
    return n * (
        home.drawn(OnGrid(form.grid)) + sum(home.drawn(form, tau) for tau in public.taper.tolist())
    )


def _rounds(question: Question, graph: Graph) -> int:
    """Twice what plain gossip needs to contract n max(1, spread / sigma^2) away: flat noise, then
    tapered."""
    gap, sigma = spectral_gap(graph), 1.0 / question.mu
    if gap <= 1e-12:
        raise PrivacyError(
            f"the spectral gap of {graph.name} is 0, so gossip never converges; connect it"
        )
    needed = 2 * math.ceil(
        math.log(graph.n * max(1.0, question.spread / sigma**2)) / (2 * min(gap, 0.999))
    )
    if needed > LONGEST:
        raise PrivacyError(
            f"{graph.name} mixes slowly: re-noised gossip would take {needed} rounds; choose "
            f"--steps"
        )
    return needed


def _error(question: Question, graph: Graph, z: float, steps: int, tau: float) -> float:
    """sqrt(spread (1 - gap)^(2 T) + z^2 variance), root mean square over peers, at most."""
    gap = min(spectral_gap(graph), 1.0)
    variance = renoised_most_variance(graph, Renoised(tau).prepare(graph, steps).taper, gap)
    return math.sqrt(question.spread * (1 - gap) ** (2 * steps) + z**2 * variance)


def _losses(graph: Graph, steps: int, tau: float, every: bool) -> tuple[Array, bool]:
    """Columns of m for all observers, one by symmetry, or a few that stand for all."""
    from bruit.mechanisms import Gaussian
    from bruit.runs.run import rehearse

    run = rehearse(Renoised(tau), graph, Gaussian(clip=0.5, sigma=1.0), steps)
    accountant = run.accountant()
    if not accountant.applicable()[0]:
        raise PrivacyError(f"re-noised gossip has no theorem on {graph.name}; connect the graph")
    transitive = graph.group is not None and not every
    all_of_them = every or graph.n <= EXACT_PEERS
    observers = [0] if transitive else list(range(graph.n)) if all_of_them else _spread(graph)
    columns = np.stack([accountant.charge(v).loss for v in observers], axis=1)
    columns[observers, np.arange(len(observers))] = np.nan
    return columns, transitive or all_of_them


def _spread(graph: Graph) -> list[int]:
    """The peers of largest degree: they hear most."""
    return [int(v) for v in np.argsort(-graph.degrees, kind="stable")[:SAMPLED]]
