"""The first lines of the README, followed literally in a new shell, find the command and the page's
packages."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_readme_says_how_the_shell_finds_the_command():
    text = (ROOT / "README.md").read_text()
    make, activate = text.index("make run"), text.index(". .venv/bin/activate")
    first = re.search(r"^bruit ", text, re.MULTILINE)
    assert make < activate < first.start()


def test_make_run_installs_what_the_page_needs_and_says_what_to_type():
    text = (ROOT / "Makefile").read_text()
    rule = text.split("$(VENV)/run: pyproject.toml")[1].split("$(VENV)/dev")[0]
    assert "'.[ui]'" in rule
    assert "installing bruit" in rule.splitlines()[1], "a minute of silence is not an answer"
    assert "--quiet" not in text
    assert ". $(BIN)/activate" in text.split("\nrun: ")[1].split("\n\n")[0]
    assert "pipefail" in text, "a failed installation must not look like one that worked"
