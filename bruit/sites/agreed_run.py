"""What real peers run: the one way from an experiment file to it, for all who lead there.

The founder of a network, a demonstration and every peer build through `agreed_run`, so that what one of them refuses
all refuse, with the same words, before a record is read, a key is made or a byte is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.muffliato import presets
from bruit.algorithms.pair_averaging import PairAveraging
from bruit.arrays import Array, Ints
from bruit.build import build_privacy, protocol
from bruit.config import ExperimentFile, located, parse
from bruit.entrance import at_line, refuse_for_real_peers, refuse_task_for_real_peers
from bruit.errors import ConfigError
from bruit.experiment import run
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism
from bruit.network.address_book import AddressBook, run_id
from bruit.sites.own_records import OwnTask
from bruit.tasks import Mean, Task
from bruit.tasks.task import Constants, Manifest

T = TypeVar("T", bound=Task)
TRIED = 32  # steps after which an algorithm has asked whatever it asks


@dataclass(frozen=True, kw_only=True)
class AgreedRun(Generic[T]):
    """What was agreed on, built and asked everything; `task` is all of it, or the part that one peer holds."""

    graph: Graph | GraphSequence
    algorithm: Algorithm[Any]
    steps: int
    task: T
    privacy: Mechanism | None
    file: ExperimentFile
    text: str  # as it was agreed on, the same for everybody


def agreed_run(text: str, folder: Path, where: str, hold: Callable[[ExperimentFile, int], T]) -> AgreedRun[T]:
    """The run that real peers agreed on, whose files lie in the folder; or one sentence on why it cannot be.

    `hold` makes the task for so many peers, or reads one's own part of it. It is called when nothing that is public
    speaks against the run, so that whoever holds records is not asked for them in vain.
    """
    here = located(text, folder)
    file = parse(here, where)
    agreed = protocol(file, here, where)
    graph, steps = agreed.graph, agreed.steps
    algorithm = timed(agreed.algorithm) if file.algorithm.name in presets() else agreed.algorithm
    with at_line(here, where, "algorithm", "name"):
        refuse_for_real_peers(algorithm)
    with at_line(here, where, "task", "kind"):
        refuse_task_for_real_peers(file.task.kind)
    task = hold(file, graph.n)
    with at_line(here, where, "task", "dim"):
        if file.task.data is None and "dim" in file.task.model_fields_set and task.dim != file.task.dim:
            raise ConfigError(f"values of {file.task.dim} numbers were agreed on (task.dim), but the records hold"
                              f" {task.dim}; prepare them again, or agree on another dim")  # fmt: skip
    with at_line(here, where, "algorithm", "name"):
        check_questions(file.algorithm.name, algorithm, graph, steps, task)
    privacy = None
    with at_line(here, where, "privacy"):
        if file.privacy is not None:
            privacy = build_privacy(file.privacy, algorithm, graph, steps, file.seed, task.width)
        refuse_for_real_peers(algorithm, privacy)
    return AgreedRun(graph=graph, algorithm=algorithm, steps=steps, task=task, privacy=privacy, file=file, text=text)


def agreed_id(book: AddressBook, agreed: AgreedRun[Any]) -> str:
    """The name of the run, alike for all who agreed on it: people, experiment, and a graph that lies in a file, whose
    content the experiment does not tell. Peers with different edge lists refuse each other."""
    kind, graph = agreed.file.graph.strip().partition(":")[0], agreed.graph
    told = f"\ngraph {graph.fingerprint()}\n" if kind in ("file", "ego") and isinstance(graph, Graph) else ""
    return run_id(book, agreed.text + told)


def timed(algorithm: Algorithm[Any]) -> Algorithm[Any]:
    """A preset among real peers, whose meetings nobody counts: it lasts as long, in units of time, as A meetings last.

    Contraction by (1 - c) a meeting is exp(-c A) in expectation over a Poisson number of A meetings, which is what the
    bound on the error after exactly A of them is derived from: the same bound holds (gossip:MUF-7).
    """
    if isinstance(algorithm, PairAveraging) and algorithm.schedule.activations is not None:
        return replace(algorithm, schedule=replace(algorithm.schedule, activations=None))
    return algorithm


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


def check_questions(name: str, algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int,
                    task: Task) -> None:  # fmt: skip
    """Refuse an algorithm that asks what the records do not answer, before anything is released.

    What it asks is found by running it for a while on blank values; then the records are asked the same once, at home.
    """
    asked = _Asked(Mean(np.zeros((graph.n, task.dim))), {})
    run(algorithm, graph, asked, steps=min(steps, TRIED), evaluate_every=0)
    here = np.array([task.me if isinstance(task, OwnTask) else 0])
    row, draws = np.zeros((1, task.dim)), np.zeros((1, 1))
    answers: dict[str, Callable[[], Array]] = {
        "value": lambda: task.value(here), "gradient": lambda: task.gradient(here, row),
        "gradient_sampled": lambda: task.gradient_sampled(here, row, draws), "prox": lambda: task.prox(here, row, 1.0),
        "pair_value": lambda: task.pair_value(row, row, 0.0),
        "pair_gradient": lambda: task.pair_gradient(row, row, row, 0.0),
    }  # fmt: skip
    for question in asked.questions:
        try:
            answers[question]()
        except ConfigError as error:
            raise ConfigError(f"{name} asks what these records do not answer: {error}") from None
