"""The account of a data set: a file beside it that every run, mean, AUC and report on it adds to.

    FILE.account.jsonl      one line a charge, hash-chained (`chain`), only ever added to, 0600

A charge is on the disk before anything about the records leaves: a kill at any moment loses none, and
may leave one for what never left. One writer at a time, among processes too. Copies of records are
recognized by their contents, and old copies of an account by its head, as far as the register of this
user knows them (`register`). An account that is a link stays one: what it leads to is read and written,
and if that is not there nothing may be asked.
"""

from __future__ import annotations

import getpass
import hashlib
import hmac
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bruit.accounts.chain import Chain, ChainHead, ChainLines, Writer
from bruit.accounts.prices import Balance, Events, Price, Unit, balance_of
from bruit.accounts.register import Registered, register, remember
from bruit.errors import BrokenStateError, ConfigError, PrivacyError
from bruit.privacy.ledger import Budget
from bruit.privacy.toolbox.pld import compose_epsilon

log = logging.getLogger("bruit.accounts")
END = ".account.jsonl"
CHUNK = 2**20


@dataclass(frozen=True)
class Account:
    """`records` are what it is about, whose contents are known by it; `limit` is what this question
    may bring all of them to, besides the limits that the account itself keeps."""

    path: Path
    records: Path | None = None
    limit: Budget | None = None

    @property
    def chain(self) -> Chain:
        return Chain(self.path, "the account")

    def exists(self) -> bool:
        """Whether there is one, here or, for a copy of known records, elsewhere."""
        return self.chain.exists() or self._elsewhere() is not None

    def balance(self) -> Balance:
        """What was paid so far."""
        self._join()
        return self._balance(self.chain.read())

    def head(self) -> ChainHead:
        """How far it has come; what reports name."""
        return self.chain.read().head

    def id(self) -> str:
        """Its name, drawn when it was begun; empty for one that is not begun yet."""
        lines = self.chain.read().lines
        return str(lines[0].get("id", "")) if lines else ""

    def check(self, price: Price) -> None:
        """Refuse what would cost too much, and write nothing."""
        self.balance().check(price, self.limit, self.path)

    def charge(self, price: Price) -> None:
        """Write a price down, or refuse it."""
        with self._writing() as (writer, balance):
            balance.check(price, self.limit, self.path)
            writer.add({"what": "charge", "by": user(), **price.describe()})

    def settle(self, price: Price) -> None:
        """What was reserved under a key has come to its end, and this is what it was."""
        with self._writing() as (writer, _):
            writer.add({"what": "settled", "by": user(), **price.describe()})

    def set_limit(self, unit: Unit, limit: Budget | None) -> None:
        """From now on; a limit below what was paid already refuses everything."""
        about = {"epsilon": None, "delta": None} if limit is None else vars(limit)
        with self._writing() as (writer, _):
            writer.add({"what": "limit", "by": user(), **unit._asdict(), **about})

    def state_since(self, price: Price) -> None:
        """What was paid after the backup that this account came out of, as somebody states it."""
        with self._writing() as (writer, balance):
            if not balance.backup:
                raise ConfigError(f"the account {self.path} did not come out of a backup")
            if price.epsilon > 0:
                writer.add({"what": "charge", "by": user(), **price.describe()})
            writer.add({"what": "since", "by": user(), "backup": balance.backup})

    def share_with(self, other: Path) -> None:
        """Records made from these are the same people's: they pay from this account, by a link."""
        with self._writing():
            pass
        link = beside(other).path
        if os.path.lexists(link):
            if link.resolve() != self.chain.place:
                raise PrivacyError(
                    f"records at {other} pay from another account, {link}; write these to another file,"
                    f" or make that account a link to {self.path}"
                )
            return
        try:
            link.symlink_to(os.path.relpath(self.chain.place, link.parent.resolve()))
        except OSError as error:
            raise ConfigError(f"cannot write {link}: {error.strerror or error}") from None

    def note_made(self, other: Path) -> None:
        """Records that were made from these are written: what is in them is no change of these, and
        a copy of them pays from here."""
        with self._writing() as (writer, _):
            digest, _ = self._noted(writer, other)
        first = writer.found.lines[0]
        remember(Registered(str(first["id"]), self.chain.place, writer.head), digest)

    @contextmanager
    def _writing(self) -> Iterator[tuple[Writer, Balance]]:
        """Alone, with all that is known; afterwards the register knows how far it has come."""
        self._join()
        self.chain.begin(
            {"what": "account", "id": os.urandom(16).hex(), "salt": os.urandom(16).hex()}
        )
        with self.chain.writing() as writer:
            balance = self._balance(writer.found)
            digest = self._note_contents(writer)
            try:
                yield writer, balance
            finally:
                first = writer.found.lines[0]
                remember(Registered(str(first["id"]), self.chain.place, writer.head), digest)

    def _balance(self, found: ChainLines) -> Balance:
        try:
            balance = balance_of(found.lines)
            if found.lines and (
                found.lines[0].get("what") != "account"
                or not all(isinstance(found.lines[0].get(key), str) for key in ("id", "salt"))
            ):
                raise ValueError("its first line does not begin an account")
        except (KeyError, TypeError, ValueError, PrivacyError) as error:
            raise BrokenStateError(
                f"the account {self.path} does not say what the rows have paid ({error}); put back the"
                " file as it was"
            ) from None
        self._refuse_old(found)
        return balance

    def _refuse_old(self, found: ChainLines) -> None:
        """An old copy, or one of two copies, is no account."""
        known = self._registered(found)
        if known is None:
            return
        place = self.chain.place
        if not found.reaches(known.head):
            raise BrokenStateError(
                f"the account {self.path} is an old copy: it had {known.head.lines} lines, and this has"
                f" {len(found.lines)}, or others; questions are missing in it. Put back the newest"
            )
        if known.path != place and known.path.exists() and not known.path.samefile(place):
            raise PrivacyError(
                f"the account {self.path} is a copy of {known.path}, which is there too; each would miss"
                f" what the other pays. Keep one, and make the other a link to it: ln -s"
            )

    def _registered(self, found: ChainLines) -> Registered | None:
        known = register()
        return (
            None if known is None or not found.lines else known.account(str(found.lines[0]["id"]))
        )

    def _elsewhere(self) -> Registered | None:
        """The account that records of the same contents have elsewhere."""
        known = register()
        if known is None or self.records is None or not self.records.is_file():
            return None
        return known.paying_for(digest_of(self.records))

    def _join(self) -> None:
        """Records without an account that are a copy of known ones pay from the same account: by a
        link beside them."""
        if self.chain.exists():
            return
        known = self._elsewhere()
        if known is None or known.path == self.chain.place:
            if known is not None:
                raise _lost(self.path, known)
            return
        if not known.path.exists():
            raise _lost(self.path, known)
        try:
            self.path.symlink_to(known.path)
        except FileExistsError:
            return
        except OSError as error:
            raise ConfigError(f"cannot write {self.path}: {error.strerror or error}") from None
        log.warning(
            "%s holds the same records as those of %s: they pay from one account, and %s is a link to it",
            self.records,
            known.path,
            self.path,
        )

    def _note_contents(self, writer: Writer) -> bytes | None:
        """Which contents pay from it: changed records are told, and go on paying here."""
        if self.records is None or not self.records.is_file():
            return None
        digest, others = self._noted(writer, self.records)
        if others:
            log.warning(
                "%s has changed since its account was written: all that was paid counts for the"
                " records that are in it now, too",
                self.records,
            )
        return digest

    def _noted(self, writer: Writer, records: Path) -> tuple[bytes, bool]:
        """The digest of contents that pay from here; and whether it is news, where others did."""
        digest = digest_of(records)
        salt = bytes.fromhex(str(writer.found.lines[0]["salt"]))
        name = hmac.new(salt, digest, hashlib.sha256).hexdigest()[:32]
        known = [line["digest"] for line in writer.found.lines if line["what"] == "contents"]
        if name not in known:
            writer.add({"what": "contents", "digest": name})
        return digest, bool(known) and name not in known


def _lost(path: Path, known: Registered) -> BrokenStateError:
    return BrokenStateError(
        f"these records have an account of {known.head.lines} lines, {known.path}, and it is not there;"
        f" put it back there or as {path}. If it is lost for good, nobody knows what they have paid: who"
        f" deletes what the register says of it ({register_file(known)}) answers for that"
    )


def register_file(known: Registered) -> Path | None:
    """Where the register says it."""
    found = register()
    return None if found is None else found.folder / "accounts" / f"{known.id}.json"


def digest_of(records: Path) -> bytes:
    """SHA-256 of the contents."""
    found = hashlib.sha256()
    try:
        with records.open("rb") as stream:
            while part := stream.read(CHUNK):
                found.update(part)
    except OSError as error:
        raise ConfigError(f"cannot read {records}: {error.strerror or error}") from None
    return found.digest()


def beside(records: Path, limit: float | None = None, delta: float = 1e-6) -> Account:
    """The account of records, next to them wherever the command is given from; links to records share
    their account."""
    real = records.resolve() if records.is_symlink() else records
    budget = None if limit is None else Budget(limit, delta)
    return Account(Path(f"{real}{END}"), real, budget)


def user() -> str:
    """Who asks: the name of the account on this machine, or its number where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def unrecorded(_: object) -> None:
    """What pays for data one may lose: nothing is written down. For simulations and tests, by this
    word only."""


def told_price(price: Price, events: Events) -> Price:
    """The same with other events, and what these cost at its delta."""
    return replace(price, events=events, epsilon=compose_epsilon(events, price.delta))
