"""The statement of a real peer: read from its state folder, against an independent composition; what
was changed afterwards is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.peers.journal.step import Spend
from bruit.peers.site.running import last_line, write_report
from bruit.peers.site.signed_report import signed
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.identity import Identity
from bruit.privacy.events import GaussianEvent
from bruit.privacy.profile import GaussianProfile
from bruit.runs.model import FILE as MODEL
from bruit.show.statement.pages import Residual, dpia_page
from bruit.show.statement.paper_facts import paper_facts
from tests.unit.peers.small_network import found_small, live_together


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sites: list[Path] = found_small(tmp_path_factory.mktemp("three"))
    live_together(sites)
    return sites[0]


@pytest.fixture
def changed(site: Path) -> object:
    """Put every file back afterwards."""
    held = {path: path.read_bytes() for path in site.parent.rglob("*") if path.is_file()}
    yield site
    for path in site.parent.rglob("*"):
        if path.is_file() and path not in held:
            path.unlink()
    for path, content in held.items():
        path.write_bytes(content)


def test_its_epsilon_is_that_of_its_releases(site: Path) -> None:
    facts = paper_facts(site)
    mu = 6**0.5 * 2.0 / 1.5  # six releases of a value of norm 1 at most, replaced: 2 / 1.5 each
    assert facts.mu() == (pytest.approx(mu, rel=1e-6), True)
    assert facts.epsilon == pytest.approx(GaussianProfile(mu).epsilon(1e-6), rel=1e-6)
    assert (facts.releases, facts.peers, facts.level) == (6, 3, "user")
    assert facts.protected
    assert not facts.simulated
    assert all(done for done, _ in facts.lines[:3])
    assert vars(paper_facts(site.parent / "state"))["epsilon"] == facts.epsilon


def test_its_model_and_its_report_name_the_same_run(site: Path) -> None:
    facts, state = paper_facts(site), site.parent / "state"
    model, report = (json.loads((state / name).read_text()) for name in (MODEL, "report.json"))
    assert [model["made"][key] for key in ("run", "config", "ledger")] == [
        facts.run,
        facts.config,
        facts.ledger,
    ]
    assert model["privacy"]["epsilon"] == report["epsilon"] == pytest.approx(facts.epsilon)
    assert facts.why.startswith(f"epsilon = {facts.epsilon:.6g} at delta = 1e-06: 6 releases")


def test_the_command_writes_three_pages_that_are_no_simulation(site: Path, tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["statement", str(site), "--out", str(tmp_path), "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.output)["simulated"] is False
    for name in ("registry.yaml", "nist-sp-800-226.md", "dpia-annex.md"):
        text = (tmp_path / name).read_text()
        assert "simulation" not in text.lower()
        assert paper_facts(site).ledger in text or name.startswith("nist")
    assert "The other peers (2), and" in text  # of three: it said 3
    assert "server" not in (tmp_path / "registry.yaml").read_text()  # some algorithms have one
    assert (
        "| algorithm and its correctness | checked | the report is signed by peer-0"
        in (tmp_path / "nist-sp-800-226.md").read_text()
    )


@pytest.mark.parametrize(
    ("file", "old", "new", "refusal"),
    [
        ("state/report.json", '"epsilon": 20', '"epsilon": 2', "has not signed this"),
        ("state/model.json", '"run": "', '"run": "0', "model.json is of run 0"),
        ("state/model.json", '"ledger": "', '"ledger": "0', "are of another moment"),
        ("experiment.toml", "sigma = 1.5", "sigma = 9.5", "was changed after the run"),
    ],
)
def test_what_was_changed_after_the_run_is_refused(
    changed: Path, file: str, old: str, new: str, refusal: str
) -> None:
    path = changed.parent / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=refusal):
        paper_facts(changed)


def test_a_journal_that_went_on_after_the_report_is_not_told_as_less(tmp_path: Path) -> None:
    sites = found_small(tmp_path)
    one = participant(read_site(sites[0]))
    write_report(one)  # before anything was said
    one.host.journal.close()
    facts = paper_facts(sites[0])
    assert (facts.releases, facts.epsilon, facts.mu()) == (0, 0.0, (0.0, True))
    early = (sites[0].parent / "state" / "report.json").read_bytes()
    live_together(sites)
    (sites[0].parent / "state" / "report.json").write_bytes(early)
    with pytest.raises(ConfigError, match=r"holds 6 releases, .* another moment \(0 releases\)"):
        paper_facts(sites[0])


def test_whom_it_missed_is_not_checked_off_and_a_rehearsal_protects_nobody(tmp_path: Path) -> None:
    sites = found_small(tmp_path)
    people, _ = live_together(sites, rehearse=1)
    facts = paper_facts(sites[0])
    assert facts.simulated
    assert not facts.protected
    people[0].host.gave_up = "gave up, for a test"
    write_report(people[0])
    problems = json.loads((sites[0].parent / "state" / "report.json").read_text())["problems"]
    assert problems
    assert (False, f"the peer ended as asked: it did NOT: {'; '.join(problems)}") in paper_facts(
        sites[0]
    ).lines


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, (True, "ended as asked, and missed none of its neighbors")),
        (
            {"complete": False, "notes": ["without peer-2 in 6 exchanges, as wait_for allows"]},
            (True, "was NOT with all of its neighbors: without peer-2 in 6 exchanges"),
        ),
        ({"missed": 2}, (True, "NOT with all of its neighbors: it missed somebody for a while")),
        (
            {"missed_elsewhere": True, "notes": ["elsewhere somebody was missed"]},
            (True, "NOT with all of its neighbors: elsewhere somebody was missed"),
        ),
        (
            {"done": False, "step": 3},
            (False, "it has NOT ended, this is what it released by 3 of 6"),
        ),
    ],
)
def test_whom_a_peer_was_without_is_said_though_that_was_allowed(
    changed: Path, changes: dict[str, object], said: tuple[bool, str]
) -> None:
    """`wait_for` allowed to be without a neighbor, or the peer was stopped in the middle: the paper
    said "checked: ended as asked, and missed nobody"."""
    path = changed.parent / "state" / "report.json"
    report = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps(signed(report, Identity.load(changed.parent))))
    done, words = paper_facts(changed).lines[2]
    assert done is said[0]
    assert said[1] in words


@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_the_why_is_that_of_the_epsilon_beside_it(site: Path, delta: float) -> None:
    facts = paper_facts(site, delta)
    assert facts.why.startswith(f"epsilon = {facts.epsilon:.6g} at delta = {delta:g}: 6 releases")
    assert "6 x kind gaussian, noise_multiplier 0.75" in facts.why


RECORDS = """
graph = "complete:3"
steps = 2

[task]
kind = "logistic"
data = "breast_cancer"
split = "iid"

[algorithm]
name = "gossip-sgd"

[privacy]
level = "record"
adjacency = "add-remove"
divisor = 50.0
capacity = 1000
sigma = 20.0
"""


def test_an_epsilon_of_records_says_of_which_and_what_it_rests_on(tmp_path: Path) -> None:
    """Status, report, last line and statement: the level, how records differ, and what is assumed."""
    sites = found_small(tmp_path, RECORDS)
    chosen, reports = live_together(sites)
    assert {(one["level"], one["adjacency"]) for one in reports} == {("record", "add-remove")}
    assert "(record level, one record added or removed)" in last_line(chosen[0])
    assumed = [text for done, text in paper_facts(sites[0]).lines if not done]
    assert any("declared without looking at how many records" in text for text in assumed)
    assert any("how long an answer takes" in text for text in assumed)


def test_what_nobody_knows_is_infinite_for_one_record_and_for_many(changed: Path) -> None:
    """An old copy of a journal says less than was released, of persons with many records too."""
    path = changed.parent / "state" / "report.json"
    report = {**json.loads(path.read_text()), "epsilon": math.inf, "old_copy": True}
    path.write_text(json.dumps(signed(report, Identity.load(changed.parent))))
    facts = replace(paper_facts(changed), level="record")
    assert facts.status == "unknown: the journal is an old copy"
    assert [facts.of_person(k) for k in (1, 2)] == [math.inf, math.inf]
    assert "| 1 | inf |" in dpia_page(facts, Residual(), (2,))


def test_little_noise_is_no_old_copy(changed: Path) -> None:
    """Where noise is so little that no float holds its epsilon, the paper said of a sound journal that
    it was an old copy."""
    path = changed.parent / "state" / "report.json"
    report = json.loads(path.read_text())
    assert report["old_copy"] is False
    path.write_text(
        json.dumps(signed({**report, "epsilon": math.inf}, Identity.load(changed.parent)))
    )
    facts = paper_facts(changed)
    assert (facts.status, facts.epsilon, facts.protected) == ("proven", math.inf, False)
    assert facts.lines[0][0]


def test_without_its_model_nobody_knows_what_a_peer_protects(changed: Path) -> None:
    (changed.parent / "state" / MODEL).unlink()
    with pytest.raises(ConfigError, match="does not say what is protected"):
        paper_facts(changed)


def test_releases_in_floats_are_ideal(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [Spend(0, step, step, GaussianEvent(0.75).to_json()) for step in range(6)]
    named = "bruit.show.statement.paper_facts"
    monkeypatch.setattr(f"{named}.recorded_spend", lambda _: lines)
    monkeypatch.setattr(f"{named}._ledger_digest", lambda _: named_ledger(site))
    assert paper_facts(site).status == "ideal"


def named_ledger(site: Path) -> str:
    """The digest that the model names."""
    return str(json.loads((site.parent / "state" / MODEL).read_text())["made"]["ledger"])
