"""Tasks of experiment files: which algorithms they go with, and models of one's own from a file."""

import json

import numpy as np
import pytest

from bruit.algorithms.algorithm import catalog
from bruit.algorithms.answerable import answers, asked_by
from bruit.commands.listing import listing
from bruit.errors import BruitError, ConfigError
from bruit.runs import build as building
from bruit.runs import run as experiment
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.runs.replay import replay
from bruit.runs.result import load
from bruit.show import summary as report
from bruit.tasks import Boosted, Logistic, Personal, Ridge, Softmax
from bruit.tasks.data.public import Agreed
from bruit.tasks.kinds.kind import kinds
from bruit.tasks.kinds.section import TaskSection
from bruit.tasks.task import QUESTIONS

SMALL = {
    "mean": "dim = 2",
    "histogram": "dim = 3",
    "ridge": 'data = "diabetes"\nl2 = 0.1',
    "logistic": 'data = "breast_cancer"\nl2 = 0.1',
    "softmax": 'data = "iris"\nl2 = 0.1',
    "statistic": 'data = "iris"\nkernel = "variance"\ncolumns = ["petal width (cm)"]\nsplit = '
    '"sized:1:1"',
    "pairwise": 'data = "iris"\nloss = "ranking"\nsplit = "sized:1:1"',
    "personal": 'data = "breast_cancer"',
    "boosted": 'data = "breast_cancer"\npredictors = 120',
    "torch": 'data = "iris"\nmodule = "mlp:3"',
}
OTHERWISE = {"token-histogram"}  # counts answers, checked apart
PARAMETERS = {"personalized": "smoothness = 5.0"}


def text_of(kind, algorithm, more="", task="", peers=4):
    return (
        f'graph = "complete:{peers}"\nsteps = 8\nreferences = false\n[task]\nkind = '
        f'"{kind}"\n{SMALL[kind]}\n'
        f'{task}\n[algorithm]\nname = "{algorithm}"\n{PARAMETERS.get(algorithm, "")}\n{more}\n'
    )


def made(text):
    return build(parse(text), text, "file.toml")


def test_every_kind_and_every_algorithm_is_in_the_tables():
    """A new one has to say what it asks and answers."""
    assert set(kinds()) == set(answers()) == set(SMALL) == set(listing("tasks"))
    assert {name for name, kind in catalog().items() if kind.asks is None} == OTHERWISE
    assert {kind.asks for kind in catalog().values()} - {None} == QUESTIONS
    fields = set(TaskSection.model_fields) - {"kind"}
    assert fields == set().union(*(kind.keys for kind in kinds().values()))


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("algorithm", sorted(set(catalog()) - OTHERWISE))
def test_the_entrance_refuses_what_would_fail_and_nothing_else(kind, algorithm, monkeypatch):
    text = text_of(kind, algorithm)
    asked = asked_by(catalog()[algorithm]())
    if asked in answers()[kind]:
        made(text).run()
        return
    with pytest.raises(
        ConfigError, match=rf"file.toml:5: {algorithm} asks peers for {asked}, which a {kind} task"
    ):
        made(text)
    if kind == "statistic" and asked in ("a value to average", "models fitted alone"):
        return  # would average the points and score that as if it were the statistic
    monkeypatch.setattr(building, "check_task", lambda algorithm, task: None)
    monkeypatch.setattr(experiment, "check_run", lambda algorithm, task, privacy: None)
    with pytest.raises((BruitError, ValueError)):
        made(text).run()


# models of one's own


@pytest.mark.parametrize(
    "algorithm", ["personalized", "model-propagation", "gossip-admm", "boosting", "gossip-sgd"]
)
@pytest.mark.parametrize("model", ["logistic", "ridge", "softmax"])
def test_personal_tasks_of_files_run(algorithm, model):
    data = {"logistic": "breast_cancer", "ridge": "diabetes", "softmax": "iris"}[model]
    experiment = made(
        text_of("personal", algorithm, task=f'model = "{model}"').replace("breast_cancer", data)
    )
    task = experiment.task
    assert isinstance(task, Personal)
    assert isinstance(
        task.shared, {"logistic": Logistic, "ridge": Ridge, "softmax": Softmax}[model]
    )
    run = experiment.run()
    assert np.isfinite(run.estimates).all()
    assert run.task["task"] == f"Personal {model.capitalize()}"
    assert run.task["judged_on"] == "own test records"
    assert len(run.metrics.rows) > 0


def test_a_peer_is_judged_on_records_of_its_own_that_it_did_not_learn_from():
    whole = made(text_of("personal", "personalized", task="own_test = 0.0")).task
    task = made(text_of("personal", "personalized", task="own_test = 0.3\nridge = 2.0")).task
    assert whole.held_out is None
    assert whole.describe()["judged_on"] == "the records they learn from"
    assert (task.sizes + task.held_out.sizes).tolist() == whole.sizes.tolist()
    assert task.ridge == pytest.approx(2.0 / task.sizes)

    def rows(records, peer):
        part = next(records.parts(np.array([peer]), 1))
        return {tuple(row) for row in part.features[0][part.weights[0] > 0].tolist()}

    for peer in range(task.peers):
        learned, judged = rows(task.shared.records, peer), rows(task.held_out, peer)
        assert len(judged) == round(0.3 * whole.sizes[peer])
        assert not learned & judged
        assert learned | judged == rows(whole.shared.records, peer)
    facts = json.dumps(task.describe()["public"])
    assert "they belong to no peer and judge nobody" in facts
    assert any(
        "are for judging their own models" in line for line in task.describe()["used"]["in_words"]
    )


def test_personal_tasks_by_owner_keep_owners_whole(tmp_path):
    """Owners who differ: alone beats one model for all, and learning from those who are alike beats
    both."""
    rng = np.random.default_rng(0)
    lines = ["a,b,owner,label"]
    for owner in range(10):
        sign = 1 if owner % 2 else -1
        for x, y in rng.normal(size=(12, 2)):
            lines.append(f"{x:.4f},{y:.4f},u{owner},{int(x + sign * y > 0)}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    text = (
        f'graph = "complete:8"\nsteps = 10\n[task]\nkind = "personal"\ndata = '
        f'"{tmp_path}/people.csv"\n'
        'split = "owner"\nown_test = 0.4\n[algorithm]\nname = "personalized"\ncoupling = 0.1\n'
        'confidences = "sizes"\nsmoothness = "declared"\n'
    )
    run = made(text).run()
    assert run.n == 8  # two of ten owners are public
    assert run.references["alone"] > run.references["central"]
    assert run.algorithm.confidences == (1.0,) * 8
    assert run.algorithm.smoothness == pytest.approx(0.25 + 1 / 7)


@pytest.mark.parametrize("algorithm", ["boosting", "personalized", "gossip-sgd"])
def test_boosted_tasks_of_files_run(algorithm):
    experiment = made(text_of("boosted", algorithm))
    assert isinstance(experiment.task, Boosted)
    assert experiment.task.dim == 120
    run = experiment.run()
    assert np.isfinite(run.estimates).all()
    assert run.task["data"]["name"] == "breast_cancer"
    assert run.task["used"]["public"] == 113
    if algorithm == "boosting":
        assert run.metrics.last("accuracy") > 0.8


def test_references_of_a_boosted_task_are_boosted():
    """They were single stumps, which anything beats; now they are what boosting alone, and with all
    records, gives."""
    task = made(text_of("boosted", "boosting", peers=8)).task
    found = task.references()
    assert found["central"] > 0.95
    from bruit.algorithms.personal.boosting import Boosting
    from bruit.graphs import complete
    from bruit.runs.engines.bulk import Bulk
    from bruit.runs.run import run as run_one

    lonely = Boosting(coupling=0.0, radius=10.0)
    alone = run_one(lonely, complete(8), task, steps=100, seed=0, engine=Bulk(), evaluate_every=0)
    assert task.evaluate(alone.estimates)["accuracy"] == pytest.approx(found["alone"], abs=0.05)


def test_stumps_lie_in_public_or_agreed_ranges(tmp_path):
    lines = ["a,label"] + [f"{k % 10},{'yes' if k % 10 > 4 else 'no'}" for k in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    options = {"peers": 3, "predictors": 5, "own_test": 0.2}
    public = Boosted.load(str(tmp_path / "t.csv"), **options)
    assert "the 5 stumps, over the ranges of the public records" in str(public.describe()["public"])
    agreed = Boosted.load(
        str(tmp_path / "t.csv"),
        test=0.0,
        standardize="agreed",
        agreed=Agreed(scales={"a": (5.0, 3.0)}),
        **options,
    )
    assert "the 5 stumps, within 2 agreed scales of the agreed centers" in str(
        agreed.describe()["public"]
    )
    with pytest.raises(
        ConfigError, match=r"predictors = 1 is one stump for each of 1 columns, .* at least 2"
    ):
        Boosted.load(str(tmp_path / "t.csv"), **(options | {"predictors": 1}))
    assert Boosted.load(str(tmp_path / "t.csv"), **(options | {"predictors": None})).dim == 4
    with pytest.raises(ConfigError, match=r"hold out some records \(test\), or agree on scales"):
        Boosted.load(str(tmp_path / "t.csv"), test=0.0, standardize="none", **options)


@pytest.mark.parametrize(
    ("kind", "algorithm", "more", "message"),
    [
        (
            "boosted",
            "model-propagation",
            "",
            "model-propagation asks peers for models fitted alone, which a boosted task",
        ),
        (
            "boosted",
            "gossip-admm",
            "",
            "gossip-admm asks peers for proximal steps, which a boosted task",
        ),
        (
            "personal",
            "gosta",
            "",
            "gosta asks peers for a function of two points, which a personal task",
        ),
        ("mean", "personalized", 'confidences = "sizes"', "peers of this task hold none"),
        (
            "mean",
            "gossip-sgd",
            'confidences = "sizes"',
            "gossip-sgd has no parameter 'confidences'",
        ),
        ("boosted", "personalized", 'confidences = "size"', "confidences = 'size' is not valid"),
    ],
)
def test_what_does_not_go_together(kind, algorithm, more, message):
    with pytest.raises(ConfigError, match=message):
        made(text_of(kind, algorithm, more))


def test_smoothness_is_declared_only_for_bounded_rows():
    text = text_of("personal", "boosting", task='rows = "none"').replace("boosting", "personalized")
    with pytest.raises(ConfigError, match=r"needs rows of a declared length"):
        made(text + 'smoothness = "declared"\n')
    for kind, key in (("personal", "ridge"), ("boosted", "predictors")):
        with pytest.raises(ConfigError, match=rf"task.{key} = -1"):
            made(
                text_of(kind, "boosting")
                .replace("[algorithm]", f"{key} = -1\n[algorithm]")
                .replace("predictors = 120\n", "")
            )


def test_words_of_the_task_are_for_simulations():
    text = text_of("personal", "personalized", 'confidences = "sizes"')
    with pytest.raises(ConfigError, match=r'confidences = "sizes" is chosen by a simulation'):
        building.protocol(parse(text), text)


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("personal", "personalized"), ("boosted", "boosting")]
)
def test_runs_of_such_files_are_saved_shown_and_replayed(kind, algorithm, tmp_path):
    more = 'confidences = "sizes"\n[privacy]\nsigma = 2.0\n[engine]\nname = "events"\nlatency = 0.1'
    text = text_of(kind, algorithm, more)
    run = made(text).run()
    again = load(run.save(tmp_path / "one.run"))
    assert again.task["used"] == run.task["used"]
    assert again.algorithm.confidences == run.algorithm.confidences
    replay(again)  # raises when the two disagree
    assert report.data_notes(again) == report.data_notes(run)
