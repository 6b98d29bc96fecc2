"""Copies of a protocol as one batch: each is a run of its own, of every algorithm of the catalog;
and their views."""

import inspect
from typing import cast

import numpy as np
import pytest

import bruit as br
from bruit.adversary.audits.scores import learned_score, likelihood_score, shape_of
from bruit.adversary.audits.trials import Views, copied_views, flat_rows, paired_views
from bruit.adversary.audits.watched import WatchedDoor
from bruit.adversary.audits.worlds import Canary, Neighbors, Reacting, worlds
from bruit.algorithms.algorithm import catalog
from bruit.algorithms.door import Door
from bruit.algorithms.gossip.averaging import Averaging
from bruit.algorithms.gossip.chebyshev import Chebyshev
from bruit.algorithms.gossip.gossip_sgd import GossipSGD
from bruit.algorithms.gossip.pair_averaging import PairAveraging
from bruit.algorithms.gossip.renoised import Renoised
from bruit.algorithms.messages import take
from bruit.algorithms.personal.personalized import Personalized
from bruit.algorithms.task_door import TaskDoor
from bruit.algorithms.tokens.token_histogram import TokenHistogram
from bruit.algorithms.tokens.walk_admm import WalkADMM
from bruit.errors import ConfigError
from bruit.graphs import graph, grid
from bruit.mechanisms import Gaussian, RandomizedResponse
from bruit.privacy.exact.rows import user_loss
from bruit.privacy.ledger import Ledger
from bruit.randomness import Replay
from bruit.runs.engines.bulk import Bulk
from bruit.runs.engines.engine import Job
from bruit.runs.engines.events import Events
from bruit.runs.engines.forms import view_forms
from bruit.runs.engines.replay import flat
from bruit.runs.run import run
from bruit.tasks import Mean
from bruit.testing import small_task, suited

NOISE = Gaussian(clip=1.0, sigma=0.5)
CATALOG = [kind() for kind in catalog().values()] + [
    br.WalkSGD(cap=2, rest=3),
    br.Renoised(tau=0.3, flat=2),
    br.GossipSGD(mixing=3, gamma=1.2),
    br.GossipSGD(batch=2),
    br.FederatedADMM(participants=2, noise="server"),
    br.FedAvg(rate=1.0, participants=2),
    br.WalkADMM(l2=0.1),
]


def place_of(algorithm):
    """Eight peers, all neighbors of each other where they must be."""
    return suited(algorithm, grid(2, 4))


def executed(algorithm, data, trace, engine, watch=(0, 2)):
    """What an engine makes of the trace, and the ledger."""
    space, ledger = place_of(algorithm), Ledger(peers=8 * 8)
    door = TaskDoor(task=data, mechanism=NOISE, dice=Replay(4), ledger=ledger)
    return engine.execute(
        Job(
            algorithm=algorithm,
            graph=space,
            door=door,
            dice=Replay(4),
            steps=6,
            ledger=ledger,
            watch=frozenset(watch),
            given=trace,
        )
    ), ledger


@pytest.mark.parametrize(
    "faults", [Events(), Events(latency=0.3, churn=0.15)], ids=["calm", "faults"]
)
@pytest.mark.parametrize("algorithm", CATALOG, ids=repr)
def test_every_copy_is_a_run_of_its_own(algorithm, faults):
    """The whole catalog, with and without dead links and late messages: copy c of a batch is the
    run number c alone, and number 0 is the plain run: states, messages to the watched, ledger
    lines."""
    space = place_of(algorithm)
    data = Canary(small_task(8), 1, Neighbors.opposite(8, 1, 1.0, dim=3))
    trace = run(
        algorithm,
        space,
        small_task(8),
        privacy=NOISE,
        steps=6,
        seed=4,
        engine=faults,
        evaluate_every=0,
    ).trace
    together, ledger = executed(algorithm, data, trace, Bulk(copies=3))
    for copy in range(3):
        alone, lines = executed(algorithm, data, trace, Bulk(first=copy))
        mine = take(together.state, np.arange(8) + 8 * copy)
        np.testing.assert_allclose(flat(mine), flat(alone.state), rtol=0, atol=1e-12)
        assert len(together.trace.received) == len(alone.trace.received) > 0
        for one, other in zip(together.trace.received, alone.trace.received, strict=True):
            assert one[:3] == other[:3]
            np.testing.assert_allclose(
                flat_rows(one.row)[copy], flat_rows(other.row)[0], rtol=0, atol=1e-12
            )
        here = ledger.column("peer") // 8 == copy
        assert np.array_equal(np.sort(ledger.column("peer")[here]), np.sort(lines.column("peer")))
    plain, _ = executed(algorithm, data, trace, Bulk())
    np.testing.assert_allclose(
        flat(take(together.state, np.arange(8))), flat(plain.state), rtol=0, atol=1e-12
    )


def test_the_watched_door_forwards_everything():
    """Every public name that a door has, abstract or concrete, property or method, now or later."""
    inner = TaskDoor(
        task=Mean(np.zeros((3, 2))),
        mechanism=RandomizedResponse(2, 0.3),
        dice=Replay(0),
        ledger=Ledger(peers=3),
    )
    watched = WatchedDoor(inner, 3, 1, (0,))
    names = [name for name, _ in inspect.getmembers(Door) if not name.startswith("_")]
    assert len(names) >= 19
    kept = {
        "value",
        "value_with",
        "gradient",
        "gradient_with",
        "prox",
        "envelope_gradient",
        "descent",
        "noise",
        "copy_noise",
        "pair_noise",
        "value_on",
        "gradient_on",
        "descent_on",
        "noise_on",
        "copy_noise_on",
        "pair_noise_on",
        "masked_gradient",
        "pair_words",
    }
    for name in names:
        assert hasattr(watched, name)
        if name not in kept:
            assert getattr(watched, name) == getattr(inner, name)
    assert kept == {name for name in vars(WatchedDoor) if not name.startswith("_")}
    assert (watched.gamma, watched.dim, watched.sigma) == (0.3, 2, 0.0)


def test_a_histogram_has_its_blanket_in_every_copy():
    """Without gamma the copies would count bare answers: the first holder adds the blanket by
    `home.gamma`."""
    space, noise = graph("ring:4"), RandomizedResponse(3, 0.5)
    data = Neighbors(*[np.eye(3)[[0, 1, 2, 0]]] * 2)
    door, dice = (
        TaskDoor(task=data, mechanism=noise, dice=Replay(4), ledger=Ledger(peers=12)),
        Replay(4),
    )
    trace = (
        Bulk()
        .execute(
            Job(
                algorithm=TokenHistogram(),
                graph=space,
                door=door,
                dice=dice,
                steps=8,
                ledger=Ledger(peers=4),
                watch=frozenset({2}),
            )
        )
        .trace
    )
    seen = copied_views(
        algorithm=TokenHistogram(),
        graph=space,
        door=door,
        steps=8,
        observers=(2,),
        copies=3,
        first=0,
        given=trace,
        seed=4,
    )[0]
    heard = np.stack([flat_rows(message.row)[0] for message in trace.received])
    np.testing.assert_array_equal(seen[len(seen) - len(heard) :], heard)


def test_a_peer_hears_what_is_posted_even_if_it_never_wakes():
    """Wakes: the same messages whatever the engine."""
    task = small_task(8)
    by = {"privacy": NOISE, "steps": 3, "seed": 2, "watch": [3], "evaluate_every": 0}
    heard = [
        run(Personalized(), grid(2, 4), task, engine=engine, **by).view({3}).foreign
        for engine in (Bulk(), Events())
    ]
    rows = [
        sorted((message.sender, *np.round(message.row[0], 9)) for message in side) for side in heard
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 3


FORMS = [
    (Averaging(), "grid:2x3", 4),
    (Averaging(), "butterfly:8", 3),
    (Chebyshev(), "ring:5", 4),
    (Renoised(tau=0.4), "ring:5", 3),
    (GossipSGD(mixing=2), "ring:5", 5),
    (PairAveraging(), "ring:5", 4),
]


@pytest.mark.parametrize(
    ("algorithm", "where", "steps"), FORMS, ids=lambda part: getattr(part, "name", lambda: part)()
)
def test_views_are_the_linear_forms(algorithm, where, steps):
    """Without noise to speak of, Y_right - Y_left is A (s_R - s_L), own rows included
    (gossip:LG-1)."""
    space, observers = graph(where), (0, 2)
    data = Neighbors.opposite(space.n, 1, 1.0)
    quiet = Gaussian(clip=1.0, sigma=1e-9)
    trace = run(algorithm, space, data, privacy=quiet, steps=steps, seed=4, evaluate_every=0).trace
    forms, _ = view_forms(algorithm, space, steps, observers, 4, trace)
    views = next(
        paired_views(
            algorithm=algorithm,
            graph=space,
            mechanism=quiet,
            data=data,
            observers=observers,
            steps=steps,
            trials=3,
            seed=4,
            given=trace,
        )
    )
    shift = (views.right - views.left)[0]
    assert len(shift) == len(forms.A)
    np.testing.assert_allclose(shift, 2.0 * forms.A[:, forms.owner == 1].sum(axis=1), atol=1e-6)


def test_copies_are_independent_and_sides_alternate():
    space, noise = graph("path:3"), Gaussian(clip=1.0, sigma=0.5, arithmetic="ideal")
    data = Neighbors.opposite(3, 2, 1.0)
    views = list(paired_views(Averaging(), space, noise, data, (1,), 1, 5000, 1))
    left, right = (np.concatenate(sides) for sides in zip(*views, strict=True))
    assert left.shape == (5000, 3)  # own value, and one message of each neighbor
    assert left[:, 2].mean() == pytest.approx(-1.0, abs=0.05)
    assert right[:, 2].mean() == pytest.approx(1.0, abs=0.05)
    assert (
        np.abs(np.corrcoef(np.concatenate((left, right), axis=1).T) - np.eye(6)).max() < 0.08
    )  # 5.6 sd
    assert len(np.unique(left)) == left.size


def test_chunks_change_nothing(monkeypatch):
    space, data = graph("ring:5"), Neighbors.opposite(5, 2, 1.0)
    whole = list(paired_views(Renoised(), space, NOISE, data, (0,), 3, 9, 1))
    monkeypatch.setattr("bruit.adversary.audits.trials.NUMBERS", 60)
    parts = list(paired_views(Renoised(), space, NOISE, data, (0,), 3, 9, 1))
    assert len(parts) == 3
    assert len(whole) == 1
    np.testing.assert_array_equal(np.concatenate([part.left for part in parts]), whole[0].left)
    np.testing.assert_array_equal(np.concatenate([part.right for part in parts]), whole[0].right)


def test_neighbors_are_linear_losses():
    data, ids = Neighbors.opposite(3, 1, 2.0, dim=2), np.array([1, 4, 7, 10])
    np.testing.assert_array_equal(data.value(ids)[:, 0], [-2, 2, -2, 2])
    x = np.ones((4, 2))
    np.testing.assert_array_equal(data.gradient(ids, x), data.value(ids))
    np.testing.assert_array_equal(data.prox(ids, x, 0.5), x - 0.5 * data.value(ids))
    assert data.constants().lipschitz == 2.0


def test_likelihood_score_separates_as_the_theorem_says():
    """mean gap / sd of <w, Y> is sqrt(loss) * 2 clip / sigma (gossip:LG-1)."""
    space, data = graph("torus:4x4"), Neighbors.opposite(16, 5, 1.0)
    score = likelihood_score(Averaging(), space, 2, (0,), 5, np.ones(1))
    views = next(
        paired_views(Averaging(), space, Gaussian(clip=1.0, sigma=2.0), data, (0,), 2, 10_000)
    )
    left, right = score.of(views)
    forms, _ = view_forms(Averaging(), space, 2, (0,))
    loss = user_loss(forms.A, forms.B, np.flatnonzero(forms.owner == 5))
    assert loss == pytest.approx(2 / 3)
    measured = (right.mean() - left.mean()) / np.sqrt((left.var() + right.var()) / 2)
    assert measured == pytest.approx(np.sqrt(loss), rel=0.08)  # 4.5 sd


def test_learned_score_finds_noise_that_cancels():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 400, 1))
    sides = [
        np.concatenate((x + noise[k], noise[k], rng.normal(size=(400, 3))), axis=1)
        for k, x in ((0, -1), (1, 1))
    ]
    score = learned_score(Views(sides[0][:200], sides[1][:200]))
    left, right = score.of(Views(sides[0][200:], sides[1][200:]))
    assert right.min() > left.max()


def test_affine_views_are_recognized():
    """And whether the door is asked about models: averaging asks for values once."""
    space = graph("complete:4")
    cases = (
        (WalkADMM(), (True, True, False)),
        (WalkADMM(l1=0.3), (False, True, False)),
        (WalkADMM(bound=0.1), (False, True, False)),
        (Averaging(), (True, False, False)),
    )
    for algorithm, shape in cases:
        trace = run(
            algorithm,
            space,
            Neighbors.opposite(4, 1, 1.0),
            privacy=NOISE,
            steps=12,
            evaluate_every=0,
        ).trace
        assert shape_of(algorithm, space, 12, (0,), trace) == shape


def test_reacting_losses_are_what_they_declare():
    """Huber: the gradient is that of the envelope at its proximal point, k-Lipschitz and at most
    `length` long; the canary pulls with all its length wherever the model is."""
    task = Reacting(Neighbors.opposite(2, 1, 3.0, dim=2), smoothness=0.5, length=4.0)
    ids, x = (
        np.array([0, 0, 0, 1, 3]),
        np.array([[1.0, -2.0], [30.0, 0.0], [0.0, 0.1], [50.0, 9.0], [50.0, 9.0]]),
    )
    for rho in (0.3, 5.0):
        z = task.prox(ids, x, rho)
        np.testing.assert_allclose((x - z) / rho, task.gradient(ids, z), atol=1e-12)
    near = task.gradient(ids, x) - task.gradient(ids, x + 1e-3)
    assert np.linalg.norm(near, axis=1).max() <= 0.5 * np.sqrt(2) * 1e-3 * (1 + 1e-9)
    lengths = np.linalg.norm(task.gradient(ids, x), axis=1)
    assert lengths[3:] == pytest.approx(4.0)
    assert task.gradient(ids, x)[3:, 0] * [1, -1] == pytest.approx(
        4.0, rel=1e-2
    )  # left pulls down, right up


def test_worlds_by_mechanism_and_task():
    """Canaries lie a thousand clips away; of records, the others' answers are the task's own on
    both sides."""
    task = Mean(np.arange(6.0).reshape(3, 2))
    names = [world.name for world in worlds(NOISE, 3, 1, 2, 1.0, task)]
    assert names == ["ends", "reacting", "records"]
    lanes, records = np.arange(6), worlds(NOISE, 3, 1, 2, 1.0, task)[-1].data
    expected = np.tile(task.values, (2, 1))
    expected[[1, 4]] = [[-1000 / np.sqrt(2)] * 2, [1000 / np.sqrt(2)] * 2]
    np.testing.assert_allclose(records.value(lanes), expected)
    kept = records.gradient(lanes, np.ones((6, 2)))[[0, 2, 3, 5]]
    np.testing.assert_allclose(kept, np.tile(1 - task.values[[0, 2]], (2, 1)))
    answers = worlds(RandomizedResponse(4, 0.5), 3, 1, 4, 1.0)
    assert [world.name for world in answers] == ["ends"]
    assert (answers[0].data.value(np.arange(6)).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Neighbors.opposite(3, 7, 1.0), "there is no peer 7 to audit: the peers are 0..2"),
        (lambda: Neighbors(np.zeros((2, 1)), np.zeros((3, 1))), "one shape"),
        (
            lambda: next(
                paired_views(
                    Averaging(),
                    graph("ring:5"),
                    NOISE,
                    Neighbors.opposite(5, 1, 1.0),
                    (0,),
                    1,
                    2**24,
                )
            ),
            "at most 1677720",
        ),
        (lambda: Bulk(copies=0), "1 copy or more"),
        (lambda: Bulk(copies=2, fused=True), "one copy"),
        (
            lambda: run(
                Averaging(), "ring:5", Neighbors.opposite(5, 1, 1.0), steps=1, engine=Bulk(copies=2)
            ),
            "not scored",
        ),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()


def test_reads_that_differ_from_copy_to_copy_are_refused():
    door = WatchedDoor(
        TaskDoor(
            task=Neighbors.opposite(2, 1, 1.0),
            mechanism=NOISE,
            dice=Replay(0),
            ledger=Ledger(peers=4),
        ),
        2,
        2,
        (0,),
    )
    with pytest.raises(ConfigError, match="differ from copy to copy"):
        cast(Door, door).value(
            br.algorithms.door.Address(np.array([0, 1, 3]), *[np.zeros(3, np.int64)] * 2, 0)
        )
