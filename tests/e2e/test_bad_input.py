"""Every bad input: one clear sentence on standard error, exit code 2, no traceback, nothing left on
disk."""

import errno
import hashlib
import json
import os
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import bruit as br
from bruit.runs.result import _digest
from tests.e2e.left_behind import listed


def refused(said, *words: str) -> str:
    """The one sentence."""
    assert said.code == 2, said
    assert said.out == ""
    assert "Traceback" not in said.err
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    for word in words:
        assert word in said.err, said.err
    return said.err


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


# graphs


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ("path:1", ["has 1 peer", "at least two"]),
        ("sbm:3+3,p_in=1,p_out=0,connected=false", ["2 parts that never meet"]),
        ("ring:6,plus=0", ["bipartite", "plus=1"]),
        ("tors:4x4", ["unknown graph family 'tors'", "'torus'"]),
        ("ring:six", ["whole number", "'six'"]),
        ("ring:6,pluss=1", ["unknown key 'pluss'", "plus"]),
        ("file:nowhere.txt", ["there is no file nowhere.txt: looked in the working directory"]),
    ],
)
def test_graphs_on_which_a_run_means_nothing(bruit, mean, tmp_path, graph, words):
    change(mean, '"ring:6"', f'"{graph}"')
    before = listed(tmp_path)
    refused(bruit("run", mean), f"{mean}:1: ", *words)
    assert listed(tmp_path) == before


@pytest.mark.parametrize(
    ("graph", "word"),
    [
        ("path:1", "at least two"),
        ("tors:9", "did you mean 'torus'"),
        ("sbm:3+3,p_in=1,p_out=0,connected=false", "never meet"),
    ],
)
def test_epsilon_refuses_the_same_graphs(bruit, graph, word):
    refused(bruit("epsilon", "--graph", graph, "--steps", 3, "--sigma", 1), word)


def test_bipartite_graphs_are_fine_for_meetings_which_need_no_aperiodicity(bruit, mean):
    change(mean, '"ring:6"', '"ring:6,plus=0"')
    change(mean, '"averaging"', '"pair-averaging"')
    assert bruit("run", mean).code == 0


def test_self_loops_are_dropped_with_a_warning(bruit, mean, tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n1 1\n")
    change(mean, '"ring:6"', '"file:edges.txt"')
    with pytest.warns(UserWarning, match="1 self-loop"):
        assert bruit("run", mean).code == 0


@pytest.mark.parametrize(
    ("content", "words"), [("0 1 2 3\n", ["line 1", "expected two ids"]), ("", ["no edge"])]
)
def test_broken_edge_lists(bruit, mean, tmp_path, content, words):
    (tmp_path / "edges.txt").write_text(content)
    change(mean, '"ring:6"', '"file:edges.txt"')
    refused(bruit("run", mean), *words)


@pytest.mark.parametrize(
    ("matrix", "word"),
    [
        ([[1.2, -0.2], [-0.2, 1.2]], "negative weight -0.2 at (0, 1)"),
        ([[0.5, 0.4], [0.4, 0.5]], "row 0 sums to 0.9"),
        ([[0.5, 0.5], [0.4, 0.6]], "not symmetric"),
        ([[np.nan, 1], [1, 0]], "every weight must be a number"),
    ],
)
def test_weights_that_are_no_mixing_weights(matrix, word):
    with pytest.raises(br.ConfigError, match=re.escape(word)):
        br.graphs.from_matrix(matrix)


# data


def with_data(mean: Path, rows: str, split: str = "iid", peers: int = 6) -> None:
    (mean.parent / "data.csv").write_text(rows)
    change(
        mean, 'kind = "mean"\ndim = 2', f'kind = "logistic"\ndata = "data.csv"\nsplit = "{split}"'
    )
    change(mean, '"averaging"', '"gossip-sgd"')
    change(mean, "ring:6", f"ring:{peers}")


GOOD = "".join(f"{k * k % 7},{k % 3},{k % 2}\n" for k in range(40))


def test_good_data_of_the_same_shape_runs(bruit, mean):
    with_data(mean, "a,b,label\n" + GOOD)
    assert bruit("run", mean, "--quiet").code == 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,b,label\n" + GOOD.replace("\n", "\nnan,1,0\n", 1), ["line 3", "'a'", "no value"]),
        ("a,b,label\n" + GOOD.replace("\n", "\n1,0\n", 1), ["line 3 has 2 cells"]),
        ("a,b,label\n" + "".join(f"{k},{k % 3},1\n" for k in range(40)), ["one value only"]),
        ("a,b,label\n1,2,0\n2,1,1\n3,3,0\n", ["holds out 0 of 3 records"]),
        ("a,b,mark\n" + GOOD, ["label"]),
        ("", ["data.csv"]),
    ],
)
def test_broken_data(bruit, mean, tmp_path, rows, words):
    with_data(mean, rows)
    before = listed(tmp_path)
    refused(bruit("run", mean), "mean.toml:7: ", *words)
    assert listed(tmp_path) == before


def test_missing_and_unknown_data(bruit, mean):
    with_data(mean, GOOD)
    (mean.parent / "data.csv").unlink()
    refused(bruit("run", mean), "there is no file data.csv")
    change(mean, '"data.csv"', '"breast_cancr"')
    refused(bruit("run", mean), "'breast_cancr'", "did you mean 'breast_cancer'?")
    change(mean, 'data = "breast_cancr"\n', "")
    refused(bruit("run", mean), "needs data")


def test_a_peer_without_records(bruit, mean):
    with_data(mean, "a,b,label\n" + GOOD, peers=50)
    refused(bruit("run", mean), "peer 32 has no records", "fewer peers than 50")


def test_nothing_held_out_is_a_choice(bruit, mean):
    with_data(mean, "a,b,label\n" + GOOD)
    change(mean, 'split = "iid"', 'test = 0.0\nstandardize = "none"')
    assert bruit("run", mean, "--quiet").code == 0


def test_more_peers_than_owners(bruit, mean):
    with_data(mean, "a,owner,label\n" + GOOD, split="owner")
    refused(bruit("run", mean), "3 owners")


def test_fewer_peers_than_owners(bruit, mean, tmp_path):
    """Whole owners were dropped without a word."""
    with_data(mean, "a,owner,label\n" + GOOD, split="owner", peers=2)
    change(mean, 'split = "owner"', 'split = "owner"\ntest = 0.0\nstandardize = "none"')
    before = listed(tmp_path)
    refused(
        bruit("run", mean),
        "mean.toml:7: ",
        "2 peers",
        "3 owners",
        "ask for 3 peers",
        "split='owner:2'",
    )
    assert listed(tmp_path) == before
    change(mean, 'split = "owner"', 'split = "owner:2"')
    done = bruit("run", mean)
    assert done.code == 0
    assert "left out: 1 owner, as the split asks: 2" in done.out


def test_ids_and_holes(bruit, mean, tmp_path):
    rows = "".join(f"P{k},{'' if k == 3 else k % 5},{k % 2}\n" for k in range(40))
    with_data(mean, "name,a,label\n" + rows)
    refused(bruit("run", mean), "'name' holds 40 different texts in 40 rows", 'drop = ["name"]')
    change(mean, 'split = "iid"', 'drop = ["name"]')
    refused(bruit("run", mean), "data.csv row 3 (line 5), column 'a': no value", 'holes = "drop"')
    change(mean, 'drop = ["name"]', 'drop = ["name"]\nholes = "drop"')
    done = bruit("run", mean, "--out", "chosen.run")
    assert done.code == 0
    for words in (
        "40 records: ",
        "left out: 1 record with holes (1 in 'a')",
        "1 column not used: name",
    ):
        assert words in done.out
        assert words in bruit("show", "chosen.run").out
    told = json.loads(bruit("run", mean, "--json").out)["data"]
    assert (told["records"], told["with_holes"], told["columns_not_used"]) == (40, 1, ["name"])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('columns = ["aa"]', ["no column 'aa', which columns names", "a"]),
        ("fill = [0]", ["task.fill = [0]", 'a number, "public", or a table']),
        ('fill = { a = "x" }', ["fill puts the text 'x' into 'a'"]),
        ('holes = "keep"', ["task.holes = 'keep'", "'refuse' or 'drop'"]),
        ("predictors = 5", ["task.predictors is of boosted tasks"]),
        (
            'columns_file = "none.toml"',
            ["there is no columns file none.toml", "bruit columns init"],
        ),
    ],
)
def test_choices_that_mean_nothing_for_this_file(bruit, mean, lines, words):
    with_data(mean, "a,b,label\n" + GOOD)
    change(mean, 'split = "iid"', lines)
    refused(bruit("run", mean), *words)


def test_tasks_that_an_algorithm_cannot_ask(bruit, mean):
    with_data(mean, "a,b,label\n" + GOOD)
    change(mean, 'kind = "logistic"', 'kind = "boosted"')
    change(mean, '"gossip-sgd"', '"model-propagation"')
    refused(bruit("run", mean), "mean.toml:6: ", "asks peers for models fitted alone", "boosting")


def test_pickled_data_is_refused(bruit, mean, tmp_path):
    trap = np.empty(4, object)
    trap[:] = [Trap()] * 4
    np.savez(tmp_path / "data.npz", X=trap, y=np.arange(4) % 2, allow_pickle=True)
    change(mean, 'kind = "mean"\ndim = 2', 'kind = "logistic"\ndata = "data.npz"')
    refused(bruit("run", mean), "plain arrays")
    assert not (tmp_path / "sprung").exists()


class Trap:
    """Writes a file when unpickled."""

    def __reduce__(self):
        return os.mkdir, ("sprung",)


# numbers


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sigma = 1.5", "sigma = 0.0", ["mean.toml:13: privacy.sigma = 0.0", "greater than 0"]),
        ("sigma = 1.5", "sigma = -1", ["mean.toml:13: privacy.sigma = -1", "greater than 0"]),
        ("sigma = 1.5", "sigma = nan", ["mean.toml:13: privacy.sigma = nan", "finite"]),
        ("sigma = 1.5", "sigma = inf", ["mean.toml:13: privacy.sigma = inf", "finite"]),
        ("sigma = 1.5", "epsilon = 0", ["mean.toml:13: privacy.epsilon = 0", "greater than 0"]),
        (
            "sigma = 1.5",
            "epsilon = -2.0",
            ["mean.toml:13: privacy.epsilon = -2.0", "greater than 0"],
        ),
        (
            "sigma = 1.5",
            "epsilon = 1.0\ndelta = 0",
            ["mean.toml:14: privacy.delta = 0", "greater than 0"],
        ),
        (
            "sigma = 1.5",
            "epsilon = 1.0\ndelta = 1.5",
            ["mean.toml:14: privacy.delta = 1.5", "less than 1"],
        ),
        (
            "sigma = 1.5",
            "clip = 1.0",
            ["mean.toml:12: ", "privacy.sigma or privacy.epsilon", "none of them"],
        ),
        ("sigma = 1.5", "sigma = 1.5\nepsilon = 3.0", ["mean.toml:12: ", "exactly once"]),
        (
            "sigma = 1.5",
            'mechanism = "laplace"\nsigma = 1.0',
            ["privacy.scale or privacy.epsilon", "privacy.sigma"],
        ),
        (
            "sigma = 1.5",
            'mechanism = "laplac"\nscale = 1.0',
            ["'laplac'", "did you mean 'laplace'?"],
        ),
        ("steps = 4", "steps = 0", ["mean.toml:2: ", "nobody would say anything"]),
        ("steps = 4", "steps = -3", ["mean.toml:2: steps = -3", "greater than or equal to 0"]),
        ("steps = 4", "steps = 4.5", ["mean.toml:2: steps = 4.5", "integer"]),
        ("steps = 4", 'steps = "4"', ["mean.toml:2: steps = '4'", "integer"]),
        ("steps = 4", "steps = true", ["mean.toml:2: steps = True", "integer"]),
        ("steps = 4", "watch = [1, 9]\nsteps = 4", ["mean.toml:2: ", "peer 9", "0..5"]),
        ("steps = 4", "watch = [1, 0.5]\nsteps = 4", ["mean.toml:2: watch.1 = 0.5", "integer"]),
        ("steps = 4\n", "", ["mean.toml:9: ", "how many steps"]),
        ("seed = 3", "seed = -3", ["mean.toml:3: seed = -3"]),
    ],
)
def test_impossible_numbers_are_named_with_their_line(
    bruit, mean, tmp_path, monkeypatch, old, new, words
):
    change(mean, old, new)
    before = listed(tmp_path)
    refused(bruit("run", "mean.toml"), *words)
    assert listed(tmp_path) == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seed = 3", "sede = 3", ["mean.toml:3: unknown key 'sede'", "did you mean 'seed'?"]),
        ("dim = 2", "dimm = 2", ["mean.toml:7: unknown key 'task.dimm'", "did you mean 'dim'?"]),
        (
            "sigma = 1.5",
            "sigmaa = 1.5",
            ["mean.toml:13: unknown key 'privacy.sigmaa'", "did you mean 'sigma'?"],
        ),
        (
            'kind = "mean"',
            'kind = "maen"',
            ["mean.toml:6: task.kind = 'maen'", "did you mean 'mean'?"],
        ),
        ('kind = "mean"\n', "", ["mean.toml:5: 'task.kind' is missing"]),
        ('"averaging"', '"averagin"', ["mean.toml:10: ", "did you mean 'averaging'?"]),
        (
            '"averaging"',
            '"gossip-sgd"\nrat = 0.1',
            ["mean.toml:11: ", "no parameter 'rat'", "did you mean 'rate'?"],
        ),
        ('"averaging"', '"gossip-sgd"\nrate = "fast"', ["mean.toml:11: ", "rate = 'fast'"]),
        ('"averaging"', '"gossip-sgd"\nrate = 0.1\nmixing = 0', ["mean.toml:12: ", "mixing = 0"]),
        ('"averaging"', '"muffliato"\nspread = "x"', ["mean.toml:11: ", "spread = 'x'"]),
        ('"averaging"', '"muffliato"\nspraed = 1.0', ["mean.toml:11: ", "no parameter 'spraed'"]),
        ('"averaging"', '"butterfly-muffliato"', ["butterfly:64", "ring:6"]),
        ("[task]", "[tsk]", ["mean.toml:5: unknown key 'tsk'", "did you mean 'task'?"]),
        ("steps = 4", "steps = = 4", ["not valid TOML", "line 2"]),
    ],
)
def test_unknown_names_are_named_with_their_line_and_the_nearest(bruit, mean, old, new, words):
    change(mean, old, new)
    said = bruit("run", "mean.toml")
    assert said.code == 2
    assert "Traceback" not in said.err
    for word in words:
        assert word in said.err, said.err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--steps", 0], "at least one step"),
        (["--sigma", 0], "adds no noise"),
        (["--sigma", -1], "adds no noise"),
        (["--sigma", "nan"], "adds no noise"),
        (["--sigma", "inf"], "finite"),
        (["--sensitivity", 0], "positive"),
        (["--delta", -1], "delta must"),
        (["--delta", 1], "delta must"),
        (["--of", 6, "--seen-by", 0], "there is no peer 6"),
        (["--of", -1, "--seen-by", 0], "there is no peer -1"),
        (["--of", 0, "--seen-by", 9], "there is no peer 9"),
        (["--of", 2, "--seen-by", "1,2"], "nobody has secrets from oneself"),
        (["--seen-by", "some"], "'everybody'"),
        (["--algorithm", "averging"], "did you mean 'averaging'?"),
        (["--set", "rate"], "key=value"),
        (["--set", "algorithm.rate=1"], "no parameter 'rate'"),
        (["--set", "rate=1"], "--set algorithm.rate"),
        (["--matrix", "no/where.npy"], "there is no folder no"),
        (["--algorithm", "renoised", "--published"], "no published formula"),
    ],
)
def test_impossible_questions(bruit, tmp_path, words, found):
    refused(bruit("epsilon", "--graph", "ring:6", "--steps", 3, "--sigma", 1, *words), found)
    assert listed(tmp_path) == set()


def test_a_question_needs_exactly_one_subject(bruit, saved):
    refused(bruit("epsilon"), "either a run folder or a protocol")
    refused(bruit("epsilon", saved, "--graph", "ring:6"), "either")
    refused(bruit("epsilon", saved, "--sigma", 2), "either")
    refused(bruit("epsilon", "--steps", 2), "either")
    refused(bruit("epsilon", "--graph", "ring:6", "--steps", 2), "how much noise")
    refused(bruit("epsilon", "--graph", "ring:6", "--sigma", 2), "steps")


def test_missing_experiments_and_bad_sweeps(bruit, mean):
    refused(bruit("run", "breast-cancr"), "did you mean the bundled 'breast-cancer'?")
    refused(
        bruit("run", "nowhere.toml"), "there is no experiment file nowhere.toml", "breast-cancer"
    )
    refused(bruit("run", mean, "--seed", -1), "seed = -1")
    refused(bruit("run", mean, "--engine", "event"), "did you mean 'events'?")
    refused(bruit("sweep", mean, "--vary", "sigma"), "key=value,value")
    refused(bruit("sweep", mean, "--vary", "privacy.sigma=1,0"), "privacy.sigma = 0")
    refused(bruit("sweep", mean, "--vary", "privacy.sgima=1"), "did you mean 'sigma'?")
    assert bruit("sweep", mean, "--seeds", 0).code == 2
    refused(bruit("list", "algoritms"), "did you mean 'algorithms'?")
    refused(bruit("graph", "rng:5"), "did you mean 'ring'?")
    refused(bruit("init", "a.toml", "--template", "brest"), "breast-cancer")
    mean.write_bytes(b"\xff\xfe")
    refused(bruit("run", mean), "cannot read")


# places


def test_what_exists_is_not_overwritten_unasked(bruit, mean, saved, tmp_path):
    before = (saved / "manifest.json").read_bytes()
    refused(bruit("run", mean, "--out", saved, "--seed", 9), "exists", "--force")
    assert (saved / "manifest.json").read_bytes() == before
    assert bruit("run", mean, "--out", saved, "--seed", 9, "--force").code == 0
    assert br.load(saved).seed == 9
    assert bruit("init", "a.toml").code == 0
    refused(bruit("init", "a.toml"), "exists", "--force")
    assert bruit("init", "a.toml", "--force").code == 0


def test_force_never_removes_a_folder_that_is_no_run(bruit, mean, tmp_path):
    treasure = tmp_path / "photos"
    treasure.mkdir()
    (treasure / "one.jpg").write_text("x")
    refused(bruit("run", mean, "--out", treasure, "--force"), "not a run folder", "left alone")
    assert (treasure / "one.jpg").read_text() == "x"


def test_a_file_where_a_folder_should_be(bruit, mean, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "runs").write_text("x")
    before = listed(tmp_path)
    refused(bruit("run", mean), "cannot write", "runs")
    refused(bruit("run", mean, "--out", "file/x.run"), "cannot write", "file/x.run")
    refused(bruit("run", mean, "--out", "file", "--force"), "not a run folder")
    refused(bruit("sweep", mean, "--out", "file/x.csv"), "cannot write file/x.csv")
    refused(bruit("init", "file/x.toml"), "cannot write file/x.toml")
    refused(
        bruit("epsilon", "--graph", "ring:4", "--steps", 1, "--sigma", 1, "--matrix", "file/m.npy"),
        "cannot write",
    )
    refused(bruit("run", "x" * 5000))
    assert listed(tmp_path) == before


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["numpy.savez_compressed", "os.replace", "os.fsync"])
def test_a_full_disk_leaves_nothing_behind(bruit, mean, tmp_path, monkeypatch, call):
    before = listed(tmp_path)
    monkeypatch.setattr(call, full)
    refused(bruit("run", mean, "--out", "deep/er/x.run"), "No space left on device", "x.run")
    assert listed(tmp_path) == before


@pytest.mark.parametrize(
    "words",
    [
        ("init", "x.toml"),
        ("sweep", "mean.toml", "--out", "x.csv"),
        ("epsilon", "--graph", "ring:4", "--steps", 1, "--sigma", 1, "--matrix", "x.npy"),
    ],
)
def test_a_full_disk_leaves_no_half_file(bruit, mean, tmp_path, monkeypatch, words):
    before = listed(tmp_path)
    monkeypatch.setattr("os.fsync", full)
    refused(bruit(*words), "No space left on device")
    assert listed(tmp_path) == before


def test_a_full_disk_keeps_the_old_run(bruit, mean, saved, monkeypatch):
    real = os.replace

    def sometimes(source, target):
        return full() if Path(source).name == "new" else real(source, target)

    monkeypatch.setattr("os.replace", sometimes)
    refused(bruit("run", mean, "--out", saved, "--force", "--seed", 8), "No space left")
    assert br.load(saved).seed == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder(bruit, mean, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    refused(bruit("run", mean, "--out", "locked/x.run"), "Permission denied")


# run folders


@pytest.mark.parametrize("command", ["show", "replay", "epsilon"])
def test_folders_that_are_no_runs(bruit, tmp_path, command):
    refused(bruit(command, "nowhere.run"), "there is no run folder nowhere.run")
    (tmp_path / "empty").mkdir()
    refused(bruit(command, "empty"), "no manifest.json")
    (tmp_path / "empty" / "manifest.json").write_text("{]")
    refused(bruit(command, "empty"), "manifest", "broken")
    (tmp_path / "empty" / "manifest.json").write_text('{"format": "photos"}')
    refused(bruit(command, "empty"), "not a run of bruit")
    (tmp_path / "empty" / "manifest.json").write_text("[1]")
    refused(bruit(command, "empty"), "not a run of bruit")
    (tmp_path / "empty" / "manifest.json").write_text('{"format": "bruit-run", "version": 99}')
    refused(bruit(command, "empty"), "version 99")
    (tmp_path / "empty" / "manifest.json").write_text(
        '{"format": "bruit-run", "version": 1, "sha256": []}'
    )
    refused(bruit(command, "empty"), "manifest.json is not the file that was written")


@pytest.mark.parametrize(
    "name", ["trace.npz", "ledger.npz", "metrics.json", "estimates.npz", "experiment.toml"]
)
def test_changed_truncated_and_missing_parts(bruit, saved, name):
    part = saved / name
    content = part.read_bytes()
    part.write_bytes(content[: len(content) // 2])
    refused(bruit("show", saved), name, "not the file that was written")
    part.write_bytes(content + b" ")
    refused(bruit("show", saved), name, "not the file that was written")
    part.unlink()
    refused(bruit("show", saved), name, "is missing")


def test_a_changed_manifest_cannot_claim_more_noise(bruit, saved):
    path = saved / "manifest.json"
    path.write_text(path.read_text().replace('"sigma": 1.5', '"sigma": 150.0'))
    refused(bruit("epsilon", saved), "manifest.json is not the file that was written")


def forge(folder: Path, name: str, content: bytes | None = None, **changes: object) -> None:
    """Change a part, or the manifest, and make all digests right again."""
    if content is not None:
        (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    sums = manifest.pop("sha256")
    manifest.update(changes)
    sums[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    sums["manifest"] = _digest(manifest)
    (folder / "manifest.json").write_text(json.dumps({**manifest, "sha256": sums}))


def test_forged_parts_with_right_digests_are_refused_too(bruit, saved, tmp_path):
    whole = tmp_path / "whole.run"
    shutil.copytree(saved, whole)

    def again() -> None:
        shutil.rmtree(saved)
        shutil.copytree(whole, saved)

    forge(saved, "trace.npz", b"no zip at all")
    refused(bruit("show", saved), "broken")
    again()
    pickled = pickle.dumps(Trap())
    forge(saved, "estimates.npz", pickled)
    refused(bruit("show", saved), "broken")
    again()
    trap = np.empty(6, object)
    trap[:] = [Trap()] * 6
    np.savez(tmp_path / "trap.npz", estimates=trap)
    forge(saved, "estimates.npz", (tmp_path / "trap.npz").read_bytes())
    refused(bruit("show", saved), "broken", "allow_pickle")
    assert not (tmp_path / "sprung").exists()
    again()
    np.savez(tmp_path / "other.npz", estimates=np.zeros((2, 2)))
    forge(saved, "estimates.npz", (tmp_path / "other.npz").read_bytes())
    refused(bruit("show", saved), "different numbers of peers")
    again()
    forge(saved, "metrics.json", b"[]")
    refused(bruit("show", saved), "broken")
    again()
    forge(saved, "metrics.json", algorithm={"name": "averagin"})
    refused(bruit("show", saved), "did you mean 'averaging'?")
    again()
    forge(saved, "metrics.json", privacy={"kind": "magic"})
    refused(bruit("show", saved), "unknown mechanism 'magic'")
    again()
    forge(saved, "metrics.json")
    assert bruit("show", saved).code == 0


def test_a_ledger_with_an_unknown_event_is_refused(bruit, saved, tmp_path):
    with np.load(saved / "ledger.npz") as stored:
        columns = {name: stored[name] for name in stored.files}
    columns["events"] = np.array(['{"kind": "free lunch"}'])
    np.savez(tmp_path / "ledger.npz", **columns)
    forge(saved, "ledger.npz", (tmp_path / "ledger.npz").read_bytes())
    refused(bruit("show", saved), "unknown event", "free lunch")
