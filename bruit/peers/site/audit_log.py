"""The audit log of a real peer: who released what, when, at which price, and no value.

    state/audit.jsonl     a chain (`accounts/chain`), 0600
    audit log             its first line
    start                 a start of the peer that released something: run, peer, name, algorithm
    release               lines `first` to `last` of the ledger, their events, their epsilon by themselves
    end                   the run has ended: how many lines, and the epsilon of all

A line is on the disk before the journal commits the releases in it, and these are committed before
anything is said: a kill at any moment leaves no release without its line. It may leave a line without
its release; the next start tells how many releases its journal holds, and so which lines were
for nothing. What all runs on some records have paid together is on their account (`own_account`), which
knows a run by the same `key`.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bruit.accounts.chain import Chain, ChainEnd, ChainHead, Writer
from bruit.accounts.released import AUDIT, END, RELEASE, START, Released
from bruit.errors import BrokenStateError
from bruit.how_many import how_many
from bruit.peers.journal.step import Spend
from bruit.privacy.events import from_json
from bruit.privacy.toolbox.pld import compose_epsilon

log = logging.getLogger("bruit.peers")
NAME = "audit.jsonl"


@lru_cache(maxsize=64)
def _price(events: tuple[tuple[str, int], ...], delta: float) -> float:
    return compose_epsilon([(from_json(text), count) for text, count in events], delta)


@dataclass(kw_only=True)
class AuditLog:
    """Of one start of one peer. `about` says which run it is, by key; `held` is how many ledger lines
    the journal held when it started."""

    path: Path
    about: Mapping[str, Any]
    delta: float
    held: int
    left: ChainEnd | None = None  # where this start left the file

    @property
    def chain(self) -> Chain:
        return Chain(self.path, "the audit log")

    def check(self) -> None:
        """Refuse a log that somebody has changed, and a journal that is older than the log, before
        anything is released."""
        known = self._released(self.chain.read().lines).runs.get(self.about["key"])
        before = 0 if known is None else known.again
        if known is not None:
            known.start(self.held)
        if known is not None and known.again > before:
            raise BrokenStateError(
                f"the journal of this run is an old copy: the audit log {self.path} knows of"
                f" {how_many(known.again - before, 'line')} of its ledger that it does not hold; put"
                " back the newest"
            )

    def head(self) -> ChainHead:
        """How far it has come; what reports name."""
        return self.chain.read().head

    def before(self, first: int, spends: Sequence[Spend]) -> None:
        """Write down what is about to be committed: ledger lines from number `first` on."""
        events = Counter(spend.event for spend in spends)
        self._add(
            {
                "what": RELEASE,
                "key": self.about["key"],
                "first": first,
                "last": first + len(spends) - 1,
                "events": [[from_json(text).describe(), count] for text, count in events.items()],
                "epsilon": _price(tuple(events.items()), self.delta),
                "delta": self.delta,
            }
        )

    def ended(self, releases: int, epsilon: float) -> None:
        """The run has come to its end; said once."""
        lines = self.chain.read().lines
        if lines and (lines[-1].get("what"), lines[-1].get("key")) == (END, self.about["key"]):
            return
        self._add(
            {
                "what": END,
                "key": self.about["key"],
                "last": releases,
                "epsilon": epsilon,
                "delta": self.delta,
            }
        )

    def _add(self, line: Mapping[str, Any]) -> None:
        if self.left is None:
            self.chain.begin({"what": AUDIT, "id": os.urandom(16).hex()})
        with self.chain.writing(self.left) as writer:
            if self.left is None:
                self._start(writer)
            elif writer.found.lines and not writer.found.reaches(self.left.head):
                raise BrokenStateError(
                    f"the audit log {self.path} was changed while this peer ran: lines that it wrote"
                    " are not in it; put back the file as it was"
                )
            writer.add(line)
            self.left = writer.end()

    def _released(self, lines: list[dict[str, Any]]) -> Released:
        """What these lines say."""
        try:
            return Released.of(lines)
        except ValueError as error:
            raise BrokenStateError(
                f"the audit log {self.path} is damaged ({error}); put back the file as it was"
            ) from None

    def _start(self, writer: Writer) -> None:
        known = self._released(writer.found.lines).last(self.about["key"])
        if known < self.held:
            log.warning(
                "%s of this run's ledger are not in the audit log %s: it was begun later, or cut",
                how_many(self.held - known, "line"),
                self.path,
            )
        writer.add({"what": START, **self.about, "held": self.held})
