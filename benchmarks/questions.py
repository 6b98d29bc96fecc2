"""Which questions a folder of benchmarks asks: every file in it that can be run, found by looking.

A new question is one new file, with `if __name__ == "__main__":` at its end; nothing lists it.
"""

import pkgutil
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType


def questions(folder: ModuleType) -> tuple[str, ...]:
    """Names of its files that answer when they are run, in alphabetical order. None is imported:
    each is to be measured in a process of its own."""
    found = []
    for file in pkgutil.iter_modules(folder.__path__):
        spec = find_spec(f"{folder.__name__}.{file.name}")
        runs = spec is not None and spec.origin is not None and _runs(Path(spec.origin))
        if runs and file.name != "__main__":
            found.append(file.name)
    return tuple(sorted(found))


def _runs(file: Path) -> bool:
    return '\nif __name__ == "__main__":\n' in file.read_text(encoding="utf-8")
