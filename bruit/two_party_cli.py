"""`bruit auc --listen` and `bruit auc --with`: the AUC of two tables whose holders show each other no score.

Each of some random pairs (a positive row, a negative row) shows one randomized bit, computed by both holders together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bruit.errors import ConfigError
from bruit.terminal import Ticker, emit_json, err, say

if TYPE_CHECKING:
    from bruit.arrays import Array
    from bruit.tasks.columns import Columns
    from bruit.two_party import Answer

AGAINST = "the other holder and whoever it tells (semi-honest two-party computation)"


@dataclass(frozen=True)
class Holders:
    """One's own side of a question to two tables: exactly one of listen and call is an address."""

    table: Path
    listen: str | None
    call: str | None
    identity: Path | None
    partner: Path | None
    rounds: int = 1
    limit: float | None = None
    patience_s: float = 300.0


def auc_of_two_tables(
    scores: Array, labels: Array, epsilon: float, holders: Holders, confidence: float,
    quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Ask the other holder, and print what both find."""
    from bruit.privacy.spent_file import beside
    from bruit.two_party import Parties, Question, Spending, ask, connect, listen, rows_of

    if (holders.listen is None) == (holders.call is None):
        raise ConfigError("one holder listens and the other calls: give one of --listen and --with")
    if holders.identity is None or holders.partner is None:
        raise ConfigError("two holders know each other by certificates: give --identity, the folder that `bruit peer "
                          "key` made, and --partner, the other holder's public.toml")
    question = Question("auc", epsilon, holders.rounds)
    rows = rows_of(question, scores, labels)
    parties = Parties(holders.identity, holders.partner)
    kept = beside(holders.table, holders.limit)
    record = Spending(kept.path, kept.limit)
    if holders.call is None:
        def ready(port: int) -> None:
            if not (quiet or as_json):
                err.print(f"waiting for the other holder at port {port}", highlight=False)

        channel = listen(str(holders.listen), parties, patience_s=holders.patience_s, ready=ready)
    else:
        channel = connect(holders.call, parties, patience_s=holders.patience_s)
    with channel, Ticker(quiet or as_json, "comparing") as ticker:
        found = ask("evaluator" if holders.call is None else "garbler", question, rows, channel, confidence,
                    spend=record.spend, tell=lambda done, total: ticker(done, total) if total else None)
    _say(found, question.epsilon, holders.rounds, Path(record.path), as_json)


def labels_of(columns: Columns, name: str, positive: str | None) -> Array:
    """1 or 0 for each row; a holder may have rows of one class only, so the class is never guessed."""
    cells = columns.of(name)
    if positive is not None:
        return np.array([float(cell == positive) for cell in cells])
    strange = next((row for row, cell in enumerate(cells) if cell not in ("0", "1", "0.0", "1.0")), None)
    if strange is not None:
        raise ConfigError(f"{columns.file} line {columns.lines[strange]}, column {name!r} holds {cells[strange]!r}; "
                          "between two holders labels are 0 and 1, or the positive one is named with --positive")
    return np.array([float(cell) for cell in cells])


def _say(found: Answer, epsilon: float, rounds: int, record: Path, as_json: bool) -> None:
    about: dict[str, Any] = {
        "auc": found.value, "interval": [found.low, found.high], "confidence": found.confidence, "error": found.error,
        "raw": found.raw, "epsilon": epsilon, "exact_epsilon": found.exact_epsilon, "delta": 0.0, "level": "record",
        "against": AGAINST, "bits_per_user": rounds, "pairs": found.pairs, "crossing": found.crossing,
        "protects": "scores, not labels", "sent_bytes": found.sent_bytes, "received_bytes": found.received_bytes,
        "seconds": found.seconds, "recorded": str(record),
    }  # fmt: skip
    if as_json:
        emit_json(about)
        return
    say(f"AUC {found.value:.4f}, between {found.low:.4f} and {found.high:.4f} ({100 * found.confidence:g} % interval)")
    say(f"  {found.pairs} random pairs of a positive and a negative row, {found.crossing} of them between the two "
        f"holders, one noisy bit each; labels are public")
    say(f"  each row: epsilon = {epsilon:g}, delta = 0, record level (labels public), against {AGAINST}; recorded in "
        f"{record}")
