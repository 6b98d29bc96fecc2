"""Linear tasks: models W whose records speak through scores W x; what logistic, ridge and softmax
share.

    f_i(W) = (1/m_i) sum_j loss(W x_ij, y_ij) + (l2 / 2) ||W||^2

A model is one flat row of outputs x features numbers, output by output. Clipping acts on the scalar
derivative of the loss, record by record: the loss stays convex and as smooth as before (it is
Huberized), so x - gamma * gradient stays non-expansive for gamma <= 2 / smoothness (walk:F-2,
finding 7). Clipping the gradient vector would not.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import ClassVar, Self, cast

import numpy as np

from bruit.arrays import Array, Ints
from bruit.digests import ASIDE
from bruit.errors import ConfigError
from bruit.tasks.data.agreed_columns import AgreedColumns, agreed_columns
from bruit.tasks.data.choice import EVERYTHING, Choice
from bruit.tasks.data.formats.frames import Frame
from bruit.tasks.data.preparation import Preparation, prepare
from bruit.tasks.data.public import NOTHING, Agreed, Fact, listed
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.sources import load
from bruit.tasks.data.table import Table
from bruit.tasks.loss import Loss
from bruit.tasks.newton import TOLERANCE
from bruit.tasks.parts_at_home import check_local, fitted_at_home
from bruit.tasks.record_gradients import chosen, record_slopes, summed_outer, votes_on_clip
from bruit.tasks.records import Part, Records, Sample
from bruit.tasks.scores.joining import Joining
from bruit.tasks.scores.own_scores import judged, one_answer, own_scores, score_for
from bruit.tasks.sensitivity import linear_sensitivities
from bruit.tasks.task import Constants, Manifest, Score, Sensitivities, Task

# Regularizer of the observers' references, on the sum over a peer's records: weak, only there to
# make them unique.
REFERENCE_PENALTY = 1e-2
# The same where peers are judged on records of their own: scikit-learn's default (C = 1). With the
# weak one a small peer alone would be a weaker opponent than it is.
OWN_PENALTY = 1.0
REFERENCE_TOLERANCE = 1e-4
SCORES_AT_ONCE = 1 << 21
SHOWN_APART = 1000  # of so many peers at most it is kept for whom joining paid


@dataclass(frozen=True, eq=False)
class LinearTask(Task):
    """Records, a regularizer and a clip on the scalar derivative; the loss is the subclass's.

    judged: test records of every peer's own, which nobody learns from; None: models are judged on
    the public part. local: the parts of a model that stay at home (`bruit.tasks.parts_at_home`)."""

    records: Records
    l2: float = 0.0
    derivative_clip: float | None = None
    judged: Records | None = field(default=None, metadata=ASIDE)
    local: tuple[str, ...] = field(default=(), metadata=ASIDE)
    classifies: ClassVar[bool] = (
        True  # whether targets are classes, whose names are public, or private numbers
    )

    def __post_init__(self) -> None:
        if not (isfinite(self.l2) and self.l2 >= 0):
            raise ConfigError(f"l2 is {self.l2}; it must be zero or a positive number")
        if self.derivative_clip is not None and not self.derivative_clip > 0:
            raise ConfigError(
                f"derivative_clip is {self.derivative_clip}; it must be positive, or None"
            )
        if self.judged is not None and (self.judged.peers, self.judged.columns) != (
            self.records.peers,
            self.records.columns,
        ):
            raise ConfigError(
                f"the test records are of {self.judged.peers} peers and {self.judged.columns} "
                f"columns, the training records of {self.records.peers} and {self.records.columns}; "
                f"make them equal"
            )
        check_local(self)
        self._check()

    @classmethod
    def load(
        cls,
        data: str | Path | Frame,
        peers: int | None = None,
        split: str = "iid",
        seed: int = 0,
        *,
        standardize: str = "public",
        rows: str = "unit",
        test: float = 0.2,
        label: str | None = None,
        owner: str | None = None,
        l2: float = 0.0,
        derivative_clip: float | None = None,
        components: int | None = None,
        agreed: Agreed = NOTHING,
        choice: Choice = EVERYTHING,
        own_test: float | None = None,
        columns_file: str | Path | AgreedColumns | None = None,
        local: Sequence[str] = (),
    ) -> Self:
        """A named set, a file of one's own (CSV, Parquet, NPZ) or a data frame, dealt to peers.

        data: a name (`bruit.tasks.data.sources.catalog()`), a path, or a data frame (pandas,
        polars, pyarrow); label and owner name its columns.
        choice: which columns are used (`columns`, `drop`), and what becomes of holes
        (`fill`, `holes`). split: iid, owner, owner:COUNT, dirichlet:CONCENTRATION, sized:LOW:HIGH,
        sizes:A:B:..., replicate:SIZE. test: the share of records held out first. It belongs to no peer and is
        declared public. With split="owner" it is the share of owners, whose rows are then all
        public. standardize: "public" centers and scales columns by the statistics of that public
        part, "agreed" by the constants in agreed.scales, "none" leaves them. agreed: classes,
        vocabularies, scales and public owners that were agreed on without looking at the rows; what
        is not agreed on is read off the rows and listed as public (`describe()["public"]`).
        components: keep only the first principal directions of the public part, found without its
        labels; private noise grows with the number of columns. rows: "unit" divides each record,
        intercept included, by its norm; "none" leaves it, and no Lipschitz constant is declared
        unless a columns file bounds every column. own_test: a share of every peer's own records
        that its model is judged on and nobody learns from, at least one; by default models are
        judged on the public part. columns_file: an agreed columns file
        (`bruit.tasks.data.agreed_columns`) that says all about columns, label and classes. local:
        parts of a model that every peer fits on its own records after the run and tells nobody:
        "intercept", "scale" (one factor of all that is shared), names of features or of columns, or
        "all".
        """
        columns = agreed_columns(columns_file)
        if columns is not None:
            columns.refuse(cls.__name__.lower(), cls.classifies)
            standardize = "none" if standardize == "public" else standardize
        choices = Preparation(
            peers=peers,
            split=split,
            seed=seed,
            standardize=standardize,
            rows=rows,
            test=test,
            components=components,
            agreed=agreed,
            own_test=own_test or None,
        )
        table = load(data, label, owner, agreed, choice, columns=columns)
        ready = prepare(table, *cls._encode(table), choices)
        return cls(ready.records(), l2, derivative_clip, ready.own_test(), tuple(local))

    @property
    def peers(self) -> int:
        return self.records.peers

    @property
    def dim(self) -> int:
        return self.outputs * self.records.columns

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Scores a record has: one, or one a class."""

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The loss of one record, clipped as declared."""

    def value(self, ids: Ints) -> Array:
        """Each peer's own model, argmin f_i: what one-shot averaging and model propagation start
        from. Needs l2 > 0."""
        if self.l2 == 0:
            raise ConfigError(
                "the value of a peer in this task is the model it fits alone, which needs l2 > 0 to"
                " be unique; give l2, or average values with the Mean task"
            )
        return self._solve(
            ids, np.zeros((len(ids), self.dim)), np.full(len(ids), self.l2), TOLERANCE
        )

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self._gradient(self.records.parts(ids, self.dim), ids, x)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        if uniforms.ndim != 2 or len(uniforms) != len(ids) or uniforms.shape[1] < 1:
            raise ConfigError(
                f"uniforms are {uniforms.shape} for {len(ids)} peers; give (peers, batch >= 1)"
            )
        return self._gradient(self.records.drawn(ids, uniforms, self.dim), ids, x)

    @property
    def sizes(self) -> Ints:
        return self.records.sizes

    def record_counts(self) -> Ints:
        return self.sizes

    def clipped_sum(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float, unit: float
    ) -> Ints:
        self._check_models(ids, x)
        found = np.zeros((len(ids), self.dim), np.int64)
        for part in self.records.parts(ids, self.dim):
            models = x[part.rows].reshape(-1, self.outputs, self.records.columns)
            count = part.targets.shape[1]
            some = None if coins is None else coins[part.rows]
            taken = chosen(some, rate, len(models), count) & (part.weights > 0)
            slopes = record_slopes(self.loss, part.features, part.targets, models)
            found[part.rows] = summed_outer(slopes, part.features, taken, clip, unit)
        return found

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        self._check_models(ids, x)
        answer = np.empty(len(ids))
        for part in self.records.parts(ids, self.dim):
            models = x[part.rows].reshape(-1, self.outputs, self.records.columns)
            losses = self.loss.value(np.matmul(part.features, models.swapaxes(1, 2)), part.targets)
            answer[part.rows] = (np.minimum(losses, ceiling) * part.weights).sum(axis=1)
        return answer

    def clip_votes(
        self, ids: Ints, x: Array, coins: Array | None, rate: float, clip: float
    ) -> Ints:
        self._check_models(ids, x)
        found = np.zeros(len(ids), np.int64)
        for part in self.records.parts(ids, self.dim):
            models = x[part.rows].reshape(-1, self.outputs, self.records.columns)
            count = part.targets.shape[1]
            some = None if coins is None else coins[part.rows, :count]
            taken = chosen(some, rate, len(models), count) & (part.weights > 0)
            slopes = record_slopes(self.loss, part.features, part.targets, models)
            found[part.rows] = votes_on_clip(slopes, part.features, taken, clip)
        return found

    def penalty_gradient(self, x: Array) -> Array:
        return self.l2 * x

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        """argmin f_i(z) + ||z - x||^2 / (2 rho), by completing the square with (l2/2) ||z||^2.

        The answer z satisfies ||gradient|| <= 1e-10 max(1, a max(1, ||x||)) with a = l2 + 1/rho, hence is within
        that over a of the true one, whatever the records (walk:ADMM-10). Ridge without clip is solved exactly.
        """
        self._check_models(ids, x)
        if not (rho > 0 and isfinite(rho)):
            raise ConfigError(f"rho is {rho}; a proximal step needs a positive, finite rho")
        return self._solve(
            ids, x / (1.0 + rho * self.l2), np.full(len(ids), self.l2 + 1.0 / rho), TOLERANCE
        )

    def evaluate(self, models: Array) -> dict[str, float]:
        """Held-out metric (mean over peers, worst peer) and loss; without held-out part, on all
        peers' records. With own test records: every model on those of its peer, and on everybody's
        (`own_scores`)."""
        if models.ndim != 2 or models.shape[1] != self.dim:
            raise ConfigError(
                f"models are {models.shape}; give one row of {self.dim} numbers a peer"
            )
        if self.judged is not None:
            return judged(self, self.judged, models)
        metric, losses = self._scored(models)
        worst = metric.min() if self._higher_is_better() else metric.max()
        return {
            self.metric: float(metric.mean()),
            "worst": float(worst),
            "loss": float(losses.mean()),
        }

    def _scored(self, models: Array) -> tuple[Array, Array]:
        """Metric and loss of each model on the held-out part, or on all peers' records
        # (k,), (k,)."""
        sample = self._sample()
        targets = sample.targets[None]
        step = max(1, SCORES_AT_ONCE // (self.outputs * len(sample.targets)))
        first, back = distinct_rows(models)  # peers that were told one model share its scores
        metric, losses = np.empty(len(first)), np.empty(len(first))
        for begin in range(0, len(first), step):
            some = models[first[begin : begin + step]].reshape(-1, self.records.columns)
            scores = (
                (some @ sample.features.T)
                .reshape(-1, self.outputs, len(sample.targets))
                .swapaxes(1, 2)
            )
            metric[begin : begin + step] = self._measure(scores, targets)
            everywhere = np.broadcast_to(targets, scores.shape[:2])
            losses[begin : begin + step] = self.loss.value(scores, everywhere).mean(axis=1)
        return metric[back], losses[back]

    def judge(self, models: Array, peer: int) -> Score:
        if self.judged is not None:
            row = models[peer : peer + 1]
            return Score(float(score_for(self, self.judged, peer, row)[0]), public=False)
        return Score(super().judge(models, peer).value, self.records.held_out is not None)

    def at_home(self, ids: Ints, models: Array) -> Array:
        self._check_models(ids, models)
        return fitted_at_home(self, ids, models)

    def recipe(self) -> Recipe | None:
        found = self.records.recipe
        return found if found is None else replace(found, classes=self._class_names())

    def _class_names(self) -> tuple[str, ...]:
        """The classes a model tells apart, in the order of its answers."""
        return self.records.classes if self.classifies else ()

    def constants(self) -> Constants:
        """From the declared row bound R and clip: lipschitz R min(L, C), smoothness R^2 beta + l2
        (walk:F-2).

        Without declared bound there is no Lipschitz constant, and smoothness is read off the
        largest record.
        """
        bound, loss = self.records.row_bound, self.loss
        if isfinite(bound):
            return Constants(
                loss.lipschitz * bound, loss.smoothness * bound**2 + self.l2, self.l2, "declared"
            )
        largest = max(
            float(np.einsum("kmp,kmp->km", b.features, b.features).max())
            for b in self.records.blocks
        )
        return Constants(inf, loss.smoothness * largest + self.l2, self.l2, "records")

    def sensitivities(self, answer: str, order: int) -> Sensitivities:
        """2 L / m for gradients, 2 L / (m l2) for models fitted alone (perso:DP-7, PERSO-13)."""
        strength = np.full(self.peers, self.l2)
        return linear_sensitivities(
            answer, order, self.constants(), self.records, strength, self.outputs
        )

    def describe(self) -> Manifest:
        sizes, manifest = self.records.sizes, self.records.manifest
        if self.outputs > 1 and self.records.classes_from == "private rows":
            occur = Fact(f"the classes: {listed(self.records.classes)}", "private rows")
            manifest = {
                **manifest,
                "public": [*cast(list[object], manifest.get("public", [])), occur.describe()],
            }
        return {
            "task": type(self).__name__,
            "peers": self.peers,
            "dim": self.dim,
            "l2": self.l2,
            "derivative_clip": self.derivative_clip,
            "records": int(sizes.sum()),
            "records_per_peer": [int(sizes.min()), int(sizes.max())],
            "classes": list(self.records.classes) if self.classifies else [],
            "row_bound": self.records.row_bound if isfinite(self.records.row_bound) else None,
            **manifest,
            **({"used": self.records.used} if self.records.used else {}),
            **self._judging(),
            **({"local": list(self.local)} if self.local else {}),
        }

    def _judging(self) -> Manifest:
        """What models are judged on, where it is not the public part."""
        if self.judged is None:
            return {}
        return {
            "judged_on": "own test records",
            "test": 0.0,  # no score is measured on public records
            "test_records": int(self.judged.sizes.sum()),
        }

    def references(self) -> dict[str, float]:
        """The metric of models fitted by each peer alone, and of one model fitted on all records in
        one place.

        Both minimize the same loss, without noise, under a weak ridge of max(l2, 0.01 / m) for m
        records (1 / m with own test records). Both also for the peer that is worst off. With own
        test records also the models fitted alone on everybody's, and the best that one answer for
        all can do.
        """
        return self._compared(*self._reference_models())

    def comparison(self, shared: Array) -> tuple[dict[str, float], Joining | None]:
        alone, central = self._reference_models()
        public = self.records.held_out
        if self.peers > SHOWN_APART or (public is None and self.judged is None):
            return self._compared(alone, central), None
        everyone = np.arange(self.peers)
        names = cast(list[str], self.records.used.get("peer_names") or [])
        tested = np.full(self.peers, 0 if public is None else len(public.targets))

        def scores(models: Array) -> tuple[float, ...]:
            each = np.broadcast_to(models, (self.peers, self.dim))
            if self.judged is not None:
                return tuple(own_scores(self, self.judged, each).tolist())
            return tuple(self._scored(each)[0].tolist())

        joining = Joining(
            metric=self.metric,
            higher=self._higher_is_better(),
            own_test=self.judged is not None,
            names=tuple(names) or tuple(f"peer {peer}" for peer in range(self.peers)),
            records=tuple(self.records.sizes.tolist()),
            test_records=tuple((tested if self.judged is None else self.judged.sizes).tolist()),
            alone=scores(alone),
            together=scores(shared),
            own_part=scores(self.at_home(everyone, shared)) if self.local else None,
            pooled=scores(central),
            local=self.local,
        )
        return self._compared(alone, central), joining

    def _compared(self, alone: Array, central: Array) -> dict[str, float]:
        one, each = self.evaluate(central), self.evaluate(alone)
        found = {"alone": each[self.metric], "central": one[self.metric]}
        found |= {"alone_worst": each["worst"], "central_worst": one["worst"]}
        if self.judged is not None:
            found["alone_everybody"] = each["everybody"]
            found["one_answer"] = one_answer(self, self.judged)
        return found

    def _reference_models(self) -> tuple[Array, Array]:
        """Each peer's own model  # (n, d), and that of all records in one place  # (1, d)."""
        everyone = np.arange(self.peers)
        penalty = REFERENCE_PENALTY if self.judged is None else OWN_PENALTY
        strengths = np.maximum(self.l2, penalty / self.records.sizes)
        alone = self._solve(
            everyone, np.zeros((self.peers, self.dim)), strengths, REFERENCE_TOLERANCE
        )
        pool = self.records.together()
        weak = np.array([max(self.l2, penalty / pool.targets.size)])
        center = np.zeros((1, self.outputs, self.records.columns))
        central = self._minimize(pool, center, weak, REFERENCE_TOLERANCE).reshape(1, self.dim)
        return alone, central

    @classmethod
    @abstractmethod
    def _encode(cls, table: Table) -> tuple[Array, tuple[str, ...], str]:
        """Targets as this task wants them, the names of the classes, and a sentence for the
        manifest."""

    @abstractmethod
    def _check(self) -> None:
        """Refuse records this loss cannot mean anything on."""

    @abstractmethod
    def _measure(self, scores: Array, targets: Array) -> Array:
        """The metric of each model from its scores on the held-out part."""  # (k,)

    @abstractmethod
    def _higher_is_better(self) -> bool:
        """Whether a larger metric is a better one."""

    @abstractmethod
    def _minimize(self, part: Part, center: Array, strength: Array, tolerance: float) -> Array:
        """argmin of the mean loss + (strength/2) ||W - center||^2, for each peer of the part."""  # (k, c, p)

    def _gradient(self, parts: Iterator[Part], ids: Ints, x: Array) -> Array:
        self._check_models(ids, x)
        answer = np.empty(x.shape)
        shape, loss = (-1, self.outputs, self.records.columns), self.loss
        for part in parts:
            some = x[part.rows]
            slopes = loss.slope(
                np.matmul(part.features, some.reshape(shape).swapaxes(1, 2)), part.targets
            )
            slopes *= part.weights[:, :, None]
            if isinstance(part.rows, slice):
                pulled = answer[part.rows]
                np.matmul(slopes.swapaxes(1, 2), part.features, out=pulled.reshape(shape))
            else:
                pulled = np.matmul(slopes.swapaxes(1, 2), part.features).reshape(some.shape)
            if self.l2:
                pulled += self.l2 * some
            if not isinstance(part.rows, slice):
                answer[part.rows] = pulled
        return answer

    def _solve(self, ids: Ints, center: Array, strength: Array, tolerance: float) -> Array:
        answer = np.empty(center.shape)
        shape = (-1, self.outputs, self.records.columns)
        for part in self.records.parts(ids, self.dim):
            solved = self._minimize(
                part, center[part.rows].reshape(shape), strength[part.rows], tolerance
            )
            answer[part.rows] = solved.reshape(-1, self.dim)
        return answer

    def _sample(self) -> Sample:
        if self.records.held_out is not None:
            return self.records.held_out
        pool = self.records.together()
        return Sample(pool.features[0], pool.targets[0])

    def _check_models(self, ids: Ints, x: Array) -> None:
        if x.shape != (len(ids), self.dim):
            raise ConfigError(
                f"models are {x.shape} for {len(ids)} peers; give ({len(ids)}, {self.dim})"
            )


def distinct_rows(rows: Array) -> tuple[Ints, Ints]:
    """The first of each kind of equal rows, bit for bit, in order; and which of them every row
    is."""
    if rows.shape[1] == 0 or len(rows) < 2:
        return np.arange(len(rows)), np.arange(len(rows))
    bits = (
        np.ascontiguousarray(rows)
        .view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
        .reshape(-1)
    )
    _, first, back = np.unique(bits, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    return first[order], place[back.reshape(-1)]
