"""What one participant's folder lets us say of pairs after a real run.

A loss of u in the view of v is about everything that v received. If anybody went on without
anybody, the weights of that round were others, also between peers that u never hears of, and the
loss may be larger than that of the agreed protocol. A folder knows its own releases and whom its
own peer missed, and no more. So from a folder alone follows local DP, and whatever holds when peers
are missing (masked sums). With the signed reports of *all* participants, each of which says that
everybody took part in everything and in time (what is made up for later makes other views), the run
was the agreed one, and its theorems on views speak: of
this peer's own ledger and of what the others had agreed on.

Hypotheses: peers follow the protocol, and what they sign is true; signatures prove who said it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bruit.errors import BrokenStateError, ConfigError
from bruit.how_many import how_many
from bruit.mechanisms import Mechanism
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.site.agreed_run import AgreedRun, agreed_id
from bruit.peers.site.own_records import OwnTask
from bruit.peers.site.signed_report import ABSENT, CheckedReport, check, disagreements
from bruit.peers.site.site import Site, agreed_with_records, own_book, own_noise, read_site
from bruit.peers.wire.address_book import AddressBook
from bruit.privacy.account import Accountant
from bruit.privacy.events import Event, from_json
from bruit.privacy.guarantee import Epsilon, Hypothesis
from bruit.privacy.ledger import Ledger
from bruit.privacy.profile import USUAL_DELTA
from bruit.privacy.theorem import Facts
from bruit.runs.run import rehearse
from bruit.trace import Faults, Meetings

REPORT = "report.json"
FOLDER_ONLY = (
    "seen from one peer's folder, which does not say whom the others went on without (give the"
    " signed reports of all participants, --report)"
)


def site_of(place: Path) -> Path | None:
    """The site file of a participant named by that file, its folder or its state folder; None
    where there is none."""
    if place.is_file():
        return place if place.suffix == ".toml" else None
    found = (place / "site.toml", place.parent / "site.toml")
    if not (place / "manifest.json").is_file():
        for file in found:
            if file.is_file() and place in (file.parent, read_site(file).state):
                return file
    return None


def own_pairs(
    site_file: Path,
    reports: Sequence[Path],
    of: int | list[int] | None,
    seen_by: list[int] | str | None,
    delta: float | None,
) -> Epsilon:
    """What observers could have learned about this participant in its run (or about others, if all
    reports are there)."""
    site = read_site(site_file)
    me, book = site.file.peer, own_book(site)
    own = _own_report(site, book)
    agreed, _ = agreed_with_records(site, book)
    if own.content["run"] != agreed_id(book, agreed):
        raise ConfigError(
            f"{own.path} is of another run than the one that {site_file} describes now: experiment,"
            " address book or a file that they name was changed since; put back what was agreed on"
        )
    gap, people = _gap(own, [check(path, book) for path in reports], book, agreed)
    if gap and of not in (None, me):
        raise ConfigError(
            f"this is the folder of peer {me}, which holds no releases of others, and the run was"
            f" {gap}; leave --of out"
        )
    noise, lines = own_noise(site, agreed), _own_lines(site, agreed.graph.n)
    if float(own.content["epsilon"]) == math.inf and own.old_copy and not lines.has_exact():
        raise BrokenStateError(
            f"{own.path} says that its journal is an old copy: nobody knows what was released after"
            " it was made, so no epsilon holds"
        )
    facts = None if gap else _whole(agreed, noise, lines, me)
    if not gap and facts is None:
        gap = "not the agreed one: this peer's releases are not those that were agreed on"
    if facts is None:
        facts = _partly(agreed, noise, lines, gap)
    facts = replace(
        facts,
        unwatched="of a real peer nobody makes the run again",
        declared=_assumed(own, people, gap),
    )
    found = Accountant(facts, agreed.algorithm.guarantees()).guarantee(
        me if of is None else of, seen_by, _delta(agreed, delta)
    )
    return found.epsilon(_delta(agreed, delta))


def _delta(agreed: AgreedRun[OwnTask], delta: float | None) -> float:
    if delta is not None:
        return delta
    return USUAL_DELTA if agreed.file.privacy is None else agreed.file.privacy.delta


def _own_report(site: Site, book: AddressBook) -> CheckedReport:
    """This participant's own report, which is there when its run has ended."""
    path = site.state / REPORT
    if not path.is_file():
        raise ConfigError(
            f"{site.state} has no {REPORT}: the run of this peer has not ended; until then"
            " `epsilon` in status.json is all that can be said, against everybody"
        )
    own = check(path, book)
    if own.wrong:
        raise ConfigError(f"{path}: {own.wrong}; name the site whose run it was")
    return own


def _gap(
    own: CheckedReport,
    others: list[CheckedReport],
    book: AddressBook,
    agreed: AgreedRun[OwnTask],
) -> tuple[str, int]:
    """Why the run is not known to have been the agreed one, in words, or ""; and how many reports
    say so."""
    if bad := next((one for one in others if one.wrong), None):
        raise ConfigError(f"{bad.path}: NOT VERIFIED: {bad.wrong}")
    told = [*others, *(() if any(one.content == own.content for one in others) else (own,))]
    wrong = [words for words in disagreements(told) if not words.startswith(ABSENT)]
    if wrong:
        raise ConfigError(f"these reports do not belong together: {wrong[0]}")
    otherwise = sorted(one.signer for one in told if not one.as_agreed)
    if otherwise:
        return (
            f"not as agreed: {', '.join(otherwise)} missed somebody, if only for a while, "
            "left contributions out, or ended early",
            0,
        )
    if not agreed.algorithm.schedule.synchronous:
        return "drawn by the peers themselves, so that nobody knows all the meetings of it", 0
    if agreed.privacy is not None and agreed.privacy.one_of_several:
        return "one of answers that are drawn, whose views nobody can rehearse without data", 0
    signers = {one.fingerprint for one in told}
    absent = [one.name for one in book.entries if one.fingerprint not in signers]
    if not absent:
        return "", len(told)
    if len(told) == 1:
        return FOLDER_ONLY, 0
    return f"not told of by all: there is no report of {', '.join(absent)}", 0


def _own_lines(site: Site, peers: int) -> Ledger:
    """The releases in this participant's journal."""
    ledger = Ledger(peers=peers)
    for line in recorded_spend(site.state / "journal.db"):
        if line.peer == site.file.peer:
            _record(ledger, line.peer, line.step, line.clock, from_json(line.event))
    return ledger


def _record(ledger: Ledger, peer: int, step: int, clock: int, event: Event) -> None:
    ledger.record(np.array([peer]), np.array([step]), np.array([clock]), event)


def _whole(
    agreed: AgreedRun[OwnTask], noise: Mechanism | None, own: Ledger, me: int
) -> Facts | None:
    """The facts of the agreed run, this peer's lines being its own; None where it released
    otherwise than agreed."""
    algorithm, graph = agreed.algorithm, agreed.graph
    width = agreed.task.width
    known = rehearse(algorithm, graph, noise, agreed.steps, agreed.file.seed, width).facts()
    if Counter(_releases(known.ledger, me)) != Counter(_releases(own, me)):
        return None
    joined = Ledger(peers=graph.n)
    for peer, step, clock, event in known.ledger.since(0):
        if peer != me:
            _record(joined, peer, step, clock, event)
    joined.extend(own)
    return replace(known, ledger=joined)


def _releases(ledger: Ledger, me: int) -> Iterable[tuple[int, str]]:
    """Where this peer released what of its data."""
    data = ledger.is_data()
    kinds = {event for event, is_data in zip(ledger.events, data, strict=True) if is_data}
    return [
        (clock, event.to_json())
        for peer, _, clock, event in ledger.since(0)
        if peer == me and event in kinds
    ]


def _partly(agreed: AgreedRun[OwnTask], noise: Mechanism | None, own: Ledger, gap: str) -> Facts:
    """What a folder knows of a run that may not have been whole."""
    about = Facts(
        agreed=agreed.graph,
        steps=agreed.steps,
        ledger=own,
        meetings=Meetings.none(),
        faults=Faults.none(),
        public=agreed.algorithm.prepare(agreed.graph, agreed.steps),
        algorithm=agreed.algorithm.name(),
        interrupted=gap,
    )
    if noise is None:
        return about
    return replace(
        about,
        level=noise.level,
        sigma=noise.sigma / noise.divisor,
        clip=noise.clip,
        unequal=noise.unequal,
        deviations=noise.deviations(),
        arithmetic=noise.arithmetic,
        adjacency=noise.adjacency,
    )


def _assumed(own: CheckedReport, people: int, gap: str) -> tuple[Hypothesis, ...]:
    """What is believed beside the theorem."""
    source = "noise comes from the operating system's random numbers"
    if own.content.get("rehearsal"):
        source = "nobody knows the seed of this rehearsal, with which its noise is drawn again"
    found = [Hypothesis(source, checked=False)]
    if not gap:
        signed = (
            f"the {how_many(people, 'signed report')} are true: everybody took part in everything"
        )
        found.append(Hypothesis(signed, checked=False))
    return tuple(found)
