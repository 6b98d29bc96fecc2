"""A network for tests: a virtual clock, messages as late as one likes, peers that are away, links that are cut.

Like a real line, a link keeps the order of its messages and delivers everything once the receiver is up, unless it is
cut for good.
"""

import heapq
import math
from collections import Counter, defaultdict

import numpy as np

from bruit.algorithms.doorway import believed
from bruit.algorithms.home import TaskDoor
from bruit.algorithms.schedules import Rounds
from bruit.privacy.ledger import Ledger
from bruit.protocols.machine import Done, Met, Missed, Send, WakeAt
from bruit.protocols.peer import Seat, peer_machine
from bruit.randomness import Replay
from bruit.trace import Faults, Meetings


def machines(algorithm, graph, task, steps, timeout, seed=3, noise=None):
    dice, public = Replay(seed), algorithm.prepare(graph, steps)
    found = []
    schedule = algorithm.schedule
    calls = Meetings.none() if isinstance(schedule, Rounds) else schedule.meetings(graph, steps, dice)
    for peer in range(graph.n):
        mine = calls.of(peer)
        door = TaskDoor(task, noise, dice, Ledger(graph.n))
        found.append(peer_machine(Seat(peer, algorithm, graph, door, dice, steps, public, Faults.none(), mine.time,
                                       mine.b, None, timeout)))  # fmt: skip
    return found


class SlowNetwork:
    """`delay(sender, receiver, k)` is the delay of the k-th message sent at all, None if it is lost for good.

    `away[peer]` lists intervals during which a peer neither hears nor wakes; `copies` delivers everything so often.
    """

    def __init__(self, peers, delay=lambda sender, receiver, k: 0.0, away=None, copies=1):
        self.peers, self.delay, self.away, self.copies = peers, delay, away or {}, copies
        self.heap, self.sent, self.now = [], 0, 0.0
        self.link_free = defaultdict(float)
        self.missed, self.done, self.kinds = [[] for _ in peers], set(), Counter()
        self.met, self.said = [], {}  # said: (sender, receiver, number) -> row
        self.passed = Counter()  # by number: tokens let go
        self.order = []  # the same in order, with those that go on in an epoch of their own

    def back(self, peer, time):
        """The first moment from `time` on at which the peer is up."""
        for begin, end in sorted(self.away.get(peer, [])):
            if begin <= time < end:
                time = end
        return time

    def push(self, time, peer, what):
        time = self.back(peer, time)
        if math.isfinite(time):
            self.sent += 1
            heapq.heappush(self.heap, (time, self.sent, peer, what))

    def run(self, until=math.inf):
        for peer in range(len(self.peers)):
            self.push(0.0, peer, ("begin",))
        while self.heap and self.heap[0][0] <= until:
            time, _, peer, what = heapq.heappop(self.heap)
            if self.back(peer, time) > time:
                self.push(time, peer, what)
                continue
            self.now, machine = time, self.peers[peer]
            if what[0] == "begin":
                effects = machine.begin(time)
            elif machine.state is None:
                self.push(math.nextafter(time, math.inf), peer, what)
                continue
            else:
                effects = machine.wake(time, *what[1:]) if what[0] == "alarm" else machine.receive(time, *what[1:])
            tokens = [effect.envelope.number - 1 for effect in effects
                      if isinstance(effect, Send) and effect.envelope.kind == "token"]  # fmt: skip
            if what[0] != "alarm":
                self.passed.update(tokens)
            if what[:2] != ("alarm", "token"):  # taking one back is not letting another go
                self.order += tokens
            self.carry_out(peer, effects)
        return self

    def carry_out(self, peer, effects):
        for effect in effects:
            if isinstance(effect, Send):
                self.kinds[effect.envelope.kind] += 1
                self.said[peer, effect.to, effect.envelope.number] = effect.envelope.row
                self.send(peer, effect)
            elif isinstance(effect, WakeAt):
                self.push(max(effect.time, self.now), peer, ("alarm", effect.alarm, effect.number))
            elif isinstance(effect, Missed):
                self.missed[peer].append(effect)
            elif isinstance(effect, Met):
                self.met.append((effect.other, peer, effect.number))
            elif isinstance(effect, Done):
                self.done.add(peer)

    def send(self, peer, effect):
        late = 0.0 if effect.to == peer else self.delay(peer, effect.to, self.sent)
        if late is None:
            return
        link = (peer, effect.to)
        self.link_free[link] = max(self.link_free[link], self.now + late)
        for _ in range(self.copies):
            self.push(self.link_free[link], effect.to, ("message", peer, effect.envelope))

    def left_over(self):
        """Exchanges somebody went on without, and that nobody made up for."""
        return [(peer, miss.other, miss.number) for peer, found in enumerate(self.missed)
                for miss in found if not miss.late
                and not any(m.late and (m.other, m.number) == (miss.other, miss.number) for m in found)]  # fmt: skip

    def estimates(self):
        return np.concatenate([believed(one.seat.algorithm, one.state) for one in self.peers])
