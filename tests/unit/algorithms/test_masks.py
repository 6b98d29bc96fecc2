"""Masks: they cancel in the sum over a list and hide everything less (silo:SILO-4)."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bruit.algorithms.masks import Masks, agreed_masks, drawn_masks, mask_edges, mask_words
from bruit.algorithms.schedules.ballots.attempt import Attempt
from bruit.algorithms.schedules.ballots.chain import NO_KEY, binding, extended
from bruit.errors import LocalProtocolError
from bruit.randomness import Replay

WIDTH = 3


def attempt_of(members, ballot=0, bindings=(b"H" * 32,), keys=None):
    keys = (NO_KEY,) * len(members) if keys is None else keys
    return Attempt(
        ballot=ballot, round=0, members=tuple(members), bindings=tuple(bindings), keys=tuple(keys)
    )


class Shared(Masks):
    """What two peers share, as a stand-in for a key agreement: a function of both keys."""

    def __init__(self, own):
        self.own = own

    def secret(self, me, other, other_key):
        both = np.frombuffer(self.own, np.uint8) ^ np.frombuffer(other_key, np.uint8)
        return both.tobytes()


def keys_of(members):
    return [bytes([member + 1]) * 32 for member in members]


@pytest.mark.parametrize("colluders", range(4))
@pytest.mark.parametrize("size", range(1, 13))
def test_masks_cancel_in_the_sum_over_the_list(size, colluders):
    """Complete and circular graphs, members that are any numbers, drawn and agreed masks, one copy
    and several."""
    members = sorted(np.random.default_rng(size).choice(40, size, replace=False).tolist())
    ids = np.array(members)
    drawn = drawn_masks(Replay(1), 0, ids, attempt_of(members), colluders, WIDTH)
    attempt = attempt_of(members, keys=keys_of(members))
    agreed = np.concatenate(
        [
            agreed_masks(Shared(key), np.array([me]), attempt, colluders, WIDTH)
            for me, key in zip(members, keys_of(members), strict=True)
        ]
    )
    for masks in (drawn, agreed):
        assert masks.shape == (size, WIDTH)
        assert not np.add.reduce(masks, axis=0).any()
        if size > 1:
            assert masks.any(axis=1).all()
    everybody = attempt_of(range(size), bindings=(b"a" * 32, b"b" * 32))
    copies = drawn_masks(Replay(1), 0, np.arange(2 * size), everybody, colluders, WIDTH)
    sums = np.add.reduce(copies.reshape(2, size, WIDTH), axis=1)
    assert not sums.any()
    later = replace(everybody, bindings=(b"b" * 32,), first=1)  # a chunk need not be the first
    alone = drawn_masks(Replay(1), 0, np.arange(size, 2 * size), later, colluders, WIDTH)
    assert np.array_equal(alone, copies[size:])
    if size > 1:
        assert not np.array_equal(copies[:size], copies[size:])


def test_each_peer_computes_its_own_rows_as_all_of_them_would():
    members = [1, 3, 4, 7, 9, 12, 13]
    attempt = attempt_of(members)
    whole = drawn_masks(Replay(5), 2, np.array(members), attempt, 1, WIDTH)
    for row, me in enumerate(members):
        alone = drawn_masks(Replay(5), 2, np.array([me]), attempt, 1, WIDTH)
        assert np.array_equal(alone[0], whole[row])
    shuffled = drawn_masks(Replay(5), 2, np.array(members[::-1]), attempt, 1, WIDTH)
    assert np.array_equal(shuffled[::-1], whole)


@pytest.mark.parametrize("colluders", range(4))
@pytest.mark.parametrize("size", range(2, 13))
def test_the_mask_graph_is_connected_without_any_colluders(size, colluders):
    """Every set of at most a members is taken out; no pair is listed twice; with one member more
    taken out, a circle may fall apart."""
    low, high = mask_edges(np.arange(size), colluders)
    assert np.all(low < high)
    assert len(set(zip(low.tolist(), high.tolist(), strict=True))) == len(low)
    for gone in range(min(colluders, size - 1) + 1):
        for taken in itertools.combinations(range(size), gone):
            rest = np.setdiff1d(np.arange(size), taken)
            kept = np.isin(low, rest) & np.isin(high, rest)
            ends = (np.searchsorted(rest, low[kept]), np.searchsorted(rest, high[kept]))
            graph = coo_array((np.ones(int(kept.sum())), ends), shape=(len(rest),) * 2)
            assert connected_components(graph, directed=False)[0] == 1
    beside = math.ceil((colluders + 1) / 2)
    assert len(low) == min(size * (size - 1) // 2, size * beside)


def test_a_mask_is_another_one_for_another_secret_or_binding():
    secret, bound = b"s" * 32, b"H" * 32
    words = mask_words(secret, bound, 8)
    assert np.array_equal(words, mask_words(secret, bound, 8))
    assert np.array_equal(words[:3], mask_words(secret, bound, 3))
    for other in (
        mask_words(b"t" * 32, bound, 8),
        mask_words(secret, b"I" * 32, 8),
        mask_words(secret, b"H" * 31, 8),
    ):
        assert not np.isin(other, words).any()
    with pytest.raises(LocalProtocolError, match="32 secret bytes, found 16"):
        mask_words(b"s" * 16, bound, 8)


def test_a_binding_is_another_one_for_another_ballot_list_key_round_or_past():
    """What H is made of: change one part, and every mask changes."""
    chain, members, keys = b"c" * 32, (0, 1, 3), (b"x" * 32, b"y" * 32, b"z" * 32)
    places = [
        binding(chain, 4, 2, members, keys),
        binding(chain, 5, 2, members, keys),
        binding(chain, 4, 3, members, keys),
        binding(chain, 4, 2, (0, 1, 2), keys),
        binding(chain, 4, 2, (0, 1), keys[:2]),
        binding(chain, 4, 2, members, (*keys[:2], b"w" * 32)),
        binding(extended(chain, np.zeros((1, 2), np.uint64)), 4, 2, members, keys),
        binding(extended(chain, np.ones((1, 2), np.uint64)), 4, 2, members, keys),
    ]
    assert len(set(places)) == len(places)
    words = [mask_words(b"s" * 32, place, 4).tolist() for place in places]
    assert len({number for row in words for number in row}) == 4 * len(places)


@pytest.mark.parametrize("changed", ["ballot", "list", "run", "binding"])
def test_drawn_masks_are_others_in_another_attempt(changed):
    """In a simulation too: a ballot whose list was made anew repeats no mask."""
    members = [0, 1, 2, 3, 4, 5]
    before = drawn_masks(Replay(1), 0, np.array(members), attempt_of(members), 1, WIDTH)
    shorter = [0, 1, 2, 3, 4]
    after = {
        "ballot": lambda: (members, attempt_of(members, ballot=1), 0),
        "list": lambda: (shorter, attempt_of(shorter, bindings=(b"L" * 32,)), 0),
        "run": lambda: (members, attempt_of(members), 1),
        "binding": lambda: (members, attempt_of(members, bindings=(b"I" * 32,)), 0),
    }[changed]()
    people, attempt, run = after
    masks = drawn_masks(Replay(1), run, np.array(people), attempt, 1, WIDTH)
    assert not np.isin(masks, before).any()


def test_the_words_of_one_peer_look_uniform():
    """Bits, bytes and neighbors of 6000 words of a member of a circle: 6 deviations each (false
    alarm 2e-9 a test)."""
    members = list(range(7))
    keys, rows = keys_of(members), []
    for ballot in range(300):
        bound = binding(b"c" * 32, ballot, 0, members, keys)
        attempt = attempt_of(members, ballot, (bound,), keys)
        rows.append(drawn_masks(Replay(8), 0, np.array([3]), attempt, 1, 10)[0])
        rows.append(agreed_masks(Shared(keys[3]), np.array([3]), attempt, 1, 10)[0])
    words = np.concatenate(rows)
    assert len(np.unique(words)) == len(words)
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 6 * 0.5 / math.sqrt(len(words))
    counts = np.bincount(words.view(np.uint8), minlength=256)
    spread = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert abs(spread - 255) < 6 * math.sqrt(2 * 255)
    signed = words.view(np.int64).astype(float) / 2.0**63
    assert abs(np.corrcoef(signed[:-1], signed[1:])[0, 1]) < 6 / math.sqrt(len(words))


def test_masks_of_one_peer_are_asked_for_one_peer():
    with pytest.raises(LocalProtocolError, match="those of one peer, found 2"):
        agreed_masks(Shared(b"k" * 32), np.array([0, 1]), attempt_of([0, 1]), 1, 2)
    with pytest.raises(LocalProtocolError, match="a hash each"):
        agreed_masks(
            Shared(b"k" * 32), np.array([0]), attempt_of([0, 1], bindings=(b"a", b"b")), 1, 2
        )
