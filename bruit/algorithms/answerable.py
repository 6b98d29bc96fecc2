"""What algorithms ask of tasks, and what tasks answer: an algorithm that would die in the middle is
refused before.

An algorithm that shows a value first and asks for something else next has spent budget when the
task does not answer. So every entrance compares what is asked with what is answered before the
first release: experiment files by `bruit.runs.entrance`, a run in Python by `check_run`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm, catalog
from bruit.errors import ConfigError
from bruit.mechanisms import Mechanism
from bruit.tasks import Task
from bruit.tasks.kinds.kind import kinds
from bruit.tasks.task import QUESTIONS

SHOWN = frozenset(
    {"a value to average", "a function of two points", "a loss of two points"}
)  # a peer's own value


def asked_by(algorithm: Algorithm[Any]) -> str | None:
    """What an algorithm asks peers for, in words; None of an algorithm of one's own that does not
    say so, of which nothing is known."""
    found: str | None = vars(type(algorithm)).get("asks")
    return found


def askers() -> dict[str, list[str]]:
    """The algorithms that ask each question, by name."""
    found: dict[str, list[str]] = {question: [] for question in sorted(QUESTIONS)}
    for name, kind in catalog().items():
        if kind.asks is not None:
            found[kind.asks].append(name)
    return found


def answers() -> dict[str, frozenset[str]]:
    """What a task of each kind can be asked for; of kinds that say nothing, nothing is known."""
    known = {name: kind.task.answers for name, kind in kinds().items()}
    return {name: answered for name, answered in known.items() if answered is not None}


def check_task(algorithm: Algorithm[Any], task: str) -> None:
    """Refuse tasks that cannot answer what the algorithm asks; of an algorithm of one's own nothing
    is known."""
    asked, answered = asked_by(algorithm), answers()
    if asked is None or task not in answered or asked in answered[task]:
        return
    known = askers()
    others = sorted(name for question in answered[task] for name in known[question])
    fitting = [kind for kind, able in answered.items() if asked in able]
    raise ConfigError(
        f"{algorithm.name()} asks peers for {asked}, which a {task} task does not answer; use "
        f"task.kind = {' or '.join(fitting)}, or for a {task} task: {', '.join(others)}"
    )


def check_counted(algorithm: Algorithm[Any]) -> None:
    """Refuse randomized response for algorithms that do not show the values themselves: it tells
    one of several."""
    asked = asked_by(algorithm)
    if asked is not None and asked not in SHOWN:
        raise ConfigError(
            "randomized response tells one of several values and nothing else, and"
            f" {algorithm.name()} asks peers for {asked}; use gaussian noise, or token-histogram"
        )


def check_parts(algorithm: Algorithm[Any], privacy: Mechanism) -> None:
    """Refuse noise that has no parts where later releases carry a part of it."""
    if algorithm.divides_noise:
        privacy.scaled(0.5)


def check_run(algorithm: Algorithm[Any], task: Task, privacy: Mechanism | None) -> None:
    """Refuse a run whose task does not answer what the algorithm asks, or whose values the
    mechanism cannot tell; of tasks of one's own nothing is known."""
    known = vars(type(task)).get("answers")  # a class below one of bruit may answer more
    kind = type(task).__name__.lower()
    if algorithm.counting and known is not None and "a value to average" not in known:
        raise ConfigError(
            f"{algorithm.name()} counts values, found a {kind} task; use br.tasks.histogram"
        )
    if known is not None and asked_by(algorithm) not in (None, *known):
        check_task(algorithm, kind)
    if privacy is not None:
        check_parts(algorithm, privacy)
    if privacy is not None and privacy.one_of_several:
        check_counted(algorithm)
        if algorithm.counting or asked_by(algorithm) is not None:
            everybody = np.arange(task.peers)
            privacy.bare(
                task.value(everybody), everybody
            )  # at home: a row that names no value is found now
