"""Whatever ends a demonstration, none of its processes outlives it, and nothing is left in the
temporary folder."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.villages import DEADLINE, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc"),
]


def parents():
    """Everybody's parent, by number."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if words[0] != "Z":
            found[int(stat.parent.name)] = int(words[1])
    return found


def descendants(pid):
    known, found = parents(), {pid}
    while more := {child for child, parent in known.items() if parent in found} - found:
        found |= more
    return found - {pid}


@pytest.fixture
def demonstration(tmp_path):
    """A demonstration with all of its peers at work, and its temporary folder."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "x.toml").write_text(
        'graph = "ring:3"\nsteps = 100000\n[task]\nkind = "mean"\n[algorithm]\n'
        'name = "gossip-sgd"\n[privacy]\nsigma = 1.0\n'
    )
    command = [
        sys.executable,
        "-m",
        "bruit",
        "network",
        "demo",
        "--peers",
        "3",
        "--experiment",
        "x.toml",
        "--quiet",
    ]
    with open(tmp_path / "said.txt", "wb") as said:
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(tmp_path / "scratch")},
        )
    try:
        until(
            lambda: (
                len(list(tmp_path.glob("scratch/*/network/*/state/status.json"))) == 3
                or process.poll() is not None
            ),
            "all peers at work",
        )
        assert process.poll() is None, (tmp_path / "said.txt").read_text()
        yield process, tmp_path
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)]
)
def test_no_peer_outlives_a_demonstration_that_was_ended(demonstration, number, code):
    process, folder = demonstration
    family = descendants(process.pid)
    assert len(family) == 4  # the nursery and three peers
    process.send_signal(number)
    assert process.wait(DEADLINE) == code
    until(lambda: not family & parents().keys(), "the end of all peers")
    if number != signal.SIGKILL:
        assert list((folder / "scratch").iterdir()) == []


def test_a_demonstration_whose_nursery_is_killed_ends_with_a_sentence_and_leaves_nobody(
    demonstration,
):
    process, folder = demonstration
    family = descendants(process.pid)
    (nursery,) = [pid for pid, parent in parents().items() if parent == process.pid]
    os.kill(nursery, signal.SIGKILL)
    assert process.wait(DEADLINE) == 2
    until(lambda: not family & parents().keys(), "the end of all peers")
    assert "ended with code -9" in (folder / "said.txt").read_text()


def test_forty_peers_in_two_processes_miss_nobody(bruit):
    said = bruit("network", "demo", "--peers", 40, "--peers-per-process", 20, "--json")
    reports = said.json["reports"]
    assert [one["missed"] for one in reports] == [0] * 40
    assert all(one["done"] for one in reports)
