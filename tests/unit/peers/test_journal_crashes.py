"""The budget law under crashes: spend before sending, nothing redrawn, whatever the moment of
death."""

import os
import random
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.unit.peers.toy_peer import NEIGHBORS, keep, live, open_journal, revive

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def check_law(journal, left):
    """`left`: every (receiver, sequence) -> set of distinct bytes that ever left the machine."""
    peer, sent = revive(journal)
    spent = journal.spent()
    assert [line.step for line in spent] == list(
        range(1, peer.count + 1)
    )  # one line per committed release
    replayed = [line.position for line in journal.inputs()]
    assert replayed == list(range(peer.count - len(replayed) + 1, peer.count + 1))
    for (to, sequence), values in left.items():
        assert len(values) == 1, "the same noise protected two different values"
        assert values == {sent.get((to, sequence), *values)}, "executing again leads elsewhere"
        assert sequence <= len(spent), "something left that the ledger does not know of"
    for to in NEIGHBORS:
        for sequence, value in journal.outbox(to):
            assert value == sent.get((to, sequence), value)
            assert {value} == left.get((to, sequence), {value})
        assert journal.last_sent(to) == peer.count
    assert journal.last_sequence(1) == peer.count
    return peer


class Disk:
    """The files of a journal as the disk has them at one moment."""

    def __init__(self, path):
        self.main = path.read_bytes()
        wal = path.with_name(path.name + "-wal")
        self.wal = wal.read_bytes() if wal.exists() else b""
        self.head = path.with_name(path.name + "-head").read_bytes()

    def write(self, path):
        path.parent.mkdir()
        path.write_bytes(self.main)
        path.with_name(path.name + "-head").write_bytes(self.head)
        path.with_name(path.name + "-wal").write_bytes(self.wal)


def torn_commit(before, after, chance):
    """Power fails during the commit: some of what was being appended is there, perhaps with a
    damaged sector."""
    cut = chance.randrange(len(after.wal) + 1)
    wal = bytearray(after.wal[:cut] + before.wal[cut:])
    if len(wal) > len(before.wal) and after.wal.startswith(before.wal) and chance.random() < 0.5:
        wal[chance.randrange(len(before.wal), len(wal))] ^= 0xFF
    before.wal = bytes(wal)
    return before


def torn_checkpoint(before, after, chance):
    """Power fails while pages go from the synced log to the main file: any of them may have
    arrived."""
    size, pages = 4096, range(0, len(after.main), 4096)
    chosen = [(after if chance.random() < 0.5 else before).main[k : k + size] for k in pages]
    after.main = b"".join(page or b"\0" * size for page in chosen)
    return after


def one_life(path, left, chance):
    """Live until a crash at a random moment; returns the disk as the crash leaves it."""
    journal = open_journal(path)
    peer = check_law(journal, left)
    journal._connection.execute(f"PRAGMA wal_autocheckpoint = {chance.choice([2, 1000])}")
    die_at, seen, disks = chance.randrange(25), [], {}

    def trace(statement):
        seen.append(statement)
        if len(seen) - 1 == die_at or (statement == "COMMIT" and len(seen) > die_at):
            disks.setdefault("before", Disk(path))

    journal._connection.set_trace_callback(trace)
    while "before" not in disks:
        live(journal, peer, chance.randrange(1, 4))
        if "before" not in disks:
            for to in NEIGHBORS:
                for sequence, value in journal.outbox(to):
                    left[to, sequence].add(value)
            if chance.random() < 0.5:
                journal.acknowledge(1, journal.last_sent(1))
            if chance.random() < 0.2:
                keep(journal, peer)
    after, before = Disk(path), disks["before"]
    journal.close()
    if chance.random() < 0.4:
        return before  # killed just before that statement
    appended = after.wal.startswith(before.wal)
    tear = torn_checkpoint if appended and chance.random() < 0.3 else torn_commit
    return tear(before, after, chance)


def test_two_hundred_and_forty_crashes_of_one_peer(tmp_path):
    chance, left = random.Random(5), defaultdict(set)
    path = tmp_path / "0" / "journal.db"
    path.parent.mkdir()
    for life in range(240):
        disk = one_life(path, left, chance)
        shutil.rmtree(path.parent)
        path = tmp_path / str(life + 1) / "journal.db"
        disk.write(path)
    with open_journal(path) as journal:
        peer = check_law(journal, left)
    assert len({sequence for _, sequence in left}) > 240  # much did leave
    assert peer.count >= max(sequence for _, sequence in left)


@pytest.mark.parametrize("kills", [(9, 30, 1, 57, 12)])
def test_killed_processes_go_on_where_they_were(tmp_path, kills):
    left = defaultdict(set)
    path = tmp_path / "journal.db"
    for kill_at in kills:
        child = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("toy_peer.py")), str(path), str(kill_at)],
            capture_output=True,
            timeout=60,
            check=False,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert child.returncode == -9, child.stderr.decode()
        for line in child.stdout.decode().splitlines():
            to, sequence, value = line.split()
            left[int(to), int(sequence)].add(bytes.fromhex(value))
        with open_journal(path) as journal:
            check_law(journal, left)
    assert len(left) > 10
