"""`bruit predict`: a learned model on new rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.errors import ConfigError
from bruit.terminal import Force, Json, Quiet, emit_json, err, say
from bruit.whole_files import check_place, write_whole

if TYPE_CHECKING:
    from bruit.model import Model
    from bruit.tasks.columns import Columns

MOST_PAIRS = 2000  # rows whose pairs are compared by a pairwise metric


def predict(
    model: Annotated[Path, typer.Argument(help="A model.json, a run folder, or the state folder of a peer.")],
    rows: Annotated[Path | None, typer.Argument(metavar="[NEW.csv]", help="New rows, with the same columns.")] = None,
    output: Annotated[Path | None, typer.Option("--out", help="CSV file to write instead of printing.")] = None,
    peer: Annotated[int | None, typer.Option(help="Of a run folder: whose model.")] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Apply a learned model to new rows; without rows, say what it is. Predictions are CSV, on standard output.

    If the rows have the label too, how good the predictions are is said beside them.

    Example: bruit predict runs/breast-cancer-seed3.run new.csv --out predictions.csv
    """
    from bruit.model import WITHOUT_ROWS, rows_of
    from bruit.result import load_model

    if output is not None:
        check_place(output, force)
    found = load_model(model, peer)
    if rows is None:
        _about(found, as_json)
        return
    if found.kind in WITHOUT_ROWS:
        raise ConfigError(f"this model is a {found.kind}, a few numbers that are applied to no rows; leave {rows} out"
                          " to see them")  # fmt: skip
    table = rows_of(rows)
    answers, about = _predicted(found, table)
    if as_json:
        emit_json({**about, "predictions": answers})
    text = _csv(answers)
    if output is not None:
        write_whole(output, lambda stream: stream.write(text.encode()))
    elif not as_json:
        print(text, end="")
    if not quiet and not as_json:
        for line in _notes(about, output):
            err.print(line, markup=False, highlight=False, soft_wrap=True)


def _about(model: Model, as_json: bool) -> None:
    """What a model is, without any rows."""
    from bruit.model import WITHOUT_ROWS

    if as_json:
        emit_json({**model.describe(), "answer": model.answer() if model.kind in WITHOUT_ROWS else None})
        return
    say(model.headline())
    if model.kind in WITHOUT_ROWS:
        for name, value in model.answer().items():
            say(f"  {name}: {value:.6g}")
    elif model.recipe is not None:
        say(f"columns: {', '.join(model.recipe.names)}")
        if model.classes:
            say(f"classes of {model.recipe.label!r}: {', '.join(model.classes)}")
    say(f"privacy: {model.privacy.get('in_words', 'nothing is said')}")
    for warning in model.warnings:
        say(f"beware: {warning}")


def _predicted(model: Model, table: Columns) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """One answer a row (or a pair of rows), and what there is to say about them."""
    from bruit.model import METRIC, chances

    recipe = model.recipe
    extra = () if recipe is None else recipe.extra(table)
    about: dict[str, Any] = {"rows": len(table.lines), "ignored_columns": list(extra), "model": model.headline(),
                             "warnings": list(model.warnings)}  # fmt: skip
    if model.kind == METRIC:
        if len(table.lines) > MOST_PAIRS:
            raise ConfigError(f"a pairwise metric compares all pairs of rows, and {len(table.lines)} rows are more than"
                              f" {MOST_PAIRS}; give fewer")  # fmt: skip
        far = model.distances(table)
        pairs = [(i, j) for i in range(len(far)) for j in range(i + 1, len(far))]
        return [{"row": i, "other": j, "distance": float(far[i, j]), "alike": bool(far[i, j] < 1)}
                for i, j in pairs], about  # fmt: skip
    ready, said = model.prepared(table), model.predict(table).tolist()
    scores = model.scores(table)
    answers = [{"row": row, "prediction": value} for row, value in enumerate(said)]
    if model.kind in ("logistic", "softmax"):
        for answer, best in zip(answers, chances(scores).max(axis=1).tolist(), strict=True):
            answer["probability"] = best
    about["clipped_numbers"], about["filled"] = ready.clipped, ready.filled
    measured = model.measured(table)
    about["measured"] = None if measured is None else {"metric": measured[0], "value": measured[1]}
    return answers, about


def _notes(about: dict[str, Any], output: Path | None) -> list[str]:
    rows = "1 row" if about["rows"] == 1 else f"{about['rows']} rows"
    lines = [f"{rows}, {about['model']}" + ("" if output is None else f"; predictions are in {output}")]
    if about["ignored_columns"]:
        lines.append(f"columns the model does not know, left alone: {', '.join(about['ignored_columns'])}")
    if about.get("filled"):
        holes = ", ".join(f"{count} in {name!r}" for name, count in about["filled"].items())
        lines.append(f"holes filled as those of the records were: {holes}")
    if about.get("clipped_numbers"):
        lines.append(f"{about['clipped_numbers']} numbers are far from all the model was learned from (10 standard"
                     " deviations and more) and were moved to that limit")  # fmt: skip
    if about.get("measured"):
        lines.append(f"these rows have the label: {about['measured']['metric']} {about['measured']['value']:.4f}")
    return lines + [f"beware: {warning}" for warning in about["warnings"]]


def _csv(answers: list[dict[str, Any]]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=list(answers[0]) if answers else ["row"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(answers)
    return stream.getvalue()
