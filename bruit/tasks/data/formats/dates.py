"""Dates as numbers: days since the first of January 1970, with a fraction for the time of day.

A date is written as in ISO 8601 (2024-03-01, 2024-03-01 12:30), or in a form that was agreed on, in
the letters of `strptime` (%d.%m.%Y). A time with an offset is taken at its moment in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from bruit.tasks.data.columns import is_missing, number

ISO = "iso"
USUAL_FORMS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y%m%d")
YEARS = (1850, 2150)  # eight digits outside of these are a number
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def days(text: str, form: str = ISO) -> float:
    """The day that a text means; nan if it means none."""
    try:
        found = datetime.fromisoformat(text) if form == ISO else datetime.strptime(text, form)
    except ValueError:
        return float("nan")
    return (found.replace(tzinfo=found.tzinfo or UTC) - FIRST) / DAY


def day(number_of_days: float) -> str:
    """The date of a day, as ISO writes it."""
    return (date(1970, 1, 1) + timedelta(days=round(number_of_days))).isoformat()


def usual_forms(cells: Iterable[str]) -> tuple[str, ...]:
    """The usual forms in which all values of a column are dates; two where days and months could
    change places."""
    values = [cell for cell in set(cells) if not is_missing(cell)]
    low, high = (days(f"{year}-01-01") for year in YEARS)
    return tuple(
        form
        for form in USUAL_FORMS
        if values and all(low < days(cell, form) < high and len(cell) >= 8 for cell in values)
    )


def are_dates(cells: Iterable[str]) -> bool:
    """Whether all values of a column are dates as ISO writes them; holes are no values."""
    values = [cell for cell in set(cells) if not is_missing(cell)]
    return bool(values) and all(
        number(cell) != number(cell) and days(cell) == days(cell) for cell in values
    )
