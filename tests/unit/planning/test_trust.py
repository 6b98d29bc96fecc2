"""Unequal trust: a graph and a noise per peer under which every cap holds, against brute force."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError, PrivacyError
from bruit.graphs import grid, ring, star
from bruit.planning.trust import exposed, plan_trust, read_trust
from bruit.privacy.exact.krylov import leverage, row_space
from bruit.privacy.exact.rows import linear_gaussian, sequence_rows
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.runs.build import build
from bruit.runs.file import located, parse


def clusters(n=9, inside=4.0, outside=0.5):
    caps = np.full((n, n), outside)
    for first in range(0, n, 3):
        caps[first : first + 3, first : first + 3] = inside
    np.fill_diagonal(caps, np.nan)
    return caps


@pytest.mark.parametrize("graph", [grid(3, 3), ring(8), star(6)], ids=lambda graph: graph.name)
def test_the_row_space_gives_the_exact_loss(graph):
    for v in range(graph.n):
        basis = row_space(graph, [v], 4)
        assert np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)
        assert np.allclose((basis**2).sum(axis=1), leverage(graph, [v], 4).loss, atol=1e-8)


def test_every_cap_holds_against_an_independent_computation():
    # gossip:LG-1 with unequal noise: mu^2 = a_u^T (K D^2 K^T)^+ a_u, computed from the stacked rows
    # of the powers.
    caps = clusters()
    found = plan_trust(caps)
    assert not exposed(found, caps).any()
    rounds = min(
        found.steps, 6
    )  # few enough powers for the plain computation; more rounds only tell more
    for v in range(9):
        at = found.graph.at if found.circles else lambda t: found.graph
        rows = sequence_rows(at, 9, rounds, [v]).values
        energy = linear_gaussian(rows, rows * found.multipliers)
        for u in range(9):
            if u != v:
                assert epsilon_of(float(np.sqrt(energy[u])), 1e-6) <= caps[u, v] * (1 + 1e-6)


def test_trust_is_worth_something():
    found = plan_trust(clusters())
    assert found.error < 0.95 * found.local_error
    assert found.local_error <= found.equal_error
    equal = np.full((6, 6), 1.0)
    np.fill_diagonal(equal, np.nan)
    flat = plan_trust(equal)
    assert flat.error == pytest.approx(
        flat.local_error, rel=3e-4
    )  # a neighbor hears the value: nothing to gain, and a little is added for rounding


def test_csv_in_json_out(tmp_path):
    file = tmp_path / "trust.csv"
    rows = ["of,seen_by,epsilon"] + [f"{u},{v},4" for u in range(3) for v in range(3) if u != v]
    file.write_text("\n".join(rows) + "\n")
    ran = CliRunner().invoke(
        app,
        [
            "plan",
            "--trust",
            str(file),
            "--epsilon",
            "0.5",
            "--peers",
            "6",
            "--json",
            "--save",
            str(tmp_path / "out"),
        ],
    )
    assert ran.exit_code == 0, ran.output
    about = json.loads(ran.output)
    assert {"noise_multiplier", "status", "predicted", "alternatives", "edges"} <= set(about)
    assert len(about["noise_multipliers"]) == 6
    assert about["tightest"] <= 1 + 1e-9
    assert about["status"] == "proven"
    assert len(np.loadtxt(tmp_path / "out" / "edges.txt")) == len(about["edges"])
    saved = tmp_path / "out" / "experiment.toml"
    run = build(parse(located(saved.read_text(), saved.parent), str(saved))).run()
    assert run.guarantee(of=0, seen_by=1).spec == "silo:SILO-8"
    for u, v in ((0, 1), (0, 5), (5, 0), (4, 3)):
        assert run.epsilon(of=u, seen_by=v) <= (4 if max(u, v) < 3 else 0.5)
    assert (
        "every cap holds"
        in CliRunner().invoke(app, ["plan", "--trust", str(file), "--peers", "6"]).output
    )


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("a,b\n1,2\n", ConfigError, "lacks epsilon, of, seen_by"),
        ("of,seen_by,epsilon\n1,1,2\n", PrivacyError, "line 2: peer 1 has no secrets from itself"),
        ("of,seen_by,epsilon\n0,1,x\n", ConfigError, "line 2: of and seen_by are peers"),
        ("of,seen_by,epsilon\n0,1,-1\n", PrivacyError, "epsilon is positive"),
        ("of,seen_by,epsilon\n0,9,1\n", ConfigError, "there is no peer 9"),
        ("", ConfigError, "needs the columns"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, error, words):
    file = tmp_path / "trust.csv"
    file.write_text(text)
    with pytest.raises(error, match=words):
        read_trust(file, 1.0, 4)


def test_bad_caps_are_refused():
    with pytest.raises(PrivacyError, match="positive epsilon"):
        plan_trust(np.zeros((3, 3)))
    with pytest.raises(ConfigError, match="2 to 128 peers"):
        plan_trust(np.ones((1, 1)))


@pytest.mark.parametrize("open_peers", [(0, 1, 2, 3), (2,)])
def test_who_hides_nothing_from_anybody_is_told_so(open_peers):
    """Of all it was told what horizon Muffliato needs; of one, to raise the smallest caps."""
    caps = np.ones((4, 4))
    caps[list(open_peers)] = np.inf
    with pytest.raises(PrivacyError, match=f"peer {open_peers[0]} hides nothing from anybody"):
        plan_trust(caps)
    caps[list(open_peers)] = 1000.0
    assert np.all(plan_trust(caps).multipliers > 0)
