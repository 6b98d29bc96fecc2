"""The commands auc, mean, ldp report and ldp estimate: what they print, and what they refuse."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from bruit.accounts.account import beside
from bruit.commands.statistics.ldp import ldp_app
from bruit.commands.statistics.one_table import auc, mean
from bruit.errors import BruitError, ConfigError, PrivacyError
from bruit.statistics.local import load_reports

app = typer.Typer()
app.command()(auc)
app.command()(mean)
app.add_typer(ldp_app, name="ldp")


def call(*words):
    """Standard output of a command; errors of bruit are raised as they are."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, BruitError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    label = np.arange(6000) % 2
    score = np.clip(rng.normal(0.4 + 0.2 * label, 0.12), 0, 1)
    color = rng.choice(["red", "green", "blue"], 6000, p=[0.5, 0.3, 0.2])
    path = tmp_path_factory.mktemp("cli") / "users.csv"
    rows = [
        f"{s},{y},{'yes' if y else 'no'},{c},1" for s, y, c in zip(score, label, color, strict=True)
    ]
    path.write_text("s,y,answer,color,same\n" + "\n".join(rows) + "\n")
    return path


def test_auc(table):
    found = json.loads(
        call("auc", table, "--score", "s", "--label", "y", "--epsilon", 2, "--seed", 1, "--json")
    )
    assert {"auc", "interval", "epsilon", "bits_per_user"} <= set(found)
    assert (found["epsilon"], found["bits_per_user"], found["level"], found["users"]) == (
        2.0,
        1,
        "user",
        6000,
    )
    assert found["interval"][0] <= 0.88 <= found["interval"][1]  # Phi(0.2 / (0.12 sqrt 2)) = 0.881
    text = call("auc", table, "--score", "s", "--label", "answer", "--positive", "yes")
    assert "one bit each" in text
    assert "user level, against everybody (local DP)" in text
    assert "rehearsal" not in text
    assert "a rehearsal" in call("auc", table, "--score", "s", "--label", "y", "--seed", 1)


def test_mean(table):
    found = json.loads(
        call("mean", table, "--column", "s", "--low", 0, "--high", 1, "--seed", 3, "--json")
    )
    assert found["interval"][0] <= found["mean"] <= found["interval"][1]
    assert found["mean"] == pytest.approx(0.5, abs=0.09)  # five standard errors sqrt(2 / 6000)
    assert found["delta"] == 0.0
    found = json.loads(
        call(
            "mean",
            table,
            "--column",
            "s",
            "--low",
            0,
            "--high",
            1,
            "--protocol",
            "gaussian",
            "--delta",
            1e-5,
            "--json",
        )
    )
    assert (found["protocol"], found["delta"]) == ("gaussian", 1e-5)
    assert "against everybody" in call(
        "mean", table, "--column", "s", "--low", 0.5, "--high", 1, "--clamp"
    )


@pytest.mark.parametrize("protocol", [None, "k-ary", "hadamard", "unary", "local-hashing"])
@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_report_and_estimate(table, tmp_path, protocol, ending):
    out = tmp_path / f"reports.{ending}"
    chosen = [] if protocol is None else ["--protocol", protocol]
    said = json.loads(
        call(
            "ldp",
            "report",
            table,
            "--column",
            "color",
            "--domain",
            "red,green,blue",
            "--epsilon",
            2,
            "--out",
            out,
            "--seed",
            4,
            "--json",
            *chosen,
        )
    )
    assert (said["reports"], said["level"]) == (6000, "user")
    found = json.loads(call("ldp", "estimate", out, "--json"))
    assert [row["value"] for row in found["shares"]] == ["red", "green", "blue"]
    for row, truth in zip(found["shares"], (0.5, 0.3, 0.2), strict=True):
        assert abs(row["share"] - truth) < 5 * row["error"] + 0.03
    assert "malformed ones refused" in call("ldp", "estimate", out, out)


def test_report_numbers(table, tmp_path):
    out = tmp_path / "m.csv"
    call(
        "ldp",
        "report",
        table,
        "--column",
        "s",
        "--low",
        0,
        "--high",
        1,
        "--out",
        out,
        "--protocol",
        "gaussian",
    )
    found = json.loads(call("ldp", "estimate", out, "--json"))
    assert (found["protocol"], found["delta"]) == ("gaussian", 1e-6)
    with out.open("a") as file:
        file.write("nan\nzebra\n1e99\n")
    assert json.loads(call("ldp", "estimate", out, "--json"))["refused"] == 3


def test_too_few_reports_are_told_how_many_it_takes(tmp_path):
    users = tmp_path / "few.csv"
    users.write_text("c,x\n" + "a,0.5\nb,0.1\n" * 5)
    call(
        "ldp",
        "report",
        users,
        "--column",
        "c",
        "--domain",
        "a,b",
        "--epsilon",
        0.1,
        "--out",
        tmp_path / "r.csv",
    )
    assert "10 users at epsilon = 0.1 say nothing" in call("ldp", "estimate", tmp_path / "r.csv")
    call(
        "ldp",
        "report",
        users,
        "--column",
        "x",
        "--low",
        0,
        "--high",
        1,
        "--epsilon",
        0.1,
        "--out",
        tmp_path / "x.csv",
    )
    assert "it takes about" in call("ldp", "estimate", tmp_path / "x.csv")


BAD = [
    (
        ["auc", "TABLE", "--score", "s", "--label", "same"],
        "all 6000 users have label 1; an AUC compares two classes",
    ),
    (
        ["auc", "TABLE", "--score", "s", "--label", "y", "--epsilon", "0.001"],
        r"say nothing.*it takes about \d+ users",
    ),
    (
        ["auc", "TABLE", "--score", "s", "--label", "y", "--high", "0.3"],
        "outside the declared range 0..0.3",
    ),
    (["auc", "TABLE", "--score", "s", "--label", "s"], "different labels; an AUC compares two"),
    (["auc", "TABLE", "--score", "s", "--label", "answer"], "holds text where numbers are needed"),
    (
        ["auc", "TABLE", "--score", "s", "--label", "answer", "--positive", "maybe"],
        "never holds the positive label",
    ),
    (["auc", "TABLE", "--score", "t", "--label", "y"], "has no column 't'"),
    (
        ["mean", "HOLES", "--column", "age", "--low", "0", "--high", "99"],
        r"\(line 3\), column 'age': no value .*; leave the row out of the file, or repair it$",
    ),
    (
        ["mean", "HOLES", "--column", "size", "--low", "0", "--high", "99"],
        r"\(line 3\), column 'size': '>9' .*; leave the row out of the file, or repair it$",
    ),
    (["auc", "missing.csv", "--score", "s", "--label", "y"], "there is no file missing.csv"),
    (
        ["auc", "TABLE", "--score", "s", "--label", "y", "--epsilon", "0"],
        "must be between 1e-09 and 40",
    ),
    (
        ["mean", "TABLE", "--column", "s", "--low", "0", "--high", "1", "--epsilon", "0.001"],
        "say nothing",
    ),
    (
        ["mean", "TABLE", "--column", "s", "--low", "0.6", "--high", "1"],
        "outside the declared range",
    ),
    (["mean", "TABLE", "--column", "color", "--low", "0", "--high", "1"], "holds text"),
    (["ldp", "report", "TABLE", "--column", "color", "--out", "OUT"], "say what may be reported"),
    (
        ["ldp", "report", "TABLE", "--column", "color", "--domain", "red,green", "--out", "OUT"],
        "holds 'blue', which is not in the declared domain",
    ),
    (
        ["ldp", "report", "TABLE", "--column", "color", "--domain", "red,red", "--out", "OUT"],
        "names different values",
    ),
    (
        [
            "ldp",
            "report",
            "TABLE",
            "--column",
            "color",
            "--domain",
            "red,green,blue",
            "--protocol",
            "laplace",
            "--out",
            "OUT",
        ],
        "no protocol 'laplace' reports one of 3 values",
    ),
    (
        [
            "ldp",
            "report",
            "TABLE",
            "--column",
            "s",
            "--low",
            "0",
            "--high",
            "1",
            "--protocol",
            "unary",
            "--out",
            "OUT",
        ],
        "no protocol 'unary' reports numbers",
    ),
    (
        [
            "ldp",
            "report",
            "TABLE",
            "--column",
            "s",
            "--low",
            "0",
            "--high",
            "1",
            "--protocol",
            "laplace",
            "--delta",
            "1e-5",
            "--out",
            "OUT",
        ],
        "needs no delta",
    ),
    (["ldp", "estimate", "TABLE"], "is no file of reports"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_refusals(table, tmp_path, words, message):
    (tmp_path / "holes.csv").write_text("age,size\n50,1\n,>9\n60,2\n61,3\n")
    places = {"TABLE": str(table), "OUT": str(tmp_path / "r.csv")}
    places["HOLES"] = str(tmp_path / "holes.csv")
    with pytest.raises(BruitError, match=message):
        call(*(places.get(word, word) for word in words))
    assert not (tmp_path / "r.csv").exists()


def test_labels_that_do_not_fit_the_protocol_are_refused(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(
        '# bruit local-dp reports 1 {"kind": "k-ary", "k": 3, "epsilon": 1.0, "labels": '
        '["a"]}\nvalue\n1\n'
    )
    with pytest.raises(BruitError, match="name 1 values, but their protocol has 3"):
        call("ldp", "estimate", path)


@pytest.mark.parametrize(
    "words",
    [
        ["auc", "TABLE", "--score", "s", "--label", "y", "--epsilon", 2],
        ["mean", "TABLE", "--column", "s", "--low", 0, "--high", 1, "--epsilon", 2],
        [
            "ldp",
            "report",
            "TABLE",
            "--column",
            "color",
            "--domain",
            "red,green,blue",
            "--epsilon",
            2,
            "--out",
            "OUT",
        ],
        ["ldp", "report", "TABLE", "--column", "s", "--label", "y", "--epsilon", 2, "--out", "OUT"],
    ],
    ids=["auc", "mean", "report", "scores"],
)
def test_what_a_table_paid_is_written_beside_it_and_limited(words, table, tmp_path, monkeypatch):
    """Whatever is asked, from whichever folder: the same record as between two holders, and the
    same refusal."""
    monkeypatch.chdir(tmp_path)
    home, out = tmp_path / "elsewhere", tmp_path / "r.csv"
    home.mkdir()
    copy = home / "t.csv"
    copy.write_bytes(table.read_bytes())
    (tmp_path / "link.csv").symlink_to(copy)
    said = [
        [{"TABLE": name, "OUT": out}.get(word, word) for word in words]
        for name in (copy, "link.csv", "link.csv")
    ]
    assert "paid epsilon = 2 in all" in call(*said[0])
    out.unlink(missing_ok=True)
    assert (
        json.loads(call(*said[1], "--limit", 4, "--json"))["recorded"]
        == str(copy) + ".account.jsonl"
    )
    out.unlink(missing_ok=True)
    with pytest.raises(
        PrivacyError, match=r"have paid epsilon = 4 so far .* 2 more would be above the limit 5"
    ):
        call(*said[2], "--limit", 5)
    assert not out.exists()
    assert [one.price.epsilon for one in beside(copy).balance().charged] == [2, 2]
    call(*said[0], "--seed", 1)
    assert len(beside(copy).balance().charged) == 2
    out.unlink(missing_ok=True)
    with pytest.raises(ConfigError, match="not written down; leave --limit out"):
        call(*said[0], "--seed", 1, "--limit", 9)


def test_reports_are_in_random_order_unless_places_are_public(tmp_path):
    """At epsilon 40 a report is its value: places of a table that is not sorted still told whose
    report is whose."""
    table, out = tmp_path / "t.csv", tmp_path / "r.csv"
    values = np.random.default_rng(0).permutation(np.repeat(["a", "b"], 500))
    table.write_text("c\n" + "\n".join(values) + "\n")
    words = [
        "ldp",
        "report",
        table,
        "--column",
        "c",
        "--domain",
        "a,b",
        "--epsilon",
        40,
        "--out",
        out,
    ]
    rows = values == "b"

    def agreement():
        return float((load_reports(out).column("value") == rows).mean())

    text = call(*words)
    assert "in random order: the place of a report says nothing" in text
    assert abs(agreement() - 0.5) < 0.1  # six standard deviations of a random order
    assert "in the order of the rows" in call(*words, "--keep-order", "--force")
    assert agreement() == 1.0


def test_spending_has_no_silent_default():
    from inspect import Parameter, signature

    from bruit.statistics.average.averaging import AveragingSeat
    from bruit.statistics.holders import ask
    from bruit.statistics.holders.holder import Holder

    for paying, word in ((AveragingSeat, "record"), (ask, "spend"), (Holder, "spend")):
        assert signature(paying).parameters[word].default is Parameter.empty
