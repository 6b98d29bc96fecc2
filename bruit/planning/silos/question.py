"""What the planner of silos is asked: who holds how many records, how large the model is, and how
much may be learned about one record."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.errors import ConfigError, PrivacyError
from bruit.how_many import how_many
from bruit.privacy.events import Adjacency


@dataclass(frozen=True, kw_only=True)
class SilosQuestion:
    """A budget (epsilon, delta) for one record, against any `colluders` peers together, while up to
    `dropouts` others may be gone.

    records: how many each peer holds; public when a record is replaced, and declared beforehand,
    never counted, when it comes or goes. dim: numbers in the model, the intercept among them. steps,
    sample_rate: asked for, or chosen.
    """

    records: tuple[int, ...]
    dim: int
    epsilon: float
    delta: float = 1e-6
    adjacency: Adjacency = "replace"
    colluders: int = 1
    dropouts: int = 0
    steps: int | None = None
    sample_rate: float | None = None

    def __post_init__(self) -> None:
        n = len(self.records)
        if n < 2:
            raise ConfigError(f"silos are at least two, found {n}; alone there is nobody to join")
        few = next((u for u, held in enumerate(self.records) if held < 1), None)
        if few is not None:
            raise ConfigError(
                f"silo {few} holds {self.records[few]} records; leave it out: it has nothing to give"
            )
        if self.dim < 1:
            raise ConfigError(f"a model has at least 1 number, found --dim {self.dim}")
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise PrivacyError(f"a plan needs a positive, finite epsilon, found {self.epsilon}")
        if not 0 < self.delta < 1:
            raise PrivacyError(f"delta must lie strictly between 0 and 1, found {self.delta}")
        if self.adjacency not in ("replace", "add-remove"):
            raise ConfigError(f"--adjacency is replace or add-remove, found {self.adjacency!r}")
        if self.colluders < 0 or self.dropouts < 0:
            raise ConfigError(
                f"colluders and dropouts are 0 or more, found {self.colluders} and {self.dropouts}"
            )
        if self.colluders + self.dropouts > n - 2:
            raise PrivacyError(
                f"{how_many(self.colluders, 'colluder')} and {how_many(self.dropouts, 'dropout')} of "
                f"{n} silos leave fewer than two to make the noise together; plan for fewer"
            )
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"a plan has 1 step or more, found {self.steps}")
        if self.sample_rate is not None and not 0 < self.sample_rate <= 1:
            raise ConfigError(
                f"a record joins a batch with a chance above 0 and at most 1, found "
                f"{self.sample_rate}"
            )

    @property
    def silos(self) -> int:
        return len(self.records)

    @property
    def total(self) -> int:
        """The records of all."""
        return sum(self.records)


def held_by(silos: int | None, records: str) -> tuple[int, ...]:
    """How many records each silo holds: "200,170,30,85", or "2000" for each of `silos`.

    >>> held_by(None, "200,170,30,85"), held_by(3, "50")
    ((200, 170, 30, 85), (50, 50, 50))
    """
    try:
        found = tuple(int(part) for part in records.split(","))
    except ValueError:
        raise ConfigError(
            f"--records are whole numbers, one a silo, e.g. 200,170,30,85; found {records!r}"
        ) from None
    if len(found) == 1 and silos is not None:
        return found * silos
    if silos is not None and silos != len(found):
        raise ConfigError(
            f"--silos {silos} contradicts --records, which name {len(found)}; give one number for "
            f"each, or one for all"
        )
    return found
