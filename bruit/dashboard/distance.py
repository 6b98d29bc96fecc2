"""Loss against distance in the graph: do those far away learn less?"""

from __future__ import annotations

import numpy as np

from bruit.dashboard.charts import Band, Chart, Line, draw
from bruit.dashboard.markup import Markup, figure, number, numbers_behind, section, tag
from bruit.dashboard.numbers import SEARCHES, Columns
from bruit.dashboard.numbers import distance as measured
from bruit.dashboard.story import Story


def distance_chart(found: Columns) -> Chart:
    """Mean loss by hops within the band from the least to the largest; unreachable peers are in the table only."""
    near = Columns(found.names, [row for row in found.rows if row[0] >= 0])
    hops, least, mean, largest = (near.column(name) for name in ("hops", "least", "mean", "largest"))
    log = bool(np.all(mean > 0))
    floor = least[least > 0].min() if log and (least > 0).any() else 0.0
    label = (f"Loss by distance: mean {number(float(mean[0]))} at {int(hops[0])} hop,"
             f" {number(float(mean[-1]))} at {int(hops[-1])}")  # fmt: skip
    band = Band("least to largest", hops, np.maximum(least, floor), largest, 1)
    return Chart(label, "hops between the two peers", "loss (one local release = 1)", [Line("mean", hops, mean, 1)],
                 [band], log_y=log, whole_x=True)  # fmt: skip


def distance(story: Story) -> Markup:
    """The section."""
    title = "Loss and distance"
    found = measured(story)
    if not found.rows or all(row[0] < 0 for row in found.rows):
        return section("distance", title, tag("p", story.reason or "There are no two peers with a path between them."))
    words = "How much one peer could have learned about another, by the number of hops between them."
    if story.run.n > SEARCHES:
        words += f" Measured for {SEARCHES} of {story.run.n} observers."
    rows = [("no path" if row[0] < 0 else row[0], *row[1:]) for row in found.rows]
    drawn = figure(words, draw(distance_chart(found)))
    names = ("hops", "pairs", "least loss", "mean loss", "largest loss", f"its epsilon, delta {story.delta:g}")
    return section("distance", title, tag("div", drawn, class_="figures"),
                   numbers_behind(names, rows, "loss by distance"))  # fmt: skip
