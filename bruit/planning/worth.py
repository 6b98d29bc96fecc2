"""Is a plan worth running? Its predicted error against what is known without any data.

mean       values lie in a ball of diameter S, the sensitivity: its center, or one's own value, errs by up to S / 2
learning   gradients are at most S / 2 long, models at most D apart: the first model is at most S D / 2 off
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bruit.errors import BruitError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.planning.option import Option
from bruit.planning.question import Question

LARGER, MORE = (2, 4, 8, 16, 32, 64), (4, 16, 64)
MOST_PEERS, LARGEST_COMPLETE = 4096, 2048


@dataclass(frozen=True)
class Worth:
    """Whether the plan is useless, a sentence about it (empty if it is fine), and what would
    help."""

    useless: bool
    sentence: str = ""
    would_help: tuple[str, ...] = ()


def without_data(question: Question) -> float:
    """The error of an answer that looks at nothing, in the units in which plans predict."""
    half = question.sensitivity / 2
    return half if question.job == "mean" else half * question.diameter


def error_of(question: Question, option: Option) -> float:
    """Of the whole value or model: an error of a mean is that of each of its numbers."""
    if question.job == "learning":
        return option.error
    return option.error * question.sensitivity * math.sqrt(question.dim)


def worth(question: Question, chosen: Option, others: tuple[Option, ...] = ()) -> Worth:
    """What a stranger should be told about the predicted error before anything is run."""
    error, blind = error_of(question, chosen), without_data(question)
    if error < blind:
        return Worth(False)
    if question.job == "learning":  # all predictions of learning are bounds of the worst case
        sentence = (
            f"useless as far as the bound tells: it allows an excess loss of {error:.3g}, and the"
            f" model all start from is at most {blind:.3g} off, without any data;"
            " real losses are often far below the bound, so sweep"
        )
        return Worth(
            True, sentence, ("a larger epsilon, fewer numbers in the model (--dim), or more peers",)
        )
    kind = (
        "useless as far as the bound tells: an error of up to"
        if chosen.at_most
        else "useless: an error of"
    )
    sentence = (
        f"{kind} {error:.3g} is no better than an answer without any data, or than one's own value"
        f" alone, which err by at most {blind:.3g}"
    )
    better = [other for other in others if error_of(question, other) < blind]
    helps = [*_search(question, chosen)]
    helps += [
        f"{other.protocol} (error {error_of(question, other):.3g}), if you trust: {other.trust}"
        for other in better[:1]
    ]
    return Worth(True, sentence, tuple(helps) or ("far more peers, or a far larger epsilon",))


def _search(question: Question, chosen: Option) -> Iterator[str]:
    """The first larger epsilon, and the first larger number of peers, with which the same protocol
    is worth running."""
    option = importlib.import_module(f"bruit.planning.{chosen.protocol.replace('-', '_')}").option
    known, sized = chosen.graph not in ("any", "star"), ("any", "complete:", "ring:", "butterfly:")
    same = named_graph(chosen.graph) if question.graph is None and known else question.graph
    epsilons = [
        (
            f"epsilon = {question.epsilon * times:g} instead of {question.epsilon:g}",
            replace(question, graph=same, epsilon=question.epsilon * times),
        )
        for times in LARGER
    ]
    peers = [
        (
            f"{question.peers * times} peers instead of {question.peers}",
            replace(
                question,
                peers=question.peers * times,
                graph=_larger(chosen.graph, question.peers * times),
            ),
        )
        for times in MORE
        if question.peers * times <= MOST_PEERS
        and question.caps is None
        and question.steps is None
        and chosen.graph.startswith(sized)
    ]
    for family in (epsilons, peers):
        for words, asked in family:
            try:
                found = option(asked)
            except BruitError:
                continue
            if error_of(asked, found) < without_data(asked):
                yield words
                break


def _larger(name: str, peers: int) -> Graph | GraphSequence | None:
    """The same graph with more peers, for protocols that look at it."""
    return (
        named_graph(f"complete:{peers}")
        if name.startswith("complete:") and peers <= LARGEST_COMPLETE
        else None
    )
