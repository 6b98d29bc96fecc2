"""Guarantee: a privacy statement that names its theorem, its status and its hypotheses.

What it says is a profile, delta for every epsilon. A loss m is in local-DP units: one release of
one peer, seen by everybody, is 1. With Gaussian noise of multiplier z the view is exactly mu-GDP
with mu = sqrt(m) / z, and epsilon(delta) follows without slack (gossip:DP-1, LG-1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

from bruit.errors import PrivacyError
from bruit.notebook_table import html_table
from bruit.privacy.composition import compose
from bruit.privacy.events import Adjacency
from bruit.privacy.noise_source import NoiseSource, Sources, shared
from bruit.privacy.profile import GaussianProfile, Profile, Rounded, asks_pure
from bruit.privacy.toolbox.rounding import allowance

Status = Literal["proven", "quoted", "ideal", "published", "heuristic"]
STATUSES: tuple[Status, ...] = ("proven", "quoted", "ideal", "published", "heuristic")
"""From strong to weak: proven for what is sent; a named source's theorem whose proof is not
repeated here; true for real numbers only; printed somewhere, not as it holds; an estimate. In a
composition the weakest wins."""


def weakest(statuses: Iterable[Status]) -> Status:
    """The status of a statement that rests on all of these."""
    return max(statuses, key=STATUSES.index)


MOVED: dict[Adjacency, str] = {
    "replace": "one record replaced",
    "add-remove": "one record added or removed",
}


def level_words(level: str, adjacency: Adjacency) -> str:
    """What is protected, as it stands beside an epsilon; of records also how they may differ.

    >>> level_words("record", "replace"), level_words("user", "replace")
    ('record level, one record replaced', 'user level')
    """
    return f"{level} level, {MOVED[adjacency]}" if level == "record" else f"{level} level"


def level_facts(level: str, adjacency: Adjacency) -> dict[str, str]:
    """The same for machines to read."""
    return {"level": level, **({"adjacency": adjacency} if level == "record" else {})}


def different_adjacencies(one: Adjacency, other: Adjacency) -> PrivacyError:
    """What is raised where the two are about to be added up (silo:SILO-2)."""
    return PrivacyError(
        f"a guarantee about {MOVED[one]} and one about {MOVED[other]} do not compose; use one "
        f"adjacency throughout"
    )


@dataclass(frozen=True)
class Hypothesis:
    """One condition of a theorem, and whether the library checked it or has to assume it."""

    text: str
    checked: bool

    def __str__(self) -> str:
        return f"{'checked' if self.checked else 'assumed'}: {self.text}"


REAL = Hypothesis(
    "numbers are real: nothing is said of the floats that are sent (ideal arithmetic)",
    checked=False,
)
FRESH = Hypothesis("the parts rest on different draws of noise", checked=True)
INDEPENDENT = Hypothesis("the parts draw their noise independently of each other", checked=False)


def gaussian(loss: float, noise_multiplier: float) -> GaussianProfile:
    """The exact profile of a loss m under a noise multiplier z: mu = sqrt(m) / z. Nothing lost,
    nothing learned.

    >>> round(gaussian(1.0, 4.0).epsilon(1e-5), 9)
    0.926341504
    """
    if not (loss >= 0 and noise_multiplier >= 0):
        raise PrivacyError(
            f"a loss and a noise multiplier are >= 0, found {loss} and {noise_multiplier}"
        )
    if loss == 0:
        return GaussianProfile(0.0)
    return GaussianProfile(
        math.inf if noise_multiplier == 0 else math.sqrt(loss) / noise_multiplier
    )


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What `against` can have learned about `of`. `loss` is in local-DP units where that means
    something, else nan; `seen` says in words which messages make up the view, `advice` what would
    lower the loss; `noise` names the draws that hide it, and is empty for formulas, which speak of
    no draws in particular; `adjacency` says how records differ, at the level of records."""

    theorem: str
    spec: str
    status: Status
    level: str
    of: str
    against: str
    hypotheses: tuple[Hypothesis, ...]
    profile: Profile
    loss: float = math.nan
    noise_multiplier: float = 0.0
    notes: tuple[str, ...] = ()
    seen: str = ""
    advice: tuple[str, ...] = ()
    noise: Sources = field(default=frozenset(), repr=False)
    adjacency: Adjacency = "replace"

    def __post_init__(self) -> None:
        if self.status == "proven" and REAL in self.hypotheses:
            raise PrivacyError(
                f"{self.theorem} ({self.spec}) assumes that numbers are real:"
                " what it says is ideal, and not proven for what is sent"
            )

    @property
    def protected(self) -> str:
        """Its level in words, and at the level of records how they may differ."""
        return level_words(self.level, self.adjacency)

    def epsilon(self, delta: float = 1e-6) -> Epsilon:
        """The epsilon of this statement at delta, as a number that explains itself."""
        asks_pure(delta)
        return Epsilon(self.profile.epsilon(delta), delta, self)

    def delta(self, epsilon: float) -> float:
        """The delta of this statement at epsilon."""
        return self.profile.delta(epsilon)

    def _repr_html_(self) -> str:
        title = f"what {self.against} could have learned about {self.of} ({self.status}, {self.protected})"
        facts = [
            (f"epsilon at delta = {delta:g}", float(self.epsilon(delta))) for delta in (1e-5, 1e-6)
        ]
        rows = [
            ("by", f"{self.theorem} ({self.spec})"),
            ("loss, local-DP units", self.loss),
            *facts,
        ]
        return html_table(
            title,
            [*rows, *(("checked" if h.checked else "assumed", h.text) for h in self.hypotheses)],
        )


def together(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Several statements about the same person and observer as one; different levels are refused
    (gossip:DP-11), and so are different adjacencies.

    Sound when each holds given all that was seen before: see `bruit.privacy.account` for protocols
    that hand on hidden states. Losses add up only where noises are independent: parts that rest, or
    may rest, on the same draws are refused. The weakest status wins.
    """
    if not guarantees:
        raise PrivacyError("there is nothing to compose; give at least one guarantee")
    first = guarantees[0]
    for other in guarantees[1:]:
        if other.level != first.level:
            raise PrivacyError(
                f"guarantees at {first.level} level and at {other.level} level do not compose; use "
                f"one level throughout"
            )
        if other.adjacency != first.adjacency:
            raise different_adjacencies(first.adjacency, other.adjacency)
        if (other.of, other.against) != (first.of, first.against):
            raise PrivacyError(
                f"what {first.against} learned about {first.of} does not compose with what"
                f" {other.against} learned about {other.of}; ask about the same pair"
            )
    if len(guarantees) == 1:
        return first
    for one, other in combinations(guarantees, 2):
        _refuse_shared(one, other)
    status = weakest(part.status for part in guarantees)
    apart = FRESH if all(part.noise for part in guarantees) else INDEPENDENT
    all_hypotheses = dict.fromkeys(h for part in guarantees for h in part.hypotheses)
    hypotheses = (*(h for h in all_hypotheses if h not in (FRESH, INDEPENDENT)), apart)
    notes = tuple(note for part in guarantees for note in part.notes)
    pieces = tuple(f"{part.theorem} ({part.spec})" for part in guarantees)
    return replace(
        first,
        theorem="composition of " + "; ".join(pieces),
        spec="gossip:DP-5",
        status=status,
        hypotheses=hypotheses,
        profile=compose([part.profile for part in guarantees]),
        loss=math.nan,
        noise_multiplier=0.0,
        notes=notes,
        seen="; then ".join(part.seen for part in guarantees if part.seen),
        advice=tuple(dict.fromkeys(text for part in guarantees for text in part.advice)),
        noise=frozenset[NoiseSource]().union(*(part.noise for part in guarantees)),
    )


def _refuse_shared(one: Guarantee, other: Guarantee) -> None:
    """Raise where two statements may rest on the same draws, and say what to do instead."""
    common = shared(one.noise, other.noise)
    if not common:
        return
    alike = len(common) == len(one.noise) == len(other.noise)
    names = "; ".join(source.name for source in common)
    if any(source.hidden is None for source in (*one.noise, *other.noise)):
        raise PrivacyError(
            f"these two may share their noise ({names}): from a folder or a rehearsal nobody can "
            f"tell"
            " whether the records were the same; use another seed or chain the runs with after="
        )
    if alike:
        raise PrivacyError(
            f"these two share their noise ({names}): the same run stated twice is one release and"
            " costs once, and under other faults the same noise hides nothing;"
            " use another seed or chain the runs with after="
        )
    if len(common) == min(len(one.noise), len(other.noise)):
        raise PrivacyError(
            f"these two share their noise ({names}): one goes on from the other and accounts for it"
            " already; take that one alone"
        )
    raise PrivacyError(
        f"these two share their noise ({names}): both go on from the same run, which would be"
        " counted twice; chain them, each after= the one before"
    )


REALLY = "true of real numbers, not of what is sent"
"""What a screen says beside an epsilon whose status is ideal."""


def status_words(status: Status) -> str:
    """The status as it stands beside an epsilon."""
    return f"{status}: {REALLY}" if status == "ideal" else status


class Epsilon(float):
    """A privacy loss that explains itself: `float(e)` is the number, `e.why()` the statement behind
    it."""

    delta: float
    guarantee: Guarantee

    def __new__(cls, value: float, delta: float, guarantee: Guarantee) -> Epsilon:
        made = super().__new__(cls, value)
        made.delta, made.guarantee = delta, guarantee
        return made

    def __reduce__(self) -> tuple[type, tuple[float, float, Guarantee]]:
        return type(self), (float(self), self.delta, self.guarantee)

    def why(self) -> str:
        """Theorem, status, level, who learns about whom from which messages, hypotheses, and what
        would lower it."""
        about = self.guarantee
        measured = (
            [f"loss {about.loss:.6g} in local-DP units"] if not math.isnan(about.loss) else []
        )
        measured += (
            [f"noise multiplier {about.noise_multiplier:.6g}"] if about.noise_multiplier else []
        )
        status = status_words(about.status)
        lines = [
            f"epsilon = {float(self):.6g} at delta = {self.delta:g} ({about.protected}), {status}",
            f"what {about.against} could have learned about {about.of}",
            f"by {about.theorem} ({about.spec})" + (": " + ", ".join(measured) if measured else ""),
        ]
        lines += [f"seen: {about.seen}"] if about.seen else []
        lines += [f"  {hypothesis}" for hypothesis in about.hypotheses]
        lines += [
            f"  finite precision adds {more:.1e} to epsilon"
            for more in (self._finite_precision(),)
            if more
        ]
        lines += [f"  note: {note}" for note in (*about.notes, *self._no_pure_epsilon())]
        lines += [f"  to lower it: {text}" for text in (*self._more_noise(), *about.advice)]
        return "\n".join(lines)

    def _finite_precision(self) -> float:
        """2 gamma of fp:FP-0, which is inside; 0 where nothing was rounded."""
        profile = self.guarantee.profile
        if not isinstance(profile, Rounded) or float(self) == 0 or self.delta == 0:
            return 0.0
        return 2 * allowance(profile.rounding, self.delta)[0]

    def _no_pure_epsilon(self) -> tuple[str, ...]:
        """Why an answer at delta = 0 is infinite, where it would not be at another delta."""
        if self.delta or self < math.inf or self.guarantee.profile.epsilon(1e-6) == math.inf:
            return ()
        return ("this noise has no pure epsilon; ask at a positive delta, such as 1e-6",)

    def _more_noise(self) -> tuple[str, ...]:
        """What doubling all noise would give, when the profile knows."""
        profile = self.guarantee.profile.scaled(2.0) if 0 < self < math.inf else None
        return (
            ()
            if profile is None
            else (f"twice the noise gives epsilon = {profile.epsilon(self.delta):.6g}",)
        )
