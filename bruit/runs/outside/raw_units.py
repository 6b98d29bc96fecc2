"""A model's scores as a function of the cells as people write them.

    score = intercept + sum over columns of   coefficient * cut(value, low, high)      of a number
                                              the term of the value                    of a category
    each divided by the norm of the prepared row where rows are "unit"

Centers, scales, codings, principal directions and the intercept's constant are all folded into
these numbers, so that nothing of bruit is needed to use them (silo:SILO-7).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from bruit.arrays import Array
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.recipe_column import Column

FORMULA = (
    "score = intercept + sum over columns; of a number: coefficient * value, the value cut to [low, "
    "high]; of a category: the term of the value. A cell is first read as `instead` says, and is a "
    "hole if it is empty or among `missing`: then `hole` gives a value to take, or the term itself."
)
MEANING = {
    "logistic": "the chance of the class is 1 / (1 + exp(-score)); it is predicted where the score is above 0",
    "softmax": "one score a class, in order; the largest is predicted, and exp(score) / sum are the chances",
    "ridge": "the score is the prediction, in units of the label",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnTerms:
    """What one column adds to each of m outputs: a slope and its range, or a term for each value,
    and a term for a hole that has a feature of its own."""

    column: Column
    low: float
    high: float
    slope: Array  # (m,)
    values: dict[str, Array]  # each (m,)
    hole: Array | None  # (m,)


def affine(recipe: Recipe, onto: Array) -> tuple[list[ColumnTerms], Array]:
    """All columns' terms after `onto` (m, p) is applied to standardized features, and what is added
    to each output whatever the cells  # (m,)."""
    found, offset, place = [], np.zeros(len(onto)), 0
    for column in recipe.columns:
        where = slice(place, place + len(column.features))
        place = where.stop
        terms, added = _of_column(column, onto[:, where], recipe, where)
        found.append(terms)
        offset += added
    return found, offset


def _of_column(
    column: Column, onto: Array, recipe: Recipe, where: slice
) -> tuple[ColumnTerms, Array]:
    centers, scales, limits = recipe.centers[where], recipe.scales[where], recipe.limits[where]

    def outputs(features: Array) -> Array:
        return np.asarray(onto @ np.clip((features - centers) / scales, -limits, limits))

    nothing = np.zeros(len(onto))
    center, scale, limit = float(centers[0]), float(scales[0]), float(limits[0])
    hole = outputs(column.hole(center)) if column.indicator else None
    if column.values:
        values = {value: outputs(column.coding(value)) for value in column.values}
        terms = ColumnTerms(
            column=column, low=-np.inf, high=np.inf, slope=nothing, values=values, hole=hole
        )
        return terms, nothing
    low, high = max(column.low, center - limit * scale), min(column.high, center + limit * scale)
    slope = onto[:, 0] / scale
    middle = np.append(center, 0.0) if column.indicator else np.array([center])
    always = outputs(middle)  # the column at its center: 0 but for the indicator's own center
    terms = ColumnTerms(
        column=column,
        low=low,
        high=high,
        slope=slope,
        values={},
        hole=None if hole is None else hole - always + slope * center,
    )
    return terms, always - slope * center


def raw_units(kind: str, recipe: Recipe, matrix: Array) -> dict[str, Any]:
    """The section of a model's file that says its scores in raw units; `matrix` is (outputs,
    prepared columns)."""
    inputs = matrix[:, : len(recipe.inputs)]
    onto = inputs if recipe.directions is None else np.asarray(inputs @ recipe.directions)
    intercept = matrix[:, len(recipe.inputs) :].sum(axis=1) * recipe.constant
    if kind == "ridge":
        onto, intercept = onto * recipe.unit, intercept * recipe.unit
    terms, offset = affine(recipe, onto)
    if kind == "ridge" and recipe.rows != "unit":
        offset = offset + recipe.center
    answer: dict[str, Any] = {"formula": FORMULA}
    if kind in MEANING:
        answer["meaning"] = MEANING[kind]
    if recipe.rows == "unit":
        after = f", then {recipe.center!r} is added" if kind == "ridge" else ""
        answer["divided_by"] = (
            "the norm of the prepared row, intercept included (see preparation)"
            f"{after}; the predicted class does not depend on it"
            if kind != "ridge"
            else f"the norm of the prepared row, intercept included (see preparation){after}"
        )
    outputs = recipe.classes[1:] if kind == "logistic" else recipe.classes
    return answer | {
        "outputs": list(outputs) or [recipe.label or "score"],
        "intercept": _plain(intercept + offset),
        "columns": {one.column.name: _plain_terms(one) for one in terms},
    }


def _plain_terms(terms: ColumnTerms) -> dict[str, Any]:
    column = terms.column
    answer: dict[str, Any] = {"kind": "category" if column.values else "number"}
    if column.values:
        answer["terms"] = {value: _plain(term) for value, term in terms.values.items()}
        answer["other"] = column.other or None
    else:
        answer["coefficient"] = _plain(terms.slope)
        answer["low"] = terms.low if isfinite(terms.low) else None
        answer["high"] = terms.high if isfinite(terms.high) else None
    answer["hole"] = None
    if column.fill:
        answer["hole"] = {"value": column.fill if column.values else float(column.fill)}
    elif terms.hole is not None:
        answer["hole"] = {"term": _plain(terms.hole)}
    if column.missing:
        answer["missing"] = list(column.missing)
    if column.instead:
        answer["instead"] = dict(column.instead)
    return answer


def _plain(numbers: Array) -> Any:
    """One number, or one an output."""
    return float(numbers[0]) if len(numbers) == 1 else numbers.tolist()
