"""The commands of real peers: keys, address books, folders, and a small demonstration."""

import json
import stat
import tomllib
from pathlib import Path

import pytest

from bruit.peers.wire.address_book import AddressBook
from bruit.peers.wire.identity import Identity
from tests.e2e import conftest

pytestmark = pytest.mark.slow

MEAN = conftest.MEAN.replace("ring:6", "ring:3")


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """Processes find the package from any folder, installed or not."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture
def agreed(tmp_path) -> Path:
    path = tmp_path / "agreed.toml"
    path.write_text(MEAN)
    return path


def one_sentence(said, *words):
    """Exit code 2 and one line that holds the words."""
    assert said.code == 2, said
    lines = said.err.strip().splitlines()
    assert len(lines) == 1, said.err
    assert all(word in lines[0] for word in words), lines[0]


def test_a_key_is_made_once_and_kept_secret(bruit):
    said = bruit(
        "peer",
        "key",
        "hospital-a",
        "--host",
        "a.example.org",
        "--port",
        7400,
        "--out",
        "a",
        "--json",
    )
    assert said.code == 0
    identity = Identity.load("a")
    assert said.json["fingerprint"] == identity.fingerprint()
    assert stat.S_IMODE(Path("a/key.pem").stat().st_mode) == 0o600
    (entry,) = tomllib.loads(Path(said.json["public"]).read_text())["peer"]
    assert (entry["name"], entry["host"], entry["port"]) == ("hospital-a", "a.example.org", 7400)
    assert "PRIVATE" not in Path(said.json["public"]).read_text()
    one_sentence(bruit("peer", "key", "hospital-a", "--out", "a"), "already holds an identity")
    assert Identity.load("a").fingerprint() == identity.fingerprint()


def test_the_words_of_a_key(bruit):
    said = bruit("peer", "key", "ana", "--out", "a")
    assert Identity.load("a").fingerprint()[:24] in said.out
    assert "keep key.pem and signing.pem secret" in said.out


def test_a_wrong_address_leaves_no_key_behind(bruit):
    one_sentence(bruit("peer", "key", "ana", "--port", 0, "--out", "a"), "1..65535")
    one_sentence(bruit("peer", "key", "ana", "--host", "not a host", "--out", "a"), "no host name")
    assert not Path("a/key.pem").exists()
    assert bruit("peer", "key", "ana", "--out", "a").code == 0


def test_joining_gives_everybody_the_same_book(bruit):
    for name, port in (("zoe", 7401), ("ana", 7402), ("ben", 7403)):
        assert bruit("peer", "key", name, "--port", port, "--out", name).code == 0
    public = [f"{name}/public.toml" for name in ("zoe", "ana", "ben")]
    said = bruit("network", "join", *public, "--out", "b.toml", "--json")
    assert said.code == 0
    other = bruit("network", "join", *reversed(public), "--out", "c.toml")
    assert Path("b.toml").read_bytes() == Path("c.toml").read_bytes()
    book = AddressBook.read("b.toml")
    assert [entry.name for entry in book.entries] == ["ana", "ben", "zoe"]
    assert said.json["fingerprints"] == {entry.name: entry.fingerprint for entry in book.entries}
    assert [line.split()[2] for line in other.out.splitlines()[:3]] == ["ana", "ben", "zoe"]


def test_what_cannot_be_joined(bruit):
    bruit("peer", "key", "ana", "--out", "a")
    one_sentence(
        bruit("network", "join", "a/public.toml", "nowhere.toml"), "there is no file nowhere.toml"
    )
    one_sentence(bruit("network", "join", "a/public.toml", "a/public.toml"), "have the same name")
    Path("bad.toml").write_text("peer = 3")
    one_sentence(bruit("network", "join", "bad.toml"), "snippet 1")


def test_init_writes_a_folder_for_everybody(bruit, agreed):
    said = bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net", "--json")
    assert said.code == 0
    assert [Path(site).parent.name for site in said.json["sites"]] == ["peer-0", "peer-1", "peer-2"]
    for site in said.json["sites"]:
        home = Path(site).parent
        assert {path.name for path in home.iterdir()} == {
            "site.toml",
            "book.toml",
            "experiment.toml",
            "records.npz",
            "key.pem",
            "signing.pem",
            "certificate.pem",
        }
        assert (home / "experiment.toml").read_text() == MEAN
    one_sentence(
        bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net"),
        "is not empty",
    )


def test_init_refuses_what_cannot_be(bruit, agreed):
    one_sentence(
        bruit("network", "init", "--peers", 1, "--experiment", agreed), "at least two peers"
    )
    one_sentence(
        bruit("network", "init", "--peers", 5, "--experiment", agreed),
        "has 3 peers, and 5 are",
        "--graph",
    )
    one_sentence(
        bruit("network", "init", "--peers", 3, "--experiment", "nothing"),
        "there is no experiment file",
    )
    said = bruit(
        "network", "init", "--peers", 5, "--graph", "ring", "--experiment", agreed, "--json"
    )
    assert len(said.json["sites"]) == 5


def test_a_peer_takes_no_seed_but_for_a_rehearsal(bruit, agreed):
    bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net")
    site = "net/peer-0/site.toml"
    said = bruit("peer", "run", site, "--seed", 3)
    assert said.code == 2
    assert "No such option: --seed" in said.err
    listed = bruit("peer", "run", "--help").out
    assert "--rehearse" in listed
    assert "--seed" not in listed
    assert not Path("net/peer-0/state").exists()


def test_run_says_what_is_wrong(bruit, agreed):
    one_sentence(bruit("peer", "run", "nowhere.toml"), "there is no site file nowhere.toml")
    bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net")
    Path("net/peer-0/site.toml").write_text("peer = 1\n")
    one_sentence(
        bruit("peer", "run", "net/peer-0/site.toml"), "lists another certificate for peer 1"
    )


def test_a_peer_alone_runs_to_its_end(bruit, agreed):
    bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net", "--timeout", 0.2)
    with open("net/peer-0/site.toml", "a") as site:
        site.write("wait_for = 0\n")
    said = bruit("peer", "run", "net/peer-0/site.toml", "--rehearse", 3, "--json")
    assert said.code == 1  # the answer is no: nobody was met
    assert said.json["step"] == said.json["steps"] == 4
    assert said.json["missed"] == 8
    assert (said.json["sent"], said.json["unconfirmed"], said.json["met"]) == (0, 8, 0)
    again = bruit("peer", "run", "net/peer-0/site.toml", "--rehearse", 3)
    assert again.code == 1
    assert "met nobody: not a word came from peer-1, peer-2" in again.out
    assert "the noise protects nothing" in again.out
    assert "peer 0: 4 of 4 steps" in again.out
    assert "rehearsed, nothing is protected: epsilon would be" in again.out
    assert said.json["rehearsal"] is True
    one_sentence(
        bruit("peer", "run", "net/peer-0/site.toml"), "the dice changed since this run began"
    )


def test_a_peer_that_waits_in_vain_gives_up_with_one_sentence(bruit, agreed):
    bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net")
    with open("net/peer-0/site.toml", "a") as site:
        site.write("start_timeout = 0.3\n")
    said = bruit("peer", "run", "net/peer-0/site.toml")
    assert said.code == 1
    assert said.out.strip().splitlines()[-1] == (
        "peer 0: gave up after 0.3 s of waiting for peer-1, peer-2 (0 of 2 connected); wait_for "
        "asks for 2; nothing was"
        " released and nothing was spent; report in net/peer-0/state"
    )
    told = bruit("peer", "run", "net/peer-0/site.toml", "--json")
    assert told.code == 1
    assert (told.json["epsilon"], told.json["sent"], told.json["step"]) == (0.0, 0, 0)


def test_a_small_demonstration(bruit, agreed):
    said = bruit("network", "demo", "--peers", 3, "--experiment", agreed, "--out", "net", "--json")
    assert said.code == 0, said.err
    reports = said.json["reports"]
    assert [report["peer"] for report in reports] == [0, 1, 2]
    assert all(
        report["done"] and report["sent"] == 8 and report["missed"] == 0 for report in reports
    )
    assert all(report["refused"] == {} for report in reports)
    assert said.json["privacy"] is not None
    assert Path("net/peer-2/state/model.npz").exists()
    assert stat.S_IMODE(Path("net/peer-2/log.txt").stat().st_mode) == 0o600
    assert all(report["metrics"] == {} for report in reports)  # no peer knows the true mean
    assert {report["scored_on"] for report in reports} == {"nothing: no peer knows the true answer"}
    scores = said.json["scores"]  # but who plays everybody does
    assert (scores["metric"], scores["central"], len(scores["each"])) == ("mse", 0.0, 3)
    assert scores["better"] == (scores["together"] < scores["alone"])


@pytest.mark.parametrize("peers", [4, 16])
def test_the_demonstration_everybody_sees_first(bruit, peers):
    """Whatever the noise was: the verdict is that of the numbers above it."""
    said = bruit("network", "demo", "--peers", peers)
    assert said.code == 0, said.err
    assert "everyone's own model and account" in said.out
    rows = {
        line.split("│")[1].strip(): line.split("│")[2].strip()
        for line in said.out.splitlines()
        if "│" in line
    }
    alone, together = (
        float(rows[who]) for who in ("each peer alone, sharing nothing", "together, with bruit")
    )
    assert 0.5 < alone < float(rows["all data in one place, no privacy"])
    better = "Together is better than alone. The noise hides everything that one peer holds (user level)."
    assert (better in said.out) == (together > alone)
    assert ("Together is not better than alone here." in said.out) == (together <= alone)


COUNT = """\
graph = "ring:3"
steps = 3

[task]
kind = "histogram"
dim = 3
label = "diagnosis"
classes = ["flu", "cold", "healthy"]

[algorithm]
name = "token-histogram"

[privacy]
mechanism = "randomized-response"
epsilon = 2.0
"""


def test_a_histogram_of_what_three_participants_hold(bruit, tmp_path):
    (tmp_path / "agreed.toml").write_text(MEAN)
    assert (
        bruit("network", "init", "--peers", 3, "--experiment", "agreed.toml", "--out", "net").code
        == 0
    )
    for peer, answer in enumerate(("flu", "cold", "flu")):
        home = tmp_path / f"net/peer-{peer}"
        (home / "experiment.toml").write_text(COUNT)
        (tmp_path / "mine.csv").write_text(f"name,diagnosis\nAna,{answer}\n")
        options = (
            "--experiment",
            home / "experiment.toml",
            "--force",
            "--out",
            home / "records.npz",
        )
        said = bruit("peer", "data", "mine.csv", *options)
        assert "wrote 1 record of 3 columns for a task of kind histogram" in said.out, said.err
    assert (
        bruit(
            "peer", "run", *(f"net/peer-{peer}/site.toml" for peer in range(3)), "--rehearse", 1
        ).code
        == 0
    )
    report = json.loads((tmp_path / "net/peer-0/state/report.json").read_text())
    assert (report["done"], report["metrics"]) == (True, {})
    (tmp_path / "net/peer-1/experiment.toml").write_text(COUNT.replace("dim = 3", "dim = 4"))
    one_sentence(
        bruit("peer", "run", "net/peer-1/site.toml"), "values of 4 numbers were agreed on", "hold 3"
    )


LEARN = MEAN.replace('kind = "mean"\ndim = 2', 'kind = "logistic"').replace(
    '"averaging"', '"gossip-sgd"'
)


def test_records_from_a_file_to_a_model(bruit, tmp_path):
    """Two participants prepare their own CSV by the same constants, and learn."""
    (tmp_path / "agreed.toml").write_text(MEAN)
    assert (
        bruit("network", "init", "--peers", 3, "--experiment", "agreed.toml", "--out", "net").code
        == 0
    )
    (tmp_path / "learn.toml").write_text(LEARN)
    (tmp_path / "scales.toml").write_text("age = [54.0, 9.0]\n")
    (tmp_path / "mine.csv").write_text("name,age,ill\nAna,63,yes\nBen,41,no\n")
    options = (
        "--experiment",
        "learn.toml",
        "--label",
        "ill",
        "--classes",
        "no,yes",
        "--scales",
        "scales.toml",
    )
    for peer in range(3):
        (tmp_path / f"net/peer-{peer}/experiment.toml").write_text(LEARN)
        said = bruit(
            "peer", "data", "mine.csv", *options, "--out", f"net/peer-{peer}/records.npz", "--force"
        )
        assert said.code == 0
        assert "wrote 2 records of 2 columns for a task of kind logistic" in said.out
    told = bruit("peer", "data", "mine.csv", *options, "--out", "again.npz", "--json").json
    assert told == {
        "records": 2,
        "columns": 2,
        "kind": "logistic",
        "out": "again.npz",
        "data": ["mine.csv: 1 column used: age", "mine.csv: 1 column not used: name"],
    }
    sites = [f"net/peer-{peer}/site.toml" for peer in range(3)]
    assert bruit("peer", "run", *sites, "--rehearse", 1).code == 0
    said = bruit("peer", "backup", sites[0], "--out", "kept.zip")
    assert "wrote keys, agreements and 9 ledger lines to kept.zip" in said.out
    assert (
        bruit("peer", "backup", sites[0], "--out", "other.zip", "--json").json["ledger_lines"] == 9
    )


def test_wrong_records_and_backups_are_one_sentence(bruit, tmp_path):
    (tmp_path / "learn.toml").write_text(LEARN)
    (tmp_path / "mine.csv").write_text("age,ill\n63,yes\n,no\n")
    call = ("peer", "data", "mine.csv", "--experiment", "learn.toml", "--classes", "no,yes")
    one_sentence(bruit(*call, "--label", "il"), "no column 'il'", "did you mean 'ill'")
    one_sentence(
        bruit(*call, "--label", "ill"), "mine.csv row 1 (line 3)", "column 'age'", "no value"
    )
    one_sentence(bruit(*call), "needs a label")
    one_sentence(bruit("peer", "backup", "none.toml", "--out", "x.zip"), "there is no site file")
