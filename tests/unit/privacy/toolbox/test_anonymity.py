"""K-anonymity and L-diversity: gossip:DP-12."""

import pytest

from bruit import errors
from papers.theorems import anonymity
from papers.theorems.anonymity import k_anonymity, l_diversity

# Shaped like Table 2.1 of the source: 8 rows, two clients occur once, every date twice with two
# items.
TABLE = [
    {"client": client, "date": date, "item": item, "price": price}
    for client, date, item, price in [
        ("404D-123-AB", 1, "bread", 2),
        ("005-E89-76T", 1, "milk", 1),
        ("A", 2, "bread", 2),
        ("A", 2, "tea", 4),
        ("B", 3, "milk", 1),
        ("B", 3, "bread", 2),
        ("C", 4, "tea", 4),
        ("C", 4, "milk", 1),
    ]
]


def test_worked_table():
    """gossip:DP-12: the client alone gives K = 1, the date K = 2 and L = 2 for the item."""
    assert k_anonymity(TABLE, ["client"]) == 1
    assert k_anonymity(TABLE, ["date"]) == 2
    assert l_diversity(TABLE, ["date"], "item") == 2
    assert k_anonymity(TABLE, []) == 8
    assert l_diversity(TABLE, [], "item") == 3
    assert k_anonymity(TABLE, ["date", "item"]) == 1


def test_it_says_that_it_is_not_differential_privacy():
    assert "NOT differential privacy" in anonymity.__doc__
    assert all("Not DP" in f.__doc__ for f in (k_anonymity, l_diversity))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: k_anonymity([], ["date"]), "empty table"),
        (
            lambda: k_anonymity(TABLE, ["day"]),
            "row 0 of the table has no column 'day'; it has client, date",
        ),
        (lambda: l_diversity(TABLE, ["date"], "illness"), "no column 'illness'"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(errors.ConfigError, match=words):
        call()
