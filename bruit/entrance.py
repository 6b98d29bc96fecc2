"""The one entrance: what is refused before anything runs, by everybody who builds a protocol.

Simulations, real peers, their founder, a demonstration and `bruit epsilon` all build through `bruit.build.protocol`,
which asks these questions; whoever leads to real peers builds through `bruit.sites.agreed_run`, which asks
`refuse_for_real_peers` and more besides, before a key is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.federated_admm import FederatedADMM
from bruit.algorithms.schedules import UNIFORM, Pairs, Rounds, Wakes, Walk
from bruit.algorithms.token_histogram import TokenHistogram
from bruit.config import PrivacySection, line_of
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism
from bruit.privacy.accountants.pld import compose_epsilon
from bruit.privacy.ledger import Budget

SIMULATED = ("statistic", "pairwise", "personal", "boosted")  # kinds of tasks that are dealt by whoever simulates
PAIRS = ("statistic", "pairwise")  # kinds of tasks that ask about pairs of points


QUESTIONS = {  # what an algorithm asks a task for, and the algorithms that do
    "a value to average": ("averaging", "chebyshev", "gopa", "pair-averaging", "renoised", "ring-sum",
                           "walk-sum"),
    "models fitted alone": ("model-propagation",),
    "gradients": ("boosting", "fed-avg", "gossip-sgd", "personalized", "walk-sgd"),
    "proximal steps": ("federated-admm", "gossip-admm", "walk-admm"),
    "a function of two points": ("gosta", "gosta-rounds", "u1-gossip", "u2-gossip"),
    "a loss of two points": ("dual-averaging", "dual-averaging-rounds"),
}  # fmt: skip
MODELS = frozenset({"a value to average", "models fitted alone", "gradients", "proximal steps"})
ANSWERS = {  # what a task of each kind can be asked for
    "mean": frozenset(QUESTIONS), "histogram": frozenset(QUESTIONS),
    "ridge": MODELS, "logistic": MODELS, "softmax": MODELS, "personal": MODELS, "boosted": frozenset({"gradients"}),
    "statistic": frozenset({"a function of two points"}), "pairwise": frozenset({"a loss of two points"}),
}  # fmt: skip


@contextmanager
def at_line(text: str, where: str, *path: str) -> Iterator[None]:
    """Errors raised inside are about that key of the experiment: put its file and line before them."""
    try:
        yield
    except ConfigError as error:
        number = line_of(text, path)
        raise ConfigError(f"{where}:{number}: {error}" if number else str(error)) from None


def refuse_for_real_peers(algorithm: Algorithm[Any], mechanism: Mechanism | None = None) -> None:
    """Refuse what is true in simulations only: draws that neighbors must share in secret, meetings that somebody has to
    count, and ideal arithmetic."""
    if algorithm.simulated_only:
        raise ConfigError(f"{algorithm.name()} runs in simulations only: {algorithm.simulated_only}")
    schedule = algorithm.schedule
    if isinstance(schedule, Pairs | Wakes) and schedule.activations is not None:
        raise ConfigError("activations are counted by nobody between real peers; leave them out and give steps as time")
    if mechanism is not None and mechanism.arithmetic == "ideal":
        raise ConfigError(
            "ideal arithmetic is true of real numbers only, and real peers send rounded ones, whose last bits may tell"
            ' what the noise hides; use arithmetic = "grid", or simulate'
        )


def check_budget(algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int, peer: int,
                 mechanism: Mechanism | None, budget: Budget) -> None:  # fmt: skip
    """Refuse a budget that would leave out what a peer adds: it is against everybody, whatever others do, so only noise
    of the peer's own counts."""
    limit = f"this site's budget of epsilon {budget.epsilon:g} at delta {budget.delta:g}"
    if mechanism is None:
        raise ConfigError(f"{limit} allows nothing here, because the experiment adds no noise; agree on [privacy], or"
                          " leave [budget] out")  # fmt: skip
    bare = algorithm.bare(graph, steps, peer)
    if bare:
        raise ConfigError(f"against everybody together no finite budget holds what peer {peer} would release: {bare};"
                          " or leave [budget] out and rely on the noise of others")  # fmt: skip
    one = compose_epsilon([(mechanism.event(), 1)], budget.delta)
    if one > budget.epsilon * (1 + 1e-12):
        raise ConfigError(f"{limit} allows no release at all, since a single one costs epsilon {one:.4g}: this peer"
                          " would add noise and nothing else; raise it, or agree on more noise")  # fmt: skip


def refuse_task_for_real_peers(kind: str) -> None:
    """Refuse tasks whose records no participant can prepare alone, before a folder is made."""
    if kind in SIMULATED:
        raise ConfigError(
            f"a {kind} task is for simulations: real peers hold records of mean, histogram, ridge, logistic and softmax"
            " tasks; personalized and model-propagation give everybody a model of their own on those too"
        )


def check_graph(graph: Graph | GraphSequence) -> None:
    """Refuse graphs on which a run means nothing."""
    if graph.n < 2:
        raise ConfigError(f"the graph {graph.name} has {graph.n} peer; a run needs at least two that talk")
    if isinstance(graph, Graph) and not graph.is_connected():
        parts = int(graph.components().max()) + 1
        raise ConfigError(f"the graph {graph.name} falls into {parts} parts that never meet; connect them")


def check_schedule(algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int) -> None:
    """Refuse schedules that do nothing, never converge, or leave peers out."""
    schedule = algorithm.schedule
    if steps < 1:
        raise ConfigError("steps = 0: nobody would say anything; ask for at least one step")
    if not isinstance(graph, Graph):
        if not isinstance(schedule, Rounds):
            kind = type(schedule).__name__.lower()
            raise ConfigError(f"{algorithm.name()} needs one fixed graph for its {kind}, found {graph.name}; name one")
        return
    if isinstance(schedule, Walk):
        check_walk(schedule, graph)
    if isinstance(algorithm, FederatedADMM):
        left = graph.n - len(algorithm.prepare(graph, steps).members)
        if left:
            raise ConfigError(
                f"{left} of {graph.n} peers are no neighbors of the server {algorithm.server} in {graph.name} and would"
                f" take no part; use star:{graph.n}, or another server"
            )
    drawn = isinstance(schedule, Rounds) or (isinstance(schedule, Walk) and schedule.order == "random")
    if drawn and not graph.validity().aperiodic:
        raise ConfigError(
            f"the graph {graph.name} is bipartite and its peers give themselves no weight, so gossip swings for ever;"
            " use the weights plus=1"
        )


def check_walk(walk: Walk, graph: Graph) -> None:
    """Refuse a token that starts nowhere, and a ring that the graph does not have."""
    if walk.first != UNIFORM and not 0 <= int(walk.first) < graph.n:
        raise ConfigError(f"the token starts at peer {walk.first}, but the peers are 0..{graph.n - 1}")
    if walk.order != "ring" or walk.goes_round(graph):
        return
    missing = next(v for v in range(graph.n) if not graph.has_edge(v, (v + 1) % graph.n))
    raise ConfigError(
        f"in ring order every peer hands the token to the next one, but {graph.name} has no link between peers"
        f" {missing} and {(missing + 1) % graph.n}; use a graph with the ring in it, such as ring:{graph.n}, or an"
        " algorithm that walks at random"
    )


def check_task(algorithm: Algorithm[Any], task: str) -> None:
    """Refuse tasks that cannot answer what the algorithm asks; of an algorithm of one's own nothing is known,
    and token-histogram is `check_answers`'s."""
    asked = next((question for question, names in QUESTIONS.items() if algorithm.name() in names), None)
    if asked is None or task not in ANSWERS or asked in ANSWERS[task]:
        return
    others = sorted(name for question in ANSWERS[task] for name in QUESTIONS[question])
    kinds = [kind for kind, answers in ANSWERS.items() if asked in answers]
    raise ConfigError(f"{algorithm.name()} asks peers for {asked}, which a {task} task does not answer; use "
                      f"task.kind = {' or '.join(kinds)}, or for a {task} task: {', '.join(others)}")  # fmt: skip


def check_answers(algorithm: Algorithm[Any], task: str, privacy: PrivacySection | None,
                  bins: int | None = None) -> None:  # fmt: skip
    """Histograms are counts of answers: randomized response, values with a single 1, and no other noise."""
    counting = isinstance(algorithm, TokenHistogram)
    if counting and task != "histogram":
        raise ConfigError(f"token-histogram counts values, found a {task} task; use task.kind = \"histogram\"")
    if privacy is None:
        return
    answers = privacy.mechanism == "randomized-response"
    if counting and not answers:
        raise ConfigError(
            f"token-histogram counts answers given by randomized response, found {privacy.mechanism} noise; use"
            ' privacy.mechanism = "randomized-response"'
        )
    if answers and task in PAIRS and bins is None:
        raise ConfigError(f"randomized response tells one of several values: say into how many a {task} task is rounded"
                          " with task.bins")  # fmt: skip
    if answers and task != "histogram" and task not in PAIRS:
        raise ConfigError(
            f"randomized response tells one of several values and nothing else, found a {task} task; use"
            ' task.kind = "histogram", or gaussian noise'
        )
