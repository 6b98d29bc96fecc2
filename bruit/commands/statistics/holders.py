"""`--listen` and `--with`, of `bruit auc` and `bruit pairwise`: a statistic of two tables whose
holders show each other no number.

Each of some random pairs of rows (of an AUC: a positive and a negative one) shows one randomized
bit, computed by both holders together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bruit.commands.printing import Printer
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.arrays import Array
    from bruit.statistics.holders import Answer, Parties, TablesQuestion
    from bruit.statistics.holders.channel import Channel
    from bruit.tasks.data.columns import Columns


@dataclass(frozen=True, kw_only=True)
class HolderOptions:
    """One's own side of a question to two tables: exactly one of listen and call is an address."""

    table: Path
    listen: str | None
    call: str | None
    identity: Path | None
    partner: Path | None
    rounds: int = 1
    limit: float | None = None
    most_rows: int | None = None
    patience_s: float = 300.0


def auc_of_two_tables(
    columns: Columns,
    asked: tuple[str, str, str | None],
    epsilon: float,
    holders: HolderOptions,
    confidence: float,
    printer: Printer,
) -> None:
    """Ask the other holder about scores, labels and the positive one; print what both find."""
    from bruit.statistics.holders import TablesQuestion
    from bruit.statistics.tables import column_of_numbers, labels_of

    score, label, positive = asked
    scores, labels = column_of_numbers(columns, score), labels_of(columns, label, positive)
    question = TablesQuestion("auc", epsilon, holders.rounds)
    printer.answer(find_together(question, (scores, labels), holders, confidence, printer))


def find_together(
    question: TablesQuestion,
    own: tuple[Array, Array | None],
    holders: HolderOptions,
    confidence: float,
    printer: Printer,
) -> TwoHolders:
    """Ask the other holder; own: one's numbers, and labels if the question needs them."""
    from bruit.accounts.account import beside
    from bruit.statistics.holders import MOST_CLAIMED, Parties, Spending, ask, rows_of

    if (holders.listen is None) == (holders.call is None):
        raise ConfigError("one holder listens and the other calls: give one of --listen and --with")
    if holders.identity is None or holders.partner is None:
        raise ConfigError(
            "two holders know each other by certificates: give --identity, the folder that `bruit"
            " peer key` made, and --partner, the other holder's public.toml"
        )
    most = MOST_CLAIMED if holders.most_rows is None else holders.most_rows
    rows = rows_of(question, *own)
    parties = Parties(holders.identity, holders.partner)
    account = beside(holders.table, holders.limit)
    spending = Spending(account)
    spending.check(question)
    with _channel(holders, parties, printer) as channel, printer.ticker("comparing") as ticker:
        found = ask(
            "evaluator" if holders.call is None else "garbler",
            question,
            rows,
            channel,
            confidence,
            spend=spending.spend,
            tell=lambda done, total: ticker(done, total) if total else None,
            most_rows=most,
        )
    return TwoHolders(found, question, account.path)


def _channel(holders: HolderOptions, parties: Parties, printer: Printer) -> Channel:
    """Between the two: one waits, and says where; the other calls."""
    from bruit.statistics.holders import connect, listen

    if holders.call is not None:
        return connect(holders.call, parties, patience_s=holders.patience_s)

    def ready(port: int) -> None:
        printer.note(f"waiting for the other holder at port {port}")

    return listen(str(holders.listen), parties, patience_s=holders.patience_s, ready=ready)


@dataclass(frozen=True)
class TwoHolders:
    """What both found, and what each row paid."""

    found: Answer
    question: TablesQuestion
    record: Path

    def plain(self) -> dict[str, Any]:
        from bruit.privacy.guarantee import level_facts
        from bruit.statistics.holders.spending import AGAINST

        found, asked = self.found, self.question
        named: dict[str, Any] = {"auc": found.value}
        if not asked.needs_labels:
            named = {"statistic": asked.name, "value": found.value}
        return {
            **named,
            "interval": [found.low, found.high],
            "confidence": found.confidence,
            "error": found.error,
            "raw": found.raw,
            "epsilon": asked.epsilon,
            "exact_epsilon": found.exact_epsilon,
            "delta": 0.0,
            **level_facts("record", "replace"),
            "against": AGAINST,
            "bits_per_user": asked.rounds,
            "pairs": found.pairs,
            "crossing": found.crossing,
            "protects": "scores, not labels" if asked.needs_labels else "rows",
            "sent_bytes": found.sent_bytes,
            "received_bytes": found.received_bytes,
            "seconds": found.seconds,
            "recorded": str(self.record),
        }

    def lines(self) -> Iterator[str]:
        from bruit.accounts.account import Account
        from bruit.accounts.prices import Unit, in_all
        from bruit.privacy.guarantee import level_words
        from bruit.statistics.holders.spending import AGAINST

        found, asked = self.found, self.question
        paid = in_all(Account(self.record).balance().events(Unit.of("record")))
        name, pairs, labels = asked.name, "rows", ""
        level = level_words("record", "replace")
        if asked.needs_labels:
            name, pairs = "AUC", "a positive and a negative row"
            labels, level = "; labels are public", f"{level} (labels public)"
        digits = ".4f" if asked.within is None else ".6g"
        yield (
            f"{name} {found.value:{digits}}, between {found.low:{digits}} and "
            f"{found.high:{digits}} ({100 * found.confidence:g} % interval)"
        )
        yield (
            f"  {found.pairs} random pairs of {pairs}, {found.crossing} of them between the two"
            f" holders, one noisy bit each{labels}"
        )
        yield (
            f"  each row: epsilon = {asked.epsilon:g}, delta = 0, {level}, against"
            f" {AGAINST}; recorded in {self.record}, {paid} in all"
        )
