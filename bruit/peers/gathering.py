"""Gathering: nothing is said before those who should hear it are there.

A value released to nobody is budget spent for nothing. So a host waits before its first word until
`wait_for` of its neighbors are connected; if they are not in time it gives up, with nothing
released and nothing spent. Those beyond that number are given one patience more. A peer that starts
again in the middle of a run waits for one neighbor at least, and until all the others have answered
or could not be reached: what they have of this peer's may prove that its journal is an old copy,
and that is to be known before anything new is released. In the middle of a run a host that may
release next and has fewer than `quorum` neighbors waits in the same way.

Peers also begin together: whoever has all of its neighbors says so (level 1), and rises to level k
+ 1 when all of its neighbors are on level k. At level k, then, everybody less than k hops away has
all of its neighbors; at HOPS a peer begins. So nobody speaks to one who waits for a third, and may
yet give up. APART, one level higher, says that an exchange was made without somebody; it is passed
on, so that who is no neighbor of the missing one hears that there was one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from bruit.peers.wire.line import Line

log = logging.getLogger("bruit.peers")
HOPS = 8  # how far away everybody must have its neighbors before a peer begins
APART = HOPS + 1
ANSWER = 5.0  # seconds within which neighbors that are there answer one who starts again
LOOK = 0.02  # seconds between two looks around at first, and a tenth of the wait later
SELDOM = 0.2  # seconds between two looks at most
FIRST, CHANGED, SAME = (
    1.0,
    5.0,
    30.0,
)  # seconds until the operator hears whom a peer waits for: first, news, no news


def look_after(waited: float) -> float:
    """Seconds until the next look around: a long wait costs little."""
    return min(SELDOM, max(LOOK, waited / 10))


@dataclass(kw_only=True)
class Gathering:
    """Who is there; `announce` tells the neighbors the level this peer has reached."""

    lines: Mapping[int, Line]
    names: Callable[[int], str]
    wait_for: int | None  # of the neighbors; None: all
    announce: Callable[[int], None]
    quorum: int = 0  # neighbors that must be connected before each later release
    level: int = 0
    waiting: bool = False
    apart: bool = False  # somewhere an exchange was made without somebody
    _shown: str = ""
    _when: float = field(default=0.0, repr=False)

    def needed(self, begun: bool = False) -> int:
        """How many neighbors must be connected; in the middle of a run one, if anybody was to be
        waited for at all."""
        wanted = len(self.lines) if self.wait_for is None else self.wait_for
        return min(wanted, 1) if begun else max(wanted, self.quorum)

    def connected(self) -> int:
        return sum(line.connected for line in self.lines.values())

    def missing(self) -> list[str]:
        """The names of those who are not connected."""
        return [self.names(peer) for peer, line in self.lines.items() if not line.connected]

    def begun(self) -> None:
        """Let the neighbors know that this peer waits no longer."""
        self.level = HOPS
        self.announce(APART if self.apart else HOPS)

    def heed(self, missed: bool) -> None:
        """This peer has missed somebody, or a neighbor says that somebody was missed: said on,
        once."""
        if not self.apart and (missed or any(line.level >= APART for line in self.lines.values())):
            self.apart = True
            self.announce(APART)

    def _rise(self) -> None:
        before = self.level
        if self.connected() < len(self.lines):
            self.level = 0
        else:
            self.level = min(
                HOPS, 1 + min((line.level for line in self.lines.values()), default=HOPS)
            )
        if self.level != before:
            self.announce(self.level)

    def _ready(self, waited: float, timeout: float, begun: bool) -> bool:
        if not begun:
            self._rise()
        enough = self.connected() >= self.needed(begun)
        if begun and waited < min(timeout, ANSWER):
            return enough and all(line.connected or line.tried for line in self.lines.values())
        if begun or (self.wait_for is not None and waited >= timeout):
            return enough
        return self.level >= HOPS

    async def wait(
        self, timeout: float, give_up: float, stopped: Callable[[], bool], begun: bool
    ) -> str:
        """Until enough are there, or the host is stopped: "". Else why this peer gave up after
        `give_up` seconds."""
        start, self.waiting = time.monotonic(), True
        # a proof that the journal is an old copy is given its time, however impatient this peer is
        timeout = give_up if begun else min(timeout, give_up)
        try:
            while not stopped() and not self._ready(time.monotonic() - start, timeout, begun):
                waited = time.monotonic() - start
                if waited >= give_up:
                    return self._gave_up(give_up, begun)
                self._show(waited)
                await asyncio.sleep(look_after(waited))
            return ""
        finally:
            self.waiting = False

    async def wait_again(
        self, quorum: int, give_up: float, stopped: Callable[[], bool], ended: Collection[int]
    ) -> str:
        """In the middle of a run, until so many neighbors are there again: "". Else why this peer
        stopped: after `give_up` seconds, or at once when so many have `ended` and said goodbye that
        the others are too few."""
        start, self.waiting, self._shown, self._when = time.monotonic(), True, "", 0.0
        try:
            while not stopped() and self.connected() < quorum:
                waited = time.monotonic() - start
                gone = sum(
                    peer in ended and not line.connected for peer, line in self.lines.items()
                )
                if waited >= give_up or len(self.lines) - gone < quorum:
                    why = f"{gone} have ended" if waited < give_up else f"waited {give_up:g} s"
                    return (
                        f"stopped in the middle of the run: {why}, and {quorum} of"
                        f" {len(self.lines)} neighbors must be there before more is released;"
                        f" missing: {', '.join(self.missing())}; nothing more was released, and"
                        " what was done is kept"
                    )
                self._show(waited)
                await asyncio.sleep(look_after(waited))
            return ""
        finally:
            self.waiting = False

    def whom(self) -> str:
        """Whom this peer waits for, in words."""
        missing = self.missing()
        low = min((line.level for line in self.lines.values()), default=0)
        others = [self.names(peer) for peer, line in self.lines.items() if line.level == low]
        names = ", ".join(missing) if missing else f"{', '.join(others)}, who wait for others"
        return f"{names} ({self.connected()} of {len(self.lines)} connected)"

    def _show(self, waited: float) -> None:
        """Tell the operator, not too often, whom this peer waits for."""
        if waited < FIRST or (self._shown and waited - self._when < CHANGED):
            return
        whom = self.whom()
        if whom == self._shown and waited - self._when < SAME:
            return
        log.warning("waiting for %s", whom)
        self._shown, self._when = whom, waited

    def _gave_up(self, seconds: float, begun: bool) -> str:
        wanted = (
            f"wait_for asks for {self.needed(begun)}"
            if not begun
            else "one at least is needed to go on"
        )
        more = "more " if begun else ""
        return (
            f"gave up after {seconds:g} s of waiting for {self.whom()}; {wanted};"
            f" nothing {more}was released and nothing {more}was spent"
        )
