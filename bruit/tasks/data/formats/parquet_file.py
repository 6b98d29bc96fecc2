"""Parquet files, if pyarrow is installed: the same cells as a CSV file of the same values."""

from __future__ import annotations

from pathlib import Path

from bruit.errors import ConfigError
from bruit.tasks.data.columns import Columns
from bruit.tasks.data.formats.frames import from_values


def read_parquet(path: Path) -> Columns:
    """A Parquet file; values are read column by column."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ConfigError(
            f"{path.name} is a Parquet file, which needs pyarrow: pip install 'bruit[parquet]'; or "
            f"save the table as CSV"
        ) from None
    try:
        table = ParquetFile(path).read()
    except (ArrowException, OSError) as error:
        raise ConfigError(f"{path.name} could not be read as a Parquet file: {error}") from error
    columns = zip(table.column_names, table.itercolumns(), strict=True)
    return from_values(path.name, [(name, column.to_pylist()) for name, column in columns])
