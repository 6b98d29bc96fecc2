"""For whom joining paid: alone, together and pooled, peer by peer, with their spread; and what it is
worth in the mean."""

from __future__ import annotations

import math

from bruit.show.drawing.markup import Markup, join, numbers_behind, table, tag
from bruit.show.report.story import Story
from bruit.show.summary import SHOWN_PEERS, score_rows
from bruit.tasks.scores.joining import Joining

MOST_ROWS = 400  # of the folded table


def joining(story: Story) -> Markup:
    """Two tables; nothing where there is nothing to compare with."""
    run, name = story.run, story.metric
    if name is None or "alone" not in run.references:
        return Markup("")
    rows = [
        (who, score, "-" if math.isnan(worst) else worst)
        for who, score, worst in score_rows(run, name)
    ]
    worth = table(
        f"What joining is worth: {name}", ("who", "mean over peers", "the worst peer"), rows
    )
    return worth if run.joining is None else join([worth, *by_peer(run.joining)])


def by_peer(found: Joining) -> list[Markup]:
    """A row for every peer and their spread; of many peers the spread, with the rows folded away."""
    names = ("peer", "learns from", "judged on", *(name for name, _ in found.columns()))
    rows: list[tuple[object, ...]] = [
        (name, found.records[peer], found.test_records[peer], *found.of(peer))
        for peer, name in enumerate(found.names[:MOST_ROWS])
    ]
    spread: list[tuple[object, ...]] = [
        (name, "", "", *numbers) for name, numbers in found.spread()
    ]
    caption = f"For whom did joining pay? ({found.metric} on {found.where()})"
    few = len(found.names) <= SHOWN_PEERS
    parts = [table(caption, names, [*rows, *spread] if few else spread)]
    told = found.sentence()
    parts.append(tag("p", f"{told[:1].upper()}{told[1:]}."))
    if not few:
        parts.append(numbers_behind(names, rows, "what joining is worth, peer by peer"))
    return parts
