"""Utility over time, beside its references: each peer alone, and all data in one place."""

from __future__ import annotations

import numpy as np

from bruit.dashboard.charts import Chart, Line, draw
from bruit.dashboard.markup import Markup, figure, number, numbers_behind, section, tag
from bruit.dashboard.numbers import Columns, utility
from bruit.dashboard.story import Story
from bruit.report import REFERENCES

MOST_ROWS = 400  # of the folded table


def score_chart(story: Story, name: str, found: Columns) -> Chart:
    """One score over steps, with the references when it is the one they are measured in."""
    steps = found.column("step")
    lines = [Line("together, with bruit", steps, found.column(name), 1)]
    ends = np.array([steps.min(), steps.max()])
    if name == story.metric:
        for color, (key, text) in enumerate(REFERENCES.items(), start=2):
            if key in story.run.references:
                lines.append(Line(text, ends, np.full(2, story.run.references[key]), color, dashed=True))
    unit = story.run.algorithm.schedule.unit
    label = f"{name} over {unit}: {number(float(found.column(name)[-1]))} at the end"
    return Chart(label, unit, name, lines, whole_x=True)


def curves(story: Story) -> Markup:
    """The section."""
    found = utility(story)
    if not found.rows:
        return section("curves", "How useful it was", tag("p", "Nothing was measured in this run."))
    names = [name for name in found.names[1:] if np.isfinite(found.column(name)).any()]
    names.sort(key=lambda name: name != story.metric)
    drawn = [figure(name, draw(score_chart(story, name, found))) for name in names[:4]]
    some = found.rows[:: -(-len(found.rows) // MOST_ROWS)]
    held = "Measured on records that no peer holds." if story.run.task.get("test") else "As measured during the run."
    return section("curves", "How useful it was", tag("p", held), tag("div", *drawn, class_="figures"),
                   numbers_behind(found.names, some, "scores over time"))  # fmt: skip
