"""What everybody knows besides messages: whole owners are public, and what is read off private rows
says so."""

import json
import re
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import bruit as br
from bruit.errors import ConfigError
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.runs.result import load
from bruit.show import summary as report
from bruit.show.report.statement import statement
from bruit.show.report.story import tell
from bruit.tasks import (
    Boosted,
    Logistic,
    Pairwise,
    Personal,
    Records,
    Ridge,
    Softmax,
    Statistic,
    histogram,
)
from bruit.tasks.data.public import Agreed
from bruit.tasks.pairs.statistic_file import load_statistic

OWNERS = ("ann", "bob", "cem", "dan", "eva")
AGREED = Agreed(classes=("no", "yes"), vocabulary={"color": ("blue", "green", "red")})


def rows_of(owner, seed=0, colors=("red", "blue"), labels=("no", "yes"), scale=1.0, count=6):
    rng = np.random.default_rng([seed, len(owner), ord(owner[0])])
    return [
        f"{scale * rng.normal():.6f},{colors[k % len(colors)]},{owner},{labels[k % len(labels)]}"
        for k in range(count)
    ]


def file_of(folder, changed=None, **options):
    """A table of five owners; `changed` holds something else altogether, everybody else the
    same."""
    rows = [
        row
        for owner in OWNERS
        for row in rows_of(owner, **({"seed": 0} | (options if owner == changed else {})))
    ]
    path = folder / "table.csv"
    path.write_text("\n".join(["size,color,owner,label", *rows]) + "\n")
    return str(path)


def records_of(task, peer):
    part = next(task.records.parts(np.array([peer]), 1))
    return part.features[0][part.weights[0] > 0], part.targets[0][part.weights[0] > 0]


def known(task, source="private rows"):
    return [fact["fact"] for fact in task.describe()["public"] if fact["from"] == source]


def test_a_public_part_is_whole_owners(tmp_path):
    """A fifth of everybody's rows was public and scaled everybody, while epsilons spoke of all that
    an owner holds."""
    task = Logistic.load(file_of(tmp_path), split="owner")
    assert task.peers == 4
    assert len(task.records.held_out.targets) == 6
    assert task.records.sizes.tolist() == [6] * 4
    told = next(fact for fact in known(task, "public rows") if fact.startswith("all 6 records"))
    assert "they take no part, and no epsilon is about them" in told
    named = Logistic.load(file_of(tmp_path), split="owner", agreed=Agreed(public=("dan", "ann")))
    assert named.peers == 3
    assert any(
        "the named owners ann, dan" in fact or "the named owners dan, ann" in fact
        for fact in known(named, "public rows")
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("changed", OWNERS)
def test_what_an_owner_holds_moves_nothing_that_others_see(tmp_path, changed, seed):
    """The hypothesis of every user-level epsilon. Before, scales, vocabulary and public rows all
    moved."""
    first = Logistic.load(file_of(tmp_path), split="owner", seed=seed, agreed=AGREED)
    other = Logistic.load(
        file_of(tmp_path, changed, seed=7, colors=("green",), labels=("yes",), scale=1e3),
        split="owner",
        seed=seed,
        agreed=AGREED,
    )
    public = not np.array_equal(first.records.held_out.features, other.records.held_out.features)
    named = any(changed in fact for fact in known(first, "public rows"))
    assert public == named  # who is public has no epsilon, and everybody else moves nothing public
    if public:
        return
    moved = [
        peer
        for peer in range(first.peers)
        if not np.array_equal(records_of(first, peer)[0], records_of(other, peer)[0])
    ]
    assert len(moved) == 1
    assert other.describe() == first.describe()
    more = Logistic.load(
        file_of(tmp_path, changed, count=9), split="owner", seed=seed, agreed=AGREED
    )
    assert set(known(more)) - set(known(first)) == {"how many records each peer holds (6 to 9)"}
    assert np.array_equal(first.records.held_out.features, more.records.held_out.features)


def test_agreed_scales_need_nobody_public(tmp_path):
    agreed = Agreed(AGREED.classes, AGREED.vocabulary, {"size": (0.5, 2.0)})
    options = {
        "split": "owner",
        "test": 0.0,
        "standardize": "agreed",
        "rows": "none",
        "agreed": agreed,
    }
    task = Logistic.load(file_of(tmp_path), **options)
    assert task.peers == 5
    assert task.records.held_out is None
    size = float(rows_of("ann", 0)[0].split(",")[0])
    assert records_of(task, 0)[0][0].tolist() == pytest.approx([(size - 0.5) / 2, 0, 0, 1, 1])
    assert known(task) == [
        "the number of peers, 5, and which owner each of them is",
        "how many records each peer holds (6)",
    ]
    ridge = Ridge.load(
        file_of(tmp_path),
        **(
            options
            | {
                "label": "size",
                "agreed": Agreed(
                    (), AGREED.vocabulary | {"label": ("no", "yes")}, {"size": (0.5, 2.0)}
                ),
            }
        ),
    )
    assert records_of(ridge, 0)[1][0] == pytest.approx((size - 0.5) / 2)
    assert ridge.records.label_unit == 2.0


def test_what_is_read_off_private_rows_is_listed(tmp_path):
    task = Logistic.load(file_of(tmp_path), split="owner")
    assert known(task) == [
        "the 2 values of the text column 'color': blue, red",
        "the classes of 'label': no, yes (labels: no = -1, yes = 1)",
        "the number of peers, 4, and which owner each of them is",
        "how many records each peer holds (6)",
    ]
    dealt = Logistic.load(file_of(tmp_path), peers=3)
    assert any("no epsilon speaks of an owner" in fact for fact in known(dealt, "public rows"))
    assert any("not about an owner" in fact for fact in known(dealt, "agreed"))
    copied = Logistic.load(file_of(tmp_path), peers=3, split="replicate:20")
    assert any("one peer's copy" in fact for fact in known(copied, "agreed"))
    assert known(Logistic.load("breast_cancer", peers=4)) == [
        "how many records each peer holds (114)"
    ]


def test_every_task_lists_its_facts(tmp_path):
    file, rows = file_of(tmp_path), np.arange(6.0)
    pairs = Pairwise.load(file, peers=3, agreed=AGREED)
    assert known(pairs) == ["how many records each peer holds (8)"]
    assert known(Pairwise.of(np.eye(4), np.arange(4) % 2)) == [
        "how many points each peer holds (1)"
    ]
    assert known(histogram(4, data=file)) == ["the classes of 'label': no, yes"]
    assert known(histogram(4, data=file, agreed=AGREED)) == []
    assert known(Statistic.auc(rows, np.arange(6) % 2)) == [
        "how many points each peer holds (1)",
        "the numbers of positives and negatives, 3 and 3",
    ]
    auc = load_statistic(file, "auc", ["size"], 5, "sized:1:1", label="label")
    assert "how many different labels there are, 2" in known(auc)
    agreed = load_statistic(
        file, "auc", ["size"], 5, "sized:1:1", label="label", agreed=Agreed(("no", "yes"))
    )
    assert "how many different labels there are, 2" in known(agreed, "agreed")
    some = Softmax(Records.of(np.eye(6), np.array([0.0, 1, 2, 0, 1, 2]), np.arange(6) // 2))
    assert known(some) == ["how many records each peer holds (2)", "the classes: 0, 1, 2"]


def test_targets_of_a_regression_are_in_no_manifest():
    """The values that occur were listed as classes, whenever there were at most 100 of them."""
    task = Ridge(Records.of(np.eye(4), np.array([1.5, 2.25, 3.125, 1.5]), np.arange(4)))
    assert task.describe()["classes"] == []
    assert "2.25" not in json.dumps(task.describe())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"agreed": Agreed(("no", "maybe"))},
            r"table.csv row \d+ \(line \d+\), column .label. holds .yes., which",
        ),
        (
            {"agreed": Agreed(vocabulary={"color": ("red",)})},
            r"column 'color' holds 'blue', which is none of the agreed",
        ),
        (
            {"agreed": Agreed(vocabulary={"colour": ("red",)})},
            r"column 'colour', .*did you mean 'color'",
        ),
        ({"agreed": Agreed(public=("zoe",))}, r"owner 'zoe', who owns nothing here"),
        (
            {"agreed": Agreed(scales={"size": (0.0, 1.0)})},
            r"agreed scales and standardize='agreed' belong together",
        ),
        ({"standardize": "agreed"}, r"belong together"),
        (
            {"standardize": "agreed", "agreed": Agreed(scales={"weight": (0.0, 1.0)})},
            r"column .weight., which table",
        ),
        (
            {"standardize": "agreed", "agreed": Agreed(scales={"color=red": (0.0, 1.0)})},
            r"'size' has no agreed scale",
        ),
        (
            {"peers": 5},
            r"5 peers were asked for, but of the 5 owners 1 are public .* which leaves 4; ask for "
            r"4 peers",
        ),
    ],
)
def test_what_was_not_agreed_on_is_refused(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        Logistic.load(file_of(tmp_path), **({"split": "owner"} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ("a",)}, "at least two different"),
        ({"classes": ("a", "a")}, "at least two different"),
        ({"vocabulary": {"x": ()}}, "'x' is a list of different texts, found none"),
        ({"scales": {"x": (0.0, 0.0)}}, "the scale above 0"),
        ({"scales": {"x": (1.0,)}}, "two numbers"),
    ],
)
def test_an_agreement_must_mean_something(options, message):
    with pytest.raises(ConfigError, match=message):
        Agreed(**options)


TOML = """
graph = "complete:4"
steps = 2
[task]
kind = "logistic"
data = "{file}"
split = "owner"
[algorithm]
name = "gossip-sgd"
[privacy]
sigma = 1.0
"""


def test_the_first_screen_the_folder_and_the_page_list_them(tmp_path):
    text = TOML.format(file=file_of(tmp_path))
    run = build(parse(text), text).run()
    wide = StringIO()
    Console(file=wide, width=200).print(*report.screen(run, run.summary()), sep="\n")
    seen = wide.getvalue()
    for words in (
        "known besides the messages, and covered by no epsilon",
        "from private rows: the 2 values of the text column 'color': blue, red",
        "from private rows: how many records each peer holds (6)",
        "from private rows: the references (alone, central): computed from all peers' records "
        "without noise",
        "from public rows: all 6 records of the drawn owners",
    ):
        assert words in seen
    listed = report.as_json(run, run.summary())["public"]
    assert {"fact": "how many records each peer holds (6)", "from": "private rows"} in listed
    again = load(run.save(tmp_path / "run"))
    assert report.public_facts(again) == listed
    assert "how many records each peer holds (6)" in str(statement(tell(again)))
    assert "sha256" not in json.dumps(run.task)


def test_no_manifest_holds_a_digest_of_private_records(tmp_path):
    """Every task; a digest is a long word of hexadecimal digits, whatever its key is called."""
    file, rows = file_of(tmp_path), np.arange(6.0)
    tasks = [
        Logistic.load(file, split="owner"),
        Softmax.load(file, peers=3),
        Ridge.load(file, peers=3, label="size"),
        Pairwise.load(file, peers=3),
        load_statistic(file, "gini", ["size"], 5),
        Statistic.auc(rows, np.arange(6) % 2),
        histogram(4, data=file),
        br.tasks.Mean(np.eye(3)),
        Boosted(Records.of(np.eye(4), np.ones(4), np.arange(4))),
        Personal(Logistic(Records.of(np.eye(4), np.ones(4), np.arange(4))), np.ones(4)),
    ]
    for task in tasks:
        assert not re.search(r"[0-9a-f]{24}", json.dumps(task.describe())), type(task)


def test_scores_of_private_records_are_no_secret_of_the_simulator():
    run = br.run(br.Averaging(), "ring:4", br.tasks.Mean(np.eye(4)), steps=1)
    assert any(
        "the scores: measured on the peers' own records" in fact["fact"]
        for fact in report.public_facts(run)
    )


def test_the_experiment_file_agrees(tmp_path):
    more = 'public = ["bob"]\nclasses = ["no", "yes"]\n[task.vocabulary]\ncolor = ["red", "blue"]\n'
    text = TOML.format(file=file_of(tmp_path)).replace("[algorithm]", more + "[algorithm]")
    task = build(parse(text), text).task
    assert known(task) == [
        "the number of peers, 4, and which owner each of them is",
        "how many records each peer holds (6)",
    ]
    scaled = 'test = 0\nstandardize = "agreed"\n[task.scales]\nsize = [0, 1.5]\n'
    text = (
        TOML.format(file=file_of(tmp_path))
        .replace("[algorithm]", scaled + "[algorithm]")
        .replace(":4", ":5")
    )
    assert build(parse(text), text).task.peers == 5
    idle = (
        TOML.replace("logistic", "mean")
        .replace('data = "{file}"\n', 'public = ["bob"]\n')
        .replace("{", "{{")
    )
    with pytest.raises(
        ConfigError, match=r"task.public says nothing about a mean task without data"
    ):
        build(parse(idle), idle)
