"""Whatever neighbors say, in whatever order, every machine refuses it or takes it, and never grows
beyond its bound.

Honest words of all peers are mixed with mutated ones: other kinds, numbers, senders, rows,
repetitions, and frames with flipped bits. A machine may raise RemoteProtocolError and nothing else,
and is then what it was before.
"""

import math
import random

import numpy as np
import pytest

import bruit as br
from bruit.algorithms.algorithm import catalog
from bruit.algorithms.schedules.machine import Envelope, Send, WakeAt
from bruit.errors import RemoteProtocolError
from bruit.graphs import complete, ring, star
from bruit.peers.journal.snapshots import freeze
from bruit.peers.wire.codec import Conversation, Frame, decode, encode
from bruit.tasks.histogram import histogram
from bruit.testing import small_task
from tests.conformance.hard_cases import FrankWolfe
from tests.unit.algorithms.schedules.slow_network import machines

CASES = [
    (br.Averaging(), ring(5)),
    (br.Renoised(tau=0.3), ring(5)),
    (br.PairAveraging(), complete(5)),
    (FrankWolfe(), ring(5)),
    (br.WalkSGD(), complete(5)),
    (br.RingSum(published=True), ring(5)),
]
RUN = "ab" * 32
STEPS = 40


def memory_of(one):
    """All that a machine remembers but what it mixed last, of which no snapshot is taken."""
    return freeze({name: value for name, value in one.memory().items() if name != "_final"})


class Fuzz:
    """Five machines; peer 4 is hostile, and what it hears it may say again, changed."""

    def __init__(self, algorithm, graph, seed, task=None):
        self.chance = random.Random(seed)
        self.peers = machines(
            algorithm, graph, task or small_task(5), STEPS, 1.0, seed=seed % 7, sealed=True
        )
        self.lines = {(a, b): [] for a in range(5) for b in range(5)}
        self.alarms, self.now, self.heard, self.refused, self.taken = [], 0.0, [], 0, 0

    def carry_out(self, peer, effects):
        for effect in effects:
            if isinstance(effect, Send):
                self.lines[peer, effect.to].append(effect.envelope)
                self.heard.append(effect.envelope)
            elif isinstance(effect, WakeAt):
                self.alarms.append((effect.time, peer, effect.alarm, effect.number))

    def say(self, sender, receiver, envelope):
        one = self.peers[receiver]
        if one.early(sender, envelope.kind, envelope.number):
            return False
        before = memory_of(one)
        try:
            self.carry_out(receiver, one.hear(self.now, sender, envelope))
            self.taken += 1
        except RemoteProtocolError:
            assert memory_of(one) == before
            self.refused += 1
        return True

    def lie(self):
        """A word of the hostile peer: one that it has heard, with something about it changed, or
        one of its own."""
        chance = self.chance
        known = chance.choice(self.heard or [Envelope(self.peers[0].kinds[0], 0)])
        kind = chance.choice([known.kind] * 3 + [*self.peers[0].kinds])
        number = chance.choice(
            [known.number] * 3
            + [known.number + chance.randrange(-2, 9), 0, STEPS - 1, 2**62, chance.randrange(2**30)]
        )
        row = self.changed(known.row) if chance.random() < 0.4 else known.row
        example = self.peers[0].row_of(kind)
        if chance.random() < 0.3:
            row = (
                None
                if example is None or not isinstance(example, np.ndarray)
                else np.zeros((1, *example.shape[1:]), example.dtype)
            )
        return Envelope(kind, number, row)

    def changed(self, row):
        """A row of the same types, some of whose numbers are others."""
        chance = self.chance
        if not isinstance(row, np.ndarray):
            return row if row is None else type(row)(*map(self.changed, row))
        row, strange = row.copy(), [0, 1]
        if row.dtype.kind == "f":
            strange += [200, 1e-300, -1e150, 1e150, 2e150, math.nan, -math.inf]
        elif row.dtype.kind in "iu":
            strange += [5, 200, np.iinfo(row.dtype).max, np.iinfo(row.dtype).min]
        if row.size:
            row.flat[chance.randrange(row.size)] = chance.choice(strange)
        return row

    def run(self, words):
        for peer, one in enumerate(self.peers):
            self.carry_out(peer, one.begin(0.0))
        for _ in range(words):
            self.now += 0.05
            if self.chance.random() < 0.5:
                self.say(4, self.chance.randrange(4), self.lie())
            waiting = [line for line, words in self.lines.items() if words]
            if waiting:
                line = self.chance.choice(waiting)
                if self.say(*line, self.lines[line][0]):
                    self.lines[line].pop(0)
            due = [entry for entry in self.alarms if entry[0] <= self.now]
            for entry in due:
                self.alarms.remove(entry)
                one = self.peers[entry[1]]
                if entry[2] != "call" or one.calls_left:
                    self.carry_out(entry[1], one.wake(self.now, *entry[2:]))
        return self


def check_case(algorithm, graph, seed, words):
    fuzz = Fuzz(algorithm, graph, seed).run(words)
    assert fuzz.refused > words / 20
    assert fuzz.taken > words / 20
    assert max(len(memory_of(one)) for one in fuzz.peers) < 100_000


@pytest.mark.parametrize(("algorithm", "graph"), CASES, ids=lambda case: repr(case)[:20])
def test_lies_are_refused_or_harmless(algorithm, graph):
    check_case(algorithm, graph, 1, 150)


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "graph"), CASES, ids=lambda case: repr(case)[:20])
def test_many_lies_are_refused_or_harmless(algorithm, graph):
    for seed in range(2, 12):
        check_case(algorithm, graph, seed, 600)


@pytest.mark.slow
@pytest.mark.parametrize("name", catalog())
def test_no_word_of_a_neighbor_breaks_any_algorithm(name):
    """By discovery. Numbers up to what is let in, of every type that a row may hold, among them
    those with which an algorithm counts or looks something up."""
    graph = star(5) if name in ("fed-avg", "federated-admm") else complete(5)
    algorithm = catalog()[name]()
    task = histogram(5, 3) if name == "token-histogram" else small_task(5)
    for seed in range(3):
        fuzz = Fuzz(algorithm, graph, seed, task).run(400)
        assert fuzz.refused
        assert fuzz.taken


def mutated(data, chance):
    data = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        how, at = chance.randrange(4), chance.randrange(len(data)) if data else 0
        if how == 0 and data:
            data[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            del data[at : at + chance.randrange(1, 9)]
        elif how == 2:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
        else:
            data[at:at] = data[: chance.randrange(1, 40)]
    return bytes(data)


def check_frames(words, seed):
    chance = random.Random(seed)
    voice, one = (
        Conversation(RUN, "averaging", 1),
        machines(br.Averaging(), ring(3), small_task(3), STEPS, 1.0)[0],
    )
    one.begin(0.0)
    row = np.ones((1, 3))
    refused = 0
    for k in range(words):
        data = mutated(encode(Frame.of(voice, k + 1, Envelope("round", k % STEPS, row))), chance)
        try:
            frame = decode(data, voice)
            one.hear(0.0, 1, frame.envelope(one.row_of(frame.kind)))
        except RemoteProtocolError:
            refused += 1
    assert refused > words / 2


def test_frames_with_flipped_bits_are_refused_or_harmless():
    check_frames(400, 1)


@pytest.mark.slow
def test_many_frames_with_flipped_bits_are_refused_or_harmless():
    check_frames(20_000, 2)
