"""A given trace: which of its facts an engine replays, and a sentence for every fact that it would have to ignore.

A schedule takes some facts from a trace and has no place for others:

    rounds   the links that were down, round by round
    pairs    who met whom, in order
    walk     the token's way, hop by hop
    wakes    who woke, in order, and which word of each neighbor it then read

Whatever else a trace holds (messages, counts, payloads) came of a run and is made anew. A fact that has no place, or
that cannot be (a meeting of peers who are no neighbors), is refused: nothing that was given is left out in silence.
"""

from __future__ import annotations

import numpy as np

from bruit.algorithms.schedules import Pairs, Rounds, Wakes, Walk
from bruit.arrays import Bools, Ints
from bruit.engines.engine import Job
from bruit.errors import ConfigError
from bruit.graphs import Graph
from bruit.trace import Trace


def refuse_given(job: Job, engine: str) -> None:
    """For engines that make their own story and replay nothing."""
    if job.given is not None:
        raise ConfigError(f"the {engine} engine makes its own meetings, absences and delays, so it cannot follow a"
                          " given trace; replay a trace with Bulk()")  # fmt: skip


def check_given(job: Job) -> None:
    """Refuses a trace with a fact that this job has no place for."""
    given = job.given
    if given is None:
        return
    if given.peers != job.n:
        raise ConfigError(f"the given trace is of {given.peers} peers and the graph {job.graph.name} has {job.n}")
    for ends in (given.meetings.a, given.meetings.b, given.faults.a, given.faults.b):
        outside = np.flatnonzero((ends < 0) | (ends >= job.n))
        if len(outside):
            raise ConfigError(f"the given trace names peer {ends[outside[0]]}, and the peers are 0..{job.n - 1}")
    schedule = job.schedule
    if len(given.reads) and not isinstance(schedule, Wakes):
        raise ConfigError(_no_place(job, f"which words were read at {len(given.reads)} wakes", "leave reads out"))
    if isinstance(schedule, Rounds):
        _check_rounds(job, given)
        return
    if len(given.faults.round):
        what = f"{len(given.faults.round)} links that were down"
        raise ConfigError(_no_place(job, what, "leave faults out, and those meetings that did not happen"))
    late = np.flatnonzero(~(np.diff(given.meetings.time) >= 0))
    if len(late):
        raise ConfigError(f"the given meetings are not in order of time: number {late[0] + 1} is earlier than the one"
                          " before; give trace.meetings.sorted()")  # fmt: skip
    if isinstance(schedule, Pairs):
        _check_links(job, given.meetings.a, given.meetings.b, "meet", stays=False)
    elif isinstance(schedule, Walk):
        _check_walk(job, given)
    elif isinstance(schedule, Wakes):
        _check_wakes(job, given)


def _no_place(job: Job, what: str, hint: str) -> str:
    kind = type(job.schedule).__name__.lower()
    return f"the given trace says {what}, and {job.algorithm.name()} follows {kind}, which have no place for it; {hint}"


def _check_rounds(job: Job, given: Trace) -> None:
    if len(given.meetings.a):
        raise ConfigError(_no_place(job, f"who met whom, {len(given.meetings.a)} times",
                                    "in rounds everybody speaks to all neighbors, and what else is drawn comes from"
                                    " the seed; give links that were down (faults), or use an algorithm of meetings"))
    if given.missed:
        raise ConfigError(f"the given trace counts {given.missed} exchanges that some peer went on without, and does"
                          " not say which, so these rounds cannot be played again")  # fmt: skip
    faults = given.faults
    beyond = np.flatnonzero((faults.round < 0) | (faults.round >= job.steps))
    if len(beyond):
        raise ConfigError(f"the given trace says that a link was down in round {faults.round[beyond[0]]}, and this run"
                          f" has {job.steps}, numbered from 0")  # fmt: skip
    for number in np.unique(faults.round).tolist():
        graph = job.graph if isinstance(job.graph, Graph) else job.graph.at(number)
        a, b = faults.in_round(number)
        odd = np.flatnonzero(~_linked(graph, a, b))
        if len(odd):
            raise ConfigError(f"the given trace says that the link of peers {a[odd[0]]} and {b[odd[0]]} was down in"
                              f" round {number}, and {graph.name} has no such link")  # fmt: skip


def _linked(graph: Graph, a: Ints, b: Ints) -> Bools:
    """Whether a_k and b_k are neighbors."""
    edges = graph.edges()
    low, high = np.minimum(a, b), np.maximum(a, b)
    known = np.isin(low * graph.n + high, edges[:, 0] * graph.n + edges[:, 1])
    return np.asarray(known & (a != b))


def _check_links(job: Job, a: Ints, b: Ints, verb: str, stays: bool) -> None:
    graph = job.fixed_graph()
    odd = np.flatnonzero(~(_linked(graph, a, b) | ((a == b) & stays)))
    if len(odd):
        at = odd[0]
        raise ConfigError(f"in the given trace peers {a[at]} and {b[at]} {verb} (number {at}), and they are no"
                          f" neighbors in {graph.name}")  # fmt: skip


def _check_walk(job: Job, given: Trace) -> None:
    a, b = given.meetings.a, given.meetings.b
    if len(b) != job.steps:
        raise ConfigError(f"the given walk has {len(b)} hops and the run {job.steps} steps; make them equal")
    torn = np.flatnonzero(a[1:] != b[:-1])
    if len(b) and a[0] != b[0]:
        raise ConfigError(f"the given walk starts with a hop from peer {a[0]} to {b[0]}; its first hop is the token's"
                          " entry, from a peer to itself")  # fmt: skip
    if len(torn):
        at = int(torn[0]) + 1
        raise ConfigError(f"hop {at} of the given walk leaves peer {a[at]}, but the token is at peer {b[at - 1]}")
    _check_links(job, a, b, "hand over the token", stays=True)


def _check_wakes(job: Job, given: Trace) -> None:
    a, b = given.meetings.a, given.meetings.b
    odd = np.flatnonzero(a != b)
    if len(odd):
        raise ConfigError(f"in the given trace peer {a[odd[0]]} meets peer {b[odd[0]]} (number {odd[0]}), and"
                          f" {job.algorithm.name()} follows wakes, where a peer wakes by itself (b = a)")  # fmt: skip
    if not given.reads:
        return
    if len(given.reads) != len(a):
        raise ConfigError(f"the given trace has {len(a)} wakes and says for {len(given.reads)} what was read")
    graph, said = job.fixed_graph(), np.zeros(job.n, np.int64)
    for event, (peer, versions) in enumerate(zip(a.tolist(), given.reads, strict=True)):
        near = set(graph.neighbors(peer).tolist())
        if set(versions) != near:
            wrong = min(near ^ set(versions))
            raise ConfigError(f"at wake {event} peer {peer} reads a word of each neighbor, and the given trace"
                              f" {'names' if wrong in versions else 'leaves out'} peer {wrong}")  # fmt: skip
        unsaid = [other for other, number in versions.items() if not 0 <= number <= said[other]]
        if unsaid:
            raise ConfigError(f"at wake {event} peer {peer} is to read word {versions[unsaid[0]]} of peer {unsaid[0]},"
                              f" who had said words 0..{said[unsaid[0]]} by then")  # fmt: skip
        said[peer] += 1
