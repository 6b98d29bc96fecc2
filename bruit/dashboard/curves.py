"""Utility over time, beside its references: each peer alone, and all data in one place."""

from __future__ import annotations

import numpy as np

from bruit.dashboard.charts import BROAD, Chart, Line, draw, draw_both
from bruit.dashboard.markup import Markup, found_figure, number, numbers_behind, section, tag
from bruit.dashboard.numbers import Columns, utility
from bruit.dashboard.story import Story
from bruit.dashboard.verdict import verdict
from bruit.report import REFERENCES

MOST_ROWS = 400  # of the folded table
UNITS = {
    "accuracy": "accuracy (share of records that are right)", "auc": "AUC (share of pairs in the right order)",
    "mse": "mean squared error (mse)", "rmse": "root mean squared error (rmse), in units of the label",
    "worst": "the same score of the worst peer", "loss": "loss of the task, mean over peers",
}  # fmt: skip
ENDS = {"alone": "alone", "central": "all data"}


def score_chart(story: Story, name: str, found: Columns) -> Chart:
    """One score over steps, with the references when it is the one they are measured in."""
    steps = found.column("step")
    whose = name == story.metric
    lines = [Line("together, with bruit", steps, found.column(name), 1, end="together" if whose else name[:14])]
    ends = np.array([steps.min(), steps.max()])
    if whose:
        for color, (key, text) in enumerate(REFERENCES.items(), start=2):
            if key in story.run.references:
                lines.append(Line(text, ends, np.full(2, story.run.references[key]), color, dashed=True, end=ENDS[key]))
    unit = story.run.algorithm.schedule.unit
    label = f"{name} over {unit}: {number(float(found.column(name)[-1]))} at the end"
    label += "".join(f"; {text}: {number(story.run.references[key])}" for key, text in REFERENCES.items()
                     if whose and key in story.run.references)  # fmt: skip
    return Chart(label, unit, UNITS.get(name, name), lines, whole_x=True)


def _finding(name: str, found: Columns) -> str:
    """From where to where a score went."""
    values = found.column(name)
    values = values[np.isfinite(values)]
    first, last = number(float(values[0])), number(float(values[-1]))
    what = {"worst": "The worst peer", "loss": "The loss"}.get(name, name)
    return f"{what}: {last} throughout" if first == last else f"{what} went from {first} to {last}"


def curves(story: Story) -> Markup:
    """The section."""
    title, found = "How useful it was", utility(story)
    if not found.rows:
        return section("curves", title, tag("p", "Nothing was measured in this run."))
    names = [name for name in found.names[1:] if np.isfinite(found.column(name)).any()]
    names.sort(key=lambda name: name != story.metric)
    held = "Measured on records that no peer holds." if story.run.task.get("test") else "As measured during the run."
    known = {key: text for key, text in REFERENCES.items() if key in story.run.references}
    explained = [f"{ENDS[key].capitalize()}: {text}." for key, text in known.items()]
    drawn = [found_figure(_finding(name, found), draw(score_chart(story, name, found))) for name in names[1:3]]
    first = [found_figure(verdict(story).curve, draw_both(score_chart(story, name, found), BROAD),
                          " ".join([held, *explained]), story.source) for name in names[:1]]  # fmt: skip
    some = found.rows[:: -(-len(found.rows) // MOST_ROWS)]
    return section("curves", title, tag("div", *first, tag("div", *drawn, class_="beside"), class_="hero"),
                   numbers_behind(found.names, some, "scores over time"))  # fmt: skip
