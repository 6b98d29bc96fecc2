"""Columns made alike: holes filled, centered and scaled, turned to principal directions; and the recipe that
says so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bruit.arrays import Array, Bools
from bruit.errors import ConfigError
from bruit.tasks.data.choice import Reading
from bruit.tasks.data.columns import nearest
from bruit.tasks.data.public import Agreed
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.recipe_column import Column
from bruit.tasks.data.table import Table

if TYPE_CHECKING:
    from bruit.tasks.data.preparation import Preparation


# Standardized numbers are clipped here, so that a column almost constant in the public part cannot
# blow up elsewhere.
STANDARD_LIMIT = 10.0
GRAIN = 2.0**24  # directions are rounded to its inverse


def scaled(
    table: Table, targets: Array, public: Bools, classified: bool, choices: Preparation
) -> tuple[Array, Array, float]:
    """Features and targets by the scales that were asked for, and the unit of the targets."""
    if table.recipe is not None:
        features, unit = table.recipe.standard(table.features), table.recipe.unit
        return features, targets if classified else (targets - table.recipe.center) / unit, unit
    if choices.standardize == "public":
        features = _standardize(table.features, public)
        if classified:
            return features, targets, 1.0
        return features, _standardize(targets[:, None], public)[:, 0], _scale(targets[public])
    if choices.standardize == "agreed":
        features = _by_agreement(table, choices.agreed)
        if classified or table.label not in choices.agreed.scales:
            return features, targets, 1.0
        center, unit = choices.agreed.scales[table.label]
        cut = np.clip((targets - center) / unit, -STANDARD_LIMIT, STANDARD_LIMIT)
        return features, cut, unit
    return table.features, targets, 1.0


def fill_holes(table: Table, public: Bools) -> Table:
    """Holes that wait for the public rows get their mean, column by column."""
    holes = np.isnan(table.features)
    if not holes.any():
        return table
    if not public.any():
        raise ConfigError(
            'fill = "public" puts the mean of the public rows into holes, but no row is public; '
            "hold "
            "some out (test), or fill with constants"
        )
    filled, fills, features = (
        dict(table.reading.filled),
        dict(table.reading.fills),
        table.features.copy(),
    )
    for place in np.flatnonzero(holes.any(axis=0)).tolist():
        name, shown = table.feature_names[place], table.features[public & ~holes[:, place], place]
        if not len(shown):
            raise ConfigError(
                f"no public row of {table.name} has a value in {name!r}, so there is no public mean"
                f" to fill its holes with; give a constant: fill = {{ {name} = ... }}"
            )
        mean = float(shown.mean())
        features[holes[:, place], place] = mean
        filled[name] = (int(holes[:, place].sum()), f"{mean:g}, the mean of the public rows")
        fills[name] = repr(mean)
    reading: Reading = replace(table.reading, filled=filled, fills=fills)
    others = tuple(fact for fact in table.facts if fact not in table.reading.facts())
    return replace(table, features=features, reading=reading, facts=(*reading.facts(), *others))


def recipe_of(
    table: Table,
    public: Bools,
    choices: Preparation,
    classes: tuple[str, ...],
    directions: Array | None,
) -> Recipe:
    """What was done to the rows, for new ones: the constants that `_standardize` and
    `_by_agreement` apply."""
    if table.recipe is not None:
        return replace(
            table.recipe, rows=choices.rows, classes=classes, intercept=choices.intercept
        )
    width = table.features.shape[1]
    centers, scales, limits, label = (
        np.zeros(width),
        np.ones(width),
        np.full(width, np.inf),
        (0.0, 1.0),
    )
    if choices.standardize == "public":
        centers, scales = _statistics(table.features[public])
        limits[:] = STANDARD_LIMIT
        middles, units = _statistics(table.labels[public][:, None])
        label = float(middles[0]), float(units[0])
    for place, name in enumerate(table.feature_names):
        if name in choices.agreed.scales:
            centers[place], scales[place] = choices.agreed.scales[name]
            limits[place] = STANDARD_LIMIT
    if table.label in choices.agreed.scales:
        label = (
            float(choices.agreed.scales[table.label][0]),
            float(choices.agreed.scales[table.label][1]),
        )
    center, unit = (0.0, 1.0) if classes else label
    return Recipe(
        columns=_columns(table),
        centers=centers,
        scales=scales,
        limits=limits,
        directions=directions,
        rows=choices.rows,
        intercept=choices.intercept,
        label=table.label,
        center=center,
        unit=unit,
        classes=classes,
    )


def _columns(table: Table) -> tuple[Column, ...]:
    """The columns behind the features: those of a text follow each other, one a value."""
    found: dict[str, Column] = {}
    for name in table.feature_names:
        text = max(
            (one for one in table.texts if name.startswith(f"{one}=")), key=len, default=None
        )
        if text is None:
            found[name] = Column(name, fill=table.reading.fills.get(name, ""))
        else:
            earlier = found[text].values if text in found else ()
            found[text] = Column(
                text,
                (*earlier, name.removeprefix(f"{text}=")),
                fill=table.reading.fills.get(text, ""),
            )
    return tuple(found.values())


def _statistics(shown: Array) -> tuple[Array, Array]:
    """Center and scale of every column."""
    return shown.mean(axis=0), np.array([_scale(column) for column in shown.T])


def _standardize(columns: Array, public: Bools) -> Array:
    center, scale = _statistics(columns[public])
    standard: Array = np.clip((columns - center) / scale, -STANDARD_LIMIT, STANDARD_LIMIT)
    return standard


def principal_directions(columns: Array, public: Bools, components: int) -> Array:
    """The public part's first principal directions, one a row: fewer numbers for the noise to
    cover.

    Their numbers are multiples of 2^-24. Libraries of linear algebra differ in the last bits from
    one processor to another, and one bit of a record is enough for a run to draw other noise.
    """
    most = min(columns.shape[1], int(public.sum()))
    if not 1 <= components <= most:
        raise ConfigError(
            f"components={components}: this data has between 1 and {most} public principal "
            f"components"
        )
    directions = np.linalg.svd(columns[public], full_matrices=False)[2][:components]
    signs = np.sign(directions[np.arange(components), np.abs(directions).argmax(axis=1)])
    return np.asarray(np.round(directions * signs[:, None] * GRAIN) / GRAIN)


def _scale(column: Array) -> float:
    spread = float(column.std())
    return spread if spread > 1e-12 * max(1.0, float(np.abs(column).max())) else 1.0


def _by_agreement(table: Table, agreed: Agreed) -> Array:
    """Columns of numbers by their agreed constants; columns of 0 and 1 that stand for a text stay
    as they are."""
    coded = tuple(f"{column}=" for column in table.texts)
    features = table.features.copy()
    strange = next(
        (name for name in agreed.scales if name not in (*table.feature_names, table.label)), None
    )
    if strange is not None:
        raise ConfigError(
            f"the agreed scale is of a column {strange!r}, which {table.name} does not have"
            f"{nearest(strange, table.feature_names)}"
        )
    for place, name in enumerate(table.feature_names):
        if name not in agreed.scales and not name.startswith(coded):
            raise ConfigError(
                f"the column {name!r} has no agreed scale; add {name} = [center, scale] to scales"
            )
        if name in agreed.scales:
            center, scale = agreed.scales[name]
            features[:, place] = np.clip(
                (features[:, place] - center) / scale, -STANDARD_LIMIT, STANDARD_LIMIT
            )
    return features
