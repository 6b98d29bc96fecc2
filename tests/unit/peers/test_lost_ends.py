"""A journal that has lost its end is refused, whatever was lost; one that was only killed goes
on."""

import random
import shutil

import pytest

from bruit.errors import BrokenStateError, PrivacyError
from bruit.peers.journal.file import create
from bruit.peers.journal.head import condemned, read_head
from bruit.peers.journal.journal import Journal, copy_ledger, recorded_spend
from tests.unit.peers.test_journal import tell
from tests.unit.peers.toy_peer import FACTS, RUN, open_journal


def killed(folder, steps=6):
    """The files of a journal as kill -9 leaves them."""
    place = folder / "lived"
    place.mkdir()
    with open_journal(place / "journal.db") as journal:
        for _ in range(steps):
            tell(journal)
        shutil.copytree(place, folder / "killed")
    return folder / "killed"


def copied(folder, name, leave_out=()):
    shutil.copytree(folder, folder.parent / name, ignore=shutil.ignore_patterns(*leave_out))
    return folder.parent / name / "journal.db"


def refused(path, words="is damaged"):
    with pytest.raises(BrokenStateError, match=words) as error:
        open_journal(path)
    assert error.value.exit_code == 3
    with pytest.raises(BrokenStateError):  # nor does it help to try again
        open_journal(path)


def test_a_killed_journal_goes_on(tmp_path):
    path = copied(killed(tmp_path), "again")
    for _ in range(3):
        with open_journal(path) as journal:
            assert (journal.last_sent(1), len(journal.spent()), journal.lines) == (6, 6, 6)
    with open_journal(path) as journal:
        assert tell(journal) == [7]


def test_a_lost_log_is_noticed(tmp_path):
    refused(
        copied(killed(tmp_path), "lost", ["*-wal"]),
        "it was not closed, and its log journal.db-wal is missing",
    )


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.6, 0.95, 0.9999])
def test_a_cut_log_is_noticed(tmp_path, part):
    path = copied(killed(tmp_path), "cut")
    wal = path.with_name("journal.db-wal")
    wal.write_bytes(wal.read_bytes()[: int(part * wal.stat().st_size)])
    refused(path)


def test_one_flipped_bit_in_the_log_is_noticed_wherever_it_is(tmp_path):
    found, chance = killed(tmp_path), random.Random(3)
    size = (found / "journal.db-wal").stat().st_size
    for trial, place in enumerate(
        [*range(0, 32, 9), *(chance.randrange(32, size) for _ in range(12)), size - 1]
    ):
        path = copied(found, f"flipped-{trial}")
        wal = path.with_name("journal.db-wal")
        content = bytearray(wal.read_bytes())
        content[place] ^= 1 << chance.randrange(8)
        wal.write_bytes(content)
        refused(path)


@pytest.mark.parametrize("bit", [0x80, 0x01])
@pytest.mark.parametrize(
    "words",
    [
        b"CREATE TABLE spends",
        b"event TEXT",
        b"run_id",
        b"ab" * 32,
        b"secret",
        b"starts",
        b"seal",
        b"records",
        b"gaussian 2.0",
        b"noise_multiplier",
    ],
)
def test_a_flipped_bit_in_the_file_itself_is_damage_whatever_it_looks_like(tmp_path, words, bit):
    """In the schema, the header, a fact or a ledger line: never a crash, and never other records."""
    path = tmp_path / "flipped" / "journal.db"
    path.parent.mkdir()
    with open_journal(path) as journal:
        tell(journal)
    content = bytearray(path.read_bytes())
    content[content.index(words) + 1] ^= bit
    path.write_bytes(content)
    with pytest.raises(BrokenStateError), open_journal(path) as journal:
        journal.spent()


def test_an_older_file_under_a_newer_head_is_noticed(tmp_path):
    """Only the database was restored, from before; then the database and its log."""
    old = killed(tmp_path)
    path = copied(old, "went-on")
    with open_journal(path) as journal:
        tell(journal)
    shutil.copy(old / "journal.db", path)
    refused(path, "its log was lost or damaged, or it is an old copy")
    shutil.copy(old / "journal.db-wal", path.parent)
    refused(path, "it ends at step 6 with 6 ledger lines, but journal.db-head says step 7 with 7")


def test_another_history_of_the_same_length_is_noticed(tmp_path):
    old = killed(tmp_path)
    one, other = copied(old, "one"), copied(old, "other")
    for path, words in ((one, b"one"), (other, b"other")):
        with open_journal(path) as journal:
            tell(journal, words)
    shutil.copy(other, one)
    refused(one, r"step 7 is another one than journal\.db-head says")


def test_after_a_power_cut_the_head_may_lag_but_the_log_must_be_there(tmp_path):
    place = tmp_path / "lived"
    place.mkdir()
    with open_journal(place / "journal.db") as journal:
        tell(journal)
        early = (place / "journal.db-head").read_bytes()
        for _ in range(4):
            tell(journal)
        shutil.copytree(place, tmp_path / "cut")
    cut = tmp_path / "cut"
    (cut / "journal.db-head").write_bytes(early)
    refused(copied(cut, "no-log", ["*-wal"]), "its log journal.db-wal is missing")
    with open_journal(copied(cut, "whole")) as journal:
        assert journal.lines == 5


def test_a_snapshot_keeps_the_chain_and_the_head_is_never_older(tmp_path):
    place = tmp_path / "lived"
    place.mkdir()
    with open_journal(place / "journal.db") as journal:
        tell(journal)
        early = (place / "journal.db-head").read_bytes()
        tell(journal)
        journal.snapshot(b"state")
        tell(journal)
        shutil.copytree(place, tmp_path / "killed")
    path = copied(tmp_path / "killed", "again")
    with open_journal(path) as journal:
        assert journal.lines == 3
        tell(journal)
    with open_journal(path) as journal:
        assert journal.lines == 4
    path = copied(tmp_path / "killed", "old-head")
    path.with_name("journal.db-head").write_bytes(early)
    refused(path, r"journal\.db-head is older than the snapshot")


def test_a_missing_or_damaged_head_is_refused(tmp_path):
    found = killed(tmp_path)
    refused(
        copied(found, "missing", ["*-head"]),
        r"journal\.db-head is missing, .*put that file beside it",
    )
    for trial, content in enumerate(
        (b"nonsense", b"o 1 2 3 4\n", (found / "journal.db-head").read_bytes()[:-3])
    ):
        path = copied(found, f"damaged-{trial}")
        path.with_name("journal.db-head").write_bytes(content)
        refused(path)


def test_a_head_without_its_journal_is_refused(tmp_path):
    path = copied(killed(tmp_path), "alone", ["journal.db", "*-wal"])
    refused(path, r"the file itself is missing, but journal\.db-head is there")


@pytest.mark.parametrize("head", [None, b""])
def test_killed_before_the_first_head_was_written_nothing_is_lost(tmp_path, head):
    """The file is made first, its head next: a kill in between leaves a journal in which nothing
    was ever said."""
    path = tmp_path / "journal.db"
    create(path, RUN, FACTS)
    if head is not None:
        path.with_name("journal.db-head").write_bytes(head)
    with open_journal(path) as journal:
        assert tell(journal) == [1]


def test_a_process_that_ends_without_closing_is_no_loss(tmp_path):
    """An error elsewhere ends Python: sqlite folds its log in, and the head says so before."""
    path = tmp_path / "journal.db"
    journal = open_journal(path)
    tell(journal)
    del journal
    assert read_head(path).state == "closed"
    with open_journal(path) as journal:
        assert journal.lines == 1


def test_refused_for_another_reason_it_goes_on_later(tmp_path):
    """A killed journal, opened with other records by mistake: that leaves it as whole as it was."""
    path = copied(killed(tmp_path), "again")
    with pytest.raises(PrivacyError, match="the records changed"):
        Journal.open(path, RUN, FACTS | {"records": "9"})
    with open_journal(path) as journal:
        assert journal.lines == 6


def test_reading_and_copying_the_ledger_of_a_killed_peer_leaves_it_whole(tmp_path):
    found = killed(tmp_path)
    path = copied(found, "again")
    assert len(recorded_spend(path)) == 6
    copy_ledger(path, tmp_path / "copy.db")
    assert len(recorded_spend(tmp_path / "copy.db")) == 6
    with open_journal(path) as journal:
        assert journal.lines == 6
    lost = copied(found, "lost", ["*-wal"])
    with pytest.raises(
        BrokenStateError, match=r"its ledger has \d lines, but journal\.db-head says 6"
    ):
        recorded_spend(lost)
    with pytest.raises(BrokenStateError, match="is damaged"):
        copy_ledger(lost, tmp_path / "other.db")


def test_a_condemned_journal_says_nothing_more_now_or_later(tmp_path):
    path = tmp_path / "journal.db"
    journal = open_journal(path)
    tell(journal)
    under_way = journal.begin()
    under_way.send(1, b"more")
    journal.condemn(condemned("this journal", "a test"))
    for use in (
        lambda: journal.commit(under_way),
        lambda: list(journal.outbox(1)),
        journal.begin,
        journal.spent,
    ):
        with pytest.raises(BrokenStateError, match="is an old copy"):
            use()
    journal.close()
    refused(path, "is an old copy.*an earlier start has found that out")
