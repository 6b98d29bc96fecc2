"""`bruit mean --book`: the mean of a column that several peers hold rows of, with noise proven and sums checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bruit.errors import BruitError, ConfigError, PrivacyError
from bruit.terminal import emit_json, err, say

if TYPE_CHECKING:
    from bruit.network.address_book import AddressBook
    from bruit.privacy.spent_file import SpentFile
    from bruit.sites.average_terms import MeanTerms
    from bruit.verification.verify import Report

AGAINST = "any one other peer that follows the protocol"
NOTHING_LEFT = 1e9  # an epsilon that stands for no protection in files that hold numbers only


@dataclass(frozen=True)
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
    values: np.ndarray, terms: MeanTerms, asked: Among, confidence: float, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Take part, verify one's own copy of the board, and say what everybody now knows."""
    from bruit.network.address_book import AddressBook
    from bruit.privacy.binomial_profile import BinomialProfile
    from bruit.privacy.spent_file import SpentFile, beside
    from bruit.sites.averaging import Seat, average, seat_of

    if asked.identity is None or asked.board is None:
        raise ConfigError("peers know each other by certificates and each keeps a copy of the board: give --identity,"
                          " the folder that `bruit peer key` made, and --board, a file to write")  # fmt: skip
    book = AddressBook.read(asked.peers)
    me = seat_of(asked.identity, book)
    agreement = terms.agreement(book)
    _refuse_blind(terms, len(book.entries))
    kept = beside(asked.table, asked.limit)

    def tell(stage: str) -> None:
        if not (quiet or as_json):
            err.print(stage, highlight=False, markup=False)

    paid: list[float] = []

    def pay(sealed: Sequence[int]) -> None:
        price = max(terms.epsilon, terms.price(agreement, sealed))
        if not math.isfinite(price):
            raise PrivacyError(f"only {len(sealed)} of {agreement.peers} peers committed, and their coins hide nothing"
                               f" at delta = {terms.delta:g}; nothing was told: ask again when more are there, or plan"
                               " for --dropouts")  # fmt: skip
        kept.write(price, statistic=agreement.title, delta=terms.delta)
        paid.append(price)

    seat = Seat(asked.identity, book, me, terms.value(values, me), asked.board, asked.patience, tell,
                spend=pay)  # fmt: skip
    try:
        report = average(seat, agreement)
    except BruitError:
        if paid and terms.dropouts:  # what hid the value may have been opened, or still be: its own coins remain
            alone = BinomialProfile(agreement.noise_bits, terms.shift).epsilon(terms.delta)
            kept_on(SpentFile(kept.path), min(alone, NOTHING_LEFT) - sum(paid), f"{agreement.title}: broken off")
        raise
    spent = terms.spent(report, (me,) if paid else ())
    if paid:  # more peers left than were planned for: too late to refuse, not to write it down
        kept_on(SpentFile(kept.path), min(spent, NOTHING_LEFT) - sum(paid), f"{agreement.title}: others left")
    _say(report, terms, book, asked.board, confidence, as_json, spent)


def kept_on(record: SpentFile, more: float, why: str) -> None:
    """Write down what was paid beyond the price, if anything was."""
    if more > 0:
        record.write(more, statistic=why, delta=0.0)


def terms_of(column: str, low: float, high: float, epsilon: float, delta: float, asked: Among) -> MeanTerms:
    """The terms as the command line says them."""
    from bruit.sites.average_terms import MeanTerms

    try:
        rows = None if asked.rows is None else tuple(int(part) for part in asked.rows.split(","))
    except ValueError:
        raise ConfigError(f"--rows lists whole numbers by commas, one a peer, found {asked.rows!r}") from None
    return MeanTerms(column, low, high, epsilon, delta, rows, asked.dropouts,
                     asked.organizer)  # fmt: skip


def _refuse_blind(terms: MeanTerms, peers: int) -> None:
    """Before anybody is called: an error above half of the range is worse than guessing its middle."""
    if terms.error(peers) > (terms.high - terms.low) / 2:
        raise ConfigError(
            f"{peers} peers at epsilon = {terms.epsilon:g}, {terms.level} level, say nothing: the expected error"
            f" {terms.error(peers):.3g} is above half of the range; ask more peers, allow a larger epsilon, or protect"
            " rows instead of peers (--rows)"
        )


def _say(report: Report, terms: MeanTerms, book: AddressBook, board: Path, confidence: float, as_json: bool,
         spent: float) -> None:  # fmt: skip
    names = [entry.name for entry in book.entries]
    if not report.accepted:
        told = "; ".join(found.text for found in report.findings)
        raise ConfigError(f"there is no mean that can be believed: {told}. The evidence is in {board}")
    value, error = terms.mean(report), terms.error(len(names), report.online)
    reach = terms.half_width(len(names), report.online, confidence)
    stayed, left = [names[u] for u in report.online], [n for u, n in enumerate(names) if u not in report.online]
    about = {
        "mean": value, "interval": [value - reach, value + reach], "confidence": confidence, "error": error,
        "epsilon": spent, "delta": terms.delta, "level": terms.level, "against": AGAINST,
        "peers": stayed, "left_out": left, "caught": [names[u] for u in report.caught],
        "run": report.agreement.run.hex(), "board": str(board),
    }  # fmt: skip
    if as_json:
        emit_json(about)
        return
    say(f"mean {value:.6g}, between {value - reach:.6g} and {value + reach:.6g} ({100 * confidence:g} % interval)")
    gone = f"; left out: {', '.join(left)}" if left else ""
    coins = report.agreement.noise_bits
    say(f"  {len(stayed)} peers{gone}; standard error {error:.4g} from {coins} proven coins a peer")
    whose = "each row" if terms.level == "record" else "everything a peer holds"
    say(f"  {whose}: epsilon = {spent:.4g}, delta = {terms.delta:g}, {terms.level} level, against {AGAINST}")
    say(f"  run {report.agreement.run.hex()[:16]}; anybody can check it: bruit gopa verify {board}")
