"""`--set key=value`: what is changed, what the folder keeps, and what is refused."""

import tomllib

import pytest

from bruit.errors import ConfigError
from bruit.runs.file import read
from bruit.runs.settings import change, document, to_toml

FILE = """\
# a comment that stays
graph = "ring:6"
steps = 4

[task]   # what they hold
kind = "mean"

[algorithm]
name = "averaging"
"""


def test_values_are_read_as_toml_and_comments_stay():
    found = change(
        FILE, ["steps=7", "task.dim=3", "graph=torus:3x3", "privacy.sigma=1.5", "watch=[0, 1]"]
    )
    assert (found.file.steps, found.file.task.dim, found.file.graph) == (7, 3, "torus:3x3")
    assert found.file.privacy.sigma == 1.5
    assert found.file.watch == [0, 1]
    assert "# a comment that stays" in found.text
    assert "# what they hold" in found.text
    assert found.sentences[0] == "steps = 7 instead of 4"
    assert found.sentences[1] == "task.dim = 3"


@pytest.mark.parametrize(
    "settings",
    [
        ["steps=7"],
        ["privacy.epsilon=", "privacy.sigma=0.5"],
        ["engine.name=events", "engine.loss=0.1"],
        ["task.vocabulary.color=['red', 'a \"b\"']"],
        ["references=false"],
    ],
)
def test_the_text_says_what_is_run(settings):
    """The folder of a run tells the truth: its file, read again, is the experiment that ran."""
    for text in (FILE, read("breast-cancer")[1]):
        found = change(text, settings)
        again = change(found.text, [])
        assert again.file == found.file


def test_a_key_without_a_value_is_left_out():
    found = change(read("breast-cancer")[1], ["privacy.epsilon=", "privacy.sigma=2"])
    assert found.file.privacy.epsilon is None
    assert found.file.privacy.sigma == 2
    assert found.sentences[0] == "no privacy.epsilon instead of 8.0"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("privacy.epsilom=2", "unknown key 'privacy.epsilom'; did you mean 'privacy.epsilon'"),
        ("epsilon=2", "did you mean 'privacy.epsilon'"),
        ("epsilom=2", "did you mean 'privacy.epsilon'"),
        ("rate=2", "a parameter of the algorithm is set by 'algorithm.rate'"),
        ("stepz=2", "did you mean 'steps'"),
        ("steps", "not of the form key=value"),
        ("=3", "not of the form key=value"),
        ("steps=many", "steps = 'many': input should be a valid integer"),
        ("task.kind=ridg", "did you mean 'ridge'"),
    ],
)
def test_errors_name_the_key_and_the_nearest_one(setting, words):
    with pytest.raises(ConfigError) as found:
        change(FILE, [setting])
    assert words in str(found.value)


def test_a_key_that_is_given_twice_is_refused():
    with pytest.raises(ConfigError, match="seed is given twice"):
        change(FILE, ["seed=1", "seed=2"])


def test_a_whole_document_is_read_back():
    content = {
        "graph": "ring:6",
        "steps": 4,
        "task": {"kind": "mean", "scales": {"a b": [0.5, 1e-7]}, "public": []},
        "algorithm": {"name": "averaging", "on": True},
    }
    assert tomllib.loads(document(content)) == content
    assert tomllib.loads(f"x = {to_toml([1, 'ü', {'y': 2.0}])}")["x"] == [1, "ü", {"y": 2.0}]
