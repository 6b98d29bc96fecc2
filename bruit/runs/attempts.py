"""Attempts of masked sums: who spoke in which, and what was promised beside what was spent
(silo:SILO-5).

A peer that spoke in an attempt is charged for it, whether a sum came of it or not. So the ledger
says who was in which attempt: its clock is the ballot. Nobody is charged for more than `limit`
attempts; the noise was made for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from bruit.how_many import how_many
from bruit.privacy.events import MaskedEvent
from bruit.privacy.toolbox.pld import compose_epsilon
from bruit.runs.result import Run

NAMED = 12  # peers that are named; of more only their number is said


@dataclass(frozen=True)
class Spoken:
    """From ballot `first` to ballot `last`, in `attempts` of them, the same peers spoke."""

    first: int
    last: int
    attempts: int
    peers: tuple[int, ...]

    def ballots(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"

    def who(self, n: int) -> str:
        """The peers in words: all, all but some, or these."""
        missing = sorted(set(range(n)) - set(self.peers))
        if not missing:
            return f"all {how_many(n, 'peer')}"
        if len(missing) <= min(NAMED, len(self.peers)):
            return f"all but {_listed(missing)}"
        return f"{_listed(self.peers)}"


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """`promised` is the epsilon of `limit` attempts, `spent` that of the `most` that some peer was
    charged for, both against as many peers as the noise was made for."""

    peers: int
    rounds: int
    limit: int
    spent: float
    promised: float
    charged: tuple[int, ...]  # of every peer
    spoken: tuple[Spoken, ...]

    @property
    def most(self) -> int:
        return max(self.charged, default=0)

    @property
    def made(self) -> int:
        """Attempts that somebody spoke in."""
        return sum(part.attempts for part in self.spoken)

    def sentence(self) -> str:
        """Promise and spent part, in words."""
        limit, are = how_many(self.limit, "attempt"), "is" if self.limit == 1 else "are"
        made_of = f"{how_many(self.rounds, 'round')} and {self.limit - self.rounds} spare"
        return (
            f"promised: at most {limit} {are} charged ({made_of}), epsilon {self.promised:.4g} for"
            f" all of them; charged: {self.most}, epsilon {self.spent:.4g}"
        )

    def outcome(self) -> str:
        """How many attempts became sums, in words."""
        made = f"{how_many(self.made, 'attempt')} made for {how_many(self.rounds, 'round')}"
        failed = self.made - self.rounds
        if failed > 0:
            return f"{made}: {failed} became no sum, and cost as much as the others"
        return f"{made}: " + (
            "every one became a sum" if failed == 0 else f"{how_many(-failed, 'round')} not made"
        )

    def absent(self) -> str:
        """Who was silent in how many attempts, in words."""
        away = {peer: self.made - count for peer, count in enumerate(self.charged)}
        away = {peer: missed for peer, missed in away.items() if missed > 0}
        if not away:
            return "nobody was absent"
        if len(away) > NAMED:
            return f"absent: {how_many(len(away), 'peer')}, each at least once"
        return "absent: " + "; ".join(
            f"peer {peer} in {missed} of {self.made}" for peer, missed in away.items()
        )

    def lists(self) -> list[str]:
        """Who spoke in which attempts, one line for each change."""
        return [
            f"{'ballot' if part.first == part.last else 'ballots'} {part.ballots()}:"
            f" {part.who(self.peers)} spoke, in {part.attempts} of {how_many(self.made, 'attempt')}"
            for part in self.spoken
        ]

    def plain(self) -> dict[str, Any]:
        """The same for machines to read."""
        return {
            "rounds": self.rounds,
            "limit": self.limit,
            "promised": self.promised,
            "spent": self.spent,
            "charged": list(self.charged),
            "spoken": [
                {"first": part.first, "last": part.last, "attempts": part.attempts}
                | {"peers": list(part.peers), "in_words": part.who(self.peers)}
                for part in self.spoken
            ],
            "in_words": self.sentence(),
            "outcome": self.outcome(),
            "absent": self.absent(),
        }


def attempts(run: Run, delta: float) -> Attempts | None:
    """Of a run with masks; None for others."""
    own = run.ledger if run.before is None else run.ledger.tail(len(run.before.ledger))
    masked = [event for event in own.events if isinstance(event, MaskedEvent)]
    limit = run.algorithm.charged(run.steps)
    if not masked or limit is None:
        return None
    kinds = np.array([isinstance(event, MaskedEvent) for event in own.events])
    lines = kinds[own.column("event")]
    clock, peer = own.column("clock")[lines], own.column("peer")[lines]
    charged = np.bincount(peer, minlength=run.n)
    return Attempts(
        peers=run.n,
        rounds=run.steps,
        limit=limit,
        spent=compose_epsilon([(masked[0].promised(), int(charged.max()))], delta),
        promised=compose_epsilon([(masked[0].promised(), limit)], delta),
        charged=tuple(charged.tolist()),
        spoken=_spoken(clock.tolist(), peer.tolist()),
    )


def _spoken(clock: list[int], peer: list[int]) -> tuple[Spoken, ...]:
    lists: dict[int, list[int]] = {}
    for ballot, one in zip(clock, peer, strict=True):
        lists.setdefault(ballot, []).append(one)
    in_order = [(ballot, tuple(sorted(lists[ballot]))) for ballot in sorted(lists)]
    found = []
    for peers, group in groupby(in_order, key=lambda pair: pair[1]):
        ballots = [ballot for ballot, _ in group]
        found.append(Spoken(ballots[0], ballots[-1], len(ballots), peers))
    return tuple(found)


def _listed(peers: tuple[int, ...] | list[int]) -> str:
    if len(peers) > NAMED:
        return how_many(len(peers), "peer")
    return ("peer " if len(peers) == 1 else "peers ") + ", ".join(map(str, peers))
