"""What-if questions while one drags: the slowest answer over families of graphs, sizes, rounds and
observers.

A sample, not the worst case. The goal is judged in CPU seconds on one core and up to 50 rounds, to
which the page is limited: up to 100 rounds the slowest answers took 1.25 CPU s, and 2.2 s of wall
time on a busy machine.
"""

from __future__ import annotations

import time

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.timing import Answer, Goal, main
from bruit.show.live.what_if import FAMILIES, MOST_PEERS, MOST_STEPS, WhatIf, answer

SECONDS = 1.0


def measure(quick: bool = False) -> Answer:
    found = Answer("How fast is a what-if question answered?", quick)
    sizes = (16, 64) if quick else (64, 121, 225, MOST_PEERS)
    answer(WhatIf())  # loads compiled code, as `bruit ui` does when it starts
    slowest, again = (0.0, ""), 0.0
    for family in FAMILIES:
        worst = 0.0
        for peers in sizes:
            many = tuple(range(0, peers, 8))
            for steps, observers in (
                (3, (0,)),
                (MOST_STEPS, (5,)),
                (MOST_STEPS, (0, peers // 2)),
                (10, many),
            ):
                asked = WhatIf(family=family, peers=peers, steps=steps, observers=observers)
                with threadpool_limits(1):
                    begin = time.process_time()
                    answer(asked)
                    middle = time.process_time()
                    answer(asked)
                worst, again = max(worst, middle - begin), max(again, time.process_time() - middle)
        found.add(f"{family}, up to {sizes[-1]} peers, the slowest", worst, "CPU s")
        slowest = max(slowest, (worst, family))
    found.add("a graph seen before, the slowest", again, "CPU s")
    found.goals.append(
        Goal(
            f"what-if up to {sizes[-1]} peers ({slowest[1]}): CPU s on one core",
            slowest[0],
            SECONDS,
        )
    )
    return found


if __name__ == "__main__":
    main(measure)
