"""A public model: what peers may start from, with the words that say where it comes from."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bruit.arrays import Array
from bruit.digests import digest
from bruit.errors import ConfigError


@dataclass(frozen=True, eq=False)
class PublicModel:
    """One row for all peers, or a row for each, that anybody may know: nothing in it may come from
    their records.

    `source` says where it comes from ("trained on census data of 1990"); it stands among the
    hypotheses of every guarantee of the run, and in its folder. What an earlier run learned from
    the peers is not public: go on from that run (`after=`), which is charged.
    """

    rows: ArrayLike
    source: str

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) or not self.source.strip():
            raise ConfigError(
                "a public model says where it comes from: PublicModel(rows, source='...')"
            )
        object.__setattr__(
            self, "rows", deepcopy(self.rows)
        )  # folders and replays need the rows a run began with

    def of_peers(self, peers: int, dim: int) -> Array:
        """One row a peer  # (peers, dim)."""
        try:
            rows = np.asarray(self.rows, np.float64)
        except (TypeError, ValueError):
            raise ConfigError(
                f"a public model is made of numbers, found {str(self.rows)[:60]}"
            ) from None
        if rows.shape not in ((dim,), (1, dim), (peers, dim)):
            raise ConfigError(
                f"a public model has one row of {dim} numbers for all peers, or {peers} such rows;"
                f" found an array of shape {rows.shape}"
            )
        if not np.isfinite(rows).all():
            raise ConfigError("a public model is made of finite numbers, found one that is not")
        return np.array(np.broadcast_to(rows, (peers, dim)))

    def digest(self) -> str:
        """A name for the rows and their source."""
        return digest(b"", np.asarray(self.rows, np.float64), self.source).hex()

    def hypothesis(self) -> str:
        return f"the model peers start from is public, and nothing in it comes from their records: {self.source}"
