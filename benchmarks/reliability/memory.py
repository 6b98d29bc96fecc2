"""Memory: how much a peer grows in a long run, in memory, on disk and in open files.

`python -m benchmarks.reliability.memory [--full] [--json]`. Three real peers on loopback; the
largest of them at the end is compared with the largest after a tenth of the rounds. On disk a round
leaves its lines of the ledger and of the audit log; the log of sqlite does not grow.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from pathlib import Path

from benchmarks.reliability.counts import Count, Progress, answer
from benchmarks.reliability.village import Village, until, village

FEW, GOAL = 1_000, 10_000  # rounds
MOST = 1.5  # times the memory after a tenth of them
# bytes that a round may leave on disk; MiB of the log of sqlite: 4 of pages, and a snapshot beyond
ROUND, LOG = 2_000, 8
LONGEST = 900.0  # seconds; what was reached by then is what is told
WAL = "journal.db-wal"


def resident(pid: int) -> float:
    """MiB of memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def largest(here: Village) -> float:
    return max(resident(pid) for pid in here.pids.values())


def handles(here: Village) -> int:
    """Open files of the peer that has most of them."""
    return max(len(os.listdir(f"/proc/{pid}/fd")) for pid in here.pids.values())


def on_disk(here: Village, log: bool) -> int:
    """Bytes of the largest state folder: of the log of sqlite, or of all else."""
    return max(
        sum(
            file.stat().st_size
            for file in site.parent.joinpath("state").glob("[!.]*")
            if (file.name == WAL) is log
        )
        for site in here.sites
    )


def ask(full: bool) -> list[Count]:
    rounds = GOAL if full else FEW
    progress = Progress("memory", rounds)
    with village() as here:
        for peer in range(3):
            here.start(peer)

        def reached() -> int:
            return min(int(here.status(peer).get("step", 0)) for peer in range(3))

        until(lambda: reached() >= rounds // 10, "a tenth of the rounds", LONGEST / 2)
        before, most, deadline = largest(here), 0.0, time.monotonic() + LONGEST
        files, opened = handles(here), 0
        while (now := reached()) < rounds and time.monotonic() < deadline:
            most, opened = max(most, largest(here)), max(opened, handles(here))
            progress(now, f"{most:.0f} MiB")
            time.sleep(0.2)
        most = max(most, largest(here))
        left, log = on_disk(here, log=False) / now, on_disk(here, log=True) / 2**20
        codes = [here.end(peer, signal.SIGTERM) for peer in range(3)]
    return [
        Count("memory", "rounds of three real peers", now, f">= {rounds:,}", now >= rounds),
        Count("memory", "MiB of the largest peer after a tenth of them", before, "any", held=True),
        _at_most(
            "MiB of the largest peer, at most, later", most, f"{MOST} times that", MOST * before
        ),
        Count("memory", "open files of a peer after a tenth of them", files, "any", held=True),
        _at_most("open files of a peer, at most, later", opened, "4 more than that", files + 4),
        _at_most("bytes that a round leaves in a state folder", left, f"{ROUND:,}", ROUND),
        _at_most("MiB of the log of sqlite at the end", log, f"{LOG}", LOG),
        Count(
            "memory",
            "peers that stopped in order afterwards",
            codes.count(130),
            "3",
            codes == [130] * 3,
        ),
    ]


def _at_most(what: str, found: float, goal: str, bound: float) -> Count:
    return Count("memory", what, found, f"<= {goal}", found <= bound)


if __name__ == "__main__":
    answer(ask)
