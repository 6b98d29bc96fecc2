"""Records that a hospital cannot take part with, or can though they look odd: one sentence each,
before anything is spent."""

import numpy as np
import pytest

from bruit.errors import BruitError, ConfigError
from bruit.peers.site.own_csv import write_records
from bruit.peers.site.own_records import read_share
from bruit.runs.build import build
from bruit.runs.file import parse
from bruit.tasks.data.agreed_columns import read_agreed
from bruit.tasks.data.own_rows import Agreement

COLUMNS = """\
intercept = 0.3
drop = ["patient"]

[label]
name = "ill"
classes = ["no", "yes"]

[columns.age]
kind = "number"
center = 55
scale = 10

[columns.pain]
kind = "category"
values = ["none", "typical"]

[columns.peak]
kind = "number"
center = 1
scale = 1
hole = "leave out"
"""
EXPERIMENT = """\
graph = "complete:3"
steps = 2

[task]
kind = "logistic"
columns_file = "columns.toml"
rows = "none"
local = ["intercept"]

[algorithm]
name = "masked-sgd"

[privacy]
level = "record"
clip = 0.5
divisor = 10.0
epsilon = 1.0
"""
HEADER = "patient,age,pain,peak,ill\n"
GOOD = "1,50,none,1,no\n"


@pytest.fixture
def prepare(tmp_path):
    """Prepare a table of a hospital; what its owner is told."""
    (tmp_path / "columns.toml").write_text(COLUMNS)

    def prepared(rows):
        (tmp_path / "mine.csv").write_text(HEADER + rows)
        told = []
        task = parse(EXPERIMENT).task
        agreement = Agreement(task, None, None, (), read_agreed(tmp_path / "columns.toml"))
        write_records(tmp_path / "mine.csv", agreement, tmp_path / "mine.npz", None, told.append)
        return told

    return prepared


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("", "mine.csv holds no records"),
        ("1,50,none,,no\n", "every record of mine.csv has a hole"),
        ("1,50,chest,1,no\n", r"line 2.*'pain' holds 'chest', which is none of the values"),
        ("1,50,none,1,perhaps\n", "'perhaps', which is none of the agreed classes"),
        ("1,nan,none,1,no\n", r"line 2.*'age' holds no value"),
        ("1,inf,none,1,no\n", r"'age' holds 'inf'.*a finite number"),
        ("1,old,none,1,no\n", r"'age' holds 'old'.*a finite number"),
        (GOOD + "2,50,none,1\n", r"line 3"),
    ],
)
def test_rows_that_are_refused(prepare, rows, said):
    with pytest.raises(ConfigError, match=said):
        prepare(rows)


def test_one_record_of_one_class_takes_part_and_is_told(prepare, tmp_path):
    told = prepare(GOOD)
    assert any("every record is of the class 'no'" in line for line in told)
    task, _ = read_share(tmp_path / "mine.npz", 1, 3, "logistic", local=("intercept",))
    own = task.at_home(np.array([1]), np.zeros((1, task.dim)))
    assert np.isfinite(own).all()
    assert own[0, -1] < 0  # towards the one class it has seen
    assert not any("class" in line for line in prepare(GOOD + "2,60,none,1,yes\n"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"features": slice(0, 0), "targets": slice(0, 0)}, "none at all"),
        ({"features": np.nan}, "not finite"),
        ({"features": np.inf}, "not finite"),
        ({"targets": np.nan}, "needs labels -1 and 1"),
    ],
)
def test_files_of_records_that_cannot_be_meant(prepare, tmp_path, change, said):
    prepare(GOOD)
    kept = dict(np.load(tmp_path / "mine.npz"))
    for name, how in change.items():
        kept[name] = kept[name][how] if isinstance(how, slice) else np.full_like(kept[name], how)
    np.savez(tmp_path / "other.npz", **kept)
    with pytest.raises(BruitError, match=said):
        read_share(tmp_path / "other.npz", 0, 3, "logistic")


SIMULATED = """\
graph = "complete:3"
steps = 2

[task]
kind = "logistic"
data = "DATA"
label = "ill"
owner = "clinic"
split = "owner"
test = 0.0
standardize = "none"
holes = "drop"

[algorithm]
name = "masked-sgd"

[privacy]
level = "record"
clip = 0.5
epsilon = 1.0
"""
TABLE = "clinic,age,ill\na,1,0\na,2,1\nb,3,1\nc,3,1\nc,2,0\n"


def simulate(tmp_path, table, change=lambda text: text):
    (tmp_path / "all.csv").write_text(table)
    return build(parse(change(SIMULATED.replace("DATA", str(tmp_path / "all.csv"))))).run()


def test_clinics_of_a_simulation(tmp_path):
    assert np.isfinite(simulate(tmp_path, TABLE).estimates).all()  # one record, one class: allowed
    with pytest.raises(ConfigError, match=r"every record of b has a hole.*2 owners are left for 3"):
        simulate(tmp_path, TABLE.replace("b,3,1", "b,nan,1"))
    with pytest.raises(ConfigError, match="one value only"):
        simulate(tmp_path, TABLE.replace(",0\n", ",1\n"))
    with pytest.raises(ConfigError, match="holds 1 record, and needs one to learn from"):
        simulate(tmp_path, TABLE, lambda text: text.replace("holes", "own_test = 0.3\nholes"))


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ("sizes:3:0:2", "one size a peer, each 1 or more"),
        ("sizes:3:2", "2 records for 3 peers"),
        ("sizes:3:2:9", "need 14 records, but there are 5"),
        ("sizes:3:x:1", "no number"),
    ],
)
def test_sizes_that_cannot_be_dealt(tmp_path, split, said):
    with pytest.raises(ConfigError, match=said):
        simulate(tmp_path, TABLE, lambda text: text.replace('"owner"\ntest', f'"{split}"\ntest'))
    fair = simulate(
        tmp_path, TABLE, lambda text: text.replace('"owner"\ntest', '"sizes:2:1:2"\ntest')
    )
    assert fair.task["records_per_peer"] == [1, 2]
