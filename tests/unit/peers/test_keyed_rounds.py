"""Canceling noise of real neighbors: keys before values, the same two keys at both ends, and no
value under two noises, whoever starts again when."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from bruit.algorithms.algorithm import EVERYBODY
from bruit.algorithms.masks import pair_dice
from bruit.errors import LocalProtocolError, PrivacyError, RemoteProtocolError
from bruit.peers import agreed_masks
from bruit.peers.recalling import recall
from bruit.peers.site.site import participant, read_site
from bruit.privacy.events import GaussianEvent
from bruit.privacy.toolbox.pld import compose_epsilon
from tests.unit.peers.keyed_peers import GOPA, Peers
from tests.unit.peers.small_network import found_small, live_together


def values(people):
    return np.array([one.task.value(np.array([one.host.me]))[0] for one in people])


def check_sums(people):
    """All have the mean, to the error of their own noises: what cancels is a thousand times as
    large."""
    models = np.array([one.host.machine.state.value[0] for one in people])
    assert np.abs(models - values(people).mean(axis=0)).max() < 6 * 0.02
    assert np.ptp(models, axis=0).max() < 1e-6


def stopping(when):
    """All stop as soon as one of them is so far."""
    everybody = []

    def change(one):
        host, flush = one.host, one.host._flush
        everybody.append(host)

        def flushed():
            flush()
            if when(host.machine):
                for other in everybody:
                    other.stop()

        host._flush = flushed

    return change


@pytest.mark.slow
def test_noise_of_vectors_cancels_on_a_random_graph(tmp_path):
    """Everybody picked two others (perso:GOPA-2): noise is shared with all who picked one or were
    picked, and hides every number of the forty."""
    text = GOPA.replace("complete:4", "kout:7,k=2").replace("dim = 3", "dim = 40")
    words, longer = [], text.replace("steps = 8", "steps = 60")
    sites = found_small(tmp_path, longer, 7, timeout=10.0)
    people, reports = live_together(sites, change=noting(words))
    models = np.array([one.host.machine.state.value[0] for one in people])
    assert np.abs(models - values(people).mean(axis=0)).max() < 6 * 0.02
    graph = people[0].host.machine.seat.graph
    assert len(graph.edges()) < 7 * 6 / 2
    for peer, word in words:
        assert np.median(np.abs(word.row[0] - values(people)[peer])) > 1.0
    for peer, report in enumerate(reports):
        assert report["noise_shared_with"] == graph.neighbors(peer).tolist()
        assert (report["releases"], report["problems"]) == (1, [])


def test_noise_cancels_and_hides(tmp_path):
    words = []
    sites = found_small(tmp_path, GOPA, 4, timeout=10.0)
    people, reports = live_together(sites, change=noting(words))
    check_sums(people)
    assert sorted(peer for peer, _ in words) == [0, 1, 2, 3]
    for peer, word in words:
        assert word.number == 0
        assert np.abs(word.row[0] - values(people)[peer]).max() > 1.0
    for one, report in zip(people, reports, strict=True):
        assert report["problems"] == []
        assert report["noise_shared_with"] == [peer for peer in range(4) if peer != one.host.me]
        assert report["releases"] == 1


def test_what_a_peer_says_it_spent_counts_on_its_own_noise_only(tmp_path):
    text = GOPA.replace("sigma = 0.02", "sigma = 20.0")
    people, reports = live_together(found_small(tmp_path, text, 4, timeout=10.0))
    for one, report in zip(people, reports, strict=True):
        ledger = one.host.ledger
        (own,) = [event for event in ledger.events if isinstance(event, GaussianEvent)]
        assert own.noise_multiplier == 20.0 / 18.0
        assert report["against"] == EVERYBODY
        assert report["epsilon"] == pytest.approx(compose_epsilon([(own, 1)], 1e-6))
        assert 1 < report["epsilon"] < 10


def noting(words):
    """Notes what hosts put into their journals because no later start can make it again."""

    def change(one):
        uttered, derived = one.host.machine.uttered, one.host.machine.derived

        def noted():
            found = uttered()
            words.extend((one.host.me, word) for word in found)
            return found

        one.host.machine.derived = (*derived, "uttered", "derived")
        one.host.machine.uttered = noted

    return change


def often(one):
    one.host.enough = 2000
    object.__setattr__(one.host.settings, "kept", 2000)


@pytest.mark.parametrize("change", [lambda one: None, often], ids=["inputs", "snapshots"])
@pytest.mark.parametrize("count", [0, 5])
def test_stopped_after_it_spoke_and_started_again(tmp_path, change, count):
    sites = found_small(tmp_path, GOPA, 4, timeout=10.0)
    stop = stopping(lambda machine: machine.state is not None and machine.count >= count)

    def both(one):
        change(one)
        stop(one)

    before, _ = live_together(sites, change=both)
    spoke = [one.host for one in before if one.host.machine.state is not None]
    assert spoke
    for host in spoke:
        again = participant(read_site(sites[host.me])).host
        again._line = lambda peer: None
        recall(again)
        assert np.array_equal(again.machine.state.value, host.machine.state.value)
        assert again.machine.uttered() == again.machine._recited == []
        assert again.machine.renew(0.0, bytes(32)) == []  # who has spoken shows no key any more
        again.journal.close()
    if len(spoke) < 4:
        return  # those who had not spoken find that they cannot: see below
    words = []

    def noted(one):
        change(one)
        noting(words)(one)

    after, reports = live_together(sites, change=noted)
    assert words == []  # nothing is masked a second time
    assert all(report["releases"] == 1 and not report["problems"] for report in reports)
    check_sums(after)


def test_hosts_stopped_between_pact_and_first_word_say_why_they_do_not_go_on(tmp_path):
    """Peer 0 has everybody's key and speaks; the others do not hear one another before they stop."""
    sites = found_small(tmp_path, GOPA, 4, timeout=1.0)
    stop = stopping(lambda machine: machine.state is not None)

    def change(one):
        take, me = one.host._take, one.host.me

        def deaf(step, sender, frame, data):
            if me == 0 or sender == 0:
                take(step, sender, frame, data)

        one.host._take = deaf
        stop(one)

    before, _ = live_together(sites, change=change)
    assert [one.host.machine.state is not None for one in before] == [True, False, False, False]
    _, reports = live_together(sites)
    assert [report["releases"] for report in reports] == [1, 0, 0, 0]
    assert any("noise shared with peer-1" in problem for problem in reports[0]["problems"])
    for report in reports[1:]:
        assert report["epsilon"] == 0.0
        assert not report["done"]
        assert report["noise_against_lost_keys"] == [0]
        assert "nothing was released and nothing was spent" in report["problems"][0]


def test_no_key_is_in_any_file(tmp_path, monkeypatch):
    made, secrets, agreed = [], [], agreed_masks.AgreedMasks._agreed

    class Noting:
        @staticmethod
        def generate():
            made.append(X25519PrivateKey.generate())
            return made[-1]

    def noted(*given):
        secrets.append(agreed(*given))
        return secrets[-1]

    monkeypatch.setattr(agreed_masks, "X25519PrivateKey", Noting)
    monkeypatch.setattr(agreed_masks.AgreedMasks, "_agreed", noted)
    live_together(found_small(tmp_path, GOPA, 4, timeout=10.0), change=often)
    assert (len(made), len(secrets)) == (4, 12)
    content = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for private in (*(key.private_bytes_raw() for key in made), *secrets):
        assert private not in content
        assert private.hex().encode() not in content


def test_a_rehearsal_needs_no_keys(tmp_path):
    people, _ = live_together(found_small(tmp_path, GOPA, 4, timeout=10.0), rehearse=5)
    check_sums(people)


# machines without sockets


def test_who_starts_again_before_anybody_spoke_shows_a_new_key():
    peers = Peers(3)
    peers.begin(0, 1)  # peer 2 is not there yet
    peers.deliver_all()
    peers.restart(0)
    peers.begin(2)
    peers.deliver_all()
    assert peers.spoke() == {0, 1, 2}
    peers.check()


def test_who_starts_again_after_a_neighbor_spoke_releases_nothing_for_good():
    peers = Peers(3)
    peers.begin(0, 1, 2)
    peers.deliver_until(lambda: bool(peers.spoke()))
    (first,) = peers.spoke()
    lost = (first + 1) % 3
    peers.restart(lost)
    peers.deliver_all()
    for _ in range(2):
        assert lost not in peers.spoke()
        assert len(peers.machine(lost).seat.door.ledger) == 0
        assert "nothing was spent" in peers.gave_up[lost]
        peers.restart(lost)
    peers.check()


def test_without_all_keys_nobody_speaks():
    peers = Peers(3)
    peers.begin(0, 1)
    peers.deliver_all()
    for peer in (0, 1):
        peers.wake(peer, "grace", 1)
        assert "no keys for canceling noise with peer 2" in peers.gave_up[peer]
    peers.begin(2)
    peers.deliver_all()  # those two have given up, until they start again
    assert peers.spoke() == set()
    peers.restart(0)
    peers.restart(1)
    peers.deliver_all()
    assert peers.spoke() == {0, 1, 2}
    peers.check()


@pytest.mark.parametrize("seed", range(150))
def test_started_again_at_random_moments(seed):
    """Whatever comes in between: two that spoke used the same two keys, and nobody said two first
    words."""
    chance = np.random.default_rng(seed)
    peers = Peers(4)
    waiting, restarts = list(chance.permutation(4)), 0
    while waiting or peers.under_way():
        if waiting and chance.random() < 0.3:
            peers.begin(int(waiting.pop()))
        elif restarts < 6 and peers.begun and chance.random() < 0.1:
            peers.restart(int(chance.choice(sorted(peers.begun))))
            restarts += 1
        elif peers.under_way():
            peers.deliver(chance)
    peers.check()
    if not restarts:
        assert peers.spoke() == {0, 1, 2, 3}


def test_hostile_pacts():
    peers = Peers(2)
    peers.begin(0, 1)
    machine = peers.machine(0)
    theirs = peers.first_word(1, 0)
    weak = theirs.row._replace(key=np.zeros((1, 32), np.uint8))
    with pytest.raises(RemoteProtocolError, match="hides nothing"):
        machine.hear(0.0, 1, type(theirs)("pact", 1, weak))
    machine.seat.seals.forged.add(1)
    with pytest.raises(RemoteProtocolError, match="has not signed"):
        machine.hear(0.0, 1, theirs)
    machine.seat.seals.forged.clear()

    def flood():
        for _ in range(300):
            key = np.frombuffer(agreed_masks.AgreedMasks().renew(), np.uint8)[None]
            machine.hear(0.0, 1, type(theirs)("pact", 1, theirs.row._replace(key=key)))

    with pytest.raises(RemoteProtocolError, match="more than 256 keys"):
        flood()
    assert machine.state is None


def test_a_pact_after_a_first_word_is_refused():
    peers = Peers(2)
    peers.begin(0, 1)
    pact = peers.first_word(1, 0)
    peers.deliver_all()
    assert peers.spoke() == {0, 1}
    with pytest.raises(RemoteProtocolError, match="after it has spoken"):
        peers.machine(0).hear(0.0, 1, pact)


def test_a_real_door_draws_no_canceling_noise_without_keys():
    peers = Peers(2)
    machine = peers.machine(0)
    peers.rekey(0)
    with pytest.raises(PrivacyError, match="keys that they agreed on"):
        machine._begun(machine._home(0, False))
    with pytest.raises(LocalProtocolError, match="32 secret bytes"):
        pair_dice(b"short")
