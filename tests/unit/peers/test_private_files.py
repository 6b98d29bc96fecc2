"""Nothing private lies around: every file of a site is for its owner only, and no score on private
rows is written."""

import json
import logging
import os
import stat

import numpy as np
import pytest
from typer.testing import CliRunner

from bruit.accounts.account import Account
from bruit.accounts.prices import Price
from bruit.commands.cli import app
from bruit.files import open_to_others, private_folder, write_whole
from bruit.peers.site.own_records import UNSCORED
from bruit.peers.site.running import metrics_text
from bruit.peers.site.site import participant, read_site
from bruit.show.live.operator import operator_view
from tests.unit.peers.small_network import found_small, live_together

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
PUBLIC = {
    "book.toml",
    "experiment.toml",
    "site.toml",
    "certificate.pem",
}  # in a folder that others cannot enter
LEARN = """\
graph = "ring:3"
steps = 4
seed = 3

[task]
kind = "logistic"
data = "breast_cancer"
standardize = "none"
test = {test}

[algorithm]
name = "gossip-sgd"

[privacy]
sigma = 1.5
"""


@pytest.fixture(autouse=True)
def generous_umask():
    """As on many machines: whatever says nothing else is readable by all."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def check_private(folder, but=frozenset()):
    """No folder in it can be entered and no file read by others, the listed ones excepted."""
    places = [folder, *folder.rglob("*")]
    assert all(mode(place) == 0o700 for place in places if place.is_dir())
    found = {
        place.name: mode(place) for place in places if place.is_file() and place.name not in but
    }
    assert set(found.values()) == {0o600}, found
    return set(found)


def test_every_file_of_a_running_site_is_for_its_owner_only(tmp_path):
    sites = found_small(tmp_path)
    seen = set()

    def look(one):
        work = one.host._work

        def watched(first, commit=False):
            work(first, commit)
            seen.update(check_private(one.site.folder, PUBLIC))

        one.host._work = watched

    people, _ = live_together(sites, 5, look)
    assert {
        "journal.db",
        "journal.db-wal",
        "status.json",
        "records.npz",
        "key.pem",
        "signing.pem",
    } <= seen
    for one in people:
        assert {"report.json", "model.npz", "model.json"} <= check_private(one.site.folder, PUBLIC)


def test_a_state_that_was_open_is_closed_and_records_that_are_open_are_told(tmp_path, caplog):
    site = found_small(tmp_path)[0]
    participant(read_site(site), 5).host.journal.close()
    state = site.parent / "state"
    (state / "report.json").write_text("{}")
    state.chmod(0o755)
    (site.parent / "records.npz").chmod(0o644)
    with caplog.at_level(logging.WARNING, "bruit.peers"):
        participant(read_site(site), 5).host.journal.close()
    check_private(state)
    assert "others on this machine could read state, report.json" in caplog.text
    assert "others on this machine can read the records" in caplog.text


@pytest.mark.slow
def test_no_score_on_private_records_is_written_shown_or_served(tmp_path):
    """Loss and accuracy on 30 private rows, to sixteen digits, were in a report for all to read."""
    people, reports = live_together(found_small(tmp_path, LEARN.format(test=0.0)), 5)
    for one, report in zip(people, reports, strict=True):
        assert (report["metrics"], report["scored_on"]) == ({}, UNSCORED)
        told = [(one.site.state / name).read_text() for name in ("report.json", "status.json")]
        shown = json.dumps(operator_view(one.site.folder / "site.toml"))
        for words in (*told, metrics_text(one), shown):
            assert "accuracy" not in words
            assert "loss" not in words
        assert json.loads((one.site.state / "model.json").read_text())["score"] is None


@pytest.mark.slow
def test_scores_on_public_records_stay(tmp_path):
    _, reports = live_together(found_small(tmp_path, LEARN.format(test=0.2)), 5)
    assert all(set(report["metrics"]) == {"accuracy", "worst", "loss"} for report in reports)
    assert {report["scored_on"] for report in reports} == {"public records"}


def test_drafts_are_private_from_their_first_byte(tmp_path):
    path, seen = tmp_path / "secret.bin", []

    def write(stream):
        stream.write(b"x")
        seen.append(mode(tmp_path / ".secret.bin.part"))

    (tmp_path / ".secret.bin.part").write_bytes(b"left behind by an older version")
    write_whole(path, write, private=True)
    assert (seen, mode(path), path.read_bytes()) == ([0o600], 0o600, b"x")
    write_whole(tmp_path / "open.txt", lambda stream: stream.write(b"x"))
    assert mode(tmp_path / "open.txt") == 0o644
    assert open_to_others(tmp_path / "open.txt")
    assert not open_to_others(path)
    assert private_folder(tmp_path / "new" / "inner") == []


def test_keys_records_and_backups(tmp_path):
    site = found_small(tmp_path)[0]
    call = CliRunner().invoke
    assert call(app, ["peer", "key", "a", "--out", str(tmp_path / "site")]).exit_code == 0
    assert check_private(tmp_path / "site", {"certificate.pem", "public.toml"}) == {
        "key.pem",
        "signing.pem",
    }
    rows, records = tmp_path / "rows.csv", tmp_path / "records.npz"
    rows.write_text("a,b\n0.5,0.25\n")
    experiment = str(site.parent / "experiment.toml")
    assert (
        call(
            app, ["peer", "data", str(rows), "--experiment", experiment, "--out", str(records)]
        ).exit_code
        == 0
    )
    assert np.load(records)["values"].shape == (1, 2)
    assert call(app, ["peer", "backup", str(site), "--out", str(tmp_path / "b.zip")]).exit_code == 0
    Account(tmp_path / "rows.csv.account.jsonl").charge(
        Price.stated("mean", 1.0, 0.0, "record", "everybody")
    )
    assert {
        mode(tmp_path / name) for name in ("records.npz", "b.zip", "rows.csv.account.jsonl")
    } == {0o600}
