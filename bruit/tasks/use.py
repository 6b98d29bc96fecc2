"""Use: what of a data set a task uses and what it leaves out, said before any result.

Nothing is left out in silence: records, columns and owners that are not used are counted or named, and so are holes
that were filled. These are names and counts; what they tell of private rows is listed among the public facts as well.
"""

from dataclasses import dataclass, field

from bruit.tasks.choice import Reading, by_column
from bruit.tasks.public import listed
from bruit.tasks.task import Manifest


@dataclass(frozen=True, kw_only=True)
class Use:
    """Records and columns of a data set, and where they went.

    held: records that peers hold (copies counted once); public: records that belong to nobody and are known to all;
    left_over: records that the split deals to nobody, of which some are those of the `owners_left_out`. sizes: the
    fewest and most records of a peer. notes: what else to know, in sentences.
    """

    reading: Reading
    peers: int
    held: int
    public: int = 0
    left_over: int = 0
    sizes: tuple[int, int] = (1, 1)
    owners_left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)

    def sentences(self) -> list[str]:
        """In words, for people."""
        low, high = self.sizes
        each = f"{low} each" if low == high else f"{low} to {high} each"
        holders = f"{self.held} held by {_counted(self.peers, 'peer')} ({each})"
        public = f", {self.public} public" if self.public else ""
        lines = [f"{_counted(self.reading.records, 'record')}: {holders}{public}"]
        lines += [f"left out: {text}" for text in self._left_out()]
        if self.reading.used:
            lines.append(f"{_counted(len(self.reading.used), 'column')} used: {listed(self.reading.used)}")
        if self.reading.unused:
            lines.append(f"{_counted(len(self.reading.unused), 'column')} not used: {listed(self.reading.unused)}")
        lines += [f"filled: {_counted(count, 'hole')} of {name!r} with {text}"
                  for name, (count, text) in self.reading.filled.items()]
        return [*lines, *self.notes]

    def _left_out(self) -> list[str]:
        reading, found = self.reading, []
        if reading.dropped:
            found.append(f"{_counted(reading.dropped, 'record')} with holes ({by_column(reading.holes)})")
        if reading.lost:
            found.append(f"{_counted(len(reading.lost), 'owner')} with a hole in every record: {listed(reading.lost)}")
        if self.left_over:
            found.append(f"{_counted(self.left_over, 'record')} that the split deals to nobody")
        if self.owners_left_out:
            found.append(f"{_counted(len(self.owners_left_out), 'owner')}, as the split asks: "
                         f"{listed(self.owners_left_out)}")
        return found

    def describe(self) -> Manifest:
        """For the manifest and JSON."""
        reading = self.reading
        return {"records": reading.records, "held": self.held, "public": self.public, "left_over": self.left_over,
                "with_holes": reading.dropped, "holes": dict(reading.holes),
                "filled": {name: {"holes": count, "with": text} for name, (count, text) in reading.filled.items()},
                "columns": list(reading.used), "columns_not_used": list(reading.unused),
                "owners_left_out": [*reading.lost, *self.owners_left_out], "in_words": self.sentences()}


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")
