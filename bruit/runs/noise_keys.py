"""Noise is addressed by what it hides: from a run's ingredients to the key of the dice behind its
door.

    public = digest(seed, algorithm, graph, mechanism, level, steps, phase, what was carried, the run before)
    hidden = digest(public, records, carried rows), keyed by the seed
    noise  = draws of Replay(seed, hides=hidden);      schedules, public draws: Replay(seed)

Only the identical run repeats its noise; other data, another algorithm or one more step are other
draws. A rehearsal between processes, where nobody knows all records, hides `public` alone: its
noise is that of any records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.messages import Slots
from bruit.digests import digest
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs.sequence import AfterCircles, ListedGraphs
from bruit.mechanisms import Mechanism
from bruit.privacy.noise_source import NoiseSource
from bruit.randomness import Replay
from bruit.tasks.data.public_model import PublicModel
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.runs.result import Run

VERSION = "noise 1"
REPLAYABLE = (
    "simulated: whoever knows the seed and the records can draw it again; it protects nobody"
)


REHEARSED = "rehearsed: whoever knows the seed can draw it again; it protects nobody"


def public_digest(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    mechanism: Mechanism | None,
    steps: int,
    seed: int,
    phase: int = 0,
    carried: str = "nothing",
    before: str = "",
) -> str:
    """A name for all of a run but its records; `before` is that of the run it goes on from."""
    privacy = (
        None if mechanism is None else [type(mechanism), mechanism.level, mechanism.describe()]
    )
    learned = [type(algorithm), algorithm.describe()]
    return digest(
        b"", VERSION, int(seed), learned, _graph(graph), privacy, int(steps), phase, carried, before
    ).hex()


def _graph(graph: Graph | GraphSequence) -> list[Any]:
    if isinstance(graph, Graph):
        return [graph.fingerprint()]
    first = graph.graphs if isinstance(graph, ListedGraphs) else (graph.at(0),)
    if isinstance(graph, AfterCircles):
        first = (graph.circles, graph.graph)
    return [graph.name, graph.n, *(one.fingerprint() for one in first)]


def run_in_words(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence, steps: int, seed: int, phase: int
) -> str:
    """The run in a few words."""
    when = f", phase {phase}" if phase else ""
    return (
        f"{algorithm.name()} on {graph.name}, {steps} {algorithm.schedule.unit}, seed {seed}{when}"
    )


def hidden_digest(public: str, seed: int, task: Task, carried: Any = None) -> bytes:
    """A name for all that the noise of a run hides; `carried` are the models or states it goes on
    from."""
    return digest(key_of(seed), public, task.digest(key_of(seed)), _rows(carried))


def key_of(seed: int) -> bytes:
    """The key of the digests of a seed's runs."""
    return digest(b"", VERSION, int(seed))


def _rows(state: Any) -> Any:
    """A state as plain rows: the types of its records do not count."""
    if isinstance(state, Slots):
        return [state.start, state.peers, state.rows]
    return [_rows(part) for part in state] if isinstance(state, tuple) else state


def rehearsal_dice(public: str, seed: int) -> Replay:
    """The dice of a rehearsal: peers that know only their own records agree on them, and they
    protect nothing."""
    return Replay(seed, b"rehearsal " + public.encode())


def noise_of(source: NoiseSource, seed: int) -> Replay:
    """The dice behind the door of a run; without its records, those of a rehearsal."""
    return (
        rehearsal_dice(source.public, seed)
        if source.hidden is None
        else Replay(seed, source.hidden)
    )


def noise_source(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    privacy: Mechanism | None,
    steps: int,
    seed: int,
    before: Run | None,
    carried: str,
    task: Task | None,
    start: PublicModel | None = None,
) -> NoiseSource:
    """The draws of a run that goes on from `before`; without its task, all that can be said of
    them."""
    phase = 0 if before is None else before.phase + 1
    public = public_digest(
        algorithm, graph, privacy, steps, seed, phase, carried, began_with(before, start)
    )
    name = run_in_words(algorithm, graph, steps, seed, phase)
    if task is None:
        return NoiseSource(name, public)
    rows = (
        None
        if before is None
        else {"state": before.state, "model": before.estimates, "nothing": None}[carried]
    )
    if carried == "state" and rows is None:
        raise ConfigError(
            "this run went on from states that no folder keeps, so its noise cannot be drawn again"
        )
    return NoiseSource(name, public, hidden_digest(public, seed, task, rows))


def began_with(before: Run | None, start: PublicModel | None) -> str:
    """What a run began with: the run before it, a public model, or nothing."""
    return ("" if before is None else before.public_digest()) + (
        "" if start is None else f" start {start.digest()}"
    )
