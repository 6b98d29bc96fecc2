"""Routes: by which way the words of a list come together to one sum (silo:SILO-4, Routes).

    all          everybody says its words to everybody, and sums them                  m (m - 1) messages
    leader       everybody says its words to the leader, who sums and tells            2 (m - 1)
    tree         along a binary tree under the leader: own words + those of both branches to the
                 one above; the leader tells the sum                                   2 (m - 1), 2 to each
    butterfly    in turn with the peers 1, 2, 4 .. places away: own words + all heard so far; in the
                 end everybody has the sum                                             m log2 m, about

m members of the list. Sums are modulo 2^64, so that every route makes the same integers. What goes
over any of them is a sum of masked words, and is passed on when all its parts are there, for the
same attempt, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

Route = Literal["complete", "tree", "butterfly"]  # what a run may ask for
Kind = Literal["all", "leader", "tree", "butterfly"]  # what words do in one attempt
ROUTES: tuple[Route, ...] = ("complete", "tree", "butterfly")


@dataclass(frozen=True)
class PartialSum:
    """The own words and those heard from `of`, in one sum, are said to `to`."""

    to: tuple[int, ...]
    of: tuple[int, ...] = ()


@dataclass(frozen=True)
class Way:
    """What one peer does on a route: the parts it says, in order; and from whom it must hear for the
    own words and all of theirs to be the sum, None if it is told the sum."""

    parts: tuple[PartialSum, ...]
    whole: tuple[int, ...] | None

    @property
    def awaited(self) -> set[int]:
        """From whom it hears words."""
        return {v for part in self.parts for v in part.of} | set(self.whole or ())


class Passed(NamedTuple):
    """One message of words: whose are in it."""

    sender: int
    receiver: int
    of: frozenset[int]


@lru_cache(maxsize=4096)
def way(kind: Kind, voices: tuple[int, ...], leader: int, me: int) -> Way:
    """The part of one peer in bringing together the words of these; it may be the leader without
    being one of them."""
    others = tuple(v for v in voices if v != me)
    if kind == "tree":
        return _in_tree((leader, *(v for v in voices if v != leader)), me)
    if kind == "leader":
        return (
            Way((), others)
            if me == leader
            else Way((PartialSum((leader,)),) * (me in voices), None)
        )
    if me not in voices:
        return Way((), None)
    if kind == "all":
        return Way((PartialSum(others),) if others else (), others)
    return _in_butterfly(voices, me)


def passed(kind: Kind, voices: tuple[int, ...], leader: int) -> Iterator[Passed]:
    """All messages of words of an attempt in which nobody fails, and whose words are in them."""
    for u in voices:
        for part in way(kind, voices, leader, u).parts:
            content = _content(kind, voices, leader, u, part)
            yield from (Passed(u, v, content) for v in part.to)


@lru_cache(maxsize=4096)
def _content(
    kind: Kind, voices: tuple[int, ...], leader: int, me: int, part: PartialSum
) -> frozenset[int]:
    found = {me}
    for v in part.of:
        theirs = next(one for one in way(kind, voices, leader, v).parts if me in one.to)
        found |= _content(kind, voices, leader, v, theirs)
    return frozenset(found)


def _in_tree(order: tuple[int, ...], me: int) -> Way:
    """Place i of the order is above places 2i + 1 and 2i + 2; the leader has place 0."""
    if me not in order:
        return Way((), None)
    place = order.index(me)
    below = order[2 * place + 1 : 2 * place + 3]
    return Way((PartialSum((order[(place - 1) // 2],), below),), None) if place else Way((), below)


def _in_butterfly(voices: tuple[int, ...], me: int) -> Way:
    """The first 2^k peers exchange with the one 1, 2, 4 .. places away. Each of the others says its
    words to one of these before, and is told all others' words in the end."""
    size = 1 << (len(voices).bit_length() - 1)
    place = voices.index(me)
    if place >= size:
        host = voices[place - size]
        return Way((PartialSum((host,)),), (host,))
    guest = voices[place + size : place + size + 1]  # of whom this peer is the host, if any
    heard: tuple[int, ...] = ()
    parts = list[PartialSum]()
    stride = 1
    while stride < size:
        partner = voices[place ^ stride]
        parts.append(PartialSum((partner,), (*guest, *heard)))
        heard, stride = (*heard, partner), 2 * stride
    if guest:
        parts.append(PartialSum(guest, heard))
    return Way(tuple(parts), (*guest, *heard))
