"""Counts in sentences: a number with its noun."""

from __future__ import annotations


def how_many(count: float, thing: str) -> str:
    """A count with its noun.

    >>> how_many(1, "peer"), how_many(2, "peer"), how_many(2.5, "message"), how_many(0, "class")
    ('1 peer', '2 peers', '2.5 messages', '0 classes')
    """
    digits = f"{count:g}" if isinstance(count, float) else str(count)
    ending = "" if count == 1 else "es" if thing.endswith("s") else "s"
    return f"{digits} {thing}{ending}"
