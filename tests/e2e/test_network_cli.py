"""The commands of real peers: keys, address books, folders, and a small demonstration."""

import stat
import tomllib
from pathlib import Path

import conftest
import pytest

from bruit.network.address_book import AddressBook
from bruit.network.identity import Identity

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
    said = bruit("peer", "key", "hospital-a", "--host", "a.example.org", "--port", 7400, "--out", "a", "--json")
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
    one_sentence(bruit("network", "join", "a/public.toml", "nowhere.toml"), "there is no file nowhere.toml")
    one_sentence(bruit("network", "join", "a/public.toml", "a/public.toml"), "have the same name")
    Path("bad.toml").write_text("peer = 3")
    one_sentence(bruit("network", "join", "bad.toml"), "snippet 1")


def test_init_writes_a_folder_for_everybody(bruit, agreed):
    said = bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net", "--json")
    assert said.code == 0
    assert [Path(site).parent.name for site in said.json["sites"]] == ["peer-0", "peer-1", "peer-2"]
    for site in said.json["sites"]:
        home = Path(site).parent
        assert {path.name for path in home.iterdir()} == {"site.toml", "book.toml", "experiment.toml", "records.npz",
                                                           "key.pem", "signing.pem", "certificate.pem"}  # fmt: skip
        assert (home / "experiment.toml").read_text() == MEAN
    one_sentence(bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net"), "is not empty")


def test_init_refuses_what_cannot_be(bruit, agreed):
    one_sentence(bruit("network", "init", "--peers", 1, "--experiment", agreed), "at least two peers")
    one_sentence(bruit("network", "init", "--peers", 5, "--experiment", agreed), "has 3 peers", "use --graph")
    one_sentence(bruit("network", "init", "--peers", 3, "--experiment", "nothing"), "there is no experiment file")
    said = bruit("network", "init", "--peers", 5, "--graph", "ring", "--experiment", agreed, "--json")
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
    one_sentence(bruit("peer", "run", "net/peer-0/site.toml"), "lists another certificate for peer 1")


def test_a_peer_alone_runs_to_its_end(bruit, agreed):
    bruit("network", "init", "--peers", 3, "--experiment", agreed, "--out", "net", "--timeout", 0.2)
    said = bruit("peer", "run", "net/peer-0/site.toml", "--rehearse", 3, "--json")
    assert said.code == 0
    assert said.json["step"] == said.json["steps"] == 4
    assert said.json["missed"] == 8
    again = bruit("peer", "run", "net/peer-0/site.toml", "--rehearse", 3)
    assert again.code == 0
    assert "the noise protects nothing" in again.out
    assert "peer 0: 4 of 4 steps" in again.out
    assert "rehearsed, nothing is protected: epsilon would be" in again.out
    assert said.json["rehearsal"] is True
    one_sentence(bruit("peer", "run", "net/peer-0/site.toml"), "the dice changed since this run began")


def test_a_small_demonstration(bruit, agreed):
    said = bruit("network", "demo", "--peers", 3, "--experiment", agreed, "--out", "net", "--json")
    assert said.code == 0, said.err
    reports = said.json["reports"]
    assert [report["peer"] for report in reports] == [0, 1, 2]
    assert all(report["done"] and report["sent"] == 8 and report["missed"] == 0 for report in reports)
    assert all(report["refused"] == {} for report in reports)
    assert said.json["privacy"] is not None
    assert Path("net/peer-2/state/model.npz").exists()


@pytest.mark.slow
def test_the_demonstration_everybody_sees_first(bruit):
    said = bruit("network", "demo", "--peers", 3)
    assert said.code == 0, said.err
    assert "everyone's own model and account" in said.out


LEARN = MEAN.replace('kind = "mean"\ndim = 2', 'kind = "logistic"').replace('"averaging"', '"gossip-sgd"')


def test_records_from_a_file_to_a_model(bruit, tmp_path):
    """Two participants prepare their own CSV by the same constants, and learn."""
    (tmp_path / "agreed.toml").write_text(MEAN)
    assert bruit("network", "init", "--peers", 3, "--experiment", "agreed.toml", "--out", "net").code == 0
    (tmp_path / "learn.toml").write_text(LEARN)
    (tmp_path / "columns.toml").write_text("age = [54.0, 9.0]\n")
    (tmp_path / "mine.csv").write_text("name,age,ill\nAna,63,yes\nBen,41,no\n")
    options = ("--experiment", "learn.toml", "--label", "ill", "--classes", "no,yes", "--columns", "columns.toml")
    for peer in range(3):
        (tmp_path / f"net/peer-{peer}/experiment.toml").write_text(LEARN)
        said = bruit("peer", "data", "mine.csv", *options, "--out", f"net/peer-{peer}/records.npz")
        assert said.code == 0
        assert "wrote 2 records of 2 columns for a task of kind logistic" in said.out
    told = bruit("peer", "data", "mine.csv", *options, "--out", "again.npz", "--json").json
    assert told == {"records": 2, "columns": 2, "kind": "logistic", "out": "again.npz",
                    "data": ["mine.csv: 1 column used: age", "mine.csv: 1 column not used: name"]}  # fmt: skip
    sites = [f"net/peer-{peer}/site.toml" for peer in range(3)]
    assert bruit("peer", "run", *sites, "--rehearse", 1).code == 0
    said = bruit("peer", "backup", sites[0], "--out", "kept.zip")
    assert "wrote keys, agreements and 9 ledger lines to kept.zip" in said.out
    assert bruit("peer", "backup", sites[0], "--out", "other.zip", "--json").json["ledger_lines"] == 9


def test_wrong_records_and_backups_are_one_sentence(bruit, tmp_path):
    (tmp_path / "learn.toml").write_text(LEARN)
    (tmp_path / "mine.csv").write_text("age,ill\n63,yes\n,no\n")
    call = ("peer", "data", "mine.csv", "--experiment", "learn.toml", "--classes", "no,yes")
    one_sentence(bruit(*call, "--label", "il"), "no column 'il'", "did you mean 'ill'")
    one_sentence(bruit(*call, "--label", "ill"), "mine.csv row 1 (line 3)", "column 'age'", "no value")
    one_sentence(bruit(*call), "needs a label")
    one_sentence(bruit("peer", "backup", "none.toml", "--out", "x.zip"), "there is no site file")
