"""What a learned model says of new rows: one answer a row, or a pair of rows, and what there is to
know about them."""

from __future__ import annotations

from typing import Any

from bruit.errors import ConfigError
from bruit.runs.model import METRIC, Model, chances
from bruit.tasks.data.columns import Columns

MOST_PAIRS = 2000  # rows whose pairs are compared by a pairwise metric


def predictions(model: Model, table: Columns) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One answer a row (or a pair of rows), and what there is to say about them."""
    recipe = model.recipe
    extra = () if recipe is None else recipe.extra(table)
    about: dict[str, Any] = {
        "rows": len(table.lines),
        "ignored_columns": list(extra),
        "model": model.headline(),
        "warnings": list(model.warnings),
    }
    if model.kind == METRIC:
        if len(table.lines) > MOST_PAIRS:
            raise ConfigError(
                f"a pairwise metric compares all pairs of rows, and {len(table.lines)} rows are"
                f" more than {MOST_PAIRS}; give fewer"
            )
        far = model.distances(table)
        pairs = [(i, j) for i in range(len(far)) for j in range(i + 1, len(far))]
        return [
            {"row": i, "other": j, "distance": float(far[i, j]), "alike": bool(far[i, j] < 1)}
            for i, j in pairs
        ], about
    ready, labels = model.prepared(table), model.predict(table).tolist()
    scores = model.scores(table)
    answers = [{"row": row, "prediction": value} for row, value in enumerate(labels)]
    told = model.network is not None and model.network.classifies
    if model.kind in ("logistic", "softmax") or told:
        for answer, best in zip(answers, chances(scores).max(axis=1).tolist(), strict=True):
            answer["probability"] = best
    about["clipped_numbers"], about["filled"] = ready.clipped, ready.filled
    about["cut"], about["others"] = ready.cut, ready.others
    measured = model.measured(table)
    about["measured"] = None if measured is None else {"metric": measured[0], "value": measured[1]}
    return answers, about
