"""Data: named sets and users' own files, as one table of numbers with labels and, if there, owners.

A name is a set bundled with scikit-learn or one in the data folder ($BRUIT_DATA, or ../shared/data
beside the working directory or the repository). Anything with a suffix or a slash is a path to a
CSV, Parquet or NPZ file. What is no text is a data frame in hand.
"""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from bruit.errors import ConfigError
from bruit.tasks.data import catalog
from bruit.tasks.data.agreed_columns import AgreedColumns
from bruit.tasks.data.agreed_rows import agreed_table
from bruit.tasks.data.choice import EVERYTHING, Choice
from bruit.tasks.data.columns import HELP, Columns, nearest
from bruit.tasks.data.formats.csv_file import read_csv
from bruit.tasks.data.formats.frames import ROWS, Frame
from bruit.tasks.data.formats.tables import is_table, mend, read_table
from bruit.tasks.data.public import NOTHING, Agreed
from bruit.tasks.data.table import (
    LABEL_NAMES,
    OWNER_NAMES,
    Table,
    agreed_codes,
    check_labels,
    choose,
    from_columns,
    make_table,
    no_texts,
    number_owners,
    the_one,
)

FEATURE_NAMES = ("features", "X", "x")


def load(
    data: str | Path | Frame,
    label: str | None = None,
    owner: str | None = None,
    agreed: Agreed = NOTHING,
    choice: Choice = EVERYTHING,
    features: bool = True,
    columns: AgreedColumns | None = None,
) -> Table:
    """The table a name or a path means, or a data frame holds; label and owner name columns (arrays
    in an NPZ file).

    choice: which columns are used, and what becomes of holes. features: without them, only labels
    and owners are read. columns: what was agreed on about all columns, label and
    classes; nothing else is then said about them.
    """
    if columns is not None:
        if label is not None or agreed.classes or agreed.vocabulary or agreed.scales:
            raise ConfigError(
                f"label, classes, vocabulary and scales are said in {columns.file}; leave them out"
            )
        if not choice.is_everything():
            raise ConfigError(
                f"which columns are used, and what becomes of holes, is said in {columns.file}; "
                "leave columns, drop, fill and holes out"
            )
        return agreed_table(columns, texts(data), _called(data), owner)
    if not isinstance(data, str | Path):
        return from_columns(
            read_table(data), ROWS, label, owner, agreed=agreed, choice=choice, features=features
        )
    name = str(data)
    if name in catalog.BUNDLED:
        if label is not None or owner is not None:
            raise ConfigError(
                f"{name} is bundled with its label and has no owner; leave label and owner out"
            )
        return choose(catalog.load_bundled(name, agreed), choice)
    if name in catalog.SHARED:
        return catalog.load_shared(name, label, owner, agreed, choice)
    path = _existing(name)
    if is_table(path):
        return from_columns(
            read_table(path),
            path.name,
            label,
            owner,
            agreed=agreed,
            choice=choice,
            features=features,
        )
    if path.suffix == ".npz":
        return _load_npz(path, label, owner, agreed, choice)
    raise ConfigError(
        f"{path.name} is neither .csv, .csv.gz, .tsv, .parquet nor .npz; {mend(path)}"
    )


def texts(data: str | Path | Frame) -> Columns:
    """The cells of a table as they are written: of a CSV or Parquet file, of a set in the data
    folder, or of a data frame."""
    if not isinstance(data, str | Path):
        return read_table(data)
    name = str(data)
    if name in catalog.BUNDLED:
        return catalog.bundled_texts(name)
    if name in catalog.SHARED:
        return read_csv(catalog.shared_csv(name))
    path = _existing(name)
    if not is_table(path):
        raise ConfigError(
            f"{path.name} has no named columns, of which a columns file speaks; give a .csv, "
            f".csv.gz, .tsv or .parquet: {mend(path)}"
        )
    return read_table(path)


def _called(data: str | Path | Frame) -> str:
    return Path(data).name if isinstance(data, str | Path) else ROWS


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.suffix and len(path.parts) == 1 and not path.exists():
        raise ConfigError(
            f"no data set is called {name!r}{nearest(name, tuple(catalog.catalog()))}"
        )
    if not path.is_file():
        raise ConfigError(
            f"there is no file {name}; give the path of a CSV, Parquet or NPZ file, or a known name"
        )
    return path


def bundled() -> dict[str, str]:
    """The sets that come with scikit-learn and need no file: name and what it is."""
    return dict(catalog.BUNDLED)


def _load_npz(
    path: Path, label: str | None, owner: str | None, agreed: Agreed, choice: Choice
) -> Table:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: np.asarray(archive[key]) for key in archive.files}
    except (ValueError, OSError, BadZipFile) as error:
        raise ConfigError(
            f"{path.name} could not be read as an NPZ file of plain arrays: {error}"
        ) from error
    keys = tuple(arrays)
    label = label or the_one(path.name, keys, LABEL_NAMES, "label")
    for key in (label, *(() if owner is None else (owner,))):
        if key not in arrays:
            raise ConfigError(f"{path.name} has no array {key!r}{nearest(key, keys)}")
    features = arrays[the_one(path.name, keys, FEATURE_NAMES, "features")]
    owner = owner or next((word for word in OWNER_NAMES if word in arrays), None)
    table = _npz_table(
        path, label, features, arrays[label], None if owner is None else arrays[owner], agreed
    )
    chosen = choose(table, choice)
    bad = np.argwhere(
        np.isinf(chosen.features) | (np.isnan(chosen.features) & (not choice.by_public_mean()))
    )
    if len(bad):
        row, column = bad[0]
        raise ConfigError(
            f"{path.name} row {row}, column {column} is no finite number "
            f"({chosen.feature_names[column]}); {HELP}"
        )
    if not bool(np.isfinite(chosen.labels).all()):
        row = int(np.flatnonzero(~np.isfinite(chosen.labels))[0])
        raise ConfigError(
            f"{path.name} row {row}: the label is no finite number; leave such records out (holes = "
            '"drop"), or repair the file'
        )
    check_labels(path.name, chosen.labels, bool(agreed.classes))
    return chosen


def _npz_table(
    path: Path,
    label: str,
    raw: np.ndarray,
    marks: np.ndarray,
    holders: np.ndarray | None,
    agreed: Agreed,
) -> Table:
    if (
        raw.ndim < 2
        or marks.shape != (len(raw),)
        or (holders is not None and holders.shape != (len(raw),))
    ):
        raise ConfigError(
            f"{path.name}: features are {raw.shape}, labels {marks.shape}"
            + ("" if holders is None else f", owners {holders.shape}")
            + "; give one row of features, one label and one owner a record"
        )
    if raw.dtype.kind not in "buif":
        raise ConfigError(f"{path.name}: features are of type {raw.dtype}; they must be numbers")
    features = raw.reshape(len(raw), -1).astype(np.float64)
    no_texts(path.name, agreed)
    label_names: tuple[str, ...] = ()
    if agreed.classes:
        labels, label_names = agreed_codes(
            path.name, [str(mark) for mark in marks.tolist()], agreed.classes
        )
    elif marks.dtype.kind in "buif":
        labels = marks.astype(np.float64)
    else:
        texts, found = np.unique(marks.astype(np.str_), return_inverse=True)
        labels, label_names = found.astype(np.float64), tuple(texts.tolist())
    owners, owner_names = (
        (None, ()) if holders is None else number_owners(tuple(holders.astype(np.str_).tolist()))
    )
    names = tuple(f"x{i}" for i in range(features.shape[1]))
    return make_table(
        path.name,
        features,
        labels,
        owners,
        feature_names=names,
        label_names=label_names,
        owner_names=owner_names,
        label=label,
        classes_from="agreed" if agreed.classes else "private rows",
    )
