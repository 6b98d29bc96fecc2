"""`bruit columns`: the file in which everybody agrees how columns are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.commands.printing import Printer, Reply
from bruit.commands.terminal import Force, Json, Quiet
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.tasks.data.agreed_columns import AgreedColumns
    from bruit.tasks.data.agreed_rows import AgreedRows, Complaint

columns_app = typer.Typer(
    help="The file in which everybody agrees how columns are read: draft it, check a table by it.",
    no_args_is_help=True,
)
SHOWN = 3  # complaints of one column that are written out


@columns_app.command("init")
def columns_init(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE.csv", help="A table as all have it, CSV or Parquet.")
    ],
    output: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path(
        "columns.toml"
    ),
    label: Annotated[str | None, typer.Option(help="The column that is learned.")] = None,
    owner: Annotated[str | None, typer.Option(help="The column that says whose a row is.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draft a columns file from the header and the types of a table; nothing of its rows is in it.

    Centers, scales, ranges, values and classes are blanks, to be filled from public knowledge.

    Example: bruit columns init mine.csv --label ill --out columns.toml
    """
    from bruit.files import check_place, write_whole
    from bruit.tasks.data.drafts.header import draft
    from bruit.tasks.data.sources import texts

    check_place(output, force)
    text = draft(texts(table), label, owner)
    write_whole(output, lambda stream: stream.write(text.encode()))
    lines = [
        f"wrote a draft to {output}",
        "fill centers, scales, ranges, values and classes FROM PUBLIC KNOWLEDGE, never from rows",
        f"then: bruit columns check {output} {table}",
    ]
    Printer(json=as_json).answer(Reply({"out": str(output), "complete": False}, lines))


@columns_app.command("suggest")
def columns_suggest(
    public: Annotated[
        Path,
        typer.Option(
            help="A table of PUBLIC rows, CSV or Parquet: no epsilon protects who is in it."
        ),
    ],
    output: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path(
        "columns.toml"
    ),
    label: Annotated[str | None, typer.Option(help="The column that is learned.")] = None,
    owner: Annotated[str | None, typer.Option(help="The column that says whose a row is.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a complete columns file from public rows: centers, scales, values and classes.

    Read it and correct it before you agree on it. If you have no public rows, `bruit columns init`
    makes a draft in which nothing of any row is.

    Example: bruit columns suggest --public survey.csv --label ill --out columns.toml
    """
    from bruit.files import check_place, write_whole
    from bruit.tasks.data.drafts.public_rows import suggest
    from bruit.tasks.data.sources import texts

    check_place(output, force)
    found = suggest(texts(public), label, owner)
    write_whole(output, lambda stream: stream.write(found.text.encode()))
    used, made = len(found.agreed.columns), len(found.agreed.recipe().features)
    lines = [
        f"wrote {output}, suggested by the {how_many(found.rows, 'row')} of {public}",
        f"{how_many(used, 'column')} used, as {how_many(made, 'feature')}",
        *(f"left out: {name}: {why}" for name, why in found.left_out.items()),
        *(
            f"one value in several spellings? {name}: {', '.join(group)}"
            for name, groups in found.alike.items()
            for group in groups
        ),
        *(
            f"a hole? {name}: {', '.join(values)}, far from all others"
            for name, values in found.strange.items()
        ),
        "right only if everybody may see these rows: no epsilon protects who is in them",
        f"read it, correct it, agree on it; then everybody: bruit columns check {output} MINE.csv",
        f'in an experiment, under [task]: columns_file = "{output}", rows = "none", test = 0.0, '
        "own_test = 0.3",
    ]
    answer = {
        "out": str(output),
        "complete": True,
        "rows": found.rows,
        "features": list(found.agreed.recipe().features),
        "left_out": found.left_out,
        "alike": found.alike,
        "strange": found.strange,
    }
    Printer(json=as_json).answer(Reply(answer, lines))


@columns_app.command("check")
def columns_check(
    columns: Annotated[
        str, typer.Argument(metavar="COLUMNS.toml", help="A columns file, or one of bruit's own.")
    ],
    table: Annotated[
        str, typer.Argument(metavar="TABLE.csv", help="A table, or the name of a data set.")
    ],
    labelled: Annotated[
        bool, typer.Option("--label/--no-label", help="Whether the table has the label.")
    ] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say what of a table fits a columns file and what does not. Counts are for its owner's eyes.

    Exit code 1: something does not fit; its line and column are said.

    Example: bruit columns check columns.toml mine.csv
    """
    from bruit.tasks.data.agreed_columns import read_agreed
    from bruit.tasks.data.agreed_rows import complaints, fitting
    from bruit.tasks.data.sources import texts

    agreed, rows = read_agreed(columns), texts(table)
    wrong = complaints(agreed, rows, labelled)
    found = None if wrong else fitting(agreed, rows, labelled)
    Printer(json=as_json, quiet=quiet).answer(_Checked(agreed, rows.file, wrong, found))
    raise typer.Exit(1 if wrong else 0)


@dataclass(frozen=True)
class _Checked:
    """Whether a table fits, and what there is to say about it to its owner."""

    agreed: AgreedColumns
    table: str
    wrong: list[Complaint]
    found: AgreedRows | None

    def plain(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "fits": self.found is not None,
            "columns_file": self.agreed.file,
            "sha256": self.agreed.digest,
            "features": list(self.agreed.recipe().features),
            "complaints": [one._asdict() for one in self.wrong],
        }
        if self.found is None:
            return answer
        cells = self.found.cells.items()
        return answer | {
            "records": self.found.reading.records,
            "used": len(self.found.table.lines),
            "left_out": dict(self.found.reading.holes),
            "filled": {name: part.filled for name, part in cells if part.filled},
            "cut": {name: part.cut for name, part in cells if part.cut},
            "others": {name: part.others for name, part in cells if part.others},
            "classes": self._classes(self.found),
        }

    def lines(self) -> Iterator[str]:
        from bruit.tasks.data.agreed_rows import in_words

        longest = self.agreed.recipe().row_bound()
        bound = "rows have no bound, since a number has no range (cut, or low and high)"
        if isfinite(longest):
            bound = f"no row is longer than {longest:.4g}"
        yield f"{self.agreed.file}, sha256 {self.agreed.digest}"
        become = "becomes" if len(self.agreed.columns) == 1 else "become"
        yield (
            f"{how_many(len(self.agreed.columns), 'column')} {become} "
            f"{how_many(len(self.agreed.recipe().features), 'feature')} and an intercept of "
            f"{self.agreed.intercept:g}; {bound}"
        )
        if self.found is None:
            yield f"{self.table} does not fit:"
            for name, many in Counter(one.column for one in self.wrong).items():
                for one in [one for one in self.wrong if one.column == name][:SHOWN]:
                    yield f"  {one.sentence}"
                if many > SHOWN:
                    yield f"  .. and {many - SHOWN} more in {name!r}"
            return
        used = len(self.found.table.lines)
        yield f"{self.table} fits: {used} of {self.found.reading.records} rows are used"
        yield "for your eyes only, since the following is read off the rows:"
        for line in in_words(self.agreed, self.found):
            yield f"  {line}"
        counted = self._classes(self.found)
        if counted:
            yield "  classes: " + ", ".join(f"{many} {name}" for name, many in counted.items())
        if list(counted.values()).count(0) == len(counted) - 1:
            yield "  all rows are of one class: nobody can learn to tell them apart from these alone"

    def _classes(self, found: AgreedRows) -> dict[str, int]:
        often = Counter(found.labels.astype(int).tolist())
        classes = self.agreed.classes if len(found.labels) else ()
        return {name: often.get(place, 0) for place, name in enumerate(classes)}
