"""Gradients, constants, non-expansiveness and batches of logistic, ridge and softmax tasks."""

import json
from math import inf, isinf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bruit.errors import ConfigError
from bruit.personal.sensitivity import bounded_records
from bruit.tasks import Logistic, Records, Ridge, Softmax
from bruit.tasks.data.split import iid
from bruit.tasks.linear import LinearTask
from bruit.tasks.records import pack
from tests.unit.tasks.task_samples import PEERS, TASKS, make_records, make_task, objective


@pytest.mark.parametrize(("kind", "clip", "l2"), TASKS)
@pytest.mark.parametrize("rows", ["unit", "none"])
def test_gradient_is_the_derivative_of_the_objective(kind, clip, l2, rows):
    task = make_task(kind, clip, l2, rows=rows)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(PEERS, task.dim)) * (1.0 if rows == "unit" else 0.2)
    gradient = task.gradient(np.arange(PEERS), x)
    step = 1e-6
    for peer in range(PEERS):
        ahead = np.array([objective(task, peer, x[peer] + step * e) for e in np.eye(task.dim)])
        behind = np.array([objective(task, peer, x[peer] - step * e) for e in np.eye(task.dim)])
        np.testing.assert_allclose(gradient[peer], (ahead - behind) / (2 * step), atol=2e-6)


def test_losses_agree_with_scikit_learn():
    from sklearn.metrics import log_loss

    rng = np.random.default_rng(2)
    records, features, targets, _ = make_records(Logistic)
    task = Logistic(records)
    x = rng.normal(size=(1, task.dim))
    ready = np.hstack([features, np.ones((40, 1))])
    ready /= np.linalg.norm(ready, axis=1)[:, None]
    chance = 1 / (1 + np.exp(-ready @ x[0]))
    assert task.evaluate(x)["loss"] == pytest.approx(log_loss(targets > 0, chance))
    records, features, targets, _ = make_records(Softmax)
    task = Softmax(records)
    x = rng.normal(size=(1, task.dim))
    ready = np.hstack([features, np.ones((40, 1))])
    ready /= np.linalg.norm(ready, axis=1)[:, None]
    chances = np.exp(ready @ x.reshape(3, -1).T)
    chances /= chances.sum(axis=1)[:, None]
    assert task.evaluate(x)["loss"] == pytest.approx(log_loss(targets, chances))
    assert task.evaluate(x)["accuracy"] == pytest.approx((chances.argmax(axis=1) == targets).mean())


@pytest.mark.parametrize(("kind", "clip", "l2"), TASKS)
def test_one_peer_is_a_row_of_the_batch(kind, clip, l2):
    task = make_task(kind, clip, l2)
    rng = np.random.default_rng(3)
    ids, x = np.arange(PEERS), rng.normal(size=(PEERS, task.dim))
    uniforms = rng.random((PEERS, 4))

    def sampled(asked, models):
        return task.gradient_sampled(asked, models, uniforms[asked])

    for ask in (task.gradient, sampled, lambda asked, models: task.prox(asked, models, 2.0)):
        everyone = ask(ids, x)
        for peer in ids:
            np.testing.assert_allclose(
                ask(ids[peer : peer + 1], x[peer : peer + 1])[0], everyone[peer], atol=1e-9
            )
        order = np.array([4, 0, 3, 3])
        np.testing.assert_allclose(ask(order, x[order]), everyone[order], atol=1e-9)
        assert ask(ids[:0], x[:0]).shape == (0, task.dim)


def test_size_classes_and_chunks_change_nothing(monkeypatch):
    rng = np.random.default_rng(4)
    owners = np.concatenate(
        [np.zeros(900, dtype=np.int64), np.arange(40), np.repeat(np.arange(5), 7)]
    )
    features, targets = rng.normal(size=(len(owners), 3)), rng.choice([-1.0, 1.0], len(owners))
    skewed = Logistic(Records.of(features, targets, owners, rows="unit"), l2=0.1)
    assert len(skewed.records.blocks) > 1
    assert sum(b.features[:, :, 0].size for b in skewed.records.blocks) < 4 * len(owners)
    ids, x = rng.permutation(40), rng.normal(size=(40, 3))
    got, solved = skewed.gradient(ids, x), skewed.prox(ids, x, 0.7)
    uniforms = rng.random((40, 5))
    drawn = skewed.gradient_sampled(ids, x, uniforms)
    ready = features / np.linalg.norm(features, axis=1)[:, None]
    for row, peer in enumerate(ids):
        mine = owners == peer
        slopes = -targets[mine] / (1 + np.exp(targets[mine] * (ready[mine] @ x[row])))
        np.testing.assert_allclose(
            got[row], slopes @ ready[mine] / mine.sum() + 0.1 * x[row], atol=1e-12
        )
        picked = np.floor(uniforms[row] * mine.sum()).astype(int)
        np.testing.assert_allclose(
            drawn[row], slopes[picked] @ ready[mine][picked] / 5 + 0.1 * x[row], atol=1e-12
        )
    monkeypatch.setattr("bruit.tasks.records.CHUNK_NUMBERS", 64)
    np.testing.assert_allclose(skewed.gradient(ids, x), got, atol=1e-14)
    np.testing.assert_allclose(skewed.prox(ids, x, 0.7), solved, atol=1e-9)


@pytest.mark.parametrize(("kind", "clip", "l2"), TASKS)
def test_sampled_gradient_is_unbiased_over_the_records(kind, clip, l2):
    """One uniform in each record's cell gives the full gradient exactly."""
    task = make_task(kind, clip, l2)
    x = np.random.default_rng(5).normal(size=(1, task.dim))
    for peer in range(PEERS):
        size = int(task.records.sizes[peer])
        uniforms = ((np.arange(size) + 0.5) / size)[None]
        ids = np.array([peer])
        np.testing.assert_allclose(
            task.gradient_sampled(ids, x, uniforms), task.gradient(ids, x), atol=1e-12
        )
        assert np.isfinite(
            task.gradient_sampled(ids, x, np.array([[0.0, np.nextafter(1.0, 0.0)]]))
        ).all()


@pytest.mark.parametrize(("kind", "clip", "l2"), TASKS)
def test_declared_constants_are_never_exceeded(kind, clip, l2):
    """walk:F-2, perso:DP-7: brute force over random and extreme models."""
    task = make_task(kind, clip, l2)
    constants = task.constants()
    assert constants.source == "declared"
    assert constants.strong_convexity == l2
    rng = np.random.default_rng(6)
    ids = np.zeros(4000, dtype=np.int64)
    x = rng.normal(size=(4000, task.dim)) * rng.choice([0.1, 1, 10, 100], (4000, 1))
    single = rng.random((4000, 1))
    steep = np.linalg.norm(task.gradient_sampled(ids, x, single) - l2 * x, axis=1)
    assert steep.max() <= constants.lipschitz * (1 + 1e-12)
    other = x + rng.normal(size=x.shape) * rng.choice([1e-3, 1e-1, 1], (4000, 1))
    bend = np.linalg.norm(
        task.gradient_sampled(ids, x, single) - task.gradient_sampled(ids, other, single), axis=1
    )
    apart = np.linalg.norm(x - other, axis=1)
    assert (bend <= constants.smoothness * apart * (1 + 1e-9)).all()
    monotone = ((task.gradient(ids, x) - task.gradient(ids, other)) * (x - other)).sum(axis=1)
    assert (monotone >= constants.strong_convexity * apart**2 - 1e-9).all()


def test_constants_of_unit_rows_are_those_of_the_specification():
    """walk:F-2: logistic with ||x|| <= 1 has L = 1, beta = 1/4, so any gamma <= 8."""
    assert make_task(Logistic, None, 0.0).constants().lipschitz == 1.0
    assert 2 / make_task(Logistic, None, 0.0).constants().smoothness == 8.0
    assert make_task(Logistic, 0.3, 0.0).constants().lipschitz == 0.3
    assert make_task(Logistic, 5.0, 0.0).constants().lipschitz == 1.0
    assert isinf(make_task(Ridge, None, 0.0).constants().lipschitz)
    assert make_task(Ridge, 0.5, 0.25).constants().smoothness == 1.25
    assert make_task(Softmax, None, 0.0).constants().lipschitz == pytest.approx(sqrt(2))


def test_the_declared_bounds_are_tight():
    """A record of norm 1 reaches the curvature 1/4 at score 0, and softmax 1/2 and sqrt(2)."""
    one = Records.of(
        np.array([[0.6, 0.8]]), np.array([1.0]), np.zeros(1, dtype=np.int64), rows="unit"
    )
    ids, step = np.zeros(1, dtype=np.int64), 1e-4 * np.array([[0.6, 0.8]])
    bend = (
        np.linalg.norm(Logistic(one).gradient(ids, step) - Logistic(one).gradient(ids, -step))
        / 2e-4
    )
    assert bend == pytest.approx(0.25, rel=1e-6)
    two = Records.of(
        np.array([[1.0], [1.0]]), np.array([0.0, 1.0]), np.zeros(2, dtype=np.int64), rows="unit"
    )
    far = Softmax(two).gradient_sampled(ids, np.array([[-50.0, 50.0]]), np.array([[0.0]]))
    assert np.linalg.norm(far) == pytest.approx(sqrt(2))


def test_without_row_bound_constants_come_from_the_records():
    task = make_task(Logistic, None, 0.1, rows="none")
    constants = task.constants()
    assert constants.source == "records"
    assert isinf(constants.lipschitz)
    _, features, _, _ = make_records(Logistic, rows="none")
    assert constants.smoothness == pytest.approx(((features**2).sum(axis=1) + 1).max() / 4 + 0.1)


def test_unit_rows_count_the_intercept():
    records, *_ = make_records(Logistic)
    for block in records.blocks:
        norms = np.linalg.norm(block.features, axis=2)[block.weights > 0]
        assert norms.max() <= 1.0
        assert norms.min() > 1 - 1e-12


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    case=st.sampled_from(TASKS),
    share=st.floats(0.01, 1.0),
    spread=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_the_gradient_step_is_non_expansive(seed, case, share, spread):
    """walk:F-2, finding 7: ||T x - T y|| <= ||x - y|| for gamma <= 2 / beta, scalar clipping included."""
    kind, clip, l2 = case
    task = make_task(kind, clip, l2, seed=seed % 50)
    rng = np.random.default_rng(seed)
    gamma = share * 2 / task.constants().smoothness
    ids, x, y = np.arange(PEERS), *(spread * rng.normal(size=(2, PEERS, task.dim)))
    moved = (x - gamma * task.gradient(ids, x)) - (y - gamma * task.gradient(ids, y))
    assert (np.linalg.norm(moved, axis=1) <= np.linalg.norm(x - y, axis=1) * (1 + 1e-9)).all()


def test_clipping_the_averaged_vector_would_be_expansive():
    """walk:finding 7: the same step with the gradient vector clipped after averaging moves some
    pair apart."""
    task = make_task(Ridge, None, 0.0, rows="unit")
    ids, gamma, clip = np.zeros(1, dtype=np.int64), 2.0 / task.constants().smoothness, 0.5
    rng = np.random.default_rng(8)

    def step(x):
        gradient = task.gradient(ids, x)
        return x - gamma * gradient * min(1.0, clip / np.linalg.norm(gradient))

    worst = 0.0
    for _ in range(3000):
        x = rng.normal(size=(1, task.dim)) * 3
        y = x + rng.normal(size=x.shape) * 0.1
        worst = max(worst, float(np.linalg.norm(step(x) - step(y)) / np.linalg.norm(x - y)))
    assert worst > 1.001


def test_value_is_the_model_a_peer_fits_alone():
    task = make_task(Logistic, None, 0.1)
    models = task.value(np.arange(PEERS))
    assert np.abs(task.gradient(np.arange(PEERS), models)).max() < 1e-9
    with pytest.raises(
        ConfigError,
        match=r"needs l2 > 0 to be unique; give l2, or average values with the Mean task",
    ):
        make_task(Logistic, None, 0.0).value(np.arange(PEERS))


def test_evaluate_reports_mean_and_worst_peer():
    records, *_ = make_records(Logistic)
    task = Logistic(records)
    good, zero = task.gradient(np.array([0]), np.zeros((1, task.dim))), np.zeros((1, task.dim))
    models = np.concatenate([-good, zero])
    each = [task.evaluate(models[i : i + 1])["accuracy"] for i in range(2)]
    both = task.evaluate(models)
    assert both["accuracy"] == pytest.approx(sum(each) / 2)
    assert both["worst"] == min(each)
    ridge = make_task(Ridge, None, 0.0)
    rows = np.array([np.zeros(ridge.dim), np.ones(ridge.dim)])
    apart = [ridge.evaluate(rows[i : i + 1])["rmse"] for i in range(2)]
    assert ridge.evaluate(rows)["worst"] == pytest.approx(max(apart))


def test_describe_is_json_and_holds_no_digest_of_private_records():
    """Who may guess at a small table could compare a digest with every guess; two tables of a shape
    look alike."""
    task = make_task(Logistic, 0.3, 0.1)
    facts = json.loads(json.dumps(task.describe()))
    assert facts["task"] == "Logistic"
    assert facts["records"] == 40
    other = make_task(Logistic, 0.3, 0.1, seed=0)
    other.records.blocks[0].targets[:] *= -1
    assert other.describe() == task.describe()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda t: t.gradient(np.arange(2), np.zeros((3, t.dim))),
            r"models are \(3, 5\) for 2 peers; give \(2, 5\)",
        ),
        (
            lambda t: t.gradient(np.array([6]), np.zeros((1, t.dim))),
            r"peer 6 was asked .* but peers are 0..5",
        ),
        (lambda t: t.gradient(np.array([0, -1]), np.zeros((2, t.dim))), r"peer -1 was asked"),
        (
            lambda t: t.prox(np.arange(2), np.zeros((2, t.dim)), 0.0),
            r"rho is 0.0; a proximal step needs a positive",
        ),
        (lambda t: t.prox(np.arange(2), np.zeros((2, t.dim)), inf), r"rho is inf"),
        (
            lambda t: t.gradient_sampled(np.arange(2), np.zeros((2, t.dim)), np.zeros((2, 0))),
            r"uniforms are \(2, 0\)",
        ),
        (
            lambda t: t.evaluate(np.zeros((2, 3))),
            r"models are \(2, 3\); give one row of 5 numbers a peer",
        ),
        (lambda t: Logistic(t.records, l2=-1.0), r"l2 is -1.0; it must be zero or a positive"),
        (
            lambda t: Logistic(t.records, derivative_clip=0.0),
            r"derivative_clip is 0.0; it must be positive",
        ),
        (lambda t: Softmax(t.records), r"has label -1; softmax needs classes 0..1"),
        (
            lambda t: Softmax(make_records(Softmax)[0], derivative_clip=1.0),
            r"softmax has no scalar derivative to clip",
        ),
        (
            lambda t: Logistic(make_records(Softmax)[0]),
            r"has label [02]; logistic regression needs labels -1 and 1",
        ),
    ],
)
def test_bad_questions_are_refused(ask, message):
    with pytest.raises(ConfigError, match=message):
        ask(make_task(Logistic, None, 0.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (np.zeros((3, 2)), np.zeros(2), np.zeros(3, dtype=int)),
            r"features are \(3, 2\) and targets \(2,\)",
        ),
        (
            (np.array([[1.0], [np.nan]]), np.zeros(2), np.array([0, 1])),
            r"no finite number at row 1, column 0",
        ),
        (
            (np.zeros((2, 1)), np.array([0.0, inf]), np.array([0, 1])),
            r"target of row 1 is no finite number",
        ),
        (
            (np.zeros((2, 1)), np.zeros(2), np.array([0, 2])),
            r"peer 1 has no records; number the owners 0..n-1",
        ),
        (
            (np.zeros((2, 1)), np.zeros(2), np.array([0])),
            r"owners are \(1,\), but there are 2 records",
        ),
        (
            (np.zeros((2, 1)), np.zeros(2), np.array([0, 1]), "l2"),
            r"rows='l2' is not known; use 'unit'",
        ),
    ],
)
def test_bad_arrays_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Records.of(*arguments)


def test_a_batch_of_all_peers_copies_no_records():
    rng = np.random.default_rng(9)
    features = rng.normal(size=(80, 3))
    records = pack(features, rng.choice([-1.0, 1.0], 80), iid(np.zeros(80), 8, 0))
    part = next(records.parts(np.arange(8), 3))
    assert np.shares_memory(part.features, records.blocks[0].features)
    assert np.shares_memory(
        next(records.parts(np.array([5]), 3)).features, records.blocks[0].features
    )
    shuffled = next(records.parts(np.array([0, 2, 1, 3]), 3))
    np.testing.assert_array_equal(shuffled.features[1], records.blocks[0].features[2])


def test_linear_task_is_abstract():
    with pytest.raises(TypeError):
        LinearTask(make_records(Logistic)[0])


def test_classes_that_nobody_here_has_can_be_declared():
    """Softmax of records took the classes that occur: with targets 0 and 2, class 2 was refused."""
    features, owners = np.eye(4), np.array([0, 0, 1, 1])
    with pytest.raises(ConfigError, match=r"softmax needs classes 0..1"):
        Softmax(Records.of(features, np.array([0.0, 2, 0, 2]), owners))
    counted = Softmax(Records.of(features, np.array([0, 2, 0, 2]), owners, classes=4))
    assert counted.dim == 16
    assert counted.describe()["classes"] == ["0", "1", "2", "3"]
    named = Softmax(
        Records.of(features, ["walk", "sit", "walk", "sit"], owners, classes=("walk", "run", "sit"))
    )
    placed = Softmax(
        Records.of(features, np.array([0, 2, 0, 2]), owners, classes=("walk", "run", "sit"))
    )
    models = np.random.default_rng(0).normal(size=(2, 12))
    assert np.array_equal(
        named.gradient(np.arange(2), models), placed.gradient(np.arange(2), models)
    )
    assert not any(
        "classes" in fact["fact"]
        for fact in named.describe()["public"]
        if fact["from"] == "private rows"
    )
    bounded = bounded_records(features, np.array([0, 2, 0, 2]), owners, classes=3)
    assert (len(bounded.classes), bounded.row_bound) == (3, 1.0)


def test_more_classes_than_are_counted_must_be_declared():
    """Above 100 different targets the classes were dropped, and softmax said that these records
    have 0."""
    many = np.arange(150)
    with pytest.raises(
        ConfigError, match=r"more than 100 different targets .* declare them: Records.of"
    ):
        Softmax(Records.of(np.eye(150), many, many))
    assert Softmax(Records.of(np.eye(150), many, many, classes=150)).outputs == 150


@pytest.mark.parametrize(
    ("targets", "classes", "message"),
    [
        ([0, 3], 3, "the target of row 1 is 3, which is none of the 3 agreed classes"),
        ([0, 0.5], 3, "the target of row 1 is 0.5"),
        ([0, np.nan], 3, "the target of row 1 is nan"),
        (
            ["walk", "fly"],
            ("walk", "run"),
            r"row 1 is fly, .* are their names \(walk, run\) or their places, 0 to 1",
        ),
        ([0, 0], 1, "at least two different ones, found 0"),
        ([0, 0], ("a", "a"), "found a, a"),
    ],
)
def test_targets_outside_of_the_declared_classes_are_refused(targets, classes, message):
    with pytest.raises(ConfigError, match=message):
        Records.of(np.eye(2), targets, np.array([0, 1]), classes=classes)


@pytest.mark.parametrize("kind", [Logistic, Ridge, Softmax])
def test_equal_models_are_scored_once(kind, monkeypatch):
    """A server tells everybody one model; each of 1000 peers was scored on all records for
    itself."""
    task = make_task(kind, None, 0.1)
    rng = np.random.default_rng(3)
    rows, which = rng.normal(size=(3, task.dim)), np.array([2, 0, 0, 1, 2, 2, 0])
    wanted, scored, measure = task.evaluate(rows[[0]]), [], kind._measure
    monkeypatch.setattr(
        kind,
        "_measure",
        lambda self, scores, targets: scored.append(len(scores)) or measure(self, scores, targets),
    )
    found = task.evaluate(rows[which])
    assert sum(scored) == 3
    single = [task.evaluate(rows[[k]]) for k in which]
    for name in wanted:
        values = [one[name] for one in single]
        least = min(values) if task._higher_is_better() else max(values)
        assert found[name] == pytest.approx(
            least if name == "worst" else np.mean(values), rel=1e-12
        )


def test_distinct_rows_keep_their_order():
    from bruit.tasks.linear import distinct_rows

    rows = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0], [3.0, 1.0]])
    first, back = distinct_rows(rows)
    assert first.tolist() == [0, 1, 3, 4]  # bit for bit: -0.0 is another row
    assert np.array_equal(rows[first][back], rows)
    assert distinct_rows(rows[:1])[1].tolist() == [0]
