"""Every error and every exit code has a page that one can land on, and the list of them is whole."""

import inspect
import re

import pytest

from bruit import errors
from bruit.commands import cli
from docs.pages import ROOT

FOLDER = ROOT / "docs" / "reference" / "errors"
KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.BruitError) and kind is not errors.BruitError
]
LIST = (FOLDER / "index.md").read_text()


def codes() -> list[str]:
    """The exit codes, as the command line's own file lists them."""
    (listed,) = re.findall(r"^Exit codes: (.*?)\n\n?", cli.__doc__ or "", re.DOTALL | re.MULTILINE)
    rest = (cli.__doc__ or "").split("Exit codes:")[1]
    assert listed
    return re.findall(r"(?:^|[.;] )(\d+)\b", " ".join(rest.split()))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_page_that_names_it(kind: type[errors.BruitError]) -> None:
    (page,) = re.findall(rf"^\| `{kind.__name__}` \|.*\]\(([\w.-]+)(?:#[\w-]+)?\) \|$", LIST, re.M)
    headings = re.findall(r"^#+ (.*)$", (FOLDER / page).read_text(), re.MULTILINE)
    assert any(kind.__name__ in heading for heading in headings), page


def test_every_exit_code_has_a_page_that_begins_with_it() -> None:
    assert codes() == ["0", "1", "2", "3", "130"]
    assert {str(kind.exit_code) for kind in KINDS} <= set(codes())
    for code in codes():
        assert f"[{code}](exit-{code}.md)" in LIST
        text = (FOLDER / f"exit-{code}.md").read_text()
        assert text.startswith(f"# Exit code {code}: ")


def test_no_page_tells_of_an_error_that_is_gone() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", LIST, re.MULTILINE))
    assert named == {kind.__name__ for kind in KINDS}
    for path in FOLDER.glob("*.md"):
        assert path.name == "index.md" or f"({path.name}" in LIST, path.name
