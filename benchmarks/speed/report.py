"""A report on every pair of 2048 peers: how long, how large; the accounting it shows is timed
apart."""

from __future__ import annotations

import time

import bruit as br
from benchmarks.timing import Answer, Goal, main
from bruit.graphs import erdos_renyi
from bruit.show.report.page import story_page
from bruit.show.report.story import tell
from bruit.testing import small_task

SECONDS, MEGABYTES = 15.0, 15.0


def measure(quick: bool = False) -> Answer:
    answer = Answer("How fast and how large is the report of a run?", quick)
    peers = 256 if quick else 2048
    graph = erdos_renyi(peers, c=1.5, seed=1)
    noise = br.Gaussian(clip=1.0, sigma=2.0)
    result = br.run(br.Averaging(), graph, small_task(peers), privacy=noise, steps=22, seed=1)
    begin = time.perf_counter()
    story = tell(result)
    accounting, begin = time.perf_counter() - begin, time.perf_counter()
    page = story_page(story).encode()
    seconds = time.perf_counter() - begin
    size = len(page) / 1e6
    answer.add(f"accounting of all pairs, {graph.name}", accounting, "wall s")
    answer.add("the page", seconds, "wall s")
    answer.add("the page", size, "MB")
    answer.goals.append(
        Goal(f"report of {peers} peers: wall s, accounting apart", seconds, SECONDS)
    )
    answer.goals.append(Goal(f"report of {peers} peers: MB", size, MEGABYTES))
    return answer


if __name__ == "__main__":
    main(measure)
