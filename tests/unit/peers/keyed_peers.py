"""Real machines of `gopa` with lines that a test holds in its hands, and starts that execute the
inputs of the earlier ones again, as a journal does."""

import os

import numpy as np

from bruit.algorithms.gossip.gopa import Gopa
from bruit.algorithms.schedules.machine import GaveUp, Send
from bruit.algorithms.schedules.peer import Seat, peer_machine
from bruit.algorithms.schedules.vouchers import Seals
from bruit.algorithms.task_door import TaskDoor
from bruit.graphs import complete
from bruit.mechanisms import Gaussian
from bruit.peers.agreed_masks import AgreedMasks
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay, Secure
from bruit.tasks import Mean
from bruit.trace import Faults

STEPS = 8
GOPA = f"""\
graph = "complete:4"
steps = {STEPS}
seed = 3

[task]
kind = "mean"
dim = 3

[algorithm]
name = "gopa"
ratio = 1000.0

[privacy]
clip = 9.0
sigma = 0.02
"""


class Believed(Seals):
    """Signatures that are all good, but for those of `forged`."""

    def __init__(self):
        self.forged = set()

    def sign(self, text):
        return bytes(64)

    def check(self, peer, text, seal):
        return peer not in self.forged


class Peers:
    """Machines of one run, what each has been fed, and the messages on their lines."""

    def __init__(self, count):
        self.graph, self.algorithm = complete(count), Gopa(ratio=1000.0)
        self.task = Mean(np.random.default_rng(0).normal(size=(count, 2)))
        self.inputs = {peer: [] for peer in range(count)}
        self.lines = {(a, b): [] for a in range(count) for b in range(count) if a != b}
        self.begun, self.gave_up = set(), {}
        self.firsts = {peer: set() for peer in range(count)}  # first words that left
        self.secrets = {}  # by peer: what it had with each neighbor when it spoke
        self.seats = {peer: self._seat(peer) for peer in range(count)}

    def _seat(self, me):
        masks, dice = AgreedMasks(), Secure()
        dice.rekey(None)
        door = TaskDoor(
            task=self.task,
            mechanism=Gaussian(clip=9.0, sigma=0.02),
            dice=dice,
            ledger=Ledger(peers=self.graph.n),
            public=Replay(1),
            masks=masks,
        )
        seat = Seat(
            me=me,
            algorithm=self.algorithm,
            graph=self.graph,
            door=door,
            dice=dice,
            steps=STEPS,
            public=self.algorithm.prepare(self.graph, STEPS),
            faults=Faults.none(),
            calls=np.zeros(0),
            partners=np.zeros(0, np.int64),
            timeout=5.0,
            seals=Believed(),
        )
        return peer_machine(seat), masks

    def machine(self, peer):
        return self.seats[peer][0]

    def rekey(self, peer):
        self.machine(peer).seat.dice.rekey(os.urandom(16))

    def _feed(self, peer, kind, *given):
        """One input, with the words that it made before it."""
        machine, masks = self.seats[peer]
        silent = machine.state is None
        effects = self._execute(machine, kind, *given)
        words = machine.uttered()
        self.inputs[peer] += [("words", word) for word in words] + [(kind, *given)]
        if silent and machine.state is not None:
            assert len(words) == 1
            self.secrets[peer] = {
                other: masks.secret(peer, other, key) for other, key in machine._theirs.items()
            }
        for effect in effects:
            if isinstance(effect, Send):
                self.lines[peer, effect.to].append(effect.envelope)
                if effect.envelope.kind != "pact" and effect.envelope.number == 0:
                    self.firsts[peer].add(effect.envelope.row.tobytes())
            elif isinstance(effect, GaveUp):
                self.gave_up[peer] = effect.why

    def _execute(self, machine, kind, *given):
        if kind == "start":
            machine.seat.dice.rekey(given[0])
            return []
        if kind == "words":
            machine.recite(given[0])
            return []
        return getattr(machine, kind)(0.0, *given)

    def begin(self, *peers):
        for peer in peers:
            self.begun.add(peer)
            self._feed(peer, "start", os.urandom(16))
            self._feed(peer, "renew", self.seats[peer][1].renew())
            self._feed(peer, "begin")

    def restart(self, peer):
        before, self.seats[peer] = self.machine(peer), self._seat(peer)
        machine, masks = self.seats[peer]
        for kind, *given in self.inputs[peer]:
            self._execute(machine, kind, *given)
        assert machine.uttered() == []
        assert (machine.state is None) == (before.state is None)
        if before.state is not None:
            assert np.array_equal(machine.state.value, before.state.value)
        assert len(machine.seat.door.ledger) == len(before.seat.door.ledger)
        self.gave_up.pop(peer, None)
        self._feed(peer, "start", os.urandom(16))
        self._feed(peer, "renew", masks.renew())

    def wake(self, peer, alarm, number):
        self._feed(peer, "wake", alarm, number)

    def under_way(self):
        return [
            ends
            for ends, line in self.lines.items()
            if line
            and ends[1] in self.begun
            and not self.machine(ends[1]).early(ends[0], line[0].kind, line[0].number)
        ]

    def deliver(self, chance=None):
        ready = self.under_way()
        a, b = ready[0 if chance is None else int(chance.integers(len(ready)))]
        self._feed(b, "hear", a, self.lines[a, b].pop(0))

    def deliver_until(self, enough):
        while self.under_way() and not enough():
            self.deliver()

    def deliver_all(self):
        self.deliver_until(lambda: False)

    def first_word(self, sender, receiver):
        return self.lines[sender, receiver][0]

    def spoke(self):
        return set(self.secrets)

    def check(self):
        """One first word each; the same secret at both ends of two that spoke, and no other pair's;
        one release each; where all spoke, all noise has canceled."""
        seen = {}
        for peer, known in self.secrets.items():
            assert len(self.firsts[peer]) == 1
            ledger = self.machine(peer).seat.door.ledger
            assert ledger.counts()[peer, ledger.is_data()].sum() == 1
            for other, secret in known.items():
                if other in self.secrets:
                    assert self.secrets[other][peer] == secret
                seen.setdefault(secret, set()).add(frozenset((peer, other)))
        assert all(len(pairs) == 1 for pairs in seen.values())
        for peer in set(self.inputs) - set(self.secrets):
            assert not self.firsts[peer]
            assert len(self.machine(peer).seat.door.ledger) == 0
        if len(self.secrets) == len(self.inputs):
            total = sum(np.frombuffer(row) for rows in self.firsts.values() for row in rows)
            assert np.abs(total - self.task.value(np.arange(self.graph.n)).sum(axis=0)).max() < 1.0
