"""Noise is addressed by what it hides: only the identical run repeats it; statements that share it
do not compose."""

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import bruit as br
from bruit.digests import digest
from bruit.graphs import given, path, ring
from bruit.privacy.guarantee import together
from bruit.privacy.noise_source import NoiseSource
from bruit.runs.result import load
from bruit.sklearn import GossipRegressor
from bruit.tasks import Mean

NOISE = br.Gaussian(clip=3.0, sigma=1.0)
VALUES = np.random.default_rng(4).uniform(-1, 1, (6, 2))


def simple(values=VALUES, algorithm=None, graph="ring:6", privacy=NOISE, steps=2, **options):
    return br.run(
        algorithm or br.GossipSGD(),
        graph,
        Mean(values),
        privacy=privacy,
        steps=steps,
        evaluate_every=0,
        **options,
    )


def drawn(run, values=VALUES):
    """Numbers from the dice behind the door of a run."""
    return run.dice(Mean(values)).normal("noise", np.arange(6), 0, 0, 4, run.phase)


def nudged():
    values = VALUES.copy()
    values[5, 1] = np.nextafter(values[5, 1], 1.0)
    return values


def test_only_the_identical_run_repeats_its_noise():
    """One bit of one record, the algorithm, the mechanism, the graph, the level, the steps, the
    seed, what came before: before, all of these runs of seed 0 drew the same numbers."""
    base = simple()
    assert np.array_equal(drawn(base), drawn(simple()))
    other = [(simple(nudged()), nudged())] + [
        (run, VALUES)
        for run in (
            simple(algorithm=br.GossipSGD(rate=0.4)),
            simple(algorithm=br.Averaging()),
            simple(graph="path:6"),
            simple(graph=given([ring(6), path(6)])),
            simple(graph=given([ring(6), ring(6)])),
            simple(steps=3),
            simple(privacy=br.Gaussian(clip=3.0, sigma=1.1)),
            simple(privacy=replace(NOISE, level="record")),
            simple(seed=1),
            simple(rehearsal=True),
            simple(after=simple()),
            simple(after=simple(), carry="model"),
            simple(after=simple(nudged()), carry="model"),
        )
    ]
    numbers = [drawn(base), *(drawn(run, values) for run, values in other)]
    assert len(np.unique(np.stack(numbers))) == 15 * 24


def test_two_data_sets_under_the_default_seed_no_longer_differ_by_the_data_alone():
    """Before: the difference of the two releases was the difference of the data, exactly."""
    first, second = (simple(v, br.Averaging(), steps=0).estimates for v in (VALUES, VALUES + 1.0))
    assert np.abs(second - first - 1.0).min() > 1e-3


def test_two_runs_after_the_same_one_share_nothing_of_their_own():
    before = simple()
    one = simple(after=before, carry="nothing", algorithm=br.Averaging(), steps=0)
    two = simple(VALUES + 1.0, after=before, carry="nothing", algorithm=br.Averaging(), steps=0)
    assert np.abs(two.estimates - one.estimates - 1.0).min() > 1e-3


def test_schedules_and_public_draws_follow_the_seed_alone():
    runs = [
        simple(v, br.PairAveraging(), steps=5, privacy=p)
        for v, p in ((VALUES, NOISE), (nudged(), None))
    ]
    assert np.array_equal(runs[0].trace.meetings.time, runs[1].trace.meetings.time)
    walks = [simple(v, br.WalkSGD(), steps=30).trace.meetings.b for v in (VALUES, nudged())]
    assert np.array_equal(*walks)


def test_fits_with_the_same_random_state_on_other_rows_share_no_noise():
    rng = np.random.default_rng(0)
    rows, targets, owners = (
        rng.normal(size=(24, 2)),
        rng.normal(size=24),
        np.repeat(np.arange(6), 4),
    )
    fits = [
        GossipRegressor(steps=1, sigma=1.0, clip=1.0, rate=1.0, random_state=0).fit(
            rows, y, peers=owners
        )
        for y in (targets, -targets, targets)
    ]
    assert np.array_equal(fits[0].peer_coef_, fits[2].peer_coef_)
    assert not fits[0].run_.noise & fits[1].run_.noise
    said = [fit.run_.guarantee() for fit in fits]
    assert float(together(said[:2]).epsilon()) > float(said[0].epsilon())
    with pytest.raises(br.PrivacyError, match="stated twice is one release"):
        together([said[0], said[2]])


def test_tokens_of_one_seed_have_noise_of_their_own():
    runs = br.several_tokens(
        br.WalkSGD(), "complete:6", Mean(VALUES), tokens=3, steps=6, privacy=NOISE, evaluate_every=0
    )
    assert len(runs[-1].noise) == 3
    numbers = np.stack([run.dice(Mean(VALUES)).normal("noise", np.arange(6), 0) for run in runs])
    assert len(np.unique(numbers)) == 18


@pytest.mark.parametrize(
    ("pair", "word"),
    [
        (lambda a: (a, simple()), "the same run stated twice is one release and costs once"),
        (
            lambda a: (a, simple(engine=br.Events(churn=0.3))),
            "under other faults the same noise hides nothing",
        ),
        (lambda a: (a, simple(after=a)), "one goes on from the other and accounts for it already"),
        (
            lambda a: (simple(after=a), simple(nudged(), after=a, carry="model")),
            "both go on from the same run",
        ),
        (
            lambda a: (simple(rehearsal=True), simple(nudged(), rehearsal=True)),
            "may share their noise",
        ),
    ],
)
def test_statements_that_share_noise_do_not_compose(pair, word):
    one, two = pair(simple())
    with pytest.raises(br.PrivacyError, match=word):
        together([one.guarantee(), two.guarantee()])
    with pytest.raises(br.PrivacyError, match=word):
        together([simple(seed=9).guarantee(), one.guarantee(), two.guarantee()])


def test_statements_with_noise_of_their_own_compose_and_say_so():
    parts = [simple(seed=seed).guarantee() for seed in range(2)] + [simple(nudged()).guarantee()]
    whole = together(parts)
    assert whole.noise == frozenset().union(*(part.noise for part in parts))
    assert "checked: the parts rest on different draws of noise" in whole.epsilon().why()
    with pytest.raises(br.PrivacyError, match="accounts for it already"):
        together([whole, parts[1]])
    planned = br.rehearse(br.GossipSGD(), ring(6), NOISE, 2).guarantee()
    assert (
        planned.noise == frozenset()
    )  # a plan speaks of no draws in particular, and may be stated twice
    assert (
        "assumed: the parts draw their noise independently"
        in together([planned, planned]).epsilon().why()
    )


def test_every_statement_about_a_run_names_its_noise():
    run = simple(after=simple())
    for said in (
        run.guarantee(),
        run.guarantee(of=1, seen_by=0),
        run.epsilon(of=1, seen_by=[0, 2]).guarantee,
        run.accountant().guarantee(of=2),
    ):
        assert said.noise == run.noise
        assert len(said.noise) == 2


def test_a_folder_keeps_no_digest_of_the_records(tmp_path):
    """What may be known of a run is enough to refuse; whether the records were the same nobody can
    tell."""
    first, second = simple(), simple(nudged())
    folders = [run.save(tmp_path / f"{number}.run") for number, run in enumerate((first, second))]
    (source,) = first.noise
    for folder in folders:
        for file in folder.iterdir():
            content = file.read_bytes()
            assert source.hidden not in content
            assert source.hidden.hex().encode() not in content
            assert Mean(VALUES).digest(b"").hex().encode() not in content
    loaded = [load(folder) for folder in folders]
    assert [one.hidden for run in loaded for one in run.noise] == [None, None]
    assert next(iter(loaded[0].noise)).public == source.public
    for pair in (loaded, (first, loaded[1])):
        with pytest.raises(br.PrivacyError, match="from a folder or a rehearsal nobody can tell"):
            together([run.guarantee() for run in pair])
    assert np.array_equal(drawn(loaded[0]), drawn(first))  # who has the records draws it again
    manifest = json.loads((folders[0] / "manifest.json").read_text())
    assert "whoever knows the seed and the records can draw it again" in manifest["noise"]
    assert source.hidden.hex() not in repr(first.guarantee()) + repr(first) + repr(
        first.dice(Mean(VALUES))
    )


def test_sources_that_may_be_the_same():
    known, same, other = (
        NoiseSource("a", "p", b"1"),
        NoiseSource("b", "p", b"1"),
        NoiseSource("c", "p", b"2"),
    )
    assert known.may_share(same)
    assert not known.may_share(other)
    assert known.may_share(NoiseSource("d", "p"))
    assert not known.may_share(NoiseSource("e", "q", b"1"))


@dataclass(frozen=True, eq=False)
class Held:
    rows: np.ndarray
    name: str = ""
    weight: float = 1.0
    by: object = None
    _cache: dict = field(default_factory=dict)


def test_digests_tell_contents_apart_and_know_equal_ones():
    rows = np.arange(6.0)
    base = digest(b"k", Held(rows))
    same = [
        Held(rows.copy()),
        Held(rows, weight=1),
        Held(np.concatenate((rows, rows))[:6]),
        Held(np.stack((rows, rows), axis=1)[:, 0]),
        Held(rows, _cache={1: 2}),
    ]
    assert {digest(b"k", one) for one in same} == {base}
    double, triple = (lambda x: 2 * x), (lambda x: 3 * x)
    other = [
        Held(np.nextafter(rows, 9)),
        Held(rows.reshape(2, 3)),
        Held(-rows),
        Held(rows.astype(np.float32)),
        Held(rows.astype(int)),
        Held(rows, "x"),
        Held(rows, weight=np.inf),
        Held(rows, by=(1, (2, 3))),
        Held(rows, by=((1, 2), 3)),
        Held(rows, by={"a": 1}),
        Held(rows, by={"a": 2}),
        Held(rows, by=double),
        Held(rows, by=triple),
        Held(rows, by=True),
        Held(rows, by="12"),
        Held(rows, by=12),
        Held(rows, by=b"12"),
        Held(rows, by=["1", "2"]),
    ]
    assert (
        len({base, digest(b"j", Held(rows)), *(digest(b"k", one) for one in other)})
        == len(other) + 2
    )
    assert digest(b"k", [1, 2]) == digest(b"k", (1.0, np.int64(2)))  # as a file gives them back
    with pytest.raises(
        br.ConfigError, match=r"a complex has no digest.*give the task a digest\(key\) of its own"
    ):
        digest(b"k", 1j)


@pytest.mark.parametrize(
    "task",
    [
        Mean(VALUES),
        br.tasks.Ridge(br.tasks.Records.of(np.ones((6, 2)), np.arange(6.0), np.arange(6))),
    ],
    ids=lambda task: type(task).__name__,
)
def test_records_changed_in_place_are_other_records(task):
    """A digest is never kept: arrays can be written to."""
    before = task.digest(b"key")
    rows = task.values if isinstance(task, Mean) else task.records.blocks[0].targets
    rows[2] += 1e-9
    after = task.digest(b"key")
    rows[2] -= 1e-9
    assert before != after
