"""Run: what came of an experiment. Views, epsilons and reports are functions of it; on disk it is a folder.

A run folder holds a manifest, the trace, the ledger, the metrics and the estimates, all columnar and without pickles,
written atomically: it is there whole or not at all. A broken or foreign folder is refused with a reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
from scipy.sparse import csr_array

from bruit.algorithms.algorithm import Algorithm, algorithm_from
from bruit.algorithms.doorway import Twinned
from bruit.algorithms.schedules import Pairs, Wakes
from bruit.arrays import Array
from bruit.engines.engine import Metrics
from bruit.errors import BruitError, ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism, mechanism_from
from bruit.model import FILE as MODEL
from bruit.model import Learned, Model, read_model, statement
from bruit.noise_keys import hidden_digest, noise_of, public_digest, told_of
from bruit.notebook_table import html_table
from bruit.privacy.account import Accountant, Observers, Peers, Summary
from bruit.privacy.guarantee import Epsilon, Guarantee, Hypothesis, Status
from bruit.privacy.ledger import Ledger
from bruit.privacy.network.theorem import Facts
from bruit.privacy.noise_source import NoiseSource, Sources
from bruit.randomness import Replay
from bruit.tasks.public_model import PublicModel
from bruit.tasks.task import Constants, Score, Task
from bruit.trace import Trace, View, trace_from
from bruit.verdict import Verdict, verdict
from bruit.whole_files import plain, to_json

FORMAT, VERSION = "bruit-run", 1
FILES = ("trace.npz", "ledger.npz", "metrics.json", "estimates.npz", "experiment.toml")
BEFORE = "before.run"
REPLAYABLE = "simulated: whoever knows the seed and the records can draw it again; it protects nobody"
REHEARSED = "rehearsed: whoever knows the seed can draw it again; it protects nobody"
COUNTS = ("messages", "refusals", "retransmissions", "missed", "bytes")


@dataclass
class Run:
    """The outcome of one experiment; `state` is kept in memory only, to chain phases.

    A protocol that followed another in the same ledger keeps it as `before`, with what it `carried` on from it: the
    "state" of the same algorithm, the "model" each peer had, or "nothing". `noise` names the draws of all of them;
    `unwatched` says why nobody can tell that data left through the door only, if so; `local`: the estimates hold raw
    data that was to stay at home; `twin`: the states of the same peers with other raw data (`algorithms.doorway`);
    `declared` is what the noise takes from the task: bounds that were checked when the run was built, and constants
    that are assumed; `interrupted`: how much was done, of how much, when somebody stopped it; `learned` what its models
    are, `identity` a name of the experiment, its data and the options behind it (empty for runs made in Python);
    `start` is the public model that peers started from, if it was not zero."""

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
    local: bool = False
    twin: Any = field(default=None, repr=False)
    declared: tuple[Hypothesis, ...] = ()
    interrupted: tuple[int, int] | None = None
    learned: Learned | None = field(default=None, repr=False)
    identity: str = ""
    start: PublicModel | None = None
    _asked: tuple[tuple[Any, ...], Accountant] | None = field(default=None, init=False, repr=False, compare=False)
    plotter: ClassVar[Callable[[Run], Any] | None] = None  # set by the dashboard, a higher part of the package

    @property
    def n(self) -> int:
        return self.graph.n

    @property
    def plot(self) -> Any:
        """Figures of this run, made by `bruit.dashboard.plots.Plots`: utility(), losses(), distance(), graph() ..."""
        if Run.plotter is None:
            raise ConfigError("figures are made by the dashboard; import bruit.dashboard first")
        return Run.plotter(self)

    def _repr_html_(self) -> str:
        noise = "none" if self.privacy is None else f"{type(self.privacy).__name__}, sigma {self.privacy.sigma:.4g}"
        rows: list[tuple[str, object]] = [
            ("peers", self.n), ("graph", self.graph.name), ("algorithm", self.algorithm.name()),
            (self.algorithm.schedule.unit, self.steps), ("noise", noise), ("seed", self.seed),
        ]  # fmt: skip
        rows += [(f"{name} at the end", self.metrics.last(name)) for name in self.metrics.names()]
        return html_table("Run", [*rows, *((f"reference: {name}", value) for name, value in self.references.items())])

    def facts(self) -> Facts:
        """What the accountant may look at."""
        level = self.privacy.level if self.privacy is not None else "user"
        sigma, clip = (0.0, float("inf")) if self.privacy is None else (self.privacy.sigma, self.privacy.clip)
        public = self.algorithm.prepare(self.graph, self.steps)
        own = self.ledger if self.before is None else self.ledger.tail(len(self.before.ledger))
        return Facts(self.graph, self.steps, own, self.trace.meetings, self.trace.faults, level, sigma, clip,
                     self.constants, public, self.trace.missed,
                     self.privacy is not None and self.privacy.unequal, self.algorithm.name(),
                     "grid" if self.privacy is None else self.privacy.arithmetic, self.noise,
                     self.unwatched, self.declared, self.stopped_words())  # fmt: skip

    def accountant(self) -> Accountant:
        """Who answers questions about this run; the same one for the next question, unless the run was changed."""
        earlier = None if self.before is None else self.before.accountant()
        met = vars(self.trace).get("meetings")  # a trace that draws them again has none to change
        known = (self.algorithm, self.graph, self.steps, self.ledger, self.ledger.calls, self.trace, self.trace.faults,
                 self.trace.missed, met, self.privacy, self.constants, self.noise, self.unwatched, self.declared,
                 earlier, self.carried, self.interrupted)  # fmt: skip
        if self._asked is None or not all(map(_same, self._asked[0], known)):
            made = Accountant(self.facts(), self.algorithm.guarantees(), earlier, self.carried != "nothing")
            self._asked = (known, made)
        return self._asked[1]

    def guarantee(self, of: Peers = None, seen_by: Observers = None, delta: float = 1e-6,
                  status: Status = "proven") -> Guarantee:  # fmt: skip
        return self.accountant().guarantee(of, seen_by, delta, status)

    def epsilon(self, of: Peers = None, seen_by: Observers = None, delta: float = 1e-6,
                status: Status = "proven") -> Epsilon:  # fmt: skip
        """What `seen_by` (a peer, a set of peers, everybody by default) could have learned about `of` (a peer, a set of
        peers whose data all change, the worst peer by default), at the level of the mechanism; `.why()` explains it."""
        return self.guarantee(of, seen_by, delta, status).epsilon(delta)

    def losses(self, status: Status = "proven", progress: Callable[[int, int], None] | None = None) -> Array:
        """m[u, v]: loss of u in the view of v, in local-DP units; the diagonal is nan."""
        return self.accountant().losses(status, progress)

    def summary(self, delta: float = 1e-6, status: Status = "proven",
                progress: Callable[[int, int], None] | None = None) -> Summary:  # fmt: skip
        """Worst, typical and mean pair, and local DP alone."""
        return self.accountant().summary(delta, status, progress)

    def public_digest(self) -> str:
        """A name for all of this run but its records: part of the address of its noise."""
        return public_digest(self.algorithm, self.graph, self.privacy, self.steps, self.seed, self.phase, self.carried,
                             _past(self.before, self.start))  # fmt: skip

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

    def dice(self, task: Task) -> Replay:
        """The dice behind this run's door, to throw them again: only who has its records can."""
        source = noise_source(self.algorithm, self.graph, self.privacy, self.steps, self.seed, self.before,
                              self.carried, None if self.rehearsal else task, self.start)  # fmt: skip
        known = [one.hidden for one in self.noise if one.public == source.public and one.hidden is not None]
        if source.hidden is not None and known and source.hidden not in known:
            raise ConfigError("these are not the records of this run, so its noise cannot be drawn again; give its own"
                              " task")  # fmt: skip
        return noise_of(source, self.seed)

    def stopped_words(self) -> str:
        """Where somebody stopped the run; empty for one that came to its end."""
        if self.interrupted is None:
            return ""
        done, total = self.interrupted
        unit = self.algorithm.schedule.unit
        if total != self.steps:  # what the schedule drew, not its time
            unit = "meetings" if isinstance(self.algorithm.schedule, Pairs) else "wakes"
            unit = unit if isinstance(self.algorithm.schedule, Pairs | Wakes) else "steps"
        return f"interrupted after {done} of {total} {unit}"

    def verdict(self) -> Verdict | None:
        """Whether together beat alone; None where nothing was scored or compared."""
        if not self.metrics.rows:
            return None
        metric = str(self.task.get("metric") or self.metrics.names()[0])
        return verdict(metric, self.metrics.last(metric), self.references)

    @property
    def model(self) -> Model:
        """What was learned, ready to be used: the model of the first peer, or of a token's last holder."""
        return self.model_of(None)

    def model_of(self, peer: int | None = None, delta: float = 1e-6) -> Model:
        """The model of one peer. Each has its own, and the average of all is something nobody has."""
        if self.learned is None:
            raise ConfigError("this run does not say what its numbers mean: its folder was written by an older bruit,"
                              " or it was put together by hand; run it again")  # fmt: skip
        chosen = self.learned.peer if peer is None else peer
        if not 0 <= chosen < self.n:
            raise ConfigError(f"there is no peer {chosen}: the peers are 0..{self.n - 1}")
        score = self.learned.score if chosen == self.learned.peer else None
        level, mechanism = (None, None) if self.privacy is None else (self.privacy.level, self.privacy.describe())
        epsilon = None
        if mechanism is not None:
            with contextlib.suppress(PrivacyError):  # then the file says that it is not known
                epsilon = float(self.epsilon(delta=delta))
        privacy, warnings = statement(level or "user", mechanism, epsilon, delta, self.local)
        if self.interrupted is not None:
            warnings = (f"the run was {self.stopped_words()}", *warnings)
        if self.privacy is not None:  # what is promised is promised of real peers
            privacy |= {"protected": False, "noise": self.noise_words()}
            warnings = (f"the noise is {self.noise_words()}", *warnings)
        data = self.task.get("data")
        made = {
            "by": "a simulation of all peers", "data": data.get("name") if isinstance(data, dict) else None,
            "graph": self.graph.name, "algorithm": self.algorithm.describe(), "steps": self.steps,
            "known_besides": self.task.get("public", []),
        }  # fmt: skip
        return Model(
            kind=self.learned.kind, numbers=np.asarray(self.estimates[chosen], np.float64).ravel(),
            recipe=self.learned.recipe, metric=self.learned.metric,
            score=None if score is None or not score.public else score.value, peer=chosen, peers=self.n,
            privacy=privacy, made=made, warnings=warnings,
        )  # fmt: skip

    def view(self, observers: int | set[int]) -> View:
        """What a watched peer or coalition received."""
        return self.trace.view(frozenset({observers} if isinstance(observers, int) else observers))

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the run folder; it appears whole or not at all, and replaces nothing but a run folder."""
        target = Path(path)
        if target.exists() and not overwrite:
            raise ConfigError(f"{target} exists; choose another name or allow overwriting")
        check_folder(target)
        missing = [parent for parent in target.parents if not parent.exists()]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(None, f".{target.name}.", target.parent, True) as draft:
                self._write(Path(draft) / "new")
                _swap(Path(draft), target)
        except OSError as error:
            for parent in missing:
                with contextlib.suppress(OSError):
                    parent.rmdir()
            raise ConfigError(f"cannot write the run folder {target}: {error.strerror or error}") from None
        return target

    def _write(self, folder: Path) -> None:
        folder.mkdir()
        columns = self.trace.columns()
        if isinstance(self.graph, Graph) and not self.graph.implicit:  # else its name says it
            matrix = self.graph.weights
            columns |= {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
        np.savez_compressed(folder / "trace.npz", **columns)
        self.ledger.save(folder / "ledger.npz")
        rows: dict[str, Any] = {} if self.start is None else {"start": np.asarray(self.start.rows, np.float64)}
        np.savez_compressed(folder / "estimates.npz", estimates=self.estimates, **rows)
        if self.learned is not None:
            (folder / MODEL).write_text(to_json(self.model.describe()), encoding="utf-8")
        scores = {"steps": self.metrics.steps, "rows": self.metrics.rows, "references": self.references}
        (folder / "metrics.json").write_text(to_json(scores), encoding="utf-8")
        (folder / "experiment.toml").write_text(self.experiment, encoding="utf-8")
        if self.before is not None:
            self.before._write(folder / BEFORE)
        about = plain(self.manifest())
        files = FILES if self.learned is None else (*FILES, MODEL)
        sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in files}
        sums["manifest"] = _digest(about)
        (folder / "manifest.json").write_text(to_json({**about, "sha256": sums}), encoding="utf-8")
        for name in (*files, "manifest.json"):
            with open(folder / name, "rb") as written:
                os.fsync(written.fileno())

    def manifest(self) -> dict[str, Any]:
        """Everything needed to understand and repeat the run, as plain data."""
        graph = {"name": self.graph.name, "peers": self.n}
        if isinstance(self.graph, Graph):
            graph["fingerprint"] = self.graph.fingerprint()
        counts = {name: getattr(self.trace, name) for name in COUNTS}
        return {
            "format": FORMAT, "version": VERSION, "algorithm": self.algorithm.describe(), "graph": graph,
            "steps": self.steps, "seed": self.seed, "engine": self.engine,
            "privacy": None if self.privacy is None else self.privacy.describe(), "task": self.task,
            "constants": None if self.constants is None else asdict(self.constants), "phase": self.phase,
            "declared": [asdict(one) for one in self.declared],
            "start": None if self.start is None else {"source": self.start.source, "digest": self.start.digest()},
            "carried": self.carried, "before": None if self.before is None else BEFORE, "rehearsal": self.rehearsal,
            "unwatched": self.unwatched, "local": self.local, "planned": not self.noise,
            "noise": self.noise_words(), "interrupted": self.interrupted, "identity": self.identity,
            "verdict": None if (found := self.verdict()) is None else found.describe(),
            "public": _plain(self.algorithm.prepare(self.graph, self.steps)), **counts,
        }  # fmt: skip


def noise_source(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, privacy: Mechanism | None, steps: int, seed: int,
    before: Run | None, carried: str, task: Task | None, start: PublicModel | None = None,
) -> NoiseSource:  # fmt: skip
    """The draws of a run that goes on from `before`; without its task, all that can be said of them."""
    phase = 0 if before is None else before.phase + 1
    public = public_digest(algorithm, graph, privacy, steps, seed, phase, carried, _past(before, start))
    told = told_of(algorithm, graph, steps, seed, phase)
    if task is None:
        return NoiseSource(told, public)
    rows = None if before is None else {"state": before.state, "model": before.estimates, "nothing": None}[carried]
    if carried == "state" and rows is None:
        raise ConfigError("this run went on from states that no folder keeps, so its noise cannot be drawn again")
    return NoiseSource(told, public, hidden_digest(public, seed, task, rows))


def _past(before: Run | None, start: PublicModel | None) -> str:
    """What a run began with: the run before it, a public model, or nothing."""
    return ("" if before is None else before.public_digest()) + ("" if start is None else f" start {start.digest()}")


def _same(one: Any, other: Any) -> bool:
    """One thing, or equal as words and numbers are; arrays and what holds them are never looked into."""
    return one is other or (isinstance(one, int | str | float) and type(one) is type(other) and bool(one == other))


def _plain(public: Any) -> dict[str, Any]:
    """The public facts an algorithm prepared, as plain data."""
    facts = public._asdict() if hasattr(public, "_asdict") else {}
    return {name: _plain(value) if hasattr(value, "_asdict") else np.asarray(value).tolist()
            for name, value in facts.items()}  # fmt: skip


def check_folder(target: Path) -> None:
    """Refuse a place where no run folder could be written, or where something else lies."""
    if target.exists() and not (target / "manifest.json").is_file():
        raise ConfigError(f"{target} exists and is not a run folder, so it is left alone; choose another name")
    there = next(parent for parent in target.absolute().parents if parent.exists())
    if not there.is_dir():
        raise ConfigError(f"cannot write the run folder {target}: {there} is not a folder")
    if not os.access(there, os.W_OK):
        raise ConfigError(f"cannot write the run folder {target}: {there} may not be written")


def _swap(draft: Path, target: Path) -> None:
    """Put draft/new in place of the target; the old run is there until the new one is."""
    if not target.exists():
        os.replace(draft / "new", target)
        return
    os.replace(target, draft / "old")
    try:
        os.replace(draft / "new", target)
    except OSError:
        (draft / "old").rename(target)
        raise


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


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
        raise ConfigError(f"{folder} is not a run of bruit: its manifest does not say format {FORMAT!r}")
    if manifest.get("version") != VERSION:
        raise ConfigError(f"{folder} has format version {manifest.get('version')}; this bruit reads version {VERSION}")
    sums = manifest.pop("sha256", None)
    if not isinstance(sums, dict) or sums.get("manifest") != _digest(manifest):
        raise ConfigError(f"the run folder {folder} is broken: manifest.json is not the file that was written")
    for name in (*FILES, *((MODEL,) if MODEL in sums else ())):  # older folders have no model
        if not (folder / name).is_file():
            raise ConfigError(f"the run folder {folder} is broken: {name} is missing")
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != sums.get(name):
            raise ConfigError(f"the run folder {folder} is broken: {name} is not the file that was written")
    try:
        return _read(folder, manifest)
    except BruitError:
        raise
    except (KeyError, IndexError, AttributeError, ValueError, TypeError, OSError, BadZipFile, ZlibError) as error:
        raise ConfigError(f"the run folder {folder} is broken: {error!r}") from None


def _read(folder: Path, manifest: dict[str, Any]) -> Run:
    with np.load(folder / "trace.npz", allow_pickle=False) as stored:
        columns = {name: stored[name] for name in stored.files}
    graph = _graph_of(manifest["graph"], columns)
    trace = trace_from(columns, graph.n, manifest["steps"], {name: manifest.get(name, 0) for name in COUNTS})
    scores = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    rows = [{name: float(value) for name, value in row.items()} for row in scores["rows"]]
    references = {name: float(value) for name, value in scores["references"].items()}
    with np.load(folder / "estimates.npz", allow_pickle=False) as stored:
        estimates = stored["estimates"]
        begun = stored["start"] if "start" in stored.files else None
    privacy = None if manifest["privacy"] is None else mechanism_from(manifest["privacy"])
    constants = None if manifest["constants"] is None else _constants(manifest["constants"])
    ledger = Ledger.load(folder / "ledger.npz")
    if ledger.peers != graph.n or len(estimates) != graph.n:
        raise ConfigError(f"the run folder {folder} is broken: its parts speak of different numbers of peers")
    found = Run(
        algorithm_from(manifest["algorithm"]), graph, manifest["steps"], manifest["seed"], manifest["engine"], privacy,
        manifest["task"], constants, trace, ledger, Metrics(scores["steps"], rows), estimates, references,
        (folder / "experiment.toml").read_text(encoding="utf-8"), manifest["phase"],
        before=None if manifest["before"] is None else load(folder / BEFORE), carried=manifest["carried"],
        rehearsal=bool(manifest.get("rehearsal", False)), local=bool(manifest.get("local", False)),
        unwatched=str(manifest.get("unwatched", "its folder does not say whether anybody watched")),
        declared=tuple(Hypothesis(**one) for one in manifest.get("declared", ())),
        interrupted=None if manifest.get("interrupted") is None else _pair(manifest["interrupted"]),
        learned=_learned(folder), identity=str(manifest.get("identity", "")),
        start=None if begun is None else PublicModel(begun, str(manifest["start"]["source"])),
    )  # fmt: skip
    if manifest.get("planned"):
        return found
    source = noise_source(found.algorithm, graph, privacy, found.steps, found.seed, found.before, found.carried, None,
                          found.start)  # fmt: skip
    found.noise = frozenset({source}) | (frozenset() if found.before is None else found.before.noise)
    return found


def load_model(path: str | Path, peer: int | None = None) -> Model:
    """A model from its file, or of a peer of a run folder (the one that is shown first, if none is named)."""
    place = Path(path)
    if (place / "manifest.json").is_file():
        return load(place).model_of(peer)
    if peer is not None:
        raise ConfigError(f"{place} holds one model; peers are chosen in run folders: leave the peer out")
    return read_model(place / MODEL if place.is_dir() else place)


def _pair(stored: Any) -> tuple[int, int]:
    done, total = stored
    return int(done), int(total)


def _learned(folder: Path) -> Learned | None:
    """What the models are, from the one that is written out."""
    if not (folder / MODEL).is_file():
        return None
    first = read_model(folder / MODEL)
    score = None if first.score is None else Score(first.score, public=True)
    return Learned(first.kind, first.metric, first.recipe, first.peer, score)


def _constants(stored: dict[str, Any]) -> Constants:
    """Numbers again: an infinite one is a word in JSON."""
    numbers = {name: float(stored[name]) for name in ("lipschitz", "smoothness", "strong_convexity")}
    return Constants(**numbers, source=stored["source"])


def _graph_of(about: dict[str, Any], columns: dict[str, Any]) -> Graph | GraphSequence:
    from bruit.graphs import from_matrix
    from bruit.graphs import graph as named

    if "data" not in columns:
        return named(about["name"])
    try:
        found = named(about["name"])
        if isinstance(found, Graph) and found.fingerprint() == about["fingerprint"]:
            return found
    except ConfigError:
        pass  # a graph of the user's own: its weights are in the folder
    parts = (columns["data"], columns["indices"], columns["indptr"])
    return from_matrix(csr_array(parts, shape=(about["peers"], about["peers"])), name=about["name"])
