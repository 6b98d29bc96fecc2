"""Noise by how many records a peer holds, as files and real peers name it: measured for each answer,
compared with one's own records, sized for an epsilon that holds for all releases together."""

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError, PrivacyError
from bruit.personal import gradient_noise, model_noise
from bruit.randomness import Replay
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.testing import task_for

TASK = task_for(br.PrivateDescent(), 4)  # four records of unit length each, logistic, ridge 1


def noise(**options):
    given = {"records": TASK.sizes.tolist(), "lipschitz": 1.0, "ridge": 1.0, **options}
    return br.NoiseBySize(TASK.dim, noise_multiplier=2.0, **given)


def test_every_answer_has_the_noise_that_was_measured_for_it():
    """The same numbers as noise that a simulation measures on the task itself, and no less."""
    found = noise()
    for mine, true in (
        (found.measured_for("gradient"), gradient_noise(TASK)),
        (found.measured_for("model"), model_noise(TASK)),
    ):
        ratio = np.array(mine.sensitivities) / np.array(true.sensitivities)
        assert np.all((ratio >= 1) & (ratio < 1.002))
        assert (mine.law, mine.noise_multiplier) == ("euclidean", 2.0)
    assert found.measured_for("loss") is None
    assert noise(ridge=None).measured_for("model") is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"records": [5, 4, 4, 4]}, "gradient of peer 0 by .*: fewer records"),
        ({"lipschitz": 0.9}, "gradient of peer 0 by .*: fewer records"),
        ({"ridge": 1.1}, "model of peer 0 by .*: fewer records"),
    ],
)
def test_noise_that_is_too_little_for_these_records_is_refused(options, said):
    with pytest.raises(PrivacyError, match=said):
        noise(**options).compared(TASK)


def test_more_records_than_were_agreed_on_are_hidden_by_more_noise_than_they_need():
    told = noise(records=[2, 3, 4, 4], lipschitz=1.5, ridge=0.5).compared(TASK)
    assert any("at least as many records" in one.text and one.checked for one in told)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"records": []}, "give privacy.records"),
        ({"records": [4, 0, 4, 4]}, "peer 1 is to hold 0 records"),
        ({"records": [4.5, 4, 4, 4]}, "records are whole numbers, one for each peer, found"),
        ({"records": [4, 10**9, 4, 4]}, "from 4 to 1000000000: .* say less for those who hold"),
        ({"records": [10**400] * 4}, "up to 1099511627776 records"),
        ({"lipschitz": 0.0}, "give privacy.lipschitz"),
        ({"lipschitz": float("nan")}, "give privacy.lipschitz"),
        ({"ridge": -1.0}, "ridge must be a positive number"),
        ({"law": "laplace"}, "law of noise by size is"),
        ({"level": "user"}, "its level is 'record'"),
    ],
)
def test_what_is_no_noise_by_size_is_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        noise(**options)


TEXT = """\
graph = "complete:4"
steps = 24
[task]
kind = "personal"
data = "iris"
model = "softmax"
[algorithm]
name = "private-descent"
smoothness = 1.5
updates = 3
growth = 1.5
warm = 2
[privacy]
mechanism = "noise-by-size"
level = "record"
ridge = 1.0
epsilon = 5.0
"""


@pytest.mark.parametrize("law", ["euclidean", "gaussian"])
def test_a_file_names_it_and_all_releases_together_cost_what_was_asked(law):
    """Pure releases add up to the epsilon exactly; later updates cost more than earlier ones."""
    text = TEXT.replace("epsilon", f'law = "{law}"\nepsilon')
    made = build(parse(text))
    run = made.learn()
    first = made.privacy.noise_multiplier
    costs = np.array([event.noise_multiplier for event in run.ledger.events])
    for peer in run.ledger.counts():  # a model, and three updates
        found = np.sort(np.repeat(costs, peer))[::-1]
        assert found == pytest.approx(first / np.array([1, 1, 1.5, 1.5**2]))
    spent = run.epsilon(delta=1e-6)
    assert spent <= 5.0
    assert spent > (4.999 if law == "euclidean" else 4.5)  # so many whole Gaussian releases
    assert spent.guarantee.level == "record"


def test_what_it_says_nothing_of_is_refused_before_the_run():
    for name in ("model-propagation", "gossip-sgd"):
        build(
            parse(
                TEXT.partition("[algorithm]")[0]
                + f'[algorithm]\nname = "{name}"\n'
                + "[privacy]"
                + TEXT.partition("[privacy]")[2]
            )
        )
    only_gradients = TEXT.replace("ridge = 1.0\n", "")
    with pytest.raises(PrivacyError, match="says nothing of values"):
        build(parse(only_gradients))


@pytest.mark.parametrize("law", ["euclidean", "gaussian"])
def test_numbers_of_records_that_are_let_in_are_served_by_one_grid(law):
    """Numbers further apart had been refused by the sampler, in the middle of the first release."""
    found = noise(records=[2**14, 1, 1, 1], law=law)
    rows = found.release(np.zeros((2, TASK.dim)), Replay(0), np.array([0, 1]), np.zeros(2, int), 0)
    assert np.all(np.isfinite(rows))
