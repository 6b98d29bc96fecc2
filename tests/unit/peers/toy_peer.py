"""A peer small enough to see through: its state is a hash of its inputs, its noise a function of
secret and count.

    python toy_peer.py JOURNAL KILL_AT      lives until it kills itself before its KILL_AT-th statement
"""

import hashlib
import os
import signal
import sys

from bruit.peers.journal.journal import Journal
from bruit.privacy.events import GaussianEvent

RUN, FACTS = "ab" * 32, {"records": "1234", "mechanism": "gaussian 2.0"}
EVENT = GaussianEvent(2.0).to_json()
NEIGHBORS = (1, 2)


class ToyPeer:
    def __init__(self, secret):
        self.secret, self.state, self.count = secret, b"", 0

    def react(self, payload):
        """One release to both neighbors: state xor noise. Same noise under two states is what must
        never leave."""
        self.state, self.count = hashlib.sha256(self.state + payload).digest(), self.count + 1
        noise = hashlib.blake2b(str(self.count).encode(), key=self.secret, digest_size=32).digest()
        value = bytes(a ^ b for a, b in zip(self.state, noise, strict=True))
        return [(to, value) for to in NEIGHBORS]


def open_journal(path):
    return Journal.open(path, RUN, FACTS)


def revive(journal):
    """The peer as snapshot and inputs made it, and all it has been going to send since the
    snapshot."""
    peer, sent = ToyPeer(journal.secret()), {}
    kept = journal.latest_snapshot()
    if kept is not None:
        peer.count, peer.state = int.from_bytes(kept[:4], "big"), kept[4:]
    for line in journal.inputs():
        for to, value in peer.react(line.payload):
            sent[to, peer.count] = value
    return peer, sent


def keep(journal, peer):
    """Replace the inputs so far by the state."""
    journal.snapshot(peer.count.to_bytes(4, "big") + peer.state)


def live(journal, peer, batch):
    """One step of `batch` fresh inputs, which no other life will see again."""
    with journal.step() as step:
        for _ in range(batch):
            payload = os.urandom(20)
            step.input("round", 1, step.last_sequence(1) + 1, payload)
            messages = peer.react(payload)
            step.spend(0, peer.count, peer.count, EVENT)
            for to, value in messages:
                step.send(to, value)


def main(path, kill_at):
    journal = open_journal(path)
    peer, _ = revive(journal)
    statements = 0

    def trace(_):
        nonlocal statements
        statements += 1
        if statements == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    journal._connection.set_trace_callback(trace)
    journal._connection.execute("PRAGMA wal_autocheckpoint = 3")
    for _ in range(100):
        live(journal, peer, 2)
        for to in NEIGHBORS:
            for sequence, value in journal.outbox(to):
                os.write(1, f"{to} {sequence} {value.hex()}\n".encode())  # it has left
        journal.acknowledge(1, journal.last_sent(1))
        if peer.count % 10 == 0:
            keep(journal, peer)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
