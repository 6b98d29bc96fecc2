"""Ballots: runs of 20 rounds in bad weather and among liars; all end on one chain, and nothing is
charged that was not said.

`python -m benchmarks.reliability.ballots [--full] [--json]`. 4, 7 and 16 peers, clocks of 10, 30
and 60 seconds, 2 to 10 % loss, a fifth of the messages up to 40 seconds late, kills at any message
with restart, up to D deaths; of every 38 runs 10 are with liars instead of deaths (two lists, two
sums, withheld sums, promises without words, forgotten and false bases, false ends, one kind a run or
all). Then runs of 4 and 7 peers with twenty times the kills and 0 to 3 spare attempts, which cannot
come to the last round: they must end all the same, and with one model. `--full` repeats the 4,560
runs of silo:SILO-5, and 240 of the others, which takes hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import mean

from benchmarks.reliability.assembly import LIES, Assembly, Verdict, Weather
from benchmarks.reliability.counts import Count, Progress, answer

FEW, GOAL = 57, 4560  # runs
HARD, HARDEST = 12, 240  # of those with many kills and few attempts
KILLS = 120.0  # of such a run, about, if it were as short as the others
SIZES = ((4, 1, 1), (7, 2, 2), (16, 4, 3))  # peers, dropouts, colluders: 2(n - D) > n + a
CLOCKS, LOSSES = (10.0, 30.0, 60.0), (0.02, 0.05, 0.1)
WORDS = {
    "hanging": "living honest peers that did not finish",
    "chains": "chains beyond one",
    "models": "models beyond one",
    "lost": "bases lost that enough honest peers had adopted",
    "twice": "peers that said two rows of words in one ballot",
    "wrong": "sums that are not those of the words said",
    "beyond": "peers charged beyond the limit, or otherwise than the ledger says",
    "refused": "messages of honest peers that were refused",
}
Tried = tuple[Weather, Verdict]


def weather(number: int) -> Weather:
    """The weather of one run; every 27 runs without liars are all sizes, clocks and losses."""
    peers, dropouts, colluders = SIZES[number % 3]
    clock, loss = CLOCKS[number // 3 % 3], LOSSES[number // 9 % 3]
    lying = number % 38 >= 28
    lies = (*((lie,) for lie in LIES), LIES)[number // 38 % (len(LIES) + 1)] if lying else ()
    return Weather(
        peers,
        clock,
        loss,
        dropouts=dropouts,
        colluders=colluders,
        deaths=0 if lying else number // 27 % (dropouts + 1),
        lies=lies,
    )


def storm(number: int) -> Weather:
    """The same with many kills and few attempts."""
    return replace(weather(number), kills=KILLS, spare=number // 3 % 4)


def tried(
    numbers: Iterable[int],
    progress: Progress | None = None,
    made: Callable[[int], Weather] = weather,
) -> list[Tried]:
    """These runs, one after the other."""
    found: list[Tried] = []
    for number in numbers:
        here = made(number)
        found.append((here, Assembly(here, number).run()))
        if progress is not None:
            progress(len(found))
    return found


def broken(found: list[Tried], where: str = "") -> list[Count]:
    """What must never be, over all runs."""
    counts = [Count("ballots", f"{where}runs", len(found), "any", held=True)]
    for name, words in WORDS.items():
        often = sum(getattr(verdict, name) for _, verdict in found)
        counts.append(Count("ballots", where + words, often, "0", often == 0))
    alone = sum(verdict.alone for _, verdict in found)
    words = f"{where}peers that gave up alone, and say so"
    return [*counts, Count("ballots", words, alone, "any", held=True)]


def table(found: list[Tried]) -> list[Count]:
    """What must never be, and how many attempts beyond the rounds it took."""
    counts = broken(found)
    for lying in (False, True):
        for peers, *_ in SIZES:
            here = [v for w, v in found if w.peers == peers and bool(w.lies) == lying]
            if not here:
                continue
            beyond = [verdict.attempts for verdict in here]
            which = f"{peers} peers{', liars' if lying else ''}: {len(here)} runs, "
            for what, number in (
                ("ended early", float(sum(verdict.ended for verdict in here))),
                ("attempts beyond 20, mean", mean(beyond)),
                ("attempts beyond 20, most", float(max(beyond))),
            ):
                counts.append(Count("ballots", which + what, number, "any", held=True))
    return counts


def ask(full: bool) -> list[Count]:
    runs, hard = (GOAL, HARDEST) if full else (FEW, HARD)
    usual = table(tried(range(runs), Progress("ballots", runs)))
    few = [number for number in range(3 * hard // 2) if number % 3 < 2]  # 4 and 7 peers
    storms = tried(few, Progress("storms", hard), storm)
    early = sum(verdict.ended for _, verdict in storms)
    return [
        *usual,
        *broken(storms, "20 times the kills: "),
        Count("ballots", "20 times the kills: ended early", early, "any", held=True),
    ]


if __name__ == "__main__":
    answer(ask)
