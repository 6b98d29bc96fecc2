"""An audit: many paired runs on neighboring data, the largest epsilon they prove, and what was
claimed.

The claim is refuted when a lower bound lies above it, at the delta asked for or at any other one: a
guarantee is a whole curve of (epsilon, delta), and one false point refutes it. A true claim is
refuted with probability at most 1 - confidence over the noise of the trials (the error is shared
among all bounds tried). An audit that does not refute proves nothing; bugs planted in it say what
it would have seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bruit.adversary.audits.bounds import (
    check_confidence,
)
from bruit.adversary.audits.defence import defence
from bruit.adversary.audits.evidence import (
    CONFIDENCE,
    Found,
    claimed_at,
    enough,
    evidence,
    half_of,
    planted_bug,
)
from bruit.adversary.audits.one_release import has_normal_scores
from bruit.adversary.audits.planted import PLANTED, Bug
from bruit.adversary.audits.power import Planted
from bruit.adversary.audits.scores import (
    FEATURES,
    ViewScore,
    likelihood_score,
    shape_of,
)
from bruit.adversary.audits.trials import Views, paired_views
from bruit.adversary.audits.verdict import CLIPLESS, HALF, Audit, verdict
from bruit.adversary.audits.worlds import World, worlds
from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.mechanisms import Mechanism
from bruit.privacy.guarantee import Guarantee
from bruit.privacy.ledger import Ledger
from bruit.privacy.profile import check_delta
from bruit.privacy.question import question
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.tasks.task import Task
from bruit.trace import Trace

WIDEST = 16  # numbers in the rows of synthetic worlds
WORK = (
    1 << 31
)  # numbers moved by the trials of one world, at most; a larger protocol gets fewer trials there


def audit(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence | str,
    mechanism: Mechanism | None,
    of: int,
    seen_by: int | Iterable[int] | None,
    steps: int,
    trials: int = 10_000,
    delta: float = 1e-6,
    confidence: float = CONFIDENCE,
    claimed: Guarantee | None = None,
    seed: int = 0,
    given: Trace | None = None,
    dim: int = 1,
    target: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    plant: Mapping[str, Bug] | None = None,
) -> Audit:
    """Try to refute what is claimed about peer `of` in the view of `seen_by` (a peer, a set,
    everybody else).

    `claimed` is by default the guarantee the library itself gives for this run; a guarantee of
    meetings or of a walk holds for those of the same seed, or of the trace `given`. `target` is the
    epsilon the defence aims at. `plant`: bugs whose detection is measured, by name; noise half as
    large by default.
    """
    graph = named_graph(graph)
    places = worlds(mechanism, graph.n, of, dim, _smoothness(algorithm, None))
    done = run(
        algorithm,
        graph,
        places[0].data,
        privacy=mechanism,
        steps=steps,
        seed=seed,
        evaluate_every=0,
        given=given,
    )
    return _try_to_refute(
        done=done,
        places=places,
        own=places[0].data,
        of=of,
        seen_by=seen_by,
        trials=trials,
        delta=delta,
        confidence=confidence,
        claimed=claimed,
        plant=HALVED if plant is None else plant,
        target=target,
        progress=progress,
    )


def audit_run(
    done: Run,
    task: Task,
    of: int,
    seen_by: int | Iterable[int] | None,
    trials: int = 10_000,
    delta: float = 1e-6,
    confidence: float = CONFIDENCE,
    claimed: Guarantee | None = None,
    plant: Mapping[str, Bug] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Try to refute what a run on this task claims: its graph, algorithm, noise, and whatever its
    engine made happen (faults, late messages, meetings) are repeated on neighboring data of its own
    shape, its records among them."""
    width = min(task.dim, WIDEST)
    places = worlds(done.privacy, done.n, of, width, _smoothness(done.algorithm, task), task)
    return _try_to_refute(
        done=done,
        places=places,
        own=task,
        of=of,
        seen_by=seen_by,
        trials=trials,
        delta=delta,
        confidence=confidence,
        claimed=claimed,
        plant=PLANTED if plant is None else plant,
        target=None,
        progress=progress,
    )


def _try_to_refute(
    done: Run,
    places: Sequence[World],
    own: Task,
    of: int,
    seen_by: int | Iterable[int] | None,
    trials: int,
    delta: float,
    confidence: float,
    claimed: Guarantee | None,
    plant: Mapping[str, Bug],
    target: float | None,
    progress: Callable[[int, int], None] | None,
) -> Audit:
    begin = time.perf_counter()
    check_delta(delta)
    check_confidence(confidence)
    observers = observing(done.n, of, seen_by)
    ours = done.guarantee(of, None if seen_by is None else set(observers), delta)
    trying = Trials(
        rehearsal=done,
        observers=observers,
        of=of,
        claim=ours if claimed is None else claimed,
        delta=delta,
        confidence=confidence,
        trials=trials,
    )
    return trying.try_to_refute(places, plant, begin, own, target, ours, progress)


HALVED: Mapping[str, Bug] = {HALF: PLANTED[HALF]}


class _TriedWorld(NamedTuple):
    """Neighboring data to try, its best score if that is known, and whether scores are normal
    there."""

    world: World
    score: ViewScore | None
    normal: bool

    @property
    def bounds(self) -> int:
        """How many bounds are tried here: two by counting, one by fitting, for every score."""
        return (1 + (self.score is not None)) * (2 + self.normal)


@dataclass(frozen=True, eq=False, kw_only=True)
class Trials:
    """The paired trials of one claim about one pair, on several worlds."""

    rehearsal: Run
    observers: tuple[int, ...]
    of: int
    claim: Guarantee
    delta: float
    confidence: float
    trials: int

    def try_to_refute(
        self,
        worlds: Sequence[World],
        plant: Mapping[str, Bug],
        begin: float,
        own: Task,
        target: float | None,
        ours: Guarantee,
        progress: Callable[[int, int], None] | None,
    ) -> Audit:
        """Run the trials of every world, plant the bugs, and say what came of it."""
        places = self._places(worlds)
        each = 1 - (1 - self.confidence) / sum(place.bounds for place in places)
        says = claimed_at(self.claim, self.delta)
        enough(self.trials, says, self.delta, each, any(place.normal for place in places))
        self._check_same_protocol(places[-1].world)
        count_done = _counter(progress, self.trials * (len(places) + len(plant)))

        def evidence_in(place: _TriedWorld, bug: Bug | None) -> Found:
            views = self._views(place.world, bug, count_done)
            known = [] if place.score is None else [place.score]
            return evidence(place.world.name, known, views, says, self.delta, each, place.normal)

        found = [evidence_in(place, None) for place in places]
        proof = [one for more, _ in found for one in more]
        planted, sentence = list[Planted](), ""
        if not any(one.refutes for one in proof):
            if 0 < says[self.delta] < math.inf:
                for name, bug in plant.items():
                    # A missing clip shows on canaries outside of it, less noise where the best
                    # score is known.
                    place = places[-1 if name == CLIPLESS else 0]
                    wrong = evidence_in(place, bug)[0]
                    count = self._count(place.world)
                    planted.append(planted_bug(name, place.world.name, wrong, count))
            aim = target if target is not None else half_of(says[self.delta])
            sentence = defence(self.rehearsal, own, self.of, self.observers, self.delta, aim, ours)
        return verdict(
            claim=self.claim,
            epsilon=says[self.delta],
            proof=proof,
            planted=planted,
            names=tuple(dict.fromkeys(name for _, used in found for name in used)),
            places=tuple(place.world.name for place in places),
            delta=self.delta,
            confidence=self.confidence,
            trials=self.trials,
            begin=begin,
            sentence=sentence,
        )

    def _places(self, worlds: Sequence[World]) -> list[_TriedWorld]:
        """The worlds that say something about this protocol, each with its best score if known."""
        done, mechanism = self.rehearsal, self.rehearsal.privacy
        shape = shape_of(done.algorithm, done.graph, done.steps, self.observers, done.trace)
        if shape.pairs:
            worlds = worlds[-1:]  # only the experiment's own task answers then
        noisy = mechanism is not None and has_normal_scores(mechanism)
        places = []
        for world in worlds:
            normal = noisy and shape.affine and (world.straight or not shape.reacts)
            places.append(_TriedWorld(world, self._likelihood(world) if normal else None, normal))
        return places

    def _likelihood(self, world: World) -> ViewScore | None:
        done = self.rehearsal
        return likelihood_score(
            done.algorithm,
            done.graph,
            done.steps,
            self.observers,
            self.of,
            world.direction,
            done.seed,
            done.trace,
        )

    def _count(self, world: World) -> int:
        """How many trials this world gets: all of them unless its rows are very wide."""
        return max(min(self.trials, WORK // (2 * self._numbers(world))), min(self.trials, 200))

    def _numbers(self, world: World) -> int:
        graph = self.rehearsal.graph
        first = graph if isinstance(graph, Graph) else graph.at(0)
        return max(1, self.rehearsal.steps * int(first.weights.nnz) * max(world.data.width, 1))

    def _views(self, world: World, bug: Bug | None, count_done: Callable[[int], None]) -> Views:
        done, count = self.rehearsal, self._count(world)
        heard = int(np.isin(done.trace.meetings.b, self.observers).sum()) or done.steps * len(
            self.observers
        )
        along = world.direction if heard * world.data.dim > FEATURES else None
        chunks = paired_views(
            algorithm=done.algorithm,
            graph=done.graph,
            mechanism=done.privacy,
            data=world.data,
            observers=self.observers,
            steps=done.steps,
            trials=count,
            seed=done.seed,
            given=done.trace,
            bug=bug,
            along=along,
        )
        return _concatenated(_count_chunks(chunks, count_done))

    def _check_same_protocol(self, world: World) -> None:
        """The trials repeat the protocol that the claim is about: its ledger, line by line."""
        done, ledger = self.rehearsal, Ledger(peers=self.rehearsal.n)
        door = TaskDoor(
            task=world.data, mechanism=done.privacy, dice=Replay(done.seed), ledger=ledger
        )
        Bulk().execute(
            Job(
                algorithm=done.algorithm,
                graph=done.graph,
                door=door,
                dice=Replay(done.seed),
                steps=done.steps,
                ledger=ledger,
                given=done.trace,
            )
        )
        if not np.array_equal(_reads_by_peer(ledger), _reads_by_peer(done.ledger)):
            raise ConfigError(
                f"{done.algorithm.name()} draws who takes part anew in every run, so that the claim"
                " of one run is not that of another; audit it with everybody taking part"
            )


def _reads_by_peer(ledger: Ledger) -> Array:
    """How often each peer read its data."""
    return np.asarray(ledger.counts()[:, ledger.is_data()].sum(axis=1))


def _smoothness(algorithm: Algorithm[Any], task: Task | None) -> float:
    """How strongly losses may react: as the task declares; without one, as much as a step
    allows."""
    if task is not None and 0 < task.constants().smoothness < math.inf:
        return task.constants().smoothness
    rate = getattr(algorithm, "rate", 1.0)
    return 1.0 / rate if isinstance(rate, float) and rate > 0 else 1.0


def _counter(progress: Callable[[int, int], None] | None, total: int) -> Callable[[int], None]:
    """Counts trials as they are done, and tells how many of all."""
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(min(done, total), total)

    return count


def _count_chunks(chunks: Iterable[Views], progress: Callable[[int], None]) -> Iterator[Views]:
    """The chunks as they come, counted aloud."""
    for part in chunks:
        progress(len(part.left))
        yield part


def _concatenated(chunks: Iterable[Views]) -> Views:
    parts = list(chunks)
    return Views(
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
    )


def observing(n: int, of: int, seen_by: int | Iterable[int] | None) -> tuple[int, ...]:
    """The observers as a sorted tuple: a peer, a set of peers, or everybody but `of`."""
    if seen_by is None:
        return tuple(v for v in range(n) if v != of)
    return question(n, of, seen_by).observers
