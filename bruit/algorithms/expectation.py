"""What theory expects of a run, from declared constants and public facts alone: a utility bound,
printed beside scores.

Bounds are on the distance of the model, or of all duals, from the optimum; they are often far above
what is measured. Where no statement applies, its reason is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.tasks.task import Constants


@dataclass(frozen=True, kw_only=True)
class DeclaredFacts:
    """What a utility statement may look at: nothing of it was read off the records, but for
    `measured`, a contraction that is only printed beside the declared one."""

    graph: Graph | GraphSequence
    steps: int
    dim: int
    clip: float  # infinite without noise
    sigma: float
    constants: Constants | None
    measured: float | None = None
    disturbed: str = ""  # what was not as agreed: links that failed, peers that were missed

    def longest_gradient(self, constants: Constants) -> float:
        """The declared bound on gradients, else the clip."""
        longest = constants.lipschitz if isfinite(constants.lipschitz) else self.clip
        if not isfinite(longest):
            raise ConfigError(
                "no bound on the gradients is declared; normalize the rows, or add privacy"
            )
        return longest


@dataclass(frozen=True)
class Expectation:
    """A bound on the mean squared distance from the optimum at the end, and the distance at the
    start it knows of."""

    spec: str
    what: str
    start: float
    bound: float
    facts: dict[str, float]

    def sentence(self) -> str:
        facts = ", ".join(f"{name} {value:.4g}" for name, value in self.facts.items())
        empty = "" if self.bound < self.start else "; it promises nothing here"
        return f"utility ({self.spec}): {self.what} <= {self.bound:.4g}, from at most {self.start:.4g} ({facts}){empty}"

    def plain(self) -> dict[str, Any]:
        return {
            "spec": self.spec,
            "what": self.what,
            "start": self.start,
            "bound": self.bound,
            **self.facts,
        }
