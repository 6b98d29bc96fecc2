"""The account of a table: what would let it say less than the rows have paid."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bruit.errors import BrokenStateError, ConfigError, PrivacyError
from bruit.statistics.spent_file import SpentFile, beside, in_all, total


def test_a_record_that_is_a_link_is_read_and_written_where_it_leads(tmp_path: Path) -> None:
    """Two tables of the same people may share an account by a link; paying must not cut it."""
    shared = tmp_path / "people.json"
    SpentFile(shared).write(1.0)
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv.spent.json").symlink_to(shared)
        beside(tmp_path / f"{name}.csv").write(1.0)
    assert total(SpentFile(shared).lines()) == 3.0
    with pytest.raises(PrivacyError, match="have paid epsilon = 3 "):
        beside(tmp_path / "a.csv", 3.5).check(1.0)


def test_a_record_whose_link_leads_nowhere_answers_nothing(tmp_path: Path) -> None:
    record = beside(tmp_path / "a.csv", limit=5.0)
    Path(record.path).symlink_to(tmp_path / "not-mounted" / "a.json")
    with pytest.raises(ConfigError, match="does not say what the rows have paid"):
        record.check(1.0)
    with pytest.raises(ConfigError):
        record.write(1.0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[",
        b"{}",
        b"[1]",
        b'[{"epsilon": -1}]',
        b'[{"epsilon": "nan"}]',
        b"\xff\xfe",
        b"[" * 10**5,
    ],
)
def test_a_damaged_record_is_broken_state_and_answers_nothing(
    tmp_path: Path, content: bytes
) -> None:
    """Exit code 3, like a damaged journal: what was paid is not known any more."""
    record = beside(tmp_path / "a.csv", limit=5.0)
    Path(record.path).write_bytes(content)
    for ask in (lambda: record.check(1.0), lambda: record.write(1.0)):
        with pytest.raises(BrokenStateError, match="does not say what the rows have paid") as found:
            ask()
        assert found.value.exit_code == 3
    assert Path(record.path).read_bytes() == content


def test_deltas_are_added_and_said(tmp_path: Path) -> None:
    record = SpentFile(tmp_path / "a.json")
    record.write(1.0)
    assert in_all(record.lines()) == "epsilon = 1"
    for _ in range(2):
        record.write(1.0, delta=1e-6)
    assert in_all(record.lines()) == "epsilon = 3, delta = 2e-06"


@pytest.mark.parametrize("delta", [0.9, 2e-3, float("nan"), -1.0])
def test_a_limit_is_not_passed_by_below_a_large_delta(tmp_path: Path, delta: float) -> None:
    record = SpentFile(tmp_path / "a.json", limit=3.0)
    with pytest.raises(PrivacyError, match="ask with a smaller delta"):
        record.write(0.001, delta=delta)
    assert record.lines() == []


def test_a_payment_is_on_the_disk_under_its_name_before_anything_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new name in a folder is lost in a power cut unless the folder is synced, too."""
    synced: list[bool] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    SpentFile(tmp_path / "a.json").write(1.0)
    assert synced[-2:] == [False, True]
