"""An AUC over several holders: files of one-bit reports, pooled; what is refused, counted, told
(perso:LDP-8, 9)."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from bruit.commands.statistics.ldp import ldp_app
from bruit.errors import BruitError, ConfigError, PrivacyError
from bruit.privacy.events import BoundedEvent
from bruit.randomness import Replay, Secure
from bruit.statistics.local import (
    KAry,
    PrivateAuc,
    Reports,
    ScoreReports,
    load_reports,
    pool,
    save_reports,
)
from bruit.statistics.local.quantized import bins_of

AGREED = ScoreReports(4, 2.0)
app = typer.Typer()
app.add_typer(ldp_app, name="ldp")


def call(*words):
    """Standard output of a command; errors of bruit are raised as they are."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(done.exception, BruitError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def users(n, seed, share=0.5):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < share).astype(int)
    return np.clip(rng.normal(0.4 + 0.2 * labels, 0.12), 0, 1), labels


def holder(seed, n=500, agreed=AGREED, share=0.5):
    return agreed.report(*users(n, seed, share), Replay(seed))


def test_one_file_is_one_table():
    """The same answers to the same questions give the same estimate as PrivateAuc."""
    scores, labels = users(800, 1)
    reports = AGREED.report(scores, labels, Replay(1))
    direct = PrivateAuc(4, 2.0, ties="half", seed=reports.protocol["questions"])
    assert pool([reports]).estimate() == direct.estimate(
        reports.column("sign"), reports.column("label")
    )
    assert AGREED.event() == BoundedEvent(2.0)


def test_pooled_answers_are_the_answers_of_all():
    parts = [holder(seed) for seed in range(3)]
    together = pool(parts)
    trees = [PrivateAuc(4, 2.0, seed=part.protocol["questions"]).tree for part in parts]
    asked = [tree.questions(part.column("user")) for tree, part in zip(trees, parts, strict=True)]
    assert np.array_equal(together.level, np.concatenate([level for level, _ in asked]))
    assert np.array_equal(together.row, np.concatenate([row for _, row in asked]))
    assert np.array_equal(together.signs, np.concatenate([part.column("sign") for part in parts]))
    assert len({part.protocol["questions"] for part in parts}) == 3
    backwards = pool(parts[::-1]).estimate()
    assert backwards.raw == pytest.approx(together.estimate().raw, rel=1e-9)


def test_little_noise_gives_the_auc_of_the_joined_rows():
    """epsilon = 40, two bins: a bit says nothing (row 0) or in which half the score is (row 1);
    within 5 errors."""
    agreed, rows = (
        ScoreReports(1, 40.0),
        [users(4000, seed, share) for seed, share in ((1, 0.2), (2, 0.7))],
    )
    found = pool([agreed.report(*one, Replay(seed)) for seed, one in enumerate(rows)]).estimate()
    scores, labels = (np.concatenate(part) for part in zip(*rows, strict=True))
    upper = bins_of(scores, 2)
    up, down = upper[labels == 1].mean(), upper[labels == 0].mean()
    assert (
        abs(found.raw - (up * (1 - down) + (up * down + (1 - up) * (1 - down)) / 2))
        < 5 * found.error
        < 0.1
    )
    assert (found.positives, found.negatives) == (int(labels.sum()), int((1 - labels).sum()))


def test_holders_of_one_class_are_fine_but_not_all_of_the_same():
    ill, well = holder(1, share=1.1), holder(2, share=0.0)
    found = pool([ill, well]).estimate()
    assert (found.positives, found.negatives) == (500, 500)
    with pytest.raises(
        ConfigError, match="all 500 users have label 1; an AUC compares two classes"
    ):
        pool([ill]).estimate()
    with pytest.raises(ConfigError, match="all 1000 users have label 0"):
        pool([well, holder(3, share=0.0)]).estimate()


def test_places_in_the_file_tell_nothing():
    """A table sorted by score: labels of the file are in another order, and secure dice give other
    ones each time."""
    scores, labels = np.linspace(0, 1, 1000), (np.arange(1000) >= 500).astype(int)
    first, second = (AGREED.report(scores, labels, Secure()) for _ in range(2))
    for reports in (first, second):
        assert abs(reports.column("label")[:500].mean() - 0.5) < 0.16  # 10 standard deviations
    assert not np.array_equal(first.column("label"), second.column("label"))
    assert first.protocol["questions"] != second.protocol["questions"]


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_files_keep_everything(tmp_path, ending):
    parts = [holder(seed, 200) for seed in range(2)]
    for number, part in enumerate(parts):
        save_reports(part, tmp_path / f"{number}.{ending}")
    read = pool([load_reports(tmp_path / f"{number}.{ending}") for number in range(2)])
    assert read.estimate() == pool(parts).estimate()
    assert (read.refused, read.missing) == (0, 0)


def test_bad_rows_are_counted_and_do_not_move_the_others():
    """Row 0 names no label, 1 no sign, 2 no user, 3 and 4 the same user: five refused, the rest
    answers as before."""
    whole = holder(1)
    columns = {name: column.astype(np.int64) for name, column in whole.columns.items()}
    columns["label"][0], columns["sign"][1], columns["user"][2], columns["user"][3] = (
        2,
        0,
        500,
        columns["user"][4],
    )
    broken = pool([Reports(whole.protocol, columns, unreadable=2)])
    assert (len(broken.signs), broken.refused, broken.missing) == (495, 7, 0)
    rest = {name: column[5:] for name, column in whole.columns.items()}
    assert broken.estimate().raw == pool([Reports(whole.protocol, rest)]).estimate().raw


def test_a_file_that_was_cut_off_is_told(tmp_path):
    path = tmp_path / "a.csv"
    save_reports(holder(1), path)
    text = path.read_text()
    path.write_text(text[: int(len(text) * 0.7)])
    found = json.loads(call("ldp", "estimate", path, "--json"))
    assert found["refused"] in (0, 1)  # the last line may be half a row
    assert found["users"] + found["refused"] + found["missing"] == 500
    assert found["missing"] > 100
    assert "not there: a file was cut off" in call("ldp", "estimate", path)
    whole = tmp_path / "a.npz"
    save_reports(holder(1), whole)
    whole.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(ConfigError, match=r"a.npz is no file of reports"):
        load_reports(whole)


def described(**changes):
    whole = holder(1)
    return Reports({**whole.protocol, **changes}, whole.columns)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pool([]), "no reports to estimate from"),
        (
            lambda: pool([holder(1), holder(1)]),
            "a file is named twice, or rehearsals share one --seed",
        ),
        (
            lambda: pool([holder(1), holder(2, agreed=ScoreReports(4, 1.0))]),
            "did not agree.*the same --epsilon, --levels",
        ),
        (lambda: pool([holder(1), holder(2, agreed=ScoreReports(5, 2.0))]), "did not agree"),
        (
            lambda: pool([holder(1), holder(2, agreed=ScoreReports(4, 2.0, -1.0, 1.0))]),
            "did not agree",
        ),
        (
            lambda: pool([holder(1), KAry(4, 1.0).report(np.array([1, 2]), Replay(0))]),
            "reports of scores and reports by 'k-ary' cannot be counted together",
        ),
        (lambda: pool([described(questions=None)]), "need 'questions', a whole number"),
        (lambda: pool([described(questions=2**70)]), "need 'questions', a whole number"),
        (lambda: pool([described(users=-1)]), "need 'users', a whole number"),
        (lambda: pool([described(epsilon="1")]), "have numbers as parameters, found epsilon = '1'"),
        (lambda: pool([described(magic=1)]), "cannot be read from"),
        (lambda: pool([described(levels=31)]), "between 1 and 30 levels"),
        (lambda: pool([described(levels=3.0)]), "between 1 and 30 levels"),
        (lambda: pool([described(low=2.0)]), "finite range low < high"),
        (lambda: pool([Reports(holder(1).protocol, {"user": np.arange(3)})]), "no column 'sign'"),
        (
            lambda: pool(
                [
                    Reports(
                        holder(1).protocol,
                        {name: np.full((3, 2), np.nan) for name in ("user", "label", "sign")},
                    )
                ]
            ).estimate(),
            "not one of 3 rows is a possible report of a score",
        ),
        (
            lambda: AGREED.report(np.array([0.5, 1.5]), np.array([0, 1]), Replay(0)),
            "outside the declared range 0..1",
        ),
        (lambda: AGREED.report(np.array([0.5]), np.array([2]), Replay(0)), "a label, 0 or 1"),
        (
            lambda: AGREED.report(np.array([0.5]), np.array([0, 1]), Replay(0)),
            "found 1 scores and labels of shape",
        ),
    ],
)
def test_refusals(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


def test_an_epsilon_that_no_bit_can_have_is_refused():
    with pytest.raises(PrivacyError, match="must be between 1e-09 and 40"):
        pool([described(epsilon=400.0)])


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("holders")
    for name, n, seed in (("north", 900, 1), ("south", 600, 2)):
        rows = [f"{s:.6f},{y},{'yes' if y else 'no'}" for s, y in zip(*users(n, seed), strict=True)]
        (folder / f"{name}.csv").write_text("s,y,ill\n" + "\n".join(rows) + "\n")
    return folder


def test_the_commands(tables):
    """North has 0 and 1, south says which word is positive: the files are alike."""
    north, south = tables / "north.npz", tables / "south_reports.csv"
    said = json.loads(
        call(
            "ldp",
            "report",
            tables / "north.csv",
            "--column",
            "s",
            "--label",
            "y",
            "--epsilon",
            2,
            "--out",
            north,
            "--seed",
            1,
            "--json",
        )
    )
    assert (said["reports"], said["bits_per_user"], said["protects"]) == (
        900,
        1,
        "scores, not labels",
    )
    text = call(
        "ldp",
        "report",
        tables / "south.csv",
        "--column",
        "s",
        "--label",
        "ill",
        "--positive",
        "yes",
        "--epsilon",
        2,
        "--out",
        south,
        "--seed",
        2,
    )
    assert "labels are public" in text
    found = json.loads(call("ldp", "estimate", north, south, "--json"))
    assert {"auc", "interval", "epsilon", "bits_per_user", "against", "level"} <= set(found)
    assert (found["users"], found["files"], found["bins"], found["epsilon"]) == (1500, 2, 64, 2.0)
    assert found["interval"][0] <= 0.88 <= found["interval"][1]  # Phi(0.2 / (0.12 sqrt 2)) = 0.881
    text = call("ldp", "estimate", north, south)
    assert "negative users of 2 files, one bit each" in text
    assert "against everybody (local DP): the aggregator" in text


def test_too_few_users_are_told_how_many_it_takes(tables, tmp_path):
    few = tmp_path / "few.csv"
    few.write_text("s,y\n" + "0.5,1\n0.1,0\n" * 10)
    call(
        "ldp",
        "report",
        few,
        "--column",
        "s",
        "--label",
        "y",
        "--epsilon",
        0.1,
        "--out",
        tmp_path / "r.csv",
    )
    assert "it takes about" in call("ldp", "estimate", tmp_path / "r.csv")


BAD = [
    (
        ["--label", "y", "--domain", "0,1"],
        "leave --domain, --protocol, --delta and --keep-order out",
    ),
    (
        ["--label", "y", "--protocol", "k-ary"],
        "leave --domain, --protocol, --delta and --keep-order out",
    ),
    (["--positive", "1", "--low", "0", "--high", "1"], "are about scores with labels"),
    (["--levels", "4", "--low", "0", "--high", "1"], "are about scores with labels"),
    (["--label", "ill"], "labels are 0 and 1, or the positive one is named"),
    (["--label", "z"], "has no column 'z'"),
    (["--label", "y", "--high", "0.3"], "outside the declared range 0..0.3"),
    (["--label", "y", "--levels", "40"], "between 1 and 30 levels"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_refused_commands(tables, tmp_path, words, message):
    with pytest.raises(BruitError, match=message):
        call(
            "ldp",
            "report",
            tables / "north.csv",
            "--column",
            "s",
            "--out",
            tmp_path / "r.csv",
            *words,
        )
    assert not (tmp_path / "r.csv").exists()


def test_a_sorted_table_is_shuffled_or_refused(tmp_path):
    """Places are random; who says that they are public cannot say so of a sorted table, where they
    tell the values."""
    table, out = tmp_path / "t.csv", tmp_path / "r.npz"
    table.write_text(
        "x,c\n" + "\n".join(f"{i / 1000},{'b' if i > 600 else 'a'}" for i in range(1000)) + "\n"
    )
    for words in (["--column", "x", "--low", 0, "--high", 1], ["--column", "c", "--domain", "a,b"]):
        with pytest.raises(
            ConfigError, match=r"is sorted by .*, so that the place of a report would tell"
        ):
            call("ldp", "report", table, "--out", out, "--force", "--keep-order", *words)
        call("ldp", "report", table, "--out", out, "--force", "--epsilon", 20, *words)
        value = load_reports(out).column("value")
        assert abs(value[:500].mean() - value.mean()) < 0.16


def test_a_tree_that_stops_at_its_root_says_that_it_knows_nothing():
    """20 + 20 users at epsilon 1: noisy counts gave 0.0000, between 0.0000 and 0.0000, where the
    truth was 0.745."""
    labels = np.repeat([1.0, 0.0], 20)
    asked = PrivateAuc(6, 1.0, ties="half", seed=3)
    for run in range(20):
        found = asked.estimate(asked.report(np.arange(40), Replay(run)), labels)
        assert (found.value, found.low, found.high, found.error) == (0.5, 0.0, 1.0, 0.0)
