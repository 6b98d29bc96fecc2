"""Where the noise of a statement comes from: what two statements must not have in common to
compose.

Composition adds up losses of releases whose noises are independent. A simulated run draws its noise
from dice keyed by the seed and by a digest of everything the run depends on, so two runs hold the
same draws only when they are the same run. A source names these draws: by what may be known of the
run, and by the digest with its records, which lives in memory only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NoiseSource:
    """The draws of one run. `name` is what sentences call it; `public` is the digest of seed,
    algorithm, mechanism, graph, steps and what came before; `hidden` that of the records too, None
    where they are not known (a run from a folder) or do not count (a rehearsal)."""

    name: str
    public: str
    hidden: bytes | None = field(default=None, repr=False)

    def may_share(self, other: NoiseSource) -> bool:
        """Whether the two may hold the same draws: all that is known of them is the same."""
        unknown = self.hidden is None or other.hidden is None
        return self.public == other.public and (unknown or self.hidden == other.hidden)


Sources = frozenset[NoiseSource]


def shared(first: Iterable[NoiseSource], second: Iterable[NoiseSource]) -> tuple[NoiseSource, ...]:
    """The sources of the first that the second may hold as well, by name."""
    known: dict[str, list[NoiseSource]] = {}
    for source in second:
        known.setdefault(source.public, []).append(source)
    found = [
        one for one in first if any(one.may_share(other) for other in known.get(one.public, ()))
    ]
    return tuple(sorted(found, key=lambda source: source.name))
