"""`bruit statement`: what a run promised, on paper, and nothing more."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.events import BoundedEvent, GaussianEvent, LaplaceEvent, SampledGaussianEvent
from bruit.privacy.formulas.group import group_epsilon, mu_like, mu_of
from bruit.privacy.profile import EventsProfile, GaussianProfile, StatementProfile
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.show.statement.pages import nist
from bruit.show.statement.paper_facts import paper_facts
from bruit.show.statement.registry import check_entry, registry_entry, to_yaml

TEXT = """graph = "ring:4"
seed = 7
steps = 3
[task]
kind = "mean"
[algorithm]
name = "averaging"
[privacy]
mechanism = "gaussian"
clip = 1.0
sigma = 4.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = build(parse(TEXT), TEXT).run()
    return run.save(tmp_path_factory.mktemp("runs") / "a.run")


def test_a_simulation_says_that_it_is_one_in_every_file(folder: Path, tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["statement", str(folder), "--out", str(tmp_path), "--json"])
    assert said.exit_code == 0, said.output
    found = json.loads(said.output)
    assert found["simulated"]
    for name in ("registry.yaml", "nist-sp-800-226.md", "dpia-annex.md"):
        assert "simulation" in (tmp_path / name).read_text().lower(), name
    page = (tmp_path / "nist-sp-800-226.md").read_text()
    for block in (
        "epsilon",
        "unit of privacy",
        "utility",
        "bias",
        "trust model",
        "data collection",
    ):
        assert f"| {block} |" in page
    assert {"checked", "assumed", "not covered"} <= found["lines"].keys()
    assert found["mu_exact"] is True or found["mu"] > 0
    assert found["status"] == "proven"


def test_what_was_read_off_rows_is_told_as_covered_by_no_epsilon(tmp_path: Path) -> None:
    text = (
        'graph = "complete:4"\nsteps = 2\n[task]\nkind = "logistic"\ndata = "breast_cancer"\n'
        '[algorithm]\nname = "gossip-sgd"\n[privacy]\nsigma = 1.0\n'
    )
    run = build(parse(text), text).run()
    found = list(nist(paper_facts(run.save(tmp_path / "a.run"))))
    known = {(mark, told) for block, mark, told in found if block == "known besides the messages"}
    read = [one for one in run.task["public"] if one["from"] != "agreed"]
    assert {one["from"] for one in read} == {"private rows", "public rows"}
    assert known == {
        ("not covered", f"from {one['from']}: {one['fact']} (no epsilon covers it)") for one in read
    }


def test_the_entry_fits_the_schema_and_what_does_not_is_named(folder: Path) -> None:
    entry = registry_entry(paper_facts(folder), {"curator": 'A "B": c'}, "")
    assert entry["tier"] == 3
    assert 'data_curators:\n      - "A \\"B\\": c"\n' in to_yaml(entry)
    for field, wrong in (("tier", 0), ("status", "Done"), ("surprise", 1)):
        with pytest.raises(ConfigError, match=field):
            check_entry({**entry, field: wrong})
    entry["deployment"]["basic"]["publication_date"] = "1/1/2026"
    with pytest.raises(ConfigError, match="publication_date"):
        check_entry(entry)


def test_fields_that_people_must_fill_in_are_named_until_they_are(
    folder: Path, tmp_path: Path
) -> None:
    filled = [
        word
        for option in ("curator", "use", "region", "tuning", "justification")
        for word in (f"--{option}", f"our {option}")
    ]
    opened: dict[str, list[str]] = {}
    for name, options in (("open", []), ("filled", filled)):
        asked = ["statement", str(folder), "--out", str(tmp_path / name), "--json", *options]
        opened[name] = json.loads(CliRunner().invoke(app, asked).output)["open"]
        text = (tmp_path / name / "registry.yaml").read_text()
        assert text.count("TO BE FILLED IN") == len(opened[name])
    assert len(opened["open"]) == 6
    assert "deployment.basic.intended_use" in opened["open"]
    assert opened["filled"] == []


def test_a_model_file_names_its_run_and_why(folder: Path) -> None:
    model = json.loads((folder / "model.json").read_text())
    facts = paper_facts(folder)
    assert [model["made"][key] for key in ("run", "config", "ledger")] == [
        facts.run,
        facts.config,
        facts.ledger,
    ]
    assert f"epsilon = {model['privacy']['epsilon']:.6g}" in model["privacy"]["why"]


def test_the_digest_of_a_configuration_does_not_give_its_seed_away() -> None:
    other = TEXT.replace("seed = 7", "seed = 8")
    one, two = (build(parse(text), text).run() for text in (TEXT, other))
    assert one.config_digest() == two.config_digest()
    assert one.run_id() != two.run_id()


def test_what_is_no_run_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no run"):
        paper_facts(tmp_path)
    (tmp_path / "report.json").write_text("[")
    with pytest.raises(ConfigError, match="a statement needs it as it was"):
        paper_facts(tmp_path)


def test_a_group_of_gaussian_releases_is_exact() -> None:
    events = EventsProfile(((GaussianEvent(4.0), 4),))
    assert group_epsilon(events, 3, 1e-6) == pytest.approx(GaussianProfile(1.5).epsilon(1e-6))
    assert mu_of(events) == pytest.approx(0.5)
    assert mu_like(GaussianProfile(0.7).epsilon(1e-6), 1e-6) == pytest.approx(0.7)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_group_of_pure_releases_pays_k_times(k: int) -> None:
    events = EventsProfile(((LaplaceEvent(2.0), 1), (BoundedEvent(0.5), 1)))
    assert group_epsilon(events, k, 0.0) == pytest.approx(k * 1.0)
    statement = StatementProfile(0.1, 1e-9)
    assert group_epsilon(statement, k, 1e-6) <= k * 0.1 + 1e-9


@pytest.mark.slow
def test_a_group_under_secret_samples_is_bounded_by_both_laws() -> None:
    event = SampledGaussianEvent(noise_multiplier=3.0, rate=0.05)
    profile = EventsProfile(((event, 20),))
    found = [group_epsilon(profile, k, 1e-6) for k in (1, 2, 4)]
    assert found == sorted(found)
    everybody = EventsProfile(((GaussianEvent(3.0 / 2 / 4), 20),)).epsilon(1e-6)
    assert found[2] <= everybody


def test_a_person_has_one_record_or_more() -> None:
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(PrivacyError, match="1 record or more"):
            group_epsilon(GaussianProfile(1.0), wrong, 1e-6)  # type: ignore[arg-type]
    assert group_epsilon(GaussianProfile(math.inf), 2, 1e-6) == math.inf
