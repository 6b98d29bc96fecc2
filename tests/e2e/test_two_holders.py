"""Two real processes with a table each: the same AUC on both sides, and none that hangs."""

import json
import subprocess
import sys

import numpy as np
import pytest

from bruit.accounts.account import beside
from bruit.accounts.prices import Price
from bruit.peers.wire.identity import Identity
from bruit.tasks.pairs import auc, gini, kendall_tau, u_statistic

pytestmark = pytest.mark.slow
DEADLINE = 120


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(4)
    labels = rng.random(3000) < 0.4
    scores = rng.normal(size=3000) + labels
    for name, part in (("a", slice(0, 1000)), ("b", slice(1000, 3000))):
        Identity.create(name).save(tmp_path / name)
        rows = "".join(
            f"{s!r},{int(y)}\n" for s, y in zip(scores[part].tolist(), labels[part], strict=True)
        )
        (tmp_path / f"{name}.csv").write_text("s,y\n" + rows)
    return tmp_path, auc(scores, labels.astype(float))


AUC = ("auc", "--score", "s", "--label", "y")


def start(folder, me, partner, *words, command=AUC):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "bruit",
            command[0],
            f"{me}.csv",
            *command[1:],
            "--identity",
            me,
            "--partner",
            f"{partner}/certificate.pem",
            *words,
        ],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def listening(folder, *words, command=AUC):
    """Party a, and the address at which it waits."""
    process = start(folder, "a", "b", "--listen", "127.0.0.1:0", *words, command=command)
    said = process.stderr.readline()
    return process, f"127.0.0.1:{said.split()[-1]}"


def test_two_processes_find_one_auc(tables):
    folder, truth = tables
    one, address = listening(folder, "--epsilon", "4")
    other = start(folder, "b", "a", "--with", address, "--epsilon", "4", "--json")
    said, errors = other.communicate(timeout=DEADLINE)
    assert other.returncode == 0, errors
    found = json.loads(said)
    text, errors = one.communicate(timeout=DEADLINE)
    assert one.returncode == 0, errors
    assert f"AUC {found['auc']:.4f}, between" in text
    assert abs(found["raw"] - truth) < 5 * found["error"]
    assert (found["epsilon"], found["bits_per_user"], found["level"], found["delta"]) == (
        4.0,
        1,
        "record",
        0.0,
    )
    assert 3.999 < found["exact_epsilon"] <= 4.0
    assert "semi-honest" in found["against"]
    for name in ("a", "b"):
        paid = beside(folder / f"{name}.csv").balance().charged
        assert [one.price.epsilon for one in paid] == [found["exact_epsilon"]]


@pytest.mark.parametrize(
    ("statistic", "more"),
    [
        ("kendall", ["--points", "s,y"]),
        ("gini", ["--points", "s", "--low", "-4", "--high", "6", "--clamp"]),
    ],
)
def test_two_processes_find_one_statistic_of_pairs(tables, statistic, more):
    """Within 5 standard errors of the union's; both print the same, and both tables are charged."""
    folder, _ = tables
    asked = ["--statistic", statistic, "--epsilon", "8"]
    one, address = listening(folder, *asked, *more, command=["pairwise"])
    other = start(
        folder, "b", "a", "--with", address, *asked, *more, "--json", command=["pairwise"]
    )
    said, errors = other.communicate(timeout=DEADLINE)
    assert other.returncode == 0, errors
    found = json.loads(said)
    text, errors = one.communicate(timeout=DEADLINE)
    assert one.returncode == 0, errors
    assert text.startswith(found["statistic"])
    rows = np.vstack([np.loadtxt(folder / f"{me}.csv", delimiter=",", skiprows=1) for me in "ab"])
    truth = kendall_tau(*rows.T) if statistic == "kendall" else u_statistic(rows[:, 0], gini())
    assert abs(found["raw"] - truth) < 5 * found["error"]
    for name in "ab":
        paid = beside(folder / f"{name}.csv").balance().charged
        assert [one.price.epsilon for one in paid] == [found["exact_epsilon"]]


def test_disagreement_is_told_on_both_sides_and_costs_nothing(tables):
    folder, _ = tables
    one, address = listening(folder, "--epsilon", "4")
    other = start(folder, "b", "a", "--with", address, "--epsilon", "3")
    for process, message in ((one, "epsilon = '3.0', we with 4.0"), (other, "hung up")):
        _, errors = process.communicate(timeout=DEADLINE)
        assert process.returncode == 2
        assert message in errors
    assert not list(folder.glob("*.account.jsonl"))


def test_a_limit_is_kept_and_the_partner_is_not_left_waiting(tables):
    """The limit is passed by another question that was paid for meanwhile; one that is above it from
    the first waits for nobody."""
    folder, _ = tables
    one, address = listening(folder, "--epsilon", "4", "--limit", "5")
    meanwhile = Price.stated("another question", 3.0, 0.0, "record", "somebody else")
    beside(folder / "a.csv").charge(meanwhile)
    other = start(folder, "b", "a", "--with", address, "--epsilon", "4")
    _, errors = one.communicate(timeout=DEADLINE)
    assert one.returncode == 2
    assert "above the limit 5" in errors
    _, errors = other.communicate(timeout=DEADLINE)
    assert other.returncode == 2
    assert "the other holder hung up" in errors or "broke" in errors
