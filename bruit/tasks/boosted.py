"""Boosting: combine given base predictors h_1 .. h_K, of which a few are enough (perso:PERSO-6).

    f_u(x) = log sum_j exp(-margin_j),    margin_j = y_j sum_k x_k h_k(record j)          (it may be negative)
    gradient = -sum_j p_j y_j h(record j),    p = softmax(-margins)

Models lie in the ball |x|_1 <= radius, which the algorithm keeps. A record is the row of its K base
predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.data.choice import EVERYTHING, Choice
from bruit.tasks.data.formats.frames import Frame
from bruit.tasks.data.own_rows import (
    Agreement,
    own_recipe,
    places,
    read_rows,
    recipe_column,
)
from bruit.tasks.data.own_rows import features as own_features
from bruit.tasks.data.preparation import Preparation, PreparedData, prepare
from bruit.tasks.data.public import NOTHING, Agreed, Fact, Source, said
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.sources import load
from bruit.tasks.data.split import Split
from bruit.tasks.kinds.kind import TABLE, TaskKind, judged_share, table_keys
from bruit.tasks.logistic import Logistic
from bruit.tasks.records import Part, Records, pack
from bruit.tasks.stumps import Stumps
from bruit.tasks.task import Constants, Manifest, Score, Task

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection

REFERENCE_STEPS, REFERENCE_RADIUS = 100, 10.0
STUMPS = 4  # for each column, unless said
PREPARED = Fact("columns, their centers and scales, classes, and the stumps", "agreed")
AGREED_RANGE = 2.0  # thresholds lie within so many agreed scales of the agreed center


@dataclass(frozen=True, eq=False)
class Boosted(Task):
    """A combination of base predictors for each peer: their answers, labels -1 and 1, and own test
    records.

    Without test records a peer is judged on those it learns from.
    """

    answers: ClassVar[frozenset[str] | None] = frozenset({"gradients", "gradients from zero on"})

    records: Records
    held_out: Records | None = None

    def __post_init__(self) -> None:
        self.records.check_two_labels("boosting")
        test = self.held_out
        if test is not None and (test.peers, test.columns) != (
            self.records.peers,
            self.records.columns,
        ):
            raise ConfigError(
                f"the test records have {test.columns} base predictions of {test.peers} peers, the "
                f"training records {self.records.columns} of {self.records.peers}; make them equal"
            )

    @staticmethod
    def of(
        features: Array, targets: Array, owners: Ints, predictors: Callable[[Array], Array]
    ) -> Records:
        """The records of base predictions: `predictors` maps features (r, p) to predictions (r,
        K)."""
        predicted = predictors(np.asarray(features, np.float64))
        try:
            answers = np.asarray(predicted, np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the base predictors answered with no table of numbers: {error}"
            ) from error
        if answers.ndim != 2 or len(answers) != len(targets) or answers.shape[1] < 1:
            raise ConfigError(
                f"the base predictors answered with shape {answers.shape} for {len(targets)}"
                " records; they must give one row a record and one column a predictor"
            )
        records = Records.of(answers, targets, owners)
        if not isinstance(predictors, Stumps):
            return records
        names = [f"x{k}" for k in range(np.asarray(features).shape[1])]
        return replace(
            records, _recipe=Recipe.plain(names, classes=records.classes, stumps=predictors)
        )

    @staticmethod
    def load(
        data: str | Path | Frame,
        peers: int | None = None,
        split: str = "iid",
        seed: int = 0,
        *,
        predictors: int | None = None,
        own_test: float = 0.2,
        standardize: str = "public",
        test: float = 0.2,
        label: str | None = None,
        owner: str | None = None,
        components: int | None = None,
        agreed: Agreed = NOTHING,
        choice: Choice = EVERYTHING,
    ) -> Boosted:
        """A named set or a user's file of two classes, dealt to peers, with decision stumps as base
        predictors.

        predictors: how many stumps at least, four a column unless said, evenly over the range of
        each column in the public rows; without public rows, within two agreed scales of the agreed
        center. own_test: the share of its own records that a peer is judged on, at least one; 0
        judges it on those it learns from.
        """
        choices = Preparation(
            peers=peers,
            split=split,
            seed=seed,
            standardize=standardize,
            rows="none",
            test=test,
            components=components,
            agreed=agreed,
            own_test=own_test,
        )
        table = load(data, label, owner, agreed, choice)
        ready = prepare(table, *Logistic._encode(table), choices)
        stumps, where = _stumps(ready, standardize, predictors)
        source: Source = "agreed" if ready.held_out is None else "public rows"
        known = Fact(f"the {len(stumps.feature)} stumps, {where}", source)
        facts = [*cast(list[object], ready.manifest["public"]), known.describe()]
        manifest: Manifest = {
            **ready.manifest,
            "public": facts,
            "rows": "base predictions 1 and -1",
            "intercept": False,
        }
        recipe = replace(ready.recipe, stumps=stumps, intercept=False, rows="none")
        ready = replace(
            ready, rows=stumps(ready.rows[:, :-1]), held_out=None, manifest=manifest, recipe=recipe
        )
        return Boosted(ready.records(), ready.own_test())

    @property
    def peers(self) -> int:
        return self.records.peers

    @property
    def dim(self) -> int:
        return self.records.columns

    @property
    def metric(self) -> str:
        return "accuracy"

    @property
    def sizes(self) -> Ints:
        """Training records of each peer: public."""
        return self.records.sizes

    def value(self, ids: Ints) -> Array:
        raise ConfigError(
            "a boosted task has no model in closed form to average; run boosting with coupling 0 to"
            " fit every peer alone"
        )

    def gradient(self, ids: Ints, x: Array) -> Array:
        answer = np.empty(x.shape)
        for part in self.records.parts(ids, self.dim):
            answer[part.rows] = _gradient(part, x[part.rows])
        return answer

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        """The sum inside the logarithm is over the drawn records, counted as often as they were
        drawn."""
        answer = np.empty(x.shape)
        for part in self.records.drawn(ids, uniforms, self.dim):
            answer[part.rows] = _gradient(part, x[part.rows])
        return answer

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        raise ConfigError(
            "a boosted task answers no proximal questions; use boosting, which asks for gradients"
        )

    def losses(self, ids: Ints, x: Array, ceiling: float = inf) -> Array:
        """f_u at each peer's own model; there is nothing to cut, the ball of models bounds what a
        record can do."""
        if ceiling < inf:
            raise ConfigError(
                f"the boosting loss is not a mean that could be cut at {ceiling:g}, record by"
                " record; leave the ceiling out, its sensitivity follows from the radius"
            )
        return _losses(self.records, ids, x)

    def evaluate(self, models: Array) -> dict[str, float]:
        """Each model on its peer's own test records, a score of zero counting as class 1
        (perso:PERSO-6)."""
        if models.shape != (self.peers, self.dim):
            raise ConfigError(
                f"models are {models.shape}; give one row a peer: {(self.peers, self.dim)}"
            )
        scores = self.scores(models)
        records = self.records if self.held_out is None else self.held_out
        loss = _losses(records, np.arange(self.peers), models).mean()
        return {"accuracy": float(scores.mean()), "worst": float(scores.min()), "loss": float(loss)}

    def scores(self, models: Array) -> Array:
        """The accuracy of each peer's model on its own test records, for observers."""  # (n,)
        answer = np.empty(self.peers)
        records = self.records if self.held_out is None else self.held_out
        for part in records.parts(np.arange(self.peers), self.dim):
            predicted = np.matmul(part.features, models[part.rows][:, :, None])[:, :, 0] >= 0
            hits = (predicted == (part.targets > 0)) & (part.weights > 0)
            answer[part.rows] = hits.sum(axis=1) / (part.weights > 0).sum(axis=1)
        return answer

    def judge(self, models: Array, peer: int) -> Score:
        return Score(float(self.scores(models)[peer]), public=False)

    def recipe(self) -> Recipe | None:
        found = self.records.recipe
        return (
            found
            if found is None or len(found.classes) == 2
            else replace(found, classes=("-1", "1"))
        )

    def constants(self) -> Constants:
        return Constants(inf, self.largest() ** 2, 0.0, "records")

    def describe(self) -> Manifest:
        sizes = self.sizes
        scored_on = (
            "own test records" if self.held_out is not None else "the records they learn from"
        )
        used = {"used": self.records.used} if self.records.used else {}
        return {
            **self.records.manifest,
            **used,
            "task": "Boosted",
            "peers": self.peers,
            "dim": self.dim,
            "records": int(sizes.sum()),
            "records_per_peer": [int(sizes.min()), int(sizes.max())],
            "public": self.records.manifest.get("public", []),
            "judged_on": scored_on,
            "test": 0.0,  # no score is measured on public records
            "test_records": 0 if self.held_out is None else int(self.held_out.sizes.sum()),
        }

    def references(self) -> dict[str, float]:
        """The accuracy of what every peer boosts alone, and of one model boosted on all records,
        without noise.

        Both are the Frank-Wolfe steps of `boosting` without neighbors, in a ball of radius 10, wide
        enough not to matter.
        """
        everyone, pool = np.arange(self.peers), self.records.together()
        alone = _boost(lambda x: self.gradient(everyone, x), (self.peers, self.dim))
        one = _boost(lambda x: _gradient(pool, x), (1, self.dim))
        central = np.broadcast_to(one, (self.peers, self.dim))
        return {
            "alone": self.evaluate(alone)["accuracy"],
            "central": self.evaluate(central)["accuracy"],
        }

    def largest(self) -> float:
        """The largest base prediction, in size."""
        return max(float(np.abs(block.features).max()) for block in self.records.blocks)


def _stumps(ready: PreparedData, standardize: str, asked: int | None) -> tuple[Stumps, str]:
    """Stumps over public ranges of the columns, the intercept left out, and a word on where the
    ranges come from."""
    columns = ready.rows.shape[1] - 1
    count = _count(columns, asked)
    if ready.held_out is not None:
        shown = ready.held_out.features[:, :-1]
        return Stumps.over(
            shown.min(axis=0), shown.max(axis=0), count
        ), "over the ranges of the public records"
    if standardize != "agreed":
        raise ConfigError(
            "the thresholds of stumps lie within public ranges of the columns: hold out some "
            "records "
            '(test), or agree on scales (standardize = "agreed")'
        )
    return _agreed_stumps(
        columns, asked
    ), f"within {AGREED_RANGE:g} agreed scales of the agreed centers"


def _count(columns: int, asked: int | None) -> int:
    count = STUMPS * columns if asked is None else asked
    if count <= columns:
        raise ConfigError(
            f"predictors = {count} is one stump for each of {columns} columns, at the end of its"
            f" range, where it tells nothing; ask for at least {2 * columns}"
        )
    return count


def _agreed_stumps(columns: int, asked: int | None) -> Stumps:
    """Stumps within so many agreed scales of the agreed centers."""
    wide = np.full(columns, AGREED_RANGE)
    return Stumps.over(-wide, wide, _count(columns, asked))


def _margins(part: Part, x: Array) -> Array:
    scores: Array = np.matmul(part.features, x[:, :, None])[:, :, 0] * part.targets
    return np.where(part.weights > 0, scores, inf)  # padding weighs nothing


def _gradient(part: Part, x: Array) -> Array:
    margins = _margins(part, x)
    shares = np.exp(margins.min(axis=1)[:, None] - margins)
    shares /= shares.sum(axis=1)[:, None]
    pull: Array = np.matmul((shares * part.targets)[:, None, :], part.features)[:, 0]
    return -pull


def _boost(gradient: Callable[[Array], Array], shape: tuple[int, int]) -> Array:
    """x <- (1 - t) x - t radius sign(g_k) e_k, k = argmax |g_k|, t = 2 / (2 + step), by row, from 0
    (perso:PERSO-6)."""
    models, rows = np.zeros(shape), np.arange(shape[0])
    for step in range(1, REFERENCE_STEPS + 1):
        slope = gradient(models)
        best = np.abs(slope).argmax(axis=1)
        models *= 1 - 2 / (2 + step)
        models[rows, best] -= 2 / (2 + step) * REFERENCE_RADIUS * np.sign(slope[rows, best])
    return models


def _losses(records: Records, ids: Ints, x: Array) -> Array:
    answer = np.empty(len(ids))
    for part in records.parts(ids, records.columns):
        margins = _margins(part, x[part.rows])
        least = margins.min(axis=1)
        answer[part.rows] = np.log(np.exp(least[:, None] - margins).sum(axis=1)) - least
    return answer  # (k,)


class BoostedKind(TaskKind):
    """A combination of base predictors for each peer: their answers, labels -1 and 1, and own test
    records."""

    name = "boosted"
    task = Boosted
    keys = TABLE | {"own_test", "predictors"}
    pointless: ClassVar[Mapping[str, str]] = {
        "local": "every peer learns a combination of its own already"
    }
    held = True

    def build(self, section: TaskSection, peers: int, seed: int) -> Boosted:
        own_test, keys = judged_share(section), table_keys(section, peers, seed)
        return Boosted.load(
            section.data or "", predictors=section.predictors, own_test=own_test, **keys
        )

    def share(self, task: Task, peer: int) -> dict[str, Any]:
        """What the peer learns from; the records that it is judged on stay with the observer."""
        if not isinstance(task, Boosted):
            return super().share(task, peer)
        part = next(task.records.parts(np.array([peer]), 1))
        real = part.weights[0] > 0
        classes = np.array(task.records.classes, np.str_)
        features, targets = part.features[0][real], part.targets[0][real]
        return {"features": features, "targets": targets, "classes": classes}

    def own_task(self, columns: Mapping[str, Any], recipe: Recipe | None, among: int) -> Boosted:
        features, count = columns["features"], len(columns["targets"])
        if not count:
            raise ConfigError("this peer holds no record; who holds none takes no part")
        if not np.isfinite(features).all():
            raise ConfigError("a base prediction of this peer is not a finite number")
        records = pack(
            features,
            columns["targets"],
            Split(np.arange(count), np.array([0, count])),
            classes=tuple(str(name) for name in columns["classes"]),
            manifest={"data": {"name": "own records"}, "public": said((PREPARED,))},
            recipe=recipe,
        )
        return Boosted(records)

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        """Answers to stumps within two agreed scales of the agreed centers."""
        task = agreement.task
        if agreement.label is None:
            raise ConfigError("boosted needs a label: name its column with --label")
        if agreement.columns is None:
            raise ConfigError(
                "the thresholds of stumps lie within agreed ranges of the columns: agree on "
                "task.scales, or give --scales"
            )
        table = read_rows(path, agreement, tell)
        rows = own_features(table, agreement)
        stumps = _agreed_stumps(rows.shape[1], task.predictors)
        targets = 2 * places(table, agreement.label, agreement, two=True).astype(np.float64) - 1
        recipe = replace(own_recipe(table, agreement), stumps=stumps, intercept=False, rows="none")
        return {
            "features": stumps(rows),
            "targets": targets,
            "classes": np.array(agreement.classes, np.str_),
            **recipe_column(recipe),
        }
