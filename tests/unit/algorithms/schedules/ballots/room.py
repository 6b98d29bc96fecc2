"""A room: machines of a run by ballots, and what they say to each other, handed over by hand."""

from collections import deque

from benchmarks.reliability.assembly import Assembly, Weather
from bruit.algorithms.schedules.machine import Send, WakeAt


class Room:
    """All messages arrive in order and at once, except to and from those who are `away`."""

    def __init__(
        self, peers=4, steps=3, spare=2, dropouts=1, colluders=1, clock=10.0, route="complete"
    ):
        weather = Weather(
            peers,
            clock,
            steps=steps,
            spare=spare,
            dropouts=dropouts,
            colluders=colluders,
            route=route,
        )
        self.assembly = Assembly(weather, 1)
        self.machines, self.ledger = self.assembly.machines, self.assembly.ledger
        self.away, self.alarms, self.heard = set(), [], []
        self.queue = deque()
        self.now = 0.0

    def begin(self):
        for peer, machine in enumerate(self.machines):
            if peer not in self.away:
                self.take(peer, machine.begin(self.now))
        return self

    def take(self, peer, effects):
        for effect in effects:
            if isinstance(effect, Send):
                self.queue.append((peer, effect.to, effect.envelope))
            elif isinstance(effect, WakeAt):
                self.alarms.append((peer, effect))
        return effects

    def talk(self, until=lambda sender, to, word: False):
        """Hand over messages; stop before the first of which this is true, and give it back."""
        while self.queue:
            sender, to, word = self.queue.popleft()
            if {sender, to} & self.away:
                continue
            if until(sender, to, word):
                return sender, to, word
            self.hand(sender, to, word)
        return None

    def hand(self, sender, to, word):
        self.heard.append((sender, to, word))
        return self.take(to, self.machines[to].receive(self.now, sender, word))

    def ring(self, alarm, peers=None):
        """Let all alarms of this kind ring that are of the present ballot."""
        due, self.alarms = self.alarms, []
        for peer, what in due:
            here = self.machines[peer]
            if what.alarm != alarm or peer in self.away or (peers and peer not in peers):
                self.alarms.append((peer, what))
            elif what.number == here.ballot:
                self.now = max(self.now, what.time)
                self.take(peer, here.wake(self.now, what.alarm, what.number))

    def words(self, kind, sender=None, to=None):
        """What was handed over of this kind."""
        return [
            word
            for who, whom, word in self.heard
            if word.kind == kind and sender in (None, who) and to in (None, whom)
        ]


def says(kind, sender=None, to=None):
    """Which message to stop at."""
    return lambda who, whom, word: (
        word.kind == kind and sender in (None, who) and to in (None, whom)
    )
