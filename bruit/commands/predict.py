"""`bruit predict`: a learned model on new rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.commands.printing import Beside, Exactly, Line, Printer
from bruit.commands.terminal import Force, Json, Quiet
from bruit.errors import ConfigError
from bruit.files import check_place, write_whole
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.runs.model import Model


def predict(
    model: Annotated[
        Path, typer.Argument(help="A model.json, a run folder, or the state folder of a peer.")
    ],
    rows: Annotated[
        Path | None,
        typer.Argument(
            metavar="[NEW.csv]", help="New rows, with the same columns; .parquet will do, too."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--out", help="CSV file to write instead of printing.")
    ] = None,
    peer: Annotated[int | None, typer.Option(help="Of a run folder: whose model.")] = None,
    module: Annotated[
        str | None,
        typer.Option(help="Of a network: the import path of its factory, package.mod:factory."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Apply a learned model to new rows; without rows, say what it is. Predictions are CSV, on
    standard output.

    If the rows have the label too, how good the predictions are is said beside them.

    Example: bruit predict runs/breast-cancer-seed3.run new.csv --out predictions.csv
    """
    from bruit.runs.model import WITHOUT_ROWS
    from bruit.runs.predictions import predictions
    from bruit.runs.result import load_model
    from bruit.tasks.data.formats.tables import is_table, read_table

    if output is not None:
        if is_table(output) and output.suffix != ".csv":
            raise ConfigError(
                f"predictions are written as CSV; call the file .csv, not {output.name}"
            )
        check_place(output, force)
    found, printer = load_model(model, peer), Printer(json=as_json, quiet=quiet)
    if module is not None:
        found = found.with_module(module)
    if rows is None:
        printer.answer(_About(found))
        return
    if found.kind in WITHOUT_ROWS:
        raise ConfigError(
            f"this model is a {found.kind}, a few numbers that are applied to no rows;"
            f" leave {rows} out to see them"
        )
    answers, about = predictions(found, read_table(rows))
    if output is not None:
        text = _csv(answers)
        write_whole(output, lambda stream: stream.write(text.encode()))
    printer.answer(_Predicted(answers, about, output))


@dataclass(frozen=True)
class _About:
    """What a model is, without any rows."""

    model: Model

    def plain(self) -> dict[str, Any]:
        from bruit.runs.model import WITHOUT_ROWS

        numbers = self.model.answer() if self.model.kind in WITHOUT_ROWS else None
        return {**self.model.describe(), "answer": numbers}

    def lines(self) -> Iterator[str]:
        from bruit.runs.model import WITHOUT_ROWS

        model = self.model
        yield model.headline()
        if model.kind in WITHOUT_ROWS:
            for name, value in model.answer().items():
                yield f"  {name}: {value:.6g}"
        elif model.recipe is not None:
            yield f"columns: {', '.join(model.recipe.names)}"
            if model.classes:
                yield f"classes of {model.recipe.label!r}: {', '.join(model.classes)}"
        yield f"privacy: {model.privacy.get('in_words', 'nothing is said')}"
        for warning in model.warnings:
            yield f"beware: {warning}"


@dataclass(frozen=True)
class _Predicted:
    """One answer a row, as CSV unless that went to a file; what there is to say goes beside it."""

    answers: list[dict[str, Any]]
    about: dict[str, Any]
    written: Path | None

    def plain(self) -> dict[str, Any]:
        return {**self.about, "predictions": self.answers}

    def lines(self) -> Iterator[Line]:
        if self.written is None:
            yield Exactly(_csv(self.answers))
        for line in _notes(self.about, self.written):
            yield Beside(line)


def _notes(about: dict[str, Any], output: Path | None) -> list[str]:
    rows = how_many(about["rows"], "row")
    lines = [
        f"{rows}, {about['model']}" + ("" if output is None else f"; predictions are in {output}")
    ]
    if about["ignored_columns"]:
        lines.append(
            f"columns the model does not know, left alone: {', '.join(about['ignored_columns'])}"
        )
    if about.get("filled"):
        holes = ", ".join(f"{count} in {name!r}" for name, count in about["filled"].items())
        lines.append(f"holes filled as those of the records were: {holes}")
    if about.get("cut"):
        cut = ", ".join(f"{count} in {name!r}" for name, count in about["cut"].items())
        lines.append(f"numbers cut to the agreed range: {cut}")
    if about.get("others"):
        others = ", ".join(f"{count} in {name!r}" for name, count in about["others"].items())
        lines.append(f"values nobody agreed on, taken for the agreed other: {others}")
    if about.get("clipped_numbers"):
        lines.append(
            f"{about['clipped_numbers']} numbers are far from all the model was learned from (10"
            " standard deviations and more) and were moved to that limit"
        )
    if about.get("measured"):
        lines.append(
            f"these rows have the label: {about['measured']['metric']} "
            f"{about['measured']['value']:.4f}"
        )
    return lines + [f"beware: {warning}" for warning in about["warnings"]]


def _csv(answers: list[dict[str, Any]]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(
        stream, fieldnames=list(answers[0]) if answers else ["row"], lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(answers)
    return stream.getvalue()
