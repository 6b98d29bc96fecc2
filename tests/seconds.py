"""`-p tests.seconds` tells the seconds of processor that tests took, files and tests (`make slowest`).

On a machine that does other things, seconds of processor say more than those of a clock. They are
those of the worker and of the processes that it started and that had ended when the test did.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

SHOWN = 30
BEGAN = pytest.StashKey[float]()


def used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    item.stash[BEGAN] = used()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "teardown":
        report.seconds = used() - item.stash[BEGAN]
    return report


def pytest_terminal_summary(terminalreporter):
    tests = Counter()
    files = Counter()
    for report in (one for kind in terminalreporter.stats.values() for one in kind):
        if seconds := getattr(report, "seconds", 0.0):
            tests[report.nodeid] += seconds
            files[report.nodeid.partition("::")[0]] += seconds
    terminalreporter.section(f"{sum(files.values()):.0f} seconds of processor")
    for table in (files, tests):
        for name, seconds in table.most_common(SHOWN):
            terminalreporter.line(f"{seconds:8.2f}  {name}")
        terminalreporter.line("")
