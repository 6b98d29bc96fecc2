"""Peers on ballots in one process: words of an earlier start are said again as they were, keys are
new, and nothing of a key is in any file."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bruit.algorithms.schedules.machine import Envelope
from bruit.errors import LocalProtocolError, RemoteProtocolError
from bruit.peers import agreed_masks
from bruit.peers.recalling import recall
from bruit.peers.site.site import participant, read_site
from bruit.privacy.toolbox.pld import compose_epsilon
from tests.unit.peers.small_network import found_small, live_together

TEXT = """\
graph = "complete:4"
steps = 8
seed = 3

[task]
kind = "mean"
dim = 3

[algorithm]
name = "masked-sgd"
dropouts = 1
spare = 5

[privacy]
epsilon = 40.0
"""


def stopping(charges):
    """All stop when the first has made so many attempts."""
    everybody = []

    def change(one):
        host = one.host
        everybody.append(host)
        flush = host._flush

        def flushed():
            flush()
            if host.machine.charges >= charges:
                for other in everybody:
                    other.stop()

        host._flush = flushed

    return change


def recalled(site):
    """A peer as its journal says, without a line to anybody."""
    again = participant(read_site(site))
    again.host._line = lambda peer: None
    recall(again.host)
    return again.host


def often(one):
    one.host.enough = 2000
    object.__setattr__(one.host.settings, "kept", 2000)


@pytest.mark.parametrize("change", [lambda one: None, often], ids=["inputs", "snapshots"])
def test_stopped_and_started_again(tmp_path, change):
    sites = found_small(tmp_path, TEXT, 4, timeout=3.0)
    stop = stopping(4)

    def both(one):
        change(one)
        stop(one)

    before, _ = live_together(sites, change=both)
    hosts = [one.host for one in before]
    assert any(host.machine.message is not None for host in hosts)
    for host, site in zip(hosts, sites, strict=True):
        again = recalled(site)
        assert again.machine.charges == host.machine.charges
        assert again.machine.attempts == host.machine.attempts
        assert again.machine.ballot == host.machine.ballot
        assert again.machine.key == host.machine.key  # not yet its own: nobody has asked it
        said, known = again.machine.message, host.machine.message
        assert (said is None) == (known is None)
        if known is not None:
            assert np.array_equal(said.row.words, known.row.words)
            assert np.array_equal(said.row.binding, known.row.binding)
        assert again.machine.uttered() == again.machine._recited == []
        again.journal.close()
    after, reports = live_together(sites, change=change)
    keys = [one.host.machine.key for one in (*before, *after)]
    assert len(set(keys)) == 8
    assert len({report["chain"] for report in reports}) == 1
    for one, report in zip(after, reports, strict=True):
        assert report["done"]
        assert report["step"] == 8
        assert report["charges"] == report["releases"] <= report["charges_planned"] == 13
        assert report["charges"] == len(report["attempts"])
        assert [line["round"] for line in report["rounds"]] == list(range(8))
        model = one.host.machine.state.model
        assert np.array_equal(model, after[0].host.machine.state.model)
        assert 0 < np.abs(model).max() < 100  # a mask that is left over is some 2^60 grains


def test_no_key_is_in_any_file(tmp_path, monkeypatch):
    made = []

    class Noting:
        @staticmethod
        def generate():
            made.append(X25519PrivateKey.generate())
            return made[-1]

    monkeypatch.setattr(agreed_masks, "X25519PrivateKey", Noting)
    secrets = []
    agreed = agreed_masks.AgreedMasks._agreed

    def noted(*given):
        secrets.append(agreed(*given))
        return secrets[-1]

    monkeypatch.setattr(agreed_masks.AgreedMasks, "_agreed", noted)
    sites = found_small(tmp_path, TEXT, 4, timeout=3.0)
    live_together(sites, change=stopping(4))
    live_together(sites, change=often)
    assert len(made) == 8
    assert len(secrets) >= 2 * 8  # with two neighbors on the circle each
    content = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    public = [key.public_key().public_bytes_raw() for key in made]
    assert any(key in content for key in public)  # that is where they would be found
    for private in (*(key.private_bytes_raw() for key in made), *secrets):
        assert private not in content
        assert private.hex().encode() not in content


def test_the_noise_is_made_for_all_attempts(tmp_path):
    """steps + spare releases fit into the agreed epsilon, one more does not."""
    site = found_small(tmp_path, TEXT, 4)[0]
    one = participant(read_site(site))
    assert (one.planned.most, one.planned.fixed) == (13, True)
    event = one.privacy.masked_event(3, one.host.machine.seat.door.grain(4, 3), 3).promised()
    spent = [compose_epsilon([(event, k)], 1e-6) for k in (13, 14)]
    assert spent[0] <= 40.0 * (1 + 1e-6) < spent[1]
    one.host.journal.close()


def test_whom_a_peer_waits_for_follows_the_schedule(tmp_path):
    site = found_small(tmp_path, TEXT, 4)[0]
    for lines, due in (("", (2, 2)), ("wait_for = 3\n", (3, 2)), ('quorum = "all"\n', (2, 3))):
        changed = site.parent / "changed.toml"
        changed.write_text(site.read_text() + lines)
        one = participant(read_site(changed))
        assert (one.host.settings.wait_for, one.host.settings.quorum) == due
        one.host.journal.close()


def test_keys_that_hide_nothing_are_refused_when_they_are_shown(tmp_path):
    site, other = found_small(tmp_path, TEXT, 4)[:2]
    mine, theirs = (participant(read_site(one)).host.machine for one in (site, other))
    mine.begin(0.0)
    theirs.renew(0.0, bytes(32))
    sent = theirs.begin(0.0)
    with pytest.raises(RemoteProtocolError, match="a key that hides nothing"):
        mine.receive(0.0, 1, sent[0].envelope)
    assert 1 not in mine._promises


def test_words_of_another_ballot_are_not_recited(tmp_path):
    """A journal whose words belong to another attempt is not gone on from."""
    sites = found_small(tmp_path, TEXT, 4, timeout=3.0)
    live_together(sites, change=stopping(2))
    host = participant(read_site(sites[0])).host
    host._line = lambda peer: None
    recite = host.machine.recite

    def wrong(envelope: Envelope):
        recite(Envelope(envelope.kind, envelope.number + 1, envelope.row))

    host.machine.recite = wrong
    with pytest.raises(LocalProtocolError, match="was about to say them again"):
        recall(host)
    host.journal.close()
