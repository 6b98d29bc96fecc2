"""Budget over time: what local DP charges each peer, line after line of its ledger."""

from __future__ import annotations

import numpy as np

from bruit.arrays import Array
from bruit.errors import BruitError
from bruit.privacy.guarantee import level_words
from bruit.show.drawing.charts import Chart, Curve, draw_both
from bruit.show.drawing.markup import Markup, found_figure, number, numbers_behind, section, tag
from bruit.show.report.numbers import SpendingCurve, spending
from bruit.show.report.story import Story

CURVES = 40  # thin ones, of single peers


def budget_chart(story: Story, found: SpendingCurve) -> Chart:
    """The peer that spent most, the median, and some single peers behind them."""
    columns, clock = found.columns(), np.append(found.moments[0], found.moments).astype(np.float64)
    distinct = np.unique(found.epsilons, axis=1)
    some = np.unique(
        np.linspace(0, distinct.shape[1] - 1, min(CURVES, distinct.shape[1])).astype(int)
    )
    single = [distinct[:, k] for k in some] if distinct.shape[1] > 2 else []
    lines = [
        Curve(name="one peer", x=clock, y=_from_zero(spent), color=0, step=True, thin=True)
        for spent in single
    ]
    lines.append(
        Curve(
            name="the peer that spent most",
            x=clock,
            y=_from_zero(columns.column("most")),
            color=2,
            step=True,
            end="most",
        )
    )
    if distinct.shape[1] > 1:
        lines.append(
            Curve(
                name="median peer",
                x=clock,
                y=_from_zero(columns.column("median")),
                color=1,
                step=True,
                dashed=True,
                end="median",
            )
        )
    unit = story.run.algorithm.schedule.unit
    end = number(float(columns.column("most")[-1]))
    protected = level_words(story.summary.level, story.summary.adjacency)
    spent = f"epsilon spent (delta {story.delta:g}, {protected})"
    return Chart(
        label=f"Epsilon spent over {unit}: {end} at the end",
        x_title=unit,
        y_title=spent,
        lines=lines,
        whole_x=True,
    )


def _from_zero(spent: Array) -> Array:
    """Nothing is spent before the first release."""
    return np.append(0.0, spent)


def budget(story: Story) -> Markup:
    """The section."""
    title = "Budget over time"
    try:
        found = spending(story)
    except BruitError as error:
        return section("budget", title, tag("p", f"Not shown: {error}"), half=True)
    if not len(found.moments):
        return section(
            "budget", title, tag("p", "No peer released anything: nothing was spent."), half=True
        )
    words = (
        "What each peer has spent, against any coalition of as many peers as the noise was made for:"
        " attempt after attempt, whether a sum came of it or not."
        if story.summary.masked
        else "What each peer has spent against everybody at once (local DP, the sum of its ledger's "
        "lines). A single"
        " observer sees less: that is the rest of this page."
    )
    columns = found.columns()
    if np.isinf(columns.column("most")).all():
        drawn = tag(
            "p",
            "Some peer read its data without noise: its epsilon is infinite from the first moment.",
        )
    else:
        end = number(float(columns.column("most")[-1]))
        finding = (
            f"All attempts together cost epsilon {end}"
            if story.summary.masked
            else f"Whoever saw everything could have learned epsilon {end}"
        )
        drawn = found_figure(finding, draw_both(budget_chart(story, found)), words, story.source)
    return section(
        "budget",
        title,
        drawn,
        numbers_behind(columns.names, columns.rows, "epsilon spent by the clock"),
        half=True,
    )
