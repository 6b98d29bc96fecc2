"""The one entrance: what is refused before anything runs, by everybody who builds a protocol.

Simulations, real peers, their founder, a demonstration, the what-if page and `bruit epsilon` all
build through `bruit.runs.build.protocol`, which asks these questions; whoever leads to real peers
builds through `bruit.peers.site.agreed_run`, which asks `refuse_for_real_peers` and more besides,
before a key is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.answerable import check_counted
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism
from bruit.mechanisms.mechanism import of_files
from bruit.privacy.ledger import AT_MOST, Budget
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.file import PrivacySection, line_of
from bruit.tasks.kinds.kind import held_kinds, kinds


@contextmanager
def at_line(text: str, where: str, *path: str) -> Iterator[None]:
    """Errors raised inside are about that key of the experiment: put its file and line before
    them."""
    try:
        yield
    except ConfigError as error:
        number = line_of(text, path)
        raise ConfigError(f"{where}:{number}: {error}" if number else str(error)) from None


def refuse_for_real_peers(algorithm: Algorithm[Any], mechanism: Mechanism | None = None) -> None:
    """Refuse what is true in simulations only: draws that neighbors must share in secret, and ideal
    arithmetic."""
    if algorithm.simulated_only:
        raise ConfigError(
            f"{algorithm.name()} runs in simulations only: {algorithm.simulated_only}"
        )
    if mechanism is not None and mechanism.arithmetic == "ideal":
        raise ConfigError(
            "ideal arithmetic is true of real numbers only, and real peers send rounded ones, "
            "whose last bits may tell"
            ' what the noise hides; use arithmetic = "grid", or simulate'
        )


def check_budget(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    peer: int,
    mechanism: Mechanism | None,
    budget: Budget,
    agreed: bool = False,
) -> None:
    """Refuse a budget that would leave out what a peer adds: it is against everybody, whatever
    others do, so only noise of the peer's own counts. It is the site's own, or the one that was
    agreed on (privacy.epsilon)."""
    whose = "the agreed budget" if agreed else "this site's budget"
    limit = f"{whose} of epsilon {budget.epsilon:g} at delta {budget.delta:g}"
    if mechanism is None:
        raise ConfigError(
            f"{limit} allows nothing here, because the experiment adds no noise;"
            " agree on [privacy], or leave [budget] out"
        )
    bare = algorithm.bare(graph, steps, peer)
    if bare:
        instead = (
            "agree on privacy.sigma, which promises no epsilon," if agreed else "leave [budget] out"
        )
        raise ConfigError(
            f"against everybody together no finite budget holds what peer {peer} would release:"
            f" {bare}; or {instead} and rely on the noise of others"
        )
    one = compose_epsilon([(mechanism.event(), 1)], budget.delta)
    if one > budget.epsilon * AT_MOST:
        raise ConfigError(
            f"{limit} allows no release at all, since a single one costs epsilon {one:.4g}:"
            " this peer would add noise and nothing else; raise it, or agree on more noise"
        )


def refuse_task_for_real_peers(kind: str) -> None:
    """Refuse tasks whose records no participant can prepare alone, before a folder is made."""
    if not kinds()[kind].held:
        raise ConfigError(
            f"a {kind} task is for simulations: real peers hold records of"
            f" {', '.join(held_kinds())} tasks; personalized and model-propagation give everybody a"
            " model of their own on those too"
        )


def check_graph(graph: Graph | GraphSequence) -> None:
    """Refuse graphs on which a run means nothing."""
    if graph.n < 2:
        raise ConfigError(
            f"the graph {graph.name} has {graph.n} peer; a run needs at least two that talk"
        )
    if isinstance(graph, Graph) and not graph.is_connected():
        parts = int(graph.components().max()) + 1
        raise ConfigError(
            f"the graph {graph.name} falls into {parts} parts that never meet; connect them"
        )


def check_schedule(algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int) -> None:
    """Refuse schedules that do nothing, never converge, or leave peers out."""
    schedule = algorithm.schedule
    if steps < 1:
        raise ConfigError("steps = 0: nobody would say anything; ask for at least one step")
    if not isinstance(graph, Graph):
        if not schedule.synchronous:
            raise ConfigError(
                f"{algorithm.name()} needs one fixed graph for its {schedule.name()}, found "
                f"{graph.name}; name one"
            )
        return
    schedule.check_graph(graph)
    algorithm.check_peers(graph, steps)


def check_answers(
    algorithm: Algorithm[Any], task: str, privacy: PrivacySection | None, bins: int | None = None
) -> None:
    """Histograms are counts of answers: randomized response, values with a single 1, and no other
    noise."""
    if algorithm.counting and not kinds()[task].counted:
        raise ConfigError(
            f'{algorithm.name()} counts values, found a {task} task; use task.kind = "histogram"'
        )
    if privacy is None:
        return
    answers = of_files()[privacy.mechanism].one_of_several
    if algorithm.counting and not answers:
        raise ConfigError(
            f"{algorithm.name()} counts answers given by randomized response, found "
            f"{privacy.mechanism} noise; use"
            ' privacy.mechanism = "randomized-response"'
        )
    about = kinds()[task]
    if answers and about.of_pairs and bins is None:
        raise ConfigError(
            f"randomized response tells one of several values: say into how many a {task} task is"
            " rounded with task.bins"
        )
    if answers and not about.counted and not about.of_pairs:
        raise ConfigError(
            f"randomized response tells one of several values and nothing else, found a {task} "
            f"task; use"
            ' task.kind = "histogram", or gaussian noise'
        )
    if answers:
        check_counted(algorithm)
