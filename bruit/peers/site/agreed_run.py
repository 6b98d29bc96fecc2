"""What real peers run: the one way from an experiment file to it, for all who lead there.

Founder, demonstration and every peer build through `agreed_run`: what one refuses all refuse, with the
same words, before a record is read, a key is made or a byte is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.names import edge_file
from bruit.mechanisms import Mechanism
from bruit.peers.site.own_records import OwnTask
from bruit.peers.wire.address_book import AddressBook, run_id
from bruit.privacy.ledger import Budget, Ledger
from bruit.runs.ahead.planned_releases import PlannedReleases, planned_releases
from bruit.runs.build import Protocol, build_privacy, protocol
from bruit.runs.entrance import (
    at_line,
    check_budget,
    refuse_for_real_peers,
    refuse_task_for_real_peers,
)
from bruit.runs.file import ExperimentFile, located, parse
from bruit.runs.run import rehearse, run
from bruit.tasks import Mean, Task
from bruit.tasks.data.agreed_columns import columns_digest
from bruit.tasks.task import Constants, Manifest

T = TypeVar("T", bound=Task)
TRIED = 32  # steps after which an algorithm has asked whatever it asks


@dataclass(frozen=True, kw_only=True)
class AgreedRun(Generic[T]):
    """What was agreed on, built and asked everything; `task` is all of it, or the part that one
    peer holds.

    `planned` says how often a peer releases, and how sure that is; `budget` what every peer's door
    enforces unless its site says otherwise: None if the noise was agreed on by its size."""

    graph: Graph | GraphSequence
    algorithm: Algorithm[Any]
    steps: int
    task: T
    privacy: Mechanism | None
    planned: PlannedReleases
    ahead: Ledger  # what kinds of releases its first steps make, on blank data
    budget: Budget | None
    file: ExperimentFile
    text: str  # as it was agreed on, the same for everybody


def agreed_run(
    text: str, folder: Path, where: str, hold: Callable[[ExperimentFile, int], T]
) -> AgreedRun[T]:
    """The run that real peers agreed on, whose files lie in the folder; or one sentence on why it
    cannot be.

    `hold` makes the task, or reads one's own part of it, when nothing public speaks against the run.
    """
    here = located(text, folder)
    file = parse(here, where)
    words = _AgreedText(here, where, _edges(file))
    agreed = _protocol(words)
    graph, steps = agreed.graph, agreed.steps
    algorithm = agreed.algorithm
    with at_line(here, where, "algorithm", "name"):
        refuse_for_real_peers(algorithm)
    with at_line(here, where, "task", "kind"):
        refuse_task_for_real_peers(file.task.kind)
    task = hold(file, graph.n)
    with at_line(here, where, "task", "dim"):
        if (
            file.task.data is None
            and "dim" in file.task.model_fields_set
            and task.dim != file.task.dim
        ):
            raise ConfigError(
                f"values of {file.task.dim} numbers were agreed on (task.dim), but the records hold"
                f" {task.dim}; prepare them again, or agree on another dim"
            )
    with at_line(here, where, "algorithm", "name"):
        check_questions(
            file.algorithm.name, algorithm, graph, steps, task, _questions(words, task.dim)
        )
    with at_line(here, where, "privacy"), _unfit_noise():
        planned, privacy = _planned(words), _privacy(words, task.width)
        refuse_for_real_peers(algorithm, privacy)
        ahead = _ahead(words, task.width)
        if privacy is not None:
            privacy.compared(task)
        budget = _agreed_budget(words, task.width)
    return AgreedRun(
        graph=graph,
        algorithm=algorithm,
        steps=steps,
        task=task,
        privacy=privacy,
        planned=planned,
        ahead=ahead,
        budget=budget,
        file=file,
        text=text,
    )


@contextmanager
def _unfit_noise() -> Iterator[None]:
    """Noise that was not measured for these records, or is asked for other answers, is a mistake in
    what was agreed on."""
    try:
        yield
    except PrivacyError as error:
        raise ConfigError(str(error)) from None


class _AgreedText(NamedTuple):
    """What the public part of a run follows from: the experiment, its name in errors, the digest of
    its edge list."""

    text: str
    where: str
    edges: str


def _edges(file: ExperimentFile) -> str:
    path = edge_file(file.graph)
    return (
        hashlib.sha256(Path(path).read_bytes()).hexdigest()
        if path is not None and Path(path).is_file()
        else ""
    )


# Peers that share a process agreed on the same words: what follows from them is worked out once,
# not once a peer.
@lru_cache(maxsize=2)
def _protocol(words: _AgreedText) -> Protocol:
    file = parse(words.text, words.where)
    return protocol(file, words.text, words.where)


@lru_cache(maxsize=2)
def _questions(words: _AgreedText, dim: int) -> tuple[str, ...]:
    agreed = _protocol(words)
    return _asked(agreed.algorithm, agreed.graph, agreed.steps, dim)


@lru_cache(maxsize=2)
def _privacy(words: _AgreedText, width: int) -> Mechanism | None:
    file, agreed = parse(words.text, words.where), _protocol(words)
    if file.privacy is None:
        return None
    return build_privacy(
        file.privacy,
        agreed.algorithm,
        agreed.graph,
        agreed.steps,
        file.seed,
        width,
        planned=_planned(words),
    )


@lru_cache(maxsize=2)
def _planned(words: _AgreedText) -> PlannedReleases:
    file, agreed = parse(words.text, words.where), _protocol(words)
    return planned_releases(agreed.algorithm, agreed.graph, agreed.steps, file.seed)


@lru_cache(maxsize=2)
def _ahead(words: _AgreedText, width: int) -> Ledger:
    """The ledger of the first steps, on blank data of that width."""
    agreed, privacy = _protocol(words), _privacy(words, width)
    if privacy is not None and privacy.one_of_several:  # blank rows name none of several values
        return Ledger(peers=agreed.graph.n, events=[privacy.event()])
    steps = min(agreed.steps, TRIED)
    return rehearse(agreed.algorithm, agreed.graph, privacy, steps, dim=width).ledger


@lru_cache(maxsize=2)
def _agreed_budget(words: _AgreedText, width: int) -> Budget | None:
    """The agreed epsilon and delta, once no peer has anything to say against them."""
    file, agreed = parse(words.text, words.where), _protocol(words)
    if file.privacy is None or file.privacy.epsilon is None:
        return None
    budget, privacy = Budget(file.privacy.epsilon, file.privacy.delta), _privacy(words, width)
    for peer in range(agreed.graph.n):
        check_budget(
            agreed.algorithm, agreed.graph, agreed.steps, peer, privacy, budget, agreed=True
        )
    return budget


class AgreedWords(NamedTuple):
    """What is public of an agreed run, before anybody's records are read."""

    file: ExperimentFile
    graph: Graph | GraphSequence
    steps: int
    text: str

    @property
    def whole(self) -> str:
        """The experiment, and what it does not tell of files it names: a graph, columns."""
        kind = self.file.graph.strip().partition(":")[0]
        told = self.text
        if kind in ("file", "ego") and isinstance(self.graph, Graph):
            told += f"\ngraph {self.graph.fingerprint()}\n"
        if self.file.task.columns_file is not None:
            told += f"\ncolumns {columns_digest(self.file.task.columns_file)}\n"
        return told

    @property
    def digest(self) -> str:
        """Alike for all who agreed on the same, however their mail programs end lines."""
        return hashlib.sha256(self.whole.replace("\r\n", "\n").encode()).hexdigest()


def agreed_words(text: str, folder: Path, where: str) -> AgreedWords:
    """The public part of an experiment whose files lie in the folder; no record is read."""
    here = located(text, folder)
    file = parse(here, where)
    agreed = _protocol(_AgreedText(here, where, _edges(file)))
    return AgreedWords(file, agreed.graph, agreed.steps, text)


def words_of(agreed: AgreedRun[Any]) -> AgreedWords:
    return AgreedWords(agreed.file, agreed.graph, agreed.steps, agreed.text)


def agreed_id(book: AddressBook, agreed: AgreedRun[Any]) -> str:
    """The name of the run, alike for all who agreed on it: people, experiment, and a graph and
    columns that lie in files, whose content the experiment does not tell. Peers with different edge
    lists or columns files refuse each other."""
    return run_id(book, words_of(agreed).whole)


@dataclass(frozen=True, eq=False)
class _Asked(Task):
    """A task of blank values which notes what it is asked."""

    blank: Mean
    questions: dict[str, None]

    @property
    def peers(self) -> int:
        return self.blank.peers

    @property
    def dim(self) -> int:
        return self.blank.dim

    @property
    def metric(self) -> str:
        return self.blank.metric

    def value(self, ids: Ints) -> Array:
        self.questions["value"] = None
        return self.blank.value(ids)

    def gradient(self, ids: Ints, x: Array) -> Array:
        self.questions["gradient"] = None
        return self.blank.gradient(ids, x)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        self.questions["gradient_sampled"] = None
        return self.blank.gradient_sampled(ids, x, uniforms)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        self.questions["prox"] = None
        return self.blank.prox(ids, x, rho)

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        self.questions["cut_losses"] = None
        return self.blank.cut_losses(ids, x, ceiling)

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        self.questions["pair_value"] = None
        return self.blank.pair_value(x, y, uniform)

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        self.questions["pair_gradient"] = None
        return self.blank.pair_gradient(models, x, y, uniform)

    def evaluate(self, models: Array) -> dict[str, float]:
        return {}

    def constants(self) -> Constants:
        return self.blank.constants()

    def describe(self) -> Manifest:
        return {}

    def references(self) -> dict[str, float]:
        return {}


def _asked(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int, dim: int
) -> tuple[str, ...]:
    """What an algorithm asks records for in its first steps."""
    asked = _Asked(Mean(np.zeros((graph.n, dim))), {})
    run(algorithm, graph, asked, steps=min(steps, TRIED), evaluate_every=0)
    return tuple(asked.questions)


def check_questions(
    name: str,
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    task: Task,
    asked: tuple[str, ...] | None = None,
) -> None:
    """Refuse an algorithm that asks what the records do not answer, before anything is released.

    What it asks is found by running it on blank values; then the records are asked once, at home.
    """
    asked = _asked(algorithm, graph, steps, task.dim) if asked is None else asked
    here = np.array([task.me if isinstance(task, OwnTask) else 0])
    row, draws, shown = np.zeros((1, task.dim)), np.zeros((1, 1)), np.zeros((1, task.width))
    answers: dict[str, Callable[[], Array]] = {
        "value": lambda: task.value(here),
        "gradient": lambda: task.gradient(here, row),
        "gradient_sampled": lambda: task.gradient_sampled(here, row, draws),
        "prox": lambda: task.prox(here, row, 1.0),
        "cut_losses": lambda: task.cut_losses(here, row, 1.0),
        "pair_value": lambda: task.pair_value(shown, shown, 0.0),
        "pair_gradient": lambda: task.pair_gradient(row, shown, shown, 0.0),
    }
    for question in asked:
        try:
            answers[question]()
        except ConfigError as error:
            raise ConfigError(f"{name} asks what these records do not answer: {error}") from None
