"""The guarantee: table, status, theorem, hypotheses, what does not apply, and what would lower it."""

from __future__ import annotations

from bruit.dashboard.markup import Markup, section, table, tag
from bruit.dashboard.story import Story
from bruit.privacy.guarantee import REALLY
from bruit.report import public_facts

STATUS = {
    "proven": "Proven: a theorem whose hypotheses are listed below says so, for what is sent.",
    "quoted": "Quoted: a theorem of the named source; its proof is not repeated here.",
    "ideal": f"Ideal: {REALLY}. The last bits of rounded numbers may tell what the noise hides.",
    "published": "Published: the formula as printed in a paper, not a guarantee of this library.",
    "heuristic": "Heuristic: an estimate, not a guarantee.",
}
PAIRS = ("worst pair", "typical pair (median)", "mean over pairs (a summary, protects nobody)")


def privacy_table(story: Story) -> Markup:
    """Worst, typical and mean pair beside local DP: the numbers of `run.summary()`."""
    summary = story.summary
    rows = [(name, loss, epsilon) for name, loss, epsilon in zip(PAIRS, summary.losses, summary.epsilons, strict=True)]
    rows.append(("local DP alone would say", summary.local_loss, summary.local_epsilon))
    caption = f"What could one peer have learned about another? ({story.terms})"
    ideal = summary.status == "ideal"
    epsilon = f"epsilon, ideal ({REALLY})" if ideal else "epsilon"
    return table(caption, ("pair", "loss (one local release = 1)", epsilon), rows)


def statement(story: Story) -> Markup:
    """The section."""
    summary, stated = story.summary, story.statement
    held = [tag("li", tag("span", "checked" if hypothesis.checked else "assumed",
                          class_="badge good" if hypothesis.checked else "badge care"), " ", hypothesis.text)
            for hypothesis in summary.hypotheses]  # fmt: skip
    parts: list[object] = [
        tag("p", tag("strong", summary.status, class_=f"badge {summary.status}"), " ", STATUS[summary.status]),
        privacy_table(story), tag("p", f"By {summary.theorem} ({summary.spec})."),
        tag("h3", "It holds if"), tag("ul", *held, class_="plain"),
    ]  # fmt: skip
    left, parts = parts, []
    notes = list(dict.fromkeys((*summary.refused, *stated.notes)))
    if notes:
        parts += [tag("h3", "Notes"), tag("ul", *(tag("li", note) for note in notes))]
    facts = public_facts(story.run)
    if facts:
        badges = {"private rows": "badge care"}
        told = [tag("li", tag("span", fact["from"], class_=badges.get(fact["from"], "badge good")), " ", fact["fact"])
                for fact in facts]
        parts += [tag("h3", "Known besides the messages, and covered by no epsilon"), tag("ul", *told, class_="plain")]
    epsilon = stated.epsilon(story.delta)
    if stated.advice:
        parts += [tag("h3", "What would lower it"), tag("ul", *(tag("li", text) for text in stated.advice))]
    who = "the worst pair" if story.worst is not None else "the worst peer, seen by everybody"
    parts.append(tag("details", tag("summary", f"Why: {who}"), tag("pre", epsilon.why(), tabindex="0")))
    columns = tag("div", tag("div", *left), tag("div", *parts), class_="columns")
    return section("statement", "The guarantee", columns)
