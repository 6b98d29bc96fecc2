"""The doctor names what fails between two sites, step by step, and reads no record."""

import asyncio
import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError, RemoteProtocolError
from bruit.peers.site import doctor
from bruit.peers.site.site import read_site
from bruit.peers.wire import line
from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.checkup import Checkup
from bruit.peers.wire.identity import CERTIFICATE, KEY, SIGNING_KEY, Identity
from bruit.peers.wire.versions import SPOKEN, Versions
from tests.unit.peers.relayed import relay_of, relayed_network
from tests.unit.peers.small_network import found_small, live_together


def examined(sites, wait=5.0, change=lambda patients: None, relay=None):
    """What the doctors of all these sites find, looking at the same time."""
    patients = [doctor.patient(read_site(site)) for site in sites]
    change(patients)

    async def all_of_them():
        if relay is not None:
            relay[0].open(relay[1].host, relay[1].port)
        try:
            return await asyncio.gather(*(doctor._examine(one, wait) for one in patients))
        finally:
            if relay is not None:
                await relay[0].close()

    return asyncio.run(all_of_them())


def seen_by(looker, sites, change=lambda patients: None):
    """What one doctor finds at once, while all the others answer."""
    patients = [doctor.patient(read_site(site)) for site in sites]
    change(patients)

    async def look():
        others = [await doctor._listen(one, set(), []) for one in patients if one.me != looker]
        try:
            return await doctor._examine(patients[looker], 0.0)
        finally:
            for other in others:
                await other.stop(None)

    return failed(asyncio.run(look()))


def test_all_is_well_and_no_record_is_read(tmp_path):
    sites = found_small(tmp_path)
    for site in sites:
        (site.parent / "records.npz").unlink()
    found = examined(sites, wait=30.0)
    assert all(one.ok for one in found)
    steps = ["name", "port", "certificate", "version", "clock", "book", "experiment"]
    assert all(check.good == steps for one in found for check in one.checks)
    assert found[0].asked_by == ["peer-1", "peer-2"]
    assert not (sites[0].parent / "state").exists()


def test_through_a_relay_too(tmp_path):
    sites, folder = relayed_network(tmp_path, [0, 1, 2])
    found = examined(sites, wait=30.0, relay=relay_of(sites, folder))
    assert all(one.ok for one in found), found
    assert "relay" in found[0].checks[0].good


def test_a_relay_at_which_somebody_is_not(tmp_path):
    sites, folder = relayed_network(tmp_path, [0, 1, 2])
    found = examined(sites[:1], wait=0.0, relay=relay_of(sites, folder))[0]
    assert {check.failed for check in found.checks} == {"relay"}
    assert "is not connected to this relay" in found.checks[0].why


def failed(found):
    return {(check.neighbor, check.failed): check.why for check in found.checks if not check.ok}


def test_who_does_not_listen_and_who_has_no_address(tmp_path):
    sites = found_small(tmp_path)
    path = sites[0].parent / "book.toml"
    book = AddressBook.read(path)
    lost = replace(book.entry(2), host="nowhere.invalid")
    AddressBook.of([*book.entries[:2], lost]).write(path)
    found = failed(examined(sites[:1], wait=0.0)[0])
    assert "nowhere.invalid is not known here" in found["peer-2", "name"]
    assert "nobody listens at 127.0.0.1" in found["peer-1", "port"]


def test_a_certificate_that_is_another(tmp_path):
    sites = found_small(tmp_path)
    home = sites[1].parent
    fresh = Identity.create("peer-1")
    for name in (KEY, SIGNING_KEY, CERTIFICATE):
        (home / name).unlink()
    fresh.save(home)
    book = AddressBook.read(home / "book.toml")
    entries = [replace(one, certificate=fresh.certificate) if one.peer == 1 else one
               for one in book.entries]  # fmt: skip
    AddressBook.of(entries).write(home / "book.toml")
    why = seen_by(0, sites)["peer-1", "certificate"]
    assert "shows the certificate" in why
    assert fresh.fingerprint()[:24] in why
    assert "hangs up on this peer" in seen_by(1, sites)["peer-0", "certificate"]


@pytest.mark.parametrize(
    ("step", "words"),
    [("experiment", "another experiment"), ("version", "upgrade it"), ("clock", "s behind this")],
)
def test_what_differs_is_named(tmp_path, step, words):
    sites = found_small(tmp_path)
    if step == "experiment":
        path = sites[1].parent / "experiment.toml"
        path.write_text(path.read_text() + "\n# a comma\n")

    def change(patients):
        one = patients[1]
        real = one.own
        if step == "clock":
            patients[1] = replace(one, own=lambda: replace(real(), clock=real().clock - 3600.0))
        if step == "version":
            patients[0] = replace(patients[0], own=lambda: replace(real(), oldest=7, newest=9))

    found = seen_by(0, sites, change)
    assert words in found["peer-1", step]
    assert len(found) == 1 + (step == "version")


def test_the_command_says_it_in_words_and_in_json(tmp_path):
    sites = found_small(tmp_path)
    said = CliRunner().invoke(app, ["network", "doctor", str(sites[0])])
    assert said.exit_code == 1
    assert "peer-1 at 127.0.0.1" in said.output
    assert "port FAILS: nobody listens" in said.output
    said = CliRunner().invoke(app, ["network", "doctor", str(sites[0]), "--json"])
    about = json.loads(said.stdout)
    assert about["ok"] is False
    assert {pair["failed"] for pair in about["pairs"]} == {"port"}


def test_a_site_that_is_wrong_itself_is_refused(tmp_path):
    sites = found_small(tmp_path)
    (sites[0].parent / "experiment.toml").write_text("nonsense")
    with pytest.raises(ConfigError):
        doctor.patient(read_site(sites[0]))


def test_bytes_that_are_no_checkup():
    good = Checkup.now("a" * 64, "b" * 64)
    assert Checkup.of(good.to_bytes()) == good
    bad = [b"", b"[]", b"{}", b"\xff", b"[" * 2000, b"[" * 900, good.to_bytes() * 2,
           good.to_bytes().replace(b'"oldest": 1', b'"oldest": -1'),
           good.to_bytes().replace(b'"oldest": 1', b'"oldest": true'),
           replace(good, clock=float("nan")).to_bytes(),
           replace(good, release="\x1b[2J").to_bytes()]  # fmt: skip
    for data in bad:
        with pytest.raises(RemoteProtocolError):
            Checkup.of(data)


def test_versions_that_overlap_talk_and_others_say_who_has_to_change():
    Versions(1, 3).check(Versions(3, 4), "peer 1")
    Versions(2, 2).check(Versions(1, 5), "peer 1")
    with pytest.raises(RemoteProtocolError, match=r"speaks versions 3 to 4 .* upgrade bruit here"):
        Versions(1, 2).check(Versions(3, 4), "peer 1")
    with pytest.raises(RemoteProtocolError, match=r"speaks version 1 .* upgrade it"):
        Versions(2, 2).check(Versions(1, 1), "peer 1")
    assert Versions.of(SPOKEN.number) == SPOKEN
    assert Versions.of(0) == Versions(1, 1)  # of releases before there were versions
    for number in (1, 2**16, 5 << 16 | 4):
        with pytest.raises(RemoteProtocolError, match="impossible versions"):
            Versions.of(number)


def test_peers_of_two_releases_say_why_they_do_not_talk(tmp_path, monkeypatch, caplog):
    """Peer 1 is of a release to come, whose hello says so; the others refuse it by words, and it
    hears them."""
    real = line.Line._control

    def control(self, kind):
        if self.identity.name == "peer-1" and kind == "hello":
            monkeypatch.setattr(line, "SPOKEN", Versions(7, 9))
            try:
                return real(self, kind)
            finally:
                monkeypatch.setattr(line, "SPOKEN", SPOKEN)
        return real(self, kind)

    monkeypatch.setattr(line.Line, "_control", control)
    sites = found_small(tmp_path, timeout=0.5, lines="start_timeout = 2.0\n")
    _, reports = live_together(sites)
    assert [report["step"] for report in reports] == [0, 0, 0]
    assert "refused what peer 1 sent: peer 1 speaks versions 7 to 9 of the wire" in caplog.text
    assert "line to peer 0 is down: it refuses what this peer says: 'peer 1 speaks" in caplog.text


def test_a_hello_of_an_older_release_is_heard(tmp_path, monkeypatch):
    monkeypatch.setattr(line, "SPOKEN", Versions(0, 0))  # says nothing of versions
    _, reports = live_together(found_small(tmp_path))
    assert [report["problems"] for report in reports] == [[], [], []]
