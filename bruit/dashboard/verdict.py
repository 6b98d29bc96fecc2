"""What came out of a run, in a headline: whether working together beat staying alone, and at which price."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.dashboard.markup import number
from bruit.dashboard.story import Story

LESS_IS_BETTER = ("mse", "rmse", "loss", "error")
EQUAL = 5e-4  # relative difference below which two scores are the same in print


@dataclass(frozen=True)
class Verdict:
    """`better` is None where there is nothing to compare with; `curve` is the title of the figure."""

    headline: str
    curve: str
    better: bool | None


def verdict(story: Story) -> Verdict:
    """Together against alone, in the score the task cares about."""
    run, name = story.run, story.metric
    peers = f"{run.n} peer{'s' if run.n != 1 else ''}"
    if name is None:
        return Verdict(f"{peers} ran {run.algorithm.name()}; nothing was measured", "Nothing was measured", None)
    together = run.metrics.last(name)
    alone, central = run.references.get("alone", math.nan), run.references.get("central", math.nan)
    what = f"{name} {number(together)}"
    if not math.isfinite(together):
        return Verdict(f"{peers} ended without a usable model: {what}", f"{name} ended at {number(together)}", False)
    if not math.isfinite(alone):
        return Verdict(f"{peers} together reached {what}; what each reaches alone was not measured",
                       f"{name} ended at {number(together)}", None)  # fmt: skip
    sign = -1.0 if name in LESS_IS_BETTER else 1.0
    gain, whole = sign * (together - alone), sign * (central - alone)
    if abs(gain) <= EQUAL * max(abs(alone), abs(together)):
        return Verdict(f"Working together changed nothing: {what}, and {number(alone)} alone",
                       f"Together is no better than alone: {number(together)}, {number(alone)}", False)  # fmt: skip
    if gain < 0:
        return Verdict(f"Working together was worse than staying alone: {what}, against {number(alone)} alone",
                       f"Together is worse than alone: {number(together)} against {number(alone)}", False)  # fmt: skip
    if not math.isfinite(central) or whole <= 0:
        return Verdict(f"Working together paid: {what}, against {number(alone)} alone",
                       f"Together beats alone: {number(together)} against {number(alone)}", True)  # fmt: skip
    share = gain / whole
    way = (f"{100 * share:.0f}% of the way to all data in one place ({number(central)})" if share < 0.995 else
           f"as good as all data in one place ({number(central)})")  # fmt: skip
    return Verdict(f"Working together paid: {what}, against {number(alone)} alone",
                   f"Together beats alone, and goes {way}" if share < 0.995 else f"Together beats alone and is {way}",
                   True)  # fmt: skip


def price(story: Story) -> str:
    """What it cost, in a sentence: the epsilon of the worst pair with all that belongs to it."""
    summary = story.summary
    if math.isinf(summary.epsilons[0]):
        return "Nothing limits what peers could have learned about each other: epsilon is infinite."
    return (f"The price: the peer that learned most about another could have learned epsilon ="
            f" {number(summary.epsilons[0])} at {story.terms}.")  # fmt: skip
