"""Statistics that nobody could have collected: `bruit auc`, `bruit mean`, `bruit ldp report`, `bruit ldp estimate`.

Each row of a table is one user, whose report is randomized before anything is counted. What is printed is epsilon-DP
for every user (user level) against everybody, the aggregator first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bruit.errors import ConfigError
from bruit.terminal import Json, emit_json, say

if TYPE_CHECKING:
    from bruit.arrays import Array
    from bruit.local_dp.catalog import Known
    from bruit.local_dp.protocol import FrequencyProtocol, MeanProtocol
    from bruit.local_dp.reports import Reports
    from bruit.randomness import Dice
    from bruit.tasks.columns import Columns

AGAINST = "everybody (local DP): the aggregator, and whoever sees the reports"
Table = Annotated[Path, typer.Argument(help="A CSV file with a header line; each row is one user.")]
Epsilon = Annotated[float, typer.Option(help="What may be learned about one user, by everybody.")]
Low = Annotated[float, typer.Option(help="The least possible value, declared without looking at the data.")]
High = Annotated[float, typer.Option(help="The largest possible value, declared without looking at the data.")]
Clip = Annotated[bool, typer.Option("--clip", help="Move values outside of low..high to the nearest end.")]
Confidence = Annotated[float, typer.Option(help="How sure the interval is.")]
Rehearse = Annotated[int | None, typer.Option("--seed", help="Replayable dice, for data one may lose: not private.")]
Positive = Annotated[str | None, typer.Option(help="Which label is the positive class; left out: 1, or the larger.")]
MeanDelta = Annotated[float | None, typer.Option(help="Gaussian noise with this delta instead of Laplace noise.")]

ldp_app = typer.Typer(help="Local DP: randomized reports of users, and estimates from them.", no_args_is_help=True)


def auc(
    table: Table,
    score: Annotated[str, typer.Option(help="The column of scores, private.")],
    label: Annotated[str, typer.Option(help="The column of labels, public, two classes.")],
    epsilon: Epsilon = 1.0,
    low: Low = 0.0,
    high: High = 1.0,
    positive: Positive = None,
    levels: Annotated[int | None, typer.Option(help="2**levels bins of scores; left out: chosen from counts.")] = None,
    clip: Clip = False,
    confidence: Confidence = 0.95,
    seed: Rehearse = None,
    as_json: Json = False,
) -> None:
    """How well do private scores tell two classes apart? One randomized bit per user; labels are public.

    Example: bruit auc scores.csv --score s --label y --epsilon 1
    """
    from bruit.local_dp.private_auc import PrivateAuc, choose_levels
    from bruit.local_dp.quantized import bins_of
    from bruit.statistics.ranking import two_classes
    from bruit.tasks.columns import read_csv

    columns = read_csv(_existing(table))
    scores, labels = _numbers(columns, score), _labels(columns, label, positive)
    up, down = (len(part) for part in two_classes(scores, labels))
    depth = choose_levels(up, down, epsilon) if levels is None else levels
    asked = PrivateAuc(depth, epsilon, ties="half")
    _refuse_blind_auc(up, down, asked)
    bins = bins_of(np.clip(scores, low, high) if clip else scores, 1 << depth, low, high)
    found = asked.estimate(asked.report(bins, _dice(seed)), labels, confidence=confidence)
    about = {
        "auc": found.value, "interval": [found.low, found.high], "confidence": confidence, "error": found.error,
        "raw": found.raw, "epsilon": epsilon, "delta": 0.0, "level": "user", "against": AGAINST, "bits_per_user": 1,
        "users": up + down, "positives": up, "negatives": down, "bins": 1 << depth, "protects": "scores, not labels",
        "rehearsal": seed is not None,
    }
    if as_json:
        emit_json(about)
        return
    say(f"AUC {found.value:.4f}, between {found.low:.4f} and {found.high:.4f} ({100 * confidence:g} % interval)")
    say(f"  {up} positive and {down} negative users, one bit each, {1 << depth} bins of scores; labels are public")
    _privacy(epsilon, 0.0, seed)


def mean(
    table: Table,
    column: Annotated[str, typer.Option(help="The column of private numbers.")],
    low: Low,
    high: High,
    epsilon: Epsilon = 1.0,
    delta: MeanDelta = None,
    clip: Clip = False,
    confidence: Confidence = 0.95,
    seed: Rehearse = None,
    as_json: Json = False,
) -> None:
    """The mean of one column, from numbers that were made noisy by the users who hold them.

    Example: bruit mean values.csv --column x --low 0 --high 1 --epsilon 1
    """
    from bruit.tasks.columns import read_csv

    protocol = _mean_protocol(low, high, epsilon, delta)
    values = _numbers(read_csv(_existing(table)), column)
    _refuse_blind_mean(protocol, len(values))
    found = protocol.estimate(protocol.report(np.clip(values, low, high) if clip else values, _dice(seed)), confidence)
    about = {
        "mean": found.value, "interval": [found.low, found.high], "confidence": confidence, "error": found.error,
        "epsilon": epsilon, "delta": delta or 0.0, "level": "user", "against": AGAINST,
        "bits_per_user": protocol.bits(), "users": found.reports, "protocol": protocol.kind,
        "rehearsal": seed is not None,
    }
    if as_json:
        emit_json(about)
        return
    say(f"mean {found.value:.6g}, between {found.low:.6g} and {found.high:.6g} ({100 * confidence:g} % interval)")
    say(f"  {found.reports} users, {protocol.kind} noise, standard error {found.error:.4g}")
    _privacy(epsilon, delta or 0.0, seed)


@ldp_app.command("report")
def ldp_report(
    table: Table,
    column: Annotated[str, typer.Option(help="The column to report on.")],
    out: Annotated[Path, typer.Option(help="File of reports to write, .csv or .npz.")],
    epsilon: Epsilon = 1.0,
    protocol: Annotated[str | None, typer.Option(help="k-ary, hadamard, unary, local-hashing, randomized-response, "
                                                      "laplace, gaussian; left out: the best.")] = None,
    domain: Annotated[str | None, typer.Option(help="All possible values, by commas: red,green,blue.")] = None,
    low: Annotated[float | None, typer.Option(help="Numbers: the least possible value.")] = None,
    high: Annotated[float | None, typer.Option(help="Numbers: the largest possible value.")] = None,
    delta: MeanDelta = None,
    clip: Clip = False,
    seed: Rehearse = None,
    as_json: Json = False,
) -> None:
    """The clients' side: one randomized report per row, safe to send to an aggregator nobody trusts.

    Example: bruit ldp report colors.csv --column color --domain red,green,blue --epsilon 1 --out reports.csv
    """
    from dataclasses import replace

    from bruit.local_dp.reports import save_reports
    from bruit.tasks.columns import read_csv
    from bruit.whole_files import check_place

    check_place(out)
    if (domain is None) == (low is None or high is None):
        raise ConfigError("say what may be reported: either --domain red,green,blue, or --low and --high of a number")
    columns = read_csv(_existing(table))
    labels: tuple[str, ...] = ()
    chosen: Known
    if domain is not None:
        labels = tuple(word.strip() for word in domain.split(","))
        chosen = _frequency_protocol(protocol, labels, epsilon)
        reports = chosen.report(_codes(columns, column, labels), _dice(seed))
    else:
        chosen = _mean_protocol(float(low or 0.0), float(high or 0.0), epsilon, delta, protocol)
        values = _numbers(columns, column)
        reports = chosen.report(np.clip(values, chosen.low, chosen.high) if clip else values, _dice(seed))
    save_reports(replace(reports, labels=labels), out)
    about = {"written": str(out), "reports": len(reports), "protocol": chosen.kind, "epsilon": epsilon,
             "delta": _delta(chosen), "level": "user", "against": AGAINST, "bits_per_user": chosen.bits(),
             "rehearsal": seed is not None}
    if as_json:
        emit_json(about)
        return
    say(f"wrote {len(reports)} reports ({chosen.kind}, {chosen.bits():g} bits each) to {out}")
    _privacy(epsilon, _delta(chosen), seed)


@ldp_app.command("estimate")
def ldp_estimate(
    files: Annotated[list[Path], typer.Argument(help="Files of reports, all of one protocol.")],
    confidence: Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """The aggregator's side: unbiased estimates with intervals; impossible reports are counted and left out.

    Example: bruit ldp estimate reports.csv
    """
    from bruit.local_dp.catalog import protocol_from
    from bruit.local_dp.protocol import FrequencyProtocol
    from bruit.local_dp.reports import load_reports, merge

    reports = merge([load_reports(path) for path in files])
    protocol = protocol_from(reports.protocol)
    about: dict[str, Any] = {"protocol": protocol.kind, "epsilon": protocol.epsilon, "delta": _delta(protocol),
                             "level": "user", "against": AGAINST, "confidence": confidence}  # fmt: skip
    if isinstance(protocol, FrequencyProtocol):
        about |= _shares(protocol, reports, confidence)
    else:
        found = protocol.estimate(reports, confidence)
        about |= {"reports": found.reports, "refused": found.refused, "mean": found.value, "error": found.error,
                  "interval": [found.low, found.high], "note": ""}
        if found.error > (protocol.high - protocol.low) / 2:
            about["note"] = _too_few(found.reports, protocol.epsilon,
                                     protocol.users_needed((protocol.high - protocol.low) / 10))
    if as_json:
        emit_json(about)
    else:
        _say_estimate(about)


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
    note = _too_few(found.reports, protocol.epsilon, protocol.users_needed(0.1)) if blind else ""
    return {"reports": found.reports, "refused": found.refused, "shares": shares, "note": note}


def _say_estimate(about: dict[str, Any]) -> None:
    sure = f"{100 * about['confidence']:g} % interval"
    if "mean" in about:
        low, high = about["interval"]
        say(f"mean {about['mean']:.6g}, between {low:.6g} and {high:.6g} ({sure})")
    else:
        width = max(len(row["value"]) for row in about["shares"])
        for row in about["shares"]:
            low, high = row["interval"]
            say(f"{row['value']:<{width}}  {row['share']:8.4f}   between {low:.4f} and {high:.4f} ({sure})")
    say(f"  {about['reports']} reports by {about['protocol']}, {about['refused']} malformed ones refused")
    _privacy(about["epsilon"], about["delta"], None)
    if about["note"]:
        say(f"  note: {about['note']}")


def _privacy(epsilon: float, delta: float, seed: int | None) -> None:
    say(f"  each user: epsilon = {epsilon:g}, delta = {delta:g}, user level, against {AGAINST}")
    if seed is not None:
        say("  a rehearsal: whoever knows the seed can undo the noise; leave --seed out for data that matter")


def _delta(protocol: Known) -> float:
    return float(protocol.describe().get("delta", 0.0))


def _dice(seed: int | None) -> Dice:
    from bruit.randomness import Replay, Secure

    return Secure() if seed is None else Replay(seed)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    return path


def _numbers(columns: Columns, name: str) -> Array:
    from bruit.tasks.columns import numbers

    found = numbers(columns, name)
    if found is None:
        raise ConfigError(f"{columns.file}, column {name!r} holds text where numbers are needed")
    return found


def _labels(columns: Columns, name: str, positive: str | None) -> Array:
    """1 for the positive class, 0 for the other."""
    cells = columns.of(name)
    found = sorted(set(cells))
    if positive is not None:
        if positive not in found:
            raise ConfigError(f"{columns.file}, column {name!r} never holds the positive label {positive!r}; it holds "
                              f"{', '.join(found[:10])}")
        return np.array([float(cell == positive) for cell in cells])
    values = _numbers(columns, name)
    kinds = np.unique(values)
    if len(kinds) > 2:
        raise ConfigError(f"{columns.file}, column {name!r} holds {len(kinds)} different labels; an AUC compares two: "
                          "say which one is positive with --positive")
    top = kinds[-1]
    return np.asarray((values == top) if len(kinds) == 2 else (values > 0), dtype=np.float64)


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


def _mean_protocol(
    low: float, high: float, epsilon: float, delta: float | None, kind: str | None = None
) -> MeanProtocol:
    from bruit.local_dp.gaussian_mean import GaussianMean
    from bruit.local_dp.laplace_mean import LaplaceMean

    if kind not in (None, "laplace", "gaussian"):
        raise ConfigError(f"no protocol {kind!r} reports numbers; there are: laplace, gaussian")
    if kind == "laplace" and delta is not None:
        raise ConfigError("Laplace noise needs no delta; leave --delta out, or use --protocol gaussian")
    if kind == "gaussian" or delta is not None:
        return GaussianMean(low, high, epsilon, 1e-6 if delta is None else delta)
    return LaplaceMean(low, high, epsilon)


def _too_few(users: int, epsilon: float, needed: int) -> str:
    return (f"{users} users at epsilon = {epsilon:g} say nothing: a guess without looking is as good; it takes about "
            f"{needed} users at this epsilon, or a larger epsilon")


def _refuse_blind_auc(up: int, down: int, asked: Any) -> None:
    """Before any report is made: an expected error above 1/2 is worse than guessing 1/2."""
    from bruit.local_dp.private_auc import predicted_error, users_needed

    if predicted_error(up, down, asked.levels, asked.epsilon) > 0.5:
        raise ConfigError(_too_few(up + down, asked.epsilon, users_needed(up / (up + down), asked.epsilon)))


def _refuse_blind_mean(protocol: MeanProtocol, users: int) -> None:
    """Before any report is made: an error above half of the range is worse than guessing its middle."""
    wide = protocol.high - protocol.low
    if users and protocol.variance(users) > (wide / 2) ** 2:
        raise ConfigError(_too_few(users, protocol.epsilon, protocol.users_needed(wide / 10)))
