"""What the lines of an audit log say was released: by run, without gaps, or with them.

A run counts the lines of its ledger 1, 2, 3, ... A start tells how many its journal holds. A kill may have
left one line of the log whose releases the journal never committed: those never left, and their numbers come
again. More than one, or a part of one, no kill leaves: the journal is an old copy, all of them have left, and
what is released under their numbers comes on top. Where a journal holds more than the log has, lines are
missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bruit.errors import PrivacyError
from bruit.privacy.events import Event, Mask, event_from
from bruit.privacy.toolbox.pld import compose_epsilon

AUDIT, START, RELEASE, END = "audit log", "start", "release", "end"


@dataclass(kw_only=True)
class RunReleases:
    """Of one run of one peer."""

    about: dict[str, Any]
    lines: list[tuple[int, int, tuple[tuple[Event, int], ...]]] = field(default_factory=list)
    last: int = 0
    delta: float = 0.0
    ended: bool = False
    unsaid: int = 0  # lines written down for releases that never left
    again: int = 0  # lines that an old copy of the journal knew nothing of, and made again
    missing: list[tuple[int, int]] = field(default_factory=list)

    def start(self, held: int) -> None:
        """The journal holds so many; what is beyond in the last line of the log alone never left."""
        if held > self.last:
            self.missing.append((self.last + 1, held))
        if held < self.last:
            killed = bool(self.lines) and self.lines[-1][0] == held + 1
            if killed and self.lines[-1][1] == self.last:
                self.unsaid += self.last - held
                self.lines.pop()
            else:
                self.again += self.last - held
        self.last = held

    def release(self, first: int, last: int, events: tuple[tuple[Event, int], ...]) -> None:
        if last < first or first < 1 or sum(count for _, count in events) != last - first + 1:
            raise ValueError(f"it counts releases {first} to {last}, and lists others")
        if first != self.last + 1:
            self.missing.append((self.last + 1, first - 1))
        self.lines.append((first, last, events))
        self.last = last

    @property
    def releases(self) -> int:
        """How many of the lines are about data; masks are in the ledger, too."""
        events = (one for _, _, found in self.lines for one in found)
        return sum(count for event, count in events if not isinstance(event, Mask))

    def epsilon(self) -> float:
        """Of everything in it, at its delta."""
        events = [one for _, _, found in self.lines for one in found]
        return compose_epsilon(events, self.delta) if events else 0.0


@dataclass
class Released:
    """What all lines say, by the key of a run."""

    runs: dict[str, RunReleases] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[Mapping[str, Any]]) -> Released:
        """Read lines that follow from each other; ValueError names one that says nothing."""
        found = cls()
        for place, line in enumerate(lines, 1):
            try:
                found._add(line, place)
            except (KeyError, TypeError, ValueError, OverflowError, PrivacyError) as error:
                raise ValueError(f"line {place} does not say what was released ({error})") from None
        return found

    def last(self, key: str) -> int:
        """How many releases of that run it knows of."""
        return self.runs[key].last if key in self.runs else 0

    def _add(self, line: Mapping[str, Any], place: int) -> None:
        what = line.get("what")
        if (what == AUDIT) != (place == 1):
            raise ValueError(f"the first line, and no other, begins an {AUDIT}")
        if what == START:
            about = {name: line[name] for name in ("run", "peer", "name", "algorithm")}
            self.runs.setdefault(line["key"], RunReleases(about=about)).start(_whole(line["held"]))
        elif what == RELEASE:
            run = self.runs[line["key"]]
            run.delta = float(line["delta"])
            events = tuple((event_from(event), _whole(count)) for event, count in line["events"])
            run.release(_whole(line["first"]), _whole(line["last"]), events)
        elif what == END:
            run = self.runs[line["key"]]
            if _whole(line["last"]) > run.last:
                run.missing.append((run.last + 1, line["last"]))
            run.ended = True
        elif what not in (AUDIT, "torn"):
            raise ValueError(f"nobody knows what {what!r} means; a newer version may")


def _whole(found: object) -> int:
    if type(found) is not int or found < 0:
        raise ValueError(f"a whole number is due, found {found!r}")
    return found
