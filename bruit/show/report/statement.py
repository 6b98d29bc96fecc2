"""The guarantee: table, status, theorem, hypotheses, what does not apply, and what would lower
it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from bruit.privacy.guarantee import REALLY, Hypothesis
from bruit.show.drawing.markup import Markup, section, table, tag
from bruit.show.report.story import Story
from bruit.show.summary import public_facts

STATUS = {
    "proven": "Proven: a theorem whose hypotheses are listed below says so, for what is sent.",
    "quoted": "Quoted: a theorem of the named source; its proof is not repeated here.",
    "ideal": f"Ideal: {REALLY}. The last bits of rounded numbers may tell what the noise hides.",
    "published": "Published: the formula as printed in a paper, not a guarantee of this library.",
    "heuristic": "Heuristic: an estimate, not a guarantee.",
}


def privacy_table(story: Story) -> Markup:
    """Worst, typical and mean pair beside local DP: the numbers of `run.summary()`."""
    summary = story.summary
    rows = [(name, _loss(loss), epsilon) for name, loss, epsilon in summary.rows()]
    caption = f"What could one peer have learned about another? ({story.terms})"
    ideal = summary.status == "ideal"
    epsilon = f"epsilon, ideal ({REALLY})" if ideal else "epsilon"
    return table(caption, ("pair", "loss (one local release = 1)", epsilon), rows)


def _loss(loss: float) -> float | str:
    """Noise that is not Gaussian has no loss."""
    return "-" if math.isnan(loss) else loss


def statement(story: Story) -> Markup:
    """The section."""
    summary, guarantee = story.summary, story.statement
    parts: list[object] = [
        tag(
            "p",
            tag("strong", summary.status, class_=f"badge {summary.status}"),
            " ",
            STATUS[summary.status],
        ),
        privacy_table(story),
        tag("p", f"{story.levels.sentence()}.") if story.levels is not None else "",
        tag("p", f"By {summary.theorem} ({summary.spec})."),
        tag("h3", "It holds if"),
        tag("ul", *_hypotheses(summary.hypotheses), class_="plain"),
    ]
    left, parts = parts, []
    notes = list(dict.fromkeys((*summary.refused, *guarantee.notes)))
    if notes:
        parts += [tag("h3", "Notes"), tag("ul", *(tag("li", note) for note in notes))]
    parts += _known_besides(story)
    epsilon = guarantee.epsilon(story.delta)
    if guarantee.advice:
        parts += [
            tag("h3", "What would lower it"),
            tag("ul", *(tag("li", text) for text in guarantee.advice)),
        ]
    who = "any pair" if summary.alike else "the worst pair"
    if story.worst is None:
        who = f"the worst peer, seen by {guarantee.against}"
    parts.append(
        tag("details", tag("summary", f"Why: {who}"), tag("pre", epsilon.why(), tabindex="0"))
    )
    columns = tag("div", tag("div", *left), tag("div", *parts), class_="columns")
    return section("statement", "The guarantee", columns)


def _hypotheses(stated: Iterable[Hypothesis]) -> list[Markup]:
    """What the guarantee rests on, each checked or assumed."""
    return [
        tag(
            "li",
            tag(
                "span",
                "checked" if hypothesis.checked else "assumed",
                class_="badge good" if hypothesis.checked else "badge care",
            ),
            " ",
            hypothesis.text,
        )
        for hypothesis in stated
    ]


def _known_besides(story: Story) -> list[object]:
    """What everybody knows that no epsilon covers; nothing if there is none."""
    facts = public_facts(story.run)
    if not facts:
        return []
    badges = {"private rows": "badge care"}
    paragraphs = [
        tag(
            "li",
            tag("span", fact["from"], class_=badges.get(fact["from"], "badge good")),
            " ",
            fact["fact"],
        )
        for fact in facts
    ]
    return [
        tag("h3", "Known besides the messages, and covered by no epsilon"),
        tag("ul", *paragraphs, class_="plain"),
    ]
