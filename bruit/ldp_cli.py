"""Local DP in two halves: `bruit ldp report` for whoever holds rows, `bruit ldp estimate` for whoever collects reports.

Only the reports travel. Files of several holders are pooled: shares, means, or the AUC of scores (one bit per user).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bruit.errors import ConfigError
from bruit.tables_cli import (
    AGAINST,
    USUAL_DELTA,
    Clamp,
    Column,
    Confidence,
    Limit,
    Rehearse,
    Table,
    column_of_numbers,
    dice,
    existing,
    mean_protocol,
    pay,
    privacy,
    too_few,
)
from bruit.terminal import Delta, Epsilon, Force, Json, emit_json, say

if TYPE_CHECKING:
    from bruit.local_dp.catalog import Known
    from bruit.local_dp.protocol import FrequencyProtocol
    from bruit.local_dp.reports import Reports
    from bruit.randomness import Dice
    from bruit.tasks.columns import Columns

ldp_app = typer.Typer(help="Local DP: randomized reports of users, and estimates from them.", no_args_is_help=True)
PROTECTS = "scores, not labels"
SORTED = 10  # rows from which order is no accident


@dataclass(frozen=True)
class _Asked:
    """What any report needs to know."""

    column: str
    epsilon: float
    low: float | None
    high: float | None
    clamp: bool
    seed: int | None


@ldp_app.command("report")
def ldp_report(
    table: Table,
    column: Column,
    out: Annotated[Path, typer.Option(help="File of reports to write, .csv or .npz.")],
    epsilon: Epsilon = 1.0,
    protocol: Annotated[str | None, typer.Option(help="k-ary, hadamard, unary, local-hashing, randomized-response, "
                                                      "laplace, gaussian; left out: the best.")] = None,
    domain: Annotated[str | None, typer.Option(help="All possible values, by commas: red,green,blue.")] = None,
    low: Annotated[float | None, typer.Option(help="Numbers: the least possible value; scores: 0.")] = None,
    high: Annotated[float | None, typer.Option(help="Numbers: the largest possible value; scores: 1.")] = None,
    delta: Delta = USUAL_DELTA,
    label: Annotated[str | None, typer.Option(help="Scores, for an AUC: the column of public labels.")] = None,
    positive: Annotated[str | None, typer.Option(help="Scores: the positive label; left out, labels are 0, 1.")] = None,
    levels: Annotated[int | None, typer.Option(help="Scores: 2**levels bins, for all holders; left out: 6.")] = None,
    clamp: Clamp = False,
    keep_order: Annotated[bool, typer.Option("--keep-order", help="Places are public: write reports in the order of "
                                                                  "the rows; left out: shuffled.")] = False,
    limit: Limit = None,
    seed: Rehearse = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """The clients' side: one randomized report per row, safe to send to an aggregator nobody trusts.

    Example: bruit ldp report colors.csv --column color --domain red,green,blue --epsilon 1 --out reports.csv
    Of scores, for an AUC over several holders: bruit ldp report scores.csv --column s --label y --out a.csv
    """
    from bruit.local_dp.reports import save_reports
    from bruit.tasks.columns import read_csv
    from bruit.whole_files import check_place

    check_place(out, force)
    asked = _Asked(column, epsilon, low, high, clamp, seed)
    columns = read_csv(existing(table))
    if label is not None:
        if domain is not None or protocol is not None or delta != USUAL_DELTA or keep_order:
            raise ConfigError("scores with labels are reported as one bit each, in random order; leave --domain, "
                              "--protocol, --delta and --keep-order out")
        reports, bits = _scores(columns, asked, label, positive, levels), 1.0
    elif positive is not None or levels is not None:
        raise ConfigError("--positive and --levels are about scores with labels; name their column with --label")
    else:
        reports, bits = _values(columns, asked, domain, protocol, delta, keep_order)
    spent = float(reports.protocol.get("delta", 0.0))
    paid = pay(table, limit, f"report on {column}", epsilon, spent, seed)
    save_reports(reports, out)
    about = {"written": str(out), "reports": len(reports), "protocol": reports.protocol["kind"], "epsilon": epsilon,
             "delta": spent, "level": "user", "against": AGAINST, "bits_per_user": bits,
             "protects": PROTECTS if label is not None else column, "rehearsal": seed is not None,
             "order": "of the rows" if keep_order else "random", "recorded": paid.record or None}  # fmt: skip
    if as_json:
        emit_json(about)
        return
    say(f"wrote {len(reports)} reports ({about['protocol']}, {bits:g} bit{'' if bits == 1 else 's'} each) to {out}")
    if label is not None:
        say("  labels are public and written beside the bits; send the file to whoever pools it")
    say("  in the order of the rows: whoever knows the table's order knows whose report is whose" if keep_order else
        "  in random order: the place of a report says nothing")
    privacy(epsilon, spent, seed, paid)


def _values(
    columns: Columns, asked: _Asked, domain: str | None, protocol: str | None, delta: float, keep_order: bool
) -> tuple[Reports, float]:
    """Reports on values of a domain, or on numbers between two ends; and their size in bits."""
    if (domain is None) == (asked.low is None or asked.high is None):
        raise ConfigError("say what may be reported: either --domain red,green,blue, or --low and --high of a number, "
                          "or --label of a score")
    names: tuple[str, ...] = ()
    chosen: Known
    if domain is not None:
        names = tuple(word.strip() for word in domain.split(","))
        chosen = _frequency_protocol(protocol, names, asked.epsilon)
        values = _codes(columns, asked.column, names)
    else:
        chosen = mean_protocol(asked.low or 0.0, asked.high or 0.0, asked.epsilon, delta, protocol)
        values = column_of_numbers(columns, asked.column)
        values = np.clip(values, chosen.low, chosen.high) if asked.clamp else values
    if keep_order:
        _refuse_sorted(values, columns.file, asked.column)
    thrown = dice(asked.seed, chosen, values)
    reports = chosen.report(values if keep_order else _shuffled(values, thrown), thrown)
    return replace(reports, labels=names), chosen.bits()


def _scores(columns: Columns, asked: _Asked, label: str, positive: str | None, levels: int | None) -> Reports:
    """One bit about each score; a holder may have users of one class only."""
    from bruit.local_dp.auc_reports import LEVELS, ScoreReports
    from bruit.two_party_cli import labels_of

    low, high = 0.0 if asked.low is None else asked.low, 1.0 if asked.high is None else asked.high
    agreed = ScoreReports(LEVELS if levels is None else levels, asked.epsilon, low, high)
    scores = column_of_numbers(columns, asked.column)
    scores, labels = np.clip(scores, low, high) if asked.clamp else scores, labels_of(columns, label, positive)
    return agreed.report(scores, labels, dice(asked.seed, agreed, scores, labels))


@ldp_app.command("estimate")
def ldp_estimate(
    files: Annotated[list[Path], typer.Argument(help="Files of reports, all of one protocol.")],
    confidence: Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """The aggregator's side: unbiased estimates with intervals; impossible reports are counted and left out.

    Example: bruit ldp estimate reports.csv
    """
    from bruit.local_dp.auc_reports import ScoreReports
    from bruit.local_dp.reports import load_reports

    parts = [load_reports(path) for path in files]
    if any(part.protocol.get("kind") == ScoreReports.kind for part in parts):
        about = _pooled_auc(parts, confidence)
    else:
        about = _shares_or_mean(parts, confidence)
    if as_json:
        emit_json(about)
    else:
        _say_estimate(about)


def _pooled_auc(parts: list[Reports], confidence: float) -> dict[str, Any]:
    from bruit.local_dp.auc_reports import pool
    from bruit.local_dp.private_auc import predicted_error, users_needed

    pooled = pool(parts)
    found, agreed = pooled.estimate(confidence), pooled.agreed
    users = found.positives + found.negatives
    notes = []
    if pooled.missing:
        notes.append(f"{pooled.missing} reports that the files announce are not there: a file was cut off; ask its "
                     "holder for it again")
    if predicted_error(found.positives, found.negatives, agreed.levels, agreed.epsilon) > 0.5:
        notes.append(too_few(users, agreed.epsilon, users_needed(found.positives / users, agreed.epsilon)))
    return {
        "auc": found.value, "interval": [found.low, found.high], "confidence": confidence, "error": found.error,
        "raw": found.raw, "epsilon": agreed.epsilon, "delta": 0.0, "level": "user", "against": AGAINST,
        "bits_per_user": 1, "users": users, "positives": found.positives, "negatives": found.negatives,
        "bins": 1 << agreed.levels, "protects": PROTECTS, "protocol": agreed.kind, "files": len(parts),
        "reports": users, "refused": pooled.refused, "missing": pooled.missing, "note": "; ".join(notes),
    }  # fmt: skip


def _shares_or_mean(parts: list[Reports], confidence: float) -> dict[str, Any]:
    from bruit.local_dp.catalog import protocol_from
    from bruit.local_dp.protocol import FrequencyProtocol
    from bruit.local_dp.reports import merge

    reports = merge(parts)
    protocol = protocol_from(reports.protocol)
    about: dict[str, Any] = {
        "protocol": protocol.kind, "epsilon": protocol.epsilon, "delta": float(protocol.describe().get("delta", 0.0)),
        "level": "user", "against": AGAINST, "confidence": confidence, "bits_per_user": protocol.bits(),
    }  # fmt: skip
    if isinstance(protocol, FrequencyProtocol):
        return about | _shares(protocol, reports, confidence)
    found = protocol.estimate(reports, confidence)
    wide = protocol.high - protocol.low
    blind = found.error > wide / 2
    note = too_few(found.reports, protocol.epsilon, protocol.users_needed(wide / 10)) if blind else ""
    return about | {"reports": found.reports, "refused": found.refused, "mean": found.value, "error": found.error,
                    "interval": [found.low, found.high], "note": note}


def _shares(protocol: FrequencyProtocol, reports: Reports, confidence: float) -> dict[str, Any]:
    found = protocol.estimate(reports, confidence)
    labels = reports.labels or tuple(str(value) for value in range(protocol.k))
    if len(labels) != protocol.k:
        raise ConfigError(f"these reports name {len(labels)} values, but their protocol has {protocol.k}; the file was "
                          "damaged")
    rows = zip(labels, *(part.tolist() for part in (found.shares, found.errors, found.low, found.high)), strict=True)
    shares = [{"value": label, "share": share, "error": error, "interval": [low, high]}
              for label, share, error, low, high in rows]
    blind = protocol.variance(0.0, found.reports) > 0.25
    note = too_few(found.reports, protocol.epsilon, protocol.users_needed(0.1)) if blind else ""
    return {"reports": found.reports, "refused": found.refused, "shares": shares, "note": note}


def _say_estimate(about: dict[str, Any]) -> None:
    sure = f"{100 * about['confidence']:g} % interval"
    if "auc" in about:
        low, high = about["interval"]
        say(f"AUC {about['auc']:.4f}, between {low:.4f} and {high:.4f} ({sure})")
        say(f"  {about['positives']} positive and {about['negatives']} negative users of {about['files']} files, one "
            f"bit each, {about['bins']} bins of scores; labels are public")
    elif "mean" in about:
        low, high = about["interval"]
        say(f"mean {about['mean']:.6g}, between {low:.6g} and {high:.6g} ({sure})")
    else:
        width = max(len(row["value"]) for row in about["shares"])
        for row in about["shares"]:
            low, high = row["interval"]
            say(f"{row['value']:<{width}}  {row['share']:8.4f}   between {low:.4f} and {high:.4f} ({sure})")
    say(f"  {about['reports']} reports by {about['protocol']}, {about['refused']} malformed ones refused")
    privacy(about["epsilon"], about["delta"], None)
    if about["note"]:
        say(f"  note: {about['note']}")


def _codes(columns: Columns, name: str, labels: tuple[str, ...]) -> Any:
    cells, place = columns.of(name), {label: number for number, label in enumerate(labels)}
    strange = next((row for row, cell in enumerate(cells) if cell not in place), None)
    if strange is not None:
        raise ConfigError(f"{columns.file} line {columns.lines[strange]}, column {name!r} holds {cells[strange]!r}, "
                          f"which is not in the declared domain ({', '.join(labels[:20])}); declare it, or correct it")
    return np.array([place[cell] for cell in cells], dtype=np.int64)


def _frequency_protocol(kind: str | None, labels: tuple[str, ...], epsilon: float) -> FrequencyProtocol:
    from bruit.local_dp.compare import best, frequency_protocols

    if len(set(labels)) != len(labels) or "" in labels:
        raise ConfigError(f"the domain names different values by commas, found {','.join(labels)!r}")
    if kind is None:
        return best(len(labels), epsilon)
    known = {protocol.kind: protocol for protocol in frequency_protocols(len(labels), epsilon)}
    if kind not in known:
        raise ConfigError(f"no protocol {kind!r} reports one of {len(labels)} values; there are: {', '.join(known)}")
    return known[kind]


def _refuse_sorted(values: Any, file: str, column: str) -> None:
    """The place of a report in its file is not randomized: if rows are sorted, places tell values."""
    steps = np.diff(values)
    if len(values) >= SORTED and steps.any() and ((steps >= 0).all() or (steps <= 0).all()):
        raise ConfigError(f"{file} is sorted by {column!r}, so that the place of a report would tell the value behind "
                          "it; leave --keep-order out")


def _shuffled(values: Any, thrown: Dice) -> Any:
    return values[np.argsort(thrown.words("local-dp order", np.arange(len(values)), 0, 0, 1)[:, 0])]
