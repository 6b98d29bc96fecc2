"""`bruit attack linkage`: two batches of local-DP reports from the same users; who is who?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bruit.errors import ConfigError
from bruit.terminal import Json, Quiet, Ticker, emit_json, say

if TYPE_CHECKING:
    from bruit.local_dp.catalog import Known
    from bruit.local_dp.reports import Reports

Batches = tuple[list["Reports"], list["Reports"]]
TIMES = 2.0  # the defence keeps every attack below so many times chance


def attack_linkage(
    files: Annotated[list[Path] | None, typer.Argument(
        metavar="[REPORTS]...", help="Files of `bruit ldp report`: those of the first time, then those of the second, "
                                     "attributes in the same order; row k of all files is user k.")] = None,
    users: Annotated[int | None, typer.Option(min=2, help="Instead of files: simulate so many users.")] = None,
    attributes: Annotated[int, typer.Option(min=1, help="Simulated: how many attributes each user reports.")] = 1,
    values: Annotated[int, typer.Option(min=2, help="Simulated: how many values an attribute has.")] = 2,
    epsilon: Annotated[
        float, typer.Option("--epsilon-per-report", help="Simulated: what one report of one attribute costs.")
    ] = 1.0,
    protocol: Annotated[str, typer.Option(help="Simulated: k-ary, hadamard, unary, local-hashing, "
                                               "randomized-response, laplace or gaussian.")] = "k-ary",
    keep: Annotated[float, typer.Option(help="The chance that a user's data is the same both times.")] = 1.0,
    confidence: Annotated[float, typer.Option(help="How sure the interval is.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the simulated data and of the order.")] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Match the reports of one time with those of another, without names: how often is it right?

    Example: bruit attack linkage --users 200 --attributes 12 --values 4 --epsilon-per-report 2
    """
    from bruit.attacks.linked_reports import link_reports
    from bruit.audits.bounds import check_confidence

    check_confidence(confidence)
    if bool(files) == (users is not None):
        raise ConfigError("name either files of reports, first and second time, or --users to simulate")
    if files:
        first, second = _read(files)
    else:
        first, second = _simulated(_Simulation(int(users or 0), attributes, values, epsilon, protocol, keep, seed))
    with Ticker(quiet or as_json, "comparing") as ticker:
        order = _order(len(first[0]), seed)
        linked = link_reports(first, [_shuffled(reports, order) for reports in second], keep)
        ticker(1, 1)
    answer = _answer(first, linked.score(np.argsort(order))[0], confidence) | {
        "simulated": not files, "keep": keep}
    if as_json:
        emit_json(answer)
    else:
        _tell(answer)


@dataclass(frozen=True)
class _Simulation:
    """Users whose data is uniform, reported twice."""

    users: int
    attributes: int
    values: int
    epsilon: float
    protocol: str
    keep: float
    seed: int


def _simulated(about: _Simulation) -> Batches:
    """Data and reports from addressed draws; data is drawn anew for those who do not keep it."""
    from bruit.randomness import Replay

    if not 0 <= about.keep <= 1:
        raise ConfigError(f"--keep is a probability, found {about.keep}")
    dice, lanes = Replay(about.seed), np.arange(about.users)
    protocol, batches = _protocol(about), ([], [])  # type: tuple[Known, Batches]
    kept = dice.uniform("linkage kept", lanes, 0, 0, 1)[:, 0] < about.keep
    for attribute in range(about.attributes):
        draws = dice.uniform("linkage data", lanes, attribute, 0, 2)
        for time in (0, 1):
            chosen = np.where(kept, draws[:, 0], draws[:, time])
            data: Any = chosen if protocol.kind in ("laplace", "gaussian") else (
                np.minimum((chosen * about.values).astype(np.int64), about.values - 1))  # fmt: skip
            batches[time].append(protocol.report(data, dice, step=2 * attribute + time))
    return batches


def _protocol(about: _Simulation) -> Known:
    from bruit.local_dp.compare import frequency_protocols
    from bruit.local_dp.gaussian_mean import GaussianMean
    from bruit.local_dp.laplace_mean import LaplaceMean

    if about.protocol == "laplace":
        return LaplaceMean(0.0, 1.0, about.epsilon)
    if about.protocol == "gaussian":
        return GaussianMean(0.0, 1.0, about.epsilon)
    known = {one.kind: one for one in frequency_protocols(about.values, about.epsilon)}
    if about.protocol not in known:
        raise ConfigError(f"no protocol {about.protocol!r} reports one of {about.values} values; there are:"
                          f" {', '.join((*known, 'laplace', 'gaussian'))}")  # fmt: skip
    return known[about.protocol]


def _read(files: list[Path]) -> Batches:
    from bruit.local_dp.reports import load_reports

    if len(files) % 2:
        raise ConfigError(f"every attribute is reported twice, so files come in pairs, found {len(files)}: first all of"
                          " the first time, then all of the second in the same order")  # fmt: skip
    found = [load_reports(path) for path in files]
    return found[: len(found) // 2], found[len(found) // 2 :]


def _order(users: int, seed: int) -> Any:
    """A random order of the second batch: rows that tie must not be matched by their place."""
    from bruit.randomness import Replay

    return np.argsort(Replay(seed).words("linkage order", np.arange(users), 0, 0, 1)[:, 0])


def _shuffled(reports: Reports, order: Any) -> Reports:
    from dataclasses import replace

    if len(reports) != len(order):
        raise ConfigError(f"linkage needs the same users both times, found {len(order)} rows in the first reports and"
                          f" {len(reports)} in others; report on the same table both times")  # fmt: skip
    return replace(reports, columns={name: column[order] for name, column in reports.columns.items()})


def _answer(first: list[Reports], success: float, confidence: float) -> dict[str, Any]:
    from bruit.attacks.linked_reports import most_right
    from bruit.audits.membership import rate_interval
    from bruit.local_dp.catalog import protocol_from

    protocols = [protocol_from(reports.protocol) for reports in first]
    n, right = len(first[0]), round(success * len(first[0]))
    spent = sum(protocol.epsilon for protocol in protocols)
    pure = all(protocol.kind != "gaussian" for protocol in protocols)
    # Mistakes are swaps: who is matched wrongly takes another one's place. Two users count as one trial.
    by_chance = 1.0 / math.factorial(min(right, 170))  # E[C(matches, k)] = 1 / k! in a random order
    return {
        "users": n, "attributes": len(first), "protocols": [protocol.kind for protocol in protocols], "right": right,
        "success": success, "interval": list(rate_interval(right / 2, n / 2, confidence)), "confidence": confidence,
        "chance": 1 / n, "p_value": by_chance, "beats_chance": by_chance < 1 - confidence,
        "epsilon_per_report": spent, "epsilon_together": 2 * spent, "level": "user",
        "limit": most_right(n, spent) if pure else None,
        "taxonomy": {"goal": "linkage of two reports of one user", "behaviour": "passive (honest but curious)",
                     "knowledge": "protocol and budget; no names, no data", "view": "all reports (local DP)"},
        "defence": _defence(n, spent, protocols),
    }  # fmt: skip


def _defence(users: int, spent: float, protocols: list[Known]) -> str:
    from bruit.attacks.linked_reports import budget_for

    if users <= TIMES:
        return f"With {users} users everybody is matched by chance; nothing but more users would prevent it."
    budget = budget_for(users, TIMES)
    if spent <= budget and all(protocol.kind != "gaussian" for protocol in protocols):
        return (f"The noise is the defence: epsilon {spent:.3g} for all of a user's second report keeps every attack"
                f" below {TIMES:g} times chance.")  # fmt: skip
    each = budget / len(protocols)
    text = (f"Epsilon {budget:.3g} for all attributes of one report together ({each:.3g} for each of"
            f" {len(protocols)}) instead of {spent:.3g} would keep every attack below {TIMES:g} times chance;"
            f" the same data reported twice costs epsilon {2 * spent:.3g}, so report it once")  # fmt: skip
    if any(protocol.kind == "gaussian" for protocol in protocols):
        text += " (pure epsilon, that of Laplace noise: Gaussian noise has no such limit)"
    return f"{text}."


def _tell(answer: dict[str, Any]) -> None:
    low, high = answer["interval"]
    kinds = ", ".join(dict.fromkeys(answer["protocols"]))
    say(f"{answer['users']} users, {answer['attributes']} attribute(s) by {kinds}, reported twice at epsilon"
        f" {answer['epsilon_per_report']:g} each time")  # fmt: skip
    sure = f"{100 * answer['confidence']:g} % interval"
    say(f"  {answer['right']} matched rightly: {100 * answer['success']:.1f} %, between {100 * low:.1f} and"
        f" {100 * high:.1f} % ({sure}); chance gives {100 * answer['chance']:.2g} %")  # fmt: skip
    if not answer["beats_chance"]:
        say("  this is what chance alone may give")
    if answer["limit"] is not None and answer["limit"] < 0.995:
        say(f"  no attack on one user does better than {100 * answer['limit']:.3g} %")
    say(f"threat: {'; '.join(f'{key}: {value}' for key, value in answer['taxonomy'].items())}")
    say(f"defence: {answer['defence']}")
