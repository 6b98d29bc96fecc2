"""Attempt: what an algorithm on ballots is told with each call of `absorb` (`home.attempt`)."""

from __future__ import annotations

from dataclasses import dataclass

from bruit.errors import LocalProtocolError


@dataclass(frozen=True)
class Summed:
    """A sum that became part of the model: of which ballot and round, and over which list."""

    ballot: int
    round: int
    members: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One attempt, as one peer or all of them make it.

    `members` is the list P, sorted; empty where nobody speaks any more (`home.last`). `bindings`
    holds H of silo:SILO-4 for each copy of the run: a hash of the terms, the ballot, the round, P
    and its keys, and of all lists and sums so far. `keys` are the public keys of the members, in
    order; zeros where nobody has any. `sums` says over which lists the sums in the inbox are, in
    order. `first` is the number of the first of these copies.
    """

    ballot: int
    round: int
    members: tuple[int, ...]
    bindings: tuple[bytes, ...]
    keys: tuple[bytes, ...] = ()
    sums: tuple[Summed, ...] = ()
    first: int = 0

    @property
    def binding(self) -> bytes:
        """H, where there is one copy of the run."""
        if len(self.bindings) != 1:
            raise LocalProtocolError(
                f"{len(self.bindings)} copies of a run have a hash each; ask for bindings"
            )
        return self.bindings[0]
