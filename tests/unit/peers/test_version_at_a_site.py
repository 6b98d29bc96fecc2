"""Between two runs a key is revoked and replaced: members sign by the command line, peers start
under the new version only when enough have, and never again under the old one."""

import json
import logging
import shutil
import zipfile
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.peers.relay.serving import RelaySettings
from bruit.peers.site.backup import back_up
from bruit.peers.site.site import participant, read_site
from bruit.peers.wire.address_book import AddressBook, public_entry
from bruit.peers.wire.identity import Identity
from bruit.peers.wire.revisions.proposing import Changes, revise
from bruit.peers.wire.revisions.quorum import signed_by
from tests.unit.peers.small_network import found_small, live_together


def bruit(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def village(tmp_path):
    """Three sites under version 1, the keys of the third made anew, and a proposal that revokes
    the old ones."""
    sites = found_small(tmp_path)
    home = tmp_path / "network"
    first = AddressBook.read(home / "peer-0" / "book.toml")
    stolen, fresh = home / "peer-2", Identity.create("peer-2")
    for name in ("key.pem", "signing.pem", "certificate.pem"):
        shutil.move(stolen / name, home / name)
    fresh.save(stolen)
    first.write(home / "book.toml")
    (home / "public.toml").write_text(public_entry(fresh, "127.0.0.1", first.entry(2).port))
    said = bruit(
        *("network", "revise", home / "book.toml", "--add", home / "public.toml"),
        *("--revoke", first.entry(2).fingerprint, "--out", home / "book2.toml"),
        *("--from-run", home / "peer-0" / "experiment.toml"),
    )
    assert said.exit_code == 0, said.output
    assert "new key  peer-2" in said.output
    return sites, home


def give(home):
    for peer in range(3):
        shutil.copy(home / "book2.toml", home / f"peer-{peer}")


def named(sites):
    for site in sites:
        site.write_text(site.read_text() + 'book = "book2.toml"\n')


def test_a_key_is_revoked_and_replaced_between_two_runs(village, caplog):
    sites, home = village
    named(sites)
    looked = bruit("network", "book", home / "book2.toml")
    assert looked.exit_code == 1
    assert "signed by nobody; 2 are needed" in looked.output
    give(home)
    with pytest.raises(ConfigError, match="not signed by peer-0, peer-1, peer-2: let them sign"):
        participant(read_site(sites[0]))
    first = AddressBook.read(home / "book.toml").digest
    with pytest.raises(ConfigError, match="let them sign"):  # nor does a relay serve it
        RelaySettings(folder=home, books=[home / "book2.toml"]).read()
    thief = bruit("network", "sign", home / "book2.toml", "--identity", home)
    assert thief.exit_code != 0
    assert "is revoked" in str(thief.exception)
    fresh = bruit("network", "sign", home / "book2.toml", "--identity", home / "peer-2")
    assert "not in the version before" in str(fresh.exception)
    # two members sign a copy each, and the copies are put together
    for peer in (0, 1):
        shutil.copy(home / "book2.toml", home / f"peer-{peer}")
        shutil.copy(home / "book.toml", home / f"peer-{peer}")
    asked = ("network", "sign", home / "peer-0" / "book2.toml", "--site", sites[0])
    assert bruit(*asked).exit_code == 0
    one = bruit("network", "sign", home / "peer-1" / "book2.toml", "--identity", home / "peer-1")
    assert "IT DOES NOT STAND yet" in one.output
    both = bruit(*asked, "--json", home / "peer-1" / "book2.toml")
    assert json.loads(both.output)["signed"] == ["peer-0", "peer-1"]
    shutil.copy(home / "peer-0" / "book2.toml", home)
    shown = bruit("network", "book", home / "book2.toml", "--json")
    assert (shown.exit_code, json.loads(shown.output)["stands"]) == (0, True)
    give(home)
    # nobody here has taken part under version 1: it may be anybody's
    with pytest.raises(ConfigError, match=f'never taken part; .* write founding = "{first}"'):
        participant(read_site(sites[0]))
    for site in sites:
        site.write_text(site.read_text() + f'founding = "{first}"\n')
    with caplog.at_level(logging.WARNING):
        _, reports = live_together(sites)
    assert all(report["complete"] for report in reports)
    assert "valid from the experiment" not in caplog.text
    # from now on nobody takes the old version, and the old key opens no door
    sites[0].write_text(sites[0].read_text().replace("book2.toml", "book.toml"))
    with pytest.raises(ConfigError, match="version 1, but version 2 has been seen here"):
        participant(read_site(sites[0]))
    back_up(read_site(sites[0]), sites[0], home / "backup.zip")
    assert "books.json" in zipfile.ZipFile(home / "backup.zip").namelist()
    for name in ("key.pem", "signing.pem", "certificate.pem"):
        shutil.copy(home / name, home / "peer-2")
    with pytest.raises(ConfigError, match="lists another certificate for peer 2"):
        participant(read_site(sites[2]))


def test_the_run_from_which_it_is_valid_does_not_begin_under_the_old_one(village, caplog):
    sites, home = village
    begun = participant(read_site(sites[1]))  # under version 1, before anybody signed
    begun.host.journal.close()
    for peer in (0, 1):
        said = bruit("network", "sign", home / "book2.toml", "--identity", home / f"peer-{peer}")
        assert said.exit_code == 0, said.output
    give(home)
    with pytest.raises(ConfigError, match=r"book2.toml is version 2 .* name it in site.toml"):
        participant(read_site(sites[0]))
    participant(read_site(sites[1])).host.journal.close()  # a run that lives is not changed
    first = AddressBook.read(home / "book.toml").digest
    sites[0].write_text(sites[0].read_text() + f'founding = "{first}"\n')
    named(sites[:1])
    text = (home / "peer-0" / "experiment.toml").read_text()
    (home / "peer-0" / "experiment.toml").write_text(text.replace("steps = 6", "steps = 7"))
    participant(read_site(sites[0]), rehearse=1).host.journal.close()
    assert "is valid from the experiment" in caplog.text


def test_a_book_of_another_founding_is_not_taken_unasked(village):
    """Keys of this peer in a version 1 that nobody compared, and a version 2 with its quorum."""
    sites, home = village
    participant(read_site(sites[0])).host.journal.close()  # it takes part under the true version 1
    true = AddressBook.read(home / "book.toml")
    others = [Identity.create(name) for name in ("peer-1", "peer-2")]
    entries = [
        true.entry(0),
        *(replace(true.entry(k), certificate=one.certificate) for k, one in enumerate(others, 1)),
    ]
    false = AddressBook.of(entries)
    next_one = revise(false, Changes(quorum=3, from_run="x"))
    for one in others:
        next_one = signed_by(next_one, false, one)
    false.write(home / "peer-0" / "false.toml")
    next_one.write(home / "peer-0" / "book2.toml")
    named(sites[:1])
    with pytest.raises(ConfigError, match="under which this peer has never taken part"):
        participant(read_site(sites[0]))


def test_no_two_proposals_are_signed_by_one_hand(village):
    _, home = village
    assert (
        bruit("network", "sign", home / "book2.toml", "--identity", home / "peer-0").exit_code == 0
    )
    bruit(
        *("network", "revise", home / "book.toml", "--remove", "peer-1", "--from-run", "x"),
        *("--out", home / "other.toml"),
    )
    again = bruit("network", "sign", home / "other.toml", "--identity", home / "peer-0")
    assert "whoever signs two lets the members part" in str(again.exception)
    mixed = bruit(
        "network", "sign", home / "other.toml", home / "book2.toml", "--identity", home / "peer-1"
    )
    assert "is another book" in str(mixed.exception)
    assert "say who signs" in str(bruit("network", "sign", home / "other.toml").exception)
    anyway = ("network", "sign", home / "other.toml", "--identity", home / "peer-0", "--instead")
    assert bruit(*anyway).exit_code == 0
