"""A verified mean between peers with real sockets: the line, those who leave, and those who lie."""

import asyncio
import json
import socket
import ssl
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("coincurve", reason="the extra 'verify' is not installed")

from bruit.accounts.account import Account
from bruit.accounts.prices import Unit
from bruit.commands.cli import app
from bruit.commands.printing import Printer
from bruit.commands.statistics.average import Among, mean_among_peers
from bruit.errors import ConfigError, PrivacyError, RemoteProtocolError
from bruit.graphs import complete
from bruit.peers.engine import free_ports
from bruit.peers.wire.address_book import merge, public_entry
from bruit.peers.wire.identity import TLS_NAME, Identity, signing_key
from bruit.peers.wire.pinned import pinned_context
from bruit.privacy.events import BoundedEvent
from bruit.privacy.ledger import Budget
from bruit.statistics.average.averaging import AveragingSeat, average, seat_of
from bruit.statistics.average.board import BoardFile, agree, verified_run, verify
from bruit.statistics.average.board.prover import Prover
from bruit.statistics.average.board.verified_run import drive, signing_keys
from bruit.statistics.average.payment import Payment
from bruit.statistics.average.terms import MeanTerms
from bruit.statistics.tables import pay, price

pytestmark = pytest.mark.slow

NAMES = ("ada", "bob", "cyd")
TERMS = MeanTerms(column="x", low=0.0, high=10.0, epsilon=2.0, rows=(30, 20, 40))


@pytest.fixture(scope="module")
def village(tmp_path_factory):
    """Folders with keys, and the book of all."""
    home = tmp_path_factory.mktemp("village")
    texts, names = [], (*NAMES, "mallory")
    for name, port in zip(names, free_ports(len(names)), strict=True):
        identity = Identity.create(name)
        identity.save(home / name)
        texts.append(public_entry(identity, "127.0.0.1", port))
    return home, texts[:3]


def rows(me):
    return np.random.default_rng(me).uniform(2.0, 6.0, TERMS.rows[me])


def spent(tmp_path, name):
    return Account(tmp_path / f"{name}.csv.account.jsonl")


def all_paid(tmp_path):
    return [
        [one.price.epsilon for one in spent(tmp_path, name).balance().charged] for name in NAMES
    ]


def seats(village, tmp_path, patience=10.0):
    home, texts = village
    book = merge(
        [
            text.replace(f"port = {port}", f"port = {fresh}")
            for text, port, fresh in (
                (text, text.split("port = ")[1].split("\n")[0], fresh)
                for text, fresh in zip(texts, free_ports(len(texts)), strict=True)
            )
        ]
    )
    return [
        AveragingSeat(
            folder=home / name,
            book=book,
            me=seat_of(home / name, book),
            value=TERMS.value(rows(me), me),
            board=tmp_path / f"{name}.db",
            patience=patience,
            record=spent(tmp_path, name),
        )
        for me, name in enumerate(NAMES)
    ]


def together(chairs, terms=None):
    """Everybody at once, each with its own loop; answers or errors in order."""
    found = [None] * len(chairs)

    def one(place, seat):
        mine = TERMS if terms is None else terms[place]
        try:
            found[place] = average(seat, mine)
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(chairs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_everybody_finds_the_same_mean_and_a_fifth_party_agrees(village, tmp_path):
    reports = together(seats(village, tmp_path))
    assert all(report.accepted for report in reports)
    assert len({TERMS.mean(report) for report in reports}) == 1
    truth = np.concatenate([rows(me) for me in range(3)]).mean()
    # Coins and rounding: 6 standard errors are exceeded with probability below 2e-9.
    assert abs(TERMS.mean(reports[0]) - truth) < 6 * TERMS.error(3)
    assert TERMS.spent(reports[0]) <= TERMS.epsilon
    assert (
        all_paid(tmp_path) == [[TERMS.epsilon]] * 3
    )  # by whoever took part, without being asked to
    copies = [tmp_path / f"{name}.db" for name in NAMES]
    judged = verify(copies[1], copies=[copies[0], copies[2]])
    assert judged.accepted
    assert judged.mean == pytest.approx(reports[0].mean)
    with BoardFile(copies[0], read_only=True) as board:
        assert {head.signer for head in board.heads()} == {0, 1, 2}


def fill(place, public, signs):
    """A whole run on one board, by whoever has these keys."""
    agreement = agree(public, complete(3), 0.0, 1.0, levels=4, noise_bits=8)
    provers = [Prover(agreement, u, np.array([0.5]), signs[u]) for u in range(3)]
    with BoardFile(place, durable=False) as board:
        drive(board, agreement, provers, signs, {}, {})


def test_a_board_of_made_up_peers_is_told_from_that_of_the_book(village, tmp_path):
    """Anybody can make keys and fill a board alone: it verifies, and says that nobody vouches."""
    home, texts = village
    merge(texts).write(tmp_path / "book.toml")
    certificates = [entry.certificate for entry in merge(texts).entries]
    folders = [home / name for name in NAMES]
    real, forged = tmp_path / "real.db", tmp_path / "forged.db"
    signers = [Identity.load(folder).sign for folder in folders]
    fill(real, [signing_key(text) for text in certificates], signers)
    fill(forged, *signing_keys(3))

    def told(board, *words):
        found = CliRunner().invoke(app, ["gopa", "verify", str(board), *words])
        return found.exit_code, " ".join(found.output.split())

    book = ("--book", str(tmp_path / "book.toml"))
    for board in (real, forged):
        code, words = told(board)
        assert code == 0
        assert "those of 3 of 3 peers were compared with none you know; add --book" in words
    code, words = told(real, *book)
    assert code == 0
    assert "with none you know" not in words
    code, words = told(forged, *book)
    assert code == 1
    assert "the board lists another key for peer 2 than the one you know" in words


def test_one_that_never_comes_is_left_out_if_that_was_planned(village, tmp_path):
    planned = replace(TERMS, dropouts=1)
    assert planned.coins(3) > TERMS.coins(3)
    reports = together(seats(village, tmp_path, patience=1.5)[:2], [planned] * 2)
    assert [report.online for report in reports] == [(0, 1), (0, 1)]
    assert planned.mean(reports[0]) == planned.mean(reports[1])
    assert planned.spent(reports[0]) <= TERMS.epsilon
    assert planned.price(reports[0].agreement, (0, 1)) == planned.spent(reports[0])  # known before
    assert all_paid(tmp_path) == [[TERMS.epsilon], [TERMS.epsilon], []]


def test_without_a_plan_nobody_publishes_among_too_few(village, tmp_path):
    found = together(seats(village, tmp_path, patience=2.0)[:2])
    assert [type(error) for error in found] == [RemoteProtocolError] * 2
    assert "there is no mean" in str(found[0])
    assert all("this peer opened nothing, and paid nothing" in str(error) for error in found)
    assert all_paid(tmp_path) == [[], [], []]


def test_other_terms_are_refused_before_anything_is_said(village, tmp_path):
    chairs = seats(village, tmp_path, patience=2.0)
    planned, other = replace(TERMS, dropouts=1), replace(TERMS, high=11.0, dropouts=1)
    found = together(chairs, [planned, planned, other])
    assert isinstance(found[2], RemoteProtocolError)
    assert "title is" in str(found[2])
    assert found[0].online == (0, 1)


def test_a_peer_whose_process_died_cannot_come_back(village, tmp_path):
    chairs = seats(village, tmp_path, patience=1.5)
    again = replace(chairs[1], board=tmp_path / "again.db")
    found = [None, None]

    def organize():
        with pytest.raises(
            RemoteProtocolError, match="nobody goes on"
        ):  # two are needed, and one's secrets are gone
            average(chairs[0], TERMS)

    def twice():
        from bruit.statistics.average import averaging

        async def dies():
            runs = chairs[1].folder / averaging.JOINED
            before = runs.read_text() if runs.exists() else ""
            task = asyncio.create_task(
                averaging._join(
                    chairs[1], TERMS.agreement(chairs[1].book), Payment(TERMS, chairs[1].record)
                )
            )
            deadline = time.monotonic() + 20
            while (
                runs.read_text() if runs.exists() else ""
            ) == before and time.monotonic() < deadline:
                await asyncio.sleep(0.02)  # until it has a copy, and waits for the third
            task.cancel()

        asyncio.run(dies())
        try:
            average(again, TERMS)
        except ConfigError as error:
            found[1] = error

    threads = [threading.Thread(target=work) for work in (organize, twice)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert "took part in run" in str(found[1])


def test_the_service_hangs_up_on_strangers_and_on_nonsense(village, tmp_path):
    home, _ = village
    chairs = seats(village, tmp_path, patience=4.0)
    at = chairs[0].book.entry(0)
    answers = {}

    def meddle():
        deadline = time.monotonic() + 30
        while (
            speak(home / "bob", at, {"kind": "posts", "start": 0}) is None
            and time.monotonic() < deadline
        ):
            time.sleep(0.02)  # until it is there
        answers["stranger"] = speak(home / "mallory", at, {"kind": "posts", "start": 0})
        for name, said in {
            "what": {"kind": "what"},
            "far": {"kind": "posts", "start": -1},
            "list": [1],
            "post": {"kind": "append", "post": "???"},
            "head": {"kind": "head"},
        }.items():
            answers[name] = speak(home / "bob", at, said)
        answers["posts"] = speak(home / "bob", at, {"kind": "posts", "start": 0})

    worker = threading.Thread(target=meddle)
    worker.start()
    reports = together(chairs[:2], [replace(TERMS, dropouts=1)] * 2)
    worker.join(30)
    assert all(report.accepted for report in reports)
    assert answers.pop("posts")["posts"]
    assert set(answers.values()) == {None}


def speak(folder, at, said):
    """One frame and the answer, None when the service hangs up."""
    context = pinned_context(folder, [at.certificate], ssl.PROTOCOL_TLS_CLIENT)
    try:
        raw = socket.create_connection((at.host, at.port), timeout=5)
        with raw, context.wrap_socket(raw, server_hostname=TLS_NAME) as line:
            data = json.dumps(said).encode()
            line.sendall(len(data).to_bytes(4, "big") + data)
            size = int.from_bytes(line.recv(4), "big")
            answer = b""
            while size and len(answer) < size:
                answer += line.recv(size - len(answer))
            return json.loads(answer) if size else None
    except OSError:
        return None


def test_bad_seats(village, tmp_path):
    chairs = seats(village, tmp_path)
    chairs[0].board.touch()
    with pytest.raises(ConfigError, match="written once"):
        replace(chairs[0])
    with pytest.raises(ConfigError, match="does not list the identity"):
        seat_of(village[0] / "mallory", chairs[0].book)
    with pytest.raises(ConfigError, match="positive number of seconds"):
        replace(chairs[1], patience=0.0)
    nobody = replace(chairs[1], patience=0.5)
    with pytest.raises(RemoteProtocolError, match="is its process running"):
        average(nobody, TERMS)


@pytest.mark.slow
def test_whoever_calls_from_python_pays_and_is_refused_as_on_the_command_line(village, tmp_path):
    """A limit that is too low is told before anything is said; the others wait in vain, and pay
    nothing."""
    chairs = seats(village, tmp_path, patience=2.0)
    with pytest.raises(TypeError, match="record"):
        AveragingSeat(
            folder=chairs[0].folder,
            book=chairs[0].book,
            me=0,
            value=chairs[0].value,
            board=tmp_path / "x.db",
        )
    limited = replace(
        chairs[2], record=Account(spent(tmp_path, "cyd").path, limit=Budget(TERMS.epsilon - 0.1))
    )
    found = together([*chairs[:2], limited])
    assert isinstance(found[2], PrivacyError)
    assert "above the limit 1.9" in str(found[2])
    assert all_paid(tmp_path) == [[], [], []]


def test_the_price_among_those_who_are_left_is_known_before_anybody_agrees(village, tmp_path):
    """Two of three cost more than was agreed; whoever does not afford it does not agree, and nobody
    pays."""
    keys, _ = signing_keys(3)
    agreement = agree(keys, complete(3), 0.0, 40.0, levels=80, noise_bits=TERMS.coins(3), moved=2)
    payment = Payment(TERMS, Account(tmp_path / "spent.jsonl", limit=Budget(TERMS.epsilon)))
    assert payment.check(agreement, (0, 1, 2)) == TERMS.epsilon
    with pytest.raises(PrivacyError, match="more would be above the limit"):
        payment.check(agreement, (0, 1))
    few = replace(agreement, noise_bits=6)
    with pytest.raises(PrivacyError, match="2 of 3 peers are left, and their coins hide nothing"):
        Payment(TERMS, Account(tmp_path / "spent.jsonl")).check(few, (0, 1))
    assert not Account(tmp_path / "spent.jsonl").exists()
    payment.pay(agreement, (0, 1, 2))
    assert payment.paid == TERMS.epsilon
    assert Account(tmp_path / "spent.jsonl").balance().units() == [Unit("record", "replace")]


@pytest.mark.slow
def test_the_command_says_what_the_table_has_paid(village, tmp_path, monkeypatch, capsys):
    home, texts = village
    small = seats(village, tmp_path)
    reports = together(small)
    (tmp_path / "book.toml").write_text(merge(texts).text())
    asked = Among(
        table=tmp_path / "ada.csv",
        peers=tmp_path / "book.toml",
        identity=home / "ada",
        board=tmp_path / "new.db",
        rows="30,20,40",
    )
    monkeypatch.setattr(
        "bruit.statistics.average.averaging.average", lambda seat, terms: reports[0]
    )
    mean_among_peers(rows(0), TERMS, asked, 0.95, Printer(quiet=True))
    told = capsys.readouterr().out
    assert f"have paid epsilon = {TERMS.epsilon:g}, delta = 1e-06 in all" in told.replace("\n", " ")


def test_a_table_keeps_one_account_whether_it_is_asked_alone_or_with_others(village, tmp_path):
    """`bruit mean`, `bruit auc` and `bruit ldp report` write to the same file: together they meet
    the limit."""
    home, texts = village
    (tmp_path / "book.toml").write_text(merge(texts).text())
    table = tmp_path / "ada.csv"
    pay(table, None, price("mean of x", 1.5, 0.0, BoundedEvent(1.5)), None)
    asked = Among(
        table=table,
        peers=tmp_path / "book.toml",
        identity=home / "ada",
        board=tmp_path / "ada.db",
        rows="30,20,40",
        limit=TERMS.epsilon + 1,
    )
    with pytest.raises(
        PrivacyError, match=r"have paid epsilon = 1.5 so far .*ada.csv.account.jsonl"
    ):
        mean_among_peers(rows(0), TERMS, asked, 0.95, Printer(json=True))
    assert not asked.board.exists()  # before anybody was called


def test_a_board_that_does_not_stand_is_the_answer_no(village, tmp_path, monkeypatch, capsys):
    home, texts = village
    verified_run(
        np.full(3, 0.5), complete(3), tmp_path / "board.db", noise_bits=6, silent={2: "mask"}
    )
    (tmp_path / "book.toml").write_text(merge(texts).text())
    asked = Among(
        table=tmp_path / "ada.csv",
        peers=tmp_path / "book.toml",
        identity=home / "ada",
        board=tmp_path / "ada.db",
        rows="30,20,40",
    )
    monkeypatch.setattr(
        "bruit.statistics.average.averaging.average",
        lambda seat, terms: verify(tmp_path / "board.db"),
    )
    with pytest.raises(typer.Exit) as end:
        mean_among_peers(rows(0), TERMS, asked, 0.95, Printer(json=True))
    assert end.value.exit_code == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["accepted"], said["mean"], said["board"]) == (False, None, str(asked.board))
