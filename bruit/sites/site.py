"""A site: what one participant keeps in its own folder, and the host made of it.

    site.toml        who I am in the address book, where my files are, patience, budget
    key.pem ...      my identity (secret)         book.toml        everyone's public identity and address
    experiment.toml  what was agreed on           records.npz      my records (secret)
    state/           journal, status, report and model

In the field the dice are cryptographic and keyed by the journal; a seed is accepted for rehearsals only.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from bruit.algorithms.home import TaskDoor
from bruit.algorithms.schedules import Pairs, Rounds, Wakes
from bruit.config import ExperimentFile
from bruit.entrance import check_budget
from bruit.errors import ConfigError
from bruit.graphs import Graph, GraphSequence
from bruit.mechanisms import Mechanism
from bruit.network.address_book import AddressBook
from bruit.network.host import Host, Settings, first_neighbors
from bruit.network.identity import Identity
from bruit.network.journal import Journal
from bruit.noise_keys import public_digest, rehearsal_dice
from bruit.privacy.ledger import Budget, Ledger
from bruit.protocols.peer import Seat, peer_machine
from bruit.randomness import Dice, Replay, Secure
from bruit.sites.agreed_run import agreed_id, agreed_run
from bruit.sites.own_records import OwnTask, read_share
from bruit.trace import Faults, Meetings


class BudgetSection(BaseModel):
    """What this participant will spend at most, against everybody."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    epsilon: float = Field(gt=0)
    delta: float = Field(1e-6, gt=0, lt=1)


class SiteFile(BaseModel):
    """One participant's settings; paths are relative to the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    peer: int = Field(ge=0)
    identity: str = "."
    book: str = "book.toml"
    experiment: str = "experiment.toml"
    records: str = "records.npz"
    state: str = "state"
    timeout: float = Field(30.0, gt=0)
    pace: float = Field(1.0, gt=0)
    wait_for: int | str = "all"  # neighbors that must be connected before anything is released
    start_timeout: float = Field(300.0, gt=0)  # seconds that they are waited for
    budget: BudgetSection | None = None

    @field_validator("wait_for", mode="before")
    @classmethod
    def _neighbors(cls, value: object) -> object:
        if value != "all" and (type(value) is not int or value < 0):
            raise ValueError(f'"all", or how many neighbors must be connected, found {value!r}')
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
        raise ConfigError(f"there is no site file {file}; `bruit network init` writes one for every participant")
    try:
        content = tomllib.loads(_text(file))
        return Site(SiteFile.model_validate(content), file.parent)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{file}: {'.'.join(map(str, first['loc']))}: {str(first['msg']).lower()}") from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text ({error})") from None


@dataclass(frozen=True)
class Participant:
    """A host ready to run, with what is needed to report about it."""

    host: Host
    task: OwnTask
    privacy: Mechanism | None
    budget: Budget | None
    site: Site
    rehearsed: bool = False


def participant(site: Site, rehearse: int | None = None) -> Participant:
    """Build one peer from its folder; everything that can be checked is checked before anything is sent."""
    book = AddressBook.read(site.folder / site.file.book)
    if site.file.peer >= len(book.entries):
        raise ConfigError(f"this site is peer {site.file.peer}, but the address book lists 0..{len(book.entries) - 1}")
    place, digest = site.folder / site.file.experiment, ""

    def own(file: ExperimentFile, peers: int) -> OwnTask:
        nonlocal digest
        if peers != len(book.entries):
            raise ConfigError(f"the graph {file.graph} has {peers} peers, the address book {len(book.entries)}")
        share, digest = read_share(site.folder / site.file.records, site.file.peer, peers, file.task.kind)
        return share

    agreed = agreed_run(_text(place), place.parent, str(site.file.experiment), own)  # before a key is used
    graph, algorithm, steps, privacy, task = agreed.graph, agreed.algorithm, agreed.steps, agreed.privacy, agreed.task
    budget = None if site.file.budget is None else Budget(site.file.budget.epsilon, site.file.budget.delta)
    if budget is not None:
        check_budget(algorithm, graph, steps, site.file.peer, privacy, budget)
    identity = Identity.load(site.folder / site.file.identity)
    if book.entry(site.file.peer).fingerprint != identity.fingerprint():
        raise ConfigError(f"the address book lists another certificate for peer {site.file.peer}; compare fingerprints")
    wait_for = _wanted(site, graph, steps)
    site.state.mkdir(parents=True, exist_ok=True)
    run = agreed_id(book, agreed)
    journal = Journal.open(site.state / "journal.db", run, {
        "records": digest, "experiment": hashlib.sha256(agreed.text.encode()).hexdigest(),
        "mechanism": json.dumps(None if privacy is None else privacy.describe(), sort_keys=True),
        "budget": "none" if site.file.budget is None else f"{site.file.budget.epsilon!r}, {site.file.budget.delta!r}",
        "dice": "cryptographic" if rehearse is None else f"rehearsal {rehearse}",
    })  # fmt: skip
    dice: Dice = Secure(journal.secret()) if rehearse is None else Replay(rehearse)
    ledger = Ledger(graph.n)
    noise: Dice = dice
    if rehearse is not None:  # nobody here knows all records: the noise follows from what was agreed on alone
        noise = rehearsal_dice(public_digest(algorithm, graph, privacy, steps, rehearse), rehearse)
    public = Replay(int(run, 16)) if rehearse is None else dice  # public draws: alike for all who agreed on the run
    door = TaskDoor(task, privacy, noise, ledger, 0, budget, public=public)
    calls, horizon = _calls(algorithm, graph, steps, dice, site.file.peer)
    seat = Seat(site.file.peer, algorithm, graph, door, dice, steps, algorithm.prepare(graph, steps), Faults.none(),
                calls.time, calls.b, None, site.file.timeout, public)  # fmt: skip
    host = Host(identity, book, run, peer_machine(seat), journal, ledger,
                Settings(site.file.timeout, site.file.pace, horizon, wait_for=wait_for,
                         start_timeout=site.file.start_timeout))  # fmt: skip
    return Participant(host, task, privacy, budget, site, rehearse is not None)


def _wanted(site: Site, graph: Graph | GraphSequence, steps: int) -> int | None:
    """How many neighbors must be connected before anything is released; None for all."""
    wanted = site.file.wait_for
    if isinstance(wanted, str):
        return None
    most = len(first_neighbors(graph, site.file.peer, steps))
    if wanted > most:
        raise ConfigError(f"wait_for = {wanted}, but peer {site.file.peer} has {most} neighbors in {graph.name}; ask"
                          f' for that many at most, or for "all"')  # fmt: skip
    return wanted


def _calls(algorithm: Any, graph: Any, steps: int, dice: Dice, me: int) -> tuple[Meetings, float | None]:
    """This peer's own timetable of calls, and until when it goes on."""
    schedule = algorithm.schedule
    if isinstance(schedule, Rounds) or not isinstance(schedule, Pairs | Wakes):
        return Meetings.none(), None
    return schedule.meetings(graph, steps, dice).of(me), float(steps)
