"""Linkage of report files, for every protocol of the catalog; bounds on any attack; the command."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from bruit.adversary.attacks.linkage import Responses, link
from bruit.adversary.attacks.linked_reports import (
    _likelihoods,
    budget_for,
    link_reports,
    most_right,
)
from bruit.commands.attacks.attack import attack_app
from bruit.errors import BruitError, ConfigError
from bruit.randomness import Replay
from bruit.statistics.local.gaussian_mean import GaussianMean
from bruit.statistics.local.hadamard_response import HadamardResponse
from bruit.statistics.local.k_ary import KAry
from bruit.statistics.local.laplace_mean import LaplaceMean
from bruit.statistics.local.local_hashing import LocalHashing
from bruit.statistics.local.reports import Reports, save_reports
from bruit.statistics.local.unary_encoding import UnaryEncoding

VALUES, E = 5, 1.3


def sent(protocol, values, step=0):
    return protocol.report(values, Replay(3), step=step)


@pytest.mark.parametrize(
    "protocol",
    [
        KAry(VALUES, E),
        HadamardResponse(VALUES, E),
        UnaryEncoding(VALUES, E),
        LocalHashing(VALUES, E),
    ],
    ids=lambda p: p.kind,
)
def test_likelihoods_are_those_of_the_protocol(protocol):
    """Independent formulas of P(report | x), up to a factor for each report."""
    reports = sent(protocol, np.arange(40) % VALUES)
    found = _likelihoods(protocol, reports)
    p, q = math.exp(E), 1.0
    for user in range(40):
        if protocol.kind == "k-ary":
            law = [p if reports.column("value")[user] == x else q for x in range(VALUES)]
        elif protocol.kind == "hadamard":
            law = [
                q if bin((x + 1) & int(reports.column("index")[user])).count("1") % 2 else p
                for x in range(VALUES)
            ]
        elif protocol.kind == "unary":
            bits = np.unpackbits(reports.column("bits")[user])[:VALUES]
            off = 1 / (1 + math.exp(E))
            law = [
                math.prod(
                    0.5 if v == x else (off if bit else 1 - off) for v, bit in enumerate(bits)
                )
                for x in range(VALUES)
            ]
        else:
            a, b, cell = (int(reports.column(name)[user]) for name in ("a", "b", "cell"))
            law = [
                p if (a * x + b) % (2**31 - 1) % protocol.cells == cell else q
                for x in range(VALUES)
            ]
        np.testing.assert_allclose(
            found[user] / found[user].sum(), np.array(law) / sum(law), rtol=1e-12
        )


def test_k_ary_files_are_linked_as_their_columns():
    rng = np.random.default_rng(0)
    data = rng.integers(0, 4, (30, 3))
    protocol = KAry(4, 2.0)
    first = [sent(protocol, data[:, a], a) for a in range(3)]
    second = [sent(protocol, data[:, a], 10 + a) for a in range(3)]
    columns = [
        np.stack([part.column("value") for part in batch], axis=1).astype(int)
        for batch in (first, second)
    ]
    np.testing.assert_allclose(
        link_reports(first, second).odds, link(*columns, Responses(4, 2.0)).odds, atol=1e-6
    )


@pytest.mark.parametrize(
    "protocol", [LaplaceMean(-2.0, 6.0, 40.0), GaussianMean(-2.0, 6.0, 40.0)], ids=lambda p: p.kind
)
def test_numbers(protocol):
    """Numbers of a wide range with little noise, six attributes: many are matched, where chance is
    1/60.

    The bound of 0.4 was set after Gaussian reports had reached 0.48: it tells linkage from chance,
    nothing finer.
    """
    data = np.random.default_rng(1).uniform(-2, 6, (60, 6))
    first = [sent(protocol, data[:, a], a) for a in range(6)]
    second = [sent(protocol, data[:, a], 10 + a) for a in range(6)]
    order = np.random.default_rng(2).permutation(60)
    shuffled = [replace(part, columns={"value": part.column("value")[order]}) for part in second]
    assert link_reports(first, shuffled).score(np.argsort(order))[0] > 0.4


@pytest.mark.parametrize("data", list(itertools.product((0, 1), repeat=3)))
def test_no_attack_beats_the_limit(data):
    """Three users, one bit each by randomized response, the attacker even knows the data: the best
    guess about user 0, by enumeration of all reports and orders, stays below 1 / (1 + 2 e^(-2
    epsilon))."""
    p = math.exp(0.8) / (1 + math.exp(0.8))
    right = 0.0
    for seen in itertools.product((0, 1), repeat=3):
        chances = [0.0, 0.0, 0.0]  # of user 0 at each place
        for places in itertools.permutations(range(3)):
            law = math.prod(p if seen[places[u]] == data[u] else 1 - p for u in range(3)) / 6
            chances[places[0]] += law
        right += max(chances)
    assert right <= most_right(3, 0.8) + 1e-12


def test_budget():
    for users in (3, 50, 4000):
        assert most_right(users, budget_for(users)) == pytest.approx(2 / users)
    assert budget_for(2) == math.inf
    assert most_right(1, 0.5) == 1.0


def ask(*words):
    found = CliRunner().invoke(attack_app, ["linkage", *map(str, words)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def test_simulated_users():
    """epsilon = 4 for each of 12 attributes gives users away, 0.01 leaves chance."""
    loud = json.loads(
        ask("--users", 80, "--attributes", 12, "--values", 4, "--epsilon-per-report", 4, "--json")
    )
    assert loud["success"] > 0.8
    assert loud["beats_chance"]
    assert loud["chance"] == 1 / 80
    assert loud["interval"][0] < loud["success"] <= loud["interval"][1]
    assert (loud["epsilon_per_report"], loud["epsilon_together"]) == (48, 96)
    assert "Epsilon 0.353 for all attributes" in loud["defence"]  # log(79 / 39) / 2
    quiet = json.loads(
        ask(
            "--users", 80, "--attributes", 12, "--values", 4, "--epsilon-per-report", 0.01, "--json"
        )
    )
    assert not quiet["beats_chance"]
    assert quiet["limit"] == pytest.approx(1 / (1 + 79 * math.exp(-0.24)))
    assert "The noise is the defence" in quiet["defence"]
    changed = json.loads(
        ask(
            "--users",
            80,
            "--attributes",
            12,
            "--values",
            4,
            "--epsilon-per-report",
            4,
            "--keep",
            0,
            "--json",
        )
    )
    assert changed["success"] < 0.1
    noisy = json.loads(ask("--users", 20, "--protocol", "gaussian", "--json"))
    assert noisy["limit"] is None
    assert "Gaussian noise has no such limit" in noisy["defence"]


def test_files(tmp_path):
    """Two attributes, two times; the text names chance, the interval and the defence."""
    data = np.random.default_rng(0).integers(0, 40, 30)
    names = []
    for time in (0, 1):
        for attribute, protocol in enumerate((KAry(40, 7.0), LaplaceMean(0.0, 39.0, 20.0))):
            names.append(tmp_path / f"{attribute}-{time}.csv")
            save_reports(sent(protocol, data, 2 * attribute + time), names[-1])
    text = ask(*names)
    assert (
        "30 users, 2 attributes by k-ary, laplace, reported twice at epsilon 27 each time" in text
    )
    assert "chance gives 3.3 %" in text
    assert "defence: Epsilon 0.364 for all attributes" in text  # log(29 / 14) / 2
    with pytest.raises(ConfigError, match="files come in pairs, found 3"):
        ask(*names[:3])
    with pytest.raises(ConfigError, match="reports of different protocols"):
        ask(names[0], names[1])
    short = tmp_path / "short.csv"
    save_reports(sent(KAry(40, 7.0), data[:9]), short)
    with pytest.raises(ConfigError, match="found 30 rows in the first reports and 9 in others"):
        ask(names[0], short)
    names[2].write_text(names[2].read_text() + "77\n")
    names[0].write_text(names[0].read_text() + "1\n")
    with pytest.raises(ConfigError, match="no possible reports of k-ary"):
        ask(names[0], names[2])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name either files of reports"),
        (("a.csv", "b.csv", "--users", 3), "name either files of reports"),
        (("a.csv", "b.csv"), "there is no file a.csv"),
        (
            ("--users", 20, "--protocol", "telepathy"),
            "no protocol 'telepathy' reports one of 2 values; there are: ",
        ),
        (("--users", 20, "--keep", 3), "--keep is a probability, found 3"),
        (("--users", 20, "--epsilon-per-report=-1"), "epsilon"),
        (("--users", 5000), "at most 4000"),
        (("--users", 20, "--confidence", 3), "confidence is a probability"),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(BruitError, match=message):
        ask(*words)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: link_reports([], []), "found 0 reports of the first time"),
        (
            lambda: link_reports(
                [Reports(KAry(2, 1.0).describe(), {"value": np.zeros(0, int)})] * 1,
                [Reports(KAry(2, 1.0).describe(), {"value": np.zeros(0, int)})],
            ),
            "the same users",
        ),
        (
            lambda: link_reports(*[[sent(KAry(5000, 1.0), np.arange(3))]] * 2),
            "5000 values is too wide",
        ),
        (lambda: most_right(0, 1.0), "needs users"),
        (lambda: budget_for(10, 1.0), "1.0 times chance"),
    ],
)
def test_bad_calls(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
