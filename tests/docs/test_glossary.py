"""The glossary has one entry for a word, and one for each word that experiment files, statuses and schedules use."""

import re
import tomllib
from importlib.resources import files

from bruit.algorithms.schedules.schedule import Schedule
from bruit.privacy.guarantee import STATUSES
from docs.pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text()
SAID_BY_ANOTHER = {"privacy.sigmas": "sigma"}


def entries() -> list[str]:
    return [
        word.lower()
        for line in re.findall(r"^- (.*)", PAGE, re.M)
        for word in bold(line.split(":")[0])
    ]


def bold(text: str) -> list[str]:
    return re.findall(r"\*\*([^*]+)\*\*", text)


def test_no_word_is_defined_twice() -> None:
    found = entries()
    assert len(found) > 60
    assert sorted(found) == sorted(set(found))


def test_the_words_of_experiment_files_are_defined() -> None:
    keys = tomllib.loads(files("bruit.runs").joinpath("keys.toml").read_text())["keys"]
    wanted = {
        key for key in keys if key in ("graph", "steps", "seed") or key.startswith("privacy.")
    }
    assert len(wanted) > 15
    words = {SAID_BY_ANOTHER.get(key, key.rpartition(".")[2].replace("_", " ")) for key in wanted}
    assert sorted(words - {word.lower() for word in bold(PAGE)}) == []


def test_statuses_and_schedules_are_defined() -> None:
    kinds = [
        kind.__name__ for kind in Schedule.__subclasses__() if kind.__module__.startswith("bruit.")
    ]
    assert len(kinds) >= 4
    for word in (*STATUSES, *kinds):
        assert f"*{word}*" in PAGE, word
