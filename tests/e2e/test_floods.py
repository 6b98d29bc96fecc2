"""Floods: processes under attack on loopback. Their memory, disk and files stay small, and the run
goes on."""

import os
import resource
import signal
import socket
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import pytest

from bruit.peers.wire.identity import TLS_NAME
from tests.e2e.hostile import PATH, hello, words
from tests.e2e.villages import DEADLINE, attacker, until

WIDTH = 2000  # numbers of a row
STEPS = 10_000  # more than anybody gets to
FILES = 200  # open files that a process under attack may have


def memory(process):
    """MiB of a process."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def disk(busy, peer):
    """MiB of its state folder."""
    return sum(file.stat().st_size for file in (busy.home(peer) / "state").iterdir()) / 2**20


@pytest.fixture
def busy(village):
    """A path of four with a long way to go and rows of some size; peer 3, at its end, never comes
    by itself."""
    return village("path:4", 4, STEPS, "averaging", 2.0, "wait_for = 1\n", dim=WIDTH)


def listens(entry):
    """Whether that peer can be called: its first status may be there before."""
    try:
        socket.create_connection((entry.host, entry.port), 30).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.slow
def test_more_idle_sockets_than_files_lock_nobody_out(busy):
    """Twice as many strangers as the process may open files: the status goes on, and neighbors that
    come then meet."""
    busy.start(1)
    busy.wait_for(1, lambda now: True, "the first status")
    resource.prlimit(busy.processes[1].pid, resource.RLIMIT_NOFILE, (FILES, FILES))
    _, entry, _ = attacker(busy, 3, 1)
    until(lambda: listens(entry), "an open port")
    held = []
    for _ in range(2 * FILES):
        held.append(socket.create_connection((entry.host, entry.port), 30))
    busy.start(0, 2)
    busy.wait_for_step(5, 1)
    before = busy.status(1)["step"]
    busy.wait_for_step(before + 6, 1)
    assert busy.status(1)["refused"]["stranger"] > FILES / 2
    assert len(os.listdir(f"/proc/{busy.processes[1].pid}/fd")) < FILES
    for one in held:
        one.close()
    assert busy.signal(1, signal.SIGTERM).wait(DEADLINE) == 130
    assert "Traceback" not in busy.log(1)


def flood(busy, frames, seconds):
    """The neighbor 3 calls peer 2 again and again and says all of that, as fast as it is let."""
    identity, entry, run = attacker(busy, 3, 2)
    credentials = grpc.ssl_channel_credentials(
        entry.certificate.encode(), identity.key, identity.certificate.encode()
    )
    options = [("grpc.ssl_target_name_override", TLS_NAME), ("grpc.enable_retries", 0)]
    end, sent = time.monotonic() + seconds, 0
    over = threading.Event()

    def said():
        nonlocal sent
        yield hello(run, "averaging", 3)
        for data in frames(run):
            if time.monotonic() > end:
                return
            sent += 1
            yield data
        over.wait(max(end - time.monotonic(), 0))

    while time.monotonic() < end:
        with grpc.secure_channel(entry.address, credentials, options) as channel:
            try:
                for _ in channel.stream_stream(PATH)(
                    said(), timeout=max(end - time.monotonic(), 0.1)
                ):
                    pass
            except grpc.RpcError:
                time.sleep(0.05)
    return sent


def future(run):
    row = np.full((1, WIDTH), 0.5)
    for k in range(STEPS - 1):
        yield words(run, "averaging", 3, k + 1, row, number=k)


def large(run):
    for k in range(10_000):
        yield words(run, "averaging", 3, k + 1, np.zeros((1, 100_000)))


@pytest.mark.slow
@pytest.mark.parametrize("frames", [future, large])
def test_a_flood_of_a_neighbor_costs_little_memory_and_disk(busy, frames):
    """Rounds of the future, and rows that nobody agreed on, before anything has begun: memory and
    disk hardly grow, and then the others begin and go on."""
    busy.start(2)
    busy.wait_for(2, lambda now: True, "the first status")
    until(lambda: listens(attacker(busy, 3, 2)[1]), "an open port")
    before = memory(busy.processes[2])
    sent = flood(busy, frames, 6.0)
    assert sent > 10
    assert memory(busy.processes[2]) < before + 40
    assert disk(busy, 2) < 40
    busy.start(0, 1)
    busy.wait_for_step(10, 1)


def catches(process):
    """Whether the program has taken over SIGTERM, which it does first."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return caught >> (signal.SIGTERM - 1) & 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_a_peer_that_is_stopped_at_any_moment_ends_with_one_line(village, name):
    """While Python loads, while it opens its journal, while it waits, in the middle of the run: code
    130 and no traceback."""
    busy = village("path:2", 2, STEPS, "averaging", forked=False)
    moments = {
        "loading": lambda: catches(busy.processes[0]),
        "opening": lambda: (busy.home(0) / "state").exists(),
        "waiting": lambda: busy.status(0).get("waiting"),
        "running": lambda: busy.status(0).get("step", 0) > 3,
    }
    for moment, come in moments.items():
        if moment == "running":
            busy.start(1)
        busy.start(0)
        until(come, moment)
        assert busy.signal(0, name).wait(DEADLINE) == 130, (moment, busy.log(0))
        assert "Traceback" not in busy.log(0)
