"""`bruit mean --book`: the mean of a column that several peers hold rows of, with noise proven and
sums checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from bruit.commands.printing import Printer, Reply, warn
from bruit.errors import ConfigError

if TYPE_CHECKING:
    from bruit.statistics.average.board.verify import Report
    from bruit.statistics.average.terms import MeanTerms


@dataclass(frozen=True, kw_only=True)
class Among:
    """One's own side of a mean among peers, as the command line has it."""

    table: Path
    peers: Path
    identity: Path | None
    board: Path | None
    rows: str | None = None
    organizer: int = 0
    dropouts: int = 0
    patience: float = 60.0
    limit: float | None = None


def mean_among_peers(
    values: np.ndarray,
    terms: MeanTerms,
    asked: Among,
    confidence: float,
    printer: Printer,
) -> None:
    """Take part, verify one's own copy of the board, and say what everybody now knows."""
    from bruit.accounts.account import beside
    from bruit.peers.wire.revisions.chain import standing_book
    from bruit.statistics.average.averaging import AveragingSeat, average, seat_of

    if asked.identity is None or asked.board is None:
        raise ConfigError(
            "peers know each other by certificates and each keeps a copy of the board:"
            " give --identity, the folder that `bruit peer key` made, and --board, a file to write"
        )
    book = standing_book(asked.peers)
    me = seat_of(asked.identity, book)
    terms.refuse_blind(len(book.entries))
    seat = AveragingSeat(
        folder=asked.identity,
        book=book,
        me=me,
        value=terms.value(values, me),
        board=asked.board,
        patience=asked.patience,
        tell=printer.note,
        record=beside(asked.table, asked.limit),
    )
    report = average(seat, terms)
    if not report.accepted:
        findings = "; ".join(found.text for found in report.findings)
        warn(f"there is no mean that can be believed: {findings}. The evidence is in {asked.board}")
        printer.answer(Reply({**report.plain(), "board": str(asked.board)}, []))
        raise typer.Exit(1)
    names = tuple(entry.name for entry in book.entries)
    record = Path(seat.record.path)
    printer.answer(
        PeersMean(
            report=report,
            terms=terms,
            names=names,
            board=asked.board,
            confidence=confidence,
            record=record,
        )
    )


def terms_of(
    column: str, low: float, high: float, epsilon: float, delta: float, asked: Among
) -> MeanTerms:
    """The terms as the command line says them."""
    from bruit.statistics.average.terms import MeanTerms

    try:
        rows = None if asked.rows is None else tuple(int(part) for part in asked.rows.split(","))
    except ValueError:
        raise ConfigError(
            f"--rows lists whole numbers by commas, one a peer, found {asked.rows!r}"
        ) from None
    return MeanTerms(
        column=column,
        low=low,
        high=high,
        epsilon=epsilon,
        delta=delta,
        rows=rows,
        dropouts=asked.dropouts,
        organizer=asked.organizer,
    )


@dataclass(frozen=True, kw_only=True)
class PeersMean:
    """What everybody now knows, and what it cost."""

    report: Report
    terms: MeanTerms
    names: tuple[str, ...]
    board: Path
    confidence: float
    record: Path

    def plain(self) -> dict[str, Any]:
        from bruit.privacy.guarantee import level_facts
        from bruit.statistics.average.payment import AGAINST

        report, terms, names = self.report, self.terms, self.names
        value, reach = terms.mean(report), self._reach()
        return {
            "mean": value,
            "interval": [value - reach, value + reach],
            "confidence": self.confidence,
            "error": terms.error(len(names), report.online),
            "epsilon": terms.spent(report),
            "delta": terms.delta,
            **level_facts(terms.level, "replace"),
            "against": AGAINST,
            "peers": [names[u] for u in report.online],
            "left_out": [name for u, name in enumerate(names) if u not in report.online],
            "caught": [names[u] for u in report.caught],
            "run": report.agreement.run.hex(),
            "board": str(self.board),
            "recorded": str(self.record),
        }

    def _reach(self) -> float:
        return self.terms.half_width(len(self.names), self.report.online, self.confidence)

    def lines(self) -> Iterator[str]:
        from bruit.accounts.account import Account
        from bruit.accounts.prices import Unit, in_all
        from bruit.privacy.guarantee import level_words
        from bruit.statistics.average.payment import AGAINST

        report, terms, about = self.report, self.terms, self.plain()
        low, high = about["interval"]
        yield (
            f"mean {about['mean']:.6g}, between {low:.6g} and {high:.6g} "
            f"({100 * self.confidence:g} % interval)"
        )
        gone = f"; left out: {', '.join(about['left_out'])}" if about["left_out"] else ""
        yield (
            f"  {len(about['peers'])} peers{gone}; standard error {about['error']:.4g} from "
            f"{report.agreement.noise_bits} proven coins a peer"
        )
        whose = "each row" if terms.level == "record" else "everything a peer holds"
        yield (
            f"  {whose}: epsilon = {about['epsilon']:.4g}, delta = {terms.delta:g}, "
            f"{level_words(terms.level, 'replace')}, against {AGAINST}"
        )
        paid = in_all(Account(self.record).balance().events(Unit.of(terms.level)))
        yield (f"  the rows of this table have paid {paid} in all, recorded in {self.record}")
        for found in report.findings:
            yield f"  note: {found.text}"
        yield (
            f"  run {report.agreement.run.hex()[:16]}; anybody can check it: bruit gopa verify "
            f"{self.board}"
        )
