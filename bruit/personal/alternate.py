"""Models and graph together: models on the graph, then the graph from the models, again and again
(perso:PERSO-8).

    models fitted alone -> graph -> repeat { models on this graph, from where they were; graph from these models }

The two are not convex together, so what is found is good, not best. With privacy (perso:PERSO-14)
three things read data, each through the door and into one ledger: the models fitted alone
(`first`), every model update (`models`), and one loss a peer and graph (`losses`), that of every
record cut to [0, ceiling]. Weights and degrees follow from these.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Protocol

import numpy as np

from bruit.algorithms.door import Address
from bruit.algorithms.personal.boosting import Boosting
from bruit.algorithms.personal.model_propagation import ModelPropagation
from bruit.algorithms.personal.neighborhood import per_peer
from bruit.algorithms.personal.personalized import Personalized
from bruit.algorithms.task_door import TaskDoor
from bruit.arrays import Array, Ints
from bruit.digests import digest
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import Graph, ring
from bruit.graphs.learn import Collaboration
from bruit.mechanisms import Mechanism
from bruit.personal.learn import LearnedGraph, learn_graph
from bruit.personal.sensitivity import boosting_loss_sensitivities, loss_sensitivities
from bruit.privacy.guarantee import Hypothesis, different_adjacencies
from bruit.privacy.noise_source import NoiseSource
from bruit.randomness import Replay
from bruit.runs.beginning import Carry
from bruit.runs.noise_keys import hidden_digest, noise_of
from bruit.runs.result import Run
from bruit.runs.run import run
from bruit.tasks import Mean, Personal, Sensitivities, Task
from bruit.tasks.boosted import Boosted

SIZES = "the numbers of records of the peers are public"
ALONE = Hypothesis(
    "whom a learned graph leaves alone reads nothing in the next round: what is told of a peer is what"
    " it released, and not what it might have",
    checked=False,
)
LOSS_USE = 255  # the last use of a step: no model update draws there


class Judged(Protocol):
    """A task that knows every peer's loss at its own model."""

    def losses(self, ids: Ints, x: Array, ceiling: float = inf) -> Array: ...


@dataclass(frozen=True)
class Noise:
    """The mechanisms of the three reads; None is an exact read, and an infinite epsilon."""

    first: Mechanism | None = None
    models: Mechanism | None = None
    losses: Mechanism | None = None
    ceiling: float = inf

    def __post_init__(self) -> None:
        if not self.ceiling > 0:
            raise ConfigError(f"losses are cut at a positive ceiling, found {self.ceiling}")
        levels = sorted(
            {one.level for one in (self.first, self.models, self.losses) if one is not None}
        )
        if len(levels) > 1:
            raise PrivacyError(
                f"guarantees of different levels ({' and '.join(levels)}) do not compose;"
                " use one level throughout"
            )
        ways = sorted(
            {one.adjacency for one in (self.first, self.models, self.losses) if one is not None}
        )
        if len(ways) > 1:
            raise different_adjacencies(*ways)


@dataclass(frozen=True, eq=False)
class Losses(Mean):
    """Every peer's loss as the value it releases, and how far one record moves it; None: without
    bound."""

    moved: Sensitivities | None = None

    def sensitivities(self, answer: str, order: int) -> Sensitivities:
        if answer != "loss":
            raise PrivacyError(
                f"what is released here are losses, and the noise was measured for the {answer} of a "
                "peer; use loss_noise"
            )
        return (
            super().sensitivities(answer, order) if self.moved is None else self.moved
        )  # of one number: L1 is L2


@dataclass(frozen=True, eq=False)
class Alternation:
    """What was learned: everyone's model, the weights, and the last run, whose ledger holds every
    read."""

    models: Array  # (n, d)
    weights: LearnedGraph
    run: Run

    @property
    def graph(self) -> Graph:
        """The learned graph, to draw, to save, or to talk over in the next run."""
        return self.weights.graph()


def alternate(
    algorithm: Personalized | Boosting,
    task: Task,
    aim: Collaboration,
    *,
    rounds: int,
    steps: int,
    wakes: int,
    noise: Noise | None = None,
    sampled: int | None = None,
    least: float = 1e-3,
    seed: int = 0,
    watch: Callable[[int, Run, LearnedGraph], None] | None = None,
) -> Alternation:
    """Learn models and graph in so many rounds of `steps` units of time and `wakes` graph wake-ups.

    sampled: how many others a waking peer looks at, five by default, or all where there are fewer.
    least: lighter edges are dropped before models talk over the graph. Boosting starts every round
    from zero, because new neighbors do not know each other's choices. Who is left without neighbors
    has the model it fitted alone (perso:PERSO-1). `watch` is called after every round.
    """
    noise = noise or Noise()
    _check(rounds, task, noise)
    alone, last = _alone(algorithm, task, noise, steps, seed)
    models, weights = (
        alone,
        _graph(
            algorithm=algorithm,
            task=task,
            aim=aim,
            models=alone,
            last=last,
            noise=noise,
            wakes=wakes,
            sampled=sampled,
            seed=seed,
            begin=None,
        ),
    )
    for number in range(rounds):
        kept: Carry = "nothing" if number == 0 or isinstance(algorithm, Boosting) else "model"
        graph = weights.graph(least)
        last = run(
            algorithm,
            graph,
            task,
            privacy=noise.models,
            steps=steps,
            seed=seed,
            evaluate_every=0,
            after=last,
            carry=kept,
        )
        models = np.where((graph.degrees == 0)[:, None], alone, last.estimates)
        weights = _graph(
            algorithm=algorithm,
            task=task,
            aim=aim,
            models=models,
            last=last,
            noise=noise,
            wakes=wakes,
            sampled=sampled,
            seed=seed,
            begin=weights,
        )
        if watch is not None:
            watch(number, last, weights)
    return Alternation(models, weights, last)


def _alone(
    algorithm: Personalized | Boosting, task: Task, noise: Noise, steps: int, seed: int
) -> tuple[Array, Run]:
    """Models fitted without neighbors; the ring is a formality, nobody listens."""
    ids = ring(task.peers)
    if isinstance(algorithm, Boosting):
        lonely = run(
            replace(algorithm, coupling=0.0),
            ids,
            task,
            privacy=noise.first,
            steps=steps,
            seed=seed,
            evaluate_every=0,
        )
    else:
        lonely = run(
            ModelPropagation(), ids, task, privacy=noise.first, steps=0, seed=seed, evaluate_every=0
        )
    return lonely.estimates, lonely


def _graph(
    algorithm: Personalized | Boosting,
    task: Task,
    aim: Collaboration,
    models: Array,
    last: Run,
    noise: Noise,
    wakes: int,
    sampled: int | None,
    seed: int,
    begin: LearnedGraph | None,
) -> LearnedGraph:
    """The next weights, from the models as released and one more read of every peer's loss."""
    ids = np.arange(task.peers)
    measured = _with_losses(task).losses(ids, models, noise.ceiling)
    loss_task = Losses(measured[:, None], "losses", moved=_moved(algorithm, task, noise.ceiling))
    kept = None if noise.losses is None else noise.losses.describe()
    public = digest(b"", "losses", last.public_digest(), kept, noise.ceiling).hex()
    source = NoiseSource(
        f"the losses after {last.algorithm.name()}, seed {seed}, phase {last.phase}",
        public,
        hidden_digest(public, seed, loss_task),
    )
    last.noise |= {source}
    door = TaskDoor(
        task=loss_task,
        mechanism=noise.losses,
        dice=noise_of(source, seed),
        ledger=last.ledger,
        run=last.phase,
    )
    last.declared = tuple(dict.fromkeys((*last.declared, *door.declared, ALONE)))
    last.opened = "a graph was learned from everybody's models and losses, and is known to all"
    step = np.full(task.peers, last.steps, np.int64)
    released = door.value(Address(ids, step, step, LOSS_USE))[:, 0]
    costs = per_peer("confidences", algorithm.confidences, task.peers, 1.0) * released
    return learn_graph(
        aim,
        models,
        costs,
        wakes=wakes,
        dice=Replay(seed),
        sampled=sampled,
        begin=begin,
        run=last.phase,
    )


def _moved(algorithm: Personalized | Boosting, task: Task, ceiling: float) -> Sensitivities | None:
    """How far one record moves a loss: the ceiling or the ball of models says so
    (perso:PERSO-14)."""
    if isinstance(task, Boosted) and isinstance(algorithm, Boosting):
        radius = algorithm.radius
        return Sensitivities(
            boosting_loss_sensitivities(task.sizes, radius),
            (
                f"models lie in the ball |x|_1 <= {radius:g}, which the algorithm keeps",
                "base predictions lie in [-1, 1]; larger ones are refused",
            ),
            (SIZES,),
        )
    if isinstance(task, Personal) and isfinite(ceiling):
        sentence = f"the loss of every record is cut to [0, {ceiling:g}], record by record, before they are averaged"
        return Sensitivities(loss_sensitivities(task.sizes, ceiling), (sentence,), (SIZES,))
    return None


def _with_losses(task: Task) -> Judged:
    if not hasattr(task, "losses"):
        raise ConfigError(
            f"a graph is learned from losses, which a {type(task).__name__} task does not tell; "
            "use Personal or Boosted"
        )
    return task


def _check(rounds: int, task: Task, noise: Noise) -> None:
    if rounds < 0:
        raise ConfigError(f"the number of rounds must not be negative, found {rounds}")
    if task.peers < 3:
        raise ConfigError(f"a graph is learned among three peers or more, found {task.peers}")
    _with_losses(task)
    if noise.losses is not None and not isinstance(task, Boosted) and not isfinite(noise.ceiling):
        raise PrivacyError(
            "private losses have no sensitivity unless the loss of every record is cut; give the "
            "ceiling that their noise was computed for"
        )
    if noise.losses is not None and isinstance(task, Boosted) and task.largest() > 1:
        raise PrivacyError(
            f"there are base predictions as large as {task.largest():g}, and the sensitivity of a "
            "boosting loss is that of predictions in [-1, 1]; cut them"
        )
