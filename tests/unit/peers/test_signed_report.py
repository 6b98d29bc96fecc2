"""Signed reports: who took part in what and who was missed, in words that nobody else can change."""

import json

import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.peers.site.running import run_participants
from bruit.peers.site.signed_report import check, disagreements, signed, spans
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import Identity
from tests.unit.peers.small_network import found_small

SEED = 5


@pytest.fixture(scope="module")
def lonely(tmp_path_factory):
    """Two of three peers ran, as their sites allow; the third never came. The paths of their
    reports, and the book."""
    folder = tmp_path_factory.mktemp("signed")
    sites = found_small(folder, timeout=0.3, lines="wait_for = 1\n")
    assert run_participants([participant(read_site(site), SEED) for site in sites[:2]]) == 0
    return [site.parent / "state" / "report.json" for site in sites[:2]], sites[
        0
    ].parent / "book.toml"


@pytest.fixture
def report(lonely):
    return json.loads(lonely[0][0].read_text())


def kept(folder, content):
    path = folder / "report.json"
    path.write_text(json.dumps(content))
    return path


def call(*words):
    done = CliRunner().invoke(app, ["peer", "report", *map(str, words)])
    return getattr(done.exception, "exit_code", done.exit_code), done.output


def test_a_report_names_everybody_missed_in_every_round(lonely, report):
    checked = check(lonely[0][0], AddressBook.read(lonely[1]))
    assert (checked.wrong, checked.signer) == ("", "peer-0")
    assert checked.without() == {"peer-2": [[0, 5]]}
    assert report["took_part"]["peer-1"]["without"] == []
    assert report["promised"]["neighbors"] == ["peer-1", "peer-2"]
    assert (report["promised"]["steps"], report["promised"]["wait_for"]) == (6, 1)


def test_a_run_on_a_subset_says_so_though_it_was_allowed(lonely, report):
    assert report["problems"] == []
    assert report["complete"] is False
    assert any("without peer-2" in note for note in report["notes"])
    code, output = call(*lonely[0], "--book", lonely[1])
    assert code == 1
    assert "without peer-2 in exchanges 0 to 5" in output
    assert "there is no report of peer-2" in output
    code, output = call(*lonely[0], "--book", lonely[1], "--json")
    told = json.loads(output)
    assert (code, told["complete"]) == (1, False)
    assert [one["verified"] for one in told["reports"]] == [True, True]
    assert told["reports"][1]["without"] == {"peer-2": [[0, 5]]}


@pytest.mark.parametrize(
    "change",
    [
        {"complete": True},
        {"epsilon": 0.1},
        {"took_part": {}},
        {"peer": 1},
        {"a_new_word": 1},
    ],
)
def test_a_changed_report_is_refused(tmp_path, report, change):
    path = kept(tmp_path, {**report, **change})
    assert "has not signed this" in check(path).wrong
    assert call(path)[0] == 1
    assert "NOT VERIFIED" in call(path)[1]


def test_nobody_signs_for_another(tmp_path, lonely, report):
    book, mallory = AddressBook.read(lonely[1]), Identity.create("peer-0")
    forged = kept(tmp_path, signed(report, mallory))
    assert check(forged).wrong == ""  # without a book, the fingerprint is to be compared
    assert "not in the address book" in check(forged, book).wrong
    other = json.loads(lonely[0][1].read_text())
    moved = kept(tmp_path, {**report, "signature": other["signature"]})
    assert "peer-1 has not signed this" in check(moved, book).wrong


@pytest.mark.parametrize(
    ("signature", "why"),
    [
        (None, "not signed"),
        ({}, "cannot be read"),
        ({"certificate": 3, "ed25519": "zz"}, "cannot be read"),
        ({"certificate": "-----BEGIN", "ed25519": ""}, "cannot be read"),
    ],
)
def test_what_is_no_signature_is_named(tmp_path, report, signature, why):
    assert why in check(kept(tmp_path, {**report, "signature": signature})).wrong


@pytest.mark.parametrize("text", ["", "[]", "{}", "{" * 10_000, '{"peer": 1}', "\x00"])
def test_what_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match="is no report"):
        check(path)
    assert call(path)[0] == 2
    with pytest.raises(ConfigError, match="cannot read"):
        check(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    "strange", [3, "x", [], [[1]], {"p": 1}, {"p": {"without": [[1, "x"], 2]}}]
)
def test_a_signed_report_of_strange_content_breaks_nothing(tmp_path, report, strange):
    wild = {**report, "took_part": strange, "promised": strange, "problems": strange}
    path = kept(tmp_path, signed(wild, Identity.create("wild")))
    assert (check(path).wrong, check(path).without()) == ("", {})
    assert disagreements([check(path)]) == []
    assert call(path)[0] == 1


def test_reports_of_two_runs_do_not_belong_together(tmp_path, lonely, report):
    path = kept(tmp_path, signed({**report, "run": "another"}, Identity.create("peer-2")))
    told = disagreements([check(lonely[0][0]), check(path)])
    assert told[0] == "they are of 2 different runs"
    assert "peer-0 has signed more than one" in disagreements([check(lonely[0][0])] * 2)[0]


def test_spans_join_what_follows():
    assert spans([9, 3, 4, 4, 5, 7]) == [[3, 5], [7, 7], [9, 9]]
    assert spans([]) == []
