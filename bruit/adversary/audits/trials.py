"""Paired trials: the same protocol on two neighboring data sets, thousands of times, as one batch
of copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from bruit.adversary.audits.planted import Bug, PlantedDoor
from bruit.adversary.audits.watched import WatchedDoor
from bruit.adversary.audits.worlds import Neighbors
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.door import Door
from bruit.arrays import Array, Words
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism
from bruit.on.place import CHUNKS, anywhere, hands, stream
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.randomness.dice import PAIR_BITS
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.tasks.task import Task
from bruit.trace import Received, Trace

__all__ = ["Neighbors", "Views", "copied_views", "paired_views"]

NUMBERS = 1 << 19  # lanes and links held at once by a chunk of copies


class Views(NamedTuple):
    """What the observers saw, one row per trial, under both data sets."""

    left: Array  # (trials, features)
    right: Array  # (trials, features)


def paired_views(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    mechanism: Mechanism | None,
    data: Task,
    observers: tuple[int, ...],
    steps: int,
    trials: int,
    seed: int = 0,
    given: Trace | None = None,
    bug: Bug | None = None,
    along: Array | None = None,
) -> Iterator[Views]:
    """`trials` independent runs on each data set, in chunks, where that was chosen (`bruit.on`);
    even copies hold the left one, odd ones the right.

    Rows of features are flattened (rows, d), or their components `along` a direction. `bug`:
    planted in each release.
    """
    n = graph.n
    if 2 * trials * n >= 1 << PAIR_BITS:
        most = (1 << PAIR_BITS) // (2 * n) - 1
        raise ConfigError(
            f"{trials} paired runs of {n} peers need more lanes than noise has addresses; at most "
            f"{most}"
        )
    first = graph if isinstance(graph, Graph) else graph.at(0)
    size = max(1, NUMBERS // (int(first.weights.nnz) * data.dim))
    if anywhere():
        size = min(size, -(-trials // (CHUNKS * hands())))
    chunk = _TrialChunk(
        algorithm=algorithm,
        graph=graph,
        mechanism=mechanism,
        data=data,
        observers=observers,
        steps=steps,
        trials=trials,
        size=size,
        seed=seed,
        given=given,
        bug=bug,
        along=along,
    )
    yield from stream(chunk, range(0, trials, size))


@dataclass(frozen=True, kw_only=True)
class _TrialChunk:
    """The trials from one on: what they see follows from their numbers, whoever runs them."""

    algorithm: Algorithm[Any]
    graph: Graph | GraphSequence
    mechanism: Mechanism | None
    data: Task
    observers: tuple[int, ...]
    steps: int
    trials: int
    size: int
    seed: int
    given: Trace | None
    bug: Bug | None
    along: Array | None

    def __call__(self, start: int) -> Views:
        copies = 2 * min(self.size, self.trials - start)
        door = PlantedDoor(
            task=self.data,
            mechanism=self.mechanism,
            dice=Replay(self.seed),
            ledger=Ledger(peers=2 * self.trials * self.graph.n),
            bug=self.bug,
        )
        seen = copied_views(
            algorithm=self.algorithm,
            graph=self.graph,
            door=door,
            steps=self.steps,
            observers=self.observers,
            copies=copies,
            first=2 * start,
            given=self.given,
            seed=self.seed,
        )
        flat = seen.reshape(copies, -1) if self.along is None else seen @ self.along
        return Views(flat[0::2], flat[1::2])


def copied_views(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence,
    door: Door,
    steps: int,
    observers: tuple[int, ...],
    copies: int,
    first: int = 0,
    given: Trace | None = None,
    seed: int = 0,
) -> Array:
    """What the observers saw in each copy: their own releases and noises, then what outsiders told
    them # (copies, rows, d)."""
    watched = WatchedDoor(door, graph.n, copies, observers)
    job = Job(
        algorithm=algorithm,
        graph=graph,
        door=cast(Door, watched),
        dice=Replay(seed),
        steps=steps,
        ledger=Ledger(peers=graph.n),
        watch=frozenset(observers),
        given=given,
    )
    outcome = Bulk(copies=copies, first=first).execute(job)
    others = [one for one in outcome.trace.received if one.sender not in observers]
    heard = (
        unmasked(others, watched.masks, graph.n - len(observers))
        if watched.masks
        else [flat_rows(message.row) for message in others]
    )
    rows = [*watched.own, *heard]
    width = max((row.shape[1] for row in rows), default=door.dim)
    padded = [np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows]
    return np.stack(padded, axis=1) if rows else np.zeros((copies, 0, width))


def unmasked(heard: Sequence[Received], masks: Sequence[Words], speakers: int) -> list[Array]:
    """Masked words as signed numbers: the sum of all that others said in an attempt, the observers'
    own masks added, which is the sum of their answers; every word by itself; and what it differs by
    from the one before, which is nothing but noise unless a mask was used twice
    # each (copies, d)."""
    found, before = list[Array](), dict[int, Words]()
    for number, known in enumerate(masks):
        said = {one.sender: np.asarray(one.row, np.uint64) for one in heard if one.clock == number}
        if len(said) > 1 or len(said) == speakers:  # by a butterfly, sums of several
            found.append(_signed(np.add.reduce([*said.values(), known], axis=0, dtype=np.uint64)))
        for sender, words in said.items():
            found += [_signed(words), _signed(words - before.get(sender, np.zeros_like(words)))]
        before = said
    return found


def _signed(words: Words) -> Array:
    return words.view(np.int64).astype(np.float64)


def flat_rows(rows: Any) -> Array:
    """A payload as one array: records are laid side by side  # (copies, width)."""
    if isinstance(rows, np.ndarray):
        return np.asarray(rows, np.float64).reshape(len(rows), -1)
    return np.concatenate([flat_rows(part) for part in rows], axis=1)
