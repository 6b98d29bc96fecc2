"""Pairwise: every peer holds labeled points, all want one model that is good on pairs of them
(perso:PAIR-7).

    F(x) = (1/n^2) sum over peers u, v of h(x; point_u, point_v)         h: see `pair_losses`

What gossip dual averaging minimizes. A point is a row of features with its label last; a peer with
several points counts once, the loss of two peers is the average over their pairs of points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import numpy as np
from pydantic import Field

from bruit.arrays import Array, Ints
from bruit.digests import ASIDE
from bruit.errors import ConfigError
from bruit.tasks.data.choice import EVERYTHING, Choice
from bruit.tasks.data.formats.frames import Frame
from bruit.tasks.data.own_rows import Agreement
from bruit.tasks.data.points import Points
from bruit.tasks.data.preparation import Preparation, prepare
from bruit.tasks.data.public import NOTHING, Agreed, Fact, counts, said
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.sources import load
from bruit.tasks.data.table import Table
from bruit.tasks.kinds.kind import TABLE, TaskKind, table_keys
from bruit.tasks.pairs.losses import LOSSES, PairLoss, ScoreLoss, named_loss, some
from bruit.tasks.pairs.own_points import (
    agreed_points,
    from_pairwise_csv,
    kept,
    points_of,
)
from bruit.tasks.records import Records, refuse_long_rows
from bruit.tasks.task import Constants, Manifest, Score, Task

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection

JUDGED = 4  # models whose loss is computed at each evaluation
FEW = 200  # points among whose pairs it is
POOLED = 1000  # points of the reference that is fitted in one place
PREPARED = Fact(
    "columns, their centers and scales, classes, the loss, and how many points a peer shows at most",
    "agreed",
)
GRADED = 20  # labels up to which ranking keeps strata


@dataclass(frozen=True, eq=False)
class Pairwise(Task):
    """Points (features, label) of the peers, a loss, and points of nobody to be judged on (all
    points if None)."""

    answers: ClassVar[frozenset[str] | None] = frozenset({"a loss of two points"})

    points: Points
    loss: PairLoss
    _: KW_ONLY
    held_out: Array | None = None
    row_bound: float = inf
    manifest: Manifest = field(default_factory=dict)
    used: Manifest = field(default_factory=dict, metadata=ASIDE)
    _recipe: Recipe | None = None

    def __post_init__(self) -> None:
        if self.points.columns < 2:
            raise ConfigError(
                f"a labeled point has features and a label last, found {self.points.columns} "
                f"numbers"
            )
        refuse_long_rows(self.points.rows[:, :-1], self.points.owners, self.row_bound)
        if self.points.peers > 1:
            self.loss.check(self.points.rows[:, -1])
        if self.held_out is not None:
            self.loss.check(self.held_out[:, -1])

    @staticmethod
    def of(
        features: Array,
        labels: Array | Ints,
        loss: str | PairLoss = "auc",
        owners: Ints | None = None,
        codebook: Array | None = None,
    ) -> Pairwise:
        """From arrays in hand, one point a peer unless owners are named; codebook: rows (features,
        label)."""
        rows = np.column_stack(
            (np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.float64))
        )
        points = Points.of(rows, owners)
        return Pairwise(
            points if codebook is None else points.coded(codebook, 1),
            named_loss(loss) if isinstance(loss, str) else loss,
            _recipe=Recipe.plain([f"x{k}" for k in range(rows.shape[1] - 1)]),
        )

    @staticmethod
    def load(
        data: str | Path | Frame,
        loss: str = "auc",
        peers: int | None = None,
        split: str = "iid",
        seed: int = 0,
        *,
        standardize: str = "public",
        rows: str = "unit",
        test: float = 0.2,
        label: str | None = None,
        owner: str | None = None,
        components: int | None = None,
        bins: int | None = None,
        room: int | None = None,
        agreed: Agreed = NOTHING,
        choice: Choice = EVERYTHING,
    ) -> Pairwise:
        """A named set or a user's file, dealt to peers as for other tasks.

        bins: peers show the nearest of so many points, found by k-means on the public part, a share
        for each label. room: how many points a peer shows at most, as participants agree who do
        not see each other's records.
        """
        table, chosen = load(data, label, owner, agreed, choice), named_loss(loss)
        records = prepare(
            table,
            *_encode(table, chosen),
            Preparation(
                peers=peers,
                split=split,
                seed=seed,
                standardize=standardize,
                rows=rows,
                test=test,
                components=components,
                agreed=agreed,
            ),
        ).records()
        points = replace(_points(records), room=room)
        public = None
        if records.held_out is not None:
            public = np.column_stack((records.held_out.features, records.held_out.targets))
        if bins is not None:
            if public is None:
                raise ConfigError(
                    "a codebook is found on public records; hold out some of them: test > 0"
                )
            points = points.coded(public_codebook(public, bins, seed), 1)
        return Pairwise(
            points,
            chosen,
            held_out=public,
            row_bound=records.row_bound,
            manifest=records.manifest,
            used=_measured(records.used, points, public),
            _recipe=records.recipe,
        )

    @property
    def peers(self) -> int:
        return self.points.peers

    @property
    def dim(self) -> int:
        return self.loss.dim(self.points.columns - 1)

    @property
    def width(self) -> int:
        return self.points.width

    @property
    def metric(self) -> str:
        return self.loss.metric

    def value(self, ids: Ints) -> Array:
        """What the peers show: labeled points, or rows that name one of the codebook."""
        return self.points.show(ids)

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        (left, here), (right, there) = (self.points.read(rows, uniform) for rows in (x, y))
        return self.loss.gradient(models, left, here, right, there)

    def gradient(self, ids: Ints, x: Array) -> Array:
        raise ConfigError(
            "the loss of a pair is no peer's own: this task has no gradient of one peer; use "
            "dual-averaging"
        )

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.gradient(ids, x)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return self.gradient(ids, x)

    def objective(self, models: Array) -> Array:
        """For observers only: F at each model  # (k,)."""
        rows, weights = self.points.rows[None], self._weights()
        return np.array(
            [weights @ self.loss.value(model[None], rows, rows)[0] @ weights for model in models]
        )

    def held_bias(self, models: Array, held: Ints) -> Array:
        """For observers only: how far the gradients of the pairs at hand, peer u with the point of
        held[u], are from those of all pairs: what gossip adds to dual averaging, on average over
        peers (perso:PAIR-8)."""  # (dim,)
        if self.points.most > 1 or self.points.codebook is not None:
            raise ConfigError(
                "the bias of held points is computed for one point a peer, shown as it is"
            )
        rows, one = self.points.show(np.arange(self.peers)), np.ones((self.peers, 1))
        at_hand = self.loss.gradient(models, rows[:, None], one, rows[held][:, None], one)
        share = np.full((self.peers, self.peers), 1.0 / self.peers)
        everywhere = self.loss.gradient(models, rows[:, None], one, rows[None], share)
        return np.asarray((at_hand - everywhere).mean(axis=0))

    def _weights(self) -> Array:
        """What each point counts: 1 / (n m_u)."""
        sizes = np.bincount(self.points.owners)
        return np.asarray(1.0 / (self.peers * sizes[self.points.owners]))

    def evaluate(self, models: Array) -> dict[str, float]:
        """The metric (mean over peers, worst peer) on held-out points, and the mean loss of a pair
        there."""
        if models.ndim != 2 or models.shape[1] != self.dim:
            raise ConfigError(
                f"models are {models.shape}; give one row of {self.dim} numbers a peer"
            )
        test_points = self.points.rows if self.held_out is None else self.held_out
        scores, few = self.loss.score(models, test_points), some(test_points, FEW)[None]
        losses = [
            float(self.loss.value(model[None], few, few).mean()) for model in some(models, JUDGED)
        ]
        return {
            self.metric: float(scores.mean()),
            "worst": float(scores.min()),
            "loss": float(np.mean(losses)),
        }

    def judge(self, models: Array, peer: int) -> Score:
        return Score(super().judge(models, peer).value, self.held_out is not None)

    @property
    def kind(self) -> str:
        return f"pairwise {self.loss.name}"

    def recipe(self) -> Recipe | None:
        return self._recipe

    def constants(self) -> Constants:
        slope = self.loss.lipschitz(self.row_bound)
        return Constants(slope, slope**2, 0.0, "declared")

    def describe(self) -> Manifest:
        shown = {} if self.points.codebook is None else {"codebook": len(self.points.codebook)}
        return {
            "task": "Pairwise",
            "loss": self.loss.name,
            "peers": self.peers,
            "dim": self.dim,
            "points": len(self.points.rows),
            **shown,
            "public": said((counts(np.bincount(self.points.owners), "points"),)),
            **self.manifest,
            **({"used": self.used} if self.used else {}),
        }

    def references(self) -> dict[str, float]:
        """Alone, a peer of one class learns nothing: the model 0. In one place: F minimized on at
        most 1000 points."""
        alone = self.evaluate(np.zeros((1, self.dim)))[self.metric]
        return {"alone": alone, "central": self.evaluate(self.minimizer()[None])[self.metric]}

    def minimizer(self, penalty: float = 1e-6) -> Array:
        """For observers only: the model that minimizes F + penalty |x|^2, over at most 1000 of the
        points."""
        from scipy.optimize import minimize

        rows = some(self.points.rows, POOLED)[None]
        share = np.full((1, rows.shape[1]), 1.0 / rows.shape[1])

        def worth(x: Array) -> tuple[float, Array]:
            loss = float(self.loss.value(x[None], rows, rows).mean()) + penalty * float(x @ x)
            return loss, self.loss.gradient(x[None], rows, share, rows, share)[0] + 2 * penalty * x

        return np.asarray(minimize(worth, np.zeros(self.dim), jac=True, method="L-BFGS-B").x)


def _measured(used: Manifest, points: Points, public: Array | None) -> Manifest:
    """What is used, with a word on what is measured on a part of the points only."""
    test_points = len(points.rows) if public is None else len(public)
    notes = (
        [f"the loss is measured among {FEW} of {test_points} points"] if test_points > FEW else []
    )
    if len(points.rows) > POOLED:
        notes.append(
            f"the reference of all data in one place is fitted on {POOLED} of {len(points.rows)} "
            f"points"
        )
    return {**used, "in_words": [*cast(list[object], used["in_words"]), *notes]}


def public_codebook(public: Array, bins: int, seed: int = 0) -> Array:
    """Typical points (features, label): k-means of the public points of each label, `bins` of them
    in all."""
    from sklearn.cluster import KMeans

    labels = np.unique(public[:, -1])
    if bins < 2 * len(labels):
        raise ConfigError(
            f"a codebook of {bins} points is too small for {len(labels)} labels; ask for at least "
            f"{2 * len(labels)}"
        )
    share = -(-bins // len(labels))
    books = []
    for label in labels:
        mine = public[public[:, -1] == label, :-1]
        count = min(share, len(np.unique(mine, axis=0)))
        centers = KMeans(count, n_init=4, random_state=seed).fit(mine).cluster_centers_
        books.append(np.column_stack((centers, np.full(count, label))))
    return np.concatenate(books)


def _encode(table: Table, loss: PairLoss) -> tuple[Array, tuple[str, ...], str]:
    """Labels as the loss wants them: two classes for auc, an order for ranking, classes for a
    metric."""
    from bruit.tasks.logistic import Logistic

    if isinstance(loss, ScoreLoss) and not loss.hinge:
        return Logistic._encode(table)
    values = table.label_values()
    names = tuple(table.label_text(value) for value in values) if len(values) <= GRADED else ()
    return (
        table.labels,
        names,
        "labels: in the order of their numbers" if isinstance(loss, ScoreLoss) else "labels",
    )


def _points(records: Records) -> Points:
    """The records of all peers as labeled points."""
    rows, owners = [], []
    for part in records.parts(np.arange(records.peers), 1):
        peers = np.arange(records.peers)[part.rows]
        kept = part.weights > 0
        rows.append(np.column_stack((part.features[kept], part.targets[kept])))
        owners.append(np.repeat(peers, kept.sum(axis=1)))
    return Points(np.concatenate(rows), np.concatenate(owners))


class PairwiseKind(TaskKind):
    """Points (features, label) of the peers, a loss, and points of nobody to be judged on (all
    points if None)."""

    name = "pairwise"
    task = Pairwise
    keys = TABLE | {"rows", "loss", "bins"}
    own_keys: ClassVar[Mapping[str, Any]] = {"points": Annotated[int, Field(ge=1)]}
    of_pairs = True
    held = True
    scored = True

    def build(self, section: TaskSection, peers: int, seed: int) -> Pairwise:
        keys = table_keys(section, peers, seed)
        return Pairwise.load(
            section.data or "",
            section.loss,
            bins=section.bins,
            room=getattr(section, "points", None),
            rows=section.rows,
            **keys,
        )

    def share(self, task: Task, peer: int) -> dict[str, Any]:
        if not isinstance(task, Pairwise) or task.loss.name not in LOSSES:
            return super().share(task, peer)
        mine = task.points.of_peer(peer)
        columns = {
            "features": mine.rows[:, :-1],
            "targets": mine.rows[:, -1],
            "loss": np.str_(task.loss.name),
            "row_bound": np.float64(task.row_bound),
            **kept(mine),
        }
        if task.held_out is not None:
            columns |= {
                "public_features": task.held_out[:, :-1],
                "public_targets": task.held_out[:, -1],
            }
        return columns

    def agreed(self, section: TaskSection) -> Mapping[str, Any]:
        return {"loss": section.loss, **agreed_points(section)}

    def own_task(self, columns: Mapping[str, Any], recipe: Recipe | None, among: int) -> Pairwise:
        rows, public = np.column_stack((columns["features"], columns["targets"])), None
        if "public_features" in columns:
            public = np.column_stack((columns["public_features"], columns["public_targets"]))
        return Pairwise(
            points_of(rows, columns),
            named_loss(str(columns["loss"])),
            held_out=public,
            row_bound=float(columns["row_bound"]),
            manifest={"data": {"name": "own records"}, "public": said((PREPARED,))},
            _recipe=recipe,
        )

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        loss = named_loss(agreement.task.loss)
        ordered = isinstance(loss, ScoreLoss)
        two = isinstance(loss, ScoreLoss) and not loss.hinge
        return from_pairwise_csv(path, agreement, ordered, two, tell)
