"""Points, stumps and models of one's own, from a participant's own file and between real peers."""

import numpy as np
import pytest

from bruit.errors import ConfigError, PrivacyError
from bruit.peers.founding.founding import found
from bruit.peers.site.own_csv import write_records
from bruit.peers.site.own_records import read_share
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.show.demonstration import _scores, plan_demonstration
from bruit.tasks.pairs.statistic_file import StatisticKind
from bruit.tasks.personal import Personal
from tests.unit.peers.small_network import found_small, live_together
from tests.unit.peers.test_own_csv import PATIENTS, agreement

ONE = "age,pressure,ill\n63,150,yes\n"
AUC = {"kernel": "auc", "columns_": ["age"], "positives": 1}


def written(path, agreed, text, **read):
    file = path / "mine.csv"
    file.write_text(text)
    write_records(file, agreed, path / "records.npz")
    return read_share(path / "records.npz", 1, 4, agreed.task.kind, **read)[0]


def test_points_are_those_of_the_simulation(tmp_path):
    """Four rows of one file dealt to four peers, and each row prepared by its owner alone."""
    rows = ["1,4", "2,1", "7,2", "5,9"]
    (tmp_path / "all.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    text = f"""
graph = "ring:4"
steps = 3
[task]
kind = "statistic"
kernel = "kendall"
data = "{tmp_path / "all.csv"}"
columns = ["b", "a"]
split = "sized:1:1"
[algorithm]
name = "gosta-rounds"
"""
    task = build(parse(text), text).task
    agreed = agreement("statistic", None, None, (), kernel="kendall", columns_=["b", "a"])
    seen = [written(tmp_path, agreed, f"a,b\n{row}\n").inner.points.rows[0] for row in rows]
    assert sorted(map(tuple, seen)) == sorted(map(tuple, task.points.rows))


def test_an_auc_of_one_row_each(tmp_path):
    """Two classes of 1 and 3 peers: 4 * 3 / (2 * 1 * 3) = 2; score 63 of class 1 beats 50 of class
    0, and a tie counts half."""
    task = written(tmp_path, agreement("statistic", columns=None, **AUC), ONE)
    mine = task.value(np.array([1]))
    assert mine.tolist() == [[63.0, 1.0]]
    for other, worth in ((50.0, 2.0), (63.0, 1.0), (70.0, 0.0)):
        assert task.pair_value(mine, np.array([[other, 0.0]]), 0.0).tolist() == [[worth]]


def test_answers_of_a_codebook_are_told_by_randomized_response(tmp_path):
    """Three bins of one column: whoever holds 63 shows the middle one."""
    ends = {"bins": 3, "low": 0.0, "high": 120.0}
    agreed = agreement("statistic", None, None, (), kernel="gini", columns_=["age"], **ends)
    task = written(tmp_path, agreed, ONE, options=StatisticKind().agreed(agreed.task))
    assert (task.width, task.dim) == (3, 1)
    assert task.value(np.array([1])).tolist() == [[0.0, 1.0, 0.0]]
    other = agreement("statistic", None, None, (), kernel="gini", columns_=["age"], bins=4)
    with pytest.raises(ConfigError, match="prepared for bins = 3, but the experiment agrees on 4"):
        read_share(tmp_path / "records.npz", 1, 4, options=StatisticKind().agreed(other.task))


def test_several_points_travel_with_room_for_as_many_as_was_agreed(tmp_path):
    """Two of three places are filled: weights 1/2, 1/2, 0; the loss of two peers is the mean over
    four pairs."""
    agreed = agreement("pairwise", loss="auc", points=3)
    task = written(tmp_path, agreed, PATIENTS)
    shown = task.value(np.array([1])).reshape(3, -1)
    assert shown[:, -1].tolist() == [0.5, 0.5, 0.0]
    assert task.width == 3 * 5
    one = task.pair_gradient(np.zeros((1, 3)), shown.reshape(1, -1), shown.reshape(1, -1), 0.0)
    ill, well = shown[0, :3], shown[1, :3]
    assert np.allclose(one, -(ill - well) / 8)  # slope -1/2, on one ordered pair of four


def test_records_of_models_of_ones_own(tmp_path):
    task = written(tmp_path, agreement("personal", model="logistic", ridge=3.0), PATIENTS)
    assert isinstance(task.inner, Personal)
    assert task.inner.ridge.tolist() == [1.5]  # 3 over two records
    found_for = task.sensitivities("model", 2).values
    assert found_for[1] > 0
    assert (found_for[0], *found_for[2:]) == (0.0, 0.0, 0.0)
    with pytest.raises(PrivacyError, match="bound"):
        written(
            tmp_path,
            agreement("personal", model="ridge", ridge=3.0, classes=()),
            "age,pressure,ill\n1,2,3\n",
        ).sensitivities("gradient", 2)


def test_stumps_lie_within_agreed_scales(tmp_path):
    """Four a column, within two scales of the center: at -1, 0, 1 and 2; age 63 is one scale
    above."""
    task = written(tmp_path, agreement("boosted", predictors=8), ONE)
    assert task.inner.records.blocks[0].features.tolist() == [[[-1, -1, 1, 1, -1, -1, 1, 1]]]
    assert np.isfinite(task.gradient(np.array([1]), np.zeros((1, 8)))).all()


@pytest.mark.parametrize(
    ("kind", "text", "changes", "words"),
    [
        ("statistic", ONE, {"kernel": "auc", "columns_": ["age"]}, "agree on task.positives"),
        ("statistic", PATIENTS, {**AUC}, "mine.csv holds 2 points, but one a peer was agreed on"),
        ("statistic", PATIENTS, {**AUC, "points": 2}, "one record a peer, and mine.csv holds 2"),
        ("statistic", ONE, {**AUC, "label": None}, "the statistic auc needs a label"),
        ("statistic", ONE, {**AUC, "positives": 4}, "4 of 4 peers hold the second class"),
        ("statistic", ONE, {"kernel": "gini", "columns_": ["age"]}, "leave label and classes out"),
        ("statistic", ONE, {"kernel": "gini", "label": None}, "say of which columns"),
        (
            "statistic",
            ONE,
            {"kernel": "gini", "label": None, "classes": (), "columns_": ["age"], "bins": 2},
            "outside the declared domain",
        ),
        ("statistic", ONE, {"kernel": "ginny", "label": None}, "did you mean 'gini'"),
        (
            "statistic",
            ONE,
            {"kernel": "kendall", "label": None, "classes": (), "columns_": ["age"]},
            "takes points of 2 numbers, found 1",
        ),
        ("pairwise", PATIENTS, {}, "holds 2 points, but one a peer was agreed on"),
        ("pairwise", ONE, {"bins": 4}, "public part of a whole data set"),
        ("pairwise", ONE, {"label": None}, "pairwise needs a label"),
        ("pairwise", ONE, {"classes": ("no", "maybe")}, "'yes', which is none of the agreed"),
        ("pairwise", ONE, {"loss": "ranking", "classes": ()}, "is to be a number"),
        ("boosted", ONE, {"columns": None}, "agree on task.scales"),
        ("boosted", ONE, {"predictors": 2}, "one stump for each of 2 columns"),
        ("boosted", ONE, {"label": None}, "boosted needs a label"),
        ("personal", ONE, {"label": None}, "logistic needs a label"),
    ],
)
def test_what_cannot_be_prepared(kind, text, changes, words, tmp_path):
    if kind == "statistic":
        changes = {"columns": None, **changes}
    with pytest.raises(ConfigError, match=words):
        written(tmp_path, agreement(kind, **changes), text)


def test_a_kind_that_nobody_can_hold_is_refused_before_a_folder(tmp_path, monkeypatch):
    """`network init` wrote the first folder, and then found that it could not deal such a task."""
    monkeypatch.setattr(StatisticKind, "held", False)
    (tmp_path / "file.toml").write_text(PRIVATE)
    with pytest.raises(ConfigError, match="a statistic task is for simulations"):
        found(str(tmp_path / "file.toml"), 4, None, tmp_path / "net")
    assert not (tmp_path / "net").exists()


PRIVATE = """\
graph = "complete:4"
steps = 6
seed = 3

[task]
kind = "statistic"
kernel = "auc"
data = "breast_cancer"
columns = ["mean radius"]
bins = 4
low = 0
high = 40
split = "sized:1:1"

[algorithm]
name = "gosta-rounds"

[privacy]
mechanism = "randomized-response"
gamma = 0.5
"""


def test_private_gosta_between_real_peers_is_the_simulation(tmp_path):
    """Every peer releases its point once, by randomized response; models and ledgers are those of
    the rehearsed simulation, and the report says what was spent."""
    simulated = build(parse(PRIVATE), PRIVATE).learn(rehearsal=True)
    people, reports = live_together(found_small(tmp_path, PRIVATE, peers=4), rehearse=3)
    real = np.vstack([np.load(one.site.state / "model.npz")["model"] for one in people])
    assert np.array_equal(real, simulated.estimates)
    assert [report["releases"] for report in reports] == [1, 1, 1, 1]
    assert {report["epsilon"] for report in reports} == {reports[0]["epsilon"]}
    assert 0 < float(reports[0]["epsilon"]) < np.inf
    assert reports[0]["metrics"] == {}


@pytest.mark.parametrize(
    ("kind", "algorithm", "task"),
    [
        ("personal", "graph-learning", ""),
        ("boosted", "boosting", "predictors = 60"),
        ("pairwise", "dual-averaging", 'points = 20\nsplit = "sized:20:20"'),
    ],
)
def test_a_demonstration_scores_everybody_on_their_own_records(kind, algorithm, task, tmp_path):
    """Models of one's own have scores of their own: everybody's processes ended well, and then the
    comparison of one model with all peers' records failed."""
    split = "" if "split" in task else 'split = "sized:9:9"'
    (tmp_path / "file.toml").write_text(
        f'graph = "complete:4"\nsteps = 5\n[task]\nkind = "{kind}"\ndata = "breast_cancer"\n'
        f'{task}\n{split}\n[algorithm]\nname = "{algorithm}"\n'
    )
    agreed = plan_demonstration(4, str(tmp_path / "file.toml"))
    scores = _scores(agreed, np.zeros((4, agreed.task.dim)))
    assert scores is not None
    assert len(scores.each) == 4
    assert np.isfinite([*scores.each, scores.together, scores.alone, scores.central]).all()
