"""A learned model as a pipeline of scikit-learn that is fitted already, made of its own parts and
numpy only: whoever keeps it needs no bruit.

    columns    cells -> numbers, holes filled, cut to their range; categories -> one column a value
    prepare    (rows of unit norm only) the prepared row: centers, scales, directions, intercept, norm
    model      LogisticRegression or Ridge with coef_ and intercept_ set, in raw units unless rows have unit norm

Rows are a data frame with the model's columns, or an array in their order; holes are None or nan, as
pandas reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder

from bruit.arrays import Array
from bruit.errors import ConfigError
from bruit.runs.outside.raw_units import ColumnTerms, affine
from bruit.tasks.data.columns import BOOLEANS, number, spelled
from bruit.tasks.data.recipe import Recipe
from bruit.tasks.data.recipe_column import Column

if TYPE_CHECKING:
    from bruit.runs.model import Model

HOLE = "(a hole)"
NO_NUMBER = float(np.finfo(np.float64).min)  # stands for a hole among numbers
TEXT_HOLES = ("", "?")


def pipeline(model: Model, recipe: Recipe, matrix: Array) -> Pipeline:
    """The pipeline of a logistic, softmax or ridge model; `matrix` is (outputs, prepared
    columns)."""
    _refuse_unread(recipe)
    if recipe.rows == "unit":
        return _of_unit_rows(model, recipe, matrix)
    inputs = matrix[:, : len(recipe.inputs)]
    onto = inputs if recipe.directions is None else np.asarray(inputs @ recipe.directions)
    columns, rows, offset = _columns(recipe, onto)
    intercept = matrix[:, len(recipe.inputs) :].sum(axis=1) * recipe.constant + offset
    return Pipeline([("columns", columns), ("model", _estimator(model, recipe, rows.T, intercept))])


def _refuse_unread(recipe: Recipe) -> None:
    """Its parts read neither dates nor true and false, which data frames do not hold as texts."""
    for column in recipe.columns:
        found = "dates" if column.dates else "true and false"
        if column.dates or BOOLEANS & set(column.values):
            raise ConfigError(
                f"the column {column.name!r} holds {found}, which the parts of scikit-learn do not "
                f"read as the model does; use model.predict(rows), which takes data frames"
            )


def _of_unit_rows(model: Model, recipe: Recipe, matrix: Array) -> Pipeline:
    width = len(recipe.features)
    onto = np.eye(width) if recipe.directions is None else recipe.directions
    columns, rows, offset = _columns(recipe, onto)
    full = np.vstack((offset, rows))  # (1 + basis, inputs)
    if recipe.intercept:
        constant = np.zeros((len(full), 1))
        constant[0] = recipe.constant
        full = np.hstack((full, constant))
    prepare = make_pipeline(
        FunctionTransformer(np.insert, kw_args={"obj": 0, "values": 1.0, "axis": 1}),
        FunctionTransformer(np.dot, kw_args={"b": full}),
        Normalizer(),
    )
    prepare.fit(np.zeros((1, len(rows))))
    estimator = _estimator(model, recipe, matrix, np.zeros(len(matrix)))
    return Pipeline([("columns", columns), ("prepare", prepare), ("model", estimator)])


def _estimator(model: Model, recipe: Recipe, coefficients: Array, intercept: Array) -> Any:
    """An estimator whose numbers are known; one of two classes has one score."""
    if model.kind == "ridge":
        ridge = Ridge()
        ridge.coef_ = coefficients[0] * recipe.unit
        ridge.intercept_ = float(intercept[0] * recipe.unit + recipe.center)
        ridge.n_features_in_ = coefficients.shape[1]
        return ridge
    if model.kind == "softmax" and len(coefficients) == 2:
        coefficients, intercept = coefficients[1:] - coefficients[:1], intercept[1:] - intercept[:1]
    found = LogisticRegression()
    found.coef_, found.intercept_ = np.ascontiguousarray(coefficients), intercept
    found.classes_, found.n_features_in_ = model.labels(), coefficients.shape[1]
    found.n_iter_ = np.zeros(1, np.int32)
    return found


def _columns(recipe: Recipe, onto: Array) -> tuple[ColumnTransformer, Array, Array]:
    """The transformer of all columns, what each of its columns adds to the outputs  # (basis, m),
    and what is added to them whatever the cells  # (m,)."""
    terms, offset = affine(recipe, onto)
    parts: list[tuple[str, Any, list[int]]] = []
    rows: list[Array] = []
    for place, one in enumerate(terms):
        for name, transformer, added, always in _parts(one):
            parts.append((f"{one.column.name}{name}", transformer, [place]))
            rows.extend(added)
            offset = offset + always
    found = ColumnTransformer(parts, sparse_threshold=0.0)
    found.fit(np.array([[_sample(one.column) for one in terms]], dtype=object))
    found.feature_names_in_ = np.array(recipe.names, dtype=object)
    return found, np.array(rows), offset


def _parts(one: ColumnTerms) -> list[tuple[str, Any, list[Array], Array]]:
    """The transformers of one column, each with what its outputs add, and what is always added."""
    column, nothing = one.column, np.zeros_like(one.slope)
    if column.values:
        return [_category(one)]
    center = column.number_of(column.fill) if column.fill else 0.0
    number_part = make_pipeline(
        *_read_numbers(column, center if column.allows_holes else None),
        FunctionTransformer(np.clip, kw_args={"a_min": one.low, "a_max": one.high}),
    )
    if one.hole is None:
        return [("", number_part, [one.slope], nothing)]
    at_zero = min(max(0.0, one.low), one.high)  # what a hole is read as beside its own column
    hole_part = make_pipeline(
        *_read_numbers(column, NO_NUMBER),
        MissingIndicator(missing_values=NO_NUMBER, features="all"),
    )
    return [
        ("", number_part, [one.slope], nothing),
        (" is missing", hole_part, [one.hole - one.slope * at_zero], nothing),
    ]


def _category(one: ColumnTerms) -> tuple[str, Any, list[Array], Array]:
    column = one.column
    numeric = all(np.isfinite(number(value)) for value in column.values)
    hole: Array | None = one.values[column.fill] if column.fill else one.hole
    keys: list[Any] = [float(value) if numeric else value for value in column.values]
    added = [one.values[value] for value in column.values]
    if hole is not None:
        keys.append(NO_NUMBER if numeric else HOLE)
        added.append(hole)
    if numeric:
        order = np.argsort(keys).tolist()
        keys, added = [keys[k] for k in order], [added[k] for k in order]
    always = one.values[column.other] if column.other else np.zeros_like(one.slope)
    encoder = OneHotEncoder(
        categories=[np.array(keys, dtype=np.float64 if numeric else object)],
        handle_unknown="ignore" if column.other else "error",
        sparse_output=False,
    )
    filler: float | str | None = (NO_NUMBER if numeric else HOLE) if hole is not None else None
    read = _read_numbers(column, filler) if numeric else _read_texts(column, filler)
    return "", make_pipeline(*read, encoder), [part - always for part in added], always


def _read_numbers(column: Column, filler: Any) -> list[Any]:
    """Cells as numbers, `filler` in holes; None: holes are left, and refused later on."""
    found: list[Any] = [FunctionTransformer(np.asarray, kw_args={"dtype": np.float64})]
    if filler is not None:
        found.append(_imputer(np.nan, filler))
    return found + [
        _imputer(number(old), new if isinstance(new, float) else number(new))
        for old, new in _replaced(column, filler)
        if np.isfinite(number(old))
    ]


def _read_texts(column: Column, filler: Any) -> list[Any]:
    found: list[Any] = [FunctionTransformer(np.asarray, kw_args={"dtype": object})]
    if filler is not None:
        texts = (text for text in TEXT_HOLES if text not in column.values)
        found += [_imputer(hole, filler) for hole in (np.nan, None, *texts)]
    return found + [_imputer(old, new) for old, new in _replaced(column, filler)]


def _replaced(column: Column, filler: Any) -> list[tuple[str, Any]]:
    """Spellings that are read as something else: holes as `filler`, unless they are refused."""
    found: list[tuple[str, Any]] = []
    for old, new in column.instead:
        if not column.is_hole(new):
            found.append((old, spelled(new)))
        elif filler is not None:
            found.append((old, filler))
    return found + ([(old, filler) for old in column.missing] if filler is not None else [])


def _imputer(old: Any, new: Any) -> SimpleImputer:
    return SimpleImputer(
        missing_values=old, strategy="constant", fill_value=new, keep_empty_features=True
    )


def _sample(column: Column) -> Any:
    """A cell that fits, for scikit-learn to see what kind of column it is."""
    if not column.values:
        return min(max(0.0, column.low), column.high)
    return column.values[0]
