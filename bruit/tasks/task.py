"""A task: each peer's private records and the questions one may ask them.

An algorithm asks three questions, always about a batch of peers: `value` (what averaging averages), `gradient` and
`prox`. Row i of an answer depends on the records of peer ids[i] only. `evaluate` and `references` read the truth
and are for observers, never for peers.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from bruit.arrays import Array, Ints
from bruit.digests import digest_fields
from bruit.errors import ConfigError, PrivacyError
from bruit.tasks.counted import Counted

if TYPE_CHECKING:
    from bruit.tasks.data.recipe import Recipe
    from bruit.tasks.networks.learned_network import LearnedNetwork
    from bruit.tasks.scores.joining import Joining

Manifest = dict[str, object]
QUESTIONS = frozenset(  # what algorithms ask tasks for, in words
    {
        "a value to average",
        "models fitted alone",
        "gradients",
        "gradients from zero on",
        "proximal steps",
        "a function of two points",
        "a loss of two points",
        "models fitted alone and gradients",
        "models fitted alone, gradients and losses",
    }
)
MODELS = frozenset(
    {
        "a value to average",
        "models fitted alone",
        "gradients",
        "gradients from zero on",
        "proximal steps",
        "models fitted alone and gradients",
        "models fitted alone, gradients and losses",
    }
)


@dataclass(frozen=True)
class Constants:
    """What is known of every peer's objective f_i = (1/m) sum_j loss(record j) + (l2/2) ||x||^2.

    lipschitz: bound on the gradient of one record's loss. The regularizer is left out: it does not depend on the
    records, so replacing one record of m moves the gradient of f_i by at most 2 lipschitz / m (perso:DP-7).
    smoothness, strong_convexity: of f_i, regularizer included; the step x - gamma * gradient is non-expansive for
    gamma <= 2 / smoothness (walk:F-2).
    source: "declared" when the numbers follow from the declared normalization and clip alone; "records" when they
    were read off the records, which a private run must not do.
    """

    lipschitz: float
    smoothness: float
    strong_convexity: float
    source: Literal["declared", "records"]

    def __post_init__(self) -> None:
        for name in ("lipschitz", "smoothness", "strong_convexity"):
            found = getattr(self, name)
            if not found >= 0:  # infinite: no bound is known
                raise ConfigError(
                    f"the {name.replace('_', ' ')} of a task is a number >= 0, found {found}"
                )


class Sensitivities(NamedTuple):
    """How far replacing one record can move each peer's answer, and what that rests on, in words.

    checked: what was verified on the records or is enforced by the task; assumed: what is only declared.
    """

    values: tuple[float, ...]
    checked: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


class Score(NamedTuple):
    """How good the model of one peer is, and whether that was measured on public records, which no peer holds."""

    value: float
    public: bool


class Task(Counted, ABC):
    """Private records of n peers and the questions one may ask them, on batches of peers.

    Printed, a task says how much there is of everything and shows no record. `answers` are the
    QUESTIONS that tasks of exactly this class answer; None: nothing is known of them, and nothing
    is refused.
    """

    answers: ClassVar[frozenset[str] | None] = None

    def __repr__(self) -> str:
        known = self.describe()
        held = next(
            (f", {known[word]} {word}" for word in ("records", "points") if word in known), ""
        )
        return f"<{type(self).__name__} task: {self.peers} peers{held}, models of {self.dim} numbers, {self.metric}>"

    @property
    @abstractmethod
    def peers(self) -> int:
        """How many peers hold records."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of one flattened model, and of one value."""

    @property
    def width(self) -> int:
        """Length of one value, where it is another than a model's."""
        return self.dim

    @property
    @abstractmethod
    def metric(self) -> str:
        """The entry of `evaluate` that `references` are measured in: accuracy, rmse or mse."""

    def start(self) -> Array:
        """The public model that all peers begin with, unless a run says otherwise: zeros. It
        depends on no record."""  # (dim,)
        return np.zeros(self.dim)

    @abstractmethod
    def value(self, ids: Ints) -> Array:
        """What averaging averages, one row a peer."""  # (k, dim)

    @abstractmethod
    def gradient(self, ids: Ints, x: Array) -> Array:
        """Row i: the gradient of f_ids[i] at x[i], a mean over that peer's own records."""  # (k, dim)

    @abstractmethod
    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        """The same over records drawn with replacement: uniform u in [0, 1) names record floor(u * m) of m."""

    def record_counts(self) -> Ints:
        """How many records each peer holds."""  # (peers,)
        raise ConfigError(
            f"the task {type(self).__name__} has no records that could be counted one by one; use "
            'level = "user"'
        )

    @property
    def sizes(self) -> Ints:
        """How many training records each peer holds, which is public."""  # (peers,)
        raise ConfigError(
            "these are numbers of records, and peers of this task hold none; leave it out"
        )

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        """Row i: the sum over the records of ids[i], those whose coin is below `rate` (all without
        coins), of trunc(unit * clipped gradient of that record at x[i]) (silo:SILO-1).

        Each summand is a function of one record, the model and public things, of norm at most
        unit * clip; a gradient that is not finite counts as 0. Regularizers are left out.
        """  # (k, dim)
        raise ConfigError(
            f'the task {type(self).__name__} has no gradients of single records; use level = "user"'
        )

    def clip_votes(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float
    ) -> Ints:
        """Row i: of the same records, how many have a gradient at x[i] shorter than the clip, minus
        how many do not (silo:SILO-7)."""  # (k,)
        raise ConfigError(
            f"the task {type(self).__name__} has no gradients of single records, whose length could"
            " be asked; leave clip_votes out"
        )

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        """Row i: the mean over the records of ids[i] of min(loss at x[i], ceiling), in [0,
        ceiling]; regularizers are left out (perso:PERSO-14)."""  # (k,)
        raise ConfigError(
            f"the task {type(self).__name__} tells no losses of records; use a Personal, Logistic, "
            "Softmax or Ridge task"
        )

    def assumed_of_records(self) -> tuple[str, ...]:
        """What `clipped_sum` rests on that nobody can check, in words."""
        return ()

    def penalty_gradient(self, x: Array) -> Array:
        """Row i: what the gradient at x[i] holds besides records: that of the regularizer."""  # (k, dim)
        return np.zeros_like(x)

    @abstractmethod
    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        """Row i: argmin over z of `f_ids[i](z) + ||z - x[i]||^2 / (2 rho)` (walk:ADMM-10)."""  # (k, dim)

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        """Row i: h(x[i], y[i]) of two points that peers have shown; public, no record is read (perso:PAIR-1).

        `uniform` is the chance that a shown value is a uniform one (randomized response), which h corrects for.
        """  # (k, dim)
        raise ConfigError(
            f"the task {type(self).__name__} asks nothing about pairs of points; use the Statistic task"
        )

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        """Row i: the gradient in models[i] of the loss of the points x[i] and y[i] (perso:PAIR-7)."""  # (k, dim)
        raise ConfigError(
            f"the task {type(self).__name__} has no loss of pairs of points; use the Pairwise task"
        )

    @abstractmethod
    def evaluate(self, models: Array) -> dict[str, float]:
        """For observers only: how good the models of all peers are, one row each."""

    def judge(self, models: Array, peer: int) -> Score:
        """For observers only: the metric of the model of one peer, of all models."""
        return Score(self.evaluate(models[peer : peer + 1])[self.metric], public=False)

    @property
    def local(self) -> tuple[str, ...]:
        """The parts of a model that stay at home, by name; none unless a task has some."""
        return ()

    def at_home(self, ids: Ints, models: Array) -> Array:
        """Row i: models[i] with its local parts fitted on the records of ids[i], for that peer only:
        nothing that is ever sent may depend on it (silo:SILO-6)."""  # (k, dim)
        return models

    def divided(self, ids: Ints) -> "Task | None":
        """What these peers hold, as a task of so many peers, row by row; None: it is not divided."""
        return None

    @property
    def kind(self) -> str:
        """What a model of this task is, in one word."""
        return type(self).__name__.lower()

    def recipe(self) -> "Recipe | None":
        """How new rows are prepared for a model of this task, from public facts alone; None: it is applied to none."""
        return None

    def learned_network(self) -> "LearnedNetwork | None":
        """What the numbers of a model are, where they are weights of a network of torch."""
        return None

    @abstractmethod
    def constants(self) -> Constants:
        """Lipschitz, smoothness and strong-convexity constants, and where they come from."""

    def sensitivities(self, answer: str, order: int) -> Sensitivities:
        """How far one record moves the "gradient" or the "model" of each peer, in L1 or L2, from declared bounds alone.

        Noise that clips nothing is compared with this before anything is released, so a task that derives no bound
        refuses (perso:DP-7).
        """
        raise PrivacyError(
            f"the task {type(self).__name__} derives no bound on how far one record moves the {answer} "
            "of a peer, so noise that clips nothing may hide too little; use Gaussian(clip=...)"
        )

    @abstractmethod
    def describe(self) -> Manifest:
        """What a run's manifest says of this task: data, split, normalization, what is public. JSON-able.

        Nothing in it is computed from private records but what `public` lists: no digest of them, which could be
        compared with guesses.
        """

    def digest(self, key: bytes) -> bytes:
        """A keyed name of all records: what differs in one bit has another. Noise is addressed by it, so it must never
        be kept (records change in place) nor written anywhere (who knows the key could test guesses of the records)."""
        return digest_fields(key, self)

    @abstractmethod
    def references(self) -> dict[str, float]:
        """For observers only: the metric when every peer stays alone, and with all records in one place."""

    def comparison(self, shared: Array) -> "tuple[dict[str, float], Joining | None]":
        """For observers only: the references, and for whom joining paid where that is known peer by
        peer; `shared` are the models that were learned together."""
        return self.references(), None
