"""Keys of a columns file: what stands behind each is checked, and whatever is wrong is said with its key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from math import inf, isfinite
from typing import Any

from bruit.errors import ConfigError
from bruit.tasks.data.columns import in_digits, nearest
from bruit.tasks.data.formats.dates import ISO, days

DAYS = ("center", "low", "high")  # of a column of dates: themselves dates


def known_keys(file: str, where: str, section: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    strange = next((key for key in section if key not in keys), None)
    if strange is not None:
        raise ConfigError(f"{file}: unknown key {where + strange!r}{nearest(strange, keys)}")


def number_of(
    file: str, key: str, section: Mapping[str, Any], usual: float | None = None, above: float = -inf
) -> float:
    found = section.get(key.rpartition(".")[2])
    if found is None and usual is not None:
        return usual
    if found is None:
        raise ConfigError(
            f"{file}: {key} is missing; fill it from public knowledge, never from rows"
        )
    right = isinstance(found, int | float) and not isinstance(found, bool) and isfinite(found)
    if not right or not found > above:
        low = "" if above == -inf else f" above {above:g}"
        raise ConfigError(f"{file}: {key} is a finite number{low}, found {found!r}")
    return float(found)


def form_of(file: str, key: str, section: Mapping[str, Any]) -> str:
    """How the dates of a column are written."""
    found = section.get("form", ISO)
    if found != ISO and not (isinstance(found, str) and "%" in found):
        raise ConfigError(
            f'{file}: {key} is "{ISO}" (2024-03-01) or a form such as "%d.%m.%Y", found {found!r}'
        )
    return str(found)


def in_days(file: str, key: str, which: str, found: Any, form: str) -> Any:
    """Of a column of dates: its center, low and high as days; what stands in a hole as it is
    written."""
    if which in DAYS:
        text = found if isinstance(found, str) else str(found)
        if not isfinite(days(text, ISO)):
            raise ConfigError(f"{file}: {key} is a date as 2024-03-01, found {found!r}")
        return days(text, ISO)
    if which == "hole" and isinstance(found, date):
        return found.strftime(form) if form != ISO else found.isoformat()
    return found


def texts_of(file: str, key: str, found: Any) -> tuple[str, ...]:
    """A list of texts; numbers, true and false may be written without quotes."""
    if not isinstance(found, list) or any(not isinstance(one, str | int | float) for one in found):
        raise ConfigError(f"{file}: {key} is a list of texts, found {found!r}")
    return tuple(text_of(one) for one in found)


def table_of(file: str, key: str, section: Mapping[str, Any]) -> Mapping[str, Any]:
    found = section.get(key.rpartition(".")[2], {})
    if not isinstance(found, Mapping) or any(
        not isinstance(one, str | int | float) for one in found.values()
    ):
        raise ConfigError(f"{file}: {key} is a table {{ old = new }}, found {found!r}")
    return found


def text_of(found: Any) -> str:
    """A value as text, whether it was written with quotes or without."""
    if isinstance(found, bool):
        return "true" if found else "false"
    return found if isinstance(found, str) else in_digits(float(found))
