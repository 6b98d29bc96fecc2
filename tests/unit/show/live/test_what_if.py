"""What-if answers: exact losses and computable peers against the accountant and the attack, errors
against runs."""

import json
import math

import numpy as np
import pytest

import bruit as br
from bruit.errors import ConfigError, PrivacyError
from bruit.privacy.toolbox.gaussian import epsilon_of
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.runs.run import rehearse
from bruit.show.live import what_if
from bruit.show.live.what_if import FAMILIES, WhatIf, answer, experiment, predicted_error


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("peers", [4, 37])
def test_every_family_answers_in_plain_data(family, peers):
    found = answer(WhatIf(family=family, peers=peers, steps=4, observers=(0, 2)))
    assert found["peers"] <= max(peers, 9)
    assert len(found["losses"]) == found["peers"] == len(found["places"])
    json.dumps(found, allow_nan=False)


def test_losses_are_those_of_the_accountant():
    asked = WhatIf(family="torus", peers=16, steps=3, noise=2.0, observers=(5,))
    found = answer(asked)
    noise = br.Gaussian(clip=0.5, sigma=2.0)
    run = br.run(
        br.Averaging(), "torus:4x4", br.tasks.Mean.uniform(16, seed=0), privacy=noise, steps=3
    )
    for u in (0, 4, 15):
        assert (
            0 <= found["epsilons"][u] - float(run.epsilon(of=u, seen_by=5)) <= 1e-6
        )  # R is rounded up
    assert found["losses"][5] is None


@pytest.mark.parametrize("noise", [0.01, 0.7, 100.0])
@pytest.mark.parametrize("accelerated", [False, True])
def test_no_epsilon_is_below_that_of_the_run(noise, accelerated):
    """R was that of noise 1; with little noise values weigh more, and accelerated gossip rounds
    more."""
    found = answer(
        WhatIf(
            family="ring", peers=9, steps=6, noise=noise, observers=(0,), accelerated=accelerated
        )
    )
    algorithm = br.Chebyshev() if accelerated else br.Averaging()
    run = rehearse(algorithm, br.graphs.ring(9), br.Gaussian(clip=0.5, sigma=noise), 6)
    exact = run.accountant().learned(0)
    told = np.array([np.nan if value is None else value for value in found["epsilons"]])
    known = np.isfinite(exact)
    known[0] = False
    assert np.all(told[known] >= exact[known])


def test_computable_peers_are_those_with_loss_one():
    # gossip:REC-1, MUF-2: on a path of 4, peer 0 knows 1 and 2 after two rounds
    found = answer(WhatIf(family="path", peers=4, steps=2, observers=(0,)))
    assert found["computable"] == [1, 2]
    assert [round(x, 9) for x in found["losses"][1:]] == [1.0, 1.0, 0.0]
    assert found["epsilons"][1] == pytest.approx(epsilon_of(1.0, 1e-6))


def test_distances_and_no_noise():
    found = answer(WhatIf(family="ring", peers=8, steps=1, noise=0.0, observers=(0,)))
    assert [(row["distance"], row["worst"], row["epsilon"]) for row in found["by_distance"]] == [
        (1, 1.0, None),
        (2, 0.0, 0.0),
        (3, 0.0, 0.0),
        (4, 0.0, 0.0),
    ]
    assert "There is no noise" in found["sentence"]
    assert answer(WhatIf(family="ring", peers=8, steps=0))["computable"] == []
    assert (
        "nobody left"
        in answer(WhatIf(family="ring", peers=4, steps=1, observers=(0, 1, 2, 3)))["sentence"]
    )


@pytest.mark.parametrize("accelerated", [False, True])
def test_the_error_is_that_of_many_runs(accelerated):
    # 4000 columns are 4000 runs of noise on values at 0 (the worst values add spread |P - J|^2); 6
    # standard errors
    asked = WhatIf(family="ring", peers=12, steps=6, noise=0.7, accelerated=accelerated)
    graph = asked.graph()
    algorithm = br.Chebyshev() if accelerated else br.Averaging()
    run = br.run(
        algorithm,
        graph,
        br.tasks.Mean(np.zeros((12, 4000))),
        steps=6,
        evaluate_every=0,
        privacy=br.Gaussian(clip=0.5, sigma=0.7),
    )
    power = math.sqrt(float((run.estimates**2).mean()))
    exact = predicted_error(graph, asked)
    values = WhatIf(family="ring", peers=12, steps=6, noise=0.0, accelerated=accelerated)
    noise_part = math.sqrt(exact**2 - predicted_error(graph, values) ** 2)
    assert noise_part == pytest.approx(power, rel=6 / math.sqrt(4000))


def test_more_rounds_bring_the_error_down_to_the_noise_of_the_mean():
    graph = WhatIf(family="complete", peers=9).graph()
    assert predicted_error(
        graph, WhatIf(family="complete", peers=9, steps=1, noise=3.0)
    ) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"peers": 3}, ConfigError, "4 to 256 peers"),
        ({"peers": 999}, ConfigError, "bruit plan"),
        ({"steps": -1}, ConfigError, "up to 50 rounds"),
        ({"noise": -1.0}, ConfigError, ">= 0"),
        ({"noise": math.nan}, ConfigError, ">= 0"),
        ({"delta": 0.0}, PrivacyError, "delta must lie"),
        ({"family": "moebius"}, ConfigError, "no family 'moebius'"),
    ],
)
def test_bad_questions(asked, error, words):
    with pytest.raises(error, match=words):
        answer(WhatIf(**asked))


def test_an_observer_that_is_not_there_is_left_out():
    assert answer(WhatIf(family="ring", peers=8, observers=(99, 3)))["observers"] == [3]


@pytest.mark.parametrize(("steps", "noise"), [(2, 1.0), (4, 3.0), (6, 0.5)])
def test_a_butterfly_is_answered_as_it_runs(steps, noise):
    """Epsilons are those of a rehearsal of the same rounds; after all digits the mean is exact but
    for noise."""
    told = answer(WhatIf(family="butterfly", peers=16, steps=steps, noise=noise, observers=(3,)))
    done = rehearse(
        br.Averaging(), br.graphs.butterfly(16), br.Gaussian(clip=0.5, sigma=noise), steps
    )
    others = [v for v in range(16) if v != 3]
    assert [told["epsilons"][v] for v in others] == pytest.approx(
        done.accountant().learned(3, 1e-6)[others].tolist()
    )
    if steps >= 4:
        assert told["error"] == pytest.approx(noise / 4)  # sigma / sqrt(16)
    assert len(told["picture"]["stages"]["links"]) == min(steps, 4)
    assert told["changing"]


@pytest.mark.parametrize(
    "asked",
    [
        WhatIf(),
        WhatIf(family="butterfly", peers=16, steps=4, noise=2.0),
        WhatIf(family="ring", peers=8, steps=3, noise=0.0),
        WhatIf(family="torus", peers=16, steps=5, noise=2.0, accelerated=True),
    ],
)
def test_a_question_becomes_an_experiment_with_the_same_epsilons(asked):
    text = experiment(asked)
    built = build(parse(text), text, "what-if.toml")
    assert built.graph.name == asked.graph().name
    done, told = built.run(), answer(asked)
    if not asked.noise:
        assert done.privacy is None
        return
    seen = done.accountant().learned(0, asked.delta)
    assert [one for one in told["epsilons"] if one is not None] == pytest.approx(
        seen[1:].tolist(), rel=1e-6
    )


def test_a_question_passes_the_checks_of_every_run(monkeypatch):
    """The page made graph, algorithm and noise by itself, past the one entrance."""

    def refuse(graph):
        raise ConfigError(f"nobody runs on {graph.name}")

    monkeypatch.setattr("bruit.runs.build.check_graph", refuse)
    what_if._built.cache_clear()
    with pytest.raises(ConfigError, match="nobody runs on ring:11"):
        answer(WhatIf(family="ring", peers=11, steps=2))


@pytest.mark.parametrize("noise", [0.1, 1 / 3, 2.0])
def test_the_file_has_the_noise_that_was_asked_for_to_the_last_bit(noise):
    asked = WhatIf(family="ring", peers=8, steps=2, noise=noise)
    assert build(parse(experiment(asked))).privacy == br.Gaussian(clip=0.5, sigma=noise)


def test_record_level_is_refused_in_one_sentence():
    """The page averages one value of each peer: no number at user level stands in for records."""
    with pytest.raises(PrivacyError, match="no records in it to protect one by one"):
        WhatIf(level="record")
    with pytest.raises(ConfigError, match="level is 'user' or 'record', found 'row'"):
        WhatIf(level="row")
    assert answer(WhatIf(peers=9))["level"] == "user"
