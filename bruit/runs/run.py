"""Experiment: a sentence made of graph, task, algorithm, mechanism, steps and seed; `run` makes it
happen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.answerable import check_run
from bruit.algorithms.doorway import believed, same, untwinned
from bruit.algorithms.schedules.walk.schedule import Walk
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array
from bruit.errors import AlgorithmError, ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.mechanisms import Mechanism
from bruit.on.place import Workplace
from bruit.privacy.noise_source import NoiseSource
from bruit.randomness import Dice, Replay
from bruit.runs.beginning import Beginning, Carry, beginning
from bruit.runs.crashes.crash import kept_for_later
from bruit.runs.engines.blocks import in_blocks
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Engine, Job, Outcome, Progress
from bruit.runs.model import ModelFacts
from bruit.runs.noise_keys import noise_of, noise_source
from bruit.runs.result import Run
from bruit.tasks import Mean, Task
from bruit.tasks.data.public_model import PublicModel
from bruit.trace import Trace


def run(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence | str,
    task: Task,
    *,
    privacy: Mechanism | None = None,
    steps: int,
    seed: int = 0,
    engine: Engine | None = None,
    watch: Iterable[int] = (),
    evaluate_every: int | None = None,
    progress: Progress | None = None,
    given: Trace | None = None,
    after: Run | None = None,
    carry: Carry | None = None,
    start: PublicModel | None = None,
    rehearsal: bool = False,
    on: Workplace | str | None = None,
) -> Run:
    """Run an algorithm among the peers of a graph, each holding its part of the task.

    `progress` is called with (done, total, scores) between steps, and may raise `bruit.Stop` to end
    the run there, marked as interrupted; `watch` keeps the payloads these peers receive;
    `evaluate_every` = 0 evaluates nothing (about 20 times by default); `given` replays a trace: who
    met whom, the token's way, who woke and what it read, or the links that were down, whichever the
    schedule has; any other fact in it is refused (`engines.given`). `start` is a public model to
    start from instead of zeros, with the words that say where it comes from; algorithms without
    such a model refuse it. `after` goes on in another run's ledger, and carries on the "state" of
    the same algorithm (its default), the "model" of each peer (the default for another algorithm),
    or "nothing".

    The seed chooses schedules and public draws; the noise also follows from the records and all
    else the run depends on, so that only the identical run repeats it. `rehearsal` leaves the
    records out: then it is the noise of real peers under `bruit peer run --rehearse SEED`, who do
    not know each other's records; other records share it.

    `on` divides the peers among processes or the actors of a cluster (`Blocks`), with the same bits
    as `Bulk(fused=False)`: a run by rounds of averaging, Chebyshev gossip or gossip SGD.
    """
    graph = named_graph(graph)
    watched = frozenset(int(v) for v in watch)
    _check_sizes(graph, task, steps, watched)
    check_run(algorithm, task, privacy)
    engine = Bulk() if engine is None else engine
    engine = engine if on is None else in_blocks(engine, on)
    dice = Replay(seed)
    begun = beginning(algorithm, graph, task, privacy, after, carry, start)
    source = noise_source(
        algorithm=algorithm,
        graph=graph,
        privacy=privacy,
        steps=steps,
        seed=seed,
        before=after,
        carried=begun.carried,
        task=None if rehearsal else task,
        start=start,
    )
    door = _door(task, privacy, begun, noise_of(source, seed), dice)
    job = Job(
        algorithm=algorithm,
        graph=graph,
        door=door,
        dice=dice,
        steps=steps,
        ledger=begun.ledger,
        watch=watched,
        evaluate=task.evaluate,
        evaluate_every=max(1, steps // 20) if evaluate_every is None else evaluate_every,
        progress=progress,
        given=given,
        states=begun.states(),
        holder=begun.holder(),
    )
    try:
        outcome = engine.execute(job)
        state, twin = untwinned(outcome.state)
        estimates = believed(algorithm, state)
    except AlgorithmError as error:
        raise kept_for_later(error, job, seed, source.public, engine) from error.__cause__
    ended = _Ended(outcome, state, twin, estimates)
    return _result(job, door, begun, ended, engine, source, seed, rehearsal)


class _Ended(NamedTuple):
    """What the engine gave back: last states, those of the twin run that watches whether data leaves
    beside the door, if there is one, and what peers believe."""

    outcome: Outcome
    state: Any
    twin: Any
    estimates: Array


def _door(
    task: Task, privacy: Mechanism | None, begun: Beginning, noise: Dice, public: Dice
) -> TaskDoor:
    """The one door to the data, with a ledger that goes on where an earlier run ended."""
    return TaskDoor(
        task=task,
        mechanism=privacy,
        dice=noise,
        ledger=begun.ledger,
        run=begun.phase,
        models=begun.models,
        public=public,
        resumed=begun.resumed,
        before=begun.elapsed,
        origin=begun.origin,
    )


def _result(
    job: Job,
    door: TaskDoor,
    begun: Beginning,
    ended: _Ended,
    engine: Engine,
    source: NoiseSource,
    seed: int,
    rehearsal: bool,
) -> Run:
    """What came of a job, as a run."""
    outcome, state, twin, estimates = ended
    algorithm, task, after = job.algorithm, door.task, begun.after
    return Run(
        algorithm=algorithm,
        graph=job.graph,
        steps=job.steps,
        seed=seed,
        engine={**engine.describe(), **outcome.ran},
        privacy=door.mechanism,
        task=task.describe(),
        constants=task.constants(),
        trace=outcome.trace,
        ledger=begun.ledger,
        metrics=outcome.metrics,
        estimates=estimates,
        state=state,
        phase=begun.phase,
        before=after,
        carried=begun.carried,
        noise=frozenset({source}) | (frozenset() if after is None else after.noise),
        rehearsal=rehearsal,
        unwatched=outcome.unwatched or door.watch.blind,
        local=twin is not None and not same(estimates, algorithm.estimate(twin)),
        twin=twin,
        start=begun.start,
        prepared=job.public,
        declared=(*door.declared, *begun.declared()),
        interrupted=outcome.stopped,
        learned=_learned(task, algorithm, estimates, outcome),
        own_models=task.at_home(np.arange(job.graph.n), estimates) if task.local else None,
    )


def _check_sizes(
    graph: Graph | GraphSequence, task: Task, steps: int, watched: frozenset[int]
) -> None:
    """Refuses numbers of peers and steps that do not fit together."""
    if task.peers != graph.n:
        raise ConfigError(
            f"the graph {graph.name} has {graph.n} peers but the task has {task.peers}; make them "
            f"equal"
        )
    if steps < 0:
        raise ConfigError(f"the number of steps must not be negative, found {steps}")
    for v in watched:
        if not 0 <= v < graph.n:
            raise ConfigError(f"cannot watch peer {v}: the peers are 0..{graph.n - 1}")


def _learned(
    task: Task, algorithm: Algorithm[Any], estimates: Array, outcome: Outcome
) -> ModelFacts:
    """What the models are; the first to be shown is that of peer 0, or of the token's last
    holder."""
    schedule = algorithm.schedule
    peer = (schedule.holder(outcome.trace.meetings) or 0) if schedule.entered else 0
    scored = bool(outcome.metrics.rows) and task.metric in outcome.metrics.names()
    return ModelFacts(
        task.kind,
        task.metric,
        task.recipe(),
        peer,
        task.judge(estimates, peer) if scored else None,
        task.learned_network(),
    )


def chain(before: Run, task: Task, *, steps: int, **options: Any) -> Run:
    """The next phase of a run: the same algorithm and graph go on from its states, in the same
    ledger.

    T1 steps and then T2 are the T1 + T2 steps of one run, with fresh noise. No gradient is left out
    between them, Chebyshev's recursion goes on, clocks ring on, and the token walks on from its
    last holder. Public draws are those of the one run (with its seed). The horizon is counted
    within each phase: the taper of `Renoised`, `burn_in`, `flush` and `decay` of `WalkSGD`, the
    noise of `RingSum` and `TokenHistogram` at the first hop. So is a sequence of graphs, which
    starts with its first graph; a warning says so where it matters. Where a phase ended in the
    middle of an exchange that belongs together, going on is refused. A run of rounds or hops that
    was interrupted in bulk goes on from what was done; other interrupted runs are refused, since
    their peers stand at different steps. Each phase is accounted for by itself; the earlier one is
    charged as seen wherever it did not end in public (`Accountant`).
    """
    given = {"privacy": before.privacy, "seed": before.seed, **options}
    return run(before.algorithm, before.graph, task, steps=steps, after=before, **given)


def several_tokens(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence | str,
    task: Task,
    *,
    tokens: int,
    steps: int,
    **options: Any,
) -> tuple[Run, ...]:
    """Several tokens that walk in parallel, `steps` hops each, from peers evenly apart, or drawn;
    one run per token.

    Each run goes on in the ledger of the one before, so the last one accounts for all: its epsilon
    is that of the views of all tokens together. Why this is proven: tokens never read each other,
    every token has noise of its own, and the walks do not depend on data. Reveal all walks. Then
    what an observer sees of different tokens is independent given the data, however their visits
    interleave. So running them one after the other has the same joint law. When one person's data
    changes the Gaussian energies add: X_uv = sum over tokens of X_uv(token) (walk:RW-6).
    A cap on contributions is per token. `last_tokens` gives what they learned.
    """
    graph = named_graph(graph)
    schedule = algorithm.schedule
    if not isinstance(schedule, Walk):
        kind = type(schedule).__name__.lower()
        raise ConfigError(
            f"tokens are for walks, but {algorithm.name()} follows {kind}; run it as it is"
        )
    if tokens < 1:
        raise ConfigError(f"at least one token walks, found tokens = {tokens}")
    runs: list[Run] = []
    for token in range(tokens):
        drawn = isinstance(schedule.first, str)  # every token draws its own
        first = (
            schedule.first if drawn else (int(schedule.first) + token * graph.n // tokens) % graph.n
        )
        walk = replace(schedule, first=first, token=token)
        one = replace(cast(Any, algorithm), schedule=walk)
        after = {"after": runs[-1], "carry": "nothing"} if runs else {}
        runs.append(run(one, graph, task, steps=steps, **{**options, **after}))
    return tuple(runs)


def last_tokens(runs: Iterable[Run]) -> Array:
    """Where each walk ended: the estimate of its last holder; their mean is what parallel tokens
    agree on.

    Telling it to everybody publishes every last token: account for it (`published`)  # (tokens, d).
    """
    return np.stack([one.estimates[one.trace.meetings.b[-1]] for one in runs])


def rehearse(
    algorithm: Algorithm[Any],
    graph: Graph | GraphSequence | str,
    privacy: Mechanism | None,
    steps: int,
    seed: int = 0,
    dim: int = 1,
    progress: Progress | None = None,
) -> Run:
    """The same protocol on blank data of `dim` numbers per peer: what the accountant needs before
    any data exists.

    The ledger and the meetings come from running the algorithm itself, so that accounting cannot
    drift from the code.
    """
    graph = named_graph(graph)
    blank = Mean(np.zeros((graph.n, dim)))
    planned = run(
        algorithm,
        graph,
        blank,
        privacy=None if privacy is None else privacy.on_blank(graph.n, dim),
        steps=steps,
        seed=seed,
        evaluate_every=0,
        progress=progress,
    )
    return replace(planned, noise=frozenset())  # a plan speaks of no draws in particular
