"""Wherever a public function takes a graph it takes the string that names one; found by
discovery."""

import importlib
import inspect
import re

import numpy as np
import pytest

import bruit as br
from bruit.testing import check_algorithm

PARTS = (
    "bruit",
    "bruit.graphs",
    "bruit.personal",
    "bruit.adversary.audits",
    "bruit.adversary.attacks",
    "bruit.statistics.average.board",
)


def takers():
    """(function, parameter, its type in words) of every public function with a graph among its
    parameters."""
    for part in PARTS:
        module = importlib.import_module(part)
        for name in module.__all__:
            thing = getattr(module, name)
            for key, kind in (
                inspect.get_annotations(thing).items() if inspect.isfunction(thing) else ()
            ):
                words = inspect.formatannotation(kind) if not isinstance(kind, str) else kind
                if (
                    key != "return"
                    and re.search(r"(?<!nx\.)\bGraph(Sequence)?\b", words)
                    and "Callable" not in words
                ):
                    yield f"{part}.{name}", key, words


def test_every_public_function_with_a_graph_takes_a_string():
    found = list(takers())
    assert {"bruit.run", "bruit.rehearse", "bruit.repeat", "bruit.graphs.diameter"} <= {
        name for name, _, _ in found
    }
    assert [(name, key) for name, key, words in found if not re.search(r"\bstr\b", words)] == []


def test_a_rehearsal_takes_a_string():
    noise = br.Gaussian(clip=0.5, sigma=1.0)
    by_name = br.rehearse(br.Averaging(), "ring:8", noise, 3)
    assert by_name.graph.fingerprint() == br.graphs.ring(8).fingerprint()
    assert by_name.epsilon() == br.rehearse(br.Averaging(), br.graphs.ring(8), noise, 3).epsilon()
    assert br.rehearse(br.Averaging(), "butterfly:8", noise, 3).graph.name == "butterfly:8"


@pytest.mark.parametrize(
    "question",
    [
        br.graphs.diameter,
        br.graphs.mixing_time,
        br.graphs.spectral_gap,
        br.graphs.second_eigenvalue,
    ],
    ids=lambda one: one.__name__,
)
def test_questions_about_a_graph_take_a_string(question):
    assert question("torus:3x4") == question(br.graphs.torus(3, 4))
    with pytest.raises(
        br.ConfigError, match="one fixed graph is needed here, found the sequence butterfly:8"
    ):
        question("butterfly:8")
    with pytest.raises(br.ConfigError, match="unknown graph family"):
        question("tours:3x4")


def test_presets_sequences_files_and_checks_take_a_string(tmp_path):
    assert br.muffliato("ring:8", 1.0) == br.muffliato(br.graphs.ring(8), 1.0)
    assert br.randomized_muffliato("ring:8", 1.0) == br.randomized_muffliato(br.graphs.ring(8), 1.0)
    assert br.butterfly_muffliato("butterfly:8", 1.0).steps == 3
    with pytest.raises(br.ConfigError, match="found the sequence butterfly:8"):
        br.muffliato("butterfly:8", 1.0)
    assert br.graphs.given(["ring:6", "star:6"]).name == "ring:6+star:6"
    assert br.graphs.static("ring:6").at(3).name == "ring:6"
    br.graphs.to_edge_list("ring:6", tmp_path / "ring.txt")
    assert br.graphs.from_edge_list(tmp_path / "ring.txt").edge_count == 6
    check_algorithm(br.Averaging(), "ring:5", steps=2)


def test_attacks_and_audits_take_a_string():
    from bruit.adversary.attacks import (
        accelerated_knowledge,
        all_attackers,
        knowledge,
        reconstructible,
    )
    from bruit.adversary.audits import check_releases

    assert reconstructible("path:4", [0], steps=2).peers.tolist() == [0, 1, 2]
    assert knowledge("butterfly:4", [0], 1).n == 4
    assert accelerated_knowledge("path:4", [0], 2, 1.1).n == 4
    assert np.array_equal(
        all_attackers("ring:5", 2).exposed, all_attackers(br.graphs.ring(5), 2).exposed
    )
    assert len(check_releases(br.Averaging(), "ring:4", br.Gaussian(clip=1.0, sigma=1.0), 2)) > 0
