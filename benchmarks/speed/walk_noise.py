"""The least noise of a token walk, before it starts: 2000 peers, 12 contributions, (1, 1e-6)
(walk:RW-14)."""

from __future__ import annotations

from benchmarks.timing import Answer, Goal, interleaved, main
from bruit.privacy.ahead.walk_ahead import least_noise


def measure(quick: bool = False) -> Answer:
    answer = Answer("How fast is the noise of a walk found?", quick)
    peers, contributions = (200 if quick else 2000), 12
    seconds = interleaved(
        {
            "exact": lambda: least_noise(1.0, 1e-6, peers, contributions),
            "renyi": lambda: least_noise(1.0, 1e-6, peers, contributions, route="renyi"),
        },
        3,
    )
    found = least_noise(1.0, 1e-6, peers, contributions)
    answer.add(
        f"exact delta, {peers} peers, {contributions} contributions", seconds["exact"], "CPU s"
    )
    answer.add("by Renyi divergences", seconds["renyi"], "CPU s")
    answer.add("the noise multiplier found", found, "sigma / sensitivity")
    answer.goals.append(Goal(f"noise of {peers} peers: CPU s", seconds["exact"], 30))
    if not quick:
        answer.goals.append(
            Goal("noise multiplier: off the printed 3.4030 by", abs(found / 3.4030 - 1), 0.01)
        )
    return answer


if __name__ == "__main__":
    main(measure)
