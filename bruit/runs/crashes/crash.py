"""Crash files: what a function of an algorithm was given when it raised, to be looked at and called
again.

A file holds one call of `start`, `resume`, `emit`, `absorb`, `adopt` or `estimate`: the algorithm
with its parameters, the state and inbox of the guilty peer, what the door answered, and the graph
that public facts are made of. It is one npz of plain arrays and a JSON text, never pickled. States
and answers are private, noise included, so the file is readable by its owner alone. A simulation,
all of whose data is on this machine already, writes it into the folder for temporary files; a real
peer into its own state folder (`bruit.peers.site.crash_file`).
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from bruit.algorithms.algorithm import Algorithm, algorithm_from
from bruit.algorithms.crash import FailedCall
from bruit.algorithms.door import Door
from bruit.algorithms.doorway import NUMBERS, Doorway
from bruit.algorithms.home import Home
from bruit.algorithms.messages import AllLinks, Edges, Inbox
from bruit.arrays import Array
from bruit.errors import AlgorithmError, BruitError, ConfigError, ConformanceError
from bruit.files import UNREADABLE, plain, write_whole
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.stored import describe_graph, graph_columns, graph_of
from bruit.how_many import how_many
from bruit.runs.crashes.array_trees import (
    leaves,
    packed,
    packed_edges,
    packed_inbox,
    unpacked,
    unpacked_edges,
    unpacked_inbox,
)
from bruit.runs.engines.engine import Engine, Job

FORMAT, VERSION = "bruit crash", 1
HOME = ("ids", "step", "clock", "last", "lanes")


@dataclass
class Notes:
    """A door that notes its answers, in order, whatever is asked."""

    door: Doorway
    answers: list[tuple[str, Array]]

    def __getattr__(self, name: str) -> Any:
        if name in NUMBERS:
            return getattr(self.door, name)

        def answer(*asked: Any) -> Any:
            given = getattr(self.door, name)(*asked)
            self.answers.append((name, np.array(given)))
            return given

        return answer


@dataclass(frozen=True)
class Script:
    """A door that gives the answers of a crash again, in order."""

    numbers: dict[str, float]
    left: list[tuple[str, Array]]

    def __getattr__(self, name: str) -> Any:
        if name in NUMBERS:
            return self.numbers[name]

        def answer(*_: Any) -> Any:
            known, given = self.left.pop(0) if self.left else ("nothing more", np.zeros(0))
            if known != name:
                raise ConformanceError(
                    f"it asks at the door for {name!r}, and when it failed it asked for {known!r}: "
                    "the algorithm has changed, and the answer is not in the file"
                )
            return float(given) if given.ndim == 0 else given.copy()

        return answer


@dataclass(frozen=True, kw_only=True)
class Crash:
    """A crash file, loaded: `about` says which run, function, peer and step, and what was raised."""

    about: dict[str, Any]
    state: Any
    inbox: Inbox | None
    edges: Edges | None
    token: Any
    home: dict[str, Any] | None
    answers: list[tuple[str, Array]]
    graph: Graph | GraphSequence

    def algorithm(self) -> Algorithm[Any]:
        """The algorithm by its name; one that is not part of bruit is to be given to `replay`."""
        try:
            return algorithm_from(self.about["algorithm"])
        except ConfigError as error:
            raise ConfigError(
                f"{error}; one of your own is given from Python: "
                "br.load_crash(FILE).replay(YourAlgorithm())"
            ) from None

    def replay(self, algorithm: Algorithm[Any] | None = None) -> Any:
        """Make the call again: raises what the algorithm raises, or returns what it now gives."""
        chosen = self.algorithm() if algorithm is None else algorithm
        public = chosen.prepare(self.graph, self.about["steps"])
        return FailedCall(
            algorithm=chosen,
            function=self.about["function"],
            state=self.state,
            inbox=self.inbox,
            home=self._home(public),
            edges=self.edges,
            token=self.token,
            public=public,
        ).make()

    def _home(self, public: Any) -> Home | None:
        if self.home is None:
            return None
        door = cast(Door, Script(self.about["door"], list(self.answers)))
        edges = cast(Edges, self.edges)
        ids, step, clock, last, lanes = (self.home[name] for name in HOME)
        return Home(door, ids, step, clock, last, edges, public, lanes)

    def words(self) -> str:
        """Which call it was, in a line."""
        about = self.about
        seed = "" if about["seed"] is None else f"seed {about['seed']}, "
        return (
            f"{about['algorithm']['name']}: {about['function']} at {about['where']}; "
            f"{about['graph']['name']}, {how_many(about['steps'], 'step')}, {seed}engine {about['engine']}"
        )

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Name and content of all that the function was given, the door's answers included."""
        inbox = self.inbox
        heard = {} if inbox is None else {"rows": inbox.rows, "own": inbox.own, "late": inbox.late}
        yield from leaves("state", self.state)
        for name, rows in heard.items():
            yield from leaves(f"inbox.{name}", rows)
        if inbox is not None and not isinstance(inbox.links, AllLinks):
            yield from leaves("inbox.senders", inbox.senders)
            yield from leaves("inbox.weights", inbox.links.weights)
        yield from leaves("token", self.token)
        for number, (name, answer) in enumerate(self.answers):
            yield f"answer {number} of the door: {name}", answer


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Where a call was made: in which run, on which graph, by which engine; all of it public. A run
    whose noise follows from no seed has none."""

    graph: Graph | GraphSequence
    steps: int
    seed: int | None
    digest: str
    engine: str
    where: str
    peers: list[int] | None


def kept_for_later(
    error: AlgorithmError, job: Job, seed: int, digest: str, engine: Engine
) -> AlgorithmError:
    """The error with the file in which its call was kept, or why it could not be."""
    if error.call is None:
        return error
    call = cast(FailedCall, error.call)
    around = Surroundings(
        graph=job.graph,
        steps=job.steps,
        seed=seed,
        digest=digest,
        engine=engine.describe()["name"],
        where=call.where(),
        peers=call.ids.tolist() if len(call.ids) <= 1 else None,
    )
    try:
        path = save_call(error, around, Path(tempfile.mkdtemp(prefix="bruit-crash-")))
    except (BruitError, OSError) as problem:
        return AlgorithmError(f"{error}; what it was given could not be saved: {problem}")
    shown = f"bruit replay --crash {path}"
    return AlgorithmError(f"{error}; look at what it was given (private): {shown}", saved=path)


def save_call(
    error: AlgorithmError, around: Surroundings, folder: Path, answers: bool = True
) -> Path:
    """Write what an algorithm was given into a private file of this folder. Without `answers`
    nothing is asked at the door again, and nothing that it answered is written."""
    call, cause = cast(FailedCall, error.call), error.__cause__
    arrays: dict[str, Any] = graph_columns(around.graph)
    about = {
        "format": FORMAT,
        "version": VERSION,
        "digest": around.digest,
        "algorithm": call.algorithm.describe(),
        "function": call.function,
        "where": around.where,
        "peers": around.peers,
        "error": repr(cause),
        "kind": type(cause).__name__,
        "sentence": str(error),
        "graph": describe_graph(around.graph),
        "steps": around.steps,
        "seed": around.seed,
        "engine": around.engine,
        "door": _numbers(call),
        "kept": _as_arrays(call, _answers(call) if answers else [], arrays),
    }
    text = np.frombuffer(json.dumps(plain(about)).encode(), np.uint8)
    path = folder / f"{call.algorithm.name()}-{call.function}.crash.npz"
    write_whole(path, lambda file: np.savez(file, about=text, **arrays), private=True)
    return path


def _numbers(call: FailedCall) -> dict[str, Any]:
    """The facts about the door that the call could see."""
    home = call.home
    return {} if home is None else {name: getattr(home.doorway, name) for name in sorted(NUMBERS)}


def _answers(call: FailedCall) -> list[tuple[str, Array]]:
    """What the door answered, found by making the call again."""
    noted: list[tuple[str, Array]] = []
    if call.home is not None:
        door = cast(Door, Notes(call.home.doorway, noted))
        with contextlib.suppress(Exception):  # it fails again: only the answers are wanted
            call.make(call.home.again(Doorway(door)))
    return noted


def _as_arrays(
    call: FailedCall, answers: list[tuple[str, Array]], arrays: dict[str, Any]
) -> dict[str, Any]:
    """How state, inbox, home and answers are made of arrays, which are put beside it."""
    edges = call.edges if call.home is None else call.home.edges
    return {
        "state": packed("state", call.state, arrays),
        "token": packed("token", call.token, arrays),
        "inbox": None if call.inbox is None else packed_inbox(call.inbox, arrays),
        "edges": None if edges is None else packed_edges(edges, arrays),
        "home": call.home
        and {name: packed(f"home.{name}", getattr(call.home, name), arrays) for name in HOME},
        "answers": [
            [name, packed(f"answer.{k}", given, arrays)] for k, (name, given) in enumerate(answers)
        ],
    }


def load_crash(path: str | Path) -> Crash:
    """A crash file; anything missing, changed or foreign is refused with a reason."""
    place = Path(path)
    if not place.is_file():
        raise ConfigError(f"there is no crash file {place}")
    try:
        with np.load(place, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = json.loads(arrays.pop("about").tobytes())
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']!r}")
        if about["version"] != VERSION:
            raise ConfigError(
                f"{place} has format version {about['version']}; this bruit reads version {VERSION}"
            )
        return _read(about, arrays)
    except BruitError:
        raise
    except UNREADABLE as error:
        raise ConfigError(f"{place} is not a crash file of bruit, or is broken: {error}") from None


def _read(about: dict[str, Any], arrays: dict[str, Array]) -> Crash:
    kept, graph = about.pop("kept"), graph_of(about["graph"], arrays)
    edges, inbox, home = kept["edges"], kept["inbox"], kept["home"]
    return Crash(
        about=about,
        state=unpacked(kept["state"], arrays),
        token=unpacked(kept["token"], arrays),
        inbox=None if inbox is None else unpacked_inbox(inbox, arrays, graph),
        edges=None if edges is None else unpacked_edges(edges, arrays, graph),
        home=home and {name: unpacked(home[name], arrays) for name in HOME},
        answers=[(name, unpacked(given, arrays)) for name, given in kept["answers"]],
        graph=graph,
    )
