"""The aggregator's side of local DP: what files of reports, of several holders, say together.

Impossible reports are counted and left out; an answer that noise drowns comes with a note that says
so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.statistics.local.auc_reports import ScoreReports, pool
from bruit.statistics.local.catalog import protocol_from
from bruit.statistics.local.private_auc import predicted_error, users_needed
from bruit.statistics.local.protocol import FrequencyProtocol
from bruit.statistics.local.reports import Reports, load_reports, merge
from bruit.statistics.tables import AGAINST, PROTECTS, too_few


def estimated(files: list[Path], confidence: float = 0.95) -> dict[str, Any]:
    """Shares, a mean, or an AUC with its interval, as plain data."""
    parts = [load_reports(path) for path in files]
    if any(part.protocol.get("kind") == ScoreReports.kind for part in parts):
        return _pooled_auc(parts, confidence)
    return _shares_or_mean(parts, confidence)


def _pooled_auc(parts: list[Reports], confidence: float) -> dict[str, Any]:
    pooled = pool(parts)
    found, agreed = pooled.estimate(confidence), pooled.agreed
    users = found.positives + found.negatives
    notes = []
    if pooled.missing:
        notes.append(
            f"{pooled.missing} reports that the files announce are not there:"
            " a file was cut off; ask its holder for it again"
        )
    if predicted_error(found.positives, found.negatives, agreed.levels, agreed.epsilon) > 0.5:
        notes.append(
            too_few(users, agreed.epsilon, users_needed(found.positives / users, agreed.epsilon))
        )
    return {
        "auc": found.value,
        "interval": [found.low, found.high],
        "confidence": confidence,
        "error": found.error,
        "raw": found.raw,
        "epsilon": agreed.epsilon,
        "delta": 0.0,
        "level": "user",
        "against": AGAINST,
        "bits_per_user": 1,
        "users": users,
        "positives": found.positives,
        "negatives": found.negatives,
        "bins": 1 << agreed.levels,
        "protects": PROTECTS,
        "protocol": agreed.kind,
        "files": len(parts),
        "reports": users,
        "refused": pooled.refused,
        "missing": pooled.missing,
        "note": "; ".join(notes),
    }


def _shares_or_mean(parts: list[Reports], confidence: float) -> dict[str, Any]:
    reports = merge(parts)
    protocol = protocol_from(reports.protocol)
    about: dict[str, Any] = {
        "protocol": protocol.kind,
        "epsilon": protocol.epsilon,
        "delta": float(protocol.describe().get("delta", 0.0)),
        "level": "user",
        "against": AGAINST,
        "confidence": confidence,
        "bits_per_user": protocol.bits(),
    }
    if isinstance(protocol, FrequencyProtocol):
        return about | _shares(protocol, reports, confidence)
    found = protocol.estimate(reports, confidence)
    wide = protocol.high - protocol.low
    blind = found.error > wide / 2
    note = (
        too_few(found.reports, protocol.epsilon, protocol.users_needed(wide / 10)) if blind else ""
    )
    return about | {
        "reports": found.reports,
        "refused": found.refused,
        "mean": found.value,
        "error": found.error,
        "interval": [found.low, found.high],
        "note": note,
    }


def _shares(protocol: FrequencyProtocol, reports: Reports, confidence: float) -> dict[str, Any]:
    found = protocol.estimate(reports, confidence)
    labels = reports.labels or tuple(str(value) for value in range(protocol.k))
    if len(labels) != protocol.k:
        raise ConfigError(
            f"these reports name {len(labels)} values, but their protocol has {protocol.k};"
            " the file was damaged"
        )
    rows = zip(
        labels,
        *(part.tolist() for part in (found.shares, found.errors, found.low, found.high)),
        strict=True,
    )
    shares = [
        {"value": label, "share": share, "error": error, "interval": [low, high]}
        for label, share, error, low, high in rows
    ]
    blind = protocol.variance(0.0, found.reports) > 0.25
    note = too_few(found.reports, protocol.epsilon, protocol.users_needed(0.1)) if blind else ""
    return {"reports": found.reports, "refused": found.refused, "shares": shares, "note": note}
