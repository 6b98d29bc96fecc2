"""`bruit budget`: what the records of a file have paid, what they may pay, and what they still can."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bruit.commands.printing import Detail, Line, Printer
from bruit.commands.terminal import Delta, Json, Quiet, RowsPerPerson
from bruit.errors import ConfigError
from bruit.how_many import how_many

if TYPE_CHECKING:
    from bruit.accounts.account import Account
    from bruit.accounts.prices import Balance, Charged, Unit


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
    delta: Delta = 1e-6,
    level: Annotated[
        str, typer.Option(help="What the limit is for: record (one row), user (all of a holder's).")
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
    if limit is not None:
        account.set_limit(Unit.of(level, adjacency), Budget(limit, delta))
    elif no_limit:
        account.set_limit(Unit.of(level, adjacency), None)
    Printer(json=as_json, quiet=quiet).answer(WhatWasPaid(account, delta, tuple(rows_per_person)))


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
            "totals": [self._total(balance, unit) for unit in balance.units()],
            "charges": [_charge(one) for one in balance.charged],
        }

    def _total(self, balance: Balance, unit: Unit) -> dict[str, Any]:
        from bruit.accounts.prices import unit_facts
        from bruit.privacy.formulas.group import group_epsilon
        from bruit.privacy.profile import EventsProfile

        limit, spent = balance.limits.get(unit), balance.epsilon(unit, self.delta)
        mine = [one for one in balance.charged if one.price.unit == unit]
        found: dict[str, Any] = {
            **unit_facts(unit),
            "epsilon": spent,
            "charges": len(mine),
            "open": sum(not one.settled for one in mine),
            "against": list(dict.fromkeys(one.price.against for one in mine)),
            "limit": None if limit is None else vars(limit),
        }
        if limit is not None:
            found["room"] = max(0.0, limit.epsilon - balance.epsilon(unit, limit.delta))
        if self.rows and unit.level == "record":
            profile = EventsProfile(tuple(balance.events(unit)))
            found["epsilon_of_person"] = {
                str(k): group_epsilon(profile, k, self.delta) for k in self.rows
            }
        return found

    def lines(self) -> Iterator[Line]:
        balance = self.account.balance()
        if not balance.charged and not balance.limits:
            yield f"nothing was paid for these records, as far as {self.account.path} says"
        for unit in balance.units():
            yield from self._lines_of(balance, unit)
        if len(balance.units()) > 1:
            yield "  statements of different level or adjacency are never added: they stand side by side"
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
        if found["limit"] is not None:
            yield (
                f"  limit epsilon = {found['limit']['epsilon']:g} at delta = {found['limit']['delta']:g};"
                f" a question of epsilon {found['room']:.6g} at delta = 0 is sure to fit"
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


def _charge(one: Charged) -> dict[str, Any]:
    about = one.price.describe()
    about.pop("events")
    return {"when": one.when, **about, "settled": one.settled}


def _words(one: Charged) -> str:
    price = one.price
    state = "" if one.settled else ", reserved"
    return (
        f"  {one.when}  {price.about}: epsilon {price.epsilon:.6g}, delta {price.delta:g}{state},"
        f" {price.unit.level} level, against {price.against}"
    )
