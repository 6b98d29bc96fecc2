"""Communicability and Katz centrality beside the losses of a walk; nothing where no token walked
(walk:RW-11)."""

from __future__ import annotations

from bruit.runs.communication import communication as measured
from bruit.show.drawing.charts import Chart, Curve, draw_both
from bruit.show.drawing.markup import Markup, found_figure, numbers_behind, section, tag
from bruit.show.report.story import Story


def communication(story: Story) -> Markup:
    """The section, or nothing."""
    found = None if story.losses is None else measured(story.run, story.losses)
    if found is None:
        return Markup("")
    much, loss = found.pairs[:, 1], found.pairs[:, 2]
    label = f"Loss by communicability: rank correlation {found.with_pairs:.2f}"
    chart = Chart(
        label=label,
        x_title="communicability of the pair, exp(W)",
        y_title="mean loss (one local release = 1)",
        lines=[Curve(name="mean of a tenth of the pairs", x=much, y=loss, color=1)],
    )
    words = "How much one peer could have learned about another, by how much the graph lets the two communicate."
    rows = [(int(count), float(a), float(b)) for count, a, b in found.pairs]
    central = [
        (peer, float(katz), float(seen))
        for peer, (katz, seen) in enumerate(zip(found.katz, found.learned, strict=True))
    ]
    return section(
        "communication",
        "Loss and communication",
        *(tag("p", text) for text in found.sentences()),
        tag("div", found_figure(label, draw_both(chart), words, story.source), class_="figures"),
        numbers_behind(("pairs", "communicability", "mean loss"), rows, "loss by communicability"),
        numbers_behind(
            ("peer", "Katz centrality", "mean loss in its view"), central, "loss by centrality"
        ),
    )
