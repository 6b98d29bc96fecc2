"""Idle connections of strangers: a peer must stay reachable for its neighbors, and go on telling
its operator.

`python -m benchmarks.reliability.connections [--full] [--json]`. They are opened from this machine
to one of three peers that learn together, and held; then it is measured whether rounds go on and
status files stay fresh.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import time

from benchmarks.reliability.counts import Count, Progress, answer
from benchmarks.reliability.village import Village, until, village

FEW, GOAL = 300, 2_000  # connections
ROUNDS = 30  # that must be reached while they are held
FRESH = 10.0  # seconds that a status file may be old
VICTIM = 0
USUAL = 1024  # open files that most systems allow a process


def step(here: Village, peer: int) -> int:
    return int(here.status(peer).get("step", 0))


def hold(here: Village, count: int, progress: Progress) -> list[socket.socket]:
    """Connections that say nothing; those that are refused count as tried."""
    entry, held = here.book.entry(VICTIM), list[socket.socket]()
    for done in range(count):
        with contextlib.suppress(OSError):
            held.append(socket.create_connection((entry.host, entry.port), timeout=2.0))
        progress(done)
    return held


def ask(full: bool) -> list[Count]:
    count = GOAL if full else FEW
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    progress = Progress("connections", count)
    with village() as here:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, USUAL), hard))
        for peer in range(3):
            here.start(peer)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 500)), hard))
        until(lambda: step(here, VICTIM) >= 3, "a run that moves")
        held = hold(here, count, progress)
        here.end(1, signal.SIGKILL)  # a neighbor has to come back in meanwhile
        here.start(1)
        before, oldest, deadline = step(here, VICTIM), 0.0, time.monotonic() + 90.0
        path = here.sites[VICTIM].parent / "state" / "status.json"
        while step(here, VICTIM) < before + ROUNDS and time.monotonic() < deadline:
            oldest = max(oldest, time.time() - path.stat().st_mtime)
            time.sleep(0.1)
        reached = step(here, VICTIM) - before
        missed = sum(here.status(peer).get("missed", 1) for peer in range(3))
        for one in held:
            one.close()
        codes = [here.end(peer, signal.SIGTERM) for peer in range(3)]
    return [
        Count(
            "connections",
            "idle connections of a stranger, tried",
            count,
            f">= {count:,}",
            held=True,
        ),
        Count("connections", "of these held open", len(held), "any", held=True),
        Count(
            "connections",
            "rounds reached meanwhile, a neighbor coming back in",
            reached,
            f">= {ROUNDS}",
            reached >= ROUNDS,
        ),
        Count("connections", "exchanges missed", missed, "0", missed == 0),
        Count(
            "connections",
            "seconds that the status was old, at most",
            oldest,
            f"<= {FRESH:g}",
            oldest <= FRESH,
        ),
        Count(
            "connections",
            "peers that stopped in order afterwards",
            codes.count(130),
            "3",
            codes == [130] * 3,
        ),
    ]


if __name__ == "__main__":
    answer(ask)
