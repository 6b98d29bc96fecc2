"""K-anonymity and L-diversity of a table. NOT differential privacy: they promise nothing against an
observer who knows something else, compose with nothing, and no guarantee of this package uses them
(gossip:DP-12).

A class is a combination of values of the quasi-identifier that occurs in the table. The table is
K-anonymous if every class has at least K rows, and L-diverse if every class has at least L distinct
sensitive values.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from bruit.errors import ConfigError

Row = Mapping[str, Hashable]


def k_anonymity(table: Sequence[Row], quasi_identifier: Sequence[str]) -> int:
    """The largest K for which the table is K-anonymous. Not DP.

    >>> k_anonymity([{"age": 30, "town": "Lille"}, {"age": 30, "town": "Lens"}], ["age"])
    2
    """
    return min(len(rows) for rows in _classes(table, quasi_identifier).values())


def l_diversity(table: Sequence[Row], quasi_identifier: Sequence[str], sensitive: str) -> int:
    """The largest L for which the table is L-diverse in the sensitive column. Not DP."""
    classes = _classes(table, quasi_identifier)
    _check_columns(table, (sensitive,))
    return min(len({row[sensitive] for row in rows}) for rows in classes.values())


def _classes(
    table: Sequence[Row], columns: Sequence[str]
) -> Mapping[tuple[Hashable, ...], list[Row]]:
    if not table:
        raise ConfigError("an empty table has no classes; give at least one row")
    _check_columns(table, columns)
    classes: defaultdict[tuple[Hashable, ...], list[Row]] = defaultdict(list)
    for row in table:
        classes[tuple(row[column] for column in columns)].append(row)
    return classes


def _check_columns(table: Sequence[Row], columns: Sequence[str]) -> None:
    for number, row in enumerate(table):
        missing = [column for column in columns if column not in row]
        if missing:
            raise ConfigError(
                f"row {number} of the table has no column {missing[0]!r}; it has {', '.join(row)}"
            )
