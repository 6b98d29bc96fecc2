"""Whether taking part was worth it: what was learned together beside what each peer would have had
alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

HIGHER = ("accuracy", "auc")
LOWER = ("rmse", "mse")


@dataclass(frozen=True)
class TogetherOrAlone:
    """`gain` is by how much together beat alone: positive is better, whatever the metric."""

    metric: str
    together: float
    alone: float
    gain: float

    @property
    def worse(self) -> bool:
        """Whether staying alone would have been better; a model that is no number at all is
        worse."""
        return not self.gain >= 0

    def sentence(self) -> str:
        compared = f"{self.metric} {self.together:.4g} together, {self.alone:.4g} alone"
        if self.worse:
            return f"worse than staying alone: {compared}"
        return (
            f"as good as staying alone: {compared}"
            if self.gain == 0
            else f"better than staying alone: {compared}"
        )

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "worse": self.worse, "in_words": self.sentence()}


def verdict(
    metric: str, together: float, references: Mapping[str, float]
) -> TogetherOrAlone | None:
    """The comparison; None where nobody knows what a peer has alone, or which way the metric
    goes."""
    if "alone" not in references or metric not in (*HIGHER, *LOWER):
        return None
    alone = float(references["alone"])
    return TogetherOrAlone(
        metric, together, alone, together - alone if metric in HIGHER else alone - together
    )
