"""Kills: real peers are killed at random moments and started again; what left them is compared with
what they recorded.

`python -m benchmarks.reliability.kills [--full] [--json]`. In every round of this experiment a peer
releases once, and the message of round k holds the release of round k. So after every kill the
journal must hold a line for every round that a neighbor has heard of, no line twice, and a message
that came again must have come in the same bytes.
"""

from __future__ import annotations

import random
import secrets
import signal
import sys
import time
from dataclasses import dataclass, field

from benchmarks.reliability.counts import Count, Progress, answer
from benchmarks.reliability.village import Village, village

FEW, GOAL = 30, 1000  # kills
EACH = 50  # kills of one village; then a new one is founded
PEERS = 3
SHORT = 0.4  # seconds at most until a kill that does not wait for anything
# how often a kill waits until the peers have done 1 to ROUNDS more rounds, and for how long at most
BUSY = 0.6
ROUNDS, LONGEST = 8, 5.0


@dataclass
class Books:
    """What neighbors heard, beside what journals say."""

    kills: int = 0
    frames: int = 0
    resent: int = 0
    differing: int = 0  # messages that came again in other bytes
    unrecorded: int = 0  # rounds that a neighbor heard of, without a line in the journal
    twice: int = 0  # lines of one round, beyond the first
    rounds: int = 0
    died: list[str] = field(
        default_factory=list
    )  # peers that ended otherwise than they were made to
    _seen: dict[tuple[int, int, int], bytes] = field(default_factory=dict)
    _said: dict[int, set[int]] = field(default_factory=dict)

    def begin(self) -> None:
        """Another village: nothing was said in it."""
        self._seen, self._said = {}, {peer: set() for peer in range(PEERS)}

    def hear(self, here: Village) -> None:
        for receiver in range(PEERS):
            for note in here.notes(receiver):
                place = (note.sender, receiver, note.sequence)
                again = place in self._seen
                known = self._seen.setdefault(place, note.digest)
                self.frames += 1
                self.resent += again
                self.differing += known != note.digest
                if note.payload:
                    self._said[note.sender].add(note.number)

    def compare(self, here: Village, peer: int) -> None:
        """The journal of a peer that does not run, with what its neighbors heard of it."""
        self.hear(here)
        clocks = here.releases(peer)
        self.unrecorded += len(self._said[peer] - set(clocks))
        self.twice += len(clocks) - len(set(clocks))

    def reached(self) -> int:
        return max((max(said) + 1 for said in self._said.values() if said), default=0)


def _let_live(here: Village, dice: random.Random, books: Books) -> None:
    """A while: a moment, in which a peer that was started again recalls its journal, or until some
    rounds are done."""
    deadline = time.monotonic() + dice.uniform(0.0, SHORT)
    if dice.random() < BUSY:
        goal, deadline = books.reached() + dice.randint(1, ROUNDS), time.monotonic() + LONGEST
        while books.reached() < goal and time.monotonic() < deadline:
            time.sleep(0.01)
            books.hear(here)
        deadline = time.monotonic() + dice.uniform(0.0, 0.02)
    time.sleep(max(0.0, deadline - time.monotonic()))


def one_village(
    here: Village, kills: int, dice: random.Random, books: Books, progress: Progress
) -> None:
    """Kill and start again, so many times; then let everybody stop in order, and compare once
    more."""
    books.begin()
    for peer in range(PEERS):
        here.start(peer)
    for _ in range(kills):
        _let_live(here, dice, books)
        victim = dice.randrange(PEERS)
        code = here.end(victim, signal.SIGKILL)
        if code != -signal.SIGKILL:
            books.died.append(
                f"peer {victim} had ended with code {code}: {here.log(victim)[-300:]}"
            )
        books.kills += 1
        books.compare(here, victim)
        here.start(victim)
        progress(
            books.kills,
            f"round {books.reached()}, {books.unrecorded} unrecorded, {books.differing} differing",
        )
    before, deadline = books.reached(), time.monotonic() + 60.0
    while (
        books.reached() <= before + 3 and time.monotonic() < deadline
    ):  # they must still get anywhere
        time.sleep(0.1)
        books.hear(here)
    if books.reached() <= before + 3:
        books.died.append(f"nothing moved after the last kill: {here.log(0)[-300:]}")
    for peer in range(PEERS):
        code = here.end(peer, signal.SIGTERM)
        if code != 130:
            books.died.append(
                f"peer {peer} was stopped and ended with code {code}: {here.log(peer)[-300:]}"
            )
    for peer in range(PEERS):
        books.compare(here, peer)
    books.rounds += books.reached()


def ask(full: bool) -> list[Count]:
    total = GOAL if full else FEW
    seed = secrets.randbits(32)
    dice, books, progress = random.Random(seed), Books(), Progress("kills", total)
    while books.kills < total:
        with village(peers=PEERS) as here:
            one_village(here, min(EACH, total - books.kills), dice, books, progress)
    for words in books.died[:5]:
        print(f"kills (seed {seed}): {words}", file=sys.stderr)
    return [
        Count(
            "kills",
            "kills of a real peer at a random moment",
            books.kills,
            f">= {total}",
            books.kills >= total,
        ),
        Count(
            "kills",
            "rounds that the peers came to meanwhile",
            books.rounds,
            "> 0",
            books.rounds > 0,
        ),
        Count(
            "kills", "messages received, again ones included", books.frames, "> 0", books.frames > 0
        ),
        Count("kills", "messages that came again", books.resent, "any", held=True),
        Count("kills", "of these in other bytes", books.differing, "0", books.differing == 0),
        Count(
            "kills",
            "budget losses: releases that left without a line",
            books.unrecorded,
            "0",
            books.unrecorded == 0,
        ),
        Count("kills", "releases with more than one line", books.twice, "0", books.twice == 0),
        Count(
            "kills",
            "peers that ended, or stood still, by themselves",
            len(books.died),
            "0",
            not books.died,
        ),
    ]


if __name__ == "__main__":
    answer(ask)
