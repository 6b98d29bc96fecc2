"""A draft of a columns file: names and types of a table's columns, and blanks for all the rest.

No value of any row is in it, nor a statistic of them: whoever fills the blanks takes them from
public knowledge, so that the file can be shown to everybody (silo:SILO-7).
"""

from __future__ import annotations

from bruit.errors import ConfigError
from bruit.tasks.data.columns import Columns, kind_of
from bruit.tasks.data.drafts.words import key, quoted
from bruit.tasks.data.formats.dates import are_dates, usual_forms
from bruit.tasks.data.table import LABEL_NAMES, OWNER_NAMES

HEAD = """\
# DRAFT, from the header and the types of {file}. It is not finished: `bruit columns check` says what is missing.
#
# FILL center, scale, low, high, values and classes FROM PUBLIC KNOWLEDGE: a textbook, a code book, what is usual in
# the field. NEVER FROM THE ROWS: a mean, a smallest value or a list of values that occur tells something about the
# people in them that no epsilon knows of. Then everybody who takes part reads this file and says yes to it.

intercept = 1.0         # the constant of the intercept column; smaller where noise is large (0.3, say)
# cut = 3.0             # numbers are cut at so many scales from their center; a range of its own is low, high
# size = 0.5            # what a number one scale from its center becomes
# owner = "hospital"    # the column that says whose a row is, in a table of many
drop = []               # columns that tables have and nobody uses, such as ids: name them here, take out their section
"""
LABEL_PART = """
[label]
name = {name}
# classes = ["no", "yes"]                           # FILL: all that there may be, in order; or by their spellings:
# classes = { healthy = ["0"], ill = ["1", "2"] }   # a number to predict has center and scale instead
"""
NUMBER_PART = """
[columns.{name}]
kind = "number"
# center =              # FILL
# scale =               # FILL
# low =                 # smaller numbers are cut to this
# high =                # larger ones to this
# missing = ["-9"]      # what means a hole, besides an empty cell, ?, na, n/a, #n/a, <na>, nan, null, none
# instead = {{ 0 = 200 }} # what is read instead of a cell
# hole = "refuse"       # or a number, "indicator" (a column of its own), "leave out" (the row)
"""
DATE_PART = """
[columns.{name}]
kind = "date"
# form = "iso"          # how it is written: 2024-03-01, or "%d.%m.%Y" and the like
# center =              # FILL: a date, 2020-01-01
# scale =               # FILL: a number of days
# low =                 # earlier dates are cut to this
# high =                # later ones to this
# hole = "refuse"       # or a date, "indicator" (a column of its own), "leave out" (the row)
"""
CATEGORY_PART = """
[columns.{name}]
kind = "category"       # "two" for two values, coded -1/2 and 1/2
# values = []           # FILL: all that there may be
# base =                # the value that has no column of its own
# other =               # the value that any other is taken for; left out, a stranger is refused
# coding = "0/1"        # or "halves": -1/2, 1/2
# missing = []          # what means a hole
# hole = "refuse"       # or one of the values, "indicator", "leave out"
"""


def draft(table: Columns, label: str | None = None, owner: str | None = None) -> str:
    """The text of a columns file for tables like this one, to be completed."""
    for name in (label, owner):
        if name is not None:
            table.of(name)
    label = label or next((name for name in LABEL_NAMES if name in table.names), None)
    owner = owner or next((name for name in OWNER_NAMES if name in table.names), None)
    features = [name for name in table.names if name not in (label, owner)]
    if not features:
        raise ConfigError(f"{table.file} has no column besides label and owner")
    text = HEAD.format(file=table.file)
    if owner is not None:
        text = text.replace('# owner = "hospital"   ', f"owner = {quoted(owner)}   ", 1)
    named = (
        '""                  # FILL: the column that is learned' if label is None else quoted(label)
    )
    text += LABEL_PART.replace("{name}", named)
    for name in features:
        part = NUMBER_PART if kind_of(table.of(name)) == "numbers" else CATEGORY_PART
        part = DATE_PART if are_dates(table.of(name)) or usual_forms(table.of(name)) else part
        text += part.format(name=key(name))
    return text
