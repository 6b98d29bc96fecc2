"""The account of a data set: what would let it say less than the records have paid."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bruit import files
from bruit.accounts import register
from bruit.accounts.account import Account, beside
from bruit.accounts.prices import Balance, Charged, Price, Unit, in_all
from bruit.commands.cli import app
from bruit.errors import BrokenStateError, ConfigError, PrivacyError
from bruit.privacy.events import GaussianEvent, LaplaceEvent, SampledGaussianEvent
from bruit.privacy.ledger import Budget
from bruit.privacy.toolbox.pld import compose_epsilon

ROW, ALL = Unit.of("record"), Unit.of("user")


def asked(epsilon: float = 1.0, delta: float = 0.0, level: str = "record", key: str = "") -> Price:
    price = Price.stated("a mean", epsilon, delta, level, "everybody")
    return Price(**{**vars(price), "key": key})


def gaussian(z: float, count: int = 1, unit: Unit = ROW, key: str = "") -> Price:
    events = ((GaussianEvent(z), count),)
    return Price(
        about="a run",
        unit=unit,
        events=events,
        epsilon=compose_epsilon(events, 1e-6),
        delta=1e-6,
        against="everybody",
        key=key,
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("x\n1\n2\n")
    return path


@pytest.fixture
def registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BRUIT_REGISTER", str(tmp_path / "register"))
    return tmp_path / "register"


def test_charges_compose_and_a_row_has_paid_what_its_holder_paid(table: Path) -> None:
    """A promise about all that a holder has is one about each row, and not the other way round."""
    account = beside(table)
    account.charge(gaussian(2.0))
    account.charge(gaussian(2.0))
    account.charge(gaussian(5.0, unit=ALL))
    balance = account.balance()
    row = [(GaussianEvent(2.0), 2), (GaussianEvent(5.0), 1)]
    assert balance.epsilon(ROW, 1e-6) == compose_epsilon(row, 1e-6)
    assert balance.epsilon(ROW, 1e-6) > compose_epsilon(row[:1], 1e-6)
    assert balance.epsilon(ALL, 1e-6) == compose_epsilon(row[1:], 1e-6)
    said = CliRunner().invoke(app, ["budget", str(table), "--rows-per-person", "3"]).output
    together = compose_epsilon([(GaussianEvent(2.0 / 3), 2), (GaussianEvent(5.0), 1)], 1e-6)
    assert f"a person with 3 rows: epsilon = {together:.6g}" in said
    assert "with 1 charge for all that one holder has: each row is part of it" in said
    assert "  against everybody\n" in said
    account.charge(replace(asked(0.5), against="the other holder"))
    said = " ".join(CliRunner().invoke(app, ["budget", str(table)]).output.split())
    assert "against everybody; and the other holder: whoever sees all of it" in said


def test_a_total_says_whether_questions_may_follow_answers(table: Path) -> None:
    def free(*prices: Price) -> bool:
        return Balance(charged=[Charged("", one) for one in prices]).however_chosen(ROW, 1e-6)

    laplace, other = (
        Price(**{**vars(asked(1 / scale)), "events": ((LaplaceEvent(scale), 1),)})
        for scale in (2, 3)
    )
    assert free()
    assert free(gaussian(2.0), gaussian(5.0, 3))  # squares add up
    assert free(*[laplace] * 40)  # one kind, at most so often
    assert free(asked(0.5), asked(0.25))  # epsilons add up
    assert not free(gaussian(2.0), laplace)
    assert not free(*[laplace] * 40, other)  # composed, these cost less than their sum
    assert not free(gaussian(2.0), gaussian(5.0), asked(0.1, 1e-9))


def test_adjacencies_are_two_accounts(table: Path) -> None:
    """The accountants refuse to add them, and so nobody asks these to."""
    account = beside(table)
    for adjacency in ("replace", "add-remove"):
        event = SampledGaussianEvent(noise_multiplier=2.0, rate=0.1, adjacency=adjacency)
        unit = Unit.of("record", adjacency)
        account.charge(Price(**{**vars(gaussian(1.0)), "events": ((event, 3),), "unit": unit}))
    balance = account.balance()
    assert len(balance.units()) == 2
    assert all(0 < balance.epsilon(unit, 1e-6) < 2 for unit in balance.units())


def test_a_limit_is_kept_by_whoever_asks_and_nothing_is_written_beyond(table: Path) -> None:
    account = beside(table)
    account.set_limit(ROW, Budget(3.0, 1e-6))
    account.charge(asked(2.0))
    lines = account.head().lines
    with pytest.raises(PrivacyError, match=r"have paid epsilon = 2 so far .* above the limit 3"):
        account.charge(asked(1.5))
    with pytest.raises(PrivacyError, match=r"above the limit 2\.5"):
        beside(table, limit=2.5).charge(asked(0.9))
    assert account.head().lines == lines
    account.charge(asked(1.0))
    with pytest.raises(PrivacyError, match="the deltas add up to"):
        account.charge(asked(0.0, delta=1e-5))


def test_another_level_does_not_pass_below_a_limit(table: Path) -> None:
    """What a holder pays counts for its rows; what rows pay is refused under a limit on holders only."""
    account = beside(table)
    account.set_limit(ROW, Budget(3.0, 1e-6))
    account.charge(asked(1.0, level="user"))
    with pytest.raises(PrivacyError, match=r"above the limit 3 .* for one row"):
        account.charge(asked(2.5, level="user"))
    with pytest.raises(PrivacyError, match="above the limit 3"):
        account.charge(asked(2.5))
    account.set_limit(ALL, Budget(1.5, 1e-6))
    with pytest.raises(PrivacyError, match=r"above the limit 1\.5 .* for all that one holder"):
        account.charge(asked(1.0, level="user"))
    account.charge(asked(2.0))
    account.set_limit(ROW, None)
    with pytest.raises(PrivacyError, match=r"the two are never added.*--level record"):
        account.charge(asked(0.1))
    account.set_limit(ALL, None)
    account.charge(asked(100.0, level="user"))


def test_what_has_a_key_is_charged_once_and_settled(table: Path) -> None:
    account = beside(table)
    account.charge(gaussian(1.0, 10, key="run a"))
    account.charge(gaussian(1.0, 10, key="run a"))
    assert account.balance().events(ROW) == [(GaussianEvent(1.0), 10)]
    assert [one.settled for one in account.balance().charged] == [False]
    account.settle(gaussian(1.0, 4, key="run a"))
    assert account.balance().events(ROW) == [(GaussianEvent(1.0), 4)]
    assert account.balance().charged[0].settled
    account.charge(gaussian(1.0, 10, key="run b"))
    assert len(account.balance().charged) == 2


def test_an_account_is_for_its_owner_and_on_the_disk_before_anything_leaves(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle))[1])
    beside(table).charge(asked())
    assert len(synced) >= 3  # the first line, the folder, the charge
    assert stat.S_IMODE(beside(table).path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"[", b"{}", b"[1]\n", b'{"n": 1}\n', b"\xff\xfe\n"])
def test_a_damaged_account_answers_nothing_and_stays(table: Path, content: bytes) -> None:
    account = beside(table, limit=5.0)
    account.path.write_bytes(content)
    for ask in (lambda: account.check(asked()), lambda: account.charge(asked()), account.balance):
        with pytest.raises(BrokenStateError, match="put back the file") as found:
            ask()
        assert found.value.exit_code == 3
    assert account.path.read_bytes() == content


@pytest.mark.parametrize("how", ["edited", "dropped", "swapped", "doubled"])
def test_a_changed_line_is_found_and_named(table: Path, how: str) -> None:
    account = beside(table)
    for _ in range(4):
        account.charge(asked(1.0))
    lines = account.path.read_bytes().splitlines(keepends=True)
    changed = {
        "edited": [*lines[:3], lines[3].replace(b'"epsilon": 1.0', b'"epsilon": 0.1'), *lines[4:]],
        "dropped": [*lines[:3], *lines[4:]],
        "swapped": [*lines[:3], lines[4], lines[3], *lines[5:]],
        "doubled": [*lines[:4], lines[3], *lines[4:]],
    }[how]
    account.path.write_bytes(b"".join(changed))
    said = {
        "edited": "line 4 or 5 was edited",
        "dropped": "line 4 calls itself number 5",
        "swapped": "line 4 calls itself number 5",
        "doubled": "line 5 calls itself number 4",
    }
    with pytest.raises(BrokenStateError, match=said[how]):
        account.charge(asked())


def test_a_line_that_a_crash_left_half_written_is_cut_off_and_told(table: Path) -> None:
    account = beside(table)
    account.charge(asked(1.0))
    with account.path.open("ab") as stream:
        stream.write(b'{"n": 4, "before": "')
    assert len(account.balance().charged) == 1
    account.charge(asked(2.0))
    assert in_all(account.balance().events(ROW)) == "epsilon = 3"
    assert '"what": "torn", "bytes": 20' in account.path.read_text()


def test_a_line_without_its_end_still_counts(table: Path) -> None:
    """Whoever cuts off the last byte takes no charge away."""
    account = beside(table)
    account.charge(asked(1.0))
    account.path.write_bytes(account.path.read_bytes()[:-1])
    assert len(account.balance().charged) == 1
    account.charge(asked(1.0))
    assert len(account.balance().charged) == 2


def test_a_link_is_followed_and_one_that_leads_nowhere_answers_nothing(tmp_path: Path) -> None:
    shared = Account(tmp_path / "people.account.jsonl")
    shared.charge(asked())
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv.account.jsonl").symlink_to(shared.path)
        beside(tmp_path / f"{name}.csv").charge(asked())
    assert len(shared.balance().charged) == 3
    lost = beside(tmp_path / "c.csv")
    lost.path.symlink_to(tmp_path / "not-mounted" / "c.jsonl")
    for ask in (lost.balance, lambda: lost.charge(asked())):
        with pytest.raises(BrokenStateError):
            ask()


def test_changed_records_go_on_paying_and_that_is_told(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    beside(table).charge(asked())
    table.write_text("x\n1\n2\n3\n")
    beside(table).charge(asked())
    assert "has changed since its account was written" in caplog.text
    assert len(beside(table).balance().charged) == 2


def test_a_copy_of_records_pays_from_the_same_account(
    table: Path, registered: Path, caplog: pytest.LogCaptureFixture
) -> None:
    beside(table, limit=None).charge(asked(2.0))
    copy = table.with_name("other.csv")
    copy.write_bytes(table.read_bytes())
    with pytest.raises(PrivacyError, match="have paid epsilon = 2 so far"):
        beside(copy, limit=3.0).check(asked(2.0))
    beside(copy).charge(asked(1.0))
    assert "they pay from one account" in caplog.text
    assert len(beside(table).balance().charged) == 2
    assert stat.S_IMODE(registered.stat().st_mode) == 0o700
    kept = [path.read_bytes() for path in registered.rglob("*") if path.is_file()]
    assert not any(b"epsilon" in data for data in kept)


def test_moved_records_take_their_account_along_and_alone_they_find_it(
    table: Path, registered: Path
) -> None:
    beside(table).charge(asked(2.0))
    away = table.parent / "away"
    away.mkdir()
    table.rename(away / "t.csv")
    assert len(beside(away / "t.csv").balance().charged) == 1
    account = table.with_name("people.csv.account.jsonl")
    beside(away / "t.csv").path.unlink()
    account.rename(beside(away / "t.csv").path)
    beside(away / "t.csv").charge(asked())
    assert len(beside(away / "t.csv").balance().charged) == 2


def test_an_account_that_is_gone_or_old_is_found_out(table: Path, registered: Path) -> None:
    account = beside(table)
    account.charge(asked(2.0))
    old = account.path.read_bytes()
    account.charge(asked(2.0))
    new = account.path.read_bytes()
    account.path.write_bytes(old)
    with pytest.raises(BrokenStateError, match="is an old copy"):
        account.charge(asked())
    account.path.unlink()
    with pytest.raises(BrokenStateError, match="it is not there"):
        account.charge(asked())
    account.path.write_bytes(new)
    account.charge(asked())


def test_two_copies_of_one_account_are_refused(table: Path, registered: Path) -> None:
    account = beside(table)
    account.charge(asked(2.0))
    away = table.parent / "away"
    away.mkdir()
    for path in (table, account.path):
        (away / path.name).write_bytes(path.read_bytes())
    with pytest.raises(PrivacyError, match=r"is a copy of .*which is there too"):
        beside(away / table.name).charge(asked())
    account.charge(asked())


def test_a_register_that_cannot_be_written_is_told_and_stops_nobody(
    table: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (table.parent / "file").write_text("no folder")
    monkeypatch.setenv("BRUIT_REGISTER", str(table.parent / "file" / "register"))
    try:
        beside(table).charge(asked())
    except ConfigError:
        pytest.fail("a register is no condition")
    assert "will not be recognized" in caplog.text


CHARGES = """
import sys
from bruit.accounts.account import beside
from bruit.accounts.prices import Price
account = beside(__import__("pathlib").Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    account.charge(Price.stated("q", 1.0, 0.0, "record", "everybody"))
    print("spoken", flush=True)
"""


def start(table: Path, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", CHARGES, str(table), str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_processes_that_charge_at_once_lose_nothing(table: Path) -> None:
    crowd = [start(table, 25) for _ in range(4)]
    assert [one.wait() for one in crowd] == [0] * 4
    assert len(beside(table).balance().charged) == 100


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_no_charge(table: Path) -> None:
    """Whatever was spoken is in the account; at most one charge a kill is for what was not."""
    spoken, kills = 0, 6
    for kill in range(kills):
        process = start(table, 10**6)
        assert process.stdout is not None
        spoken += [process.stdout.readline() for _ in range(3)].count("spoken\n")
        time.sleep(0.0007 * kill)
        os.kill(process.pid, signal.SIGKILL)
        spoken += process.stdout.read().count("spoken")
        process.wait()
    found = len(beside(table).balance().charged)
    assert spoken <= found <= spoken + kills


def test_an_event_of_pure_parts_is_told_as_their_sum() -> None:
    assert in_all([(LaplaceEvent(0.5), 1), (LaplaceEvent(1.0), 2)]) == "epsilon = 4"
    assert in_all([*asked(1.0, 1e-6).events, *asked(1.0, 1e-6).events]) == (
        "epsilon = 2, delta = 2e-06"
    )


def test_an_account_says_nothing_of_values(table: Path) -> None:
    beside(table).charge(asked())
    for line in beside(table).path.read_text().splitlines():
        assert set(json.loads(line)) <= {
            *("n", "before", "when", "what", "id", "salt", "digest", "about", "level"),
            *("adjacency", "epsilon", "delta", "against", "events", "key", "by"),
        }


def test_a_register_of_many_accounts_costs_no_more_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every payment looked at the file of every account: of 256 peers of one user each paid for all."""
    looked: list[Path] = []
    look = files.private_folder
    monkeypatch.setattr(files, "private_folder", lambda path: looked.append(path) or look(path))
    here = register.Register(tmp_path / "register")
    head = register.ChainHead(1, "0")
    for number in range(4):
        digest = bytes([number])
        here.remember(register.Registered(f"a{number}", tmp_path / f"{number}", head), digest)
        found = here.paying_for(digest)
        assert found is not None
        assert found.id == f"a{number}"
    assert len(looked) == len(set(looked))  # each folder when it was made
    assert {stat.S_IMODE(one.stat().st_mode) for one in looked} == {0o700}
    kept = here.folder / "accounts"
    kept.chmod(0o755)
    (kept / "a0.json").chmod(0o644)
    here.remember(register.Registered("a1", tmp_path / "1", head), None)
    assert {stat.S_IMODE(one.stat().st_mode) for one in (kept, kept / "a0.json")} == {0o700, 0o600}


@pytest.mark.parametrize("paid", [1.9834837, 0.1234567, 2.9999999, 2 / 3, 3.0, float("inf")])
def test_what_is_told_to_fit_fits_as_it_is_told(table: Path, paid: float) -> None:
    """Rounded to six digits it could be a little more than there was; and "epsilon 0 is sure to fit"
    was said where nothing is."""
    account = beside(table)
    account.charge(asked(paid))
    account.set_limit(ROW, Budget(3.0, 1e-6))
    said = CliRunner().invoke(app, ["budget", str(table), "--quiet"]).output
    told = re.search(r"a question of epsilon (\S+) at delta = 0 is sure to fit", said)
    if paid >= 3.0:
        assert told is None
        assert "it is reached" in said
    else:
        assert told is not None
        account.charge(asked(float(told[1])))
