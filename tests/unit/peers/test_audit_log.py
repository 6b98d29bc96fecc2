"""The audit log of a peer: no release without its line, no tampering that is not found, no value."""

import json
import os
import random
import shutil
import stat

import pytest

from bruit.accounts.account import beside
from bruit.accounts.chain import ChainHead
from bruit.accounts.verify import compare, verify
from bruit.errors import BrokenStateError, ConfigError
from bruit.peers.journal.step import Spend
from bruit.peers.site.audit_log import AuditLog
from bruit.peers.site.site import participant, read_site
from tests.unit.commands.test_printing import call
from tests.unit.peers.killed_hosts import KilledHosts
from tests.unit.peers.small_network import found_small, live_together


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """Three peers that ran to their end, and their reports."""
    people, reports = live_together(found_small(tmp_path_factory.mktemp("lived")), 5)
    return [one.site.state for one in people], reports


@pytest.fixture
def log(lived, tmp_path):
    """A copy of one log that may be spoiled."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes((lived[0][0] / "audit.jsonl").read_bytes())
    return path


def test_a_log_says_who_released_what_when_and_for_how_much(lived):
    states, reports = lived
    for state, report in zip(states, reports, strict=True):
        path = state / "audit.jsonl"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        found = verify(path)
        (run,) = found.runs
        assert found.good
        assert (run.releases, run.missing, run.unsaid, run.ended) == (
            report["releases"],
            [],
            0,
            True,
        )
        assert run.epsilon() == pytest.approx(report["epsilon"])
        assert run.about["run"] == report["run"]
        assert report["audit"]["head"] == found.found.head.describe()
        released = [line for line in found.found.lines if line["what"] == "release"]
        assert {"n", "when", "events", "epsilon", "first", "last"} <= set(released[0])


def test_no_value_is_in_a_log(lived):
    """Every number in it is a count, or known before any record was read."""
    words = {"n", "before", "when", "what", "key", "first", "last", "events", "epsilon", "delta"}
    about = {"id", "run", "peer", "name", "algorithm", "against", "budget", "rehearsal", "held"}
    for state in lived[0]:
        for line in map(json.loads, (state / "audit.jsonl").read_text().splitlines()):
            assert set(line) <= words | about
            for event, _ in line.get("events", []):
                assert set(event) <= {"kind", "noise_multiplier", "rounding", "sigma"}


def spoil(path, how):
    lines = path.read_bytes().splitlines(keepends=True)
    how(lines)
    path.write_bytes(b"".join(lines))


def edited(lines):
    lines[2] = lines[2].replace(b'"first": 1', b'"first": 2')


def dropped(lines):
    del lines[3]


def swapped(lines):
    lines[2], lines[3] = lines[3], lines[2]


def doubled(lines):
    lines.insert(3, lines[2])


def begun_elsewhere(lines):
    del lines[0]


def no_json(lines):
    lines[2] = b"\xff\x00{\n"


TAMPERED = {
    edited: "line 3 or 4 was edited",
    dropped: "line 4 calls itself number 5",
    swapped: "line 3 calls itself number 4",
    doubled: "line 4 calls itself number 3",
    begun_elsewhere: "line 1 calls itself number 2",
    no_json: "line 3 is no line",
}


@pytest.mark.parametrize("how", TAMPERED, ids=lambda how: how.__name__)
def test_tampering_is_found_and_its_line_is_named(log, how, monkeypatch, capsys):
    spoil(log, how)
    assert call(f"log verify {log}", monkeypatch) == 3
    assert TAMPERED[how] in " ".join(capsys.readouterr().out.split())
    assert call(f"log verify {log} --json", monkeypatch) == 3
    assert TAMPERED[how] in json.loads(capsys.readouterr().out)["damaged"]


def cut(lines):
    del lines[-1]


def last_edited(lines):
    lines[-1] = lines[-1].replace(b'"delta": 1e-06', b'"delta": 1e-05')


@pytest.mark.parametrize("how", [cut, last_edited])
def test_a_changed_end_is_found_by_a_signed_report(lived, log, how, monkeypatch, capsys):
    report = lived[0][0] / "report.json"
    assert call(f"log verify {log} --signed {report}", monkeypatch) == 0
    spoil(log, how)
    assert call(f"log verify {log}", monkeypatch) == 0  # it cannot show that by itself
    assert call(f"log verify {log} --signed {report}", monkeypatch) == 1
    assert "its end was cut off or edited" in capsys.readouterr().out


def test_a_report_that_was_changed_vouches_for_nothing(lived, log, tmp_path, monkeypatch, capsys):
    content = json.loads((lived[0][0] / "report.json").read_text())
    content["audit"]["head"]["lines"] = 1
    (tmp_path / "forged.json").write_text(json.dumps(content))
    assert call(f"log verify {log} --signed {tmp_path / 'forged.json'}", monkeypatch) == 2
    assert "cannot be believed" in capsys.readouterr().err


def test_a_line_cut_in_two_is_told(log, monkeypatch, capsys):
    log.write_bytes(log.read_bytes()[:-9])
    assert call(f"log verify {log}", monkeypatch) == 1
    assert "a line is not whole" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"not json\n", "line 1 is no line"),
        (b'{"n": 1, "before": "' + b"0" * 64 + b'", "what": "else"}\n', "neither an account nor"),
        (b"[" * 100_000 + b"\n", "line 1 is no line"),
    ],
)
def test_what_is_no_log_is_damaged(tmp_path, content, words):
    (tmp_path / "x.jsonl").write_bytes(content)
    assert words in verify(tmp_path / "x.jsonl").damaged


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        verify(tmp_path / "nothing.jsonl")


def test_what_never_ends_is_no_log(tmp_path):
    """/dev/zero was read until the memory was full."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ConfigError, match="is no file that ends"):
            verify(path)


def test_an_account_is_verified_too(lived, monkeypatch, tmp_path, capsys):
    (site, *_) = found_small(tmp_path)
    live_together([site.parents[1] / f"peer-{k}" / "site.toml" for k in range(3)])
    path = beside(site.parent / "records.npz").path
    assert verify(path).charges == 1
    report = site.parent / "state" / "report.json"
    assert call(f"log verify {path} --signed {report}", monkeypatch) == 0
    assert "account, 4 lines follow from each other" in capsys.readouterr().out
    key = {line["key"] for line in verify(path).found.lines if "key" in line}
    assert key == {
        line["key"]
        for line in verify(site.parent / "state" / "audit.jsonl").found.lines
        if "key" in line
    }
    spoil(path, cut)
    assert call(f"log verify {path} --signed {report}", monkeypatch) == 1


def killed_before_commit(site):
    """A peer that dies after the line is written and before its journal commits the release."""
    one = participant(read_site(site))

    class Killed(BaseException):
        pass

    written = one.host.journal.witness

    def die(first, spends):
        written(first, spends)
        raise Killed

    one.host.journal.witness = die
    with pytest.raises(Killed), one.host.journal.step() as step:
        step.spend(0, 0, 0, '{"kind": "gaussian", "noise_multiplier": 2.0}')
    assert one.host.journal.lines == 0
    one.host.journal.close()
    return one.site.state / "audit.jsonl"


def test_a_line_without_release_after_a_crash_is_told(tmp_path):
    site = found_small(tmp_path)[0]
    log = killed_before_commit(site)
    assert verify(log).runs[0].last == 1  # nobody knows better yet
    again = participant(read_site(site))
    with again.host.journal.step() as step:
        step.spend(0, 0, 0, '{"kind": "gaussian", "noise_multiplier": 2.0}')
    again.host.journal.close()
    (run,) = verify(log).runs
    assert (run.last, run.unsaid, run.missing, len(run.lines)) == (1, 1, [], 1)


def test_what_an_old_copy_of_a_journal_forgot_still_counts(tmp_path):
    """A kill takes back one line of the log at most; more of them have left, and are made twice."""
    site = found_small(tmp_path)[0]
    one = participant(read_site(site))
    one.paying.begin()
    old = tmp_path / "old"
    for step in range(3):
        if step == 1:
            one.host.journal.close()
            shutil.copytree(one.site.state, old, ignore=shutil.ignore_patterns("audit.jsonl"))
            one = participant(read_site(site))
        with one.host.journal.step() as writing:
            writing.spend(0, step, step, '{"kind": "gaussian", "noise_multiplier": 2.0}')
    one.host.journal.close()
    once = verify(one.audit.path).runs[0].epsilon()
    shutil.copytree(old, one.site.state, dirs_exist_ok=True)
    with pytest.raises(BrokenStateError, match=r"old copy: the audit log .* knows of 2 lines"):
        participant(read_site(site))
    AuditLog(path=one.audit.path, about=one.audit.about, delta=1e-6, held=1).before(
        2, [Spend(0, 1, 1, '{"kind": "gaussian", "noise_multiplier": 2.0}')]
    )
    found = verify(one.audit.path)
    (run,) = found.runs
    assert (run.releases, run.again, run.unsaid) == (4, 2, 0)
    assert run.epsilon() > once
    assert "went on from an old copy of its journal" in found.doubts[0]


def test_a_log_that_cannot_be_written_releases_nothing(tmp_path, monkeypatch):
    one = participant(read_site(found_small(tmp_path)[0]))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ConfigError, match="No space left"), one.host.journal.step() as step:
        step.spend(0, 0, 0, '{"kind": "gaussian", "noise_multiplier": 2.0}')
    monkeypatch.undo()
    assert one.host.journal.lines == 0
    one.host.journal.close()


def test_a_damaged_log_stops_a_peer_before_it_speaks(tmp_path):
    site = found_small(tmp_path)[0]
    log = killed_before_commit(site)
    spoil(log, edited)
    log.write_bytes(log.read_bytes() + log.read_bytes().splitlines(keepends=True)[-1])
    with pytest.raises(BrokenStateError, match=r"the audit log .* is damaged"):
        participant(read_site(site))


def test_a_log_that_was_taken_away_shows_its_gap(tmp_path, caplog):
    site = found_small(tmp_path)[0]
    for life in range(2):
        one = participant(read_site(site))
        one.paying.begin()
        with one.host.journal.step() as step:
            step.spend(0, life, 0, '{"kind": "gaussian", "noise_multiplier": 2.0}')
        one.host.journal.close()
        if not life:
            one.audit.path.unlink()
    assert "1 line of this run's ledger are not in the audit log" in caplog.text
    found = verify(one.audit.path)
    assert (found.good, found.runs[0].missing) == (False, [(1, 1)])


def test_a_log_that_somebody_else_writes_stops_the_peer(tmp_path):
    one = participant(read_site(found_small(tmp_path)[0]))

    def release():
        with one.host.journal.step() as step:
            step.spend(0, 0, 0, '{"kind": "gaussian", "noise_multiplier": 2.0}')

    release()
    spoil(one.audit.path, cut)
    with pytest.raises(BrokenStateError, match="was changed while this peer ran"):
        release()
    one.host.journal.close()


def test_an_older_head_is_reached_by_a_longer_log(log):
    found = verify(log)
    compare(found, ChainHead(2, found.found.hashes[1]))
    assert found.good


def test_killed_anywhere_no_release_is_without_its_line(tmp_path):
    sites = found_small(tmp_path)
    for site in sites:
        one = participant(read_site(site))
        one.paying.begin()
        one.host.journal.close()
    hosts = KilledHosts(sites, random.Random(7))
    try:
        for count in range(10_000):
            if not hosts.step(deadly=count % 4 == 0 and hosts.kills < 6):
                break
            for peer, host in hosts.hosts.items():
                if host.journal.lines:
                    (run,) = verify(hosts.state(peer) / "audit.jsonl").runs
                    assert run.last >= host.journal.lines
                    assert run.missing == []
        assert hosts.kills
        for host in hosts.hosts.values():
            assert host.journal.lines
    finally:
        hosts.close()
