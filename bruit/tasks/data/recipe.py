"""A recipe: how rows as people write them become the numbers a model is applied to, and what its
answers mean.

    cells -> features of each column -> clip((x - center) / scale, limit) -> directions -> intercept -> norm

Everything in it was agreed on, is declared public (`tasks.public`), or comes from public rows: a
recipe may be given away with the model. What becomes of the cells of one column is in
`recipe_column`. New rows are prepared by the same functions, in the same
order, as the records it was learned from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.tasks.counted import Counted
from bruit.tasks.data.columns import Columns, nearest
from bruit.tasks.data.formats.frames import ROWS, are_mappings, as_columns
from bruit.tasks.data.recipe_column import Column, ReadCells, column_from
from bruit.tasks.records import finish_rows
from bruit.tasks.stumps import Stumps


class PreparedRows(NamedTuple):
    """Rows ready for a model, and what was done to them. clipped: how many numbers were moved to
    the limit of standardized numbers. cut: how many of each column were cut to its range. filled:
    how many holes of each column were filled with what was agreed on. others: how many cells were
    taken for the agreed other value."""

    rows: Array  # (r, p)
    clipped: int
    filled: dict[str, int]
    cut: dict[str, int]
    others: dict[str, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe(Counted):
    """The columns in order, the constants of every feature they make, and the words of the answer.

    centers, scales, limits: of each feature, after texts were spread over one feature a value
    (limit inf: not clipped). directions: the principal directions that are kept, one a row; None:
    all features. rows: "unit" or "none". label, unit, center: of a number that is predicted.
    constant: the number in the intercept column. classes: of a class that is predicted, in order;
    spellings: how each is written, if not by its name. stumps: yes-or-no questions about the
    standardized numbers, whose answers a boosted model combines instead of the numbers.
    """

    columns: tuple[Column, ...]
    centers: Array  # (p,)
    scales: Array  # (p,)
    limits: Array  # (p,)
    directions: Array | None = None  # (k, p)
    rows: str = "none"
    intercept: bool = True
    label: str = ""
    center: float = 0.0
    unit: float = 1.0
    classes: tuple[str, ...] = ()
    stumps: Stumps | None = None
    constant: float = 1.0
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def plain(
        names: Sequence[str], rows: str = "none", intercept: bool = False, **words: Any
    ) -> Recipe:
        """Columns of numbers, taken as they are."""
        zeros = np.zeros(len(names))
        columns = tuple(Column(name) for name in names)
        return Recipe(
            columns=columns,
            centers=zeros,
            scales=zeros + 1.0,
            limits=np.full(len(names), inf),
            rows=rows,
            intercept=intercept,
            **words,
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """The name of every feature, texts spread over one a value."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The name of every number a model is applied to, the intercept left out."""
        found = self.features
        if self.directions is not None:
            found = tuple(f"component {k + 1}" for k in range(len(self.directions)))
        if self.stumps is None:
            return found
        asked = zip(self.stumps.feature.tolist(), self.stumps.threshold.tolist(), strict=True)
        return tuple(f"{found[place]} > {threshold:g}" for place, threshold in asked)

    @property
    def width(self) -> int:
        """Numbers a prepared row has, the intercept included."""
        return len(self.inputs) + int(self.intercept)

    def prepare(self, rows: Any) -> PreparedRows:
        """New rows: a `Columns` of a CSV file, a data frame, a mapping of columns, a list of
        mappings, or numbers."""
        table = (
            np.asarray(rows)
            if isinstance(rows, np.ndarray | list | tuple) and not are_mappings(rows)
            else None
        )
        named = as_columns(rows) if table is None else self._named(table)
        if named is None:
            return self.finish(np.asarray(table, dtype=np.float64))
        cells = self.read(named)
        raw = np.concatenate([part.features for part in cells.values()], axis=1)
        return self.finish(raw)._replace(
            filled={name: part.filled for name, part in cells.items() if part.filled},
            cut={name: part.cut for name, part in cells.items() if part.cut},
            others={name: part.others for name, part in cells.items() if part.others},
        )

    def standard(self, raw: Array) -> Array:
        """Features centered, scaled and clipped  # (r, p)."""
        return np.asarray(np.clip((raw - self.centers) / self.scales, -self.limits, self.limits))

    def finish(self, raw: Array) -> PreparedRows:
        """Prepared rows from the features of their columns."""
        standard = self.standard(raw)
        clipped = int((np.abs(raw - self.centers) > self.scales * self.limits).sum())
        if self.directions is not None:
            standard = along(standard, self.directions)
        if self.stumps is not None:
            standard = self.stumps(standard)
        return PreparedRows(
            finish_rows(standard, self.rows, self.intercept, self.constant)[0], clipped, {}, {}, {}
        )

    def row_bound(self) -> float:
        """The largest norm a prepared row can have, whatever its cells; infinite if a number has no
        range (silo:SILO-7).

            R^2 = sum over columns of max over cells |features(cell)|^2 + constant^2
        """
        if self.rows == "unit":
            return 1.0
        if self.directions is not None or self.stumps is not None:
            return inf
        squared, place = (self.constant if self.intercept else 0.0) ** 2, 0
        for column in self.columns:
            width = len(column.features)
            center, scale, limit = (
                part[place : place + width] for part in (self.centers, self.scales, self.limits)
            )
            ends = column.extremes(float(center[0]))
            moved = np.clip((ends - center) / scale, -limit, limit)
            squared, place = squared + float((moved**2).sum(axis=1).max()), place + width
        return float(np.sqrt(squared)) * (1.0 + 1e-12)

    def _named(self, table: Any) -> Columns | None:
        """An array by name, where cells are texts or may be filled; None: numbers that are used as
        they are."""
        if table.ndim != 2 or table.shape[1] != len(self.columns):
            raise ConfigError(
                f"the rows are of shape {table.shape}; give one row a record, of"
                f" {len(self.columns)} columns: {_some(self.names)}"
            )
        if table.dtype.kind in "buif" and not any(
            column != Column(column.name) for column in self.columns
        ):
            bad = np.argwhere(~np.isfinite(table))
            if len(bad):
                raise ConfigError(
                    f"{ROWS}, row {bad[0][0]}, column {self.names[bad[0][1]]!r} holds no finite"
                    " number; fill it or remove the row"
                )
            return None
        return as_columns(dict(zip(self.names, table.T.tolist(), strict=True)))

    def read(self, table: Columns) -> dict[str, ReadCells]:
        """The features of every column of these rows, before they are centered."""
        missing = [name for name in self.names if name not in table.names]
        if missing:
            raise ConfigError(
                f"{table.file} has no column {missing[0]!r}{nearest(missing[0], table.names)}"
                + (
                    f"; {len(missing)} of the model's {len(self.columns)} columns are missing: "
                    f"{_some(missing)}"
                    if len(missing) > 1
                    else "; the model was learned with it"
                )
            )
        found, place = {}, 0
        for column in self.columns:
            found[column.name] = column.read(table, float(self.centers[place]))
            place += len(column.features)
        return found

    def extra(self, rows: Any) -> tuple[str, ...]:
        """The columns of these rows that the model does not look at, its label left out."""
        if isinstance(rows, np.ndarray | list | tuple) and not are_mappings(rows):
            return ()
        return tuple(
            name for name in as_columns(rows).names if name not in (*self.names, self.label)
        )

    def describe(self) -> dict[str, Any]:
        """As plain data; `recipe_from` reads it."""
        return {
            "columns": [column.describe() for column in self.columns],
            "centers": self.centers.tolist(),
            "scales": self.scales.tolist(),
            "limits": self.limits.tolist(),
            "directions": None if self.directions is None else self.directions.tolist(),
            "rows": self.rows,
            "intercept": self.intercept,
            "constant": self.constant,
            "label": {"name": self.label, "center": self.center, "unit": self.unit},
            "classes": list(self.classes),
            "spellings": {name: list(texts) for name, texts in self.spellings.items()},
            "stumps": None
            if self.stumps is None
            else {
                "feature": self.stumps.feature.tolist(),
                "threshold": self.stumps.threshold.tolist(),
            },
        }


def recipe_from(content: Mapping[str, Any]) -> Recipe:
    """The recipe that `Recipe.describe` wrote; raises KeyError, TypeError or ValueError for
    anything else."""
    columns = tuple(column_from(one) for one in content["columns"])
    found = Recipe(
        columns=columns,
        centers=_numbers(content["centers"]),
        scales=_numbers(content["scales"]),
        limits=_numbers(content["limits"]),
        rows=str(content["rows"]),
        intercept=bool(content["intercept"]),
        directions=None
        if content["directions"] is None
        else np.array(content["directions"], np.float64, ndmin=2),
        label=str(content["label"]["name"]),
        center=float(content["label"]["center"]),
        unit=float(content["label"]["unit"]),
        classes=tuple(str(name) for name in content["classes"]),
        stumps=None if content.get("stumps") is None else _stumps(content["stumps"]),
        constant=float(content.get("constant", 1.0)),
        spellings={
            str(name): tuple(str(text) for text in texts)
            for name, texts in content.get("spellings", {}).items()
        },
    )
    wide = (len(found.features),)
    if not found.centers.shape == found.scales.shape == found.limits.shape == wide:
        raise ValueError(
            f"there are {wide[0]} features, but {len(found.centers)} centers, {len(found.scales)}"
            f" scales and {len(found.limits)} limits"
        )
    if found.directions is not None and found.directions.shape[1:] != wide:
        raise ValueError(
            f"the directions are {found.directions.shape}, and there are {wide[0]} features"
        )
    numbers_there = wide[0] if found.directions is None else len(found.directions)
    if found.stumps is not None and not all(
        0 <= place < numbers_there for place in found.stumps.feature.tolist()
    ):
        raise ValueError(f"a stump asks for a number that is not there; there are {numbers_there}")
    if found.rows not in ("unit", "none") or not (found.scales > 0).all():
        raise ValueError(f"rows are {found.rows!r} (unit or none), and scales are above 0")
    return found


def _stumps(content: Mapping[str, Any]) -> Stumps:
    feature = np.array([int(place) for place in content["feature"]], np.int64)
    threshold = _numbers(content["threshold"])
    if feature.shape != threshold.shape or not len(feature):
        raise ValueError(f"there are {len(feature)} stumps and {len(threshold)} thresholds")
    return Stumps(feature, threshold)


def _numbers(content: Any) -> Array:
    return np.array([float(value) for value in content], dtype=np.float64)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", .." if len(names) > 20 else "")


def along(standard: Array, directions: Array) -> Array:
    """What rows have along each direction  # (r, k). Sums in one order, whatever the processor and
    however many rows there are, which a product of matrices is not."""
    return np.asarray(np.einsum("rp,kp->rk", standard, directions))
