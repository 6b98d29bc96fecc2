"""The catalog: data sets known by name, where they are, and what is done to each, said aloud.

BUNDLED sets come with scikit-learn. SHARED sets are files of the data folder; their traps (a label
made from a column that must not be a feature, unknown values, ids) are handled here once.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bruit.arrays import Ints
from bruit.errors import ConfigError
from bruit.tasks.data.choice import EVERYTHING, Choice
from bruit.tasks.data.columns import Columns, in_digits
from bruit.tasks.data.formats.csv_file import read_csv
from bruit.tasks.data.public import NOTHING, Agreed
from bruit.tasks.data.table import Table, choose, file_sha256, from_columns, make_table, no_texts

BUNDLED = {
    "breast_cancer": "569 tumors, 30 features, 2 classes (diagnostic set)",
    "digits": "1797 images of 8x8 pixels, 10 digits",
    "wine": "178 wines, 13 features, 3 growers",
    "diabetes": "442 patients, 10 features, disease progression (number)",
    "iris": "150 flowers, 4 features, 3 species",
}


@dataclass(frozen=True, kw_only=True)
class CsvSet:
    """A CSV of the data folder: which column is what, which are no features, and why in the
    notes."""

    help: str
    file: str
    label: str
    owner: str | None = None
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    drop_missing_rows: bool = False
    threshold: float | None = None
    notes: tuple[str, ...] = ()
    source: str = ""  # where people get it, if that is worth a sentence


@dataclass(frozen=True)
class ArraySet:
    """A set of the data folder that needs its own few lines; `read` takes the folder of the
    file."""

    help: str
    file: str
    read: Callable[[Path], Table]


def catalog() -> dict[str, str]:
    """Every known name and what it is; sets of the data folder say so."""
    return BUNDLED | {name: f"{known.help} [data folder]" for name, known in SHARED.items()}


def folders() -> list[Path]:
    """Where data files are looked for, in order."""
    chosen = os.environ.get("BRUIT_DATA")
    places = [Path(chosen)] if chosen else []
    return [
        *places,
        Path.cwd().parent / "shared" / "data",
        Path(__file__).resolve().parents[3] / "shared" / "data",
    ]


def locate(name: str) -> Path | None:
    """The file of a data-folder set, or None if it is not on this machine."""
    return next(
        (
            folder / SHARED[name].file
            for folder in folders()
            if (folder / SHARED[name].file).is_file()
        ),
        None,
    )


def load_bundled(name: str, agreed: Agreed = NOTHING) -> Table:
    """A set that comes with scikit-learn, its classes with it."""
    no_texts(name, agreed)
    if agreed.classes:
        raise ConfigError(f"{name} is bundled with its classes; leave classes out")
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    features = np.ascontiguousarray(bunch.data, dtype=np.float64)
    label_names = () if name == "diabetes" else tuple(str(text) for text in bunch.target_names)
    return make_table(
        name,
        features,
        np.asarray(bunch.target, dtype=np.float64),
        None,
        feature_names=tuple(str(text) for text in bunch.feature_names),
        label_names=label_names,
        notes=("bundled with scikit-learn",),
        classes_from="agreed",
    )


def load_shared(
    name: str,
    label: str | None = None,
    owner: str | None = None,
    agreed: Agreed = NOTHING,
    choice: Choice = EVERYTHING,
) -> Table:
    """A set of the data folder; label may name another column of a CSV set (regression on houses,
    say)."""
    known, path = SHARED[name], _located(name)
    if isinstance(known, ArraySet):
        if label is not None or owner is not None:
            raise ConfigError(f"{name} has a fixed label and owner; leave label and owner out")
        no_texts(name, agreed)
        if agreed.classes:
            raise ConfigError(f"{name} has fixed classes; leave classes out")
        return choose(known.read(path), choice)
    return _read(name, known, path, label, owner, agreed, choice)


def shared_csv(name: str) -> Path:
    """The CSV file of a set of the data folder, for an agreed columns file."""
    if isinstance(SHARED[name], ArraySet):
        raise ConfigError(f"{name} is no CSV file, so no columns file can speak of its columns")
    return _located(name)


def bundled_texts(name: str) -> Columns:
    """A set that comes with scikit-learn as its cells would be written, its label in `target`."""
    table = load_bundled(name)
    cells = {
        column: tuple(in_digits(value) for value in values)
        for column, values in zip(table.feature_names, table.features.T.tolist(), strict=True)
    }
    cells["target"] = tuple(table.label_text(value) for value in table.labels.tolist())
    lines = tuple(range(2, len(table.labels) + 2))
    return Columns(name, tuple(cells), tuple(cells.values()), lines)


def _located(name: str) -> Path:
    path = locate(name)
    if path is None:
        looked = ", ".join(str(folder) for folder in folders())
        source = getattr(SHARED[name], "source", "")
        raise ConfigError(
            f"{name} needs the file {SHARED[name].file}, not found in: {looked}; "
            f"set BRUIT_DATA to the folder that holds it{source and f' ({source})'}"
        )
    return path


def _read(
    name: str,
    known: CsvSet,
    path: Path,
    label: str | None,
    owner: str | None,
    agreed: Agreed,
    choice: Choice,
) -> Table:
    columns, notes = read_csv(path), known.notes
    chosen = label or known.label
    columns.of(chosen)
    dropped = frozenset(known.drop) | ({known.label} if chosen != known.label else frozenset())
    if chosen != known.label:
        notes = (*notes, f"label {chosen} instead of {known.label}, which is left out")
    asked = next((column for column in choice.columns if column in dropped), None)
    if asked is not None:
        raise ConfigError(
            f"columns names {asked!r}, which every task of {name} leaves out ({'; '.join(notes)})"
        )
    columns = columns.without(dropped - {chosen})
    if known.drop_missing_rows and choice.fill is None:
        choice = replace(choice, holes="drop")
    table = from_columns(
        columns,
        name,
        chosen,
        owner or known.owner,
        file_sha256(path),
        categories=frozenset(known.categories) - {chosen},
        threshold=known.threshold if chosen == known.label else None,
        notes=notes,
        agreed=agreed,
        choice=replace(
            choice, drop=tuple(column for column in choice.drop if column not in dropped)
        ),
    )
    unused = (*sorted(dropped - {chosen}), *table.reading.unused)
    return replace(table, reading=replace(table.reading, unused=unused))


def _computer_buyers(path: Path) -> Table:
    profiles = read_csv(path.parent / "profiles.csv.gz").without(frozenset({"profile", "const"}))
    ratings = read_csv(path).without(frozenset({"user"}))
    computers = np.array(profiles.cells, dtype=np.float64).T  # (20, 13)
    marks = np.array(ratings.cells, dtype=np.float64).T  # (190, 20)
    users = len(marks)
    return make_table(
        "computer_buyers",
        np.tile(computers, (users, 1)),
        marks.ravel(),
        np.repeat(np.arange(users), len(computers)),
        feature_names=profiles.names,
        threshold=5.0,
        owner_names=tuple(str(user + 1) for user in range(users)),
        file_digest=file_sha256(path),
        notes=(
            "one record a user and computer; two classes: rating > 5",
            "the constant column is left out: an intercept is appended",
            "features come from profiles.csv.gz beside the file",
        ),
    )


def _har(path: Path) -> Table:
    with np.load(path, allow_pickle=False) as archive:
        features = archive["X_int16"] * float(archive["scale"])
        labels, users = archive["y"].astype(np.float64) - 1, archive["user"].astype(np.int64)
        names = tuple(str(text) for text in archive["feature_names"])
    activities = ("walking", "upstairs", "downstairs", "sitting", "standing", "laying")
    return make_table(
        "har",
        features,
        labels,
        _numbered(users),
        feature_names=names,
        label_names=activities,
        owner_names=_texts(users),
        file_digest=file_sha256(path),
        classes_from="agreed",
        notes=(
            "the 561 features are recomputed from the raw signals, not those of the UCI file",
            "features were scaled to [-1, 1] over all users by the makers of the file",
        ),
    )


def _images(name: str, path: Path, owner: str | None) -> Table:
    with np.load(path, allow_pickle=False) as archive:
        pixels = np.concatenate([archive["x_train"], archive["x_test"]])
        labels = np.concatenate([archive["y_train"], archive["y_test"]]).astype(np.float64)
        writers = (
            None
            if owner is None
            else np.concatenate([archive[f"{owner}_train"], archive[f"{owner}_test"]]).astype(
                np.int64
            )
        )
    features = pixels.reshape(len(pixels), -1) / 255.0
    return make_table(
        name,
        features,
        labels,
        None if writers is None else _numbered(writers),
        feature_names=tuple(f"pixel{i}" for i in range(features.shape[1])),
        owner_names=() if writers is None else _texts(writers),
        file_digest=file_sha256(path),
        notes=("pixels divided by 255", "the published train and test parts are pooled"),
    )


def _numbered(owners: Ints) -> Ints:
    return np.unique(owners, return_inverse=True)[1].astype(np.int64)


def _texts(owners: Ints) -> tuple[str, ...]:
    return tuple(str(owner) for owner in np.unique(owners).tolist())


SHARED: dict[str, CsvSet | ArraySet] = {
    "houses": CsvSet(
        help="20640 Californian blocks, 8 features, 2 classes",
        file="houses/houses.csv.gz",
        label="binaryClass",
        drop=("longitude_not_a_feature",),
        notes=(
            "the class is the longitude cut at its mean; the longitude itself is left out of the "
            "features",
        ),
    ),
    "spambase": CsvSet(
        help="4601 mails, 57 features, spam or not", file="spambase/spambase.csv.gz", label="spam"
    ),
    "adult": CsvSet(
        help="48842 persons, income above 50K or not",
        file="adult/adult.csv.gz",
        label="income",
        drop=("split", "education"),
        notes=(
            "the published train and test parts are pooled",
            "education is left out: education_num says the same",
            "an unknown value (?) of a category is a category of its own",
        ),
    ),
    "svmguide3": CsvSet(
        help="1284 records, 21 features, 2 classes",
        file="svmguide3/svmguide3.csv.gz",
        label="label",
        drop=("split",),
        notes=("the published train and test parts are pooled",),
    ),
    "wine_quality": CsvSet(
        help="6497 wines, 11 features, grade",
        file="wine_quality/wine_quality.csv.gz",
        label="quality",
        drop=("color",),
        threshold=5.0,
        notes=("color is left out of the features", "two classes: quality > 5"),
    ),
    "breast_cancer_wisconsin": CsvSet(
        help="699 tumors, 9 features, 2 classes (original 1992 set)",
        file="breast_cancer_wisconsin/breast_cancer_wisconsin.csv.gz",
        label="class",
        drop=("sample_code_number",),
        drop_missing_rows=True,
        notes=("the sample number is left out",),
    ),
    "heart_disease": CsvSet(
        help="740 patients of 4 hospitals (owner), disease or not",
        file="heart_disease/heart_disease.csv.gz",
        label="num",
        owner="hospital",
        drop=("slope", "ca", "thal"),
        categories=("cp", "restecg"),
        drop_missing_rows=True,
        threshold=0.0,
        notes=(
            "slope, ca and thal are left out: mostly unknown outside Cleveland",
            "two classes: num > 0",
        ),
        source="the four processed files of https://archive.ics.uci.edu/dataset/45 in one CSV with "
        "names of columns, and a first column hospital",
    ),
    "school": CsvSet(
        help="15362 students of 139 schools (owner), exam score",
        file="school/school.csv.gz",
        label="exam_score",
        owner="school",
        threshold=20.0,
        notes=("two classes: exam_score > 20",),
    ),
    "landmine": CsvSet(
        help="14820 radar records of 29 fields (owner), mine or not",
        file="landmine/landmine.csv.gz",
        label="mine",
        owner="field",
    ),
    "parkinsons": CsvSet(
        help="5875 voice records of 42 patients (owner), UPDRS score",
        file="parkinsons_telemonitoring/parkinsons_updrs.csv.gz",
        label="total_UPDRS",
        owner="subject",
        drop=("motor_UPDRS",),
        notes=("motor_UPDRS is left out of the features: it is part of the score",),
    ),
    "har": ArraySet(
        "10411 windows of 30 users (owner), 561 features, 6 activities",
        "har_smartphones/har_561_features_recomputed.npz",
        _har,
    ),
    "mnist": ArraySet(
        "70000 images of 28x28 by 836 writers (owner), 10 digits",
        "mnist/mnist.npz",
        lambda path: _images("mnist", path, "writer"),
    ),
    "fashion_mnist": ArraySet(
        "30000 images of 28x28, 10 kinds of clothes",
        "fashion_mnist/fashion_mnist_20k.npz",
        lambda path: _images("fashion_mnist", path, None),
    ),
    "computer_buyers": ArraySet(
        "190 buyers (owner) x 20 computers, 13 features, rating 0-10",
        "computer_buyers/likelihood_to_buy.csv.gz",
        _computer_buyers,
    ),
}
