"""A given trace: which of its facts an engine replays, and a sentence for every fact that it would
have to ignore.

A schedule takes some facts from a trace and has no place for others:

    rounds   the links that were down, round by round
    pairs    who met whom, in order
    walk     the token's way, hop by hop
    wakes    who woke, in order, and which word of each neighbor it then read

Whatever else a trace holds (messages, counts, payloads) came of a run and is made anew. A fact that
has no place, or that cannot be (a meeting of peers who are no neighbors), is refused: nothing that
was given is left out in silence.
"""

from __future__ import annotations

import numpy as np

from bruit.algorithms.schedules.given import Given
from bruit.errors import ConfigError
from bruit.how_many import how_many
from bruit.runs.engines.engine import Job


def refuse_given(job: Job, engine: str) -> None:
    """For engines that make their own story and replay nothing."""
    if job.given is not None:
        raise ConfigError(
            f"the {engine} engine makes its own meetings, absences and delays, so it cannot follow a"
            " given trace; replay a trace with Bulk()"
        )


def check_given(job: Job) -> None:
    """Refuses a trace with a fact that this job has no place for."""
    given = job.given
    if given is None:
        return
    if given.peers != job.n:
        raise ConfigError(
            f"the given trace is of {given.peers} peers and the graph {job.graph.name} has {job.n}"
        )
    for ends in (given.meetings.a, given.meetings.b, given.faults.a, given.faults.b):
        outside = np.flatnonzero((ends < 0) | (ends >= job.n))
        if len(outside):
            raise ConfigError(
                f"the given trace names peer {ends[outside[0]]}, and the peers are 0..{job.n - 1}"
            )
    schedule = job.schedule
    facts = Given(given, job.algorithm.name(), schedule.name(), job.graph, job.steps)
    if len(given.reads) and not schedule.reads:
        what = f"which words were read at {len(given.reads)} wakes"
        raise facts.no_place(what, "leave reads out")
    if not schedule.synchronous:
        _check_events(job, facts)
    schedule.check_given(facts)


def _check_events(job: Job, facts: Given) -> None:
    """Events happen on one graph whose links are never down, in order of time."""
    given = facts.trace
    if len(given.faults.round):
        count = len(given.faults.round)
        what = f"{how_many(count, 'link')} that {'was' if count == 1 else 'were'} down"
        raise facts.no_place(what, "leave faults out, and those meetings that did not happen")
    late = np.flatnonzero(~(np.diff(given.meetings.time) >= 0))
    if len(late):
        raise ConfigError(
            f"the given meetings are not in order of time: number {late[0] + 1} is earlier than "
            "the one before; give trace.meetings.sorted()"
        )
    job.fixed_graph()
