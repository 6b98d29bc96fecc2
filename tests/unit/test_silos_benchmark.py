"""What the tables of silos stand on: splits without overlap, fits that are minima, accuracies that
are counted right."""

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.silos.fitting import fit, fit_intercept
from benchmarks.silos.heart import at_home, trained, without_privacy
from benchmarks.silos.larger import _rows as rows_of_plan
from benchmarks.silos.rows import Rows, split
from benchmarks.silos.tables import measured
from bruit.planning.silos.plan import plan_silos
from bruit.planning.silos.question import SilosQuestion
from bruit.planning.silos.trial import Tried


@pytest.fixture
def rows():
    draws = np.random.default_rng(0)
    features = np.concatenate([draws.normal(size=(90, 3)), np.full((90, 1), 0.3)], axis=1)
    labels = (features[:, 0] + draws.normal(size=90) > 0).astype(float)
    return Rows(features=features, labels=labels, owners=np.repeat([0, 1], [60, 30]))


def test_a_split_deals_every_row_once(rows):
    found = split(rows, 3)
    assert found.features.shape == (3, 60, 4)
    assert np.bincount(found.owners).tolist() == [40, 20]
    assert np.bincount(found.fresh_owners).tolist() == [20, 10]
    for ours, theirs in zip(found.features, found.fresh, strict=True):
        together = np.concatenate([ours, theirs])
        assert sorted(together[:, 0].tolist()) == sorted(rows.features[:, 0].tolist())
    assert not np.array_equal(found.features[0], found.features[1])
    assert np.array_equal(split(rows, 1, first=2).features[0], found.features[2])


def test_a_fit_is_the_minimum(rows):
    center = np.array([0.5, 0.0, 0.0, -1.0])

    def loss(model):
        scores = rows.features @ model
        bits = np.logaddexp(0, scores) - rows.labels * scores
        return bits.sum() + 0.5 * 2.0 * ((model - center) ** 2).sum()

    expected = minimize(loss, center, method="BFGS", options={"gtol": 1e-8}).x
    found = fit(rows.features[None], rows.labels[None], center=center[None], ridge=2.0)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_intercept_alone_gets_the_share_right(rows):
    model = np.array([[1.0, 0.0, 0.0, 0.0]])
    constant = fit_intercept(rows.features[None], rows.labels[None], model, ridge=0.0)
    chances = 1 / (1 + np.exp(-(rows.features @ model[0] + constant)))
    assert chances.sum() == pytest.approx(rows.labels.sum())


def test_a_mean_over_hospitals_is_not_one_over_patients(rows):
    """Everybody gets the answer 1: the share of ones, hospital by hospital."""
    data = split(rows, 4)
    ill = next(row for row in without_privacy(data) if row.what.startswith("everybody is ill"))
    by_hand = [
        np.mean([answers[data.fresh_owners == u].mean() for u in (0, 1)])
        for answers in data.answers
    ]
    assert ill.mean == pytest.approx(np.mean(by_hand))
    assert ill.deviation == pytest.approx(np.std(by_hand, ddof=1))


def test_parts_at_home_are_no_worse_than_a_model_of_noise(rows):
    """On top of a model that is noise, fits at home come near the model alone; by itself it does
    not."""
    data = split(rows, 6)
    noise = np.random.default_rng(1).normal(size=(6, 5, 4))
    told = {"epsilon": 1.0, "adjacency": "replace"}
    found = at_home(data, noise, np.full((6, 5, 2), 0.5), best=0.6, told=told)
    alone = next(row for row in without_privacy(data) if "alone, no privacy, own" in row.what)
    assert found[0].mean < 0.65 < found[-1].mean
    assert found[-1].mean > alone.mean - 0.05


def test_a_run_without_noise_learns(rows):
    setting = Tried(steps=20, clip=1.0, rate=2.0, level=0.0)
    data = split(rows, 2)
    models = trained(data.features, data.labels, setting, 3, np.random.default_rng(0))
    assert models.shape == (2, 3, 4)
    np.testing.assert_array_equal(models[:, 0], models[:, 1])
    assert (models[:, 0, 0] > 0.3).all()


def test_a_masked_run_far_from_the_curator_misses_its_goal():
    plan = plan_silos(SilosQuestion(records=(30, 30, 30), dim=3, epsilon=1.0, steps=1))
    found = {name: np.array([0.8]) for name in ("alone", "local", "curator", "without noise")}
    for masked, held in ((0.796, True), (0.794, False)):
        rows = rows_of_plan(plan, found | {"masked": np.array([masked])})
        assert all(row.held for row in rows) is held


def test_deviations_are_over_splits():
    row = measured("x", np.array([[0.5, 0.7], [0.8, 1.0]]))
    assert row.mean == pytest.approx(0.75)
    assert row.deviation == pytest.approx(np.std([0.6, 0.9], ddof=1))
