"""Hosts with real journals in one process, which carry each other's messages by hand and are killed
at any line of Python.

A kill copies the files of the state as they are at that moment, and goes on from the copy: what was
in memory is gone, and nothing is rolled back or closed. Time is a number that moves on when nothing
is left to hear.
"""

import contextlib
import os
import shutil
import sys

import bruit
from bruit.peers.recalling import recall
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.codec import decode

HERE = os.path.dirname(bruit.__file__)
LINES = (
    2_500  # of Python, the most after which a kill comes; an attempt takes more than half of them
)


class Killed(BaseException):
    """Nothing in the program may catch it and go on."""


class Lines:
    """All lines to all neighbors, of which nobody is there: messages stay in the outbox."""

    connected = False

    def notify(self):
        pass


class KilledHosts:
    """`step` lets one peer hear one message or alarm; `chance` says when it is killed."""

    def __init__(self, sites, chance):
        self.sites, self.chance, self.now, self.kills = sites, chance, 0.0, 0
        self.peers, self.hosts, self.left = len(sites), {}, None
        for peer in range(self.peers):
            self.open(peer)

    def state(self, peer):
        return self.sites[peer].parent / "state"

    def open(self, peer):
        one = participant(read_site(self.sites[peer]))
        one.paying.begin()
        host = self.hosts[peer] = one.host
        object.__setattr__(host.settings, "quorum", 0)
        host.clock.now = lambda: self.now
        nobody = Lines()
        host.lines = {other: nobody for other in range(self.peers) if other != peer}
        recall(host)
        begun = bool(host.journal.last_sequence(peer))
        if not host.done:
            with host.journal.step() as step:
                host._show_key(step)
                if not begun:
                    host._feed(step, "begin", peer, step.last_sequence(peer) + 1, b"")
            host._flush()

    # what happens

    def pending(self, peer):
        """The next message of each neighbor."""
        host = self.hosts[peer]
        here = host.journal if host._draft is None else host._draft[0]
        for other in range(self.peers):
            if other != peer:
                after = here.last_sequence(other)
                for _, data in self.hosts[other].journal.outbox(peer, after):
                    yield other, decode(data, host._voice(other), host.limits), data
                    break

    def step(self, deadly):
        """One input of some peer; False when all have ended."""
        going = [peer for peer, host in self.hosts.items() if not host.done]
        if not going:
            return False
        due = [(peer, *word) for peer in going for word in self.pending(peer)]
        peer, first = self.chance.choice(going), None
        if due:
            peer, *first = self.chance.choice(due)
        else:
            rings = {
                v: self.hosts[v].clock.alarms[0][0] for v in going if self.hosts[v].clock.alarms
            }
            peer = min(rings, key=rings.get)
            self.now = max(self.now, rings[peer])
        commit = not due or self.chance.random() < 0.5
        self.work(peer, first, commit, deadly and self.chance.random() < 0.4)
        return True

    def work(self, peer, first, commit, deadly):
        if deadly:
            self.left = self.chance.randrange(1, LINES)
            sys.settrace(lambda frame, event, arg: self.trace(peer, frame))
        try:
            self.hosts[peer]._work(first, commit)
        except Killed:
            self.again(peer)
        finally:
            sys.settrace(None)

    def trace(self, peer, frame):
        if not frame.f_code.co_filename.startswith(HERE):
            return None

        def line(frame, event, arg):
            self.left -= event == "line"
            if self.left == 0:
                sys.settrace(None)
                self.photograph(peer)
                raise Killed
            return line

        return line

    def photograph(self, peer):
        """The files as they are; shared memory of the journal dies with its process."""
        copy = self.state(peer).with_name("copy")
        shutil.copytree(self.state(peer), copy, ignore=shutil.ignore_patterns("*-shm"))

    def again(self, peer):
        self.kills += 1
        state, dead = self.state(peer), self.hosts.pop(peer)
        with contextlib.suppress(Exception):
            dead.journal.close()
        shutil.rmtree(state)
        state.with_name("copy").rename(state)
        self.open(peer)

    def close(self):
        for host in self.hosts.values():
            host.journal.close()
