"""Honest runs are accepted, whatever the values, the graph and who drops out; and their numbers are
right."""

import contextlib
import json
import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bruit.commands.cli import app
from bruit.errors import ConfigError, PrivacyError, RemoteProtocolError
from bruit.graphs import complete, from_edges, path, ring
from bruit.peers.wire.identity import SIGNING_OID, Identity, read_certificate
from bruit.privacy.binomial_profile import BinomialProfile
from bruit.randomness import Replay
from bruit.statistics.average.board import (
    AverageAgreement,
    BoardFile,
    Organizer,
    Post,
    Prover,
    Record,
    load_record,
    verified_run,
    verify,
)
from bruit.statistics.average.board.coins import coins_of
from bruit.statistics.average.board.privacy import guarantee, worst_epsilon
from bruit.statistics.average.board.prover import rounded_levels
from bruit.statistics.average.proofs.group import ORDER
from tests.unit.statistics.board.small_board import LEVELS, Small


@pytest.fixture
def place(tmp_path):
    return tmp_path / "board.db"


@settings(max_examples=4, deadline=None)
@given(
    st.integers(2, 5),
    st.sampled_from([complete, path]),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 2),
    st.sampled_from([None, "join", "commit", "proof"]),
    st.integers(0, 2**16),
)
def test_honest_peers_are_always_accepted(
    tmp_path_factory, n, family, levels, half, width, silent, seed
):
    """Completeness: no finding, and the sum is that of the values and the coins, to the unit
    (perso:GOPA-9)."""
    values = np.random.default_rng(seed).random((n, width)).round(2)
    gone = {n - 1: silent} if silent and n > 3 and family is complete else {}
    place = tmp_path_factory.mktemp("run") / "board.db"
    run = verified_run(values, family(n), place, levels=levels, noise_bits=2 * half, silent=gone)
    assert run.report.findings == ()
    assert run.report.accepted
    assert run.report.caught == ()
    stayed = n - len(gone)
    assert len(run.report.online) == stayed
    assert np.all(np.abs(run.mean - values[:stayed].mean(axis=0)) <= (half + 1) / levels + 1e-9)


def test_the_sum_is_exactly_what_the_peers_hold(place):
    small = Small()
    record = small.run(place)
    held = sum(p._levels[0] + p._noise(record.beacon())[0] for p in small.provers)
    assert record.result.total == (held,)
    assert verify(place).mean[0] == pytest.approx(held / LEVELS / 4)


def test_dropouts_are_rolled_back_exactly(place):
    """perso:GOPA-7: the mean is over those that stayed, and no pair noise is left in it."""
    small = Small(pair_sigma=2.0**46)
    record = small.run(place, silent={3: "proof"})
    held = sum(p._levels[0] + p._noise(record.beacon())[0] for p in small.provers[:3])
    report = verify(place)
    assert report.accepted
    assert report.dropped == (3,)
    assert record.result.total == (held,)


def test_a_peer_does_not_open_its_last_exchanges(place):
    """All neighbors of peer 3 leave: were it to open its exchanges with them, its own coins alone
    would hide it."""
    graph, gone = (
        from_edges(6, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5)]),
        {2: "proof", 4: "proof", 5: "proof"},
    )
    report = verified_run(
        np.linspace(0, 1, 6), graph, place, levels=LEVELS, noise_bits=6, silent=gone
    ).report
    assert not report.accepted
    assert [(found.peer, found.kind) for found in report.findings] == [(3, "refused opening")]
    assert report.caught == ()
    alone = verified_run(
        np.linspace(0, 1, 6),
        graph,
        place.with_name("alone.db"),
        levels=LEVELS,
        noise_bits=6,
        silent=gone,
        partners=0,
    ).report
    assert alone.online == (0, 1, 3)


def test_masked_values_hide_behind_pair_noise(place):
    record = Small(pair_sigma=2.0**46).run(place)
    assert all(
        abs(mask.masked[0]) > 2**20 for mask in record.masks.values()
    )  # fails with probability 2e-9


def test_private_bits_cannot_bias_the_noise():
    """Whatever bits a peer chose before, coins make its noise binomial: chi-square at 1e-6, 4000
    beacons."""
    m, runs = 8, 4000
    ones = np.ones(m, bool)
    drawn = (ones ^ coins_of(k.to_bytes(32, "big"), 3, m) for k in range(runs))
    counts = np.bincount([int(row.sum()) for row in drawn], minlength=m + 1)
    wanted = runs * np.array([math.comb(m, k) for k in range(m + 1)]) / 2**m
    statistic = ((counts - wanted) ** 2 / wanted).sum()
    z = NormalDist().inv_cdf(1 - 1e-6)
    assert statistic < m * (1 - 2 / (9 * m) + z * math.sqrt(2 / (9 * m))) ** 3  # Wilson-Hilferty


def test_rounding_at_random_is_unbiased():
    agreement = Small(n=2, levels=4).agreement
    found = [rounded_levels(agreement, np.array([0.6]), k, Replay(1))[0] for k in range(500)]
    assert set(found) == {2, 3}
    assert abs(np.mean(found) - 2.4) < 5 * 0.49 / math.sqrt(500)  # five sigmas: 6e-7
    assert rounded_levels(agreement, np.array([1.0]), 0, Replay(1)) == (4,)


def test_nothing_wraps_around():
    """The largest sum of 2**24 peers, all at the ends of their ranges, is far below half of the
    group's order."""
    largest = 2**24 * (2**62 + 2**32 + 2**16)
    assert 2 * largest < ORDER


@pytest.mark.slow
def test_what_the_board_tells_is_accounted(place):
    run = verified_run(np.full(5, 0.5), ring(5), place, levels=1, noise_bits=30)
    told = guarantee(run.report, 0, 2)
    assert told.profile.inner == BinomialProfile(
        4 * 30, 1, 1, math.sqrt(2) / 2.0**40
    )  # 3 4 0 1: two steps at most
    assert 0 < told.profile.rounding < 1e-20
    assert float(told.epsilon(1e-6)) <= worst_epsilon(run.report) < 4


def test_a_prover_says_the_same_until_it_is_heard():
    """A message sent twice is the same message: two different ones would convict an honest peer."""
    small = Small(n=2)
    record = Record(small.agreement)
    assert small.provers[1].next(record) == []
    record.absorb(Organizer(small.agreement, small.signs[0]).open())
    (first,) = small.provers[1].next(record)
    record.absorb(small.provers[0].next(record)[0])
    assert small.provers[1].next(record) == [first]
    assert record.absorb(first) == []
    assert small.provers[1].next(record) == []


@pytest.mark.slow
def test_any_bytes_are_a_post_or_a_remote_error(place):
    """Nothing that comes from outside raises anything else."""
    small = Small(n=2)
    small.run(place)
    with BoardFile(place) as board:
        posts = board.posts()
    rng = np.random.default_rng(1)
    for post in posts:
        for payload in (
            "",
            "[]",
            "{}",
            "null",
            '{"pairs":{"x":1}}',
            '{"peers":"ab","coin":3,"proof":[1]}',
        ):
            record = Record(small.agreement)
            for earlier in posts[: posts.index(post)]:
                record.absorb(earlier)
            record.absorb(replace(post, payload=payload).signed(small.signs[post.author]))
            assert record.findings
        data = bytearray(post.to_bytes())
        for place_ in rng.integers(0, len(data), 20):
            data[place_] ^= int(rng.integers(1, 256))
            with contextlib.suppress(RemoteProtocolError):
                Post.from_bytes(bytes(data))


@pytest.mark.slow
def test_every_peer_with_a_copy_of_its_own(tmp_path):
    """As between machines: peers see the organizer's board late, speak from that, and all end with
    one head."""
    small = Small(n=3)
    organizer = Organizer(small.agreement, small.signs[0])
    copies = [BoardFile(tmp_path / f"{u}.db", durable=False) for u in range(3)]
    records = [Record(small.agreement) for _ in range(3)]

    def follow(u):
        fresh = copies[0].posts(records[u].length)
        if u:
            copies[u].extend(fresh, records[u].length)
        for post in fresh:
            assert records[u].absorb(post) == []

    copies[0].append(organizer.open())
    while records[0].result is None:
        heard = [
            post for u in (2, 1, 0) for post in small.provers[u].next(records[u])
        ]  # all speak at once
        for post in heard:
            copies[0].append(Post.from_bytes(post.to_bytes()))
        follow(0)
        for post in organizer.next(records[0]):
            copies[0].append(post)
        for u in (1, 2, 0):
            follow(u)
    assert {copy.head() for copy in copies} == {records[0].heads[-1]}
    assert all(verify(copy, copies).accepted for copy in copies)
    for copy in copies:
        copy.close()


def test_an_identity_signs_posts(place):
    """The Ed25519 key of a real peer's certificate is the key of the board."""
    identity = Identity.create("clinic")
    key = (
        read_certificate(identity.certificate)
        .extensions.get_extension_for_oid(SIGNING_OID)
        .value.value
    )
    post = Post(run=bytes(32), author=0, kind="join", seen=0, head=bytes(32), payload="{}").signed(
        identity.sign
    )
    assert post.is_signed_by(key.hex())
    assert not replace(post, payload="[]").is_signed_by(key.hex())


def test_copies_follow_and_come_back(place, tmp_path):
    small = Small()
    small.run(place)
    with BoardFile(place) as board, BoardFile(tmp_path / "copy.db", durable=False) as copy:
        assert copy.extend(board.posts()[:5]) == 5
        assert copy.extend(board.posts()) == len(board) - 5
        assert copy.head() == board.head()
        assert copy.extend(board.posts()) == 0
        record = load_record(copy)
        assert record.result is not None
        assert record.heads[-1] == board.head()
        assert verify(board, [copy]).accepted
        swapped = board.posts()
        swapped[2], swapped[1] = swapped[1], swapped[2]
        with pytest.raises(RemoteProtocolError, match=r"differs from .* at entry 1"):
            copy.extend(swapped)
        assert Post.from_bytes(board.posts()[3].to_bytes()) == board.posts()[3]


def test_a_peer_without_enough_exchanges_stays_silent(place):
    """All neighbors but one are gone: with partners = 2 nothing is published."""
    small = Small(partners=3)
    record = small.run(place, silent={3: "commit"})
    assert record.masks == {}
    assert not small.provers[0].protected(record)
    assert not verify(place).accepted


def test_bad_values_are_refused_before_anything_is_said():
    small = Small(n=2)
    for value, text in (
        ([1.01], "out of range: 1.01 to 1.01"),
        ([np.nan], "2 finite|1 finite"),
        ([0.1, 0.2], "shape"),
    ):
        with pytest.raises(ConfigError, match=text):
            Prover(small.agreement, 0, np.array(value), small.signs[0])
    with pytest.raises(ConfigError, match="no peer 5"):
        Prover(small.agreement, 5, np.zeros(1), small.signs[0])
    record = Record(small.agreement)
    record.absorb(Organizer(small.agreement, small.signs[0]).open())
    with pytest.raises(RemoteProtocolError, match="no public coins yet"):
        small.provers[0].proof(record)
    with pytest.raises(RemoteProtocolError, match="not everybody has agreed"):
        small.provers[0].mask(record)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"levels": 0}, "1 or more levels"),
        ({"noise_bits": 3}, "even number"),
        ({"low": 2.0}, "low and high"),
        ({"pair_sigma": 2.0**51}, "2\\*\\*46"),
        ({"edges": ((1, 0),)}, "u < v"),
        ({"keys": ("00" * 32,) * 2}, "different"),
        ({"organizer": 7}, "organizer"),
        ({"noise_bits": 2**17}, "more than 65536 bits"),
        ({"moved": 0}, "1 to 3 levels"),
        ({"moved": 4}, "1 to 3 levels"),
    ],
)
def test_agreements_that_mean_nothing(change, text):
    good = Small(n=2).agreement
    fields = {name: getattr(good, name) for name in good.__dataclass_fields__}
    with pytest.raises(ConfigError, match=text):
        AverageAgreement(**{**fields, **change})


def test_agreements_travel_in_one_form():
    good = Small(n=3).agreement
    assert AverageAgreement.from_json(good.to_json()) == good
    for text in (
        "",
        "[]",
        "{}",
        good.to_json().replace(":3,", ":3.5,"),
        good.to_json() + " ",
        good.to_json()[:-1],
    ):
        with pytest.raises(RemoteProtocolError, match="the agreement"):
            AverageAgreement.from_json(text)


def test_a_board_is_written_once(place):
    place.touch()
    with pytest.raises(ConfigError, match="a board is written once"):
        verified_run(np.zeros(2), complete(2), place)


def test_the_command_verifies_and_names(place, tmp_path):
    small = Small()
    small.run(place)
    done = CliRunner().invoke(app, ["gopa", "verify", str(place)])
    assert done.exit_code == 0, done.output
    assert "verified: mean" in done.output
    assert "epsilon" in done.output
    assert "delta = 1e-06" in done.output
    keys = tmp_path / "keys.json"
    keys.write_text('{"1": "%s"}' % ("ab" * 32))
    done = CliRunner().invoke(app, ["gopa", "verify", str(place), "--keys", str(keys), "--json"])
    assert done.exit_code == 1
    assert '"accepted": false' in done.output
    assert "wrong key" in done.output
    known = ["--run", small.agreement.run.hex(), "--against", str(place)]
    done = CliRunner().invoke(app, ["gopa", "verify", str(place), *known])
    assert done.exit_code == 0, done.output
    for words, text in (
        (["--run", "xyz"], "64 hexadecimal digits"),
        (["--keys", str(place)], "cannot read the keys"),
    ):
        done = CliRunner().invoke(app, ["gopa", "verify", str(place), *words])
        assert isinstance(done.exception, ConfigError)
        assert text in str(done.exception)


def verified_words(place, *words):
    done = CliRunner().invoke(app, ["gopa", "verify", str(place), *words])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_the_command_says_the_epsilon_of_what_the_board_protects(place):
    """A board about rows hides rows: it says their epsilon, and that nothing is claimed about all
    rows of a peer."""
    small = Small(levels=60, noise_bits=100, moved=2)
    small.run(place)
    told = verified_words(place)
    wanted = worst_epsilon(verify(place))
    assert wanted == pytest.approx(BinomialProfile(3 * 100, 2).epsilon(1e-6), rel=1e-3)
    assert f"each row: epsilon = {wanted:.4g}, delta = 1e-06, record level" in told
    assert "a peer as a whole: nothing is claimed" in told
    assert "inf" not in told
    assert "all 4 signed this board before anything was opened" in told


def test_the_command_says_when_there_is_no_epsilon(place):
    """Never `inf`: what the coins do not hide, in words and as null."""
    Small().run(place)
    assert (
        "each user: no epsilon at delta = 1e-06: 6 coins a number of 4 peers do not hide 3 levels"
        in (verified_words(place))
    )
    assert (
        json.loads(CliRunner().invoke(app, ["gopa", "verify", str(place), "--json"]).output)[
            "epsilon"
        ]
        is None
    )


def test_privacy_of_a_refused_board_is_not_claimed(place):
    Small().run(place, silent={1: "reveal"})
    with pytest.raises(PrivacyError, match="not accepted"):
        guarantee(verify(place), 0, 1)
