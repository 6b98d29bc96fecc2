"""Who is asked about, and in whose view: checked once, and said in words the same way everywhere."""

from collections.abc import Sequence
from dataclasses import dataclass

from bruit.errors import PrivacyError

Peers = int | Sequence[int]


@dataclass(frozen=True)
class Question:
    """What `observers` together learn about `members`, who all change their data at once when there are several."""

    members: tuple[int, ...]
    observers: tuple[int, ...]

    @property
    def of(self) -> str:
        return _named(self.members)

    @property
    def against(self) -> str:
        return _named(self.observers)


def question(n: int, of: Peers, seen_by: Peers) -> Question:
    """Both as sorted sets of peers of a graph of n; refused when empty, unknown, or overlapping."""
    members, observers = _checked(n, of, "of"), _checked(n, seen_by, "seen_by")
    both = sorted(set(members) & set(observers))
    if both:
        raise PrivacyError(
            f"peer {both[0]} is among the observers {list(observers)}: nobody has secrets from oneself;"
            " ask about other peers"
        )
    return Question(members, observers)


def _checked(n: int, peers: Peers, name: str) -> tuple[int, ...]:
    chosen = (peers,) if isinstance(peers, int) else tuple(sorted({int(v) for v in peers}))
    if not chosen:
        raise PrivacyError(f"`{name}` names no peer; give at least one")
    for v in chosen:
        if not 0 <= v < n:
            raise PrivacyError(f"`{name}` names peer {v}, but the peers are 0..{n - 1}")
    return chosen


def _named(peers: tuple[int, ...]) -> str:
    return f"peer {peers[0]}" if len(peers) == 1 else f"peers {', '.join(map(str, peers))} together"
