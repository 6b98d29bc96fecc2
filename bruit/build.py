"""From a checked experiment file to things that run: graph, task, algorithm, mechanism, engine.

Here the command line's rule holds: an experiment that cannot mean anything is refused with one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm, algorithm_from
from bruit.algorithms.federated_admm import FederatedADMM
from bruit.algorithms.muffliato import presets
from bruit.algorithms.schedules import Rounds, Walk
from bruit.algorithms.walk_admm import WalkADMM
from bruit.algorithms.walk_rate import declared_utility
from bruit.algorithms.walk_sgd import WalkSGD
from bruit.config import AlgorithmSection, ExperimentFile, PrivacySection, identity
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Engine, Progress
from bruit.engines.events import Events
from bruit.entrance import at_line as _line
from bruit.entrance import check_answers, check_graph, check_schedule, check_task
from bruit.errors import ConfigError
from bruit.experiment import calibrated, rehearse, run
from bruit.fixed_points.consensus_admm import Consensus, task_prox
from bruit.fixed_points.contraction import measured_contraction
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.graphs.names import edge_file
from bruit.mechanisms import DiscreteGaussian, Gaussian, Laplace, Mechanism, RandomizedResponse
from bruit.randomness import Replay
from bruit.result import Run
from bruit.task_files import build_task
from bruit.tasks import Boosted, Personal, Task
from bruit.tasks.catalog import catalog as data_catalog
from bruit.tasks.linear import LinearTask

CONTRACTION = 4096  # numbers in all duals up to which the contraction of ADMM is measured
UTILITY = "utility"  # a rate that is not a number: the one of the utility statement
OF_TASK = {"confidences": "sizes", "smoothness": "declared"}  # parameters that may be taken from the task, by a word


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

    def run(self, progress: Progress | None = None, rehearsal: bool = False) -> Run:
        """Make it happen, and compare it with its references."""
        result = self.learn(progress, rehearsal)
        self.compare(result)
        return result

    def learn(self, progress: Progress | None = None, rehearsal: bool = False) -> Run:
        """Make it happen."""
        result = run(
            self.algorithm, self.graph, self.task, privacy=self.privacy, steps=self.steps, seed=self.file.seed,
            engine=self.engine, watch=self.file.watch, progress=progress,
            evaluate_every=self._scored(), rehearsal=rehearsal,
        )  # fmt: skip
        result.experiment, result.identity = self.text, identity(self.file, rehearsal=rehearsal)
        return result

    def compare(self, result: Run) -> None:
        """References (alone, all data in one place) are computed once, for the observer."""
        found = self.task.references() if self.file.references else {}
        if self.file.references and isinstance(self.algorithm, WalkADMM | FederatedADMM):
            found |= measured(self.algorithm, self.task)
        result.references = found

    def compare_or_stop(self, result: Run) -> None:
        """The same for a run that came to its end; stopped in it, the run is not the whole of what was asked for."""
        if result.interrupted is None:
            try:
                self.compare(result)
            except KeyboardInterrupt:
                result.identity = ""

    def _scored(self) -> int | None:
        """How often models are scored: fused rounds and meetings score nothing on the way, and in time nothing at all.
        """
        if not self.file.engine.fused or isinstance(self.algorithm.schedule, Walk):
            return None
        return self.steps if isinstance(self.algorithm.schedule, Rounds) else 0


def measured(algorithm: WalkADMM | FederatedADMM, task: Task) -> dict[str, float]:
    """How much ADMM contracts on this task, from below: for the observer, like the other references (walk:ADMM-1)."""
    if task.peers * task.dim > CONTRACTION:
        return {}
    consensus = Consensus(task_prox(task), algorithm.gamma, algorithm.regularizer)
    start = np.zeros((task.peers, task.dim))
    return {"contraction": measured_contraction(consensus.operator, start, Replay(0), pairs=4, turns=10)}


@dataclass(frozen=True)
class Protocol:
    """What peers do, without data: who may talk to whom, how, and how long."""

    graph: Graph | GraphSequence
    algorithm: Algorithm[Any]
    steps: int


def protocol(file: ExperimentFile, text: str = "", where: str = "experiment") -> Protocol:
    """The protocol of an experiment, built and asked the same way by simulations, real peers and accountants."""
    for key in _words(file):
        with _line(text, where, "algorithm", key):
            word = (file.algorithm.model_extra or {})[key]
            raise ConfigError(f'{key} = "{word}" is chosen by a simulation, which holds the task; here give a number')
    with _line(text, where, "graph"):
        check_file(edge_file(file.graph), where)
        graph = named_graph(file.graph, run_seed=file.seed)
        check_graph(graph)
    name, parameters = file.algorithm.name, dict(file.algorithm.model_extra or {})
    with _line(text, where, "algorithm", _guilty(name, parameters)):
        algorithm, steps = build_algorithm(name, parameters, graph, file.steps, file.privacy)
    with _line(text, where, "steps" if steps < 1 else "graph"):
        check_schedule(algorithm, graph, steps)
    with _line(text, where, "task", "kind"):
        check_task(algorithm, file.task.kind)
    with _line(text, where, *(("task", "kind") if file.privacy is None else ("privacy", "mechanism"))):
        check_answers(algorithm, file.task.kind, file.privacy, file.task.bins)
    return Protocol(graph, algorithm, steps)


def check_protocol(file: ExperimentFile) -> None:
    """Refuse an experiment whose graph, algorithm and steps do not fit together; no data is read."""
    protocol(_without(file, _words(file)))


def build(file: ExperimentFile, text: str = "", where: str = "experiment",
          progress: Progress | None = None) -> Experiment:  # fmt: skip
    """An experiment from its checked file; what is wrong is named with its line in `text`. `progress` hears of the
    rehearsal that sizes the noise for an epsilon, which is as long as the run."""
    words = _words(file)
    agreed = protocol(_without(file, words), text, where)  # what words stand for is known once task and noise are
    graph, algorithm, steps = agreed.graph, agreed.algorithm, agreed.steps
    task = whole_task(file, graph.n, text, where)
    with _line(text, where, "privacy"):
        privacy = None
        if file.privacy is not None:
            privacy = build_privacy(file.privacy, algorithm, graph, steps, file.seed, task.width, progress)
    for key in words:
        with _line(text, where, "algorithm", key):
            if key != "rate":
                algorithm = with_parameter_of_task(algorithm, key, task)
    if "rate" in words:
        with _line(text, where, "algorithm", "rate"):
            algorithm = with_utility_rate(algorithm, task, graph, steps, privacy)
    bad = [peer for peer in file.watch if not 0 <= peer < graph.n]
    with _line(text, where, "watch"):
        if bad:
            raise ConfigError(f"watch names peer {bad[0]}, but the peers are 0..{graph.n - 1}")
    with _line(text, where, "engine", "fused"):
        engine = build_engine(file)
    return Experiment(graph, task, algorithm, privacy, steps, engine, file, text)


def whole_task(file: ExperimentFile, peers: int, text: str = "", where: str = "experiment") -> Task:
    """The records of all peers, from the data that the experiment names."""
    with _line(text, where, "task", *(("data",) if file.task.data else ())):
        check_file(data_file(file.task.data), where)
        task = build_task(file.task, peers, file.seed)
        if task.peers != peers:
            raise ConfigError(f"the graph {file.graph} has {peers} peers but the data has {task.peers} owners")
    return task


def data_file(name: str | None) -> str | None:
    """The path that task.data is; None when it is the name of a data set."""
    is_path = name is not None and name not in data_catalog() and (Path(name).suffix or len(Path(name).parts) > 1)
    return name if is_path else None


def check_file(name: str | None, where: str) -> None:
    """Refuse a file that is in none of the places where `bruit.config.located` looks for it, and name them."""
    if name is None or Path(name).exists():
        return
    if Path(name).is_absolute():
        raise ConfigError(f"there is no file {name}")
    beside, here = Path(where).resolve().parent, Path.cwd()
    places = f"beside the experiment in {beside} and " if Path(where).is_file() and beside != here else ""
    raise ConfigError(f"there is no file {name}: looked {places}in the working directory {here}")


def _words(file: ExperimentFile) -> list[str]:
    """Parameters of the algorithm that are given by a word, which the task explains."""
    given, known = file.algorithm.model_extra or {}, dict(OF_TASK)
    if file.algorithm.name == WalkSGD.name():
        known["rate"] = UTILITY
    return [key for key, word in known.items() if given.get(key) == word]


def _without(file: ExperimentFile, keys: list[str]) -> ExperimentFile:
    others = {key: value for key, value in (file.algorithm.model_extra or {}).items() if key not in keys}
    return file.model_copy(update={"algorithm": AlgorithmSection(name=file.algorithm.name, **others)})


def with_parameter_of_task(algorithm: Algorithm[Any], key: str, task: Task) -> Algorithm[Any]:
    """The algorithm with the peers' confidences from their public numbers of records, c_u = m_u / max m, or with the
    smoothness that the task declares (perso:PERSO-1, PERSO-2)."""
    if key not in algorithm.describe():
        raise ConfigError(f"{algorithm.name()} has no parameter {key!r}; leave it out")
    if key == "confidences":
        if not isinstance(task, LinearTask | Personal | Boosted):
            raise ConfigError('confidences = "sizes" are numbers of records, and peers of this task hold none; leave it'
                              " out")  # fmt: skip
        sizes = task.records.sizes if isinstance(task, LinearTask) else task.sizes
        return algorithm_from({**algorithm.describe(), key: (sizes / sizes.max()).tolist()})
    known = task.constants()
    if known.source != "declared" or not isfinite(known.smoothness):
        raise ConfigError('smoothness = "declared" needs rows of a declared length; use rows = "unit", or give a'
                          " number")  # fmt: skip
    return algorithm_from({**algorithm.describe(), key: known.smoothness})


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


def build_engine(file: ExperimentFile) -> Engine:
    """The engine of the file; compiled paths are the bulk engine's."""
    options = file.engine.model_dump(exclude={"name", "fused"})
    if file.engine.name == "bulk":
        return Bulk(fused="auto" if file.engine.fused is None else file.engine.fused)
    if file.engine.fused:
        raise ConfigError("fused paths have no latency, loss or churn; use engine.name = \"bulk\", or leave fused out")
    return Events(**options)


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


def with_utility_rate(algorithm: Algorithm[Any], task: Task, graph: Graph | GraphSequence, steps: int,
                      privacy: Mechanism | None) -> Algorithm[Any]:  # fmt: skip
    """Walk SGD with the constant step of its utility statement, from declared constants only (walk:RW-7)."""
    if not isinstance(algorithm, WalkSGD) or algorithm.decay:
        raise ConfigError(f'rate = "{UTILITY}" is the constant step of walk-sgd; leave decay out, or give a number')
    clip, sigma = (float("inf"), 0.0) if privacy is None else (privacy.clip, privacy.sigma)
    known = declared_utility(task.constants(), graph, task.dim, clip=clip, sigma=sigma, bound=algorithm.bound,
                             batch=algorithm.batch)  # fmt: skip
    return replace(algorithm, rate=known.rate(steps - algorithm.burn_in - algorithm.flush))


SIZES = {
    "gaussian": ("sigma", "epsilon"), "laplace": ("scale", "epsilon"), "discrete-gaussian": ("sigma",),
    "randomized-response": ("gamma", "epsilon"),
}  # fmt: skip


def build_privacy(section: PrivacySection, algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int,
                  seed: int, dim: int = 1, progress: Progress | None = None) -> Mechanism:  # fmt: skip
    """The mechanism for values of `dim` numbers; for a target epsilon the least noise, given how often one releases."""
    if section.arithmetic != "grid" and section.mechanism != "gaussian":
        raise ConfigError(f"arithmetic is a choice of gaussian noise, found {section.mechanism}, whose noise is exactly"
                          " discrete already; leave privacy.arithmetic out")  # fmt: skip
    given = [key for key in ("sigma", "scale", "gamma", "epsilon") if getattr(section, key) is not None]
    allowed = SIZES[section.mechanism]
    if len(given) != 1 or given[0] not in allowed:
        wanted = " or ".join(f"privacy.{key}" for key in allowed)
        found = " and ".join(f"privacy.{key}" for key in given) or "none of them"
        raise ConfigError(f"say how much {section.mechanism} noise exactly once, by {wanted}; found {found}")
    if section.gamma is not None:
        return RandomizedResponse(dim, section.gamma)
    if section.sigma is not None:
        if section.mechanism == "gaussian":
            return Gaussian(clip=section.clip, sigma=section.sigma, arithmetic=section.arithmetic)
        return DiscreteGaussian(clip=section.clip, sigma=section.sigma)
    if section.scale is not None:
        return Laplace(clip=section.clip, scale=section.scale)
    epsilon = float(section.epsilon or 0.0)
    rehearsed = partial(rehearse, algorithm, graph, steps=steps, seed=seed, progress=progress)
    if section.mechanism == "gaussian":
        noise = Gaussian(clip=section.clip, arithmetic=section.arithmetic)
        return calibrated(noise, epsilon, section.delta, dim, rehearsed, partial(_counted, algorithm, steps))
    count = _counted(algorithm, steps, rehearsed(Gaussian(clip=1.0, sigma=1.0)))
    if section.mechanism == "randomized-response":
        return RandomizedResponse.of(dim, epsilon / count)  # answers compose by adding up
    return Laplace(clip=section.clip).calibrate(epsilon, count)


def _counted(algorithm: Algorithm[Any], steps: int, rehearsal: Run) -> int:
    """How often the busiest peer releases, counted by running the algorithm on blank data; for federated ADMM with the
    server's noise, how many models it makes, each of which costs everybody one release."""
    if isinstance(algorithm, FederatedADMM) and algorithm.noise == "server":
        return max(1, steps // 2)
    return max(1, int(rehearsal.facts().releases().max(initial=0)))
