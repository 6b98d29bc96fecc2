"""What was run and who sees what, in plain words."""

from __future__ import annotations

import math

import numpy as np

from bruit.dashboard.markup import Markup, join, number, section, tag
from bruit.dashboard.story import Story
from bruit.graphs import Graph
from bruit.report import headline

HELD = {"bulk": "a simulation on one machine", "events": "a simulation on one machine, with delays and losses",
        "network": "real sockets on one machine"}  # fmt: skip


def what_was_run(story: Story) -> list[str]:
    """The run in sentences."""
    run = story.run
    task = str(run.task.get("task", "an unnamed task"))
    records = run.task.get("records")
    held = f", {records} records between them" if isinstance(records, int) else ""
    told = [f"{run.n} peers{held} worked on one task ({task}) without putting their data in one place."]
    talk = "they talked over a graph that never changed" if isinstance(run.graph, Graph) else (
        "whom they talked to changed from round to round")  # fmt: skip
    told.append(f"The algorithm was {run.algorithm.name()}, for {run.steps} {run.algorithm.schedule.unit}; {talk}"
                f" ({run.graph.name}). {run.trace.messages} messages were sent.")  # fmt: skip
    if run.privacy is None:
        told.append("No noise was added: nothing below limits what could have been learned.")
    else:
        limit = f"cut to length {number(run.privacy.clip)} and " if math.isfinite(run.privacy.clip) else ""
        told.append(f"Before anything left a peer it was {limit}hidden in {type(run.privacy).__name__} noise of"
                    f" standard deviation {number(run.privacy.sigma)}.")  # fmt: skip
    name = str(run.engine.get("name", ""))
    told.append(f"This was {HELD.get(name, f'run by the engine {name}')}.")
    if run.before is not None:
        told.append(f"It followed an earlier run in the same ledger, and carried on with {run.carried};"
                    " the privacy below counts both.")  # fmt: skip
    if run.trace.missed:
        told.append(f"{run.trace.missed} exchanges were missed.")
    return told


def who_sees_what(story: Story) -> list[tuple[str, str]]:
    """Observers, one sentence each."""
    summary, degrees = story.summary, story.graph.degrees
    at = f"at {story.terms}"
    few, many = (int(degrees.min()), int(degrees.max())) if len(degrees) else (0, 0)
    neighbors = f"{few}" if few == many else f"{few} to {many}"
    told = [("You", "see your own records, your own noise, and what your neighbors tell you.")]
    told.append(("Another peer", f"hears from {neighbors} neighbors and nobody else; the one that learned most about"
                 f" anybody could have learned epsilon = {number(summary.epsilons[0])} {at}."))  # fmt: skip
    if story.worst is not None:
        of, seen_by = story.worst
        seen = f" ({story.statement.seen})" if story.statement.seen else ""
        told.append(("The worst pair", f"is {story.label(of)}, seen by {story.label(seen_by)}{seen}."))
    told.append(("Peers who collude", "put together what each of them saw and learn at least as much as the best placed"
                 " among them; ask for a group with --seen-by 3,7."))  # fmt: skip
    told.append(("Everybody together", "or anybody if every message were published, could have learned epsilon ="
                 f" {number(summary.local_epsilon)} {at}: this is what local DP alone promises."))  # fmt: skip
    told.append(("Someone on the wire", "sees that peers talk, when and how much; what they say is assumed to be"
                 " encrypted."))  # fmt: skip
    told.append(("Whoever ran this", "saw all data if it was a simulation, and only their own peer's if it was not."))
    return told


def words(story: Story) -> Markup:
    """The first section."""
    told = join(tag("p", sentence) for sentence in what_was_run(story))
    return section("words", "What was run", tag("p", headline(story.run), class_="lead"), told, half=True)


def observers(story: Story) -> Markup:
    """Who sees what."""
    seen = join(join([tag("dt", who), tag("dd", what)]) for who, what in who_sees_what(story))
    return section("observers", "Who sees what", tag("dl", seen), half=True)


def how_to_read(story: Story) -> list[tuple[str, str]]:
    """The units of this page, one after the other."""
    summary = story.summary
    worst, unit = summary.epsilons[0], float(story.epsilons(np.ones(1))[0]) if story.losses is not None else np.inf
    told = []
    if math.isfinite(worst):
        odds = f"{math.exp(worst):.3g}" if worst < 50 else f"e^{number(worst)}"
        told.append(("epsilon", "is how much one may become surer. Whoever bets on what a peer's data are, having seen"
                     f" what the worst observer saw, may change the odds by a factor of at most e^epsilon: here {odds}."
                     " 0 is nothing; below 1 is little; above 10 is hardly a promise."))  # fmt: skip
    else:
        told.append(("epsilon", "is infinite here: nothing limits what could have been learned."))
    told.append(("delta", f"is the chance that this fails, {summary.delta:g}."))
    who = "everything a peer holds" if summary.level == "user" else "one record of a peer"
    replace = " is replaced by anything else" if "replace" in story.terms else " changes"
    told.append((f"{summary.level} level", f"says what is protected: {who}{replace}, and nobody could tell."))
    loss = ("counts in releases: 1 is as if a peer had sent what it says once, with its noise, to whoever looks on"
            + (f", which here is epsilon {number(unit)}" if math.isfinite(unit) else "")
            + "; what passed through others first counts less.")  # fmt: skip
    told.append(("loss", loss))
    return told


def reading(story: Story) -> Markup:
    """How to read the numbers."""
    units = join(join([tag("dt", name), tag("dd", what)]) for name, what in how_to_read(story))
    return section("reading", "How to read these numbers", tag("dl", units), half=True)
