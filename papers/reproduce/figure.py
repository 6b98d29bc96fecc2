"""One figure or table of a source, and what repeating it found.

A `Figure` is an entry of the catalog: where it is printed, what repeats it, which data that needs,
how long it takes, and what must hold. One entry serves the command, the tests and the gallery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from bruit.tasks.data.catalog import folders
from papers.figures.sections import Cell

DOCUMENTS = {
    "hdr": "habilitation (tel-03542802)",
    "rep": "report (hal-01665410)",
    "th": "thesis (tel-04907994)",
    "lec": "lecture notes",
    "sl": "slides",
}


def chapter(id: str) -> str:
    """The first part of a number: 6 of th-6.1b, A of th-tA.2."""
    return id.split("-", 1)[1].removeprefix("t").split(".")[0]


@dataclass(frozen=True)
class Check:
    """A statement that was checked on the numbers just computed.

    `refuted` says why a statement of the *source* cannot hold; such a check is expected to fail,
    and that it failed is told as a refutation. A statement without it must hold.
    """

    words: str
    holds: bool
    refuted: str = ""
    too_small: bool = False  # computed in a short form on which this statement says nothing

    @property
    def verdict(self) -> str:
        """holds, refuted (as expected), missed, unexpected (the refutation was not seen), or not
        judged."""
        if self.too_small:
            return "too small to judge"
        if self.refuted:
            return "unexpected" if self.holds else "refuted"
        return "holds" if self.holds else "missed"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found: a table, checks, settings, and how to draw it."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    checks: tuple[Check, ...]
    draw: Callable[[Any], None]  # on an empty matplotlib figure
    settings: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""

    @property
    def good(self) -> bool:
        """Whether every check came out as expected."""
        return not any(check.verdict in ("missed", "unexpected") for check in self.checks)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """An entry of the catalog."""

    id: str  # document, dash, number as printed: th-6.1b
    title: str
    number: str  # as printed: Figure 6.1(b)
    page: str
    repeat: Callable[[bool], Finding]  # the argument: quick, smaller and not the source's sizes
    criterion: str
    cpu_s: float  # measured once, of the whole figure
    theory: tuple[str, ...] = ()  # codes of docs/theory
    data: tuple[str, ...] = ()  # folders of the data folder
    instead: str = ""  # what is used where the data are not; empty: the figure is skipped
    extra: str = ""  # an extra, named like what it brings; without it the figure is skipped
    shows_records: bool = False  # its picture does, and they are not ours to pass on
    also: tuple[str, ...] = ()  # other figures that the same numbers show: th-C.4, rep-3

    @property
    def ids(self) -> tuple[str, ...]:
        """The id, and those of the figures that it shows as well."""
        return (self.id, *self.also)

    @property
    def document(self) -> str:
        """The source, in words."""
        return DOCUMENTS[self.id.split("-")[0]]

    def missing(self) -> list[str]:
        """Data that this machine does not have."""
        return [name for name in self.data if not any((at / name).is_dir() for at in folders())]

    def why_not(self) -> str:
        """Why this machine cannot repeat it; empty if it can."""
        if self.extra and find_spec(self.extra) is None:
            return f"needs {self.extra}, which is not installed: pip install 'bruit[{self.extra}]'"
        if not self.instead and (missing := self.missing()):
            return f"needs {', '.join(missing)} in the data folder (BRUIT_DATA)"
        return ""
