"""Noise of each peer's own size, from an experiment file to processes that talk."""

import json
from pathlib import Path

import pytest

from tests.e2e import conftest

SIZES = conftest.MEAN.replace("sigma = 1.5", "sigmas = [1, 2.0, 0.5, 1.5, 4.0, 1.0]")


def test_an_experiment_says_the_noise_of_every_peer(bruit):
    Path("x.toml").write_text(SIZES)
    assert bruit("run", "x.toml", "--out", "x.run", "--quiet").code == 0
    said = bruit("epsilon", "x.run", "--of", 4, "--seen-by", 0, "--json").json
    assert (said["spec"], said["status"]) == ("silo:SILO-8", "proven")
    little = bruit("epsilon", "x.run", "--of", 2, "--seen-by", 0, "--json").json
    assert little["epsilon"] > 4 * said["epsilon"]  # an eighth of the noise
    assert bruit("replay", "x.run").code == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sigmas = [1, 2]", "noise of 2 peers, and there are 6"),
        ("sigmas = []", "sigmas"),
        ("sigmas = [1, 1, 1, 1, 1, 0]", "sigmas[5] is 0"),
        ("sigmas = 'x'", "sigmas"),
        ("sigmas = [1, 1, 1, 1, 1, 1]\nsigma = 1", "exactly once"),
        ("sigmas = [1, 1, 1, 1, 1, 1]\nlevel = 'record'", "hides all that it holds"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(bruit, line, words):
    Path("x.toml").write_text(SIZES.replace("sigmas = [1, 2.0, 0.5, 1.5, 4.0, 1.0]", line))
    said = bruit("run", "x.toml")
    assert said.code == 2
    assert words in said.err


@pytest.mark.slow
def test_real_peers_add_their_own_noise_and_one_site_more(bruit, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    text = SIZES.replace("ring:6", "ring:3").replace(", 1.5, 4.0, 1.0]", "]")
    Path("agreed.toml").write_text(text)
    said = bruit("network", "demo", "--peers", 3, "--experiment", "agreed.toml", "--json")
    assert said.code == 0, said.err
    assert said.json["privacy"]["spec"] == "silo:SILO-8"
    assert (
        bruit("network", "init", "--peers", 3, "--experiment", "agreed.toml", "--out", "net").code
        == 0
    )
    site = Path("net/peer-2/site.toml")
    before = site.read_text()
    site.write_text(before + "\n[noise]\nsigma = 0.4\n")
    refused = bruit("peer", "run", site)
    assert refused.code == 2
    assert "others rely on it" in refused.err
    assert "Traceback" not in refused.err
    spent = [report["epsilon"] for report in said.json["reports"]]
    assert spent[2] > spent[0] > spent[1]
    assert json.dumps(said.json)


@pytest.mark.slow
def test_real_peers_run_what_a_plan_of_trust_saved(bruit, monkeypatch):
    """A circle of two and somebody alone: what each learned of peer 0, asked of its own folder with
    the reports of all, is within its cap; alone it says local DP, which passes the cap of 2."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    Path("trust.csv").write_text("of,seen_by,epsilon\n0,1,4\n1,0,4\n")
    planned = bruit(
        "plan", "--trust", "trust.csv", "--peers", 3, "--epsilon", 1, "--save", "plan", "--json"
    )
    assert planned.json["circles"] == [[0, 1]]
    place = ("--experiment", "plan/experiment.toml", "--out", "net")
    said = bruit("network", "demo", "--peers", 3, *place, "--json")
    assert said.code == 0, said.err
    assert (said.json["privacy"]["spec"], said.json["privacy"]["status"]) == (
        "silo:SILO-8",
        "proven",
    )
    reports = [part for u in range(3) for part in ("--report", f"net/peer-{u}/state/report.json")]
    for v, allowed in ((1, 4.0), (2, 1.0)):
        told = bruit("epsilon", "net/peer-0", "--seen-by", v, *reports, "--json").json
        assert 0.5 < told["epsilon"] <= allowed
        assert told["spec"] == "silo:SILO-8"
    alone = bruit("epsilon", "net/peer-0", "--seen-by", 2, "--json").json
    assert alone["epsilon"] > 1.0
