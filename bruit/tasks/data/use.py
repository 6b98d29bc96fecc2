"""Use: what of a data set a task uses and what it leaves out, said before any result.

Nothing is left out in silence: records, columns and owners that are not used are counted or named,
and so are holes that were filled. These are names and counts; what they tell of private rows is
listed among the public facts as well.
"""

from dataclasses import dataclass, field

from bruit.how_many import how_many
from bruit.tasks.data.choice import Reading
from bruit.tasks.data.public import listed
from bruit.tasks.task import Manifest


@dataclass(frozen=True, kw_only=True)
class Use:
    """Records and columns of a data set, and where they went.

    held: records that peers hold (copies counted once); public: records that belong to nobody and
    are known to all; left_over: records that the split deals to nobody, of which some are those of
    the `owners_left_out`. sizes: the fewest and most records of a peer. peer_names: of peers that
    are owners, in order. notes: what else to know, in sentences.
    """

    reading: Reading
    peers: int
    held: int
    public: int = 0
    left_over: int = 0
    sizes: tuple[int, int] = (1, 1)
    owners_left_out: tuple[str, ...] = ()
    peer_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)

    def sentences(self) -> list[str]:
        """In words, for people."""
        low, high = self.sizes
        each = f"{low} each" if low == high else f"{low} to {high} each"
        holders = f"{self.held} held by {how_many(self.peers, 'peer')} ({each})"
        public = f", {self.public} public" if self.public else ""
        lines = [f"{how_many(self.reading.records, 'record')}: {holders}{public}"]
        if self.left_over:
            lines.append(
                f"left out: {how_many(self.left_over, 'record')} that the split deals to nobody"
            )
        if self.owners_left_out:
            lines.append(
                f"left out: {how_many(len(self.owners_left_out), 'owner')}, as the split asks: "
                f"{listed(self.owners_left_out)}"
            )
        return [*lines, *self.reading.sentences(), *self.notes]

    def describe(self) -> Manifest:
        """For the manifest and JSON."""
        reading = self.reading
        return {
            "records": reading.records,
            "held": self.held,
            "public": self.public,
            "left_over": self.left_over,
            "with_holes": reading.dropped,
            "holes": dict(reading.holes),
            "filled": {
                name: {"holes": count, "with": text}
                for name, (count, text) in reading.filled.items()
            },
            "columns": list(reading.used),
            "columns_not_used": list(reading.unused),
            "owners_left_out": [*reading.lost, *self.owners_left_out],
            **({"peer_names": list(self.peer_names)} if self.peer_names else {}),
            "in_words": self.sentences(),
        }
