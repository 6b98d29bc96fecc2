"""Loss against distance in the graph: do those far away learn less?"""

from __future__ import annotations

import numpy as np

from bruit.how_many import how_many
from bruit.show.drawing.charts import Band, Chart, Curve, draw_both
from bruit.show.drawing.markup import Markup, found_figure, number, numbers_behind, section, tag
from bruit.show.report.numbers import SEARCHES, NamedColumns
from bruit.show.report.numbers import distance as measured
from bruit.show.report.story import Story


def distance_chart(found: NamedColumns) -> Chart:
    """Mean loss by hops within the band from the least to the largest; unreachable peers are in the
    table only."""
    near = NamedColumns(found.names, [row for row in found.rows if row[0] >= 0])
    hops, least, mean, largest = (
        near.column(name) for name in ("hops", "least", "mean", "largest")
    )
    log = bool(np.all(mean > 0))
    floor = least[least > 0].min() if log and (least > 0).any() else 0.0
    label = (
        f"Loss by distance: mean {number(float(mean[0]))} at {int(hops[0])} hop,"
        f" {number(float(mean[-1]))} at {int(hops[-1])}"
    )
    band = Band("least to largest", hops, np.maximum(least, floor), largest, 1)
    lines = [
        Curve(name="mean", x=hops, y=mean, color=1, end="mean"),
        Curve(name="largest", x=hops, y=largest, color=2, dashed=True, end="largest"),
    ]
    return Chart(
        label=label,
        x_title="hops between the two peers",
        y_title="loss (one local release = 1)",
        lines=lines,
        bands=[band],
        log_y=log,
        whole_x=True,
    )


def distance(story: Story) -> Markup:
    """The section."""
    title = "Loss and distance"
    found = measured(story)
    if not found.rows or all(row[0] < 0 for row in found.rows):
        return section(
            "distance",
            title,
            tag("p", story.reason or "There are no two peers with a path between them."),
            half=True,
        )
    words = (
        "How much one peer could have learned about another, by the number of hops between them."
    )
    words += " The shade goes from the least to the largest loss."
    if story.run.n > SEARCHES:
        words += f" Measured for {SEARCHES} of {story.run.n} observers."
    rows = [("no path" if row[0] < 0 else row[0], *row[1:]) for row in found.rows]
    drawn = found_figure(_finding(found), draw_both(distance_chart(found)), words, story.source)
    names = (
        "hops",
        "pairs",
        "least loss",
        "mean loss",
        "largest loss",
        f"its epsilon, delta {story.delta:g}",
    )
    return section(
        "distance", title, drawn, numbers_behind(names, rows, "loss by distance"), half=True
    )


def _finding(found: NamedColumns) -> str:
    near = [row for row in found.rows if row[0] >= 0]
    first, last = near[0], near[-1]
    if len(near) == 1:
        return f"All pairs are {how_many(first[0], 'hop')} apart"
    if last[3] == 0:
        return f"Peers {last[0]} hops away learned nothing"
    if not 0 < last[3] < first[3] or not np.isfinite(first[3]):
        far = f"{number(first[3])} at {first[0]} hop, {number(last[3])} at {last[0]}"
        return f"Distance does not protect: mean loss {far}"
    return f"Peers {last[0]} hops away learned {first[3] / last[3]:.3g} times less than neighbors"
