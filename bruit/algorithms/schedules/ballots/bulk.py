"""Ballots for all peers at once: everybody is in every list, and every attempt succeeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from bruit.algorithms.doorway import absorbed, spoken
from bruit.algorithms.messages import Inbox, Links
from bruit.algorithms.schedules.ballots.attempt import Attempt, Summed
from bruit.algorithms.schedules.ballots.chain import NO_KEY, binding, extended, root, total
from bruit.algorithms.schedules.ballots.routes import Kind, passed
from bruit.algorithms.schedules.ballots.terms import BallotTerms
from bruit.algorithms.schedules.stage import Stage
from bruit.arrays import Ints, Words
from bruit.errors import LocalProtocolError


def play(stage: Stage, terms: BallotTerms) -> Any:
    """One sum of all words a round, wrapping, O(n d); the final states."""
    algorithm, n = stage.algorithm, stage.n
    small = Links.of_graph(stage.one_graph)
    links = stage.tiled(small)
    state = stage.begin(links, last=stage.steps == 0)
    if not stage.steps:
        return state
    everybody, keys = tuple(range(n)), (NO_KEY,) * n
    chains = [root(algorithm, n, stage.steps)] * stage.copies
    sums = np.zeros((0, 0), np.uint64)
    for number in range(stage.steps + 1):
        last = number == stage.steps
        members, shown = ((), ()) if last else (everybody, keys)
        bindings = tuple(binding(chain, number, number, members, shown) for chain in chains)
        past = (Summed(number - 1, number - 1, everybody),) if number else ()
        home = stage.home(
            stage.everybody,
            np.full(n, min(number + 1, stage.steps)),
            np.full(n, number),
            np.full(n, last),
            links.edges.none() if last else links.edges,
        )
        home.attempt = Attempt(
            ballot=number,
            round=number,
            members=members,
            bindings=bindings,
            keys=shown,
            sums=past,
            first=stage.first,
        )
        inbox = _heard(stage, sums, terms.leader(number - 1))
        state = absorbed(algorithm, state, inbox, home)
        if number:
            stage.tell(number, stage.steps, state)
        if last:
            break
        words = spoken(algorithm, state, links.edges).rows
        checked(words)
        sums = total(words.reshape(stage.copies, n, -1))
        chains = [extended(bound, row[None]) for bound, row in zip(bindings, sums, strict=True)]
        _tell(stage, terms, number, small, Inbox(links, words, False, words), sums)
    return state


def checked(words: Any) -> None:
    """Refuse what is no row of words."""
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.ndim != 2:
        raise LocalProtocolError(
            "an algorithm on ballots says one array of 64-bit words (uint64), a row a peer; found "
            f"{getattr(words, 'dtype', type(words).__name__)}"
        )


def _heard(stage: Stage, sums: Words, leader: int) -> Inbox:
    """Every peer of every copy heard the last sum of its copy, or nothing yet."""
    lanes, each = stage.n * stage.copies, int(len(sums) > 0)
    senders = np.full(lanes * each, leader)
    columns: Ints = np.repeat(np.arange(stage.copies), stage.n)[: lanes * each]
    ids = np.tile(stage.everybody, stage.copies)
    start = np.arange(lanes + 1) * each
    return Inbox(
        Links(
            ids=ids,
            start=start,
            senders=senders,
            columns=columns,
            weights=np.ones(lanes * each),
            own=np.ones(lanes),
        ),
        sums,
        False,
        None,
    )


def messages(terms: BallotTerms) -> int:
    """Messages of words and sums in an attempt of everybody."""
    words = sum(1 for _ in passed(_kind(terms), tuple(range(terms.peers)), 0))
    return words + (terms.peers - 1) * (_kind(terms) in ("leader", "tree"))


def _kind(terms: BallotTerms) -> Kind:
    """How words come together where no attempt is in vain."""
    if terms.route != "complete":
        return terms.route
    return "all" if terms.few else "leader"


def _tell(
    stage: Stage, terms: BallotTerms, number: int, small: Links, said: Inbox, sums: Words
) -> None:
    """What was sent, and what watched peers received: words, sums of some of them, or the leader's
    sum."""
    n, leader, kind = stage.n, terms.leader(number), _kind(terms)
    stage.sent(messages(terms), said.rows)
    if not stage.trace.watched:
        return
    if kind == "all":
        stage.exchanged(number, small, said)
        return
    by_copy = said.rows.reshape(stage.copies, n, -1)
    for one in passed(kind, tuple(range(n)), leader):
        if one.receiver in stage.trace.watched:
            words = total(by_copy[:, sorted(one.of)])
            _hear(stage, number, one.receiver, one.sender, said.links, words)
    if kind != "butterfly":
        for peer in sorted(set(stage.trace.watched) - {leader}):
            _hear(stage, number, peer, leader, said.links, sums)


def _hear(stage: Stage, number: int, peer: int, sender: int, links: Links, words: Words) -> None:
    """One message to a watched peer, in every copy."""
    clock, peers, partners = (np.array([at]) for at in (number, peer, sender))
    stage.told(clock, peers, partners, Inbox(links, words, True, None))
