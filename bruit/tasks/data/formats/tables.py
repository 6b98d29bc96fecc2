"""Tables of one's own, whatever they come in: a CSV or Parquet file, or a data frame in hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bruit.errors import ConfigError
from bruit.tasks.data.columns import Columns
from bruit.tasks.data.formats.csv_file import read_csv
from bruit.tasks.data.formats.frames import as_columns
from bruit.tasks.data.formats.parquet_file import read_parquet

CSV_FILES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET_FILES = (".parquet", ".pq")
SHEETS = (".xls", ".xlsx", ".ods")


def is_table(path: Path) -> bool:
    """Whether a file, by its name, is a table with named columns."""
    return path.name.lower().endswith((*CSV_FILES, *PARQUET_FILES))


def read_table(source: Any) -> Columns:
    """The columns of a file, or of a data frame (pandas, polars, pyarrow; also a mapping of columns
    or a list of mappings). Every format gives the same cells for the same values."""
    if not isinstance(source, str | Path):
        return as_columns(source)
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    if path.name.lower().endswith(PARQUET_FILES):
        return read_parquet(path)
    if path.name.lower().endswith(CSV_FILES):
        return read_csv(path)
    raise ConfigError(f"{path.name} is neither .csv, .csv.gz, .tsv nor .parquet; {mend(path)}")


def mend(path: Path) -> str:
    """What to do about a file of another kind."""
    if path.suffix.lower() in SHEETS:
        return 'save the sheet from your spreadsheet as "CSV UTF-8"'
    return "convert it to one of these"
