"""Parts of a model that stay at home: fitted as their formula says, and in nothing that is sent."""

import json
import stat

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import bruit as br
from bruit.errors import ConfigError
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.tasks import Logistic, Records, Ridge, Softmax
from bruit.tasks.scores.joining import Joining, joining_from
from tests.unit.peers.small_network import found_small, live_together

OWNERS = np.repeat([0, 1, 2], [6, 8, 5])
RNG = np.random.default_rng(5)
X = RNG.normal(size=(19, 2))
Y = np.where(X[:, 0] + OWNERS - 1 + RNG.normal(size=19) > 0, 1.0, -1.0)
EVERYONE = np.arange(3)
SHARED = np.tile([0.7, -0.2, 0.1], (3, 1))


def task(local=("intercept",), kind=Logistic, targets=Y):
    return kind(Records.of(X, targets, OWNERS, intercept=True), local=tuple(local))


def test_an_intercept_is_the_minimum_of_its_formula():
    found = task().at_home(EVERYONE, SHARED)
    assert (found[:, :2] == SHARED[:, :2]).all()
    for peer in range(3):
        mine = peer == OWNERS
        given = X[mine] @ SHARED[0, :2]

        def objective(b, given=given, mine=mine):
            loss = np.logaddexp(0, -Y[mine] * (given + b)).mean()
            return loss + (b - 0.1) ** 2 / (2 * mine.sum())

        assert found[peer, 2] == pytest.approx(minimize_scalar(objective).x, abs=1e-6)


def test_the_constant_of_the_intercept_column_does_not_matter():
    """Scores are the same whether the column holds 1 or 0.3: 0.3 is for step sizes."""
    plain = Records.of(X, Y, OWNERS, intercept=True)
    small = Records.of(np.column_stack((X, np.full(19, 0.3))), Y, OWNERS)
    known = Records.of(X, Y, OWNERS, intercept=True).recipe
    object.__setattr__(small, "_recipe", known)
    one = Logistic(plain, local=("intercept",)).at_home(EVERYONE, SHARED)
    shared = SHARED * [1, 1, 1 / 0.3]
    other = Logistic(small, local=("intercept",)).at_home(EVERYONE, shared)
    assert other[:, 2] * 0.3 == pytest.approx(one[:, 2], abs=1e-6)


def test_a_scale_is_one_factor_of_all_that_is_shared():
    found = task(["scale", "intercept"]).at_home(EVERYONE, SHARED)
    factor = found[:, 0] / SHARED[:, 0]
    assert found[:, 1] == pytest.approx(factor * SHARED[:, 1])
    for peer in range(3):
        mine = peer == OWNERS
        given = X[mine] @ SHARED[0, :2]

        def objective(v, given=given, mine=mine):
            loss = np.logaddexp(0, -Y[mine] * (v[0] * given + v[1])).sum()
            return loss + ((given**2).mean() * (v[0] - 1) ** 2 + (v[1] - 0.1) ** 2) / 2

        exact = minimize(objective, [1.0, 0.1], tol=1e-12).x
        assert [factor[peer], found[peer, 2]] == pytest.approx(exact, abs=1e-5)
    silent = task(["scale"]).at_home(EVERYONE, np.zeros((3, 3)))
    assert (silent == 0).all()  # nothing shared, nothing to scale
    three = Records.of(X, np.arange(19) % 3, OWNERS, intercept=True, classes=3)
    with pytest.raises(ConfigError, match="one number for all that is shared of one score"):
        Softmax(three, local=("scale",))


@pytest.mark.parametrize("kind", [Logistic, Ridge])
def test_a_whole_model_on_top_of_the_shared_one(kind):
    """With everything local it is the regularized fit around the shared model, as prox has it."""
    records = Records.of(X, Y, OWNERS)
    whole = kind(records, local=("all",))
    shared = SHARED[:, :2]
    found = whole.at_home(EVERYONE, shared)
    object.__setattr__(records, "_recipe", None)  # no intercept: nothing has a size of its own
    for peer in range(3):
        exact = whole.prox(np.array([peer]), shared[:1], float((peer == OWNERS).sum()))
        assert found[peer] == pytest.approx(exact[0], abs=1e-5)


def test_features_by_name_and_classes_of_softmax():
    targets = np.arange(19) % 3
    records = Records.of(X, targets, OWNERS, intercept=True, classes=3)
    names = records.recipe.inputs
    found = Softmax(records, local=(names[1],)).at_home(EVERYONE, np.zeros((3, 9)))
    moved = found.reshape(3, 3, 3)
    assert (moved[:, :, [0, 2]] == 0).all()
    assert (moved[:, :, 1] != 0).any()


def test_names_that_are_no_part_of_the_model():
    with pytest.raises(ConfigError, match="local names 'interceptt', which is no part"):
        task(["interceptt"])
    with pytest.raises(ConfigError, match=r"no part of this model.*its parts are"):
        Logistic(Records.of(X, Y, OWNERS), local=("intercept",))
    with pytest.raises(ConfigError, match=r"'all', which is no part.*by itself"):
        task(["all", "intercept"])


def test_one_class_one_record_and_models_astray():
    """A peer that saw one class, or one record, gets a finite intercept; nan stays nan."""
    ones = Logistic(
        Records.of(X[:4], np.ones(4), np.array([0, 1, 1, 1]), intercept=True), local=("intercept",)
    )
    found = ones.at_home(np.arange(2), SHARED[:2])
    assert np.isfinite(found).all()
    assert (found[:, 2] > SHARED[:2, 2]).all()
    astray = np.full((1, 3), np.nan)
    assert np.isnan(task().at_home(np.array([0]), astray)).all()


def swapped_label(m, private):
    """How far one label moves the sum of clipped gradients, at the private or the shared part."""
    x = np.column_stack((np.ones(m), np.full(m, 2 / np.sqrt(m))))
    x[0] = [0.0, 1.0]
    me, unit, sums = np.array([0]), 2.0**20, []
    for label in (1.0, -1.0):
        y = np.where(np.arange(m) % 2, 1.0, -1.0)
        y[0] = label
        records = Records.of(x, y, np.zeros(m, np.int64))
        one = Logistic(records, local=(records.recipe.inputs[1],))
        at = one.at_home(me, np.zeros((1, 2))) if private else np.zeros((1, 2))
        sums.append(one.clipped_sum(me, at, None, 1.0, 1.0, unit) / unit)
    return float(np.linalg.norm(sums[0] - sums[1]))


def test_gradients_at_a_private_part_are_not_free():
    """silo:SILO-6: at the private part one record moves the sum by more than 2C = 2, and by more
    the more records there are; at the shared part by 1."""
    moved = [swapped_label(m, private=True) for m in (64, 256, 1024)]
    assert moved == pytest.approx([1.819, 3.577, 7.125], abs=1e-3)
    assert [swapped_label(m, private=False) for m in (64, 256)] == pytest.approx([1.0, 1.0])


EXPERIMENT = """\
graph = "complete:3"
steps = 3

[task]
kind = "logistic"
data = "breast_cancer"
split = "dirichlet:1"
own_test = 0.3
local = ["intercept"]

[algorithm]
name = "ALGORITHM"
rate = 2.0

[privacy]
level = "record"
clip = 0.5
epsilon = 2.0
delta = 1e-5
"""
MASKED = EXPERIMENT.replace("ALGORITHM", "masked-sgd")


def test_nothing_that_is_sent_or_charged_depends_on_it(tmp_path):
    """The run with and without local parts: same estimates, same ledger, same messages."""
    without = build(parse(MASKED.replace('local = ["intercept"]\n', ""))).run()
    run = build(parse(MASKED)).run()
    assert (run.estimates == without.estimates).all()
    assert run.ledger.calls == without.ledger.calls
    assert run.trace.bytes == without.trace.bytes
    assert without.own_models is None
    assert run.own_models is not None
    assert (run.own_models[:, :-1] == run.estimates[:, :-1]).all()
    assert (run.own_models[:, -1] != run.estimates[:, -1]).all()
    run.save(tmp_path / "a.run")
    again = br.load(tmp_path / "a.run")
    assert (again.own_models == run.own_models).all()
    assert again.joining == run.joining
    for peer in range(3):
        model = again.model_of(peer)
        assert (model.numbers == run.own_models[peer]).all()
        assert model.local == ("intercept",)
        assert not model.privacy["protected"]
        assert any("keep this file at home" in text for text in model.warnings)
        shared = again.model_of(peer, shared=True)
        assert (shared.numbers == run.estimates[peer]).all()
        assert shared.local == ()


def test_a_run_says_for_whom_joining_paid():
    built = build(parse(MASKED))
    run = built.run()
    found = run.joining
    assert found is not None
    assert found.own_part is not None
    assert np.mean(found.alone) == pytest.approx(run.references["alone"])
    assert np.mean(found.together) == pytest.approx(run.metrics.last("accuracy"))
    assert np.mean(found.pooled) == pytest.approx(run.references["central"])
    own = built.task.evaluate(run.own_models)["accuracy"]
    assert found.mean() == pytest.approx(own)
    assert run.verdict().together == pytest.approx(own)
    assert joining_from(json.loads(json.dumps(found.describe()))) == found


def test_on_public_records_where_peers_have_none_of_their_own():
    run = build(parse(MASKED.replace("own_test = 0.3\n", "").replace("local", "# local"))).run()
    found = run.joining
    assert found is not None
    assert not found.own_test
    assert found.own_part is None
    assert found.test_records == (113, 113, 113)
    assert np.mean(found.alone) == pytest.approx(run.references["alone"])
    assert found.together == pytest.approx([run.metrics.last("accuracy")] * 3)
    bare = MASKED.replace("own_test = 0.3\n", 'test = 0.0\nstandardize = "none"\n')
    assert build(parse(bare)).run().joining is None  # nothing to judge models on


def test_the_sentence_and_the_gains_by_hand():
    found = Joining(
        metric="rmse",
        higher=False,
        own_test=True,
        names=("a", "b", "c"),
        records=(4, 5, 6),
        test_records=(2, 2, 2),
        alone=(1.0, 1.0, 1.0),
        together=(0.5, 1.0, 2.0),
        own_part=None,
        pooled=(0.4, 0.4, 0.4),
    )
    assert found.gains == (0.5, 0.0, -1.0)
    assert found.sentence() == "joining paid for a, changed nothing for b, did not pay for c"


REAL = """\
graph = "complete:3"
steps = 4
seed = 3

[task]
kind = "logistic"
data = "breast_cancer"
split = "dirichlet:1"
local = ["intercept"]

[algorithm]
name = "gossip-sgd"
rate = 1.0

[privacy]
sigma = 0.5
"""


def test_real_peers_keep_their_parts_at_home(tmp_path):
    """model.json of each peer has its own intercept; messages, model.npz, report and status are
    those of the run without local parts, to the last bit."""
    seen = {}
    for name, text in (("with", REAL), ("without", REAL.replace('local = ["intercept"]\n', ""))):
        sites = found_small(tmp_path / name, text)
        people, reports = live_together(sites, rehearse=3)
        seen[name] = people, reports
    intercepts = set()
    for peer in range(3):
        (one, other) = (seen[name][0][peer].site.state for name in ("with", "without"))
        model = json.loads((one / "model.json").read_text())
        plain = json.loads((other / "model.json").read_text())
        assert stat.S_IMODE((one / "model.json").stat().st_mode) == 0o600
        assert model["local"] == ["intercept"]
        assert model["coefficients"] == plain["coefficients"]
        assert model["intercept"] != plain["intercept"]
        given = json.loads((one / "shared-model.json").read_text())
        assert given["local"] == []
        assert given["intercept"] == plain["intercept"]
        assert not (other / "shared-model.json").exists()
        intercepts.add(model["intercept"][0])
        shared = np.load(one / "model.npz")["model"]
        assert (shared == np.load(other / "model.npz")["model"]).all()
        told = (one / "report.json").read_text() + (one / "status.json").read_text()
        assert repr(model["intercept"][0]) not in told
        reports = [seen[name][1][peer] for name in ("with", "without")]
        assert [one["releases"] for one in reports] == [4, 4]
        assert reports[0]["metrics"] == reports[1]["metrics"]
    assert len(intercepts) == 3
