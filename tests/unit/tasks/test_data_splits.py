"""Splits: who holds which record."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import ConfigError
from bruit.tasks.data import split

LABELS = np.repeat(np.arange(3.0), 40)


@settings(max_examples=50, deadline=None)
@given(records=st.integers(1, 200), peers=st.integers(1, 200), seed=st.integers(0, 1000))
def test_iid_deals_every_record_once_and_evenly(records, peers, seed):
    if peers > records:
        with pytest.raises(
            ConfigError, match=rf"peer {records} has no records; ask for fewer peers than {peers}"
        ):
            split.iid(np.zeros(records), peers, seed)
        return
    dealt = split.iid(np.zeros(records), peers, seed)
    assert sorted(dealt.rows.tolist()) == list(range(records))
    assert dealt.peers == peers
    assert dealt.sizes.max() - dealt.sizes.min() <= 1
    np.testing.assert_array_equal(dealt.rows, split.iid(np.zeros(records), peers, seed).rows)


def test_iid_with_sizes_and_with_replacement():
    dealt = split.iid(LABELS, 3, 0, sizes=np.array([1, 5, 9]))
    assert dealt.sizes.tolist() == [1, 5, 9]
    assert len(set(dealt.rows.tolist())) == 15
    many = split.iid(LABELS, 1000, 0, sizes=4, replacement=True)
    assert many.sizes.tolist() == [4] * 1000
    assert many.rows.max() < 120
    assert split.iid(LABELS, 200, 0, replacement=True).sizes.min() == 1


def test_by_owner_keeps_owners_apart():
    owners = np.array([7, 2, 7, 5, 2, 2])
    dealt = split.by_owner(owners)
    assert [dealt.of(i).tolist() for i in range(3)] == [[1, 4, 5], [3], [0, 2]]
    assert split.parse("owner", owners, owners, 3, 0).starts.tolist() == dealt.starts.tolist()


def test_owners_are_left_out_only_when_asked():
    """Fewer peers than owners kept the first owners and dropped the others without a word."""
    owners = np.array([7, 2, 7, 5, 2, 2])
    for ask in (
        lambda: split.by_owner(owners, 2),
        lambda: split.parse("owner", owners, owners, 2, 0),
    ):
        with pytest.raises(
            ConfigError,
            match=r"2 peers .* 3 owners, .* ask for 3 peers, or use split='owner:2', which "
            r"leaves out the last 1",
        ):
            ask()
    fewer = split.parse("owner:2", owners, owners, 2, 0)
    assert [fewer.of(i).tolist() for i in range(2)] == [[1, 4, 5], [3]]


def test_dirichlet_skews_labels_by_its_concentration():
    def purity(concentration):
        dealt = split.dirichlet(LABELS, 6, concentration, 1)
        assert sorted(dealt.rows.tolist()) == list(range(120))
        assert dealt.sizes.min() >= 1
        counts = [np.bincount(LABELS[dealt.of(i)].astype(int), minlength=3) for i in range(6)]
        return np.mean([c.max() / c.sum() for c in counts])

    assert purity(0.2) > 0.65
    assert purity(1000.0) < 0.4


def test_dirichlet_shares_have_the_dirichlet_mean_and_variance():
    """Share of class 0 held by peer 0: mean 1/n, variance (1/n)(1-1/n)/(n a + 1); 400 seeds,
    tolerance 5 sigma."""
    labels, peers, a = np.repeat(np.arange(2.0), 1000), 4, 2.0
    shares = []
    for seed in range(400):
        dealt = split.dirichlet(labels, peers, a, seed)
        shares.append((labels[dealt.of(0)] == 0).sum() / 1000)
    variance = 0.25 * 0.75 / (peers * a + 1)
    assert abs(np.mean(shares) - 0.25) < 5 * np.sqrt(variance / 400)
    assert np.var(shares) == pytest.approx(variance, rel=0.4)


def test_sized_stays_in_its_range():
    dealt = split.sized(LABELS, 10, 3, 9, seed=2)
    assert dealt.sizes.min() >= 3
    assert dealt.sizes.max() <= 9
    assert len(set(dealt.sizes.tolist())) > 1
    assert len(set(dealt.rows.tolist())) == len(dealt.rows)


@pytest.mark.parametrize(
    ("word", "sizes"), [("iid", [60, 60]), ("replicate:7", [7, 7]), ("sized:4:4", [4, 4])]
)
def test_words_name_splits(word, sizes):
    assert split.parse(word, LABELS, None, 2, 0).sizes.tolist() == sizes
    assert split.parse("owner", LABELS, np.repeat(np.arange(4), 30), None, 0).peers == 4
    assert split.parse("dirichlet:5", LABELS, None, 3, 0).peers == 3


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: split.iid(LABELS, 121, 0),
            r"peer 120 has no records; ask for fewer peers than 121 \(there are 120",
        ),
        (lambda: split.iid(LABELS, 0, 0), r"0 peers were asked for; there must be at least 1"),
        (lambda: split.iid(LABELS[:0], 1, 0), r"there is no record to deal"),
        (
            lambda: split.iid(LABELS, 2, 0, sizes=np.array([3, 0])),
            r"peer 1 has no records; give every peer a size",
        ),
        (
            lambda: split.iid(LABELS, 2, 0, sizes=100),
            r"2 peers of these sizes need 200 records, but there are 120",
        ),
        (
            lambda: split.by_owner(np.array([0, 1]), 3),
            r"3 peers were asked for, but the data has 2 owners",
        ),
        (lambda: split.dirichlet(LABELS, 3, 0.0, 0), r"concentration is 0.0; it must be positive"),
        (
            lambda: split.dirichlet(LABELS, 100, 0.01, 0),
            r"peer \d+ has no records after 100 Dirichlet draws",
        ),
        (lambda: split.sized(LABELS, 3, 5, 4, 0), r"sizes 5 to 4 are no range"),
        (
            lambda: split.sized(LABELS, 100, 5, 9, 0),
            r"100 peers of these sizes need \d+ records, but there are 120",
        ),
        (lambda: split.parse("owner", LABELS, None, 2, 0), r"split='owner' needs an owner column"),
        (
            lambda: split.parse("owner:3", np.zeros(2), np.array([0, 1]), 3, 0),
            r"first 3 owners, but the data has 2",
        ),
        (lambda: split.parse("owner:0", np.zeros(2), np.array([0, 1]), None, 0), r"ask for 1 to 2"),
        (
            lambda: split.parse("owner:1", np.zeros(2), np.array([0, 1]), 2, 0),
            r"makes 1 peers, but 2 were asked for",
        ),
        (
            lambda: split.parse("owner:few", np.zeros(2), np.array([0, 1]), 2, 0),
            r"split='owner:few' is not known",
        ),
        (lambda: split.divide(split.iid(LABELS, 120, 0), 0.5, 0), r"peer 0 holds 1 record"),
        (
            lambda: split.divide(split.iid(LABELS, 3, 0, sizes=90, replacement=True), 0.5, 0),
            r"drawn with replacement",
        ),
        (
            lambda: split.parse("iid", LABELS, None, None, 0),
            r"does not say how many peers there are; give peers=",
        ),
        (
            lambda: split.parse("even", LABELS, None, 2, 0),
            r"split='even' is not known; use 'iid', 'owner'",
        ),
        (lambda: split.parse("sized:a:b", LABELS, None, 2, 0), r"has a part that is no number"),
        (lambda: split.parse("dirichlet", LABELS, None, 2, 0), r"split='dirichlet' is not known"),
    ],
)
def test_bad_splits_are_refused(ask, message):
    with pytest.raises(ConfigError, match=message):
        ask()
