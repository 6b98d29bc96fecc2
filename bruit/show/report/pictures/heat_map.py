"""All pairs at once: the matrix of losses as a heat map one can zoom into."""

from __future__ import annotations

import math
from typing import Any

from bruit.show.drawing.markup import Markup, data_block, found_figure, join, number, section, tag
from bruit.show.report.pairs import MOST, pair_data
from bruit.show.report.pictures.graph_map import color_key, own_links
from bruit.show.report.story import Story

BUTTONS = (("closer", "Zoom in"), ("farther", "Zoom out"), ("whole", "Show all"))
LABEL = "Matrix of losses. Arrow keys move the marked pair, plus and minus zoom, 0 shows all."


def heat_map(story: Story) -> Markup:
    """The section, with the data that the page's script needs."""
    title = "Every pair"
    if story.losses is None:
        return section(
            "pairs", title, tag("p", f"Pairs are not told apart: {story.reason}."), half=True
        )
    data = pair_data(story)
    canvas = tag(
        "canvas",
        width=640,
        height=640,
        id="heat",
        tabindex="0",
        role="application",
        aria_label=LABEL,
    )
    buttons = tag(
        "div",
        *(tag("button", text, type="button", data_zoom=name) for name, text in BUTTONS),
        class_="controls needs-script",
    )
    nothing = tag(
        "noscript",
        tag("p", "The matrix needs the page's own script, which this viewer does not run."),
    )
    pair_text = tag("p", id="pair-told", aria_live="polite", class_="told")
    data |= own_links(story)
    axes = tag(
        "p",
        "columns: who sees it",
        tag("span", " · ", aria_hidden="true"),
        "rows: whose data",
        class_="key",
    )
    shown = tag("div", nothing, axes, canvas, color_key(story))
    return section(
        "pairs",
        title,
        buttons,
        pair_text,
        found_figure(_title(story), shown, _precision(data), story.source),
        join([data_block("pair-data", data)]),
        half=True,
    )


def _precision(data: dict[str, Any]) -> str:
    """How exact the losses are, and how many pairs one cell stands for."""
    sentences = ["Where pairs share a dot, the largest loss is shown."]
    sentences.append(
        "Losses are exact."
        if data["exact"]
        else "Losses are rounded up to one of "
        f"{len(data['losses'])} levels, epsilons are those of the level."
    )
    if data["block"] > 1:
        size = data["block"]
        sentences.append(
            f"More than {MOST} peers: each cell is the largest loss of {size} by {size} pairs."
        )
    return " ".join(sentences)


def _title(story: Story) -> str:
    """How far the worst pair is from the typical one."""
    worst, typical = story.summary.epsilons[0], story.summary.epsilons[1]
    if not math.isfinite(worst) or not typical > 0:
        return f"The worst pair has epsilon {number(worst)}, the typical one {number(typical)}"
    if worst < 1.05 * typical:
        return f"All pairs are about alike: epsilon {number(worst)} at worst"
    return f"The worst pair has {worst / typical:.2g} times the epsilon of the typical one"
