"""What came out of a run, in a headline: whether working together beat staying alone, and at which
price."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bruit.how_many import how_many
from bruit.runs.verdict import verdict as judge
from bruit.show.drawing.markup import number
from bruit.show.report.story import Story
from bruit.show.summary import advice

AS_GOOD = 0.995  # share of the way to all data in one place that is all of it in print


@dataclass(frozen=True)
class ReportVerdict:
    """`better` is None where there is nothing to compare with; `curve` is the title of the figure;
    `helps` is what would make a run better that was worse than staying alone."""

    headline: str
    curve: str
    better: bool | None
    helps: tuple[str, ...] = ()


def verdict(story: Story) -> ReportVerdict:
    """Together against alone, in the score the task cares about; which is better is what the run
    itself says."""
    run, name = story.run, story.metric
    peers = how_many(run.n, "peer")
    if name is None:
        return ReportVerdict(
            f"{peers} ran {run.algorithm.name()}; nothing was measured",
            "Nothing was measured",
            None,
        )
    found = run.verdict()
    together = run.metrics.last(name) if found is None else found.together
    what, ended = f"{name} {number(together)}", f"{name} ended at {number(together)}"
    helps = tuple(advice(run)) if found is not None and found.worse else ()
    if not math.isfinite(together):
        return ReportVerdict(f"{peers} ended without a usable model: {what}", ended, False, helps)
    if found is None or not math.isfinite(found.alone):
        alone = run.references.get("alone", math.nan)
        beside = (
            f"each reaches {number(alone)} alone"
            if math.isfinite(alone)
            else ("what each reaches alone was not measured")
        )
        return ReportVerdict(f"{peers} together reached {what}; {beside}", ended, None)
    both = f"{number(together)} against {number(found.alone)}"
    if found.worse:
        return ReportVerdict(
            f"Working together was worse than staying alone: {what}, against {number(found.alone)} "
            f"alone",
            f"Together is worse than alone: {both}",
            False,
            helps,
        )
    if found.gain == 0:
        return ReportVerdict(
            f"Working together changed nothing: {what}, and {number(found.alone)} alone",
            f"Together is no better than alone: {both}",
            False,
        )
    central = run.references.get("central", math.nan)
    whole = judge(name, central, run.references)
    curve = f"Together beats alone: {both}"
    if whole is not None and whole.gain > 0:
        share, there = found.gain / whole.gain, f"all data in one place ({number(central)})"
        curve = (
            f"Together beats alone and is as good as {there}"
            if share >= AS_GOOD
            else (f"Together beats alone, and goes {100 * share:.0f}% of the way to {there}")
        )
    return ReportVerdict(
        f"Working together paid: {what}, against {number(found.alone)} alone", curve, True
    )


def price(story: Story) -> str:
    """What it cost, in a sentence: the epsilon of the worst pair with all that belongs to it."""
    summary = story.summary
    if math.isinf(summary.epsilons[0]):
        return "Nothing limits what peers could have learned about each other: epsilon is infinite."
    who = "any peer" if summary.alike else "the peer that learned most about another"
    whom = " about any other" if summary.alike else ""
    return (
        f"The price: {who} could have learned{whom} epsilon ="
        f" {number(summary.epsilons[0])} at {story.terms}."
    )
