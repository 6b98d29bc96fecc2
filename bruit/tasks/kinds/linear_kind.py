"""What the kinds logistic, ridge and softmax share: how a section, a participant's file and a CSV file
become their tasks.

    features   (cell - center) / scale of the named columns in the agreed order, an intercept, then the norm bounded
    target     as each kind says
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.data.agreed_columns import AgreedColumns
from bruit.tasks.data.agreed_rows import fitting, in_words, ready
from bruit.tasks.data.columns import Columns
from bruit.tasks.data.formats.tables import read_table
from bruit.tasks.data.own_rows import (
    Agreement,
    features,
    own_recipe,
    read_rows,
    recipe_column,
)
from bruit.tasks.data.public import Fact, said
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.split import Split
from bruit.tasks.kinds.kind import MODEL, TaskKind, model_keys
from bruit.tasks.linear import LinearTask
from bruit.tasks.records import Sample, finish_rows, pack
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection

PREPARED = Fact("columns, their centers and scales, classes and the bound on rows", "agreed")


class LinearKind(TaskKind):
    """Models that speak through scores of records."""

    task: ClassVar[type[LinearTask]]
    keys = MODEL | {"local"}
    held = True
    scored = True
    summed = True

    def build(self, section: TaskSection, peers: int, seed: int) -> Task:
        keys = model_keys(section, peers, seed)
        return self.task.load(
            section.data or "", own_test=section.own_test, local=section.local, **keys
        )

    @abstractmethod
    def targets(self, table: Columns, label: str, agreement: Agreement) -> Array:
        """What records of a CSV file are to be scored as, from their labels."""

    @abstractmethod
    def agreed_targets(self, agreed: AgreedColumns, labels: Array) -> Array:
        """The same from labels that a columns file has read: numbers, or places of classes."""

    def unit(self, agreement: Agreement) -> tuple[float, float]:
        """Center and scale of the label."""
        return 0.0, 1.0

    def share(self, task: Task, peer: int) -> dict[str, Any]:
        if not isinstance(task, LinearTask):
            return super().share(task, peer)
        records = task.records
        part = next(records.parts(np.array([peer]), 1))
        real = part.weights[0] > 0
        kept = {
            "features": part.features[0][real],
            "targets": part.targets[0][real],
            "classes": np.array(records.classes if task.classifies else (), np.str_),
            "row_bound": np.float64(records.row_bound),
            "label_unit": np.float64(records.label_unit),
            "l2": np.float64(task.l2),
            "derivative_clip": _clip(task.derivative_clip),
        }
        if records.held_out is not None:
            kept |= {
                "public_features": records.held_out.features,
                "public_targets": records.held_out.targets,
            }
        return kept

    def own_task(self, columns: Mapping[str, Any], recipe: Recipe | None, among: int) -> Task:
        count = len(columns["targets"])
        if not count:
            raise ConfigError(
                "the records of this peer are none at all; who holds no record takes no part"
            )
        if not np.isfinite(columns["features"]).all():
            raise ConfigError(
                "the records of this peer hold a number that is not finite; prepare them again with"
                " `bruit peer data`"
            )
        held_out = (
            Sample(columns["public_features"], columns["public_targets"])
            if "public_features" in columns
            else None
        )
        records = pack(
            columns["features"],
            columns["targets"],
            Split(np.arange(count), np.array([0, count])),
            held_out=held_out,
            classes=tuple(str(name) for name in columns["classes"]),
            row_bound=float(columns["row_bound"]),
            label_unit=float(columns["label_unit"]),
            manifest={"data": {"name": "own records"}, "public": said((PREPARED,))},
            recipe=recipe,
        )
        clip = float(columns["derivative_clip"])
        return self.task(records, float(columns["l2"]), None if np.isnan(clip) else clip)

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        if agreement.prepared is not None:
            return self._by_columns_file(path, agreement, agreement.prepared, tell)
        task, table = agreement.task, read_rows(path, agreement, tell)
        if agreement.label is None:
            raise ConfigError(f"{self.name} needs a label: name its column with --label")
        targets, (center, unit) = (
            self.targets(table, agreement.label, agreement),
            self.unit(agreement),
        )
        named = recipe_column(own_recipe(table, agreement, center, unit))
        rows, bound = finish_rows(features(table, agreement), task.rows, intercept=True)
        return {
            "features": rows,
            "targets": targets,
            "classes": np.array(agreement.classes, np.str_),
            "row_bound": np.float64(bound),
            "label_unit": np.float64(unit),
            "l2": np.float64(task.l2),
            "derivative_clip": _clip(task.derivative_clip),
            **named,
        }

    def _by_columns_file(
        self, path: Path, agreement: Agreement, agreed: AgreedColumns, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        """Records by the agreed columns file, as a simulation of the same experiment would prepare
        them."""
        task = agreement.task
        agreed.refuse(self.name, self.task.classifies)
        self.check_classes(agreed)
        table = read_table(path)
        found = fitting(agreed, table)
        for line in in_words(agreed, found):
            tell(f"{table.file}: {line}")
        if task.own_test:
            tell(
                f"{table.file}: own_test is for simulations: all {len(found.labels)} records are "
                "for learning. Keep rows aside before, and try the model on them with `bruit "
                "predict`"
            )
        seen = np.unique(found.labels)
        if agreed.classes and len(seen) == 1:
            tell(
                f"{table.file}: every record is of the class {agreed.classes[int(seen[0])]!r}: "
                "somebody else must hold the others, and nothing is to be learned from these alone"
            )
        rows, recipe = ready(agreed, found, task.rows)
        return {
            "features": rows,
            "targets": self.agreed_targets(agreed, found.labels),
            "classes": np.array(agreed.classes, np.str_),
            "row_bound": np.float64(recipe.row_bound()),
            "label_unit": np.float64(agreed.label.scale),
            "l2": np.float64(task.l2),
            "derivative_clip": _clip(task.derivative_clip),
            "columns_file": np.str_(agreed.digest),
            **recipe_column(recipe),
        }

    def check_classes(self, agreed: AgreedColumns) -> None:
        """Refuse a columns file whose classes are not those of this kind."""


def _clip(found: float | None) -> np.float64:
    return np.float64(math.nan if found is None else found)
