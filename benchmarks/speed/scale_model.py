"""What a round of averaging costs in blocks, on paper: from four measured numbers.

    bytes a round    = 8 d rows                       rows: those of others that are heard in a block
    seconds a round  = weight (n / k) (degree + 1) d  +  byte (bytes a round) / k  +  round

`weight` is `near` where neighbors lie near each other in memory, and `far` on random graphs.

k blocks of n / k peers, one a worker, each on a core of its own. Rows that cross:

    torus of 3 dimensions, k slabs      2 k side^2 at most, for k <= side = n^(1/3); none for k = 1
    random graph of that degree         n (k - 1) (1 - (1 - 1 / k)^degree), for peers dealt out at random
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

MEASURED = Path(__file__).parent / "scale_out.json"
NUMBER = 8  # bytes


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds for one weight times one number, near and far; for one byte that crosses, at both
    ends; for one round of hardly any peers. `machine` says where they were measured, and when."""

    near: float
    far: float
    byte: float
    round: float
    machine: str = ""

    def cpu(self, work: float, crossing: float, random: bool) -> float:
        """Of all workers together, in a round: for so many weights times numbers, and bytes."""
        return (self.far if random else self.near) * work + self.byte * crossing

    def seconds(self, peers: float, degree: int, dim: int, blocks: int, random: bool) -> float:
        """One round of so many blocks, each on a core of its own."""
        rows = random_rows(peers, blocks, degree) if random else torus_rows(peers, blocks)
        work = peers * (degree + 1) * dim
        return self.cpu(work, NUMBER * dim * rows, random) / blocks + self.round

    def save(self) -> None:
        MEASURED.write_text(json.dumps(asdict(self), indent=1) + "\n")


def known_costs() -> Costs:
    """As they were measured last."""
    return Costs(**json.loads(MEASURED.read_text()))


def torus_rows(peers: float, blocks: int) -> float:
    """Of a torus of three dimensions, in slabs."""
    return 0.0 if blocks == 1 else 2 * blocks * peers ** (2 / 3)


def random_rows(peers: float, blocks: int, degree: int) -> float:
    """Of a random graph, whatever the order of its peers."""
    return peers * (blocks - 1) * (1 - (1 - 1 / blocks) ** degree)
