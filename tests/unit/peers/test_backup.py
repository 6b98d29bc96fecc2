"""A backup holds the keys and what was spent, and nothing a peer could go on from."""

import shutil
import stat
import zipfile

import pytest

from bruit.accounts.account import beside
from bruit.accounts.prices import Price, Unit
from bruit.accounts.verify import verify
from bruit.errors import BrokenStateError, ConfigError, PrivacyError
from bruit.peers.journal.journal import recorded_spend
from bruit.peers.site.backup import back_up
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.identity import Identity
from tests.unit.peers.small_network import found_small, live_together


@pytest.fixture
def ran(tmp_path):
    sites = found_small(tmp_path)
    live_together(sites)
    return sites


def test_keys_and_ledger_come_back(ran, tmp_path):
    out = tmp_path / "kept.zip"
    assert (
        back_up(read_site(ran[0]), ran[0], out) == 13
    )  # six releases, and a dither of every message
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with zipfile.ZipFile(out) as archive:
        archive.extractall(tmp_path / "back")
        names = set(archive.namelist())
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o600}
    for file in (tmp_path / "back").iterdir():
        file.chmod(0o600)  # Python's own reader forgets modes, unlike unzip
    assert names == {
        "key.pem",
        "signing.pem",
        "certificate.pem",
        "site.toml",
        "book.toml",
        "experiment.toml",
        "ledger.db",
        "books.json",
        "account.jsonl",
        "audit.jsonl",
    }
    assert (
        Identity.load(tmp_path / "back").fingerprint() == Identity.load(ran[0].parent).fingerprint()
    )
    assert recorded_spend(tmp_path / "back" / "ledger.db") == recorded_spend(
        ran[0].parent / "state" / "journal.db"
    )


def test_nobody_goes_on_from_it(ran, tmp_path):
    back_up(read_site(ran[0]), ran[0], tmp_path / "kept.zip")
    one = participant(read_site(ran[0]))
    secret = one.host.journal.secret()
    one.host.journal.close()
    journal = ran[0].parent / "state" / "journal.db"
    with zipfile.ZipFile(tmp_path / "kept.zip") as archive:
        ledger = archive.read("ledger.db")
    assert secret not in ledger
    journal.write_bytes(ledger)
    with pytest.raises(PrivacyError, match="is a copy of a journal"):
        participant(read_site(ran[0]))


def test_before_the_first_run_there_are_only_keys(tmp_path):
    sites = found_small(tmp_path)
    assert back_up(read_site(sites[1]), sites[1], tmp_path / "kept.zip") == 0
    assert "ledger.db" not in zipfile.ZipFile(tmp_path / "kept.zip").namelist()


def test_it_is_never_written_over_another_nor_half(ran, tmp_path):
    out = tmp_path / "kept.zip"
    out.write_text("mine")
    with pytest.raises(ConfigError, match=r"kept.zip exists already; choose another name"):
        back_up(read_site(ran[0]), ran[0], out)
    assert out.read_text() == "mine"
    with pytest.raises(ConfigError, match=r"cannot write .*No such file"):
        back_up(read_site(ran[0]), ran[0], tmp_path / "nowhere" / "kept.zip")
    (ran[0].parent / "signing.pem").unlink()
    with pytest.raises(ConfigError, match=r"there is no file .*signing.pem to back up"):
        back_up(read_site(ran[0]), ran[0], tmp_path / "other.zip")
    assert not (tmp_path / "other.zip").exists()


def test_a_running_peer_is_left_alone(ran, tmp_path):
    one = participant(read_site(ran[0]))
    with pytest.raises(ConfigError, match="in use by another process"):
        back_up(read_site(ran[0]), ran[0], tmp_path / "kept.zip")
    one.host.journal.close()
    assert not (tmp_path / "kept.zip").exists()


def lost_and_back(site, tmp_path):
    """The disk is lost, and another has the backup and the records."""
    back_up(read_site(site), site, tmp_path / "kept.zip")
    records = site.parent / "records.npz"
    kept, account = records.read_bytes(), beside(records)
    shutil.rmtree(site.parent)
    with zipfile.ZipFile(tmp_path / "kept.zip") as archive:
        archive.extractall(site.parent)
    for file in site.parent.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    records.write_bytes(kept)
    return account


def test_a_peer_that_was_restored_does_not_begin_at_nothing(ran, tmp_path):
    site = ran[0]
    spent = beside(site.parent / "records.npz").balance().charged
    assert spent
    account = lost_and_back(site, tmp_path)
    with pytest.raises(BrokenStateError, match=r"account.jsonl came out of a backup.*lacks"):
        participant(read_site(site))
    copy = site.parent / "account.jsonl"
    shutil.copy(copy, account.path)
    assert account.balance().charged == spent  # it is read, but pays for nothing
    price = Price.stated("a question", 1.0, 0.0, "user", "everybody")
    for ask in (lambda: participant(read_site(site)), lambda: account.charge(price)):
        with pytest.raises(PrivacyError, match="what was paid after that is not in it"):
            ask()
    account.state_since(Price.stated("since", 0.5, 0.0, "user", "everybody"))
    one = participant(read_site(site))
    one.paying.begin()
    one.host.journal.close()
    events = account.balance().events(Unit.of("user"))
    assert len(account.balance().charged) == len(spent) + 2
    assert all(part in events for charged in spent for part in charged.price.events)
    assert verify(account.path).good


def test_an_account_that_went_on_is_not_rolled_back(ran, tmp_path):
    site = ran[0]
    back_up(read_site(site), site, tmp_path / "kept.zip")
    account = beside(site.parent / "records.npz")
    account.charge(Price.stated("later", 1.0, 0.0, "user", "everybody"))
    later = account.path.read_bytes()
    with zipfile.ZipFile(tmp_path / "kept.zip") as archive:
        archive.extractall(site.parent)  # over a peer that is there
    for file in site.parent.glob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    participant(read_site(site)).host.journal.close()
    assert account.path.read_bytes() == later
    with pytest.raises(ConfigError, match="did not come out of a backup"):
        account.state_since(Price.stated("since", 0.0, 0.0, "user", "everybody"))
    before = account.path.read_bytes().split(b"\n")
    account.path.write_bytes(b"\n".join(before[:2]) + b"\n")  # an older one than the backup
    with pytest.raises(BrokenStateError, match=r"lacks what it says|old copy"):
        participant(read_site(site))


def test_changes_of_keys_and_versions_of_the_book_come_back(tmp_path):
    (site, *_) = found_small(tmp_path)
    told = site.parent / "successions" / "one"
    told.parent.mkdir()
    told.write_text("a change of keys")
    back_up(read_site(site), site, tmp_path / "kept.zip")
    assert zipfile.ZipFile(tmp_path / "kept.zip").read("successions/one") == told.read_bytes()
