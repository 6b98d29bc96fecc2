"""`bruit plan --silos`: alone, or together, and how; what each protocol would give at record level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bruit.commands.printing import Detail, Line, Printer
from bruit.commands.terminal import program
from bruit.how_many import how_many

if TYPE_CHECKING:
    from rich.table import Table

    from bruit.planning.silos.question import SilosQuestion


def answer_silos(printer: Printer, question: SilosQuestion, save: Path | None) -> None:
    """Plan, print, and write the experiment if asked."""
    from bruit.planning.silos.experiment import write_silos
    from bruit.planning.silos.plan import plan_silos

    with printer.ticker("trying settings on made-up problems") as ticker:
        found = plan_silos(question, ticker)
        about = found.to_dict()
    if save is not None:
        write_silos(found, save)
    printer.answer(SilosAnswer(about, save))


@dataclass(frozen=True)
class SilosAnswer:
    """The plan as data, and where its experiment was written."""

    about: dict[str, Any]
    saved: Path | None

    def plain(self) -> dict[str, Any]:
        return self.about | ({} if self.saved is None else {"written": str(self.saved)})

    def lines(self) -> Iterator[Line]:
        about = self.about
        masked = next(one for one in about["options"] if one["protocol"] == "masked")
        costs = about["epsilons_of_masked"]
        yield (
            f"masked: noise multiplier {_up(masked['noise_multiplier'])}, clip {masked['clip']:g} "
            f"(sigma {_up(masked['sigma'])}), {how_many(masked['steps'], 'round')}, "
            + ("every record in each" if masked["sample_rate"] == 1 else _sampled(masked))
            + f", rate {masked['rate']:.3g}; expected accuracy {masked['accuracy']:.3f}"
        )
        yield (
            f"  each record: epsilon = {about['epsilon']:g} at delta = {about['delta']:g}, record "
            f"level, {about['adjacency']}, against any {about['colluders']} of {about['silos']} silos "
            f"({how_many(masked['attempts'], 'attempt')}, discrete noise inside)"
        )
        yield (
            f"  outsiders who get the model: {costs['outsiders']:.3g}; if all masks were opened one "
            f"day: {costs['masks_opened']:.3g}; a silo as a whole: not protected "
            f"({costs['silo_as_a_whole']:.3g})"
        )
        for sentence in about["sentences"]:
            yield f"  {sentence}"
        yield Detail(_protocols(about))
        yield Detail(
            f"accuracies are those on made-up logistic problems of this size (public, seeded), with "
            f"each protocol's best settings on others of them; without data {about['without_data']:.3f}"
        )
        if self.saved is not None:
            yield f"wrote {self.saved}; try next:\n  {program()} run {self.saved}"


def _protocols(about: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(title="\nthe same budget, every protocol, best first", title_justify="left")
    for column in (
        "protocol",
        "noise multiplier",
        "sigma of the sum",
        "rounds",
        "error of the mean gradient, in clips",
        "accuracy",
        "trusting",
    ):
        table.add_column(column)
    for row in about["options"]:
        table.add_row(
            row["protocol"],
            _up(row["noise_multiplier"]),
            _up(row["noise_of_the_sum"]),
            str(row["steps"]),
            f"{row['error_in_clips']:.3g} a coordinate",
            f"{row['accuracy']:.3f} +- {row['deviation']:.3f}",
            row["trust"],
        )
    own = next(one for one in about["options"] if one["protocol"] == "alone")["accuracy_by_silo"]
    table.caption = "alone, silo by silo: " + ", ".join(
        f"{accuracy:.3f} ({how_many(held, 'record')})"
        for accuracy, held in zip(own[:MOST_NAMED], about["records"][:MOST_NAMED], strict=True)
    )
    return table


MOST_NAMED = 8
"""Silos whose own accuracy is shown."""


def _sampled(row: dict[str, Any]) -> str:
    return f"each record in a batch with chance {row['sample_rate']:g}"


def _up(noise: float) -> str:
    from bruit.planning.option import rounded_up

    return rounded_up(noise, 6)
