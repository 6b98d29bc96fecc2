"""Local DP at scale: a histogram of ten million reports, and the AUC of a million users on a
million bins."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import Answer, Goal, main
from bruit.randomness import Replay
from bruit.statistics.local import KAry, PrivateAuc, load_reports, save_reports

VALUES = 100


def measure(quick: bool = False) -> Answer:
    answer = Answer("how fast are local reports and their estimates?", quick)
    users = 10**5 if quick else 10**6
    _histogram(answer, 10 * users)
    _auc(answer, users, 14 if quick else 20)
    return answer


def _histogram(answer: Answer, users: int) -> None:
    """Values to reports, reports to a file and back, file to shares; against counting the bare
    values."""
    values, protocol = np.random.default_rng(0).integers(0, VALUES, users), KAry(VALUES, 1.0)
    protocol.report(values[: 2**16], Replay(1))  # compiles the draws
    begin = time.perf_counter()
    np.bincount(values, minlength=VALUES)
    floor = time.perf_counter() - begin
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.npz"
        save_reports(protocol.report(values, Replay(0)), path)
        reported = time.perf_counter() - begin
        protocol.estimate(load_reports(path))
    seconds = time.perf_counter() - begin
    answer.add(f"floor: counting {users:.0e} bare values", floor, "s")
    answer.add("K-ary reports, made and written", reported, "s")
    answer.add("read, checked and estimated", seconds - reported, "s")
    answer.goals.append(
        Goal(f"K-ary histogram of {users:.0e} reports, end to end: seconds", seconds, 5)
    )


def _auc(answer: Answer, users: int, levels: int) -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(users) < 0.3).astype(np.int64)
    bins = (np.clip(rng.normal(0.45 + 0.17 * labels, 0.12), 0, 1 - 1e-9) * 2**levels).astype(
        np.int64
    )
    asked = PrivateAuc(levels, 1.0, ties="half")
    begin = time.perf_counter()
    signs = asked.report(bins, Replay(0))
    reported = time.perf_counter() - begin
    asked.estimate(signs, labels)
    seconds = time.perf_counter() - begin
    most = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    )  # KiB on Linux, of the whole process
    answer.add(f"private AUC: {users:.0e} reports", reported, "s")
    answer.add(
        f"private AUC: trees of 2**{levels} bins, estimate, interval", seconds - reported, "s"
    )
    answer.add("peak memory of the process", most, "GiB")
    answer.goals += [
        Goal(f"private AUC, {users:.0e} users and 2**{levels} bins: seconds", seconds, 30),
        Goal("peak memory: GiB", most, 2),
    ]


if __name__ == "__main__":
    main(measure)
