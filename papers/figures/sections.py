"""A table of one experiment: what is printed for people, and the same as plain data for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Cell = str | float | int


@dataclass(frozen=True)
class Section:
    """One experiment: its id in the specification, what it asks, a table, and what must be said
    beside it."""

    id: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: str = ""

    def __str__(self) -> str:
        lines = [self.header, *(tuple(shown(cell) for cell in row) for row in self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.header))]
        table = [
            "  "
            + "  ".join(
                text.ljust(width) for text, width in zip(line, widths, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join(
            [f"{self.id}: {self.title}", *table, *([f"  {self.words}"] if self.words else [])]
        )

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        rows = [dict(zip(self.header, row, strict=True)) for row in self.rows]
        return {"id": self.id, "title": self.title, "rows": rows, "words": self.words}


def shown(cell: Cell) -> str:
    """Four digits for numbers, no more."""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def skipped(id: str, title: str, reason: str) -> Section:
    """An experiment that this machine cannot do."""
    return Section(id, title, ("skipped",), ((reason,),))


def section(
    id: str, title: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], words: str = ""
) -> Section:
    """A section from lists."""
    return Section(id, title, tuple(header), tuple(tuple(row) for row in rows), words)
