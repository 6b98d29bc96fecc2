"""The journal keeps its promises, and refuses, in one sentence, whatever would make it break
one."""

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bruit.errors import ConfigError, LocalProtocolError, PrivacyError, RemoteProtocolError
from bruit.peers.journal.journal import Journal, recorded_spend
from bruit.peers.journal.step import Input, Spend
from tests.unit.peers.toy_peer import EVENT, FACTS, RUN, open_journal

ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path):
    with open_journal(path) as opened:
        yield opened


def tell(journal, payload=b"in", to=(1,), sender=1, error=None):
    """One ordinary step; or one that fails at its end."""
    with journal.step() as step:
        step.input("round", sender, step.last_sequence(sender) + 1, payload)
        step.spend(0, 4, 7, EVENT)
        places = [step.send(peer, payload + b" out") for peer in to]
        if error is not None:
            raise error
        return places


def refuse(journal, payloads):
    """A step whose last message is refused by the machine."""
    with journal.step() as step:
        for payload in payloads:
            step.input("round", 1, step.last_sequence(1) + 1, payload)
        raise RemoteProtocolError("what was that")


def test_a_step_is_remembered_after_closing(path):
    with open_journal(path) as journal:
        secret = journal.secret()
        assert tell(journal, b"a", (1, 2)) == [1, 1]
        assert tell(journal, b"b", (2,), sender=5) == [2]
    with open_journal(path) as journal:
        assert journal.secret() == secret
        assert len(secret) == 16
        assert list(journal.inputs()) == [
            Input(1, "round", 1, 1, b"a"),
            Input(2, "round", 5, 1, b"b"),
        ]
        assert journal.spent() == [Spend(0, 4, 7, EVENT)] * 2
        assert list(journal.outbox(1)) == [(1, b"a out")]
        assert list(journal.outbox(2)) == [(1, b"a out"), (2, b"b out")]
        assert list(journal.outbox(2, after=1)) == [(2, b"b out")]
        assert (journal.last_sequence(1), journal.last_sequence(5), journal.last_sequence(9)) == (
            1,
            1,
            0,
        )
        assert journal.latest_snapshot() is None


def test_a_snapshot_replaces_the_inputs_and_nothing_else(path):
    with open_journal(path) as journal:
        for k in range(30):
            tell(journal, b"%d" % k, (1, 2), sender=1 + k % 2)
        journal.acknowledge(2, 29)
        journal.snapshot(b"state")
        assert (list(journal.inputs()), journal.volume) == ([], 0)
        tell(journal, b"later", (1,), sender=2)
    with open_journal(path) as journal:
        assert journal.latest_snapshot() == b"state"
        assert list(journal.inputs()) == [Input(31, "round", 2, 16, b"later")]
        assert journal.spent() == [Spend(0, 4, 7, EVENT)] * 31
        assert list(journal.outbox(1)) == [(k + 1, b"%d out" % k) for k in range(30)] + [
            (31, b"later out")
        ]
        assert list(journal.outbox(2)) == [(30, b"29 out")]
        assert (journal.last_sequence(1), journal.last_sequence(2), journal.last_sent(1)) == (
            15,
            16,
            31,
        )
        journal.acknowledge(1, 31)
        journal.snapshot(b"newer")
        assert journal._connection.execute("SELECT COUNT(*) FROM outbox").fetchone() == (
            1,
        )  # what 2 has not confirmed
    with open_journal(path) as journal:
        assert (journal.latest_snapshot(), list(journal.outbox(1)), journal.settled(1)) == (
            b"newer",
            [],
            True,
        )
        assert tell(journal) == [32]


def test_the_last_stamp_of_each_sender_is_kept_through_snapshots(path):
    """It is what a sender is shown to find out that its own journal is an old copy."""
    with open_journal(path) as journal:
        with journal.step() as step:
            step.input("message", 1, 1, b"x", b"first")
            step.input("message", 1, 2, b"x", b"second")
            step.input("refused", 2, 1, b"", b"other")
            assert journal.last_stamp(1) == b""  # not before it is on disk
        journal.snapshot(b"state")
        with journal.step() as step:
            step.input("message", 2, 2, b"x", b"newer")
    with open_journal(path) as journal:
        assert [journal.last_stamp(sender) for sender in (1, 2, 3)] == [b"second", b"newer", b""]


def test_a_failed_snapshot_leaves_the_inputs(path):
    with open_journal(path) as journal:
        tell(journal)
        journal._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(ConfigError, match="cannot write the journal"):
            journal.snapshot(b"state")
        with pytest.raises(LocalProtocolError, match=r"a snapshot failed \(ConfigError\)"):
            tell(journal)
    with open_journal(path) as journal:
        assert (
            journal.latest_snapshot(),
            len(list(journal.inputs())),
            len(list(journal.outbox(1))),
        ) == (None, 1, 1)


def test_a_journal_of_snapshots_does_not_grow(path):
    """Two hundred steps of 10 kB with a snapshot every ten take no more room than twenty of
    them."""
    sizes = []
    with open_journal(path) as journal:
        for k in range(1, 201):
            tell(journal, b"x" * 5000)
            journal.acknowledge(1, k)
            if k % 10 == 0:
                journal.snapshot(b"y" * 5000)
                sizes.append(sum(file.stat().st_size for file in path.parent.iterdir()))
    assert max(sizes) < 5e6  # the log before it is folded in, mostly
    assert path.stat().st_size < 300_000


def test_secrets_differ_and_others_cannot_read_them(tmp_path):
    with open_journal(tmp_path / "a.db") as first, open_journal(tmp_path / "b.db") as second:
        tell(first)
        assert first.secret() != second.secret()
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_every_commit_is_synced(journal):
    read = {
        name: journal._connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("synchronous", "journal_mode", "locking_mode")
    }
    assert read == {"synchronous": 2, "journal_mode": "wal", "locking_mode": "exclusive"}


def test_many_inputs_in_one_step_cost_one_commit(journal):
    statements = []
    journal._connection.set_trace_callback(statements.append)
    with journal.step() as step:
        for k in range(1, 101):
            step.input("round", 1, k, b"x")
            assert step.next_sequence(2) == k
            assert step.send(2, b"y") == k
    assert statements.count("COMMIT") == 1
    assert journal.last_sequence(1) == 100
    assert [sequence for sequence, _ in journal.outbox(2)] == list(range(1, 101))  # several pages


def test_numbers_of_numpy_are_numbers(path):
    with open_journal(path) as journal, journal.step() as step:
        step.input("round", np.int64(1), np.int64(1), b"x")
        step.spend(np.int64(0), np.int64(1), np.int64(2), EVENT)
        step.send(np.int64(3), b"y")
    with open_journal(path) as journal:
        assert (len(list(journal.inputs())), len(journal.spent())) == (1, 1)
        assert list(journal.outbox(3)) == [(1, b"y")]


def test_acknowledged_messages_are_not_sent_again(path):
    with open_journal(path) as journal:
        for _ in range(3):
            tell(journal)
        journal.acknowledge(1, 2)
        journal.acknowledge(1, 1)  # an old one, late
        assert [sequence for sequence, _ in journal.outbox(1)] == [3]
    with open_journal(path) as journal:
        assert [sequence for sequence, _ in journal.outbox(1)] == [3]
        assert tell(journal) == [4]
        with pytest.raises(
            RemoteProtocolError, match="peer 1 acknowledges message 5, but 4 were sent"
        ) as lie:
            journal.acknowledge(1, 5)
        assert str(path.parent) not in str(lie.value)  # it is told to that peer
        with pytest.raises(RemoteProtocolError, match="message -1"):
            journal.acknowledge(1, -1)


def test_a_failed_step_leaves_nothing_and_ends_the_use_of_the_journal(path):
    with open_journal(path) as journal:
        tell(journal)
        with pytest.raises(ZeroDivisionError):
            tell(journal, b"lost", error=ZeroDivisionError())
        assert (journal.last_sequence(1), journal.last_sent(1)) == (1, 1)
        with pytest.raises(
            LocalProtocolError, match=r"a step failed \(ZeroDivisionError\).*open it again"
        ):
            tell(journal)
        with pytest.raises(LocalProtocolError, match="open it again"):
            list(journal.outbox(1))
    with open_journal(path) as journal:
        assert (
            len(list(journal.inputs())),
            len(journal.spent()),
            len(list(journal.outbox(1))),
        ) == (1, 1, 1)


def test_a_refused_message_changes_nothing(journal):
    with pytest.raises(RemoteProtocolError):
        refuse(journal, [b"nonsense"])
    assert journal.last_sequence(1) == 0
    assert tell(journal) == [1]
    with pytest.raises(RemoteProtocolError):
        refuse(journal, [b"good", b"nonsense"])
    with pytest.raises(LocalProtocolError, match="ahead of its journal"):
        tell(journal)


def test_nothing_can_leave_in_the_middle_of_a_step(journal):
    with journal.step() as step:
        step.send(1, b"early")
        assert list(journal.outbox(1)) == []
        for read in (
            lambda: list(journal.inputs()),
            journal.spent,
            journal.secret,
            journal.latest_snapshot,
            lambda: journal.snapshot(b""),
            lambda: journal.step().__enter__(),
        ):
            with pytest.raises(LocalProtocolError, match="in the middle of a step"):
                read()
    assert list(journal.outbox(1)) == [(1, b"early")]
    with pytest.raises(LocalProtocolError, match="after it had ended"):
        step.send(1, b"late")


@pytest.mark.parametrize("sequence", [0, 1, 3])
def test_duplicates_and_gaps_are_not_recorded(journal, sequence):
    tell(journal)
    words = f"input {sequence} of peer 1 .* where 2 is due"
    with pytest.raises(LocalProtocolError, match=words), journal.step() as step:
        step.input("round", 1, sequence, b"")


def test_an_unknown_event_is_not_spent(journal):
    with pytest.raises(PrivacyError, match="unknown event"), journal.step() as step:
        step.spend(0, 1, 1, '{"kind": "magic"}')


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (
            FACTS | {"records": "9999"},
            r"the records changed since this run began \(the digest in .* is another\): refusing "
            "to go on, because the same noise would protect two different values",
        ),
        (FACTS | {"extra": "1"}, r"the extra changed since this run began \(digest none in"),
        ({"records": "1234"}, "the mechanism changed"),
    ],
)
def test_changed_facts_are_refused(path, facts, words):
    open_journal(path).close()
    with pytest.raises(PrivacyError, match=words):
        Journal.open(path, RUN, facts)
    open_journal(path).close()


def test_a_digest_of_private_records_is_kept_keyed_and_never_shown(path, tmp_path):
    """A plain digest of a small table can be compared with guesses, and a copy of the ledger
    travels without secret."""
    journal = open_journal(path)
    journal.backup(tmp_path / "copy.db")
    journal.close()
    for file in (path, tmp_path / "copy.db"):
        with contextlib.closing(sqlite3.connect(file)) as connection:
            kept = dict(connection.execute("SELECT name, value FROM facts"))
        assert kept["records"] != FACTS["records"]
        assert kept["mechanism"] == FACTS["mechanism"]
        assert FACTS["records"].encode() not in file.read_bytes()
    with pytest.raises(PrivacyError) as refused:
        Journal.open(path, RUN, FACTS | {"records": "9999"})
    assert kept["records"] not in str(refused.value)
    assert "9999" not in str(refused.value)


def test_another_run_is_refused(path):
    open_journal(path).close()
    with pytest.raises(ConfigError, match=r"belongs to run abab.*, not to run cdcd"):
        Journal.open(path, "cd" * 32, FACTS)
    with pytest.raises(ConfigError, match="facts of a journal are texts"):
        Journal.open(path, RUN, {"records": 7})


@pytest.mark.parametrize("content", [b"", b"not a database at all, whatever its name says" * 100])
def test_what_is_no_journal_is_refused_and_kept(path, content):
    path.write_bytes(content)
    with pytest.raises(
        ConfigError, match=r"journal.db is damaged .*keep the file, and begin a new run"
    ):
        open_journal(path)
    assert path.read_bytes() == content


def test_other_databases_and_layouts_are_refused(path):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(ConfigError, match="empty or not a journal"):
        open_journal(path)
    path.unlink()
    open_journal(path).close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 7")
    other.close()
    with pytest.raises(ConfigError, match="has layout 7, this version reads 5"):
        open_journal(path)


def fill(path):
    with open_journal(path) as journal:
        for k in range(50):
            tell(journal, b"payload" * 300)
            if k == 30:
                journal.snapshot(b"state of the peer")


def read_all(path):
    with open_journal(path) as journal:
        list(journal.inputs())
        list(journal.outbox(1))
        journal.spent()
        journal.latest_snapshot()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"payloadpayload", b"payloadpayloaD", r"damaged \((step|message) \d+.* has changed"),
        (b"state of the peer", b"state of the beer", r"the snapshot has changed"),
        (b'"noise_multiplier": 2.0', b'"noise_multiplier": 9.0', "ledger line .* has changed"),
    ],
)
def test_flipped_bits_are_noticed(path, old, new, words):
    fill(path)
    content = path.read_bytes()
    place = content.index(old)
    path.write_bytes(content[:place] + new + content[place + len(new) :])
    with pytest.raises(ConfigError, match=words):
        read_all(path)


def test_missing_lines_are_noticed(path):
    fill(path)
    other = sqlite3.connect(path)
    other.execute("DELETE FROM spends WHERE line = 9")
    other.execute("DELETE FROM outbox WHERE sequence = 7")
    other.commit()
    other.close()
    with open_journal(path) as journal:
        with pytest.raises(ConfigError, match="ledger line 9 is missing"):
            journal.spent()
        with pytest.raises(ConfigError, match="message 7 to peer 1 is missing"):
            list(journal.outbox(1))
    other = sqlite3.connect(path)
    other.execute("DELETE FROM steps WHERE number = 40")
    other.commit()
    other.close()
    with pytest.raises(ConfigError, match="step 40 is missing"):
        open_journal(path)


def test_a_truncated_file_is_refused(path):
    fill(path)
    path.write_bytes(path.read_bytes()[: 4096 * 10])
    with pytest.raises(ConfigError, match="is damaged"):
        open_journal(path)


def test_a_log_without_its_file_is_refused(path):
    path.with_name("journal.db-wal").write_bytes(b"x")
    with pytest.raises(
        ConfigError, match=r"the file itself is missing, but journal.db-wal is there"
    ):
        open_journal(path)


def test_a_second_user_is_refused(path, journal):
    with pytest.raises(ConfigError, match="in use by another process"):
        open_journal(path)
    with pytest.raises(ConfigError, match="in use by another process"):
        recorded_spend(path)
    script = (
        "import sys; from tests.unit.peers.toy_peer import open_journal; open_journal(sys.argv[1])"
    )
    child = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert b"in use by another process" in child.stderr
    assert tell(journal) == [1]


def test_a_full_disk_undoes_the_step(path):
    with open_journal(path) as journal:
        tell(journal)
        (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
        journal._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            ConfigError, match=r"cannot write .*journal.db: database or disk is full; nothing"
        ):
            tell(journal, b"x" * 100_000)
    with open_journal(path) as journal:
        assert (
            len(list(journal.inputs())),
            len(journal.spent()),
            len(list(journal.outbox(1))),
        ) == (1, 1, 1)


def test_a_disk_that_becomes_read_only_undoes_the_step(path):
    with open_journal(path) as journal:
        journal._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(ConfigError, match=r"cannot write the journal .*readonly"):
            tell(journal)
    with open_journal(path) as journal:
        assert journal.spent() == []


def test_a_system_that_refuses_to_write_undoes_the_step(path):
    """The log may not grow beyond 64 KiB in this process: the commit itself fails."""
    script = (
        "import resource, signal, sys\nfrom tests.unit.peers.test_journal import tell\nfrom"
        " tests.unit.peers.toy_peer import *\njournal ="
        " open_journal(sys.argv[1])\nsignal.signal(signal.SIGXFSZ,"
        " signal.SIG_IGN)\ntell(journal)\nresource.setrlimit(resource.RLIMIT_FSIZE, (2**16,"
        " 2**16))\ntell(journal, b'x' * 200_000)\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert b"ConfigError: cannot write the journal" in child.stderr, child.stderr.decode()
    with open_journal(path) as journal:
        assert [line.payload for line in journal.inputs()] == [b"in"]
        assert len(journal.spent()) == 1


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(
        ConfigError, match=r"cannot write the journal .*nowhere.journal.db: No such file"
    ):
        open_journal(tmp_path / "nowhere" / "journal.db")


def test_a_copy_tells_the_spend_but_nobody_can_go_on_from_it(path, tmp_path):
    copy = tmp_path / "copy.db"
    with open_journal(path) as journal:
        tell(journal)
        secret = journal.secret()
        journal.backup(copy)
        with pytest.raises(ConfigError, match=r"copy.db exists already"):
            journal.backup(copy)
        tell(journal)
    assert recorded_spend(copy) == [Spend(0, 4, 7, EVENT)]
    assert len(recorded_spend(path)) == 2
    assert secret not in copy.read_bytes()
    with pytest.raises(PrivacyError, match="is a copy of a journal"):
        open_journal(copy)


def test_reading_the_spend_of_nothing(tmp_path):
    with pytest.raises(ConfigError, match=r"none.db"):
        recorded_spend(tmp_path / "none.db")


def test_a_closed_journal_says_so(path):
    journal = open_journal(path)
    journal.close()
    with pytest.raises(LocalProtocolError, match="it was closed"):
        tell(journal)


def test_closing_in_the_middle_of_a_step_gives_it_up(path):
    journal = open_journal(path)
    tell(journal)
    journal.acknowledge(1, 1)
    journal.begin().send(1, b"never")
    journal.close()
    with open_journal(path) as journal:
        assert journal.last_sent(1) == 1


def test_a_step_that_was_not_begun_is_not_committed(journal):
    step = journal.begin()
    journal.commit(step)
    with pytest.raises(LocalProtocolError, match="not under way"):
        journal.commit(step)


def test_lean_peers_load_neither_numba_nor_dp_accounting():
    script = (
        "import sys; import bruit.peers.journal.journal, bruit.peers.wire.address_book, "
        "bruit.peers.wire.codec\n"
        "print([name for name in ('numba', 'dp_accounting', 'grpc') if name in sys.modules])"
    )
    child = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        timeout=60,
        check=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert child.stdout.strip() == "[]"
