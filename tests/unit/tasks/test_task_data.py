"""Loading data: named sets, users' files, preparation and its declarations."""

import gzip
import json

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.tasks import Logistic, Ridge, Softmax
from bruit.tasks.data import catalog
from bruit.tasks.data import sources as data

GOOD = "size,color,owner,label\n1,red,a,no\n2,blue,b,yes\n3,red,b,no\n4,red,a,yes\n"

SHAPES = {  # records, features, owners as the published descriptions count them
    "houses": (20640, 8, None),
    "spambase": (4601, 57, None),
    "svmguide3": (1284, 21, None),
    "wine_quality": (6497, 11, None),
    "breast_cancer_wisconsin": (683, 9, None),
    "heart_disease": (740, 15, 4),
    "school": (15362, 27, 139),
    "landmine": (14820, 9, 29),
    "parkinsons": (5875, 19, 42),
    "har": (10411, 561, 30),
    "computer_buyers": (3800, 13, 190),
}
LARGE = {  # the same of sets that take long to read
    "adult": (48842, 92, None),
    "fashion_mnist": (30000, 784, None),
    "mnist": (70000, 784, 836),
}


def need(name):
    if catalog.locate(name) is None:
        pytest.skip(f"{catalog.SHARED[name].file} is not on this machine (BRUIT_DATA)")


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("breast_cancer", (569, 30), 2),
        ("digits", (1797, 64), 10),
        ("wine", (178, 13), 3),
        ("iris", (150, 4), 3),
        ("diabetes", (442, 10), None),
    ],
)
def test_bundled_sets(name, shape, classes):
    table = data.load(name)
    assert table.features.shape == shape
    assert len(table.feature_names) == shape[1]
    if classes:
        assert len(np.unique(table.labels)) == len(table.label_names) == classes
    assert name in data.bundled()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *SHAPES.items(),
        *(pytest.param(*known, marks=pytest.mark.slow) for known in LARGE.items()),
    ],
)
def test_shared_sets(name, shape):
    need(name)
    table = data.load(name)
    records, features, owners = shape
    assert table.features.shape == (records, features)
    assert len(table.feature_names) == features
    assert np.isfinite(table.features).all()
    assert (table.owners is None) == (owners is None)
    if owners:
        np.testing.assert_array_equal(np.unique(table.owners), np.arange(owners))
        assert len(table.owner_names) == owners


def test_every_shared_set_is_tested():
    assert {*SHAPES, *LARGE} == set(catalog.SHARED)


def test_houses_label_is_the_longitude_and_the_longitude_is_no_feature():
    need("houses")
    table = data.load("houses")
    assert not any("longitude" in name for name in table.feature_names)
    assert table.label_names == ("N", "P")
    assert np.bincount(table.labels.astype(int)).tolist() == [11726, 8914]
    assert table.file_sha256 == "a5b1dc97ff63f498598c6718998a53d73c9168eb2b658aea49a39ca958ccc702"
    with gzip.open(catalog.locate("houses"), "rt") as stream:
        cells = [line.strip().split(",") for line in stream][1:]
    longitude = np.array([float(row[-1]) for row in cells])
    np.testing.assert_array_equal(table.labels == 1, longitude < longitude.mean())
    priced = data.load("houses", label="median_house_value")
    assert priced.features.shape == (20640, 7)
    assert "binaryClass" not in priced.feature_names


def test_heart_disease_hospitals():
    """Records by hospital once unknown values are out: the counts of FLamby's Fed-Heart-Disease."""
    need("heart_disease")
    table = data.load("heart_disease")
    assert table.owner_names == ("cleveland", "hungarian", "switzerland", "va")
    assert np.bincount(table.owners).tolist() == [303, 261, 46, 130]
    task = Logistic.load("heart_disease", split="owner")
    assert task.peers == 3  # one hospital is public
    assert set(task.records.classes) == {"<=0", ">0"}


def test_csv_of_a_user(tmp_path):
    table = data.load(write(tmp_path, GOOD))
    assert table.feature_names == ("size", "color=blue", "color=red")
    np.testing.assert_array_equal(table.features, [[1, 0, 1], [2, 1, 0], [3, 0, 1], [4, 0, 1]])
    assert table.label_names == ("no", "yes")
    assert table.labels.tolist() == [0, 1, 0, 1]
    assert table.owners.tolist() == [0, 1, 1, 0]
    assert "color" in table.notes[0]
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(GOOD.encode()))
    np.testing.assert_array_equal(data.load(str(packed)).features, table.features)
    other = data.load(write(tmp_path, GOOD), label="size", owner="color")
    assert other.labels.tolist() == [1, 2, 3, 4]
    assert other.owner_names == ("blue", "red")


def test_npz_of_a_user(tmp_path):
    path = str(tmp_path / "set.npz")
    images = np.arange(24, dtype=np.uint8).reshape(4, 3, 2)
    np.savez(path, X=images, y=np.array(["b", "a", "b", "a"]), owner=np.array([9, 9, 4, 4]))
    table = data.load(path)
    assert table.features.shape == (4, 6)
    assert table.labels.tolist() == [1, 0, 1, 0]
    assert table.owners.tolist() == [1, 1, 0, 0]
    assert table.owner_names == ("4", "9")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            GOOD.replace("2,blue", ",blue"),
            {},
            r"table.csv row 1 \(line 3\), column 'size': no value where",
        ),
        (GOOD.replace("2,blue", "NaN,blue"), {}, r"row 1 \(line 3\), column 'size': no value"),
        (
            GOOD.replace("2,blue", "2x,blue"),
            {},
            r"row 1 \(line 3\), column 'size': '2x' where the column holds numbers",
        ),
        (GOOD.replace("2,blue", "inf,blue"), {}, r"row 1 \(line 3\), column 'size': 'inf'"),
        (GOOD.replace("blue", ""), {}, r"row 1 \(line 3\), column 'color' holds no value"),
        (GOOD.replace("red,b", "red,?"), {}, r"row 2 \(line 4\), column 'owner' holds no value"),
        (GOOD + "5,red,a\n", {}, r"table.csv line 6 has 3 cells, but the header names 4 columns"),
        (GOOD.replace("yes", "no"), {}, r"the label of table.csv has one value only \(no on all 4"),
        (GOOD, {"label": "lable"}, r"table.csv has no column 'lable'; did you mean 'label'\?"),
        (GOOD, {"owner": "ownr"}, r"no column 'ownr'; did you mean 'owner'\?"),
        (GOOD, {"label": "zzz"}, r"no column 'zzz'; there are: size, color, owner, label"),
        (
            GOOD.replace("label", "outcome"),
            {},
            r"does not say which column is the label; give label=, one of: size",
        ),
        (
            "1,2,3\n4,5,6\n",
            {},
            r"first line of table.csv holds only numbers; it must name the columns",
        ),
        ("a,label\n", {}, r"table.csv holds no records"),
        ("", {}, r"table.csv holds no records"),
        ("a,a,label\n1,2,0\n1,2,1\n", {}, r"two columns called 'a'"),
        ("label\n0\n1\n", {}, r"no feature column beside label and owner"),
        (
            "t,label\n" + "".join(f"w{i},{i % 2}\n" for i in range(101)),
            {},
            r"column 't' holds 101 different texts",
        ),
    ],
)
def test_bad_csv_is_refused(tmp_path, text, options, message):
    with pytest.raises(ConfigError, match=message):
        data.load(write(tmp_path, text), **options)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        (
            {"X": np.zeros((2, 2)), "y": np.array([0, 1, 1])},
            {},
            r"features are \(2, 2\), labels \(3,\)",
        ),
        (
            {"X": np.array([[0.0], [np.nan]]), "y": np.array([0, 1])},
            {},
            r"row 1, column 0 is no finite number",
        ),
        (
            {"X": np.zeros((2, 1)), "y": np.array([0, np.nan])},
            {},
            r"row 1: the label is no finite number",
        ),
        ({"X": np.array([["a"], ["b"]]), "y": np.array([0, 1])}, {}, r"features are of type"),
        ({"X": np.zeros((2, 1)), "y": np.array([0, 1])}, {"label": "z"}, r"has no array 'z'"),
        (
            {"data": np.zeros((2, 1)), "y": np.array([0, 1])},
            {},
            r"does not say which column is the features",
        ),
        (
            {"X": np.zeros((2, 1)), "y": np.array([0, 1], dtype=object)},
            {},
            r"could not be read as an NPZ file",
        ),
    ],
)
def test_bad_npz_is_refused(tmp_path, arrays, options, message):
    np.savez(tmp_path / "set.npz", **arrays)
    with pytest.raises(ConfigError, match=message):
        data.load(str(tmp_path / "set.npz"), **options)


def test_names_and_paths_that_are_not_there(tmp_path, monkeypatch):
    with pytest.raises(
        ConfigError, match=r"no data set is called 'digitz'; did you mean 'digits'\?"
    ):
        data.load("digitz")
    with pytest.raises(ConfigError, match=r"there is no file nowhere/table.csv"):
        data.load("nowhere/table.csv")
    with pytest.raises(ConfigError, match=r"notes.txt is neither .csv, .csv.gz, .tsv, .parquet"):
        data.load(write(tmp_path, "hello", "notes.txt"))
    with pytest.raises(ConfigError, match=r"bundled with its label and has no owner"):
        data.load("iris", label="species")
    monkeypatch.setattr(catalog, "folders", lambda: [tmp_path])
    with pytest.raises(
        ConfigError, match=r"houses needs the file houses/houses.csv.gz, .*set BRUIT_DATA"
    ):
        data.load("houses")
    (tmp_path / "bad.csv").write_bytes(b"a,label\n\xff\xfe,1\n")
    with pytest.raises(ConfigError, match=r"bad.csv is not UTF-8 text: line 2"):
        data.load(str(tmp_path / "bad.csv"))


def test_the_data_folder_can_be_chosen(tmp_path, monkeypatch):
    (tmp_path / "spambase").mkdir()
    (tmp_path / "spambase" / "spambase.csv.gz").write_bytes(gzip.compress(b"a,spam\n1,0\n2,1\n"))
    monkeypatch.setenv("BRUIT_DATA", str(tmp_path))
    assert data.load("spambase").features.tolist() == [[1.0], [2.0]]


def test_standardizing_uses_the_public_part_only():
    """Changing a peer's record moves no other prepared record; the public part has mean 0 and scale
    1 before rows."""
    task = Ridge.load("diabetes", peers=8, rows="none")
    held_out = task.records.held_out
    np.testing.assert_allclose(held_out.features[:, :-1].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(held_out.features[:, :-1].std(axis=0), 1, atol=1e-12)
    assert (held_out.features[:, -1] == 1).all()
    assert held_out.targets.mean() == pytest.approx(0, abs=1e-12)
    assert len(held_out.targets) == round(0.2 * 442)
    words = {fact["fact"]: fact["from"] for fact in task.describe()["public"]}
    assert (
        words["the 88 held-out records: they belong to no peer and are used for evaluation"]
        == "public rows"
    )
    assert any(
        word.startswith("column means and scales: those of the public records") for word in words
    )


def test_a_peers_record_influences_nobody_else(tmp_path):
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    np.savez(tmp_path / "a.npz", X=features, y=labels)
    task = Logistic.load(str(tmp_path / "a.npz"), peers=6)
    changed = features.copy()
    for row in range(60):  # find a row that belongs to a peer, and change it wildly
        changed[:] = features
        changed[row] = 1e3
        np.savez(tmp_path / "b.npz", X=changed, y=labels)
        other = Logistic.load(str(tmp_path / "b.npz"), peers=6)
        if np.array_equal(other.records.held_out.features, task.records.held_out.features):
            break
    moved = (other.records.blocks[0].features != task.records.blocks[0].features).any(axis=2)
    assert moved.sum() == 1


def test_held_out_part_belongs_to_nobody_and_is_stratified():
    task = Logistic.load("breast_cancer", peers=10, seed=3)
    held_out = task.records.held_out
    assert task.records.sizes.sum() + len(held_out.targets) == 569
    assert (held_out.targets > 0).mean() == pytest.approx(357 / 569, abs=0.01)
    same = Logistic.load("breast_cancer", peers=10, seed=3)
    assert same.describe() == task.describe()
    other = Logistic.load("breast_cancer", peers=10, seed=4)
    assert not np.array_equal(other.records.held_out.features, held_out.features)
    json.dumps(task.describe())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"standardize": "all"}, r"standardize='all' is not known; use 'public'"),
        ({"test": 1.0}, r"test is 1.0; it is the share of records held out"),
        (
            {"test": 0.0},
            r"standardize='public' takes its statistics from the held-out part, but test is 0",
        ),
        ({"test": 0.001}, r"holds out \d of 150 records; at least 2 are needed"),
        ({"rows": "l1"}, r"rows='l1' is not known"),
        ({"peers": 1000}, r"peer 120 has no records; ask for fewer peers than 1000"),
        ({"split": "owner"}, r"split='owner' needs an owner column"),
    ],
)
def test_bad_preparations_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Softmax.load("iris", **({"peers": 5} | options))


def test_labels_that_do_not_fit_the_task(tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"iris has 3 different labels, logistic regression needs 2; use Softmax .*; they are "
        "setosa, versicolor, virginica",
    ):
        Logistic.load("iris", peers=3)
    with pytest.raises(
        ConfigError, match=r"has \d+ different labels, which look like numbers, not classes"
    ):
        Softmax.load(
            write(tmp_path, "a,label\n" + "".join(f"{i},{i / 7}\n" for i in range(20))), peers=3
        )


def test_records_without_standardizing_or_test():
    task = Softmax.load("iris", peers=5, standardize="none", test=0.0, rows="none")
    assert task.records.held_out is None
    assert task.records.sizes.sum() == 150
    assert task.evaluate(np.zeros((5, task.dim)))["accuracy"] == pytest.approx(1 / 3)
    assert task.constants().source == "records"


@pytest.mark.parametrize(
    ("kind", "name"), [(Logistic, "breast_cancer"), (Softmax, "digits"), (Ridge, "diabetes")]
)
def test_references_against_scikit_learn(kind, name):
    """Central: scikit-learn fits the same prepared records about as well; alone is worse than
    central."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.linear_model import Ridge as Rival

    task = kind.load(name, peers=32)
    references = task.references()
    assert references == task.references()
    pool, held_out = task.records.together(), task.records.held_out
    if kind is Ridge:
        rival = Rival(alpha=1e-2, fit_intercept=False).fit(pool.features[0], pool.targets[0])
        errors = rival.predict(held_out.features) - held_out.targets
        assert references["central"] == pytest.approx(
            task.records.label_unit * np.sqrt((errors**2).mean()), rel=1e-6
        )
        assert references["alone"] > references["central"]
    else:
        rival = LogisticRegression(C=100.0, fit_intercept=False, max_iter=5000).fit(
            pool.features[0], pool.targets[0]
        )
        assert references["central"] == pytest.approx(
            rival.score(held_out.features, held_out.targets), abs=0.02
        )
        assert references["central"] > references["alone"] > 1 / len(task.records.classes)


def test_houses_reaches_the_published_accuracy():
    """A plain logistic regression on standardized, row-normalized houses reaches 0.96."""
    need("houses")
    task = Logistic.load("houses", peers=256)
    assert task.references()["central"] == pytest.approx(0.96, abs=0.01)
