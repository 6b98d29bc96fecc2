"""The standing hypotheses of the walk bounds, said with every claim (walk:RW-0).

Formulas know no run: they speak of real numbers, and are `ideal`. What was sent is the business of
a run's own theorem (bruit.privacy.theorems.walk).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bruit.domains import nonnegative, positive
from bruit.errors import PrivacyError
from bruit.how_many import how_many
from bruit.privacy.guarantee import Hypothesis
from bruit.privacy.theorem import IDEALLY
from bruit.privacy.toolbox.path_energy import Numbers

FLOATS = Hypothesis(
    "a gradient computed in floats is within 2^-30 of the clip of the exact one", checked=False
)
CAPPED = "with the cap, observers may forward the token as they like"
HONEST_FORWARDING = "every peer, observers too, draws the next holder by the declared law"


@dataclass(frozen=True)
class Descent:
    """What is declared about the steps of a walk; None is not declared, and then assumed to fit.

    step, smoothness: of the gradient steps. contraction: a Lipschitz constant c of every step other
    than 1, below it only if `silent_contracts`: silent peers too apply the data-independent
    contraction, as of a common regularizer.
    """

    step: float | None = None
    smoothness: float | None = None
    contraction: float = 1.0
    silent_contracts: bool = False

    def __post_init__(self) -> None:
        positive(self, "step", "contraction", error=PrivacyError)
        nonnegative(self, "smoothness", error=PrivacyError)
        if self.contraction < 1 and not self.silent_contracts:
            raise PrivacyError(
                f"a contraction of {self.contraction:g} < 1 must hold at silent steps too"
                " (walk:RW-14); let silent peers apply the common regularizer and say"
                " silent_contracts=True, or leave the contraction at 1"
            )
        known = self.step is not None and self.smoothness is not None
        if known and self.contraction <= 1 and self.step * self.smoothness > 2:  # type: ignore[operator]
            raise PrivacyError(
                f"the walk theorems need non-expansive steps, step <= 2/beta = "
                f"{2 / self.smoothness:g}, found"  # type: ignore[operator]
                f" {self.step:g}; lower the step size, or account by local DP"
            )

    def lipschitz(self) -> tuple[Hypothesis, ...]:
        """(d): the step is compared with the declared smoothness; that the losses are so smooth is
        assumed."""
        if self.contraction != 1:
            every = "every step, silent ones too," if self.contraction < 1 else "every step"
            sentence = f"{every} is {self.contraction:g}-Lipschitz for every admissible dataset"
            return (Hypothesis(sentence, checked=False),)
        text = "no momentum or other local state, silent steps are the identity"
        if self.step is None or self.smoothness is None:
            sentence = f"steps are non-expansive: losses are convex and beta-smooth, {text}, step <= 2/beta"
            return (Hypothesis(sentence, checked=False),)
        limit = 2 / self.smoothness if self.smoothness else float("inf")
        smooth = f"losses are convex and beta-smooth, with the declared beta = {self.smoothness:g}"
        return (
            Hypothesis(f"step {self.step:g} <= 2/beta = {limit:g}", checked=True),
            Hypothesis(f"{smooth} for every admissible dataset; {text}", checked=False),
        )


UNDECLARED = Descent()


def first_holder(drawn: bool) -> Hypothesis:
    """How the walk begins: what holds for a drawn first holder is false of a peer with whom it
    always begins."""
    if drawn:
        return Hypothesis(
            "the first holder is drawn uniformly in public, like every next one (first = "
            "'uniform')",
            checked=False,
        )
    return Hypothesis(
        "the walk may begin at any peer: it is charged as if it began at the peer itself",
        checked=True,
    )


def limits(
    contributions: int, cooldown: int, failure: float = 0.0, kept: bool = False
) -> Hypothesis:
    """The cap and the cool-down, without which nothing is said; `kept`: the walk that happened kept
    them."""
    most = f"every peer contributes at most {how_many(contributions, 'time')}"
    if failure:
        return Hypothesis(
            f"{most}, but for a chance of {failure:g}: nothing caps it, so the first holder must be"
            " drawn uniformly or be counted (most_visits)",
            checked=False,
        )
    rests = (
        "" if cooldown == 1 else f" and rests {cooldown - 1} hop{'s' * (cooldown > 2)} after each"
    )
    return Hypothesis(f"{most}{rests} (cap = {contributions}, rest = {cooldown})", checked=kept)


def declared_maps(lipschitz: Numbers | float | None) -> tuple[Hypothesis, ...]:
    """The Lipschitz constants of the steps' maps, where others than 1 were declared."""
    found = np.asarray(1.0 if lipschitz is None else lipschitz, np.float64)
    if not found.size or bool((found == 1).all()):
        return ()
    sentence = f"the maps of the steps have the declared Lipschitz constants, {found.min():g} to {found.max():g}"
    return (Hypothesis(f"{sentence}, for every admissible dataset", checked=False),)


def standing(descent: Descent | None, capped: bool, published: str) -> tuple[Hypothesis, ...]:
    """(a) to (f). No descent means additive updates, whose steps are translations; `published` says
    what is."""
    steps = Hypothesis(
        "updates are sums: a step adds a value of bounded range and noise", checked=descent is None
    )
    return (
        Hypothesis(
            "start, walk, length, stopping rule, contribution flags and step sizes do not depend on"
            f" data or token values; {CAPPED if capped else HONEST_FORWARDING}",
            checked=False,
        ),
        Hypothesis(
            "every step of a peer that is no observer carries the full independent noise, silent"
            " steps too, before any projection",
            checked=False,
        ),
        *(() if descent is None else (Hypothesis("the step size is constant", checked=False),)),
        *((steps,) if descent is None else descent.lipschitz()),
        Hypothesis(
            "sensitivity and constants hold for every admissible dataset, not just the observed "
            "one",
            checked=False,
        ),
        Hypothesis(published, checked=False),
        *IDEALLY,
    )
