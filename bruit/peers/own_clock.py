"""The own clock of a peer: its alarms, and the time that it shows.

It counts seconds from the moment the peer began. It stands still while the peer waits for its
neighbors. Calls, which are drawn ahead in units of the schedule, ring later by all the time that
this peer was too slow for them, or was in a meeting.
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field

from bruit.algorithms.schedules.machine import Alarm, WakeAt

Entry = tuple[float, int, Alarm, int]  # when an alarm is due, a count, which alarm, and its number


@dataclass(kw_only=True)
class OwnClock:
    """`pace` is the length of one unit of the schedule's time, in seconds."""

    pace: float
    began: float = 0.0  # when it showed 0, by the clock of the machine
    paused: float | None = None  # since when it stands still, if it does
    alarms: list[Entry] = field(default_factory=list)
    alarm_count: int = 0
    behind: float = 0.0  # seconds that calls are late
    bound: float | None = None  # since when this peer is in a meeting

    def now(self) -> float:
        """What it shows."""
        return (time.monotonic() if self.paused is None else self.paused) - self.began

    def show(self, now: float) -> None:
        """Set it: this is what it shows now."""
        self.began = time.monotonic() - now

    def start(self) -> None:
        """It shows 0, and stands still until everybody was heard."""
        self.began = self.paused = time.monotonic()

    def pause(self) -> None:
        """Stand still from now on."""
        self.paused = time.monotonic()

    def unpause(self) -> None:
        """Go on from what it showed when it was paused."""
        if self.paused is not None:
            self.began += time.monotonic() - self.paused
            self.paused = None

    def stood_still_since(self, before: float) -> None:
        """Leave out the time since then, by the clock of the machine."""
        self.began += time.monotonic() - before

    def wake_at(self, wanted: WakeAt) -> None:
        """Set an alarm; calls are in the schedule's time, and as late as those before."""
        call = wanted.alarm == "call"
        due = wanted.time * self.pace + self.behind if call else wanted.time
        self.alarm_count += 1
        heapq.heappush(self.alarms, (due, self.alarm_count, wanted.alarm, wanted.number))

    def ring(self, wanted: Alarm) -> None:
        """Let the alarms of that name ring now."""
        now = self.now()
        self.alarms = [
            (min(due, now) if alarm == wanted else due, count, alarm, number)
            for due, count, alarm, number in self.alarms
        ]
        heapq.heapify(self.alarms)

    def next_alarm(self, meeting: bool) -> Entry | None:
        """The next alarm. A call waits while this peer is in a meeting with one who is there:
        meetings are meant to take no time, and a call that came in the middle of one would be
        lost."""
        if not meeting:
            return self.alarms[0] if self.alarms else None
        return min((entry for entry in self.alarms if entry[2] != "call"), default=None)

    def take_alarm(self, entry: Entry, now: float) -> None:
        """An alarm rings. A call that rings late makes those after it later: the clock of a peer
        that is too slow for it goes slower, instead of calling again and again at the same
        moment."""
        self.alarms.remove(entry)
        heapq.heapify(self.alarms)
        if entry[2] == "call":
            self.behind += max(0.0, now - entry[0])

    def count_meeting_time(self, meeting: bool, kind: str, now: float) -> None:
        """After an input: calls have stood still during a meeting that is over; not for one who
        never came, for whom patience ended."""
        if meeting:
            self.bound = now if self.bound is None else self.bound
            return
        lasted, self.bound = 0.0 if self.bound is None else now - self.bound, None
        if lasted and kind != "alarm":
            self.behind += lasted
            self.alarms = [
                (due + lasted * (alarm == "call"), count, alarm, number)
                for due, count, alarm, number in self.alarms
            ]
            heapq.heapify(self.alarms)
