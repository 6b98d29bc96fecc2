"""What came out of a run, in a headline: whether working together beat staying alone, and at which price."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.dashboard.markup import number
from bruit.dashboard.story import Story
from bruit.report import advice
from bruit.verdict import verdict as judge

AS_GOOD = 0.995  # share of the way to all data in one place that is all of it in print


@dataclass(frozen=True)
class Verdict:
    """`better` is None where there is nothing to compare with; `curve` is the title of the figure; `helps` is what
    would make a run better that was worse than staying alone."""

    headline: str
    curve: str
    better: bool | None
    helps: tuple[str, ...] = ()


def verdict(story: Story) -> Verdict:
    """Together against alone, in the score the task cares about; which is better is what the run itself says."""
    run, name = story.run, story.metric
    peers = f"{run.n} peer{'s' if run.n != 1 else ''}"
    if name is None:
        return Verdict(f"{peers} ran {run.algorithm.name()}; nothing was measured", "Nothing was measured", None)
    together, found = run.metrics.last(name), run.verdict()
    what, ended = f"{name} {number(together)}", f"{name} ended at {number(together)}"
    helps = tuple(advice(run)) if found is not None and found.worse else ()
    if not math.isfinite(together):
        return Verdict(f"{peers} ended without a usable model: {what}", ended, False, helps)
    if found is None or not math.isfinite(found.alone):
        alone = run.references.get("alone", math.nan)
        beside = f"each reaches {number(alone)} alone" if math.isfinite(alone) else (
            "what each reaches alone was not measured")  # fmt: skip
        return Verdict(f"{peers} together reached {what}; {beside}", ended, None)
    both = f"{number(together)} against {number(found.alone)}"
    if found.worse:
        return Verdict(f"Working together was worse than staying alone: {what}, against {number(found.alone)} alone",
                       f"Together is worse than alone: {both}", False, helps)  # fmt: skip
    if found.gain == 0:
        return Verdict(f"Working together changed nothing: {what}, and {number(found.alone)} alone",
                       f"Together is no better than alone: {both}", False)  # fmt: skip
    central = run.references.get("central", math.nan)
    whole = judge(name, central, run.references)
    curve = f"Together beats alone: {both}"
    if whole is not None and whole.gain > 0:
        share, there = found.gain / whole.gain, f"all data in one place ({number(central)})"
        curve = f"Together beats alone and is as good as {there}" if share >= AS_GOOD else (
            f"Together beats alone, and goes {100 * share:.0f}% of the way to {there}")  # fmt: skip
    return Verdict(f"Working together paid: {what}, against {number(found.alone)} alone", curve, True)


def price(story: Story) -> str:
    """What it cost, in a sentence: the epsilon of the worst pair with all that belongs to it."""
    summary = story.summary
    if math.isinf(summary.epsilons[0]):
        return "Nothing limits what peers could have learned about each other: epsilon is infinite."
    return (f"The price: the peer that learned most about another could have learned epsilon ="
            f" {number(summary.epsilons[0])} at {story.terms}.")  # fmt: skip
