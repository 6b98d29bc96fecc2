"""Run: what came of an experiment. Views, epsilons and reports are functions of it; on disk it is a
folder.

A run folder holds a manifest, the trace, the ledger, the metrics and the estimates, all columnar
and without pickles, written atomically: it is there whole or not at all. A broken or foreign folder
is refused with a reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bruit.algorithms.algorithm import Algorithm, algorithm_from
from bruit.algorithms.doorway import Twinned
from bruit.arrays import Array
from bruit.errors import BruitError, ConfigError, PrivacyError
from bruit.files import UNREADABLE, plain
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.stored import graph_of
from bruit.mechanisms import Mechanism, RecordSums, mechanism_from
from bruit.notebook_table import html_table
from bruit.on import Workplace, chosen, place_for
from bruit.privacy.account import Accountant, Observers, Peers
from bruit.privacy.guarantee import Epsilon, Guarantee, Hypothesis, Status
from bruit.privacy.ledger import Ledger
from bruit.privacy.noise_source import NoiseSource, Sources
from bruit.privacy.pair_table import Summary
from bruit.privacy.profile import USUAL_DELTA, check_delta
from bruit.privacy.theorem import Facts
from bruit.randomness import Replay
from bruit.runs.engines.engine import Metrics
from bruit.runs.folder.manifest import BEFORE, COUNTS, FILES, FORMAT, VERSION, manifest_of
from bruit.runs.folder.manifest import digest as _digest
from bruit.runs.folder.writing import save_folder
from bruit.runs.model import FILE as MODEL
from bruit.runs.model import Model, ModelFacts, read_model, statement
from bruit.runs.noise_keys import (
    REHEARSED,
    REPLAYABLE,
    began_with,
    noise_of,
    noise_source,
    public_digest,
)
from bruit.runs.verdict import TogetherOrAlone, verdict
from bruit.tasks.data.public_model import PublicModel
from bruit.tasks.scores.joining import Joining, joining_from
from bruit.tasks.task import Constants, Score, Task
from bruit.trace import Trace, View, trace_from


@dataclass(kw_only=True)
class Run:
    """The outcome of one experiment; `state` is kept in memory only, to chain phases.

    A protocol that followed another in the same ledger keeps it as `before`, with what it `carried`
    on from it: the "state" of the same algorithm, the "model" each peer had, or "nothing". `noise`
    names the draws of all of them; `unwatched` says why nobody can tell that data left through the
    door only, if so; `opened`: why every release counts as told to everybody, whatever messages there
    were; `local`: the estimates hold raw data that was to stay at home; `twin`: the
    states of the same peers with other raw data (`algorithms.doorway`); `declared` is what the
    noise takes from the task: bounds that were checked when the run was built, and constants that
    are assumed; `interrupted`: how much was done, of how much, when somebody stopped it; `learned`
    what its models are, `identity` a name of the experiment, its data and the options behind it
    (empty for runs made in Python); `start` is the public model that peers started from, if it was
    not zero; `own_models`: the estimates with each peer's local parts, where the task has some: what
    peers keep at home, while the estimates are what was shared; `joining` says for whom joining
    paid, on the peers' own test records. `prepared` are the public facts that the algorithm prepared, kept as
    `public`."""

    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    steps: int
    seed: int
    engine: dict[str, Any]
    privacy: Mechanism | None
    task: dict[str, Any]
    constants: Constants | None
    trace: Trace
    ledger: Ledger
    metrics: Metrics
    estimates: Array = field(repr=False)
    references: dict[str, float] = field(default_factory=dict)
    experiment: str = ""
    phase: int = 0
    state: Any = field(default=None, repr=False)
    before: Run | None = field(default=None, repr=False)
    carried: str = "nothing"
    noise: Sources = field(default=frozenset(), repr=False)
    rehearsal: bool = False
    unwatched: str = "no run was watched"
    opened: str = ""
    local: bool = False
    twin: Any = field(default=None, repr=False)
    declared: tuple[Hypothesis, ...] = ()
    interrupted: tuple[int, int] | None = None
    learned: ModelFacts | None = field(default=None, repr=False)
    identity: str = ""
    start: PublicModel | None = None
    own_models: Array | None = field(default=None, repr=False)
    joining: Joining | None = None
    prepared: InitVar[Any] = None
    _asked: tuple[tuple[Any, ...], Accountant] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    _public: tuple[tuple[Any, ...], Any] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __post_init__(self, prepared: Any) -> None:
        if prepared is not None:
            self._public = ((self.algorithm, self.graph, self.steps), prepared)

    @property
    def n(self) -> int:
        return self.graph.n

    @property
    def delta(self) -> float:
        """The delta that the experiment file asks for, at which commands and pages tell epsilons;
        the usual one if it names none."""
        try:
            asked = tomllib.loads(self.experiment).get("privacy", {}).get("delta", USUAL_DELTA)
            check_delta(asked)
            return float(asked)
        except (tomllib.TOMLDecodeError, AttributeError, TypeError):
            return USUAL_DELTA

    @property
    def plot(self) -> Any:
        """Figures of this run, made by `bruit.show.report.plots.Plots`: utility(), losses(),
        distance(), graph() ..."""
        # show stands above runs, and is loaded when somebody wants a figure
        return import_module("bruit.show.report.plots").Plots(self)

    def _repr_html_(self) -> str:
        noise = (
            "none"
            if self.privacy is None
            else f"{type(self.privacy).__name__}, sigma {self.privacy.sigma:.4g}"
        )
        rows: list[tuple[str, object]] = [
            ("peers", self.n),
            ("graph", self.graph.name),
            ("algorithm", self.algorithm.name()),
            (self.algorithm.schedule.unit, self.steps),
            ("noise", noise),
            ("seed", self.seed),
        ]
        rows += [(f"{name} at the end", self.metrics.last(name)) for name in self.metrics.names()]
        return html_table(
            "Run",
            [*rows, *((f"reference: {name}", value) for name, value in self.references.items())],
        )

    @property
    def public(self) -> Any:
        """The public facts that the algorithm prepared before the run; made again only for a run
        that was read from a folder, or changed."""
        known = (self.algorithm, self.graph, self.steps)
        if self._public is None or not all(map(_same, self._public[0], known)):
            self._public = (known, self.algorithm.prepare(self.graph, self.steps))
        return self._public[1]

    def facts(self) -> Facts:
        """What the accountant may look at."""
        level = self.privacy.level if self.privacy is not None else "user"
        sigma, clip = (
            (0.0, float("inf"))
            if self.privacy is None
            else (self.privacy.sigma / self.privacy.divisor, self.privacy.clip)
        )
        own = self.ledger if self.before is None else self.ledger.tail(len(self.before.ledger))
        return Facts(
            agreed=self.graph,
            steps=self.steps,
            ledger=own,
            meetings=self.trace.meetings,
            faults=self.trace.faults,
            level=level,
            sigma=sigma,
            clip=clip,
            constants=None if isinstance(self.privacy, RecordSums) else self.constants,
            public=self.public,
            missed=self.trace.missed,
            unequal=self.privacy is not None and self.privacy.unequal,
            deviations=() if self.privacy is None else self.privacy.deviations(),
            algorithm=self.algorithm.name(),
            arithmetic="grid" if self.privacy is None else self.privacy.arithmetic,
            noise=self.noise,
            unwatched=self.unwatched,
            opened=self.opened,
            declared=self.declared,
            interrupted=self.stopped_words(),
            adjacency="replace" if self.privacy is None else self.privacy.adjacency,
        )

    def accountant(self) -> Accountant:
        """Who answers questions about this run; the same one for the next question, unless the run
        was changed."""
        earlier = None if self.before is None else self.before.accountant()
        met = vars(self.trace).get("meetings")  # a trace that draws them again has none to change
        known = (
            self.algorithm,
            self.graph,
            self.steps,
            self.ledger,
            self.ledger.calls,
            self.trace,
            self.trace.faults,
            self.trace.missed,
            met,
            self.privacy,
            self.constants,
            self.noise,
            self.unwatched,
            self.opened,
            self.declared,
            earlier,
            self.carried,
            self.interrupted,
        )
        if self._asked is None or not all(map(_same, self._asked[0], known)):
            made = Accountant(
                self.facts(), self.algorithm.guarantees(), earlier, self.carried != "nothing"
            )
            self._asked = (known, made)
        return self._asked[1]

    def guarantee(
        self,
        of: Peers = None,
        seen_by: Observers = None,
        delta: float = 1e-6,
        status: Status = "proven",
    ) -> Guarantee:
        return self.accountant().guarantee(of, seen_by, delta, status)

    def epsilon(
        self,
        of: Peers = None,
        seen_by: Observers = None,
        delta: float = 1e-6,
        status: Status = "proven",
    ) -> Epsilon:
        """What `seen_by` (a peer, a set of peers, everybody by default) could have learned about
        `of` (a peer, a set of peers whose data all change, the worst peer by default), at the level
        of the mechanism; `.why()` explains it."""
        return self.guarantee(of, seen_by, delta, status).epsilon(delta)

    def losses(
        self,
        status: Status = "proven",
        progress: Callable[[int, int], None] | None = None,
        on: Workplace | str | None = None,
    ) -> Array:
        """m[u, v]: loss of u in the view of v, in local-DP units; the diagonal is nan. Observers
        are shared out `on` another place, if one is given."""
        with chosen(place_for(1, on)):
            return self.accountant().losses(status, progress)

    def summary(
        self,
        delta: float = 1e-6,
        status: Status = "proven",
        progress: Callable[[int, int], None] | None = None,
        on: Workplace | str | None = None,
    ) -> Summary:
        """Worst, typical and mean pair, and local DP alone; `on` as for `losses`."""
        with chosen(place_for(1, on)):
            return self.accountant().summary(delta, status, progress)

    def public_digest(self) -> str:
        """A name for all of this run but its records: part of the address of its noise."""
        return public_digest(
            self.algorithm,
            self.graph,
            self.privacy,
            self.steps,
            self.seed,
            self.phase,
            self.carried,
            began_with(self.before, self.start),
        )

    def config_digest(self) -> str:
        """SHA-256 of what was asked for, without the seed: with it the noise could be drawn again."""
        try:
            asked = tomllib.loads(self.experiment)
        except tomllib.TOMLDecodeError:
            asked = {}
        asked.pop("seed", None)
        noise = None if self.privacy is None else self.privacy.describe()
        known = [asked, self.algorithm.describe(), self.graph.name, self.steps, noise]
        return hashlib.sha256(
            json.dumps(plain(known), sort_keys=True, default=str).encode()
        ).hexdigest()

    def run_id(self) -> str:
        """A name for this run: configuration, ledger, and the models, unless these hold raw data."""
        found = hashlib.sha256(f"{self.config_digest()} {self.ledger.digest()}".encode())
        if not self.local:
            found.update(np.ascontiguousarray(self.estimates, "<f8").tobytes())
        return found.hexdigest()

    def noise_words(self) -> str:
        """Who can take the noise of this run away."""
        if self.privacy is None:
            return "none"
        return REHEARSED if self.rehearsal else REPLAYABLE

    def twinned(self) -> Any:
        """The final states, with those of the twin if there is one."""
        if self.twin is None:
            return self.state
        return Twinned(self.state, self.twin, np.full(self.n, self.steps, np.int64))

    def noise_source(self, task: Task | None) -> NoiseSource:
        """The draws of this run; without its task, all that can be said of them."""
        return noise_source(
            algorithm=self.algorithm,
            graph=self.graph,
            privacy=self.privacy,
            steps=self.steps,
            seed=self.seed,
            before=self.before,
            carried=self.carried,
            task=task,
            start=self.start,
        )

    def dice(self, task: Task) -> Replay:
        """The dice behind this run's door, to throw them again: only who has its records can."""
        source = self.noise_source(None if self.rehearsal else task)
        known = [
            one.hidden
            for one in self.noise
            if one.public == source.public and one.hidden is not None
        ]
        if source.hidden is not None and known and source.hidden not in known:
            raise ConfigError(
                "these are not the records of this run, so its noise cannot be drawn again;"
                " give its own task"
            )
        return noise_of(source, self.seed)

    def stopped_words(self) -> str:
        """Where somebody stopped the run; empty for one that came to its end."""
        if self.interrupted is None:
            return ""
        done, total = self.interrupted
        unit = self.algorithm.schedule.unit
        if total != self.steps:  # what the schedule drew, not its time
            unit = self.algorithm.schedule.events
        return f"interrupted after {done} of {total} {unit}"

    def verdict(self) -> TogetherOrAlone | None:
        """Whether together beat alone; None where nothing was scored or compared."""
        if not self.metrics.rows:
            return None
        metric = str(self.task.get("metric") or self.metrics.names()[0])
        together = self.metrics.last(metric)
        if self.joining is not None and self.joining.own_part is not None:
            together = self.joining.mean()  # of the models that peers end with
        return verdict(metric, together, self.references)

    @property
    def local_parts(self) -> tuple[str, ...]:
        """The parts of every model that stay at home, by name."""
        found = self.task.get("local")
        return tuple(str(name) for name in found) if isinstance(found, list | tuple) else ()

    @property
    def model(self) -> Model:
        """What was learned, ready to be used: the model of the first peer, or of a token's last
        holder."""
        return self.model_of(None)

    def model_of(
        self, peer: int | None = None, delta: float | None = None, shared: bool = False
    ) -> Model:
        """The model of one peer. Each has its own, and the average of all is something nobody
        has. Its epsilon is told at delta, by default that of the experiment. `shared`: without the
        local parts of the peer, as it was learned together."""
        delta = self.delta if delta is None else delta
        if self.learned is None:
            raise ConfigError(
                "this run does not say what its numbers mean: its folder was written by an older"
                " bruit, or it was put together by hand; run it again"
            )
        chosen = self.learned.peer if peer is None else peer
        if not 0 <= chosen < self.n:
            raise ConfigError(f"there is no peer {chosen}: the peers are 0..{self.n - 1}")
        own = None if shared or self.own_models is None else self.own_models
        score = self.learned.score if chosen == self.learned.peer and own is None else None
        epsilon, why = None, ""
        if self.privacy is not None:
            with contextlib.suppress(PrivacyError):  # then the file says that it is not known
                stated = self.epsilon(delta=delta)
                epsilon, why = float(stated), stated.why()
        local = () if own is None else self.local_parts
        privacy, warnings = statement(self.privacy, epsilon, delta, self.local, local=local)
        if self.interrupted is not None:
            warnings = (f"the run was {self.stopped_words()}", *warnings)
        if self.privacy is not None:  # what is promised is promised of real peers
            privacy |= {"protected": False, "noise": self.noise_words(), "why": why}
            warnings = (f"the noise is {self.noise_words()}", *warnings)
        return Model(
            kind=self.learned.kind,
            numbers=np.asarray(
                (self.estimates if own is None else own)[chosen], np.float64
            ).ravel(),
            recipe=self.learned.recipe,
            metric=self.learned.metric,
            score=None if score is None or not score.public else score.value,
            peer=chosen,
            peers=self.n,
            privacy=privacy,
            made=self._made(),
            warnings=warnings,
            local=local,
            network=self.learned.network,
        )

    def _made(self) -> dict[str, Any]:
        """How its models came about."""
        data = self.task.get("data")
        return {
            "by": "a simulation of all peers",
            "data": data.get("name") if isinstance(data, dict) else None,
            "graph": self.graph.name,
            "algorithm": self.algorithm.describe(),
            "steps": self.steps,
            "run": self.run_id(),
            "config": self.config_digest(),
            "ledger": self.ledger.digest(),
            "known_besides": self.task.get("public", []),
        }

    def view(self, observers: int | set[int]) -> View:
        """What a watched peer or coalition received."""
        return self.trace.view(frozenset({observers} if isinstance(observers, int) else observers))

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the run folder; it appears whole or not at all, and replaces nothing but a run
        folder."""
        return save_folder(self, Path(path), overwrite)

    def manifest(self) -> dict[str, Any]:
        """Everything needed to understand and repeat the run, as plain data."""
        return manifest_of(self)


def _same(one: Any, other: Any) -> bool:
    """One thing, or equal as words and numbers are; arrays and what holds them are never looked
    into."""
    return one is other or (
        isinstance(one, int | str | float) and type(one) is type(other) and bool(one == other)
    )


def load(path: str | Path) -> Run:
    """A run from its folder; anything missing, changed or foreign is refused with a reason."""
    folder = Path(path)
    if not folder.is_dir():
        raise ConfigError(f"there is no run folder {folder}")
    if not (folder / "manifest.json").is_file():
        raise ConfigError(f"{folder} is not a run folder: it has no manifest.json")
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ConfigError(f"the manifest of {folder} is broken: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ConfigError(
            f"{folder} is not a run of bruit: its manifest does not say format {FORMAT!r}"
        )
    if manifest.get("version") != VERSION:
        raise ConfigError(
            f"{folder} has format version {manifest.get('version')}; this bruit reads version "
            f"{VERSION}"
        )
    sums = manifest.pop("sha256", None)
    if not isinstance(sums, dict) or sums.get("manifest") != _digest(manifest):
        raise ConfigError(
            f"the run folder {folder} is broken: manifest.json is not the file that was written"
        )
    for name in (*FILES, *((MODEL,) if MODEL in sums else ())):  # older folders have no model
        if not (folder / name).is_file():
            raise ConfigError(f"the run folder {folder} is broken: {name} is missing")
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != sums.get(name):
            raise ConfigError(
                f"the run folder {folder} is broken: {name} is not the file that was written"
            )
    try:
        return _read(folder, manifest)
    except BruitError:
        raise
    except UNREADABLE as error:
        raise ConfigError(f"the run folder {folder} is broken: {error!r}") from None


def _columns(place: Path) -> dict[str, Any]:
    with np.load(place, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _read(folder: Path, manifest: dict[str, Any]) -> Run:
    columns, arrays = _columns(folder / "trace.npz"), _columns(folder / "estimates.npz")
    graph = graph_of(manifest["graph"], columns)
    trace = trace_from(
        columns, graph.n, manifest["steps"], {name: manifest.get(name, 0) for name in COUNTS}
    )
    scores = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    rows = [{name: float(value) for name, value in row.items()} for row in scores["rows"]]
    references = {name: float(value) for name, value in scores["references"].items()}
    estimates, begun = arrays["estimates"], arrays.get("start")
    ledger = Ledger.load(folder / "ledger.npz")
    if ledger.peers != graph.n or len(estimates) != graph.n:
        raise ConfigError(
            f"the run folder {folder} is broken: its parts speak of different numbers of peers"
        )
    found = Run(
        algorithm=algorithm_from(manifest["algorithm"]),
        graph=graph,
        steps=manifest["steps"],
        seed=manifest["seed"],
        engine=manifest["engine"],
        privacy=None if manifest["privacy"] is None else mechanism_from(manifest["privacy"]),
        task=manifest["task"],
        constants=None if manifest["constants"] is None else _constants(manifest["constants"]),
        trace=trace,
        ledger=ledger,
        metrics=Metrics(scores["steps"], rows),
        estimates=estimates,
        references=references,
        own_models=arrays.get("own_models"),
        joining=joining_from(scores["joining"]) if scores.get("joining") else None,
        experiment=(folder / "experiment.toml").read_text(encoding="utf-8"),
        phase=manifest["phase"],
        before=None if manifest["before"] is None else load(folder / BEFORE),
        carried=manifest["carried"],
        rehearsal=bool(manifest.get("rehearsal", False)),
        local=bool(manifest.get("local", False)),
        unwatched=str(manifest.get("unwatched", "its folder does not say whether anybody watched")),
        opened=str(manifest.get("opened", "")),
        declared=tuple(Hypothesis(**one) for one in manifest.get("declared", ())),
        interrupted=None if manifest.get("interrupted") is None else _pair(manifest["interrupted"]),
        learned=_learned(folder),
        identity=str(manifest.get("identity", "")),
        start=None if begun is None else PublicModel(begun, str(manifest["start"]["source"])),
    )
    if manifest.get("planned"):
        return found
    earlier = frozenset() if found.before is None else found.before.noise
    found.noise = frozenset({found.noise_source(None)}) | earlier
    return found


def load_model(path: str | Path, peer: int | None = None) -> Model:
    """A model from its file, or of a peer of a run folder (the one that is shown first, if none is
    named)."""
    place = Path(path)
    if (place / "manifest.json").is_file():
        return load(place).model_of(peer)
    if peer is not None:
        raise ConfigError(
            f"{place} holds one model; peers are chosen in run folders: leave the peer out"
        )
    return read_model(place / MODEL if place.is_dir() else place)


def _pair(stored: Any) -> tuple[int, int]:
    done, total = stored
    return int(done), int(total)


def _learned(folder: Path) -> ModelFacts | None:
    """What the models are, from the one that is written out."""
    if not (folder / MODEL).is_file():
        return None
    first = read_model(folder / MODEL)
    score = None if first.score is None else Score(first.score, public=True)
    return ModelFacts(first.kind, first.metric, first.recipe, first.peer, score, first.network)


def _constants(stored: dict[str, Any]) -> Constants:
    """Numbers again: an infinite one is a word in JSON."""
    numbers = {
        name: float(stored[name]) for name in ("lipschitz", "smoothness", "strong_convexity")
    }
    return Constants(**numbers, source=stored["source"])
