"""What a real peer's run costs its records, on the account beside them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bruit.accounts.account import beside
from bruit.accounts.backup import check_came_back
from bruit.accounts.prices import Price, Unit
from bruit.accounts.reservation import Reservation, ahead, priced
from bruit.mechanisms import Mechanism
from bruit.peers.journal.journal import Journal
from bruit.peers.site.agreed_run import AgreedRun
from bruit.peers.site.own_records import OwnTask
from bruit.privacy.ledger import Budget
from bruit.privacy.profile import USUAL_DELTA


def reservation(
    folder: Path,
    records: Path,
    me: int,
    run: str,
    agreed: AgreedRun[OwnTask],
    privacy: Mechanism | None,
    budget: Budget | None,
    journal: Journal,
) -> Reservation:
    """What this run reserves; refused if the account has a limit and this would exceed it. A run is
    known by the secret of its journal: going on from it costs nothing, a new one draws new noise."""
    level, adjacency = (
        ("user", "replace") if privacy is None else (privacy.level, privacy.adjacency)
    )
    delta = USUAL_DELTA if budget is None else budget.delta
    events = ahead(agreed.ahead.events_of(me), agreed.planned.most, budget)
    price = Price(
        about=f"run {run[:16]} ({agreed.algorithm.name()})",
        unit=Unit.of(level, adjacency),
        events=(),
        epsilon=0.0,
        delta=delta,
        against=agreed.algorithm.against,
        key=run_key(journal),
    )
    account = beside(records)
    check_came_back(folder, account)
    found = Reservation(account, run[:16], priced(price, events), budget)
    found.check(len(journal.spent()))
    return found


def run_key(journal: Journal) -> str:
    """What accounts and audit logs know a run by: drawn with its journal, hence new with a new one."""
    return hashlib.blake2b(journal.secret(), digest_size=16, person=b"bruit account").hexdigest()
