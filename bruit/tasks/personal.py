"""Personal tasks: every peer wants a model of its own, and is judged on records of its own.

    f_u(x) = (1/m_u) sum_j loss(record j of u) + (l2/2) |x|^2 + (ridge_u/2) |x|^2

A linear task with one more regularizer for each peer (perso:PERSO-1 writes (1/m_u) |x|^2, which is
ridge_u = 2/m_u; sizes are public), and, for observers, test records by peer instead of a common
test set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError
from bruit.tasks.data.agreed_columns import AgreedColumns, agreed_columns
from bruit.tasks.data.choice import EVERYTHING, Choice
from bruit.tasks.data.formats.frames import Frame
from bruit.tasks.data.own_rows import Agreement
from bruit.tasks.data.preparation import Preparation, prepare
from bruit.tasks.data.public import NOTHING, Agreed
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.sources import load
from bruit.tasks.kinds.kind import MODEL, TaskKind, judged_share, kinds, model_keys
from bruit.tasks.kinds.linear_kind import LinearKind
from bruit.tasks.linear import LinearTask
from bruit.tasks.newton import TOLERANCE
from bruit.tasks.records import Records
from bruit.tasks.scores.own_scores import own_scores
from bruit.tasks.sensitivity import linear_sensitivities
from bruit.tasks.task import MODELS, Constants, Manifest, Score, Sensitivities, Task

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection


@dataclass(frozen=True, eq=False)
class Personal(Task):
    """A model for each peer: a linear task, and a regularizer and own test records for each
    (training ones if None)."""

    answers: ClassVar[frozenset[str] | None] = MODELS

    shared: LinearTask
    ridge: Array  # (n,)
    held_out: Records | None = None

    def __post_init__(self) -> None:
        if self.ridge.shape != (self.shared.peers,):
            raise ConfigError(
                f"ridge is {self.ridge.shape} for {self.shared.peers} peers; give one number a peer"
            )
        if not bool((np.isfinite(self.ridge) & (self.ridge >= 0)).all()):
            raise ConfigError(
                f"the ridge of a peer must be a number >= 0, found {self.ridge.min()}"
            )
        test = self.held_out
        if test is not None and (test.peers, test.columns) != (
            self.shared.peers,
            self.shared.records.columns,
        ):
            raise ConfigError(
                f"the test records are of {test.peers} peers and {test.columns} columns, the "
                f"training "
                f"records of {self.shared.peers} and {self.shared.records.columns}; make them equal"
            )

    @staticmethod
    def load(
        kind: type[LinearTask],
        data: str | Path | Frame,
        peers: int | None = None,
        split: str = "iid",
        seed: int = 0,
        *,
        ridge: float = 1.0,
        own_test: float = 0.2,
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
        columns_file: str | Path | AgreedColumns | None = None,
    ) -> Personal:
        """A named set or a user's file, as for the linear task `kind` (`LinearTask.load`), for
        models of one's own.

        ridge: peer u, who learns from m_u records, gets the regularizer ridge / m_u. own_test: the
        share of its own records that a peer is judged on, at least one; 0 judges it on those it
        learns from. The public part (test) scales columns and judges nobody.
        """
        if not (isfinite(ridge) and ridge >= 0):
            raise ConfigError(f"ridge is {ridge}; it must be zero or a positive number")
        columns = agreed_columns(columns_file)
        if columns is not None:
            columns.refuse(kind.__name__.lower(), kind.classifies)
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
            own_test=own_test,
        )
        table = load(data, label, owner, agreed, choice, columns=columns)
        ready = prepare(table, *kind._encode(table), choices)
        records = ready.records()
        return Personal(kind(records, l2, derivative_clip), ridge / records.sizes, ready.own_test())

    @property
    def peers(self) -> int:
        return self.shared.peers

    @property
    def dim(self) -> int:
        return self.shared.dim

    @property
    def metric(self) -> str:
        return self.shared.metric

    @property
    def sizes(self) -> Ints:
        """Training records of each peer: public."""
        return self.shared.records.sizes

    def value(self, ids: Ints) -> Array:
        """Each peer's own model, the minimizer of f_u; needs a positive regularizer."""
        strength = self._strength(ids)
        if not bool((strength > 0).all()):
            raise ConfigError(
                f"peer {ids[strength <= 0][0]} has no regularizer, so the model it fits alone may"
                " not exist; give it a ridge"
            )
        return self.shared._solve(ids, np.zeros((len(ids), self.dim)), strength, TOLERANCE)

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self.shared.gradient(ids, x) + self.ridge[ids][:, None] * x

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.shared.gradient_sampled(ids, x, uniforms) + self.ridge[ids][:, None] * x

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        """argmin f_u(z) + |z - x|^2 / (2 rho), by completing the square with the regularizers."""
        if not (rho > 0 and isfinite(rho)):
            raise ConfigError(f"rho is {rho}; a proximal step needs a positive, finite rho")
        strength = self._strength(ids)
        center = x / (1.0 + rho * strength)[:, None]
        return self.shared._solve(ids, center, strength + 1.0 / rho, TOLERANCE)

    def cut_losses(self, ids: Ints, x: Array, ceiling: float) -> Array:
        return self.shared.cut_losses(ids, x, ceiling)

    def losses(self, ids: Ints, x: Array, ceiling: float = inf) -> Array:
        """f_u at each peer's own model, the loss of every record cut at the ceiling: what a graph
        is learned from.

        With a ceiling, replacing one of m records moves the answer by at most ceiling / m
        (perso:PERSO-14).
        """
        data = _mean_losses(self.shared, self.shared.records, ids, x, ceiling)
        return np.asarray(data + self._strength(ids) / 2 * (x * x).sum(axis=1))

    def evaluate(self, models: Array) -> dict[str, float]:
        """Each model on its peer's own test records: mean over peers, the worst peer, and the mean
        loss."""
        if models.shape != (self.peers, self.dim):
            raise ConfigError(
                f"models are {models.shape}; give one row a peer: {(self.peers, self.dim)}"
            )
        scores, everyone = self.scores(models), np.arange(self.peers)
        records = self.shared.records if self.held_out is None else self.held_out
        worst = scores.min() if self.shared._higher_is_better() else scores.max()
        loss = _mean_losses(self.shared, records, everyone, models).mean()
        return {self.metric: float(scores.mean()), "worst": float(worst), "loss": float(loss)}

    def scores(self, models: Array) -> Array:
        """The metric of each peer's model on its own test records, for observers."""  # (n,)
        records = self.shared.records if self.held_out is None else self.held_out
        return own_scores(self.shared, records, models)

    def judge(self, models: Array, peer: int) -> Score:
        return Score(float(self.scores(models)[peer]), public=False)

    @property
    def kind(self) -> str:
        return self.shared.kind

    def recipe(self) -> Recipe | None:
        return self.shared.recipe()

    def constants(self) -> Constants:
        known = self.shared.constants()
        return Constants(
            known.lipschitz,
            known.smoothness + float(self.ridge.max()),
            known.strong_convexity + float(self.ridge.min()),
            known.source,
        )

    def sensitivities(self, answer: str, order: int) -> Sensitivities:
        """2 L / m_u for gradients, 2 L / (m_u (l2 + ridge_u)) for models fitted alone
        (perso:PERSO-9, 10, 13)."""
        strength = self._strength(np.arange(self.peers))
        return linear_sensitivities(
            answer,
            order,
            self.shared.constants(),
            self.shared.records,
            strength,
            self.shared.outputs,
        )

    def describe(self) -> Manifest:
        scored_on = (
            "own test records" if self.held_out is not None else "the records they learn from"
        )
        return {
            **self.shared.describe(),
            "task": f"Personal {type(self.shared).__name__}",
            "judged_on": scored_on,
            "test": 0.0,  # no score is measured on public records
            "ridge": [float(self.ridge.min()), float(self.ridge.max())],
            "test_records": 0 if self.held_out is None else int(self.held_out.sizes.sum()),
        }

    def references(self) -> dict[str, float]:
        """The metric when every peer keeps the model it fits alone, and with one model from all
        records for all."""
        central = self.shared._minimize(
            self.shared.records.together(),
            np.zeros((1, self.shared.outputs, self.shared.records.columns)),
            np.array([max(self.shared.l2, 1e-2 / int(self.sizes.sum()))]),
            1e-4,
        )
        one = np.broadcast_to(central.reshape(1, self.dim), (self.peers, self.dim))
        alone = self.evaluate(self.value(np.arange(self.peers)))
        return {"alone": alone[self.metric], "central": self.evaluate(one)[self.metric]}

    def _strength(self, ids: Ints) -> Array:
        return np.asarray(self.shared.l2 + self.ridge[ids])


def _mean_losses(
    task: LinearTask, records: Records, ids: Ints, x: Array, ceiling: float = inf
) -> Array:
    """(1/m_u) sum_j min(loss, ceiling) at each peer's own model, without regularizers; no loss is
    negative."""
    answer = np.empty(len(ids))
    for part in records.parts(ids, task.dim):
        models = x[part.rows].reshape(-1, task.outputs, records.columns)
        values = task.loss.value(np.matmul(part.features, models.swapaxes(1, 2)), part.targets)
        answer[part.rows] = (np.minimum(values, ceiling) * part.weights).sum(axis=1)
    return answer  # (k,)


class PersonalKind(TaskKind):
    """A model for each peer: a linear task, and a regularizer and own test records for each
    (training ones if None)."""

    name = "personal"
    task = Personal
    keys = MODEL | {"model", "ridge"}
    pointless: ClassVar[Mapping[str, str]] = {
        "local": "every peer learns a model of its own already"
    }
    held = True

    def build(self, section: TaskSection, peers: int, seed: int) -> Personal:
        model = kinds()[section.model].task
        assert issubclass(model, LinearTask)
        own_test, keys = judged_share(section), model_keys(section, peers, seed)
        return Personal.load(
            model, section.data or "", ridge=section.ridge, own_test=own_test, **keys
        )

    def share(self, task: Task, peer: int) -> dict[str, Any]:
        """What the peer learns from; the records that it is judged on stay with the observer."""
        if not isinstance(task, Personal):
            return super().share(task, peer)
        return _linear(task.shared.kind).share(task.shared, peer)

    def agreed(self, section: TaskSection) -> Mapping[str, Any]:
        return {"model": section.model, "ridge": section.ridge}

    def own_task(self, columns: Mapping[str, Any], recipe: Recipe | None, among: int) -> Personal:
        shared = _linear(str(columns["model"])).own_task(columns, recipe, among)
        assert isinstance(shared, LinearTask)
        return Personal(shared, float(columns["ridge"]) / shared.records.sizes)

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        """As for the model that everybody has one of, with the regularizer that was agreed on."""
        return _linear(agreement.task.model).from_csv(path, agreement, tell) | dict(
            self.agreed(agreement.task)
        )


def _linear(model: str) -> LinearKind:
    """The kind of the models: a linear one, as the section [task] is checked."""
    kind = kinds()[model]
    assert isinstance(kind, LinearKind)
    return kind
