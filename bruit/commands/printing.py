"""The one printer of the command line: an answer is printed as text or as JSON, and by nobody else.

A command makes an answer, a record with two faces, and hands it over:

    plain()    what --json prints: exactly one JSON document on standard output, and nothing else there
    lines()    what people read, line by line: text, tables, and details that --quiet leaves out

Whatever is said on the way (what is waited for, what was kept from before) is for people too: it is
left out by --quiet and by --json. Warnings and errors go to standard error, always.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from rich.console import RenderableType

from bruit.commands import terminal
from bruit.commands.terminal import Ticker
from bruit.files import to_json

# what steers a terminal, or cannot be written to one; lines end as they do
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Detail:
    """A line or a table that --quiet leaves out."""

    shown: RenderableType


@dataclass(frozen=True)
class Exactly:
    """Text for other programs, such as CSV: written letter by letter."""

    text: str


@dataclass(frozen=True)
class Beside:
    """A line about an answer that goes to standard error, so that the answer can be piped; --quiet
    leaves it out."""

    text: str


Line = RenderableType | Detail | Exactly | Beside


class Printable(Protocol):
    """What a command found, for programs and for people."""

    def plain(self) -> Any:
        """Plain data, printed as JSON."""

    def lines(self) -> Iterable[Line]:
        """The same in words, computed only when they are printed."""


@dataclass(frozen=True)
class Reply:
    """An answer whose two faces are at hand; a generator of lines runs only when it is printed."""

    content: Any
    words: Iterable[Line]

    def plain(self) -> Any:
        return self.content

    def lines(self) -> Iterable[Line]:
        return self.words


@dataclass(frozen=True, kw_only=True)
class Printer:
    """Prints as the options --json and --quiet of one command say."""

    json: bool = False
    quiet: bool = False

    @property
    def silent(self) -> bool:
        """Whether nothing is said besides the answer."""
        return self.json or self.quiet

    def answer(self, found: Printable) -> None:
        """Print what was found."""
        if self.json:
            print(to_json(found.plain()))
            return
        for line in found.lines():
            self._line(line)

    def _line(self, line: Line) -> None:
        if isinstance(line, Detail | Beside) and self.quiet:
            return
        if isinstance(line, Beside):
            warn(line.text)
        elif isinstance(line, Exactly):
            sys.stdout.write(line.text)
        else:
            _show(line.shown if isinstance(line, Detail) else line)

    def say(self, text: str) -> None:
        """A sentence for people on the way to the answer, on standard output."""
        if not self.silent:
            _show(text)

    def note(self, text: str) -> None:
        """A sentence about the way to the answer, on standard error."""
        if not self.silent:
            warn(text)

    def ticker(self, title: str) -> Ticker:
        """A progress bar for people who look on."""
        return Ticker(self.silent, title)


def warn(text: str) -> None:
    """A line on standard error as it is, whatever --quiet and --json say."""
    terminal.err.print(_tame(text), markup=False, highlight=False, soft_wrap=True)


def _show(shown: RenderableType) -> None:
    """Text as it is: no markup, no colors, no cuts. Tables and panels as they are drawn."""
    if isinstance(shown, str):
        terminal.out.print(_tame(shown), markup=False, highlight=False, soft_wrap=True)
    else:
        terminal.out.print(shown)


def _tame(text: str) -> str:
    """Words may be somebody else's: they steer no terminal."""
    return STEERING.sub(lambda found: _spelled(found[0]), text)


def one_line(text: object) -> str:
    """Words of somebody else within a line of ours, which they cannot end."""
    return "".join(one if one.isprintable() else _spelled(one) for one in str(text))


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()
