"""What was run and who sees what, in plain words."""

from __future__ import annotations

import math

import numpy as np

from bruit.graphs import Graph
from bruit.how_many import how_many
from bruit.mechanisms import Mechanism, RecordSums
from bruit.privacy.guarantee import MOVED
from bruit.runs.engines.blocks import blocks_words
from bruit.show.drawing.markup import Markup, join, number, section, tag
from bruit.show.report.story import Story
from bruit.show.summary import headline, length

HELD = {
    "bulk": "a simulation on one machine",
    "events": "a simulation on one machine, with delays and losses",
    "network": "real sockets on one machine",
}


def what_was_run(story: Story) -> list[str]:
    """The run in sentences."""
    run = story.run
    task = str(run.task.get("task", "an unnamed task"))
    records = run.task.get("records")
    held = f", {how_many(records, 'record')} between them" if isinstance(records, int) else ""
    sentences = [
        f"{how_many(run.n, 'peer')}{held} worked on one task ({task}) without putting their data in"
        " one place."
    ]
    talk = (
        "they talked over a graph that never changed"
        if isinstance(run.graph, Graph)
        else ("whom they talked to changed from round to round")
    )
    sentences.append(
        f"The algorithm was {run.algorithm.name()}, for {length(run)}; {talk}"
        f" ({run.graph.name}). Sent: {how_many(run.trace.messages, 'message')}."
    )
    if run.privacy is None:
        sentences.append("No noise was added: nothing below limits what could have been learned.")
    else:
        limit = (
            f"cut to length {number(run.privacy.clip)} and "
            if math.isfinite(run.privacy.clip)
            else ""
        )
        sentences += _hidden(run.privacy, limit)
    name = str(run.engine.get("name", ""))
    parts = blocks_words(run.engine)
    held = (
        "a simulation by several workers" if parts else HELD.get(name, f"run by the engine {name}")
    )
    sentences.append(f"This was {held}{f' ({parts})' if parts else ''}.")
    if run.before is not None:
        sentences.append(
            f"It followed an earlier run in the same ledger, and carried on with {run.carried};"
            " the privacy below counts both."
        )
    if run.trace.missed:
        sentences.append(f"Missed: {how_many(run.trace.missed, 'exchange')}.")
    return sentences


def _hidden(mechanism: Mechanism, limit: str) -> list[str]:
    """What was done to the data before it left a peer."""
    if not isinstance(mechanism, RecordSums):
        return [
            f"Before anything left a peer it was {limit}hidden in {type(mechanism).__name__} noise of"
            f" standard deviation {number(mechanism.sigma)}."
        ]
    batch = (
        "of all its records"
        if mechanism.sample_rate == 1
        else f"of a secret batch, which every record joins with chance {mechanism.sample_rate:g},"
    )
    return [
        f"Every record's gradient was {limit}added up, {batch} and the sum hidden in noise of"
        f" standard deviation {number(mechanism.sigma)}, then divided by {number(mechanism.divisor)},"
        " a public number.",
        f"What is hidden is one record ({MOVED[mechanism.adjacency]}), not a peer as a whole.",
    ]


def who_sees_what(story: Story) -> list[tuple[str, str]]:
    """Observers, one sentence each."""
    summary, degrees = story.summary, story.graph.degrees
    at = f"at {story.terms}"
    few, many = (int(degrees.min()), int(degrees.max())) if len(degrees) else (0, 0)
    neighbors = how_many(many, "neighbor") if few == many else f"{few} to {many} neighbors"
    rows = [("You", "see your own records, your own noise, and what your neighbors tell you.")]
    rows.append(
        (
            "Another peer",
            f"hears from {neighbors} and nobody else; the one that learned most about"
            f" anybody could have learned epsilon = {number(summary.epsilons[0])} {at}.",
        )
    )
    if summary.alike:
        rows.append(("Every pair", "is like every other: all peers saw the same sums."))
    elif story.worst is not None:
        of, seen_by = story.worst
        seen = f" ({story.statement.seen})" if story.statement.seen else ""
        rows.append(
            ("The worst pair", f"is {story.label(of)}, seen by {story.label(seen_by)}{seen}.")
        )
    rows.append(("Peers who collude", _colluding(story)))
    published = (
        "or anybody if all masks were opened one day, could have learned epsilon ="
        f" {number(summary.local_epsilon)} {at}: every release still has its own share of the noise."
        if summary.masked
        else "or anybody if every message were published, could have learned epsilon ="
        f" {number(summary.local_epsilon)} {at}: this is what local DP alone promises."
    )
    rows.append(("Everybody together", published))
    rows.append(
        (
            "Someone on the wire",
            "sees that peers talk, when and how much; what they say is assumed to be encrypted.",
        )
    )
    rows.append(
        (
            "Whoever ran this",
            "saw all data if it was a simulation, and only their own peer's if it was not.",
        )
    )
    return rows


def _colluding(story: Story) -> str:
    if story.summary.masked:
        most = story.run.algorithm.describe().get("colluders", 0)
        whom = (
            f"any {most} of them together learn no more than one"
            if isinstance(most, int) and most > 1
            else f"the noise was made for {most} of them"
        )
        return (
            f"see sums that nobody can take apart: {whom}; more of them are charged as if all masks"
            " were opened."
        )
    return (
        "put together what each of them saw and learn at least as much as the best placed among"
        " them; ask for a group with --seen-by 3,7."
    )


def words(story: Story) -> Markup:
    """The first section."""
    paragraphs = join(tag("p", sentence) for sentence in what_was_run(story))
    return section(
        "words", "What was run", tag("p", headline(story.run), class_="lead"), paragraphs, half=True
    )


def observers(story: Story) -> Markup:
    """Who sees what."""
    seen = join(join([tag("dt", who), tag("dd", what)]) for who, what in who_sees_what(story))
    return section("observers", "Who sees what", tag("dl", seen), half=True)


def how_to_read(story: Story) -> list[tuple[str, str]]:
    """The units of this page, one after the other."""
    summary = story.summary
    worst, unit = (
        summary.epsilons[0],
        float(story.epsilons(np.ones(1))[0]) if story.losses is not None else np.inf,
    )
    rows = []
    if math.isfinite(worst):
        bet = "one record is" if summary.level == "record" else "a peer's data are"
        odds = f"{math.exp(worst):.3g}" if worst < 50 else f"e^{number(worst)}"
        rows.append(
            (
                "epsilon",
                f"is how much one may become surer. Whoever bets on what {bet}, having seen what"
                " the worst observer saw, may change the odds by a factor of at most e^epsilon:"
                f" here {odds}. 0 is nothing; below 1 is little; above 10 is hardly a promise.",
            )
        )
    else:
        rows.append(("epsilon", "is infinite here: nothing limits what could have been learned."))
    rows.append(("delta", f"is the chance that this fails, {summary.delta:g}."))
    who = "everything a peer holds" if summary.level == "user" else "one record of a peer"
    replace = " is replaced by anything else" if "replace" in story.terms else " changes"
    if summary.level == "record" and summary.adjacency == "add-remove":
        replace = " comes or goes"
    rows.append(
        (
            f"{summary.level} level",
            f"says what is protected: {who}{replace}, and nobody could tell.",
        )
    )
    loss = (
        "counts in releases: 1 is as if a peer had sent what it says once, with its noise, to "
        "whoever looks on"
        + (f", which here is epsilon {number(unit)}" if math.isfinite(unit) else "")
        + "; what passed through others first counts less."
    )
    rows.append(("loss", loss))
    return rows


def reading(story: Story) -> Markup:
    """How to read the numbers."""
    units = join(join([tag("dt", name), tag("dd", what)]) for name, what in how_to_read(story))
    return section("reading", "How to read these numbers", tag("dl", units), half=True)
