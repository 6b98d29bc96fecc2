"""One way to do the job: how much noise it needs, what it costs, how well it does, and on what
trust."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bruit.errors import PrivacyError
from bruit.planning.question import Question
from bruit.planning.utility import Spread
from bruit.privacy.guarantee import Status
from bruit.privacy.toolbox.rounding import USUAL, allowance

FLOAT_BYTES, HEADER_BYTES = 8, 100
SMOOTH = 0.25  # beta of logistic losses of rows of length 1


class Traits(NamedTuple):
    """What is known of a protocol before it is asked, as `TRAITS` of its file; a file without has
    those below."""

    also: tuple[str, ...] = ()  # other names it is asked for by, such as those of its algorithms
    learning: tuple[str, ...] = ()  # names of it that stand for learning a model, not for a mean
    own_graph: bool = False  # whether it brings its own graph, so that no other one is tried
    middleman: bool = False  # whether it needs somebody in the middle: compared with, never chosen
    simulated: bool = False  # whether no real peers run it: chosen only if it is asked for by name


@dataclass(frozen=True, kw_only=True)
class Option:
    """`error` is the root mean square error of the mean in units of the sensitivity, or the excess
    loss of the model; `statement` names where it comes from, `at_most` whether it is a bound;
    `trust` is what one has to believe. A noise multiplier or loss that means nothing here is nan.
    `rounding` is R of all that is sent (fp:FP-0), which is inside the budget: 0 where nothing is
    rounded, nan where nothing is known of it, and then the status is ideal at best. `algorithm` is
    the section of the experiment that runs it, None where no experiment does; `task` is what its
    theorem wants of a task of learning, as keys of [task]."""

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
    rounding: float = math.nan
    algorithm: Mapping[str, Any] | None = None
    task: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.status == "proven" and math.isnan(self.rounding):
            raise PrivacyError(
                f"the plan of {self.protocol} does not say what is sent, so that it is not proven"
            )

    def finite_precision(self, question: Question) -> float:
        """2 gamma of fp:FP-0, the part of epsilon that pays for rounding; nan where nothing is
        known of it."""
        return 2 * allowance(self.rounding, question.delta, max(USUAL, question.epsilon + 1))[0]

    def to_dict(self, question: Question) -> dict[str, Any]:
        """Plain data, as `bruit plan --json` prints it."""
        name = "error_of_the_mean" if question.job == "mean" else "excess_loss"
        return {
            "protocol": self.protocol,
            "graph": self.graph,
            "steps": self.steps,
            "noise_multiplier": _known(self.noise_multiplier),
            "sigma": _known(self.noise_multiplier * question.sensitivity),
            "status": self.status,
            "theorem": self.theorem,
            "spec": self.spec,
            "trust": self.trust,
            "predicted": {
                name: self.error * question.sensitivity if question.job == "mean" else self.error,
                "upper_bound": self.at_most,
                "statement": self.statement,
            },
            "messages_per_peer": self.messages,
            "bytes_per_peer": self.messages * (question.dim * FLOAT_BYTES + HEADER_BYTES),
            "loss": _known(self.loss),
            "rounding": _known(self.rounding),
            "finite_precision": _known(self.finite_precision(question)),
            "notes": list(self.notes),
        }


def refuse_idle(question: Question, *names: str) -> None:
    """Refuse what was asked for and would be ignored: a plan never leaves out a wish without a
    word."""
    sentences = {
        "steps": (
            question.steps is not None,
            f"steps = {question.steps} cannot be asked of it: its length follows from"
            " the number of peers and of contributions; leave --steps out",
        ),
        "cooldown": (
            question.cooldown != 1,
            f"a cool-down of {question.cooldown} is for walks, and nobody rests here;"
            " leave --cooldown out",
        ),
    }
    for name in names:
        asked, sentence = sentences[name]
        if asked:
            raise PrivacyError(sentence)


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def rounded_up(number: float, digits: int = 4) -> str:
    """Noise as it is printed: with so many significant digits, and never less than it is.

    >>> rounded_up(4.22471), rounded_up(0.1), rounded_up(12345678.0)
    ('4.225', '0.1', '1.235e+07')
    """
    text = f"{number:.{digits}g}"
    if float(text) >= number:
        return text
    step = 10.0 ** (math.floor(math.log10(abs(number))) - digits + 1)
    return f"{float(text) + step:.{digits}g}"


def descent_rate(question: Question, steps: int, noise_variance: float) -> float:
    """The step behind the bound below, D / (G sqrt(T)), to two digits and never above 2 / beta = 8
    (walk:RW-3).

    beta = 1/4 is that of logistic losses of rows of length 1.
    """
    best = question.diameter / (_gradient(question, noise_variance) * math.sqrt(steps))
    return min(8.0, float(f"{best:.2g}"))


def _gradient(question: Question, noise_variance: float) -> float:
    """G, the root mean square length of a noisy gradient."""
    return math.sqrt(0.25 + question.dim * noise_variance) * question.sensitivity


def descent_error(question: Question, steps: int, noise_variance: float) -> float:
    """Excess loss after so many noisy gradient steps of the best rate (walk:RW-3, Prop. 7.3).

    2 D G (2 + log T) / sqrt(T),   G^2 = L^2 + d * noise_variance,   L = 1/2 in units of the sensitivity 2 L
    """
    bound = _gradient(question, noise_variance)
    return 2 * question.diameter * bound * (2 + math.log(steps)) / math.sqrt(steps)


class ToldError(NamedTuple):
    """A rate, and what is proven at it."""

    rate: float
    error: float


def told_error(
    question: Question, peers: int, spread: Spread, extra: float, multiplier: float
) -> ToldError:
    """Excess loss of descent that mixes after every gradient, at its best rate (gossip:MUF-X3).

    D^2 / (2 rate T) + rate (G^2 + d z^2 (1 + extra) / n) / 2 + beta rate^2 apart^2 / 2,   G = 1/2, beta = 1/4

    in units of the sensitivity, and times 2 (2 + log T): of a mean of models that is not the sharpest
    word, but the one that other protocols have for the last model (walk:RW-3), so that they compare.
    `extra` is the variance that noise beside the releases leaves in the mean model a round, relative to
    theirs.
    """
    rounds, size = question.contributions, question.sensitivity
    variance = multiplier**2 * (1 + extra) / peers
    squares = size**2 * (0.25 + question.dim * variance)
    apart = size * (spread.drift / 2 + multiplier * math.sqrt(question.dim * spread.noise))
    best = question.diameter / math.sqrt(squares * rounds)
    steps = np.minimum(np.geomspace(best / 1000, best, 200), 2 / SMOOTH)
    rates = np.array([float(f"{rate:.2g}") for rate in steps])
    far = question.diameter**2 / (2 * rates * rounds)
    bounds = far + rates * squares / 2 + SMOOTH * (rates * apart) ** 2 / 2
    place = int(np.argmin(bounds))
    return ToldError(float(rates[place]), 2 * (2 + math.log(rounds)) * float(bounds[place]))
