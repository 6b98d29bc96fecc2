"""Attack and audit results are shown when they lie in the run folder, and broken ones are told."""

import json
import shutil

import pytest

from bruit.show.report import render
from tests.unit.show.report.pages import Page


@pytest.fixture
def mine(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "mine.run")


def test_they_are_shown(mine):
    (mine / "attack.json").write_text(
        json.dumps({"peers": 24, "seen_by": [7], "reconstructible": [1, 2, 7]})
    )
    audit = {"verdict": "not refuted", "claimed": 2.0, "lower": 0.5, "delta": 1e-6}
    (mine / "audit.json").write_text(json.dumps(audit))
    page = Page(render(mine))
    assert "7 could compute 3 of 24 values" in page.by_id("attack").text
    assert "trials prove at least 0.5" in page.by_id("audit").text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "attack.json is broken"),
        ("[1]", "does not hold a record"),
        ("[" * 100_000, "attack.json is broken"),
        (" " * (2**20 + 1), "is larger than"),
    ],
)
def test_broken_ones_are_told(mine, content, message):
    (mine / "attack.json").write_text(content)
    page = Page(render(mine))
    assert message in page.by_id("attack").text
    assert not [one for one in page.elements if one.attributes.get("id") == "audit"]
