"""Utility over time, beside its references: each peer alone, and all data in one place."""

from __future__ import annotations

import numpy as np

from bruit.show.drawing.charts import BROAD, Chart, Curve, draw, draw_both
from bruit.show.drawing.markup import Markup, found_figure, number, numbers_behind, section, tag
from bruit.show.report.joining import joining
from bruit.show.report.numbers import NamedColumns, utility
from bruit.show.report.story import Story
from bruit.show.report.verdict import verdict
from bruit.show.summary import REFERENCES, with_own_part

MOST_ROWS = 400  # of the folded table
UNITS = {
    "accuracy": "accuracy (share of records that are right)",
    "auc": "AUC (share of pairs in the right order)",
    "mse": "mean squared error (mse)",
    "rmse": "root mean squared error (rmse), in units of the label",
    "worst": "the same score of the worst peer",
    "loss": "loss of the task, mean over peers",
}
ENDS = {"alone": "alone", "central": "all data", "one_answer": "one answer"}


def score_chart(story: Story, name: str, found: NamedColumns) -> Chart:
    """One score over steps, with the references when it is the one they are measured in."""
    steps = found.column("step")
    whose = name == story.metric
    lines = [
        Curve(
            name="together, with bruit",
            x=steps,
            y=found.column(name),
            color=1,
            end="together" if whose else name[:14],
        )
    ]
    ends = np.array([steps.min(), steps.max()])
    if whose:
        for color, key in enumerate(ENDS, start=2):
            text = REFERENCES[key]
            if key in story.run.references:
                lines.append(
                    Curve(
                        name=text,
                        x=ends,
                        y=np.full(2, story.run.references[key]),
                        color=color,
                        dashed=True,
                        end=ENDS[key],
                    )
                )
    unit = story.run.algorithm.schedule.unit
    label = f"{name} over {unit}: {number(float(found.column(name)[-1]))} at the end"
    label += "".join(
        f"; {REFERENCES[key]}: {number(story.run.references[key])}"
        for key in ENDS
        if whose and key in story.run.references
    )
    return Chart(
        label=label, x_title=unit, y_title=UNITS.get(name, name), lines=lines, whole_x=True
    )


def _finding(name: str, found: NamedColumns) -> str:
    """From where to where a score went."""
    values = found.column(name)
    values = values[np.isfinite(values)]
    first, last = number(float(values[0])), number(float(values[-1]))
    least, most = number(float(values.min())), number(float(values.max()))
    what = {"worst": "The worst peer", "loss": "The loss"}.get(name, name)
    if least == most:
        return f"{what}: {last} throughout"
    if first == last:
        return f"{what} ended where it began, at {last}"
    return f"{what} went from {first} to {last}"


def _at_home(story: Story) -> list[str]:
    """What the curve does not show: the models that peers end with, a part of which never leaves."""
    named, found = with_own_part(story.run), story.run.joining
    if found is None or not named:
        return []
    return [f"Not drawn: {named}, {number(found.mean())} at the end."]


def curves(story: Story) -> Markup:
    """The section."""
    title, found = "How useful it was", utility(story)
    if not found.rows:
        return section("curves", title, tag("p", "Nothing was measured in this run."))
    names = [name for name in found.names[1:] if np.isfinite(found.column(name)).any()]
    names.sort(key=lambda name: name != story.metric)
    held = (
        "Measured on records that no peer holds."
        if story.run.task.get("test")
        else "As measured during the run."
    )
    known = {key: REFERENCES[key] for key in ENDS if key in story.run.references}
    explained = [f"{ENDS[key].capitalize()}: {text}." for key, text in known.items()]
    drawn = [
        found_figure(_finding(name, found), draw(score_chart(story, name, found)))
        for name in names[1:3]
    ]
    first = [
        found_figure(
            verdict(story).curve,
            draw_both(score_chart(story, name, found), BROAD),
            " ".join([held, *explained, *_at_home(story)]),
            story.source,
        )
        for name in names[:1]
    ]
    some = found.rows[:: -(-len(found.rows) // MOST_ROWS)]
    return section(
        "curves",
        title,
        tag("div", *first, tag("div", *drawn, class_="beside"), class_="hero"),
        joining(story),
        numbers_behind(found.names, some, "scores over time"),
    )
