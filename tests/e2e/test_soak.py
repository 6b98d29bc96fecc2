"""A soak: the attack of `python -m benchmarks.reliability`, with its small counts.

Real peers are killed and started again, sent hostile frames and posts, besieged with idle
connections and watched in a long run. The command says itself whether everything held.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.reliability.__main__ import QUESTIONS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_counted_for_the_record_holds(question):
    if question == "posts":
        pytest.importorskip("coincurve", reason="the extra 'verify' is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.reliability", "--json", question],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3600,  # only a failure takes that long
        check=False,
    )
    counts = json.loads(done.stdout)
    assert [one for one in counts if not one["held"]] == [], done.stderr[-2000:]
    assert len(counts) >= 5
    assert done.returncode == 0
