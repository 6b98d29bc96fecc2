"""Experiment: a sentence made of graph, task, algorithm, mechanism, steps and seed; `run` makes it happen."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np

from bruit.algorithms.algorithm import Algorithm
from bruit.algorithms.doorway import same, untwinned
from bruit.algorithms.home import TaskDoor
from bruit.algorithms.schedules import Rounds, Walk
from bruit.arrays import Array, Ints
from bruit.engines.bulk import Bulk
from bruit.engines.engine import Engine, Job, Outcome, Progress
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, GraphSequence
from bruit.graphs import graph as named_graph
from bruit.graphs.sequence import Butterfly
from bruit.mechanisms import Gaussian, Mechanism
from bruit.model import Learned
from bruit.noise_keys import noise_of
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.result import Run, noise_source
from bruit.tasks import Mean, Task
from bruit.tasks.public_model import PublicModel
from bruit.trace import Trace

Carry = Literal["state", "model", "nothing"]


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
) -> Run:
    """Run an algorithm among the peers of a graph, each holding its part of the task.

    `progress` is called with (done, total, scores) between steps, and may raise `bruit.Stop` to end the run there,
    marked as interrupted; `watch` keeps the payloads these peers receive; `evaluate_every` = 0 evaluates nothing (about
    20 times by default); `given` replays a trace: who met whom, the token's way, who woke and what it read, or the
    links that were down, whichever the schedule has; any other fact in it is refused (`engines.given`). `start` is a
    public model to start from instead of zeros, with the words that say where it comes from; algorithms without such a
    model refuse it. `after` goes on in another run's ledger, and carries on the "state" of the same algorithm (its
    default), the "model" of each peer (the default for another algorithm), or "nothing".

    The seed chooses schedules and public draws; the noise also follows from the records and all else the run depends
    on, so that only the identical run repeats it. `rehearsal` leaves the records out: then it is the noise of real
    peers under `bruit peer run --rehearse SEED`, who do not know each other's records; other records share it.
    """
    graph = named_graph(graph)
    if task.peers != graph.n:
        raise ConfigError(f"the graph {graph.name} has {graph.n} peers but the task has {task.peers}; make them equal")
    if steps < 0:
        raise ConfigError(f"the number of steps must not be negative, found {steps}")
    watched = frozenset(int(v) for v in watch)
    for v in watched:
        if not 0 <= v < graph.n:
            raise ConfigError(f"cannot watch peer {v}: the peers are 0..{graph.n - 1}")
    engine = Bulk() if engine is None else engine
    dice = Replay(seed)
    ledger = Ledger(graph.n)
    phase = 0 if after is None else after.phase + 1
    carried, models = "nothing", None
    if after is not None:
        carried, models = _carried(after, algorithm, task, carry)
        if after.privacy is not None and privacy is not None and after.privacy.level != privacy.level:
            levels = f"{after.privacy.level} and {privacy.level}"
            raise PrivacyError(f"guarantees of different levels ({levels}) do not compose; use one level throughout")
        ledger.extend(after.ledger)
    if start is not None:
        models = _started(start, algorithm, graph, task, carried)
    every = max(1, steps // 20) if evaluate_every is None else evaluate_every
    source = noise_source(algorithm, graph, privacy, steps, seed, after, carried, None if rehearsal else task,
                          start)  # fmt: skip
    resumed = carried == "state"
    before, origin = _elapsed(after) if resumed else (0, phase)
    if resumed:
        _warn_of_restarts(graph, before)
    door = TaskDoor(task, privacy, noise_of(source, seed), ledger, phase, models=models, public=dice, resumed=resumed,
                    before=before, origin=origin)  # fmt: skip
    job = Job(
        algorithm, graph, door, dice, steps, ledger, watched, task.evaluate, every, progress, given,
        deepcopy(after.twinned()) if after is not None and resumed else None,  # engines write in place
        _holder(after) if resumed else None,
    )  # fmt: skip
    outcome = engine.execute(job)
    state, twin = untwinned(outcome.state)
    estimates = algorithm.estimate(state)
    local = twin is not None and not same(estimates, algorithm.estimate(twin))
    return Run(
        algorithm, graph, steps, seed, {**engine.describe(), **outcome.ran}, privacy, task.describe(),
        task.constants(), outcome.trace, ledger, outcome.metrics, estimates, state=state, phase=phase,
        before=after, carried=carried,
        noise=frozenset({source}) | (frozenset() if after is None else after.noise), rehearsal=rehearsal,
        unwatched=outcome.unwatched or door.watch.blind, local=local, twin=twin, start=start,
        declared=(*door.declared, *(() if start is None else (Hypothesis(start.hypothesis(), checked=False),))),
        interrupted=outcome.stopped, learned=_learned(task, algorithm, estimates, outcome),
    )  # fmt: skip


def _learned(task: Task, algorithm: Algorithm[Any], estimates: Array, outcome: Outcome) -> Learned:
    """What the models are; the first to be shown is that of peer 0, or of the token's last holder."""
    holders = outcome.trace.meetings.b if isinstance(algorithm.schedule, Walk) else np.zeros(0, np.int64)
    peer = int(holders[-1]) if len(holders) else 0
    scored = bool(outcome.metrics.rows) and task.metric in outcome.metrics.names()
    return Learned(task.kind, task.metric, task.recipe(), peer, task.judge(estimates, peer) if scored else None)


def _carried(after: Run, algorithm: Algorithm[Any], task: Task, carry: Carry | None) -> tuple[Carry, Array | None]:
    """What goes on from an earlier run, checked: the word and, for models, the rows."""
    same = type(after.algorithm) is type(algorithm)
    chosen: Carry = carry if carry is not None else ("state" if same else "model")
    if after.n != task.peers:
        raise ConfigError(f"the earlier run has {after.n} peers and the task {task.peers}; a ledger keeps its peers")
    if chosen == "state" and not same:
        names = f"{after.algorithm.name()} to {algorithm.name()}"
        raise ConfigError(f"the states of one algorithm mean nothing to another: cannot go on from {names}")
    if chosen == "state" and after.state is None:
        raise ConfigError("the earlier run came from a folder, which keeps no states; carry the 'model' instead")
    if chosen == "state":
        _check_between_steps(after)
    if chosen != "model":
        return chosen, None
    if after.local:
        raise PrivacyError("the models of the earlier run hold raw data that was to stay at home (home.keep), so they"
                           " are no beginning for messages; carry the 'state' or 'nothing'")  # fmt: skip
    if after.estimates.shape != (task.peers, task.dim):
        found = f"models of shape {after.estimates.shape}, and this task needs {(task.peers, task.dim)}"
        raise ConfigError(f"the earlier run left {found}; start from 'nothing', or use the same task")
    return chosen, np.array(after.estimates, np.float64)


def _started(start: PublicModel, algorithm: Algorithm[Any], graph: Graph | GraphSequence, task: Task,
             carried: str) -> Array:  # fmt: skip
    """The public models to start from, checked: by an algorithm that starts from models at all."""
    if not isinstance(start, PublicModel):
        raise ConfigError("say where the model to start from comes from: start=br.PublicModel(rows, source='...'); what"
                          " an earlier run learned from these peers is charged: after=that_run")  # fmt: skip
    if carried != "nothing":
        raise ConfigError(f"this run goes on from the {carried} of an earlier one, so it cannot start from a public"
                          " model as well; leave start out, or carry 'nothing'")  # fmt: skip
    models = start.of_peers(graph.n, task.dim)
    door = _Asked(task, None, Replay(0), Ledger(graph.n), models=models)
    Bulk().execute(Job(algorithm, graph, door, Replay(0), 0, door.ledger))
    if not door.asked:
        raise ConfigError(f"{algorithm.name()} starts from no model but from what it reads, so start= would change"
                          " nothing; leave it out")  # fmt: skip
    return models


@dataclass(frozen=True)
class _Asked(TaskDoor):
    """A door that notes whether anybody asked for the models to begin with."""

    asked: list[bool] = field(default_factory=list)

    def beginning(self, ids: Ints) -> Array:
        self.asked.append(True)
        return super().beginning(ids)


def _check_between_steps(after: Run) -> None:
    """Refuse the states of a run that was stopped where its peers did not all stand at one step: no schedule goes on
    from there."""
    together = after.engine["name"] == "bulk" and isinstance(after.algorithm.schedule, Rounds | Walk)
    if after.interrupted is not None and not together:
        raise ConfigError(f"the earlier run was {after.stopped_words()}, and its peers stand at different steps; run"
                          " it to its end, or carry the 'model'")  # fmt: skip


def _elapsed(after: Run | None) -> tuple[int, int]:
    """How far the phases came whose states are carried on (rounds, hops, units of time or activations; of a phase that
    was interrupted, what was done), and the number of the first of them."""
    elapsed, origin = 0, 0
    while after is not None:
        activations = getattr(after.algorithm.schedule, "activations", None)
        whole = after.steps if activations is None else activations
        elapsed += whole if after.interrupted is None else after.interrupted[0]
        origin = after.phase
        after = after.before if after.carried == "state" else None
    return elapsed, origin


def _holder(after: Run | None) -> int | None:
    """Who holds the token of a walk that goes on: the last to have been visited in any of its phases."""
    while after is not None:
        if isinstance(after.algorithm.schedule, Walk) and len(after.trace.meetings.b):
            return int(after.trace.meetings.b[-1])
        after = after.before if after.carried == "state" else None
    return None


def _warn_of_restarts(graph: Graph | GraphSequence, before: int) -> None:
    """A sequence of graphs starts with its first graph in every phase."""
    if isinstance(graph, Graph):
        return
    period = max(1, len(graph.radices)) if isinstance(graph, Butterfly) else graph.period
    if period is None or before % period:
        turn = "draws them afresh" if period is None else f"repeats after {period} rounds"
        warnings.warn(f"every phase starts with the first graph of {graph.name}, which {turn}: after {before} rounds"
                      " this phase is no exact continuation of the earlier one", stacklevel=3)  # fmt: skip


def chain(before: Run, task: Task, *, steps: int, **options: Any) -> Run:
    """The next phase of a run: the same algorithm and graph go on from its states, in the same ledger.

    T1 steps and then T2 are the T1 + T2 steps of one run, with fresh noise: no gradient is left out between them,
    Chebyshev's recursion goes on, clocks ring on, the token walks on from its last holder, and public draws are those
    of the one run (with its seed). What is counted within each phase: the horizon (the taper of `Renoised`, `burn_in`,
    `flush` and `decay` of `WalkSGD`, the noise of `RingSum` and `TokenHistogram` at the first hop), and a sequence of
    graphs, which starts with its first graph (a warning says so where it matters). Where a phase ended in the middle
    of an exchange that belongs together, going on is refused. A run of rounds or hops that was interrupted in bulk goes
    on from what was done; other interrupted runs are refused, since their peers stand at different steps. Each phase is
    accounted for by itself; the earlier one is charged as seen wherever it did not end in public (`Accountant`).
    """
    given = {"privacy": before.privacy, "seed": before.seed, **options}
    return run(before.algorithm, before.graph, task, steps=steps, after=before, **given)


def several_tokens(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence | str, task: Task, *, tokens: int, steps: int,
    **options: Any,
) -> tuple[Run, ...]:  # fmt: skip
    """Several tokens that walk in parallel, `steps` hops each, from peers evenly apart, or drawn; one run per token.

    Each run goes on in the ledger of the one before, so the last one accounts for all: its epsilon is that of the views
    of all tokens together. Why this is proven: tokens never read each other, every token has noise of its own, and the
    walks do not depend on data. Reveal all walks; then what an observer sees of different tokens is independent given
    the data, however their visits interleave, so running them one after the other has the same joint law, and when one
    person's data changes the Gaussian energies add: X_uv = sum over tokens of X_uv(token) (walk section 9, item 2).
    A cap on contributions is per token. `last_tokens` gives what they learned.
    """
    graph = named_graph(graph)
    schedule = algorithm.schedule
    if not isinstance(schedule, Walk):
        kind = type(schedule).__name__.lower()
        raise ConfigError(f"tokens are for walks, but {algorithm.name()} follows {kind}; run it as it is")
    if tokens < 1:
        raise ConfigError(f"at least one token walks, found tokens = {tokens}")
    engine = options.get("engine")
    if engine is not None and engine.describe()["name"] == "network":
        raise ConfigError("real peers carry one token in a run; start one run per token (their losses add),"
                          " or simulate several with Bulk() or Events()")  # fmt: skip
    runs: list[Run] = []
    for token in range(tokens):
        drawn = isinstance(schedule.first, str)  # every token draws its own
        first = schedule.first if drawn else (int(schedule.first) + token * graph.n // tokens) % graph.n
        walk = replace(schedule, first=first, token=token)
        one = replace(cast(Any, algorithm), schedule=walk)
        after = {"after": runs[-1], "carry": "nothing"} if runs else {}
        runs.append(run(one, graph, task, steps=steps, **{**options, **after}))
    return tuple(runs)


def last_tokens(runs: Iterable[Run]) -> Array:
    """Where each walk ended: the estimate of its last holder; their mean is what parallel tokens agree on.

    Telling it to everybody publishes every last token: account for it (`published`)  # (tokens, d).
    """
    return np.stack([one.estimates[one.trace.meetings.b[-1]] for one in runs])


def rehearse(
    algorithm: Algorithm[Any], graph: Graph | GraphSequence | str, privacy: Mechanism | None, steps: int, seed: int = 0,
    dim: int = 1, progress: Progress | None = None,
) -> Run:
    """The same protocol on blank data of `dim` numbers per peer: what the accountant needs before any data exists.

    The ledger and the meetings come from running the algorithm itself, so that accounting cannot drift from the code.
    """
    graph = named_graph(graph)
    blank = Mean(np.zeros((graph.n, dim)))
    planned = run(algorithm, graph, blank, privacy=privacy, steps=steps, seed=seed, evaluate_every=0, progress=progress)
    return replace(planned, noise=frozenset())  # a plan speaks of no draws in particular


def calibrated(noise: Gaussian, epsilon: float, delta: float, dim: int, rehearsal: Callable[[Gaussian], Run],
               count: Callable[[Run], int] | None = None) -> Gaussian:  # fmt: skip
    """The least noise for which what a run sends is (epsilon, delta)-DP against everybody, rounding included.

    `rehearsal` runs the protocol on rows of one number; what it draws has the R of a row of `dim` numbers, divided by
    at least dim. It is rehearsed with the noise of a single release, which is not above the answer. R falls as noise
    grows, but for the rounding of the grid to a power of two, which may double the grid: 4 R covers the answer. `count`
    tells how often the busiest peer releases, if the ledger does not.
    """
    least = noise.calibrate(epsilon, delta, 1, dim)
    tried = rehearsal(least)
    facts = tried.facts()
    releases = int(facts.releases().max(initial=0)) if count is None else count(tried)
    whole = facts.all_rounding()
    amount = whole if whole < math.inf else float(facts.own_rounding().max(initial=0.0))  # else only local DP is said
    return noise.calibrate_pair(epsilon, delta, float(max(1, releases)), dim, 4 * dim * amount)
