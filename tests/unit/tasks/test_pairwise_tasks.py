"""Tasks about pairs of points: values and gradients against their definitions, files, and what is
refused."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

import bruit as br
from bruit.errors import ConfigError
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.tasks import Pairwise, Statistic
from bruit.tasks.data.points import Points, grid_codebook, middles
from bruit.tasks.pairs import Kernel, auc, peer_statistic, u_statistic
from bruit.tasks.pairs.kernels import gini
from bruit.tasks.pairs.losses import MetricLoss, ScoreLoss, named_loss
from bruit.tasks.pairs.pairwise import public_codebook
from bruit.tasks.pairs.statistic_file import load_statistic


def labeled(n=12, features=3, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, features)), (np.arange(n) % classes).astype(float)


@pytest.mark.parametrize(
    "loss", [ScoreLoss(), ScoreLoss(hinge=True), MetricLoss()], ids=lambda loss: loss.name
)
def test_gradients_are_those_of_the_values(loss):
    """Central differences of the weighted sum over pairs of points, several points a peer."""
    rng = np.random.default_rng(1)
    dim, k = loss.dim(3), 4
    x, y = (
        np.concatenate((rng.normal(size=(k, m, 3)), rng.integers(0, 2, (k, m, 1))), axis=2)
        for m in (2, 3)
    )
    here, there, models = rng.random((k, 2)), rng.random((k, 3)), rng.normal(size=(k, dim))
    found = loss.gradient(models, x, here, y, there)

    def worth(at):
        return np.einsum("ki,kij,kj->k", here, loss.value(at, x, y), there)

    for c in range(dim):
        nudge = np.zeros(dim)
        nudge[c] = 1e-6
        assert found[:, c] == pytest.approx(
            (worth(models + nudge) - worth(models - nudge)) / 2e-6, abs=1e-6
        )


def test_losses_of_two_points():
    """perso:PAIR-7: log(1 + e^(s_v - s_u)) where u is to be above v, else nothing."""
    x, y = np.array([[[1.0, 0.0, 1.0]]]), np.array([[[0.0, 2.0, -1.0]]])
    model = np.array([[0.5, 0.25]])
    assert ScoreLoss().value(model, x, y)[0, 0, 0] == pytest.approx(np.log(2))
    assert ScoreLoss().value(model, y, x)[0, 0, 0] == 0
    assert ScoreLoss(hinge=True).value(model, x, y)[0, 0, 0] == pytest.approx(0.5)
    farther = y + np.array([[[0.0, 2.0, 0.0]]])  # scores 2 and 4
    assert ScoreLoss(hinge=True).value(4 * model, x, farther)[0, 0, 0] == pytest.approx(0.5 + 2)
    assert MetricLoss().value(np.eye(2).reshape(1, 4), x, y)[0, 0, 0] == pytest.approx(
        np.log(1 + np.exp(-4))
    )


def test_lipschitz_constants_hold():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(200, 2, 1, 3))
    rows /= np.linalg.norm(rows, axis=3, keepdims=True)
    label = np.broadcast_to(rng.integers(0, 2, (200, 2, 1, 1)), (200, 2, 1, 1))
    x, y = np.concatenate((rows, label), axis=3).swapaxes(0, 1)
    one = np.ones((200, 1))
    for loss in (ScoreLoss(), ScoreLoss(hinge=True), MetricLoss()):
        slopes = loss.gradient(3 * rng.normal(size=(200, loss.dim(3))), x, one, y, one)
        assert np.linalg.norm(slopes, axis=1).max() <= loss.lipschitz(1.0) + 1e-12


def test_scores_against_scikit_learn():
    features, labels = labeled(40)
    task = Pairwise.of(features, labels)
    models = np.random.default_rng(3).normal(size=(5, 3))
    wanted = [roc_auc_score(labels, features @ model) for model in models]
    assert task.evaluate(models)["auc"] == pytest.approx(np.mean(wanted))
    assert task.evaluate(models)["worst"] == pytest.approx(min(wanted))
    graded = Pairwise.of(features[:, :1], np.round(features[:, 0]), "ranking")
    assert graded.evaluate(np.ones((2, 1)))["auc"] == pytest.approx(1.0)
    assert graded.evaluate(-np.ones((2, 1)))["auc"] == pytest.approx(0.0)


def test_several_points_a_peer_are_averaged():
    """perso:PAIR-1: by peers as `peer_statistic` counts, whatever the order of the rows."""
    rng = np.random.default_rng(4)
    values, owners = rng.normal(size=11), rng.permutation(np.arange(11) % 4)
    task = Statistic.of(values, "gini", owners)
    shown = task.value(np.arange(4))
    pairs = [(u, v) for u in range(4) for v in range(u)]
    total = sum(task.pair_value(shown[[u]], shown[[v]], 0.0)[0, 0] for u, v in pairs)
    assert total / len(pairs) == pytest.approx(peer_statistic(values, owners, gini()))
    assert task.truth == pytest.approx(total / len(pairs))
    learner = Pairwise.of(rng.normal(size=(11, 2)), np.arange(11) % 2, owners=owners)
    assert learner.objective(np.zeros((1, 2)))[0] > 0
    assert learner.width == 3 * (3 + 1)


def test_an_auc_is_scaled_by_public_counts():
    """perso:PAIR-1: AUC = n (n - 1) U / (2 n+ n-)."""
    rng = np.random.default_rng(5)
    scores, labels = rng.normal(size=50), (rng.random(50) < 0.3).astype(float)
    scores = np.round(scores, 1)
    task = Statistic.auc(scores, labels)
    assert task.truth == pytest.approx(roc_auc_score(labels, scores))
    assert Statistic.auc(scores, labels, ties="zero").truth == pytest.approx(
        auc(scores, labels, "zero")
    )
    shown, pairs = (
        task.value(np.arange(50)),
        np.array([(u, v) for u in range(50) for v in range(u)]).T,
    )
    assert task.pair_value(shown[pairs[0]], shown[pairs[1]], 0.0).mean() == pytest.approx(
        task.truth
    )
    assert "positives and negatives" in str(task.describe()["public"])


def test_a_kernel_of_ones_own():
    middle = Kernel("middle", lambda x, y: np.minimum(x, y)[..., 0], low=0.0, high=1.0)
    values = np.random.default_rng(6).random(9)
    assert Statistic.of(values, middle).truth == pytest.approx(u_statistic(values, middle))


def test_points_name_the_nearest_codeword():
    book = grid_codebook(middles(3, 0, 1), [0, 1])
    coded = Points.of(np.array([[0.1, 1], [0.9, 0], [0.4, 1]])).coded(book, 1)
    assert book[coded.codes()].tolist() == [[1 / 6, 1], [5 / 6, 0], [0.5, 1]]
    assert coded.show(np.array([1]))[0].tolist() == [0, 0, 0, 0, 1, 0]


def test_a_public_codebook_has_points_of_every_label():
    features, labels = labeled(60)
    book = public_codebook(np.column_stack((features, labels)), 6)
    assert sorted(book[:, -1]) == [0, 0, 0, 1, 1, 1]
    with pytest.raises(ConfigError, match="a codebook of 3 points is too small for 2 labels"):
        public_codebook(np.column_stack((features, labels)), 3)


NAMES = "income,age,kind,village\n"
CSV = NAMES + "".join(f"{i * 0.1:.1f},{20 + i},{'ab'[i % 2]},v{i % 4}\n" for i in range(10))


def test_statistics_of_files(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(CSV)
    file, incomes = str(path), np.arange(10) / 10
    assert load_statistic(file, "gini", ["income"], 10).truth == pytest.approx(
        u_statistic(incomes, gini())
    )
    owned = load_statistic(file, "gini", ["income"], 4, "owner", owner="village")
    assert owned.truth == pytest.approx(peer_statistic(incomes, np.arange(10) % 4, gini()))
    ranked = load_statistic(file, "auc", ["income"], 10, label="kind")
    assert ranked.truth == pytest.approx(roc_auc_score(np.arange(10) % 2, incomes))
    coded = load_statistic(file, "kendall", ["income", "income"], 10, bins=3)
    assert coded.width == 9
    known = load_statistic("breast_cancer", "auc", ["mean smoothness"], 100, "sized:1:1")
    assert known.peers == 100
    data = load_breast_cancer()
    whole = load_statistic("breast_cancer", "auc", ["mean smoothness"], 569)
    assert whole.truth == pytest.approx(
        roc_auc_score(data.target == data.target.max(), data.data[:, 4])
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "ginni"}, "no kernel 'ginni'; did you mean 'gini'"),
        ({"columns": []}, "say of which columns"),
        ({"columns": ["incom"]}, "no column 'incom'"),
        ({"columns": ["kind"]}, "'kind' holds text"),
        ({"kernel": "auc"}, "does not say which column is the label"),
        ({"kernel": "auc", "label": "village"}, "compares two classes, but the label has 4 values"),
        ({"kernel": "auc", "label": "kind", "peers": 5}, "one record a peer, found 2 for some"),
        ({"kernel": "kendall"}, "takes points of 2 numbers, found 1"),
        (
            {"columns": ["age"], "bins": 4},
            r"record \d+ has 2\d in column 0, outside the declared domain \[0, 1\]",
        ),
        ({"bins": 20_000}, "20000 values, more than 10000"),
        ({"bins": 4, "peers": 4}, "some own 3 points"),
        ({"bins": 2, "low": 1.0}, "between low < high|outside the declared domain"),
    ],
)
def test_bad_files_are_refused(tmp_path, options, message):
    path = tmp_path / "people.csv"
    path.write_text(CSV)
    asked = {"kernel": "gini", "columns": ["income"], "peers": 10} | options
    with pytest.raises(ConfigError, match=message):
        load_statistic(str(path), **asked)


def test_bad_points_are_refused():
    with pytest.raises(ConfigError, match="not symmetric"):
        Statistic.of(np.arange(4.0), Kernel("first", lambda x, y: x[..., 0] - 0 * y[..., 0]))
    with pytest.raises(ConfigError, match=r"outside its bounds 0\.\.1"):
        Statistic.of(
            np.arange(4.0), Kernel("far", lambda x, y: np.abs(x - y)[..., 0], low=0.0, high=1.0)
        )
    with pytest.raises(ConfigError, match="all 4 users have label 1"):
        Statistic.auc(np.arange(4.0), np.ones(4))
    with pytest.raises(ConfigError, match=r"point 1 is \[nan\]"):
        Statistic.of(np.array([1.0, np.nan]), "gini")
    with pytest.raises(ConfigError, match="at least two peers, found 1"):
        Statistic.of(np.arange(3.0), "gini", np.zeros(3, np.int64))
    with pytest.raises(ConfigError, match="without gaps"):
        Statistic.of(np.arange(3.0), "gini", np.array([0, 2, 2]))
    with pytest.raises(ConfigError, match=r"at least two points of 1 numbers, found \(1, 1\)"):
        Statistic.of(np.arange(3.0), "gini", codebook=np.ones((1, 1)))
    with pytest.raises(ConfigError, match=r"no point of the codebook has the last numbers \[1.0\]"):
        Statistic.auc(np.arange(4.0), np.array([0, 1, 0, 1]), np.array([[0.0, 0], [1, 0]])).value(
            np.arange(4)
        )


def test_bad_labels_are_refused():
    features, _ = labeled(6)
    with pytest.raises(ConfigError, match="all 6 points have label 1; pairs need two classes"):
        Pairwise.of(features, np.ones(6))
    with pytest.raises(ConfigError, match="for two classes, found 3 labels; use the loss ranking"):
        Pairwise.of(features, np.arange(6) % 3)
    with pytest.raises(ConfigError, match="several classes"):
        Pairwise.of(features, np.ones(6), "metric")
    with pytest.raises(ConfigError, match="no loss of pairs 'auuc'"):
        named_loss("auuc")
    with pytest.raises(ConfigError, match="hold out some of them"):
        Pairwise.load("iris", "metric", 100, test=0.0, standardize="none", bins=6)
    pairs = Pairwise.of(features, np.arange(6) % 2)
    with pytest.raises(ConfigError, match="no gradient of one peer"):
        pairs.gradient(np.arange(6), np.zeros((6, pairs.dim)))
    with pytest.raises(ConfigError, match="gradients, which a pairwise task does not answer"):
        br.run(br.GossipSGD(), "ring:6", pairs, steps=1)


FILE = """\
graph = "complete:30"
steps = 20

[task]
kind = "statistic"
data = "breast_cancer"
kernel = "auc"
columns = ["mean smoothness"]
split = "sized:1:1"

[algorithm]
name = "gosta"
"""
RESPONSE = '\n[privacy]\nmechanism = "randomized-response"\nepsilon = 2.0\n'


def test_experiment_files():
    made = build(parse(FILE), FILE).run()
    assert made.metrics.last("mse") < 0.1
    text = (
        FILE.replace('split = "sized:1:1"', 'split = "sized:1:1"\nbins = 3\nhigh = 0.2') + RESPONSE
    )
    private = build(parse(text), text).run()
    assert private.epsilon() == pytest.approx(2.0)
    assert private.privacy.values == 6
    text = (
        'graph = "complete:100"\nsteps = 20\n[task]\nkind = "pairwise"\ndata = "iris"\nloss = '
        '"ranking"\n'
        '[algorithm]\nname = "dual-averaging"\nl1 = 0.001\nrate = 5.0\n'
    )
    assert build(parse(text), text).run().metrics.last("auc") > 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('kernel = "auc"', 'kernel = "auuc"'), "6: there is no kernel 'auuc'; did you mean 'auc'"),
        (
            ('kind = "statistic"', 'kind = "logistic"'),
            "gosta asks peers for a function of two points, which a logistic",
        ),
        (
            ('kind = "statistic"', 'kind = "mean"'),
            "task.columns says nothing about a mean task; leave it out",
        ),
        (
            ('kernel = "auc"', 'loss = "metric"\nkernel = "auc"'),
            "task.loss is of pairwise tasks, found a statistic task",
        ),
        (('data = "breast_cancer"\n', ""), "a statistic task needs data"),
        (
            ('name = "gosta"\n', 'name = "gosta"\n' + RESPONSE),
            "into how many a statistic task is rounded with task.bins",
        ),
    ],
)
def test_bad_experiment_files(change, message):
    text = FILE.replace(*change)
    with pytest.raises(ConfigError, match=message):
        build(parse(text), text, "auc.toml")
