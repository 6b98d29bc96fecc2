"""The ledger: columns, counts, interning, files."""

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.events import Exact, GaussianEvent, LaplaceEvent, Mask
from bruit.privacy.ledger import Ledger


def write(ledger: Ledger, peers: list[int], step: int, event) -> None:
    ids = np.array(peers, np.int64)
    ledger.record(ids, np.full(len(ids), step), np.full(len(ids), 10 * step), event)


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger(peers=4)
    write(made, [0, 1, 2], 0, GaussianEvent(1.5))
    write(made, [1], 1, Mask(2.0))
    write(made, [1, 1], 2, GaussianEvent(1.5))
    write(made, [3], 2, LaplaceEvent(0.5))
    return made


def test_lines_are_columns(ledger):
    assert len(ledger) == 7
    assert ledger.column("peer").tolist() == [0, 1, 2, 1, 1, 1, 3]
    assert ledger.column("step").tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert ledger.column("clock").tolist() == [0, 0, 0, 10, 20, 20, 20]
    assert ledger.column("event").tolist() == [0, 0, 0, 1, 0, 0, 2]


def test_equal_events_are_one_record(ledger):
    assert ledger.events == [GaussianEvent(1.5), Mask(2.0), LaplaceEvent(0.5)]
    assert ledger.is_data().tolist() == [True, False, True]
    assert not ledger.has_exact()


def test_counts(ledger):
    assert ledger.counts().tolist() == [[1, 0, 0], [3, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_an_event_nobody_caused_is_not_there():
    ledger = Ledger(peers=2)
    write(ledger, [], 0, Exact())
    assert (ledger.events, len(ledger), ledger.has_exact()) == ([], 0, False)
    assert ledger.counts().shape == (2, 0)
    assert ledger.column("event").tolist() == []


def test_phases_share_one_ledger(ledger):
    other = Ledger(peers=4)
    write(other, [2], 5, LaplaceEvent(0.5))
    write(other, [2], 6, Exact())
    ledger.extend(other)
    assert len(ledger) == 9
    assert ledger.counts()[2].tolist() == [1, 0, 1, 1]
    assert ledger.has_exact()
    with pytest.raises(PrivacyError, match="4 and of 3 peers"):
        ledger.extend(Ledger(peers=3))


def test_a_file_reads_back(ledger, tmp_path):
    ledger.save(tmp_path / "ledger.npz")
    again = Ledger.load(tmp_path / "ledger.npz")
    assert again.events == ledger.events
    for name in ("peer", "step", "clock", "event"):
        assert np.array_equal(again.column(name), ledger.column(name))
    Ledger(peers=3).save(tmp_path / "empty.npz")
    assert len(Ledger.load(tmp_path / "empty.npz")) == 0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"step": np.zeros(2, np.int64)}, "different lengths"),
        ({"peer": np.full(7, 4)}, "does not exist"),
        ({"peer": np.full(7, -1)}, "does not exist"),
        ({"event": np.full(7, 3)}, "does not exist"),
        ({"event": np.full(7, -1)}, "does not exist"),
    ],
)
def test_broken_files_are_refused(ledger, tmp_path, change, word):
    ledger.save(tmp_path / "ledger.npz")
    with np.load(tmp_path / "ledger.npz") as stored:
        columns = {name: stored[name] for name in stored.files} | change
    np.savez(tmp_path / "broken.npz", **columns)
    with pytest.raises(ConfigError, match=word):
        Ledger.load(tmp_path / "broken.npz")


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "trap.npz", peers=np.array([Ledger(peers=1)], object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        Ledger.load(tmp_path / "trap.npz")


def test_columns_are_put_together_once(ledger):
    """A question asked for twelve columns of a walk of 10^5 lines, and each was joined anew from
    10^5 parts."""
    first = ledger.column("peer")
    assert np.shares_memory(ledger.column("peer"), first)
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 7


def test_what_is_kept_grows_with_the_ledger(ledger):
    """Asked between any two lines, columns and counts are those of a ledger that was never asked
    before."""
    grown, fresh = Ledger(peers=4), Ledger(peers=4)
    for k, (peers, event) in enumerate(
        [
            ([0], Mask(1.0)),
            ([3, 3, 1], GaussianEvent(2.0)),
            ([0], Mask(1.0)),
            ([2], LaplaceEvent(1.0)),
        ]
    ):
        write(grown, peers, k, event)
        write(fresh, peers, k, event)
        grown.counts()
        grown.column("clock")
    for name in ("peer", "step", "clock", "event"):
        assert np.array_equal(grown.column(name), fresh.column(name))
    assert np.array_equal(grown.counts(), fresh.counts())
    assert grown.counts_of(3) == [(Mask(1.0), 0), (GaussianEvent(2.0), 2), (LaplaceEvent(1.0), 0)]
    grown.counts()[:] = 99
    assert grown.counts_of(0) == [(Mask(1.0), 2), (GaussianEvent(2.0), 0), (LaplaceEvent(1.0), 0)]
    assert grown.head(2).counts().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 2, 0]]
