"""The planner: every protocol that can do the job, ranked by predicted error at the same budget.

One file of this folder per protocol, found by looking: each has `option(question)`, which refuses
with a reason when its theorem does not cover the question, and may have `TRAITS`, what is known of
it before.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from bruit.errors import BruitError, ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.how_many import how_many
from bruit.planning.option import Option, Traits
from bruit.planning.question import Question
from bruit.planning.worth import without_data, worth
from bruit.privacy.guarantee import STATUSES


@dataclass(frozen=True)
class Plan:
    """The chosen option, the others from best to worst, and why some protocols do not apply."""

    question: Question
    chosen: Option
    alternatives: tuple[Option, ...]
    refused: dict[str, str]

    def _nobody_first(self) -> tuple[Option, ...]:
        """The other options, those that need nobody in the middle first."""
        known = traits()
        return tuple(sorted(self.alternatives, key=lambda one: known[one.protocol].middleman))

    def claim(self) -> str:
        """What the chosen option promises, in words."""
        return claim(self.question, self.chosen)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the chosen option's keys at the top."""
        asked, verdict = self.question, worth(self.question, self.chosen, self._nobody_first())
        return {
            **self.chosen.to_dict(asked),
            "epsilon": asked.epsilon,
            "delta": asked.delta,
            "level": "user",
            "claim": self.claim(),
            "without_data": without_data(asked),
            "useless": verdict.useless,
            "verdict": verdict.sentence,
            "would_help": list(verdict.would_help),
            "protects": "every pair, by its cap"
            if asked.caps is not None
            else "the worst pair"
            if asked.protect == "worst"
            else "the mean over pairs, a summary",
            "colluders": asked.colluders,
            "peers": asked.peers,
            "job": asked.job,
            "dim": asked.dim,
            "alternatives": [option.to_dict(asked) for option in self.alternatives],
            "not_applicable": self.refused,
        }


def claim(asked: Question, option: Option) -> str:
    """What is promised, in words. Differential privacy is only spoken of where every pair is
    covered by a theorem."""
    real = (
        "ideal, true of real numbers and not of what is sent: " if option.status == "ideal" else ""
    )
    aim = f"epsilon = {asked.epsilon:g} at delta = {asked.delta:g}, user level,"
    against = f"against {how_many(asked.colluders, 'peer')}"
    if option.status == "heuristic":
        return f"aims at {aim} {against}: a heuristic, no guarantee for anybody; account for it with `bruit epsilon`"
    if asked.protect == "mean":
        return f"{real}{aim} for the mean loss over pairs, a summary and no guarantee for any pair, {against}"
    if asked.caps is None:
        return f"{real}({asked.epsilon:g}, {asked.delta:g})-DP at user level for the worst pair, {against}"
    caps = asked.allowed[~np.eye(asked.peers, dtype=bool)]
    between = f"caps from {caps.min():g} to {caps.max():g}"
    return f"{real}(its cap, {asked.delta:g})-DP at user level for every pair, {between}, {against}"


def protocols() -> dict[str, Callable[[Question], Option]]:
    """Every protocol the planner knows, by name: a new file is enrolled by being there."""
    return {name: module.option for name, module in _files().items()}


def traits() -> dict[str, Traits]:
    """What is known of each of them before it is asked, by name."""
    return {name: getattr(module, "TRAITS", Traits()) for name, module in _files().items()}


def learning_names() -> tuple[str, ...]:
    """Names that stand for learning a model."""
    return tuple(name for known in traits().values() for name in known.learning)


def _files() -> dict[str, Any]:
    """The files of this folder that plan a protocol, by its name."""
    import bruit.planning as folder

    found = {}
    for file in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{folder.__name__}.{file.name}")
        if callable(getattr(module, "option", None)):
            found[file.name.replace("_", "-")] = module
    return found


def plan(question: Question, algorithm: str | None = None) -> Plan:
    """Least noise, predicted error and cost of the asked algorithm, or of the best one; and of all
    others.

    Without a graph, gossip is tried on the families below. Only shown, and chosen by name alone, are
    a trusted curator or aggregator, what no real peers run, and a heuristic, whose noise may be too
    little.
    """
    known, about = protocols(), traits()
    aliases = {also: name for name, known_of in about.items() for also in known_of.also}
    wanted = None if algorithm is None else aliases.get(algorithm, algorithm)
    if wanted is not None and wanted not in known:
        near = get_close_matches(str(algorithm), [*known, *aliases], 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(known)}"
        raise ConfigError(f"the planner knows no protocol {algorithm!r}; {hint}")
    found, refused = _options(question, known)
    if (
        wanted is not None
        and wanted in refused
        and not any(option.protocol == wanted for option in found)
    ):
        raise PrivacyError(f"{wanted} does not do this: {refused[wanted]}")
    found = [_on_its_own_graph(option, question) for option in found]
    ranked = sorted(found, key=lambda option: (option.error, option.messages))
    able = [one for one in ranked if one.protocol == wanted]
    if wanted is None:
        apart = {name for name, known in about.items() if known.middleman or known.simulated}
        able = [one for one in ranked if one.protocol not in apart and one.status != "heuristic"]
    if not able:
        raise PrivacyError("; ".join(f"{name}: {why}" for name, why in refused.items()))
    chosen = min(
        able, key=lambda one: STATUSES.index(one.status)
    )  # what is proven before what is quoted
    return Plan(
        question, chosen, tuple(option for option in ranked if option is not chosen), refused
    )


def _on_its_own_graph(option: Option, question: Question) -> Option:
    """Say so where a protocol does not use the graph that was asked for."""
    if question.graph is None or option.graph in (question.graph.name, "any"):
        return option
    if option.graph.startswith("links:"):  # the same links, with other weights
        return option
    return replace(
        option,
        notes=(
            *option.notes,
            f"not on {question.graph.name}: it brings its own graph, {option.graph}",
        ),
    )


def _options(
    question: Question, known: dict[str, Callable[[Question], Option]]
) -> tuple[list[Option], dict[str, str]]:
    found: list[Option] = []
    refused: dict[str, str] = {}
    graphs: list[Graph | GraphSequence] = (
        [question.graph] if question.graph is not None else list(candidates(question))
    )
    about = traits()
    for name, option in known.items():
        for place, graph in enumerate(graphs):
            if place and about[name].own_graph:
                break
            try:
                found.append(option(replace(question, graph=graph)))
            except BruitError as error:
                refused[name] = str(error)
    kept: dict[str, Option] = {}
    for one in sorted(found, key=lambda one: (one.error, one.messages)):
        kept.setdefault(one.protocol, one)
    return list(kept.values()), {name: why for name, why in refused.items() if name not in kept}


def candidates(question: Question) -> list[Graph]:
    """Graphs to choose from, for that many peers: few edges, small diameter, or everybody."""
    n = question.peers
    names = [f"complete:{n}"] if n <= 2048 else []
    if n & (n - 1) == 0:
        names.append(f"hypercube:{n.bit_length() - 1}")
    side = math.isqrt(n)
    if side * side == n and side > 2:
        names.append(f"torus:{side}x{side}")
    if n > 7:
        names += [f"regular:{n},degree={6 if n * 6 % 2 == 0 else 4}", f"er:{n},c=2"]
    else:
        names.append(f"ring:{n}" if n > 2 else f"path:{n}")
    made = [named_graph(name) for name in names]
    return [graph for graph in made if isinstance(graph, Graph)]
