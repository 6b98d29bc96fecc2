"""The checks that an audit of an experiment makes beside its paired runs; a new one is a function
and a line here.

A check looks at a `AuditCase`, the experiment as it ran, and returns a `Finding`: a verdict and one
sentence. It raises nothing: what it cannot look at is "not asked", with the reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bruit.adversary.audits.checks import check_releases, wide_enough
from bruit.adversary.audits.lattice_game.game import Trying, lattice_check
from bruit.adversary.audits.one_release import audit_mechanism
from bruit.adversary.audits.oracle import broken_claims
from bruit.adversary.audits.trials import flat_rows
from bruit.adversary.audits.verdict import Finding
from bruit.arrays import Array
from bruit.errors import ConfigError, ConformanceError, LocalProtocolError, PrivacyError
from bruit.mechanisms import RandomizedResponse
from bruit.runs.build import Experiment
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.replay import compare
from bruit.runs.result import Run
from bruit.runs.run import run

REFUTED, STANDS, UNASKED = "refuted", "not refuted", "not asked"
RELEASE_ROWS = 8  # numbers in the rows of the check of one release
MOST_IMPULSES = 600  # releases that the impulse oracle follows
LATTICE_TRIALS, LATTICE_VALUES = 100, 40


@dataclass(frozen=True, kw_only=True)
class AuditCase:
    """What is audited: the experiment, its own run (`done`) by its own engine, the pair, and how
    hard to try."""

    made: Experiment
    done: Run
    of: int
    observers: tuple[int, ...]
    trials: int
    delta: float
    confidence: float


Check = Callable[[AuditCase], Finding]


def one_release(case: AuditCase) -> Finding:
    """One release of the experiment's mechanism against what it says it costs
    (`audit_mechanism`)."""
    name, mechanism = "one release", case.made.privacy
    if mechanism is None:
        return Finding(name, UNASKED, "there is no noise")
    try:
        found = audit_mechanism(
            mechanism,
            case.trials,
            case.delta,
            case.confidence,
            min(case.made.task.width, RELEASE_ROWS),
            seed=case.done.seed,
            of=case.of,
        )
    except ConfigError as error:
        return Finding(name, UNASKED, str(error))
    if found.refuted:
        worst = max(
            (one for one in found.evidence if one.refutes),
            key=lambda one: one.bound.epsilon - one.claimed,
        )
        return Finding(
            name,
            REFUTED,
            f"a release of peer {case.of} costs {worst}, confidence {case.confidence:.7g}",
        )
    seen = "; ".join(str(bug) for bug in found.planted) or "nothing is claimed"
    return Finding(
        name,
        STANDS,
        f"{mechanism.kind} noise costs epsilon = {found.claimed:.4g} as claimed; {seen}",
    )


def every_release(case: AuditCase) -> Finding:
    """Every draw is fresh and every read has its ledger line (`check_releases`)."""
    name, made = "every release", case.made
    if made.privacy is None:
        return Finding(name, UNASKED, "there is no noise")
    try:
        try:
            ledger = check_releases(
                made.algorithm, made.graph, made.privacy, made.steps, seed=case.done.seed
            )
        except ConfigError:  # this algorithm asks what blank data cannot answer
            narrow = made.task.width < wide_enough(made.privacy, 2 * made.graph.n * made.steps)
            if narrow and not isinstance(made.privacy, RandomizedResponse):
                return Finding(name, UNASKED, f"rows of {made.task.width} numbers repeat by chance")
            ledger = check_releases(
                made.algorithm,
                made.graph,
                made.privacy,
                made.steps,
                seed=case.done.seed,
                task=made.task,
            )
    except ConformanceError as error:
        return Finding(name, REFUTED, str(error))
    return Finding(
        name, STANDS, f"{len(ledger)} ledger lines in two phases, every one with noise of its own"
    )


def same_engine(case: AuditCase) -> Finding:
    """What the experiment's engine did is what the trials repeat: states, ledger lines, all that
    observers heard."""
    name, made, done = "the engine", case.made, case.done
    fused, masked = bool(done.engine.get("fused")), done.algorithm.schedule.masked
    watched = range(done.n) if masked else case.observers
    again = run(
        made.algorithm,
        made.graph,
        made.task,
        privacy=made.privacy,
        steps=made.steps,
        seed=done.seed,
        engine=Bulk(),
        evaluate_every=0,
        given=done.trace,
        watch=() if fused else watched,
    )
    try:
        agreed = compare(done, again, done.algorithm.fused_within if fused else 1e-9)
        heard, late = (0, 0) if fused else _check_messages_repeat(done, again)
    except ConformanceError as error:
        return Finding(
            name, REFUTED, f"{engine_words(done)} does not do what is accounted: {error}"
        )
    messages = "and a fused path keeps no messages" if fused else f"{heard} messages heard"
    if late:
        messages += f", and {late} besides by which ballots end late: sums, or zeros"
    words = f"{engine_words(done)} agrees with its replay: {agreed.lines} ledger lines, {messages}"
    return Finding(name, STANDS, words)


def _check_messages_repeat(done: Run, again: Run) -> tuple[int, int]:
    """Every message that an observer heard is one of the replay, by sender and receiver: how many
    there were. What is heard besides in masked ballots is counted apart: a sum that was fetched by
    who came late, or a voice for the end (zeros). The replay, in which nobody is late, has none."""
    replayed: dict[tuple[int, int], list[Array]] = defaultdict(list)
    for message in again.trace.received:
        replayed[message.sender, message.receiver].append(flat_rows(message.row)[0])
    late, masked = 0, done.algorithm.schedule.masked
    sums = _sums_of_ballots(again) if masked else []
    for message in done.trace.received:
        row = flat_rows(message.row)[0]
        known = replayed[message.sender, message.receiver]
        if any(
            one.shape == row.shape and np.allclose(one, row, rtol=1e-9, atol=1e-9) for one in known
        ):
            continue
        late += masked
        if not masked or (row.any() and not any(np.array_equal(row, one) for one in sums)):
            raise ConformanceError(
                f"peer {message.receiver} heard something of peer {message.sender} that the replay"
                " does not say"
            )
    return len(done.trace.received) - late, late


def _sums_of_ballots(again: Run) -> list[Array]:
    """What the ballots of a replay, all of whose messages were kept, came to: the first words of
    everybody added up, and what was said of their sum."""
    said: dict[int, dict[int, Array]] = defaultdict(dict)
    for one in again.trace.received:
        said[one.clock].setdefault(one.sender, np.asarray(one.row, np.uint64))
    words = [np.add.reduce([*each.values()], axis=0, dtype=np.uint64) for each in said.values()]
    return [flat_rows(one)[0] for one in (*words, *(heard.row for heard in again.trace.received))]


def engine_words(done: Run) -> str:
    """The engine and its faults, in a few words."""
    facts = dict(done.engine)
    name = facts.pop("name")
    settings = [f"{key} {facts[key]:g}" for key in ("latency", "loss", "churn") if facts.get(key)]
    settings += ["fused"] if facts.get("fused") else []
    lost = len(done.trace.faults.round)
    settings += [f"{lost} links down"] if lost else []
    settings += (
        [f"{done.trace.retransmissions} messages sent again"] if done.trace.retransmissions else []
    )
    return f"the {name} engine" + (f" ({', '.join(settings)})" if settings else "")


def impulses(case: AuditCase) -> Finding:
    """Unit data and unit noises along the trace of the run, against what is claimed of everybody in
    this view."""
    name, done = "impulses", case.done
    numbers = done.n * (int(done.facts().releases().max(initial=0)) + 1)
    if numbers > MOST_IMPULSES:
        return Finding(
            name,
            UNASKED,
            f"{numbers} impulses are too many for dense algebra (at most {MOST_IMPULSES})",
        )
    if done.engine.get("fused"):
        return Finding(name, UNASKED, "a fused path keeps no trace to follow")
    try:
        broken = broken_claims(done, [case.observers])
    except (ConfigError, PrivacyError, LocalProtocolError) as error:  # it is not linear
        return Finding(name, UNASKED, str(error))
    if broken:
        worst = max(broken, key=lambda one: one.reached - one.claimed)
        return Finding(
            name,
            REFUTED,
            f"peer {worst.peer} is charged mu^2 = {worst.claimed:.4g}, and impulses through"
            f" the code that ran reach {worst.reached:.4g}",
        )
    return Finding(
        name,
        STANDS,
        f"no impulse of {done.n} peers through the code that ran reaches more than is charged",
    )


def lattices(case: AuditCase) -> Finding:
    """The lattice attack on what the package sends (`bruit attack lattice`), for this view."""
    made = case.made
    trying = Trying(trials=min(case.trials, LATTICE_TRIALS), most=LATTICE_VALUES)
    found = lattice_check(
        made.algorithm, made.graph, made.privacy, made.steps, case.observers, trying
    )
    if found.sentence.startswith("not tried"):
        return Finding(found.name, UNASKED, found.sentence.removeprefix("not tried: "))
    return Finding(found.name, REFUTED if found.refuted else STANDS, found.sentence)


CHECKS: list[Check] = [one_release, every_release, same_engine, impulses, lattices]
"""All checks, in the order in which they are printed."""


def findings(case: AuditCase) -> tuple[Finding, ...]:
    """What all checks found."""
    return tuple(check(case) for check in CHECKS)
