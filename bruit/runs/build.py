"""From a checked experiment file to things that run: graph, task, algorithm, mechanism, engine.

Here the command line's rule holds: an experiment that cannot mean anything is refused with one
sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from bruit.algorithms.algorithm import Algorithm, algorithm_from, catalog
from bruit.algorithms.answerable import check_parts, check_task
from bruit.algorithms.gossip.muffliato import presets
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.graphs.names import edge_file
from bruit.mechanisms import Mechanism, NoiseBySize, RecordSums
from bruit.mechanisms.mechanism import of_files
from bruit.runs.ahead.planned_releases import PlannedReleases, planned_loss
from bruit.runs.ahead.rehearsed import Rehearsed
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Engine, Progress
from bruit.runs.engines.events import Events
from bruit.runs.entrance import at_line as _line
from bruit.runs.entrance import check_answers, check_graph, check_schedule
from bruit.runs.file import AlgorithmSection, ExperimentFile, PrivacySection, identity
from bruit.runs.result import Run
from bruit.runs.run import rehearse, run
from bruit.tasks import Task
from bruit.tasks.data.catalog import catalog as data_catalog
from bruit.tasks.kinds.task_files import build_task

OF_TASK = {
    "confidences": "sizes",
    "smoothness": "declared",
}  # parameters that may be taken from the task, by a word


@dataclass(frozen=True, kw_only=True)
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
            self.algorithm,
            self.graph,
            self.task,
            privacy=self.privacy,
            steps=self.steps,
            seed=self.file.seed,
            engine=self.engine,
            watch=self.file.watch,
            progress=progress,
            evaluate_every=self._scored(),
            rehearsal=rehearsal,
        )
        result.experiment, result.identity = self.text, identity(self.file, rehearsal=rehearsal)
        return result

    def compare(self, result: Run) -> None:
        """References (alone, all data in one place) are computed once, for the observer."""
        if self.file.references:
            known, result.joining = self.task.comparison(result.estimates)
            result.references = known | self.algorithm.references(self.task)
        else:
            result.references, result.joining = {}, None

    def compare_or_stop(self, result: Run) -> None:
        """The same for a run that came to its end; stopped in it, the run is not the whole of what
        was asked for."""
        if result.interrupted is None:
            try:
                self.compare(result)
            except KeyboardInterrupt:
                result.identity = ""

    def _scored(self) -> int | None:
        """How often models are scored: fused rounds and meetings score nothing on the way, and in
        time nothing at all."""
        if not self.file.engine.fused or self.algorithm.schedule.looked_at:
            return None
        return self.steps if self.algorithm.schedule.synchronous else 0


@dataclass(frozen=True)
class Protocol:
    """What peers do, without data: who may talk to whom, how, and how long."""

    graph: Graph | GraphSequence
    algorithm: Algorithm[Any]
    steps: int


def protocol(file: ExperimentFile, text: str = "", where: str = "experiment") -> Protocol:
    """The protocol of an experiment, built and asked the same way by simulations, real peers and
    accountants."""
    for key in _words(file):
        with _line(text, where, "algorithm", key):
            word = (file.algorithm.model_extra or {})[key]
            raise ConfigError(
                f'{key} = "{word}" is chosen by a simulation, which holds the task; here give a '
                f"number"
            )
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
    with _line(
        text, where, *(("task", "kind") if file.privacy is None else ("privacy", "mechanism"))
    ):
        check_answers(algorithm, file.task.kind, file.privacy, file.task.bins)
    return Protocol(graph, algorithm, steps)


def check_protocol(file: ExperimentFile) -> None:
    """Refuse an experiment whose graph, algorithm and steps do not fit together; no data is
    read."""
    protocol(_without(file, _words(file)))


def build(
    file: ExperimentFile,
    text: str = "",
    where: str = "experiment",
    progress: Progress | None = None,
) -> Experiment:
    """An experiment from its checked file; what is wrong is named with its line in `text`.
    `progress` hears of the rehearsal that sizes the noise for an epsilon, which is as long as the
    run."""
    words = _words(file)
    agreed = protocol(
        _without(file, words), text, where
    )  # what words stand for is known once task and noise are
    graph, algorithm, steps = agreed.graph, agreed.algorithm, agreed.steps
    task = whole_task(file, graph.n, text, where)
    with _line(text, where, "privacy"):
        privacy = None
        if file.privacy is not None:
            section = with_public_numbers(file.privacy, task)
            privacy = build_privacy(
                section, algorithm, graph, steps, file.seed, task.width, progress
            )
    for key in words:
        with _line(text, where, "algorithm", key):
            if key in OF_TASK:
                algorithm = with_parameter_of_task(algorithm, key, task)
            else:
                algorithm = algorithm.explained(key, task, graph, steps, privacy)
    bad = [peer for peer in file.watch if not 0 <= peer < graph.n]
    with _line(text, where, "watch"):
        if bad:
            raise ConfigError(f"watch names peer {bad[0]}, but the peers are 0..{graph.n - 1}")
    with _line(text, where, "engine", "fused"):
        engine = build_engine(file)
    return Experiment(
        graph=graph,
        task=task,
        algorithm=algorithm,
        privacy=privacy,
        steps=steps,
        engine=engine,
        file=file,
        text=text,
    )


def whole_task(file: ExperimentFile, peers: int, text: str = "", where: str = "experiment") -> Task:
    """The records of all peers, from the data that the experiment names."""
    with _line(text, where, "task", *(("data",) if file.task.data else ())):
        check_file(data_file(file.task.data), where)
        task = build_task(file.task, peers, file.seed)
        if task.peers != peers:
            raise ConfigError(
                f"the graph {file.graph} has {peers} peers but the data has {task.peers} owners"
            )
    return task


def data_file(name: str | None) -> str | None:
    """The path that task.data is; None when it is the name of a data set."""
    is_path = (
        name is not None
        and name not in data_catalog()
        and (Path(name).suffix or len(Path(name).parts) > 1)
    )
    return name if is_path else None


def check_file(name: str | None, where: str) -> None:
    """Refuse a file that is in none of the places where `bruit.runs.file.located` looks for it, and
    name them."""
    if name is None or Path(name).exists():
        return
    if Path(name).is_absolute():
        raise ConfigError(f"there is no file {name}")
    beside, here = Path(where).resolve().parent, Path.cwd()
    places = (
        f"beside the experiment in {beside} and "
        if Path(where).is_file() and beside != here
        else ""
    )
    raise ConfigError(f"there is no file {name}: looked {places}in the working directory {here}")


def _words(file: ExperimentFile) -> list[str]:
    """Parameters of the algorithm that are given by a word, which the task explains."""
    given, kind = file.algorithm.model_extra or {}, catalog().get(file.algorithm.name)
    known = {**OF_TASK, **(kind.words if kind is not None else {})}
    return [key for key, word in known.items() if given.get(key) == word]


def _without(file: ExperimentFile, keys: list[str]) -> ExperimentFile:
    others = {
        key: value for key, value in (file.algorithm.model_extra or {}).items() if key not in keys
    }
    return file.model_copy(
        update={"algorithm": AlgorithmSection(name=file.algorithm.name, **others)}
    )


def with_parameter_of_task(algorithm: Algorithm[Any], key: str, task: Task) -> Algorithm[Any]:
    """The algorithm with the peers' confidences from their public numbers of records, c_u = m_u /
    max m, or with the smoothness that the task declares (perso:PERSO-1, PERSO-2)."""
    if key not in algorithm.describe():
        raise ConfigError(f"{algorithm.name()} has no parameter {key!r}; leave it out")
    if key == "confidences":
        return algorithm_from(
            {**algorithm.describe(), key: (task.sizes / task.sizes.max()).tolist()}
        )
    known = task.constants()
    if known.source != "declared" or not isfinite(known.smoothness):
        raise ConfigError(
            'smoothness = "declared" needs rows of a declared length; use rows = "unit", or give a'
            " number"
        )
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
        raise ConfigError(
            'fused paths have no latency, loss or churn; use engine.name = "bulk", or leave fused '
            "out"
        )
    return Events(**options)


def build_algorithm(
    name: str,
    parameters: dict[str, Any],
    graph: Graph | GraphSequence,
    steps: int | None,
    privacy: PrivacySection | None,
) -> tuple[Algorithm[Any], int]:
    """The algorithm and its horizon; a preset chooses the horizon unless the file does."""
    if name in presets():
        sigma = privacy.sigma if privacy is not None else None
        if sigma is None:
            raise ConfigError(f"{name} chooses its horizon from the noise: give privacy.sigma")
        unknown = set(parameters) - {"spread"}
        if unknown:
            raise ConfigError(f"{name} has no parameter {sorted(unknown)[0]!r} (it has: spread)")
        spread = parameters.get("spread", 0.25)
        if (
            isinstance(spread, bool)
            or not isinstance(spread, int | float)
            or not 0 <= spread < float("inf")
        ):
            raise ConfigError(
                f"{name}: spread = {spread!r} is not a number >= 0; it bounds the spread of the "
                f"inputs"
            )
        chosen = presets()[name](graph, sigma, spread=float(spread))
        return chosen.algorithm, chosen.steps if steps is None else steps
    algorithm = algorithm_from({"name": name, **parameters})
    if steps is None:
        raise ConfigError(
            f"the experiment does not say how many steps {name} takes; add a line such as `steps = "
            f"20`"
        )
    return algorithm, steps


FROM_TASK = (
    "divisor",
    "records",
    "lipschitz",
)  # keys of [privacy] that are filled in from the task where they are left out


def with_public_numbers(section: PrivacySection, task: Task) -> PrivacySection:
    """The section with the numbers that a simulation knows of all peers, where it leaves them out:
    the numbers of records, which are public where a record is replaced, and what the task
    declares. Sums of records are divided by the expected batch of a peer."""
    extra, more = section.model_extra or {}, dict[str, Any]()
    if section.kind == RecordSums.kind and extra.get("adjacency") != "add-remove":
        batch = float(extra.get("sample_rate", 1.0)) * float(task.record_counts().mean())
        more["divisor"] = batch
    if of_files()[section.kind] is NoiseBySize:
        known = task.constants()
        more["records"] = task.sizes.tolist()
        more |= {"lipschitz": known.lipschitz} if known.source == "declared" else {}
    if set(more) <= set(extra):
        return section
    return PrivacySection.model_validate(
        {**more, **section.model_dump(exclude_none=True, exclude_unset=True)}
    )


def build_privacy(
    section: PrivacySection,
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    steps: int,
    seed: int,
    dim: int = 1,
    progress: Progress | None = None,
    planned: PlannedReleases | None = None,
) -> Mechanism:
    """The mechanism for values of `dim` numbers; for a target epsilon the least noise, given how
    often one releases: as often as in the run of this seed, which is the one that a simulation
    makes, or as often as was `planned`."""
    known = of_files()
    kind = known[section.kind]
    if section.kind == RecordSums.kind and "divisor" not in (section.model_extra or {}):
        raise ConfigError(
            "sums of records are divided by a public number: give privacy.divisor, the expected"
            " batch of a peer (sample_rate times the records of one), agreed on without looking at"
            " the data"
        )
    if section.arithmetic != "grid" and "arithmetic" not in kind.keys:
        raise ConfigError(
            f"arithmetic is a choice of gaussian noise, found {section.kind}, whose noise is"
            " exactly discrete already; leave privacy.arithmetic out"
        )
    if "clip" in section.model_fields_set and "clip" not in kind.keys:
        raise ConfigError(
            f"{section.kind} clips nothing to privacy.clip = {section.clip:g}: what a release may"
            " reach follows from its other keys; leave privacy.clip out"
        )
    sizes = dict.fromkeys(size for other in known.values() for size in other.sizes)
    given = [
        key
        for key in sorted(sizes, key=lambda size: size == "epsilon")
        if getattr(section, key, None) is not None
    ]
    if len(given) != 1 or given[0] not in kind.sizes:
        wanted = " or ".join(f"privacy.{key}" for key in kind.sizes)
        found = " and ".join(f"privacy.{key}" for key in given) or "none of them"
        raise ConfigError(
            f"say how much {section.mechanism} noise exactly once, by {wanted}; found {found}"
        )
    told = {key: value for key in kind.keys if (value := getattr(section, key, None)) is not None}
    if given != ["epsilon"]:
        made = kind.from_keys({**told, given[0]: getattr(section, given[0])}, dim)
        check_parts(algorithm, made)
        return made
    ahead = Rehearsed(
        dim,
        partial(rehearse, algorithm, graph, steps=steps, seed=seed, progress=progress),
        partial(_counted, algorithm, steps, planned),
        None if planned is None else planned.most,
    )
    return kind.from_keys(told, dim).sized_for(float(section.epsilon or 0.0), section.delta, ahead)


def _counted(
    algorithm: Algorithm[Any], steps: int, planned: PlannedReleases | None, rehearsal: Run
) -> float:
    """How often the busiest peer releases, counted by running the algorithm on blank data, unless
    the algorithm knows what is charged. If a number is planned, what that many releases cost, in
    units of one with all of the noise."""
    if planned is not None and rehearsal.privacy is not None:
        return planned_loss(planned, rehearsal.ledger, rehearsal.privacy.event())
    charged = algorithm.charged(steps)
    if charged is not None:
        return charged
    return max(1, int(rehearsal.facts().releases().max(initial=0)))
