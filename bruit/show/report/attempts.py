"""Who was in which round: the attempts of masked sums, and what each peer is charged for them."""

from __future__ import annotations

from bruit.how_many import how_many
from bruit.show.drawing.markup import Markup, numbers_behind, section, table, tag
from bruit.show.report.story import Story

MOST_ROWS = 400  # of a table
SHOWN = 12  # changes of the list; more are folded away


def attempts(story: Story) -> Markup:
    """The section; nothing for runs without masks."""
    made = story.attempts
    if made is None:
        return Markup("")
    promise = made.sentence()
    words = f"{promise[:1].upper()}{promise[1:]}, at {story.terms}."
    came = f"{made.outcome()}; {made.absent()}."
    rows = [
        (part.ballots(), part.attempts, part.who(made.peers)) for part in made.spoken[:MOST_ROWS]
    ]
    cut = len(made.spoken) - len(rows)
    charged = [
        (story.label(peer), count, made.limit)
        for peer, count in enumerate(made.charged[:MOST_ROWS])
    ]
    names, title = ("ballot", "attempts", "who spoke"), "who spoke, attempt by attempt"
    few = len(made.spoken) <= SHOWN
    return section(
        "attempts",
        "Who was in which round",
        tag("p", came),
        tag("p", words),
        table(f"W{title[1:]}", names, rows) if few else numbers_behind(names, rows, title),
        tag("p", f"Not shown: {how_many(cut, 'more change')} of the list.") if cut else "",
        numbers_behind(("peer", "attempts charged", "at most"), charged, "attempts charged"),
        half=True,
    )
