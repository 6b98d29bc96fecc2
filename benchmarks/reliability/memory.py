"""Memory: how much a peer grows in a long run.

`python -m benchmarks.reliability.memory [--full] [--json]`. Three real peers on loopback; the
largest of them at the end is compared with the largest after a tenth of the rounds.
"""

from __future__ import annotations

import resource
import signal
import time
from pathlib import Path

from benchmarks.reliability.counts import Count, Progress, answer
from benchmarks.reliability.village import Village, until, village

FEW, GOAL = 1_500, 10_000  # rounds
MOST = 1.5  # times the memory after a tenth of them
LONGEST = 900.0  # seconds; what was reached by then is what is told


def resident(pid: int) -> float:
    """MiB of memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def largest(here: Village) -> float:
    return max(resident(pid) for pid in here.pids.values())


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
        while (now := reached()) < rounds and time.monotonic() < deadline:
            most = max(most, largest(here))
            progress(now, f"{most:.0f} MiB")
            time.sleep(0.2)
        most = max(most, largest(here))
        kept = max(
            sum(file.stat().st_size for file in site.parent.joinpath("state").iterdir())
            for site in here.sites
        )
        codes = [here.end(peer, signal.SIGTERM) for peer in range(3)]
    return [
        Count("memory", "rounds of three real peers", now, f">= {rounds:,}", now >= rounds),
        Count("memory", "MiB of the largest peer after a tenth of them", before, "any", held=True),
        Count(
            "memory",
            "MiB of the largest peer, at most, later",
            most,
            f"<= {MOST} times that",
            most <= MOST * before,
        ),
        Count(
            "memory", "MiB of the largest state folder at the end", kept / 2**20, "any", held=True
        ),
        Count(
            "memory",
            "peers that stopped in order afterwards",
            codes.count(130),
            "3",
            codes == [130] * 3,
        ),
    ]


if __name__ == "__main__":
    answer(ask)
