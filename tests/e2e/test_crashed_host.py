"""The budget law over a live host: killed at hundreds of random points, it never says anything
twice differently.

Peer 0 is a host on its journal; its two neighbors are machines in memory that never die. A kill is
a copy of the journal's files at that moment, from which the next life begins. What left is what was
read from the outbox.
"""

import asyncio
import os
import random
import shutil
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from bruit.algorithms.schedules.machine import Done, Send
from bruit.peers.gathering import HOPS
from bruit.peers.recalling import recall
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.codec import Conversation, Frame, decode, encode
from bruit.privacy.events import Mask, from_json
from tests.unit.peers.small_network import MEAN, found_small

STEPS = 100
KEPT = 2500  # bytes of inputs that a snapshot replaces: about every ten rounds


class Killed(BaseException):
    """The process is gone."""


class Deadly:
    """A connection that dies before or after its k-th statement that changes something, and is dead
    from then on."""

    def __init__(self, connection, chance):
        self.connection, self.after = connection, chance.random() < 0.5
        self.left = chance.randrange(1, chance.choice((6, 6, 24)))

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, sql, *values):
        if self.left <= 0:
            raise Killed
        self.left -= not sql.startswith("SELECT")
        if self.left <= 0 and not self.after:
            raise Killed
        answer = self.connection.execute(sql, *values)
        if self.left <= 0:
            raise Killed
        return answer


class Neighbors:
    """Peers 1 and 2, what they said to peer 0 so far, and every message that ever left peer 0."""

    def __init__(self, sites):
        self.chosen = {peer: participant(read_site(sites[peer])) for peer in (1, 2)}
        self.machines = {peer: one.host.machine for peer, one in self.chosen.items()}
        self.run, self.algorithm = self.chosen[1].host.run_id, "gossip-sgd"
        self.said, self.heard, self.done = {1: [], 2: []}, {1: 0, 2: 0}, set()
        self.left = defaultdict(set)  # (receiver, sequence) -> distinct bytes
        self.rounds = defaultdict(int)  # receiver -> rounds heard of peer 0
        for machine in self.machines.values():
            machine.seat.dice.rekey(os.urandom(16))  # it never starts again
        for peer, machine in self.machines.items():
            self.carry_out(peer, machine.begin(0.0))

    def carry_out(self, peer, effects):
        for effect in effects:
            if isinstance(effect, Send) and effect.to == 0:
                voice = Conversation(self.run, self.algorithm, peer)
                self.said[peer].append(
                    encode(Frame.of(voice, len(self.said[peer]) + 1, effect.envelope))
                )
            elif isinstance(effect, Send):
                machine = self.machines[effect.to]
                if machine.state is None:
                    self.carry_out(effect.to, machine.begin(0.0))
                self.carry_out(effect.to, machine.receive(0.0, peer, effect.envelope))
            elif isinstance(effect, Done):
                self.done.add(peer)

    def hear(self, peer, sequence, data):
        self.left[peer, sequence].add(data)
        if sequence == self.heard[peer] + 1:
            self.heard[peer] = sequence
            frame = decode(data, Conversation(self.run, self.algorithm, 0))
            machine = self.machines[peer]
            self.rounds[peer] = frame.number + 1
            self.carry_out(peer, machine.receive(0.0, 0, frame.envelope(machine.example)))


class DirectLine:
    """In place of a line: what the outbox holds reaches the neighbor at once, and its answers come
    back."""

    connected, said_bye, refused, sent_bytes, level = True, False, 0, 0, HOPS

    def __init__(self, host, around, peer, chance):
        self.host, self.around, self.peer, self.chance = host, around, peer, chance
        self.after, self.given = 0, host.journal.last_sequence(peer)

    def notify(self):
        for sequence, data in list(self.host.journal.outbox(self.peer, self.after)):
            self.around.hear(self.peer, sequence, data)
            self.after = sequence
        if self.chance.random() < 0.5:
            self.host.journal.acknowledge(self.peer, self.around.heard[self.peer])
        for line in self.host.lines.values():
            line.give()

    def give(self):
        for data in self.around.said[self.peer][self.given :]:
            self.given += 1
            frame = decode(data, self.host._voice(self.peer))
            asyncio.get_running_loop().create_task(
                self.host.ears.accept(self.peer, frame, encode(frame))
            )

    def settled(self):
        return not list(self.host.journal.outbox(self.peer))


def check_law(host, around):
    """The recorded spend is an upper bound of what left, and what is in the outbox is what has left
    already."""
    lines = host.journal.spent()
    assert sum(not isinstance(from_json(line.event), Mask) for line in lines) >= max(
        around.rounds.values(), default=0
    )
    for (peer, sequence), words in around.left.items():
        assert len(words) == 1, "a retransmission had other bytes"
        assert sequence <= host.journal.last_sent(peer), (
            "something left that the journal does not know of"
        )
    for peer in (1, 2):
        for sequence, data in host.journal.outbox(peer):
            assert around.left.get((peer, sequence), {data}) == {data}


def recalled(host):
    """What the host says when it executes its journal again, by receiver."""
    again, post = defaultdict(list), host._post
    host._post = lambda effect, step: (again[effect.to].append(effect.envelope), post(effect, step))
    recall(host)
    host._post = post
    return again


async def live(host, around, chance):
    for peer in (1, 2):
        host.lines[peer] = DirectLine(host, around, peer, chance)
    again = recalled(host)
    check_law(host, around)
    for (peer, sequence), (data,) in around.left.items():
        place = (
            sequence - 1 - host.journal.last_sent(peer)
        )  # from the end: a snapshot replaces what came first
        if -place > len(again[peer]):
            continue
        frame, envelope = decode(data, host._voice(0)), again[peer][place]
        assert frame.number == envelope.number
        assert np.array_equal(frame.fields[0].values, envelope.row), (
            "noise was redrawn for a value already released"
        )
    host.journal._connection = host.journal._outbox._connection = Deadly(
        host.journal._connection, chance
    )
    for line in host.lines.values():
        line.notify()
    await host._gather()
    await host._live()


def one_life(site, around, chance, place):
    """Until it ends or dies; the folder from which the next life begins, None when it ended."""
    one = participant(read_site(site))
    one.paying.begin()
    one.host.settings = replace(one.host.settings, kept=KEPT)
    one.host.enough = KEPT
    try:
        asyncio.run(live(one.host, around, chance))
        return None
    except Killed:
        shutil.copytree(site.parent, place)
        return place / site.name
    finally:
        one.host.journal._finish()  # as Python does it at the latest


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_kills_of_a_live_host(tmp_path, seed):
    sites = found_small(tmp_path, MEAN.replace("steps = 6", f"steps = {STEPS}"))
    chance, around, site, lives = random.Random(seed), Neighbors(sites), sites[0], 0
    while site is not None:
        last, lives = site, lives + 1
        assert lives < 1000
        site = one_life(site, around, chance, tmp_path / f"life-{lives}")
        if lives > 1 and site is not None:
            shutil.rmtree(last.parent)
    assert lives > 60
    assert around.done == {1, 2}
    assert max(sequence for _, sequence in around.left) == STEPS
    end = participant(read_site(last))
    assert end.host.journal.latest_snapshot() is not None
    assert sum(line.kind != "start" for line in end.host.journal.inputs()) < STEPS
    check_law(end.host, around)
    kinds = Counter(from_json(line.event).kind for line in end.host.journal.spent())
    assert kinds == {
        "gaussian": STEPS,
        "mask": STEPS + 1,
    }  # a release and a dither a round: nothing was spent twice
    for one in (end, *around.chosen.values()):
        one.host.journal.close()
