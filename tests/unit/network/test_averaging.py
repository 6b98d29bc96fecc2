"""A verified mean between peers with real sockets: the line, those who leave, and those who lie."""

import asyncio
import json
import socket
import ssl
import threading
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("coincurve", reason="the extra 'verify' is not installed")

from bruit.average_cli import Among, mean_among_peers
from bruit.errors import ConfigError, PrivacyError, RemoteProtocolError
from bruit.graphs import complete
from bruit.network.address_book import merge, public_entry
from bruit.network.identity import TLS_NAME, Identity
from bruit.network.pinned import pinned_context
from bruit.privacy.spent_file import SpentFile
from bruit.sites.average_terms import MeanTerms
from bruit.sites.averaging import Seat, average, seat_of
from bruit.verification import BoardFile, Prover, agree, verify
from bruit.verification.verified_run import drive, signing_keys

NAMES = ("ada", "bob", "cyd")
TERMS = MeanTerms("x", 0.0, 10.0, 2.0, rows=(30, 20, 40))


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def village(tmp_path_factory):
    """Folders with keys, and the book of all."""
    home = tmp_path_factory.mktemp("village")
    texts = []
    for name in (*NAMES, "mallory"):
        identity = Identity.create(name)
        identity.save(home / name)
        texts.append(public_entry(identity, "127.0.0.1", free_port()))
    return home, texts[:3]


def rows(me):
    return np.random.default_rng(me).uniform(2.0, 6.0, TERMS.rows[me])


def seats(village, tmp_path, patience=10.0, spend=lambda sealed: None):
    home, texts = village
    book = merge([text.replace(f"port = {port}", f"port = {fresh}") for text, port, fresh in
                  ((text, text.split("port = ")[1].split("\n")[0], free_port()) for text in texts)])  # fmt: skip
    return [Seat(home / name, book, seat_of(home / name, book), TERMS.value(rows(me), me), tmp_path / f"{name}.db",
                 patience, spend=spend) for me, name in enumerate(NAMES)]  # fmt: skip


def together(chairs, terms=None):
    """Everybody at once, each with its own loop; answers or errors in order."""
    found = [None] * len(chairs)

    def one(place, seat):
        mine = TERMS if terms is None else terms[place]
        try:
            found[place] = average(seat, mine.agreement(seat.book))
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(chairs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_everybody_finds_the_same_mean_and_a_fifth_party_agrees(village, tmp_path):
    paid = []
    reports = together(seats(village, tmp_path, spend=paid.append))
    assert all(report.accepted for report in reports)
    assert len({TERMS.mean(report) for report in reports}) == 1
    truth = np.concatenate([rows(me) for me in range(3)]).mean()
    # Coins and rounding: 6 standard errors are exceeded with probability below 2e-9.
    assert abs(TERMS.mean(reports[0]) - truth) < 6 * TERMS.error(3)
    assert TERMS.spent(reports[0]) <= TERMS.epsilon
    assert paid == [(0, 1, 2)] * 3  # before each masked value, among those who committed
    copies = [tmp_path / f"{name}.db" for name in NAMES]
    judged = verify(copies[1], copies=[copies[0], copies[2]])
    assert judged.accepted
    assert judged.mean == pytest.approx(reports[0].mean)
    with BoardFile(copies[0], read_only=True) as board:
        assert {head.signer for head in board.heads()} == {0, 1, 2}


def test_one_that_never_comes_is_left_out_if_that_was_planned(village, tmp_path):
    planned = replace(TERMS, dropouts=1)
    assert planned.coins(3) > TERMS.coins(3)
    reports = together(seats(village, tmp_path, patience=1.5)[:2], [planned] * 2)
    assert [report.online for report in reports] == [(0, 1), (0, 1)]
    assert planned.mean(reports[0]) == planned.mean(reports[1])
    assert planned.spent(reports[0]) <= TERMS.epsilon
    agreement = reports[0].agreement
    assert planned.price(agreement, (0, 1)) == pytest.approx(planned.spent(reports[0]), rel=1e-6)  # known before
    assert planned.price(agreement, (0, 1, 2)) == planned.price(agreement, (0, 1))


def test_without_a_plan_nobody_publishes_among_too_few(village, tmp_path):
    paid = []
    found = together(seats(village, tmp_path, patience=0.7, spend=paid.append)[:2])
    assert [type(error) for error in found] == [RemoteProtocolError] * 2
    assert "there is no mean" in str(found[0])
    assert not paid


def test_other_terms_are_refused_before_anything_is_said(village, tmp_path):
    chairs = seats(village, tmp_path, patience=1.0)
    planned, other = replace(TERMS, dropouts=1), replace(TERMS, high=11.0, dropouts=1)
    found = together(chairs, [planned, planned, other])
    assert isinstance(found[2], RemoteProtocolError)
    assert "title is" in str(found[2])
    assert found[0].online == (0, 1)


def test_a_peer_whose_process_died_cannot_come_back(village, tmp_path):
    chairs = seats(village, tmp_path, patience=3.0)
    agreement = TERMS.agreement(chairs[0].book)
    again = replace(chairs[1], board=tmp_path / "again.db")
    found = [None, None]

    def organize():
        with pytest.raises(RemoteProtocolError, match="nobody goes on"):  # two are needed, and one's secrets are gone
            average(chairs[0], agreement)

    def twice():
        from bruit.sites import averaging

        async def dies():
            task = asyncio.create_task(averaging._join(chairs[1], agreement))
            await asyncio.sleep(1.0)  # it has joined, and waits for the third
            task.cancel()

        asyncio.run(dies())
        try:
            average(again, agreement)
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
        import time

        time.sleep(0.7)
        answers["stranger"] = speak(home / "mallory", at, {"kind": "posts", "start": 0})
        for name, said in {"what": {"kind": "what"}, "far": {"kind": "posts", "start": -1}, "list": [1],
                           "post": {"kind": "append", "post": "???"}, "head": {"kind": "head"}}.items():  # fmt: skip
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
        average(nobody, TERMS.agreement(nobody.book))


def test_what_is_written_down_is_what_was_paid(village, tmp_path, monkeypatch, capsys):
    """All three committed and one left after the masked values left: the rest of the price is written down too."""
    home, texts = village
    keys, signs = signing_keys(3)
    agreement = agree(keys, complete(3), 0.0, 40.0, levels=80, noise_bits=TERMS.coins(3))
    provers = [Prover(agreement, me, TERMS.value(rows(me), me), signs[me]) for me in range(3)]
    with BoardFile(tmp_path / "board.db", durable=False) as board:
        drive(board, agreement, provers, signs, {2: "mask"}, {})
    report = verify(tmp_path / "board.db")
    (tmp_path / "book.toml").write_text(merge(texts).text())
    table = tmp_path / "ada.csv"
    asked = Among(table, tmp_path / "book.toml", home / "ada", tmp_path / "ada.db", "30,20,40")

    def ended(seat, wanted):
        seat.spend((0, 1, 2))
        return report

    monkeypatch.setattr("bruit.sites.averaging.average", ended)
    mean_among_peers(rows(0), TERMS, asked, 0.95, True, True)
    told = json.loads(capsys.readouterr().out)
    lines = SpentFile(f"{table}.spent.json").lines()
    assert lines[0]["epsilon"] == TERMS.epsilon
    assert sum(line["epsilon"] for line in lines) == pytest.approx(told["epsilon"])
    assert told["epsilon"] > TERMS.epsilon
    monkeypatch.setattr("bruit.sites.averaging.average", lambda seat, wanted: seat.spend((0, 1)))
    limited = replace(asked, limit=sum(line["epsilon"] for line in lines) + TERMS.epsilon)
    with pytest.raises(PrivacyError, match="more would be above the limit"):  # two of three cost more than was agreed
        mean_among_peers(rows(0), TERMS, limited, 0.95, True, True)
    with pytest.raises(PrivacyError, match="2 of 3 peers committed, and their coins hide nothing"):
        mean_among_peers(rows(0), replace(TERMS, epsilon=12.0), asked, 0.95, True, True)
