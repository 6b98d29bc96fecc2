"""How well linkage does: users who report twice, real or simulated, and how often their reports are
matched rightly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bruit.adversary.attacks.linked_reports import budget_for, link_reports, most_right
from bruit.adversary.audits.membership import rate_interval
from bruit.errors import ConfigError
from bruit.randomness import Replay
from bruit.statistics.local.catalog import Known, protocol_from
from bruit.statistics.local.compare import frequency_protocols
from bruit.statistics.local.gaussian_mean import GaussianMean
from bruit.statistics.local.laplace_mean import LaplaceMean
from bruit.statistics.local.reports import Reports, load_reports

Batches = tuple[list[Reports], list[Reports]]
TIMES = 2.0  # the defence keeps every attack below so many times chance


def matched_again(first: list[Reports], second: list[Reports], keep: float, seed: int) -> float:
    """The share of users whose reports of two times are matched, the second ones in random
    order."""
    order = _order(len(first[0]), seed)
    linked = link_reports(first, [_shuffled(reports, order) for reports in second], keep)
    return linked.score(np.argsort(order))[0]


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Users whose data is uniform, reported twice."""

    users: int
    attributes: int
    values: int
    epsilon: float
    protocol: str
    keep: float
    seed: int


def simulated(about: Simulation) -> Batches:
    """Data and reports from addressed draws; data is drawn anew for those who do not keep it."""
    if not 0 <= about.keep <= 1:
        raise ConfigError(f"--keep is a probability, found {about.keep}")
    dice, lanes = Replay(about.seed), np.arange(about.users)
    protocol, batches = _protocol(about), ([], [])  # type: tuple[Known, Batches]
    kept = dice.uniform("linkage kept", lanes, 0, 0, 1)[:, 0] < about.keep
    for attribute in range(about.attributes):
        draws = dice.uniform("linkage data", lanes, attribute, 0, 2)
        for time in (0, 1):
            chosen = np.where(kept, draws[:, 0], draws[:, time])
            data: Any = (
                chosen
                if protocol.kind in ("laplace", "gaussian")
                else (np.minimum((chosen * about.values).astype(np.int64), about.values - 1))
            )
            batches[time].append(protocol.report(data, dice, step=2 * attribute + time))
    return batches


def _protocol(about: Simulation) -> Known:
    if about.protocol == "laplace":
        return LaplaceMean(0.0, 1.0, about.epsilon)
    if about.protocol == "gaussian":
        return GaussianMean(0.0, 1.0, about.epsilon)
    known = {one.kind: one for one in frequency_protocols(about.values, about.epsilon)}
    if about.protocol not in known:
        raise ConfigError(
            f"no protocol {about.protocol!r} reports one of {about.values} values; there are:"
            f" {', '.join((*known, 'laplace', 'gaussian'))}"
        )
    return known[about.protocol]


def read_twice(files: list[Path]) -> Batches:
    """Files of reports: those of the first time, then those of the second."""
    if len(files) % 2:
        raise ConfigError(
            f"every attribute is reported twice, so files come in pairs, found {len(files)}:"
            " first all of the first time, then all of the second in the same order"
        )
    found = [load_reports(path) for path in files]
    return found[: len(found) // 2], found[len(found) // 2 :]


def _order(users: int, seed: int) -> Any:
    """A random order of the second batch: rows that tie must not be matched by their place."""
    return np.argsort(Replay(seed).words("linkage order", np.arange(users), 0, 0, 1)[:, 0])


def _shuffled(reports: Reports, order: Any) -> Reports:
    if len(reports) != len(order):
        raise ConfigError(
            f"linkage needs the same users both times, found {len(order)} rows in the first reports"
            f" and {len(reports)} in others; report on the same table both times"
        )
    return replace(
        reports, columns={name: column[order] for name, column in reports.columns.items()}
    )


def linkage_summary(first: list[Reports], success: float, confidence: float) -> dict[str, Any]:
    """How often the matching was right, how often chance or any attack would be, and what would
    prevent it."""
    protocols = [protocol_from(reports.protocol) for reports in first]
    n, right = len(first[0]), round(success * len(first[0]))
    spent = sum(protocol.epsilon for protocol in protocols)
    pure = all(protocol.kind != "gaussian" for protocol in protocols)
    # Mistakes are swaps: who is matched wrongly takes another one's place. Two users count as one
    # trial.
    by_chance = 1.0 / math.factorial(min(right, 170))  # E[C(matches, k)] = 1 / k! in a random order
    return {
        "users": n,
        "attributes": len(first),
        "protocols": [protocol.kind for protocol in protocols],
        "right": right,
        "success": success,
        "interval": list(rate_interval(right / 2, n / 2, confidence)),
        "confidence": confidence,
        "chance": 1 / n,
        "p_value": by_chance,
        "beats_chance": by_chance < 1 - confidence,
        "epsilon_per_report": spent,
        "epsilon_together": 2 * spent,
        "level": "user",
        "limit": most_right(n, spent) if pure else None,
        "taxonomy": {
            "goal": "linkage of two reports of one user",
            "behaviour": "passive (honest but curious)",
            "knowledge": "protocol and budget; no names, no data",
            "view": "all reports (local DP)",
        },
        "defence": _defence(n, spent, protocols),
    }


def _defence(users: int, spent: float, protocols: list[Known]) -> str:
    if users <= TIMES:
        return f"With {users} users everybody is matched by chance; nothing but more users would prevent it."
    budget = budget_for(users, TIMES)
    if spent <= budget and all(protocol.kind != "gaussian" for protocol in protocols):
        return (
            f"The noise is the defence: epsilon {spent:.3g} for all of a user's second report keeps"
            f" every attack below {TIMES:g} times chance."
        )
    each = budget / len(protocols)
    text = (
        f"Epsilon {budget:.3g} for all attributes of one report together ({each:.3g} for each of"
        f" {len(protocols)}) instead of {spent:.3g} would keep every attack below {TIMES:g} times"
        f" chance; the same data reported twice costs epsilon {2 * spent:.3g}, so report it once"
    )
    if any(protocol.kind == "gaussian" for protocol in protocols):
        text += " (pure epsilon, that of Laplace noise: Gaussian noise has no such limit)"
    return f"{text}."
