"""A backup holds the keys and what was spent, and nothing a peer could go on from."""

import stat
import zipfile

import pytest

from bruit.errors import ConfigError, PrivacyError
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
