"""Files of reports: what is written is read back, and bad files are refused without running
anything in them."""

import io
import zipfile

import numpy as np
import pytest

from bruit.errors import ConfigError
from bruit.randomness import Replay
from bruit.statistics.local import (
    BinaryResponse,
    GaussianMean,
    HadamardResponse,
    KAry,
    LaplaceMean,
    LocalHashing,
    UnaryEncoding,
    load_reports,
    merge,
    protocol_from,
    save_reports,
)
from bruit.statistics.local.reports import Reports

PROTOCOLS = [
    KAry(300, 1.0),
    HadamardResponse(20, 1.0),
    UnaryEncoding(20, 1.0),
    LocalHashing(20, 1.0),
    BinaryResponse(0.3),
    LaplaceMean(0.0, 1.0, 0.7),
    GaussianMean(0.0, 1.0, 0.7),
]


def reports_of(protocol, n=50):
    values = np.arange(n) % protocol.k if hasattr(protocol, "k") else np.linspace(0, 1, n)
    return protocol.report(values, Replay(1))


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.kind)
@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_round_trip(tmp_path, protocol, ending):
    written, path = reports_of(protocol), tmp_path / f"reports.{ending}"
    save_reports(written, path)
    read = load_reports(path)
    assert read.protocol == written.protocol
    assert protocol_from(read.protocol) == protocol
    assert read.unreadable == 0
    for name, column in written.columns.items():
        assert np.array_equal(read.column(name), column)
    first, second = protocol.estimate(written), protocol.estimate(read)
    assert np.array_equal(getattr(first, "shares", first), getattr(second, "shares", second))


def test_labels_travel_with_the_reports(tmp_path):
    written = Reports(KAry(2, 1.0).describe(), {"value": np.array([0, 1])}, labels=("no", "yes"))
    for name in ("a.csv", "a.npz"):
        save_reports(written, tmp_path / name)
        assert load_reports(tmp_path / name).labels == ("no", "yes")


def test_lines_that_cannot_be_read_are_counted(tmp_path):
    path = tmp_path / "a.csv"
    save_reports(reports_of(KAry(4, 1.0), 10), path)
    with path.open("a") as file:
        file.write("zebra\n1,2\n\n99999999999999999999999\n2.5\n7\n1\n")
    found = KAry(4, 1.0).estimate(load_reports(path))
    assert (found.reports, found.refused) == (11, 5)


@pytest.mark.parametrize("row", ["ff", "ffffffff", "zz", ""])
def test_packed_bits_of_another_length_are_counted(tmp_path, row):
    """k = 16 has no padding bit that could give a short row away."""
    path = tmp_path / "a.csv"
    save_reports(reports_of(UnaryEncoding(16, 1.0), 10), path)
    with path.open("a") as file:
        file.write(f"{row},\n" if not row else f"{row}\n")
    found = UnaryEncoding(16, 1.0).estimate(load_reports(path))
    assert (found.reports, found.refused) == (10, 1)


def test_files_are_merged_only_if_made_alike(tmp_path):
    parts = [reports_of(KAry(4, 1.0), n) for n in (3, 5)]
    assert len(merge(parts)) == 8
    with pytest.raises(ConfigError, match="different protocols cannot be counted together"):
        merge([parts[0], reports_of(KAry(4, 2.0), 3)])
    with pytest.raises(ConfigError, match="no reports to estimate from"):
        merge([])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"value\n1\n", "its first line must be"),
        (b"", "its first line must be"),
        (b"# bruit local-dp reports 2 {}\nvalue\n1\n", "version 2; this version of bruit reads"),
        (b"# bruit local-dp reports 1 [1]\nvalue\n1\n", "does not describe its protocol"),
        (b"# bruit local-dp reports 1 {oops\nvalue\n1\n", "is no file of reports"),
        (b'# bruit local-dp reports 1 {"labels": 3}\nvalue\n1\n', "a list of texts"),
        (b"\xff\xfe\x00", "is no file of reports"),
    ],
)
def test_bad_csv_files(tmp_path, content, words):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        load_reports(tmp_path / "a.csv")


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def zipped():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("value.npy", b"not an array")
    return stream.getvalue()


HEAD = {
    "format": np.str_("bruit local-dp reports"),
    "version": np.int64(1),
    "protocol": np.str_('{"kind": "k-ary"}'),
}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"garbage", "is no file of reports"),
        (npz(value=np.zeros(3)), "it lacks format, version, protocol"),
        (npz(**{**HEAD, "version": np.int64(9)}, value=np.zeros(3)), "version 9"),
        (zipped(), "is no file of reports"),
        (npz(**HEAD, a=np.zeros(3), b=np.zeros(2)), "differ in length"),
        (npz(**HEAD, a=np.float64(3)), "differ in length"),
        (npz(**HEAD, value=np.array([{"a": 1}], dtype=object)), "is no file of reports"),
    ],
)
def test_bad_npz_files(tmp_path, content, words):
    """The last one holds a pickle: it is refused, not opened."""
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        load_reports(tmp_path / "a.npz")


def test_bad_places(tmp_path):
    with pytest.raises(ConfigError, match="there is no file"):
        load_reports(tmp_path / "missing.csv")
    with pytest.raises(ConfigError, match=r"a .npz or .csv file, found a.txt"):
        save_reports(reports_of(KAry(4, 1.0)), tmp_path / "a.txt")


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"no column 'value' \(there are: index\)"):
        KAry(4, 1.0).estimate(
            Reports(KAry(4, 1.0).describe(), {"index": np.zeros(3, dtype=np.int64)})
        )
