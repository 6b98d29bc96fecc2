"""The kind `torch`: networks as experiment files and participants name them.

    module = "mlp:64,32" | "cnn:small" | "package.mod:factory"      weights = the seed of the start

Starting weights follow from `weights` and from nothing else, so that all participants begin alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.data.agreed_columns import AgreedColumns
from bruit.tasks.data.agreed_rows import fitting, in_words, ready
from bruit.tasks.data.formats.tables import read_table
from bruit.tasks.data.own_rows import (
    Agreement,
    column,
    features,
    own_recipe,
    places,
    read_rows,
    recipe_column,
)
from bruit.tasks.data.public import Fact, said
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.split import Split
from bruit.tasks.kinds.kind import TABLE, TaskKind, table_keys
from bruit.tasks.networks.network_task import Torch
from bruit.tasks.records import Sample, pack
from bruit.tasks.task import Task

if TYPE_CHECKING:
    from bruit.tasks.kinds.section import TaskSection

PREPARED = Fact("columns, their centers and scales, and classes", "agreed")
MODULE = "mlp:64,32"


class TorchKind(TaskKind):
    """A network of torch: a module whose layers treat records one by one."""

    name = "torch"
    task = Torch
    keys = TABLE | {"own_test", "l2", "columns_file", "local"}
    own_keys: ClassVar[Mapping[str, Any]] = {
        "module": str,
        "weights": int,
        "predicts": Literal["classes", "numbers"],
        "shape": list[int],
        "dtype": Literal["float64", "float32"],
    }
    held = True
    scored = True
    summed = True

    def build(self, section: TaskSection, peers: int, seed: int) -> Task:
        return Torch.load(
            section.data or "",
            getattr(section, "module", MODULE),
            own_test=section.own_test,
            l2=section.l2,
            columns_file=section.columns_file,
            local=section.local,
            **_options(section),
            **table_keys(section, peers, seed),
        )

    def share(self, task: Task, peer: int) -> dict[str, Any]:
        if not isinstance(task, Torch) or not isinstance(task.module, str):
            return super().share(task, peer)
        records = task.records
        part = next(records.parts(np.array([peer]), 1))
        real = part.weights[0] > 0
        kept = {
            "features": part.features[0][real],
            "targets": part.targets[0][real],
            "classes": np.array(records.classes if task.classifies else (), np.str_),
            "label_unit": np.float64(records.label_unit),
            "l2": np.float64(task.l2),
            "module": np.str_(task.module),
            "weights": np.int64(task.weights),
            "predicts": np.str_(task.predicts),
            "shape": np.array(task.shape, np.int64),
            "dtype": np.str_(task.dtype),
        }
        if records.held_out is not None:
            kept |= {
                "public_features": records.held_out.features,
                "public_targets": records.held_out.targets,
            }
        return kept

    def agreed(self, section: TaskSection) -> Mapping[str, Any]:
        options = _options(section)
        shape = {"shape": options["shape"]} if options["shape"] else {}
        told = {name: options[name] for name in ("weights", "predicts", "dtype")}
        return {"module": getattr(section, "module", MODULE), "l2": section.l2, **told, **shape}

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
            label_unit=float(columns["label_unit"]),
            manifest={"data": {"name": "own records"}, "public": said((PREPARED,))},
            recipe=recipe,
        )
        predicts = str(columns["predicts"])
        return Torch(
            str(columns["module"]),
            "squared" if predicts == "numbers" else "cross-entropy",
            records=records,
            shape=tuple(int(size) for size in columns["shape"]),
            dtype=str(columns["dtype"]),
            l2=float(columns["l2"]),
            weights=int(columns["weights"]),
        )

    def from_csv(
        self, path: Path, agreement: Agreement, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        section = agreement.task
        options = _options(section)
        classified = options["predicts"] == "classes"
        if agreement.prepared is not None:
            made = self._by_columns_file(path, agreement.prepared, classified, tell)
        else:
            made = self._by_names(path, agreement, classified, tell)
        return made | {
            "l2": np.float64(section.l2),
            "module": np.str_(getattr(section, "module", MODULE)),
            "weights": np.int64(options["weights"]),
            "predicts": np.str_(options["predicts"]),
            "shape": np.array(options["shape"], np.int64),
            "dtype": np.str_(options["dtype"]),
        }

    def _by_names(
        self, path: Path, agreement: Agreement, classified: bool, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        table = read_rows(path, agreement, tell)
        if agreement.label is None:
            raise ConfigError("a torch task needs a label: name its column with --label")
        center, unit = 0.0, 1.0
        targets: Array
        if classified:
            targets = places(table, agreement.label, agreement).astype(np.float64)
        else:
            center, unit = (agreement.columns or {}).get(agreement.label, (0.0, 1.0))
            targets = column(table, agreement.label, center, unit)
        recipe = replace(own_recipe(table, agreement, center, unit), rows="none", intercept=False)
        return {
            "features": features(table, agreement),
            "targets": targets,
            "classes": np.array(agreement.classes, np.str_),
            "label_unit": np.float64(unit),
            **recipe_column(recipe),
        }

    def _by_columns_file(
        self, path: Path, agreed: AgreedColumns, classified: bool, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        """Records by the agreed columns file, as a simulation of the same experiment would prepare
        them."""
        agreed.refuse(self.name, classified)
        table = read_table(path)
        found = fitting(agreed, table)
        for line in in_words(agreed, found):
            tell(f"{table.file}: {line}")
        rows, recipe = ready(agreed, found, "none")
        targets = (
            found.labels
            if classified
            else (found.labels - agreed.label.center) / agreed.label.scale
        )
        return {
            "features": rows[:, :-1],  # without the column of ones
            "targets": targets,
            "classes": np.array(agreed.classes, np.str_),
            "label_unit": np.float64(agreed.label.scale),
            "columns_file": np.str_(agreed.digest),
            **recipe_column(replace(recipe, intercept=False)),
        }


def _options(section: TaskSection) -> dict[str, Any]:
    """What only networks are told."""
    return {
        "weights": getattr(section, "weights", 0),
        "predicts": getattr(section, "predicts", "classes"),
        "shape": tuple(getattr(section, "shape", ())),
        "dtype": getattr(section, "dtype", "float64"),
    }
