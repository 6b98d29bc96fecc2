"""A participant's own records: one file that never leaves its folder, and the task it makes.

The file holds prepared rows (the preparation was agreed on, see the experiment), labels, and the public held-out part
for scores. A peer knows only its own row of the task: a question about anybody else is refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from bruit.arrays import Array, Ints
from bruit.errors import ConfigError, LocalProtocolError
from bruit.tasks import Logistic, Mean, Ridge, Softmax, Task
from bruit.tasks.linear import LinearTask
from bruit.tasks.public import Fact, said
from bruit.tasks.recipe import Recipe, recipe_from
from bruit.tasks.records import Sample, pack
from bruit.tasks.split import Split
from bruit.tasks.task import Constants, Manifest, Score
from bruit.whole_files import to_json, write_whole

PREPARED = Fact("columns, their centers and scales, classes and the bound on rows", "agreed")
KINDS: dict[str, Any] = {"logistic": Logistic, "ridge": Ridge, "softmax": Softmax}
HELD = ("mean", "histogram", *KINDS)  # kinds of tasks whose records a participant can hold


@dataclass(frozen=True, eq=False)
class OwnTask(Task):
    """The part of a task that one peer holds: `inner` has one peer, which is peer `me` of `among`."""

    inner: Task
    me: int
    among: int

    @property
    def peers(self) -> int:
        return self.among

    @property
    def dim(self) -> int:
        return self.inner.dim

    @property
    def metric(self) -> str:
        return self.inner.metric

    def _mine(self, ids: Ints) -> Ints:
        if np.any(ids != self.me):
            raise LocalProtocolError(f"peer {self.me} was asked for the records of peer {ids[ids != self.me][0]}")
        return np.zeros_like(ids)

    def value(self, ids: Ints) -> Array:
        return self.inner.value(self._mine(ids))

    def gradient(self, ids: Ints, x: Array) -> Array:
        return self.inner.gradient(self._mine(ids), x)

    def gradient_sampled(self, ids: Ints, x: Array, uniforms: Array) -> Array:
        return self.inner.gradient_sampled(self._mine(ids), x, uniforms)

    def prox(self, ids: Ints, x: Array, rho: float) -> Array:
        return self.inner.prox(self._mine(ids), x, rho)

    def pair_value(self, x: Array, y: Array, uniform: float) -> Array:
        return self.inner.pair_value(x, y, uniform)

    def pair_gradient(self, models: Array, x: Array, y: Array, uniform: float) -> Array:
        return self.inner.pair_gradient(models, x, y, uniform)

    @property
    def scored_on(self) -> str:
        """What `evaluate` measures a model on, in words."""
        if isinstance(self.inner, LinearTask):
            return "public records" if self.inner.records.held_out is not None else "this peer's own records"
        return "nothing: no peer knows the true answer"

    def evaluate(self, models: Array) -> dict[str, float]:
        """How good models are on what this peer may look at; no score of a mean, whose own value is no reference."""
        return self.inner.evaluate(models) if isinstance(self.inner, LinearTask) else {}

    def constants(self) -> Constants:
        return self.inner.constants()

    def describe(self) -> Manifest:
        return self.inner.describe()

    def references(self) -> dict[str, float]:
        return self.inner.references() if isinstance(self.inner, LinearTask) else {}

    def judge(self, models: Array, peer: int) -> Score:
        return self.inner.judge(models, peer)

    @property
    def kind(self) -> str:
        return self.inner.kind

    def recipe(self) -> Recipe | None:
        return self.inner.recipe()


def write_share(task: Task, kind: str, peer: int, path: Path) -> None:
    """One peer's records of a whole task, for demonstrations and rehearsals on data one may lose."""
    columns: dict[str, Any] = {"kind": np.str_(kind)}
    if isinstance(task, Mean):
        columns["values"] = task.values[peer : peer + 1]
    elif isinstance(task, LinearTask):
        records = task.records
        part = next(records.parts(np.array([peer]), 1))
        real = part.weights[0] > 0
        columns |= {
            "features": part.features[0][real], "targets": part.targets[0][real],
            "classes": np.array(records.classes if task.classifies else (), np.str_),
            "row_bound": np.float64(records.row_bound),
            "label_unit": np.float64(records.label_unit), "l2": np.float64(task.l2),
            "derivative_clip": np.float64(np.nan if task.derivative_clip is None else task.derivative_clip),
        }  # fmt: skip
        if records.held_out is not None:
            columns |= {"public_features": records.held_out.features, "public_targets": records.held_out.targets}
    else:
        raise ConfigError(f"a task of type {type(task).__name__} cannot be dealt to participants")
    columns |= recipe_column(task.recipe())
    write_whole(path, lambda file: np.savez_compressed(file, **columns))
    path.chmod(0o600)


def recipe_column(recipe: Recipe | None) -> dict[str, Any]:
    """How the rows were prepared, for the model's file: names and agreed constants, no row."""
    return {} if recipe is None else {"recipe": np.str_(to_json(recipe.describe()))}


def read_share(path: Path, me: int, among: int, agreed: str | None = None) -> tuple[OwnTask, str]:
    """The task of peer `me` from its own file, and the file's digest; `agreed` is the kind the experiment names."""
    if not path.is_file():
        raise ConfigError(f"the records {path} are missing; every participant keeps its own file there")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with np.load(path, allow_pickle=False) as stored:
            columns = {name: stored[name] for name in stored.files}
        kind = str(columns["kind"])
        if agreed is not None and kind != agreed:
            raise ConfigError(f"the records {path} are for a task of kind {kind!r}, but {agreed!r} was agreed on")
        recipe = recipe_from(json.loads(str(columns["recipe"]))) if "recipe" in columns else None
        counted = kind in ("mean", "histogram")
        inner: Task = Mean(columns["values"], _recipe=recipe) if counted else _linear(kind, columns, recipe)
    except (KeyError, ValueError, TypeError, OSError, EOFError, BadZipFile) as error:
        raise ConfigError(f"the records {path} cannot be read: {error}") from None
    return OwnTask(inner, me, among), digest


def _linear(kind: str, columns: dict[str, Any], recipe: Recipe | None) -> Task:
    if kind not in KINDS:
        raise ConfigError(f"records are of kind {kind!r}; known: {', '.join(HELD)}")
    count = len(columns["targets"])
    held_out = Sample(columns["public_features"], columns["public_targets"]) if "public_features" in columns else None
    records = pack(
        columns["features"], columns["targets"], Split(np.arange(count), np.array([0, count])), held_out=held_out,
        classes=tuple(str(name) for name in columns["classes"]), row_bound=float(columns["row_bound"]),
        label_unit=float(columns["label_unit"]),
        manifest={"data": {"name": "own records"}, "public": said((PREPARED,))}, recipe=recipe,
    )  # fmt: skip
    clip = float(columns["derivative_clip"])
    task: Task = KINDS[kind](records, float(columns["l2"]), None if np.isnan(clip) else clip)
    return task
