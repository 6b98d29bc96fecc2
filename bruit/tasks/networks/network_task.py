"""Torch: any module of torch that treats records one by one, learned by peers.

    f_i(x) = (1/m_i) sum_j loss(module_x(record j), target j) + (l2 / 2) ||x||^2

A model x is one flat row: all parameters one after the other, in the order of `named_parameters`;
which is where is public and in the manifest. All peers begin at the same public weights: those that
the module was given with, or that a public seed draws. Nothing is convex or smooth here: theorems
that need it refuse, and proximal steps are not answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from bruit.arrays import Array, Bools, Ints
from bruit.digests import ASIDE, digest
from bruit.errors import ConfigError, Diverged
from bruit.tasks.data.agreed_columns import AgreedColumns, agreed_columns
from bruit.tasks.data.choice import EVERYTHING, Choice
from bruit.tasks.data.preparation import Preparation, prepare
from bruit.tasks.data.public import NOTHING, Agreed
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.networks import observers
from bruit.tasks.networks.examples import Examples, table_of
from bruit.tasks.networks.learned_network import BUILT_IN, LearnedNetwork
from bruit.tasks.networks.library import need_torch
from bruit.tasks.networks.making import check_classes, made_network, predicted
from bruit.tasks.networks.telling import architecture_of, described, local_numbers
from bruit.tasks.records import Part, Records
from bruit.tasks.ridge import Ridge
from bruit.tasks.scores.joining import Joining
from bruit.tasks.softmax import Softmax
from bruit.tasks.task import Constants, Manifest, Score, Task

if TYPE_CHECKING:
    from bruit.tasks.networks.with_torch.network import PeerNetwork

NUMBERS_AT_ONCE = 1 << 22  # of one step through a network, all layers together


@dataclass(frozen=True, eq=False)
class Torch(Task):
    """A network, a loss of one number a record, and the records of every peer.

    module: a `torch.nn.Module`, whose weights all peers begin with; or a function that makes one,
    or a name ("mlp:64,32", "cnn:small", "package.mod:factory"), whose weights the seed `weights`
    draws. loss:
    "cross-entropy", "squared", or a function of (outputs, targets). predicts: "classes" or
    "numbers", where the loss does not say. shape: in which one row of numbers goes into the module.
    dtype: what gradients are computed in. judged, local: as of linear tasks; local names parameters
    by the beginning of their names."""

    module: Any = field(metadata=ASIDE)
    loss: Any = "cross-entropy"
    _: KW_ONLY
    records: Records
    predicts: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = "float64"
    l2: float = 0.0
    weights: int = 0
    written: str = field(default="", init=False, repr=False)  # the module, as text
    begins: Array = field(default_factory=lambda: np.zeros(0), init=False, repr=False)  # (d,)
    judged: Records | None = field(default=None, metadata=ASIDE)
    local: tuple[str, ...] = field(default=(), metadata=ASIDE)
    _network: Any = field(default=None, init=False, repr=False)
    answers: ClassVar[frozenset[str] | None] = frozenset({"gradients"})

    def __post_init__(self) -> None:
        need_torch()
        if not (isfinite(self.l2) and self.l2 >= 0):
            raise ConfigError(f"l2 is {self.l2}; it must be zero or a positive number")
        object.__setattr__(self, "predicts", predicted(self.loss, self.predicts))
        if self.classifies:
            check_classes(self.records)
        object.__setattr__(self, "_network", made_network(self))
        object.__setattr__(self, "shape", self.network.shape)
        layers = [type(layer).forward for layer in self.network.module.modules()]
        code = digest(b"", layers).hex()
        object.__setattr__(self, "written", f"{self.network.module!r} {code}")
        object.__setattr__(self, "begins", self.network.start)
        self.parts_at_home()

    @classmethod
    def load(
        cls,
        data: Examples,
        module: Any,
        loss: Any = None,
        *,
        peers: int | None = None,
        split: str = "iid",
        seed: int = 0,
        weights: int = 0,
        standardize: str = "public",
        test: float = 0.2,
        label: str | None = None,
        owner: str | None = None,
        l2: float = 0.0,
        components: int | None = None,
        agreed: Agreed = NOTHING,
        choice: Choice = EVERYTHING,
        own_test: float | None = None,
        columns_file: str | Path | AgreedColumns | None = None,
        local: Sequence[str] = (),
        predicts: str = "",
        shape: Sequence[int] = (),
        dtype: str = "float64",
    ) -> Self:
        """A named set, a file of one's own, a data frame, a pair of arrays or tensors (inputs, targets), or a
        torch Dataset, dealt to peers.

        The words are those of `LinearTask.load`; rows are not divided by their norm and have no
        column of ones, since a layer has its own bias. loss: cross-entropy unless `predicts` is
        "numbers". weights: the seed of the starting weights; seed: that of the split. shape: that of
        one input, found from arrays of more than two axes.
        """
        need_torch()
        if loss is None:
            loss = "squared" if predicts == "numbers" else "cross-entropy"
        classified = predicted(loss, predicts) == "classes"
        columns = agreed_columns(columns_file)
        if columns is not None:
            columns.refuse("torch", classified)
            standardize = "none" if standardize == "public" else standardize
        choices = Preparation(
            peers=peers,
            split=split,
            seed=seed,
            standardize=standardize,
            rows="none",
            test=test,
            components=components,
            agreed=agreed,
            own_test=own_test or None,
            intercept=False,
        )
        table, found = table_of(data, label, owner, agreed, choice, columns)
        encode = Softmax._encode if classified else Ridge._encode
        ready = prepare(table, *encode(table), choices)
        return cls(
            module,
            loss,
            records=ready.records(),
            predicts=predicts,
            shape=tuple(shape) or (found if components is None else ()),
            dtype=dtype,
            l2=l2,
            weights=weights,
            judged=ready.own_test(),
            local=tuple(local),
        )

    @property
    def network(self) -> PeerNetwork:
        """The module for rows of models."""
        return cast("PeerNetwork", self._network)

    @property
    def classifies(self) -> bool:
        return self.predicts == "classes"

    @property
    def outputs(self) -> int:
        """Numbers that the module says of a record: one a class, or one."""
        return len(self.records.classes) if self.classifies else 1

    @property
    def peers(self) -> int:
        return self.records.peers

    @property
    def dim(self) -> int:
        return self.network.dim

    @property
    def metric(self) -> str:
        return "accuracy" if self.classifies else "rmse"

    @property
    def higher(self) -> bool:
        """Whether a larger metric is a better one."""
        return self.classifies

    def start(self) -> Array:
        return self.begins.copy()

    def value(self, ids: Ints) -> Array:
        raise ConfigError(
            "a network has no value to average before it is learned, and no unique model that a peer "
            "fits alone; use an algorithm that reads gradients"
        )

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self._gradient(self.records.parts(ids, self._width()), ids, x)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        if uniforms.ndim != 2 or len(uniforms) != len(ids) or uniforms.shape[1] < 1:
            raise ConfigError(
                f"uniforms are {uniforms.shape} for {len(ids)} peers; give (peers, batch >= 1)"
            )
        width = max(self.dim, uniforms.shape[1] * self.network.numbers)
        return self._gradient(self.records.drawn(ids, uniforms, width), ids, x)

    @property
    def sizes(self) -> Ints:
        return self.records.sizes

    def record_counts(self) -> Ints:
        return self.sizes

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        """The sum of clipped gradients, cut to whole grains: sums of neighboring sets of records
        are as near as sums of records that were cut one by one (silo:SILO-10)."""
        from bruit.tasks.networks.with_torch.record_parts import record_parts
        from bruit.tasks.networks.with_torch.record_sums import clipped_sums

        self._check_models(ids, x)
        found = np.zeros((len(ids), self.dim), np.int64)
        for rows, taken, asked in record_parts(self, ids, x, coins, rate):
            found[rows] = clipped_sums(asked, taken, clip, unit)
        return found

    def clip_votes(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float
    ) -> Ints:
        from bruit.tasks.networks.with_torch.record_parts import record_parts
        from bruit.tasks.networks.with_torch.record_sums import votes

        self._check_models(ids, x)
        found = np.zeros(len(ids), np.int64)
        for rows, taken, asked in record_parts(self, ids, x, coins, rate):
            found[rows] = votes(asked, taken, clip)
        return found

    def assumed_of_records(self) -> tuple[str, ...]:
        own = not isinstance(self.loss, str) or not str(self.module).startswith(BUILT_IN)
        alone = "the network and its loss treat records one by one (tried on made-up rows)"
        return (
            *((alone,) if own else ()),
            "a layer computes the same bits for a record whatever the other records of its chunk "
            "are, in every slot where records move (tried on made-up rows); a removed record leaves "
            "its place empty (silo:SILO-10)",
        )

    def penalty_gradient(self, x: Array) -> Array:
        return self.l2 * x

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        raise ConfigError(
            "a proximal step of a network has no unique answer, since its loss is not convex; use an "
            "algorithm that reads gradients (gossip-sgd, walk-sgd, fed-avg, masked-sgd)"
        )

    def evaluate(self, models: Array) -> dict[str, float]:
        """As of linear tasks: on the held-out part, on all peers' records without one, or on every
        peer's own test records."""
        self._check_models(np.arange(len(models)), models)
        return observers.evaluated(self, models)

    def judge(self, models: Array, peer: int) -> Score:
        if self.judged is not None:
            row = models[peer : peer + 1]
            return Score(float(observers.score_for(self, peer, row)[0]), public=False)
        return Score(super().judge(models, peer).value, self.records.held_out is not None)

    def at_home(self, ids: Ints, models: Array) -> Array:
        self._check_models(ids, models)
        return observers.fitted_at_home(self, ids, models)

    def parts_at_home(self) -> Bools:
        """Which numbers of a model stay at home  # (d,)."""
        return local_numbers(self.local, self.network.places)

    @property
    def kind(self) -> str:
        return "torch"

    def recipe(self) -> Recipe | None:
        found = self.records.recipe
        names = self.records.classes if self.classifies else ()
        return found if found is None else replace(found, classes=names)

    def learned_network(self) -> LearnedNetwork:
        return LearnedNetwork(self.architecture(), self.network.module)

    def constants(self) -> Constants:
        """Nothing is known: gradients are bounded by clipping, and by nothing else."""
        return Constants(inf, inf, 0.0, "declared")

    def architecture(self) -> Manifest:
        """What the numbers of a model are, as plain data: enough to give a module its weights."""
        return architecture_of(self)

    def describe(self) -> Manifest:
        return described(self)

    def references(self) -> dict[str, float]:
        """The metric of networks that every peer trains alone, and of one that is trained on all
        records: 300 steps of Adam each, without noise, from the same start. None where that would
        take more than about a minute."""
        return observers.compared(self, observers.reference_models(self))

    def comparison(self, shared: Array) -> tuple[dict[str, float], Joining | None]:
        return observers.comparison(self, shared)

    def _width(self) -> int:
        """Numbers that one peer takes while its gradient is computed."""
        most = int(self.records.sizes.max())
        return max(self.dim, min(most * self.network.numbers, NUMBERS_AT_ONCE))

    def _gradient(self, parts: Any, ids: Ints, x: Array) -> Array:
        self._check_models(ids, x)
        answer = np.empty((0, self.dim))
        for part in parts:
            found = self._of_part(x[part.rows], part)
            if part.rows == slice(0, len(x)):  # all of them: not copied once more
                answer = found
            else:
                answer = answer if len(answer) else np.empty(x.shape)
                answer[part.rows] = found
        if self.l2:
            answer += self.l2 * x
        if not np.isfinite(answer.sum()):
            self._refuse_diverged(ids, answer)
        return answer

    def _refuse_diverged(self, ids: Ints, answer: Array) -> None:
        finite = np.isfinite(answer).all(axis=1)
        if not finite.all():
            row = int(np.flatnonzero(~finite)[0])
            raise Diverged(
                f"the loss of peer {ids[row]}, or its gradient, is not a finite number; use a "
                "smaller rate, or look for values that are far too large in its records",
                row,
            )

    def _of_part(self, models: Array, part: Part) -> Array:
        """Sums over the records of some peers, a few records at a time where they are many."""
        many = part.targets.shape[1]
        step = max(1, NUMBERS_AT_ONCE // (len(models) * self.network.numbers))
        sums: list[Array] = []
        for begin in range(0, many, step):
            some = slice(begin, begin + step)
            batch = self.network.batch(part.features[:, some], part.targets[:, some])
            sums.append(self.network.gradients(models, batch, part.weights[:, some]))
            sums = [sums[0] if len(sums) == 1 else sums[0] + sums[1]]
        return sums[0]

    def _check_models(self, ids: Ints, x: Array) -> None:
        if x.shape != (len(ids), self.dim):
            raise ConfigError(
                f"models are {x.shape} for {len(ids)} peers; give ({len(ids)}, {self.dim})"
            )
