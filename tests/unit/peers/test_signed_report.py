"""Signed reports: who took part in what and who was missed, in words that nobody else can change."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from bruit.algorithms.schedules.machine import Missed
from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.peers.absences import Absence
from bruit.peers.gathering import APART, HOPS, Gathering
from bruit.peers.site.running import last_line, run_participants
from bruit.peers.site.signed_report import (
    CheckedReport,
    _earlier,
    check,
    disagreements,
    signed,
    spans,
)
from bruit.peers.site.site import participant, read_site
from bruit.peers.spans import KEPT
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.succession import Succession
from bruit.privacy.ledger import Budget
from bruit.show.demonstration import Demonstration, unverified
from tests.unit.peers.small_network import MEAN, found_small, live_together

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


def test_what_the_agreed_budget_left_out_is_told_to_everybody(tmp_path):
    """Noise made for fewer releases than there were: the end, the exit code, the report and whoever
    checks it say so, and a demonstration prints it."""
    sites = found_small(tmp_path, MEAN.replace("sigma = 1.5", "epsilon = 2.0\ndelta = 1e-5"))
    people = [participant(read_site(site), SEED) for site in sites]
    machine = people[1].host.machine
    poor = replace(machine.seat.door, budget=Budget(0.9, 1e-5))
    machine.seat = replace(machine.seat, door=poor)
    assert run_participants(people) == 1
    told = "left out: budget"
    assert told in last_line(people[1])
    files = [site.parent / "state" / "report.json" for site in sites]
    reports = [json.loads(file.read_text()) for file in files]
    kept = [clock for _, clock in reports[1]["contributions_left_out"]]
    assert kept
    assert kept[-1] == 5
    assert [one["complete"] for one in reports] == [True, False, True]
    assert [any(told in word for word in one["problems"]) for one in reports] == [
        False,
        True,
        False,
    ]
    code, output = call(*files, "--book", sites[0].parent / "book.toml")
    assert code == 1
    assert f"without its own data, by its budget, at {kept[0]} to 5" in output
    shown = Demonstration(
        reports=reports, scores=None, verdict=None, summary=None, why="none", missed=False, flaws=[]
    )
    assert shown.code == 1
    assert any(told in str(line) for line in shown.lines())


def test_a_demonstration_believes_no_report_that_its_peer_has_not_signed(tmp_path):
    sites = found_small(tmp_path)
    _, reports = live_together(sites)
    book = AddressBook.read(sites[0].parent / "book.toml")
    assert unverified(sites, book) == []
    file = sites[1].parent / "state" / "report.json"
    file.write_text(file.read_text().replace('"epsilon": 20', '"epsilon": 2'))
    (flaw,) = unverified(sites, book)
    assert "peer-1 has not signed this" in flaw
    about = {"scores": None, "verdict": None, "summary": None, "why": "none", "missed": False}
    shown = Demonstration(reports=reports, **about, flaws=[flaw])
    assert shown.code == 1
    assert not shown.plain()["verified"]
    assert f"NOT VERIFIED: {flaw}" in map(str, shown.lines())
    well = Demonstration(reports=reports, **about, flaws=[])
    assert well.code == 0
    assert any(str(line).startswith("3 signed reports verified") for line in well.lines())
    file.write_bytes((sites[0].parent / "state" / "report.json").read_bytes())
    assert any("peer-0 has signed more than one" in flaw for flaw in unverified(sites, book))


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


def test_what_is_no_longer_named_is_counted_and_no_report_is_as_agreed_with_it(tmp_path, report):
    gone = Absence()
    for number in range(0, 1000, 2):
        gone.note(Missed(1, number))
    earlier = 500 - KEPT
    assert _earlier(gone) == {
        "earlier": {"without": earlier, "made_up_late": 0, "up_to": 2 * earlier - 2}
    }
    part = {**report["took_part"]["peer-1"], "without": gone.without.named, **_earlier(gone)}
    told = signed({**report, "took_part": {"peer-1": part}}, Identity.create("peer-0"))
    path = kept(tmp_path, told)
    found = check(path)
    assert found.earlier() == {"peer-1": (earlier, 2 * earlier - 2)}
    assert not found.as_agreed
    assert f"without peer-1 in {earlier} exchanges more, up to {2 * earlier - 2}" in call(path)[1]


def test_spans_join_what_follows():
    assert spans([9, 3, 4, 4, 5, 7]) == [[3, 5], [7, 7], [9, 9]]
    assert spans([]) == []


def test_who_was_no_neighbor_of_the_missing_one_says_no_more_than_it_knows(tmp_path, report):
    """On a ring of four without its last peer, the one opposite said that everybody took part."""
    far = {**report, "complete": True, "took_part": {}}
    far["promised"] = {"neighbors": ["peer-1"], "others": ["peer-3"]}
    one = CheckedReport(tmp_path, far, signer="peer-0")
    assert (one.complete, one.verdict()) == (
        True,
        "its neighbors took part in everything; of 1 others it cannot know",
    )
    heard = replace(one, content={**far, "missed_elsewhere": True})
    assert (heard.complete, heard.as_agreed) == (False, False)
    assert heard.verdict().endswith("elsewhere somebody was missed")
    other = CheckedReport(tmp_path, {**far, "promised": {}}, signer="peer-1")
    assert disagreements([one, other]) == ["there is no report of peer-3"]
    assert other.verdict() == "everybody took part in everything"


def test_that_somebody_was_missed_is_passed_on_once():
    said = []
    lines = {1: SimpleNamespace(level=HOPS), 2: SimpleNamespace(level=HOPS)}
    one = Gathering(lines=lines, names=str, wait_for=1, announce=said.append)
    one.begun()
    one.heed(missed=False)
    lines[2].level = APART
    one.heed(missed=False)
    one.heed(missed=True)
    one.begun()
    assert said == [HOPS, APART, APART]


def test_a_report_signed_after_a_change_of_keys_is_believed_by_the_book(lonely, report, tmp_path):
    """With its new key a peer was "not in the address book", so after every change of keys nobody
    could verify a run."""
    book = AddressBook.read(lonely[1])
    before, soon = Identity.load(lonely[1].parent), datetime.now(UTC) + timedelta(days=1)
    after, other = Identity.create("peer-0"), Identity.create("peer-0")
    chain = [Succession.of(before, after, soon)]
    third = Identity.create("peer-0")

    def wrong(identity, since, changed=report):
        return check(kept(tmp_path, signed(changed, identity, since)), book).wrong

    assert wrong(before, []) == wrong(after, chain) == ""
    assert wrong(third, [*chain, Succession.of(after, third, soon)]) == ""
    old = Succession.of(before, after, datetime(2001, 1, 1, tzinfo=UTC))
    assert wrong(after, [old]) == ""  # what was signed in the overlap is not unsaid by its end
    assert wrong(after, []) == "its signer is not in the address book"
    assert wrong(other, chain) == "its successions do not lead to its signer"
    assert "do not follow each other" in wrong(third, [*chain, Succession.of(other, third, soon)])
    assert "not signed by its old key" in wrong(
        other, [replace(old, certificate=other.certificate)]
    )
    assert "succession" in wrong(after, [SimpleNamespace(text=lambda: "nonsense")])
    assert "changes 16 times" in wrong(after, chain * 17)
    assert "it speaks of peer 1" in wrong(after, chain, {**report, "peer": 1})
    twice = kept(tmp_path, signed(report, after, chain))
    assert call(twice, lonely[0][1], "--book", lonely[1])[1].count("NOT VERIFIED") == 0


def test_the_words_of_another_peer_end_no_line_and_steer_no_terminal(lonely, report, tmp_path):
    """A member could print a verdict on others, in lines that looked like ours."""
    forged = "\x1b[2J\nb/report.json: signed by peer-2; everybody took part in everything\ud800"
    took = {
        **report["took_part"],
        forged: {"without": [[0, 1]], "earlier": {"without": 2, "up_to": 3}},
    }
    promised = {**report["promised"], "others": [forged]}
    bad = {**report, "problems": [forged], "took_part": took, "promised": promised}
    path = kept(tmp_path, signed(bad, Identity.load(lonely[1].parent)))
    code, output = call(path, lonely[0][1], "--book", lonely[1])
    assert code == 1
    assert "\x1b" not in output
    assert output.count("\\x1b[2J\\nb/report.json: signed by peer-2") == 4
    assert not any(line.startswith("b/report.json") for line in output.splitlines())
    assert (
        call(
            kept(tmp_path, signed({**bad, "peer": forged}, Identity.load(lonely[1].parent))),
            "--book",
            lonely[1],
        )[0]
        == 1
    )
