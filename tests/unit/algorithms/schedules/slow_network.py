"""A network for tests: a virtual clock, messages as late as one likes, peers that are away, links
that are cut.

Like a real line, a link keeps the order of its messages and delivers everything once the receiver
is up, unless it is cut for good.
"""

import hashlib
import heapq
import math
from collections import Counter, defaultdict

import numpy as np

from bruit.algorithms.doorway import believed
from bruit.algorithms.schedules.machine import Done, Met, Missed, Send, WakeAt
from bruit.algorithms.schedules.peer import Seat, peer_machine
from bruit.algorithms.schedules.rounds.schedule import Rounds
from bruit.algorithms.schedules.vouchers import Seals
from bruit.algorithms.task_door import TaskDoor
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.trace import Faults, Meetings


class ToySeals(Seals):
    """Seals that nobody forges because nobody tries."""

    def __init__(self, me):
        self.me = me

    def sign(self, text):
        return hashlib.sha512(f"{self.me} {text}".encode()).digest()

    def check(self, peer, text, seal):
        return seal == hashlib.sha512(f"{peer} {text}".encode()).digest()


def machines(algorithm, graph, task, steps, timeout, seed=3, noise=None, sealed=False):
    dice, public = Replay(seed), algorithm.prepare(graph, steps)
    found = []
    schedule = algorithm.schedule
    calls = (
        Meetings.none() if isinstance(schedule, Rounds) else schedule.meetings(graph, steps, dice)
    )
    for peer in range(graph.n):
        mine = calls.of(peer)
        door = TaskDoor(task=task, mechanism=noise, dice=dice, ledger=Ledger(peers=graph.n))
        found.append(
            peer_machine(
                Seat(
                    me=peer,
                    algorithm=algorithm,
                    graph=graph,
                    door=door,
                    dice=dice,
                    steps=steps,
                    public=public,
                    faults=Faults.none(),
                    calls=mine.time,
                    partners=mine.b,
                    state=None,
                    timeout=timeout,
                    shared=None,
                    seals=ToySeals(peer) if sealed else None,
                )
            )
        )
    return found


class SlowNetwork:
    """`delay(sender, receiver, k)` is the delay of the k-th message sent at all, None if it is lost
    for good.

    `away[peer]` lists intervals during which a peer neither hears nor wakes; `copies` delivers
    everything so often.
    """

    def __init__(self, peers, delay=lambda sender, receiver, k: 0.0, away=None, copies=1):
        self.peers, self.delay, self.away, self.copies = peers, delay, away or {}, copies
        self.heap, self.sent, self.now = [], 0, 0.0
        self.link_free = defaultdict(float)
        self.missed, self.done, self.kinds = [[] for _ in peers], set(), Counter()
        self.met, self.said = [], {}  # said: (sender, receiver, number) -> row
        self.apart = set()  # (sender, receiver, number) of words of that kind
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
                woken = what[0] == "alarm"
                effects = (
                    machine.wake(time, *what[1:])
                    if woken
                    else self.receive(machine, time, *what[1:])
                )
            tokens = [
                effect.envelope.number - 1
                for effect in effects
                if isinstance(effect, Send) and effect.envelope.kind == "token"
            ]
            if what[0] != "alarm":
                self.passed.update(tokens)
            if what[:2] != ("alarm", "token"):  # taking one back is not letting another go
                self.order += tokens
            self.carry_out(peer, effects)
        return self

    def receive(self, machine, *message):
        return machine.receive(*message)

    def carry_out(self, peer, effects):
        for effect in effects:
            if isinstance(effect, Send):
                self.kinds[effect.envelope.kind] += 1
                self.said[peer, effect.to, effect.envelope.number] = effect.envelope.row
                if effect.envelope.kind == "apart":
                    self.apart.add((peer, effect.to, effect.envelope.number))
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
        return [
            (peer, miss.other, miss.number)
            for peer, found in enumerate(self.missed)
            for miss in found
            if not miss.late
            and not any(m.late and (m.other, m.number) == (miss.other, miss.number) for m in found)
        ]

    def skipped(self, one, other, number):
        """Whether both of two peers went on without each other in that round: no exchange."""
        return {(one, other, number + 1), (other, one, number + 1)} <= self.apart

    def estimates(self):
        return np.concatenate([believed(one.seat.algorithm, one.state) for one in self.peers])
