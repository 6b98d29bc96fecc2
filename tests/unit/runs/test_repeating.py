"""The same experiment for several seeds, on all cores: every run is the one that `run` gives."""

import numpy as np
import pytest

import bruit as br
from bruit.graphs import ring
from bruit.on.cores import cores
from bruit.runs.many.sweep import sweep, to_table
from bruit.tasks import Logistic, Records

RNG = np.random.default_rng(0)
TASK = Logistic(
    Records.of(RNG.normal(size=(24, 3)), np.sign(RNG.normal(size=24)), np.repeat(np.arange(8), 3))
)
NOISE = br.Gaussian(clip=1.0, sigma=1.0)


@pytest.mark.parametrize("workers", [1, 3, None])
def test_every_run_is_the_one_of_its_seed(workers):
    done = []
    runs = br.repeat(
        br.WalkSGD(),
        "ring:8",
        TASK,
        seeds=[5, 2, 9],
        workers=workers,
        privacy=NOISE,
        steps=200,
        progress=lambda k, n: done.append((k, n)),
    )
    assert done == [(1, 3), (2, 3), (3, 3)]
    for seed, found in zip([5, 2, 9], runs, strict=True):
        alone = br.run(
            br.WalkSGD(),
            ring(8),
            TASK,
            privacy=NOISE,
            steps=200,
            seed=seed,
            evaluate_every=0,
            engine=br.Bulk(fused=True),
        )
        assert np.array_equal(found.estimates, alone.estimates)
        assert found.seed == seed
        assert found.metrics.steps == [200]


def test_other_engines_and_no_seeds():
    runs = br.repeat(
        br.GossipSGD(), ring(8), TASK, seeds=range(2), steps=3, engine=br.Bulk(), evaluate_every=0
    )
    assert not np.array_equal(runs[0].estimates, runs[1].estimates) or runs[0].privacy is None
    assert br.repeat(br.WalkSGD(), ring(8), TASK, seeds=[], steps=3) == ()
    assert cores() >= 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": 3}, "its own seed and no past, found seed"),
        ({"workers": 0}, "at least one run goes at a time, found 0"),
        ({"algorithm": br.GossipSGD()}, "gossip-sgd has no fused path"),
    ],
    ids=str,
)
def test_refusals(options, words):
    given = {"algorithm": br.WalkSGD(), "seeds": range(2), "steps": 5, **options}
    with pytest.raises(br.ConfigError, match=words):
        br.repeat(given.pop("algorithm"), ring(8), TASK, **given)


@pytest.mark.slow
def test_a_sweep_with_two_jobs_has_the_same_rows(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(
        'graph = "ring:5"\nsteps = 3\n[task]\nkind = "mean"\n[algorithm]\nname = "averaging"\n'
        "[privacy]\nsigma = 1.0\n"
    )
    ticks = []
    rows = sweep(
        str(file), ["privacy.sigma=1.0,2.0"], 2, 1e-6, lambda k, n: ticks.append((k, n)), jobs=2
    )
    assert rows == sweep(str(file), ["privacy.sigma=1.0,2.0"], 2, 1e-6)
    assert ticks == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(br.ConfigError, match="there is no algorithm 'nothing'"):
        sweep(str(file), ["algorithm.name=averaging,nothing"], 1, 1e-6, jobs=2)


@pytest.mark.parametrize(
    ("vary", "complaint"),
    [
        (["steps=5", "steps=6"], "steps is varied twice"),
        (["steps=5,6,5"], "names 5 twice"),
        (["privacy.sigma=1,1.0"], "names 1.0 twice"),
    ],
)
def test_a_sweep_counts_nothing_twice_and_leaves_nothing_out(vary, complaint):
    with pytest.raises(br.ConfigError, match=complaint):
        sweep("breast-cancer", vary, 1, 1e-6)


def test_a_sweep_without_noise_says_so_instead_of_proven_infinities(tmp_path):
    file = tmp_path / "plain.toml"
    file.write_text(
        'graph = "ring:4"\nsteps = 2\n[task]\nkind = "mean"\n[algorithm]\nname = "averaging"\n'
    )
    rows = sweep(str(file), [], 2, 1e-6)
    table = to_table(rows)
    assert table.caption == "no noise: everything a peer sends can be read; nothing is protected"
    assert not any(str(column.header).startswith("epsilon") for column in table.columns)
    assert {row["status"] for row in rows} == {"no noise"}
