"""Who is asked about, and in whose view: checked once, and said in words the same way
everywhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bruit.errors import PrivacyError

Peers = int | Sequence[int]


@dataclass(frozen=True)
class ViewQuestion:
    """What `observers` together learn about `members`, who all change their data at once when there
    are several."""

    members: tuple[int, ...]
    observers: tuple[int, ...]

    @property
    def of(self) -> str:
        return _named(self.members)

    @property
    def against(self) -> str:
        return _named(self.observers)


def question(n: int, of: Peers, seen_by: int | Iterable[int]) -> ViewQuestion:
    """Both as sorted sets of peers of a graph of n; refused when empty, unknown, or overlapping."""
    members, observers = peer_numbers(n, of, "of"), peer_numbers(n, seen_by, "seen_by")
    refuse_self_observers(members, observers)
    return ViewQuestion(members, observers)


def peer_numbers(n: int, peers: int | Iterable[int], name: str) -> tuple[int, ...]:
    """One peer or several as a sorted tuple; refused when empty or unknown. `name` is what the caller
    calls them."""
    chosen = {int(peers)} if isinstance(peers, int | np.integer) else {int(v) for v in peers}
    if not chosen:
        raise PrivacyError(f"`{name}` names no peer; give at least one")
    for v in sorted(chosen):
        if not 0 <= v < n:
            raise PrivacyError(f"there is no peer {v} (`{name}`): the peers are 0..{n - 1}")
    return tuple(sorted(chosen))


def refuse_self_observers(members: tuple[int, ...], observers: tuple[int, ...]) -> None:
    """Refuses to say what a peer learns about itself."""
    both = sorted(set(members) & set(observers))
    if both:
        raise PrivacyError(
            f"peer {both[0]} is among the observers {list(observers)}: nobody has secrets from "
            "oneself; ask about other peers"
        )


def _named(peers: tuple[int, ...]) -> str:
    return f"peer {peers[0]}" if len(peers) == 1 else f"peers {', '.join(map(str, peers))} together"
