"""A site: what one participant keeps in its own folder, and the host made of it.

    site.toml        who I am in the address book, where my files are, patience, budget
    key.pem ...      my identity (secret)         book.toml        everyone's public identity and address
    experiment.toml  what was agreed on           records.npz      my records (secret)
    state/           journal, audit log, status, report and model

In the field the dice are cryptographic: what hides something is keyed anew by every start
(`recalling`), the timetable of calls by the journal's secret, so that it stays. A seed is accepted
for rehearsals only.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from bruit.accounts.reservation import Reservation
from bruit.algorithms.schedules.peer import Seat, peer_machine
from bruit.algorithms.schedules.schedule import Schedule
from bruit.algorithms.task_door import TaskDoor
from bruit.errors import ConfigError
from bruit.files import open_to_others, private_folder
from bruit.graphs import Graph, GraphSequence
from bruit.how_many import how_many
from bruit.mechanisms import GaussianPerPeer, Mechanism
from bruit.peers.agreed_masks import AgreedMasks
from bruit.peers.host import Host
from bruit.peers.journal.journal import Journal
from bruit.peers.relay.way import Ways
from bruit.peers.settings import Settings, first_neighbors
from bruit.peers.site.agreed_run import AgreedRun, agreed_id, agreed_run, words_of
from bruit.peers.site.audit_log import NAME as AUDIT_LOG
from bruit.peers.site.audit_log import AuditLog
from bruit.peers.site.own_account import reservation, run_key
from bruit.peers.site.own_records import OwnTask, read_share
from bruit.peers.wire.address_book import AddressBook, people_digest
from bruit.peers.wire.checkup import Checkup
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.members import FOLDER, Members
from bruit.peers.wire.revisions.chain import KnownVersion, books_beside, standing_book
from bruit.peers.wire.revisions.memory import BookMemory
from bruit.peers.wire.revisions.quorum import standing
from bruit.peers.wire.revisions.revision import DIGEST
from bruit.peers.wire.seals import BookSeals
from bruit.privacy.ledger import Budget, Ledger
from bruit.privacy.profile import USUAL_DELTA
from bruit.randomness import Dice, Replay, Secure
from bruit.runs.ahead.planned_releases import PlannedReleases
from bruit.runs.entrance import check_budget
from bruit.runs.file import ExperimentFile
from bruit.runs.noise_keys import public_digest, rehearsal_dice
from bruit.tasks.data.agreed_columns import read_agreed
from bruit.tasks.kinds.kind import kinds
from bruit.trace import Faults, Meetings

log = logging.getLogger("bruit.peers")


class BudgetSection(BaseModel):
    """What this participant will spend at most, against everybody; more than was agreed on by that
    word only."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    epsilon: float = Field(gt=0)
    delta: float = Field(1e-6, gt=0, lt=1)
    above_agreed: bool = False

    def within(self, agreed: Budget | None) -> Budget:
        """This budget, which is no larger than the agreed one unless it says so."""
        own = Budget(self.epsilon, self.delta)
        if agreed is None or self.above_agreed or own.within(agreed):
            return own
        raise ConfigError(
            f"[budget] allows this site epsilon {own.epsilon:g} at delta {own.delta:g}, more than"
            f" the epsilon {agreed.epsilon:g} at delta {agreed.delta:g} that was agreed on;"
            " leave [budget] out, lower it, or add above_agreed = true if that is meant"
        )


class NoiseSection(BaseModel):
    """The noise of this participant, where every peer has a size of its own: as agreed on, or
    more."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    sigma: float = Field(gt=0, allow_inf_nan=False)


class SiteFile(BaseModel):
    """One participant's settings; paths are relative to the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    peer: int = Field(ge=0)
    identity: str = "."
    book: str = "book.toml"
    founding: str = ""  # digest of the version 1 that was compared by another channel
    experiment: str = "experiment.toml"
    records: str = "records.npz"
    state: str = "state"
    timeout: float = Field(30.0, gt=0)
    pace: float = Field(1.0, gt=0)
    wait_for: int | str = "all"  # neighbors that must be connected before anything is released
    start_timeout: float = Field(300.0, gt=0)  # seconds that they are waited for
    quorum: int | str = "half"  # neighbors that must be connected before each later release
    answer_seconds: float = Field(0.0, ge=0, lt=math.inf)  # answers take a whole number of these
    relay: str | None = None  # where this peer is reached, if not as its own book says
    budget: BudgetSection | None = None
    noise: NoiseSection | None = None

    @field_validator("wait_for", mode="before")
    @classmethod
    def _neighbors(cls, value: object) -> object:
        if value != "all" and (type(value) is not int or value < 0):
            raise ValueError(f'"all", or how many neighbors must be connected, found {value!r}')
        return value

    @field_validator("quorum", mode="before")
    @classmethod
    def _enough(cls, value: object) -> object:
        if value not in ("half", "all") and (type(value) is not int or value < 0):
            raise ValueError(
                f'"half", "all", or how many neighbors must be there before a release, found '
                f"{value!r}"
            )
        return value


@dataclass(frozen=True)
class Site:
    """A read and checked site file, and the folder it lies in."""

    file: SiteFile
    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / self.file.state


def read_site(path: str | Path) -> Site:
    """The site in a file; what is wrong in it is named."""
    file = Path(path)
    if not file.is_file():
        raise ConfigError(
            f"there is no site file {file}; `bruit network init` writes one for every participant"
        )
    try:
        content = tomllib.loads(site_text(file))
        return Site(SiteFile.model_validate(content), file.parent)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"{file}: {'.'.join(map(str, first['loc']))}: {str(first['msg']).lower()}"
        ) from None


def site_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text ({error})") from None


@dataclass(frozen=True, kw_only=True)
class Participant:
    """A host ready to run, with what is needed to report about it."""

    host: Host
    task: OwnTask
    privacy: Mechanism | None
    budget: Budget | None
    site: Site
    planned: PlannedReleases
    agreed: Budget | None = None  # what the experiment allows, if it says an epsilon
    rehearsed: bool = False
    config: str = ""  # SHA-256 of the experiment that was agreed on
    paying: Reservation | None = None  # what this run costs the account of the records
    audit: AuditLog

    def against_agreed(self) -> str:
        """How this site's own budget stands to the agreed one, in words."""
        if self.agreed is None or self.budget is None:
            return "this site's own"
        words = f"epsilon {self.agreed.epsilon:g} at delta {self.agreed.delta:g}"
        if self.above_agreed:
            return f"MORE than was agreed on ({words})"
        return f"this site's own, below the agreed one ({words})"

    @property
    def above_agreed(self) -> bool:
        """Whether this site allows itself more than was agreed on."""
        return not (self.budget is None or self.agreed is None or self.budget.within(self.agreed))


def book_memory(site: Site) -> BookMemory:
    """The versions of address books that this participant remembers, beside its keys."""
    return BookMemory.read(site.folder / site.file.identity)


def own_book(site: Site) -> AddressBook:
    """The address book of this participant, if it stands, with itself in it as its site says."""
    memory = book_memory(site)
    book = standing_book(site.folder / site.file.book, memory.seen)
    if book.revision is not None and book.founding not in {*memory.seen, site.file.founding}:
        raise ConfigError(
            f"{site.file.book} goes back to a version 1 under which this peer has never taken part; "
            f"compare that one's fingerprints with their owners by another channel, then write "
            f'founding = "{book.founding}" into site.toml'
        )
    if site.file.peer >= len(book.entries):
        raise ConfigError(
            f"this site is peer {site.file.peer}, but the address book lists "
            f"0..{len(book.entries) - 1}"
        )
    if site.file.relay is not None:
        book = book.reached_at(site.file.peer, site.file.relay)
    return book


def participant(site: Site, rehearse: int | None = None) -> Participant:
    """Build one peer from its folder; everything that can be checked is checked before anything is
    sent."""
    book = own_book(site)
    agreed, records = agreed_with_records(site, book)  # before a key is used
    privacy, budget = own_noise(site, agreed), _budget(site, agreed)
    members = members_of(site, book)
    identity = own_identity(site, members)
    wait_for = _wanted(site, agreed.graph, agreed.steps, agreed.algorithm.schedule)
    _enter(site, book, words_of(agreed).digest, rehearse is not None)
    run = agreed_id(book, agreed)
    journal = _journal(site, run, agreed, privacy, budget, records, rehearse)
    draws = _draws(journal, run, agreed, rehearse)
    ledger = Ledger(peers=agreed.graph.n)
    masks = AgreedMasks() if (real := rehearse is None) else None
    door = TaskDoor(
        task=agreed.task,
        mechanism=privacy,
        dice=draws.noise,
        ledger=ledger,
        budget=budget,
        public=draws.public,
        masks=masks,
    )
    seals = BookSeals(identity, members, run, not real)
    seat, horizon = _seat(site, agreed, door, draws, seals)
    host = Host(
        identity=identity,
        book=book,
        run_id=run,
        machine=peer_machine(seat),
        journal=journal,
        ledger=ledger,
        masks=masks,
        settings=_settings(site, agreed, wait_for, horizon),
        members=members,
        ways=ways_of(site, members),
        checkup=_checkup(book, agreed),
    )
    return Participant(
        audit=_audit(site, host, agreed, budget, not real),
        paying=_paying(site, host, agreed, privacy, budget) if real else None,
        config=hashlib.sha256(agreed.text.encode()).hexdigest(),
        host=host,
        task=agreed.task,
        privacy=privacy,
        budget=budget,
        site=site,
        planned=agreed.planned,
        agreed=agreed.budget,
        rehearsed=not real,
    )


def _audit(
    site: Site, host: Host, agreed: AgreedRun[OwnTask], budget: Budget | None, rehearsed: bool
) -> AuditLog:
    """Every release is in this log before it is committed."""
    try:
        about = {
            "key": run_key(host.journal),
            "run": host.run_id,
            "peer": host.me,
            "name": host.book.entry(host.me).name,
            "algorithm": host.algorithm,
            "against": agreed.algorithm.against,
            "budget": None if budget is None else budget.epsilon,
            "rehearsal": rehearsed,
        }
        delta = USUAL_DELTA if budget is None else budget.delta
        found = AuditLog(
            path=site.state / AUDIT_LOG, about=about, delta=delta, held=host.journal.lines
        )
        found.check()
    except BaseException:
        host.journal.close()
        raise
    host.journal.witness = found.before
    return found


def _paying(
    site: Site,
    host: Host,
    agreed: AgreedRun[OwnTask],
    privacy: Mechanism | None,
    budget: Budget | None,
) -> Reservation:
    """What this run costs the account of the records: every release is covered by it before it is
    committed."""
    records = site.folder / site.file.records
    try:
        paying = reservation(
            site.folder, records, host.me, host.run_id, agreed, privacy, budget, host.journal
        )
    except BaseException:
        host.journal.close()
        raise
    host.cover = lambda: paying.cover(host.ledger.counts_of(host.me))
    return paying


def _enter(site: Site, book: AddressBook, experiment: str, rehearsed: bool) -> None:
    """Close the folder to others, and remember a later version of the book before anything is said
    under it. Refused while a newer one lies
    beside it that is valid from this very experiment; a run that has begun goes on."""
    _keep_private(site)
    path, memory = site.folder / site.file.book, book_memory(site)
    begun = (site.state / "journal.db").exists()
    for file, newer in () if begun else books_beside(path, book.digest):
        said = newer.revision
        if said is None or (said.previous, said.from_run) != (book.digest, experiment):
            continue
        if standing(newer, book, str(file)).stands:
            raise ConfigError(
                f"{file} is version {newer.version} of the address book, signed, and valid from "
                f"this experiment; name it in site.toml (book = {file.name!r})"
            )
    first = memory.seen.get(book.founding) != KnownVersion(book.version, book.digest)
    named = "" if book.revision is None else book.revision.from_run
    if first and DIGEST.fullmatch(named) and named != experiment:
        log.warning(
            "version %d of the address book is valid from the experiment %s, this one is %s",
            book.version,
            named[:16],
            experiment[:16],
        )
    if not rehearsed:
        memory.has_seen(book)


def ways_of(site: Site, members: Members) -> Ways | None:
    """This peer's lines to relays; None where nobody is reached at one."""
    if not any(entry.relay for entry in members.book.entries):
        return None
    return Ways(folder=site.folder / site.file.identity, members=members, me=site.file.peer)


def _checkup(book: AddressBook, agreed: AgreedRun[OwnTask]) -> Callable[[], bytes]:
    people, experiment = people_digest(book), words_of(agreed).digest
    return lambda: Checkup.now(people, experiment).to_bytes()


def agreed_with_records(site: Site, book: AddressBook) -> tuple[AgreedRun[OwnTask], str]:
    """The agreed run with this site's own part of the task, and the digest of its records."""
    place, digest = site.folder / site.file.experiment, ""

    def own(file: ExperimentFile, peers: int) -> OwnTask:
        nonlocal digest
        if peers != len(book.entries):
            raise ConfigError(
                f"the graph {file.graph} has {peers} peers, the address book {len(book.entries)}"
            )
        share, digest = read_share(
            site.folder / site.file.records,
            site.file.peer,
            peers,
            file.task.kind,
            read_agreed(file.task.columns_file).digest if file.task.columns_file else "",
            file.task.local,
            kinds()[file.task.kind].agreed(file.task),
        )
        return share

    agreed = agreed_run(site_text(place), place.parent, str(site.file.experiment), own)
    return agreed, digest


def _budget(site: Site, agreed: AgreedRun[OwnTask]) -> Budget | None:
    """What this peer spends at most: the agreed budget, or its own, which must let it say
    something."""
    if site.file.budget is None:
        return agreed.budget
    budget = site.file.budget.within(agreed.budget)
    check_budget(
        agreed.algorithm, agreed.graph, agreed.steps, site.file.peer, agreed.privacy, budget
    )
    return budget


def own_noise(site: Site, agreed: AgreedRun[OwnTask]) -> Mechanism | None:
    """The agreed noise, or more at this site: that protects it better, and nobody worse
    (silo:SILO-8). The grid and the dithers of the run stay those of the largest agreed noise."""
    own, privacy, me = site.file.noise, agreed.privacy, site.file.peer
    if own is None:
        return privacy
    if not isinstance(privacy, GaussianPerPeer):
        raise ConfigError(
            "[noise] is the noise of this site where every peer has a size of its own, and here all"
            " peers agreed on one; agree on privacy.sigmas, or leave [noise] out"
        )
    return privacy.raised(me, own.sigma)


def members_of(site: Site, book: AddressBook) -> Members:
    """The people of the book, with the successions this site has heard of."""
    members = Members(book, site.folder / FOLDER)
    members.look()
    return members


def own_identity(site: Site, members: Members) -> Identity:
    """This peer's key; refused where the address book lists another certificate, and nobody has
    heard that it was changed."""
    identity = Identity.load(site.folder / site.file.identity)
    if identity.fingerprint() not in members.fingerprints(site.file.peer):
        raise ConfigError(
            f"the address book lists another certificate for peer {site.file.peer}; compare "
            f"fingerprints"
        )
    return identity


def _journal(
    site: Site,
    run: str,
    agreed: AgreedRun[OwnTask],
    privacy: Mechanism | None,
    budget: Budget | None,
    records: str,
    rehearse: int | None,
) -> Journal:
    """The journal of this run; one that was begun with other records, noise or budget is
    refused."""
    noise = None if privacy is None else privacy.describe()
    return Journal.open(
        site.state / "journal.db",
        run,
        {
            "records": records,
            "experiment": hashlib.sha256(agreed.text.encode()).hexdigest(),
            "mechanism": json.dumps(noise, sort_keys=True),
            "budget": "none" if budget is None else f"{budget.epsilon!r}, {budget.delta!r}",
            "dice": "cryptographic" if rehearse is None else f"rehearsal {rehearse}",
        },
    )


class _OwnDraws(NamedTuple):
    """The randomness of one peer: its own, that of its noise, and the public draws, which are alike
    for all who agreed on the run."""

    own: Dice
    noise: Dice
    public: Dice


def _draws(
    journal: Journal, run: str, agreed: AgreedRun[OwnTask], rehearse: int | None
) -> _OwnDraws:
    """Cryptographic draws from the journal's secret; in a rehearsal nobody knows all records, so
    the noise follows from what was agreed on alone."""
    if rehearse is None:
        own = Secure(journal.secret())
        return _OwnDraws(own, own, Replay(int(run, 16)))
    digest = public_digest(agreed.algorithm, agreed.graph, agreed.privacy, agreed.steps, rehearse)
    shared = Replay(rehearse)
    return _OwnDraws(shared, rehearsal_dice(digest, rehearse), shared)


def _seat(
    site: Site, agreed: AgreedRun[OwnTask], door: TaskDoor, draws: _OwnDraws, seals: BookSeals
) -> tuple[Seat, float | None]:
    """This peer's place in the protocol, and until when it calls others."""
    calls = _calls(agreed, draws, site.file.peer)
    if isinstance(draws.own, Secure):
        draws.own.rekey(None)  # from here on a start must bring its own key
    seat = Seat(
        me=site.file.peer,
        algorithm=agreed.algorithm,
        graph=agreed.graph,
        door=door,
        dice=draws.own,
        steps=agreed.steps,
        public=agreed.algorithm.prepare(agreed.graph, agreed.steps),
        faults=Faults.none(),
        calls=calls.time,
        partners=calls.b,
        state=None,
        timeout=site.file.timeout,
        shared=draws.public,
        seals=seals,
    )
    return seat, agreed.algorithm.schedule.lasts(agreed.graph, agreed.steps)


def _settings(
    site: Site, agreed: AgreedRun[OwnTask], wait_for: int | None, horizon: float | None
) -> Settings:
    """How patient this peer is, and for whom it waits."""
    if 4 * site.file.answer_seconds > site.file.timeout:
        raise ConfigError(
            f"answers are held for up to {site.file.answer_seconds:g} seconds (answer_seconds), and "
            f"others wait for {site.file.timeout:g} (timeout): at most a quarter of that"
        )
    return Settings(
        answer_seconds=site.file.answer_seconds,
        timeout=site.file.timeout,
        pace=site.file.pace,
        horizon=horizon,
        wait_for=wait_for,
        start_timeout=site.file.start_timeout,
        quorum=_quorum(site, agreed.graph, agreed.steps, wait_for, agreed.algorithm.schedule),
        own_budget=_allows_less(site, agreed),
        reads_until=agreed.planned.until,
    )


def _allows_less(site: Site, agreed: AgreedRun[OwnTask]) -> bool:
    """Whether contributions are left out because this site asks for it: by a budget of its own,
    below the agreed one."""
    own = _budget(site, agreed)
    return own is not None and (agreed.budget is None or not agreed.budget.within(own))


def _keep_private(site: Site) -> None:
    """The state folder and all files in it are for their owner only, whatever they were; records
    that others may read are told, since they lie where their owner put them."""
    opened = private_folder(site.state)
    if opened:
        log.warning(
            "others on this machine could read %s in %s; now they cannot",
            ", ".join(opened),
            site.state,
        )
    records = site.folder / site.file.records
    if open_to_others(records):
        log.warning("others on this machine can read the records %s; run chmod 600 on it", records)


def _wanted(site: Site, graph: Graph | GraphSequence, steps: int, schedule: Schedule) -> int | None:
    """How many neighbors must be connected before anything is released; None for all. "all" are
    those whom the schedule does not plan to be without."""
    wanted, gone = site.file.wait_for, schedule.may_be_gone()
    most = len(first_neighbors(graph, site.file.peer, steps))
    if isinstance(wanted, str):
        return most - gone if gone else None
    if wanted > most:
        raise ConfigError(
            f"wait_for = {wanted}, but peer {site.file.peer} has {how_many(most, 'neighbor')} in "
            f'{graph.name}; ask for that many at most, or for "all"'
        )
    return wanted


def _quorum(
    site: Site,
    graph: Graph | GraphSequence,
    steps: int,
    wait_for: int | None,
    schedule: Schedule,
) -> int:
    """How many neighbors must be connected before each later release: what the schedule asks for,
    which is half of them, and no more than `wait_for` asks for at the beginning, unless the site
    says otherwise."""
    wanted, most = site.file.quorum, len(first_neighbors(graph, site.file.peer, steps))
    if wanted == "half":
        return min(schedule.quorum(most), most if wait_for is None else wait_for)
    if isinstance(wanted, str):
        return most
    if wanted > most:
        raise ConfigError(
            f"quorum = {wanted}, but peer {site.file.peer} has {how_many(most, 'neighbor')} in "
            f'{graph.name}; ask for that many at most, or for "half" or "all"'
        )
    return wanted


def _calls(agreed: AgreedRun[OwnTask], draws: _OwnDraws, me: int) -> Meetings:
    """This peer's own timetable of calls. Where the events of all are counted it is its part of one
    that all draw together, from what is public; else only the peer itself knows it."""
    schedule, graph = agreed.algorithm.schedule, agreed.graph
    if not schedule.timed:
        return Meetings.none()
    dice = draws.own if schedule.counted(agreed.steps) is None else draws.public
    events = schedule.meetings(schedule.one_graph(graph), agreed.steps, dice)
    return schedule.by_clock(graph, agreed.steps, events).of(me)
