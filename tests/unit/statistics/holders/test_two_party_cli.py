"""`--listen` and `--with` of `bruit auc` and `bruit pairwise`: what is refused before anything is
said."""

import pytest
import typer
from typer.testing import CliRunner

from bruit.commands.statistics.one_table import auc
from bruit.commands.statistics.pairwise import pairwise
from bruit.errors import BruitError
from bruit.peers.wire.identity import Identity

app = typer.Typer()
app.command()(auc)
app.command()(pairwise)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("holders")
    for name in ("me", "other"):
        Identity.create(name).save(root / name)
    (root / "t.csv").write_text("s,y,word\n0.1,0,no\n0.7,1,yes\n0.2,0,no\n0.9,1,maybe\n")
    return root


KNOWN = ["--identity", "me", "--partner", "other/certificate.pem"]
BAD = [
    (["--listen", "127.0.0.1:0", "--with", "127.0.0.1:1", *KNOWN], "one of --listen and --with"),
    (["--rounds", "2"], "one of --listen and --with"),
    (["--listen", "127.0.0.1:0"], "give --identity"),
    (["--listen", "127.0.0.1:0", "--identity", "me"], "give --identity"),
    (["--listen", "127.0.0.1:0", "--seed", "1", *KNOWN], "leave --seed out"),
    (["--listen", "nowhere", *KNOWN], "HOST:PORT"),
    (
        ["--listen", "127.0.0.1:0", "--label", "word", *KNOWN],
        "line 2, column 'word' holds 'no'.*--positive",
    ),
    (["--listen", "127.0.0.1:0", "--epsilon", "0", *KNOWN], "between 1e-09 and 40"),
    (
        ["--listen", "127.0.0.1:0", "--identity", "nobody", "--partner", "other/certificate.pem"],
        "no nobody/key.pem",
    ),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_refusals(folder, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    refused(folder, ["auc", "t.csv", "--score", "s", "--label", "y", *words], message)


@pytest.mark.parametrize("way", [["--listen", "127.0.0.1:0"], ["--with", "127.0.0.1:1"]])
def test_a_question_above_the_limit_waits_for_nobody(folder, monkeypatch, way):
    """It waited for the other holder first, for as long as that took."""
    monkeypatch.chdir(folder)
    words = ["auc", "t.csv", "--score", "s", "--label", "y", *way, *KNOWN]
    refused(folder, [*words, "--epsilon", "2", "--limit", "1.5"], "2 more would be above the limit")


def refused(folder, words, message):
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, BruitError), done.output
    with pytest.raises(BruitError, match=message):
        raise done.exception
    assert not list(folder.glob("*.account.jsonl"))


LISTEN = ["--listen", "127.0.0.1:0", *KNOWN]
PAIRWISE = [
    (["auc", "--points", "s", *LISTEN], "bruit auc --score"),
    (["entropy", "--points", "s", *LISTEN], "no circuit compares rows for 'entropy'"),
    (["kendall", "--points", "s", *LISTEN], "kendall takes 2 columns, found --points 's'"),
    (["gini", "--points", "s,y", "--low", "0", "--high", "1", *LISTEN], "gini takes one column"),
    (["gini", "--points", "s", *LISTEN], "declare low and high"),
    (
        ["gini", "--points", "s", "--low", "0", "--high", "0.5", *LISTEN],
        "beyond the declared 0..0.5",
    ),
    (
        ["kendall", "--points", "s,y", "--low", "0", "--high", "1", *LISTEN],
        "leave low and high out",
    ),
    (["gini", "--points", "s", "--low", "0", *LISTEN], "give both --low and --high"),
    (["kendall", "--points", "s,y", "--clamp", *LISTEN], "leave --clamp out"),
    (["kendall", "--points", "s,word", *LISTEN], "column 'word' holds text"),
    (["kendall", "--points", "s,y"], "one of --listen and --with"),
]


@pytest.mark.parametrize(("words", "message"), PAIRWISE)
def test_refusals_of_statistics_of_pairs(folder, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    refused(folder, ["pairwise", "t.csv", "--statistic", *words], message)
