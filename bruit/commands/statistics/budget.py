"""`bruit budget`: what the records of a file have paid, what they may pay, and what they still can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.commands.misplaced import refuse_given
from bruit.commands.printing import Detail, Line, Printer
from bruit.commands.terminal import Delta, Json, Quiet, RowsPerPerson
from bruit.errors import ConfigError
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.accounts.account import Account
    from bruit.accounts.prices import Balance, Charged, Unit
    from bruit.privacy.events import Event


def budget(
    file: Annotated[
        Path, typer.Argument(help="A table, a records file, a site.toml, or an account itself.")
    ],
    limit: Annotated[
        float | None, typer.Option(help="From now on all questions together may cost this epsilon.")
    ] = None,
    no_limit: Annotated[
        bool, typer.Option("--no-limit", help="Take the limit of that level away.")
    ] = False,
    since_backup: Annotated[
        float | None,
        typer.Option(
            help="The account came out of a backup: what was paid after it was made, 0 if nothing."
        ),
    ] = None,
    delta: Delta = 1e-6,
    level: Annotated[
        str, typer.Option(help="What that is for: record (one row), user (all of a holder's).")
    ] = "record",
    adjacency: Annotated[
        str, typer.Option(help="How records differ in it: replace, add-remove.")
    ] = "replace",
    rows_per_person: RowsPerPerson = [],  # noqa: B006
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """What the records of a file have paid: every run, mean, AUC and report on them, composed.

    With --limit, a question or run that would exceed it is refused before anything is spent.

    Example: bruit budget patients.csv --limit 3
    """
    from bruit.accounts.prices import Unit
    from bruit.privacy.ledger import Budget
    from bruit.privacy.profile import check_delta

    check_delta(delta)
    account = account_of(file)
    if limit is not None and no_limit:
        raise ConfigError("give --limit or --no-limit, not both")
    if limit is None and not no_limit and since_backup is None:
        refuse_given(
            "what was paid is told for every level and adjacency; these two are about --limit,"
            " --no-limit and --since-backup",
            *("level", "adjacency"),
        )
    if since_backup is not None:
        _state_since(account, since_backup, delta, Unit.of(level, adjacency))
    if limit is not None:
        account.set_limit(Unit.of(level, adjacency), Budget(limit, delta))
    elif no_limit:
        account.set_limit(Unit.of(level, adjacency), None)
    Printer(json=as_json, quiet=quiet).answer(WhatWasPaid(account, delta, tuple(rows_per_person)))


def _state_since(account: Account, epsilon: float, delta: float, unit: Unit) -> None:
    """Add what the user says was paid after a backup."""
    from dataclasses import replace

    from bruit.accounts.prices import Price

    about = "stated: paid after the backup"
    price = Price.stated(about, epsilon, delta, unit.level, "everybody")
    account.state_since(replace(price, unit=unit))


def account_of(file: Path) -> Account:
    """The account of what a command names: records, their site, or the account's own file."""
    from bruit.accounts.account import END, Account, beside

    if file.name.endswith(END):
        if not file.exists():
            raise ConfigError(f"there is no account {file}")
        records = Path(str(file).removesuffix(END))
        return Account(file, records if records.exists() else None)
    if file.suffix == ".toml":
        from bruit.peers.site.site import read_site

        site = read_site(file)
        file = site.folder / site.file.records
    if not file.is_file():
        raise ConfigError(f"there is no file {file}; name the records whose account is asked for")
    return beside(file)


@dataclass(frozen=True)
class WhatWasPaid:
    """What an account says, by level and adjacency, side by side."""

    account: Account
    delta: float
    rows: tuple[int, ...]

    def plain(self) -> dict[str, Any]:
        balance, head = self.account.balance(), self.account.head()
        return {
            "account": str(self.account.path),
            "head": head.describe(),
            "delta": self.delta,
            "backup": balance.backup or None,
            "since_backup_unknown": balance.since_unknown,
            "totals": [self._total(balance, unit) for unit in balance.units()],
            "charges": [_charge(one) for one in balance.charged],
        }

    def _total(self, balance: Balance, unit: Unit) -> dict[str, Any]:
        from bruit.accounts.prices import unit_facts

        limit, spent = balance.limits.get(unit), balance.epsilon(unit, self.delta)
        mine = balance.of(unit)
        found: dict[str, Any] = {
            **unit_facts(unit),
            "epsilon": spent,
            "charges": len(mine),
            "of_all_that_a_holder_has": sum(one.price.unit != unit for one in mine),
            "however_chosen": balance.however_chosen(unit, self.delta),
            "open": sum(not one.settled for one in mine),
            "against": list(dict.fromkeys(one.price.against for one in mine)),
            "limit": None if limit is None else vars(limit),
        }
        if limit is not None:
            found["room"] = max(0.0, limit.epsilon - balance.epsilon(unit, limit.delta))
        if self.rows and unit.level == "record":
            found["epsilon_of_person"] = {
                str(k): _of_person(balance, unit, k, self.delta) for k in self.rows
            }
        return found

    def lines(self) -> Iterator[Line]:
        balance = self.account.balance()
        if balance.since_unknown:
            yield (
                f"it came out of a backup of {balance.backup}: what was paid after that is not in it, and"
                " nothing may be asked until somebody states it (--since-backup EPSILON, 0 if nothing)"
            )
        if not balance.charged and not balance.limits:
            yield f"nothing was paid for these records, as far as {self.account.path} says"
        for unit in balance.units():
            yield from self._lines_of(balance, unit)
        if sum(unit.level == "record" for unit in balance.units()) > 1:
            yield "  a row replaced and a row that comes or goes are never added: they stand side by side"
        for one in balance.charged:
            yield Detail(_words(one))
        if self.account.exists():
            yield Detail(
                f"  account {self.account.path}, {how_many(self.account.head().lines, 'line')}"
            )

    def _lines_of(self, balance: Balance, unit: Unit) -> Iterator[Line]:
        found = self._total(balance, unit)
        yield (
            f"{unit.words()} has paid epsilon = {found['epsilon']:.6g} at delta = {self.delta:g}, in"
            f" {how_many(found['charges'], 'charge')}"
        )
        if whom := found["against"]:
            joined = f"  against {'; and '.join(whom)}"
            yield (
                joined
                if len(whom) == 1
                else f"{joined}: whoever sees all of it, if all they assume holds"
            )
        if whole := found["of_all_that_a_holder_has"]:
            yield f"  with {how_many(whole, 'charge')} for all that one holder has: each row is part of it"
        if not found["however_chosen"]:
            yield (
                "  if no question, nor its epsilon, was chosen after seeing the answers to earlier ones"
            )
        if found["limit"] is not None:
            yield (
                f"  limit epsilon = {found['limit']['epsilon']:g} at delta = {found['limit']['delta']:g};"
                f" {_fits(found['room'])}"
            )
        for rows, epsilon in found.get("epsilon_of_person", {}).items():
            yield (
                f"  a person with {how_many(int(rows), 'row')}: epsilon = {epsilon:.6g} at delta ="
                f" {self.delta:g} (group privacy)"
            )
        if found["open"]:
            yield Detail(
                f"  {how_many(found['open'], 'charge')} of a run that has not come to its end: reserved in"
                " full, settled when it ends"
            )


def _of_person(balance: Balance, unit: Unit, rows: int, delta: float) -> float:
    """Of somebody with so many rows: those of one holder are together in what was said of all it has."""
    from bruit.privacy.formulas.group import group_epsilon, scaled_events
    from bruit.privacy.profile import EventsProfile

    alone: list[tuple[Event, int]] = []
    for one in balance.of(unit):
        mine = one.price.unit == unit
        alone += scaled_events(one.price.events, rows) if mine else one.price.events
    whole = EventsProfile(tuple(balance.events(unit)))
    return min(group_epsilon(whole, rows, delta), EventsProfile(tuple(alone)).epsilon(delta))


def _charge(one: Charged) -> dict[str, Any]:
    about = one.price.describe()
    about.pop("events")
    return {"when": one.when, **about, "settled": one.settled}


def _words(one: Charged) -> str:
    from bruit.privacy.guarantee import level_words

    price = one.price
    state = "" if one.settled else ", reserved"
    return (
        f"  {one.when}  {price.about}: epsilon {price.epsilon:.6g}, delta {price.delta:g}{state},"
        f" {level_words(*price.unit)}, against {price.against}"
    )


def _fits(room: float) -> str:
    """What may still be asked: rounded down, so that it fits as it is printed."""
    if not room:
        return "it is reached, and any further question may be refused"
    most = float(Context(prec=6, rounding=ROUND_FLOOR).create_decimal(room))
    return f"a question of epsilon {most:.6g} at delta = 0 is sure to fit"
