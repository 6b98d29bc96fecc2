"""One way to do the job: how much noise it needs, what it costs, how well it does, and on what trust."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from bruit.planning.question import Question
from bruit.privacy.guarantee import Status

FLOAT_BYTES, HEADER_BYTES = 8, 100


@dataclass(frozen=True)
class Option:
    """`error` is the root mean square error of the mean in units of the sensitivity, or the excess loss of the model;
    `statement` names where it comes from, `at_most` whether it is a bound; `trust` is what one has to believe. A noise
    multiplier or loss that means nothing here is nan."""

    protocol: str
    graph: str
    steps: int
    noise_multiplier: float
    status: Status
    theorem: str
    spec: str
    trust: str
    error: float
    at_most: bool
    statement: str
    messages: float
    loss: float = math.nan
    notes: tuple[str, ...] = ()

    def to_dict(self, question: Question) -> dict[str, Any]:
        """Plain data, as `bruit plan --json` prints it."""
        name = "error_of_the_mean" if question.job == "mean" else "excess_loss"
        return {
            "protocol": self.protocol, "graph": self.graph, "steps": self.steps,
            "noise_multiplier": _known(self.noise_multiplier),
            "sigma": _known(self.noise_multiplier * question.sensitivity),
            "status": self.status, "theorem": self.theorem, "spec": self.spec, "trust": self.trust,
            "predicted": {name: self.error * question.sensitivity if question.job == "mean" else self.error,
                          "upper_bound": self.at_most, "statement": self.statement},
            "messages_per_peer": self.messages,
            "bytes_per_peer": self.messages * (question.dim * FLOAT_BYTES + HEADER_BYTES),
            "loss": _known(self.loss), "notes": list(self.notes),
        }  # fmt: skip


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def descent_error(question: Question, steps: int, noise_variance: float) -> float:
    """Excess loss after so many noisy gradient steps of the best rate (walk:RW-3, Prop. 7.3).

        2 D G (2 + log T) / sqrt(T),   G^2 = L^2 + d * noise_variance,   L = 1/2 in units of the sensitivity 2 L
    """
    bound = math.sqrt(0.25 + question.dim * noise_variance) * question.sensitivity
    return 2 * question.diameter * bound * (2 + math.log(steps)) / math.sqrt(steps)
