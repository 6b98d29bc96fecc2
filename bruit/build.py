"""From a checked experiment file to things that run: graph, task, algorithm, mechanism, engine.

Here the command line's rule holds: an experiment that cannot mean anything is refused with one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm, algorithm_from
from bruit.algorithms.muffliato import presets
from bruit.algorithms.schedules import Rounds, Walk
from bruit.config import ExperimentFile, PrivacySection, TaskSection, line_of
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Engine, Progress
from bruit.engines.events import Events
from bruit.errors import ConfigError
from bruit.experiment import rehearse, run
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, Mechanism
from bruit.result import Run
from bruit.tasks import Logistic, Mean, Ridge, Softmax, Task


@dataclass(frozen=True)
class Experiment:
    """Everything a run needs, built and checked; `file` and `text` say where it came from."""

    graph: Graph | GraphSequence
    task: Task
    algorithm: Algorithm[Any]
    privacy: Mechanism | None
    steps: int
    engine: Engine
    file: ExperimentFile
    text: str

    def run(self, progress: Progress | None = None) -> Run:
        """Make it happen; references (alone, all data in one place) are computed once, for the observer."""
        result = run(
            self.algorithm, self.graph, self.task, privacy=self.privacy, steps=self.steps, seed=self.file.seed,
            engine=self.engine, watch=self.file.watch, progress=progress,
        )  # fmt: skip
        result.references = self.task.references() if self.file.references else {}
        result.experiment = self.text
        return result


def build(file: ExperimentFile, text: str = "", where: str = "experiment") -> Experiment:
    """An experiment from its checked file; what is wrong is named with its line in `text`."""
    with _line(text, where, "graph"):
        graph = named_graph(file.graph, run_seed=file.seed)
        check_graph(graph)
    with _line(text, where, "task", *(("data",) if file.task.data else ())):
        task = build_task(file.task, graph.n, file.seed)
        if task.peers != graph.n:
            raise ConfigError(f"the graph {graph.name} has {graph.n} peers but the data has {task.peers} owners")
    name, parameters = file.algorithm.name, dict(file.algorithm.model_extra or {})
    with _line(text, where, "algorithm", _guilty(name, parameters)):
        algorithm, steps = build_algorithm(name, parameters, graph, file.steps, file.privacy)
    with _line(text, where, "steps" if steps < 1 else "graph"):
        check_schedule(algorithm, graph, steps)
    with _line(text, where, "privacy"):
        privacy = None if file.privacy is None else build_privacy(file.privacy, algorithm, graph, steps, file.seed)
    bad = [peer for peer in file.watch if not 0 <= peer < graph.n]
    with _line(text, where, "watch"):
        if bad:
            raise ConfigError(f"watch names peer {bad[0]}, but the peers are 0..{graph.n - 1}")
    options = file.engine.model_dump(exclude={"name"})
    engine: Engine = Bulk() if file.engine.name == "bulk" else Events(**options)
    return Experiment(graph, task, algorithm, privacy, steps, engine, file, text)


@contextmanager
def _line(text: str, where: str, *path: str) -> Iterator[None]:
    """Errors raised inside are about that key of the experiment: put its file and line before them."""
    try:
        yield
    except ConfigError as error:
        number = line_of(text, path)
        raise ConfigError(f"{where}:{number}: {error}" if number else str(error)) from None


def _guilty(name: str, parameters: dict[str, Any]) -> str:
    """The parameter that alone makes the algorithm refuse, else its name."""
    if name in presets():
        return next((key for key in parameters if key != "spread"), "spread")
    for key, value in parameters.items():
        try:
            algorithm_from({"name": name, key: value})
        except ConfigError:
            return key
    return "name"


def check_graph(graph: Graph | GraphSequence) -> None:
    """Refuse graphs on which a run means nothing."""
    if graph.n < 2:
        raise ConfigError(f"the graph {graph.name} has {graph.n} peer; a run needs at least two that talk")
    if isinstance(graph, Graph) and not graph.is_connected():
        parts = int(graph.components().max()) + 1
        raise ConfigError(f"the graph {graph.name} falls into {parts} parts that never meet; connect them")


def check_schedule(algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int) -> None:
    """Refuse schedules that do nothing or never converge."""
    if steps < 1:
        raise ConfigError("steps = 0: nobody would say anything; ask for at least one step")
    if isinstance(graph, Graph) and isinstance(algorithm.schedule, Rounds | Walk) and not graph.validity().aperiodic:
        raise ConfigError(
            f"the graph {graph.name} is bipartite and its peers give themselves no weight, so gossip swings for ever;"
            " use the weights plus=1"
        )


def build_task(section: TaskSection, peers: int, seed: int) -> Task:
    if section.kind == "mean":
        if section.data is not None:
            raise ConfigError("a mean task draws uniform values of task.dim numbers; to average a file, use Python")
        return Mean.uniform(peers, section.dim, seed)
    if section.data is None:
        raise ConfigError(f"a {section.kind} task needs data: a name of `bruit list data`, or a CSV or NPZ file")
    kinds: dict[str, Any] = {"ridge": Ridge, "logistic": Logistic, "softmax": Softmax}
    options = section.model_dump(exclude={"kind", "data", "split", "dim"})
    if section.kind != "logistic":
        options.pop("derivative_clip")
    task: Task = kinds[section.kind].load(section.data, peers=peers, split=section.split, seed=seed, **options)
    return task


def build_algorithm(
    name: str, parameters: dict[str, Any], graph: Graph | GraphSequence, steps: int | None,
    privacy: PrivacySection | None,
) -> tuple[Algorithm[Any], int]:  # fmt: skip
    """The algorithm and its horizon; a preset chooses the horizon unless the file does."""
    if name in presets():
        sigma = privacy.sigma if privacy is not None else None
        if sigma is None:
            raise ConfigError(f"{name} chooses its horizon from the noise: give privacy.sigma")
        unknown = set(parameters) - {"spread"}
        if unknown:
            raise ConfigError(f"{name} has no parameter {sorted(unknown)[0]!r} (it has: spread)")
        spread = parameters.get("spread", 0.25)
        if isinstance(spread, bool) or not isinstance(spread, int | float) or not 0 <= spread < float("inf"):
            raise ConfigError(f"{name}: spread = {spread!r} is not a number >= 0; it bounds the spread of the inputs")
        chosen = presets()[name](graph, sigma, spread=float(spread))
        return chosen.algorithm, chosen.steps if steps is None else steps
    algorithm = algorithm_from({"name": name, **parameters})
    if steps is None:
        raise ConfigError(f"the experiment does not say how many steps {name} takes; add a line such as `steps = 20`")
    return algorithm, steps


def build_privacy(section: PrivacySection, algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int,
                  seed: int) -> Mechanism:  # fmt: skip
    """The mechanism; for a target epsilon the least noise, given how often the algorithm releases."""
    sizes = {"gaussian": ("sigma", "epsilon"), "laplace": ("scale", "epsilon"), "discrete-gaussian": ("sigma",)}
    given = [key for key in ("sigma", "scale", "epsilon") if getattr(section, key) is not None]
    allowed = sizes[section.mechanism]
    if len(given) != 1 or given[0] not in allowed:
        wanted = " or ".join(f"privacy.{key}" for key in allowed)
        found = " and ".join(f"privacy.{key}" for key in given) or "none of them"
        raise ConfigError(f"say how much {section.mechanism} noise exactly once, by {wanted}; found {found}")
    if section.sigma is not None:
        kind = Gaussian if section.mechanism == "gaussian" else DiscreteGaussian
        return kind(clip=section.clip, sigma=section.sigma)
    if section.scale is not None:
        return Laplace(clip=section.clip, scale=section.scale)
    epsilon, count = float(section.epsilon or 0.0), releases(algorithm, graph, steps, seed)
    if section.mechanism == "laplace":
        return Laplace(clip=section.clip).calibrate(epsilon, count)
    return Gaussian(clip=section.clip).calibrate(epsilon, section.delta, count)


def releases(algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int, seed: int) -> int:
    """How often the busiest peer releases, counted by running the algorithm on blank data."""
    counted = rehearse(algorithm, graph, Gaussian(clip=1.0, sigma=1.0), steps, seed).facts().releases()
    return max(1, int(np.max(counted)))
