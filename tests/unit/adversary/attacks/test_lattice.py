"""The lattice attack: exact forms, what LLL finds in floats, and that dithers leave it nothing to
find."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import bruit as br
from bruit.adversary.attacks.lattice import Puzzle, lll
from bruit.adversary.attacks.lattice_forms import NumberFormat, heard_forms
from bruit.adversary.audits.lattice_game.game import Trying, audit_lattice, lattice_check
from bruit.adversary.audits.lattice_game.talk import LatticeTarget
from bruit.commands.cli import app
from bruit.errors import ConfigError
from bruit.graphs import butterfly, from_matrix, graph
from bruit.randomness import Replay

pytest.importorskip("flint")

NOISE = br.Gaussian(clip=0.5, sigma=0.2)


def four_peers():
    """Own link weights: 0-1, 1-2, 1-3; what 3 says reaches 0 in a single message."""
    weights = np.zeros((4, 4))
    for a, b, weight in ((0, 1, 0.25), (1, 2, 0.31830988618379067), (1, 3, 0.051099895069)):
        weights[a, b] = weights[b, a] = weight
    return from_matrix(weights + np.diag(1 - weights.sum(axis=1)), name="four")


def puzzle_of(protocol, observers, dithers="noise"):
    heard = heard_forms(
        protocol.at,
        protocol.graph.n,
        protocol.steps,
        observers,
        protocol.arithmetic,
        protocol.gamma,
    )
    return Puzzle(heard, dithers)


def coins_of(n, k):
    return 0.5 * np.where(np.random.default_rng(k).integers(0, 2, n) == 1, 1.0, -1.0)


@pytest.mark.parametrize(
    "protocol",
    [
        LatticeTarget(
            algorithm=br.Averaging(), graph=four_peers(), mechanism=NOISE, steps=3, numbers="float"
        ),
        LatticeTarget(
            algorithm=br.Chebyshev(gamma=1.25),
            graph=graph("er:12,c=1,seed=4"),
            mechanism=NOISE,
            steps=4,
            numbers="float",
        ),
        LatticeTarget(
            algorithm=br.Averaging(), graph=butterfly(9), mechanism=NOISE, steps=2, numbers="float"
        ),
        LatticeTarget(
            algorithm=br.Averaging(),
            graph=graph("er:12,c=1,seed=4"),
            mechanism=NOISE,
            steps=4,
            numbers="dithered",
            bits=30,
        ),
        LatticeTarget(
            algorithm=br.Chebyshev(gamma=1.25),
            graph=graph("er:12,c=1,seed=4"),
            mechanism=NOISE,
            steps=4,
            numbers="dithered",
            bits=30,
        ),
    ],
    ids=["four", "chebyshev", "butterfly", "dithered", "dithered-chebyshev"],
)
def test_forms_give_the_messages_back_up_to_rounding(protocol):
    """Values and dithers put into the forms leave errors of the size foreseen, in all of 20
    trials."""
    n, gaps = protocol.graph.n, []
    heard = puzzle_of(protocol, [0]).heard
    for k in range(20):
        talk = protocol.talk([0], coins_of(n, k), 1, k)
        grid = protocol.arithmetic.grid
        dithers = (
            np.rint(
                protocol.arithmetic.dither
                * Replay(1).normal("lattice dither", np.arange(n), k, count=protocol.steps).T
                / grid
            )
            * grid
        )
        for row, other, right, error in zip(
            heard.of_values, heard.of_dithers, heard.right(talk.said), heard.error, strict=True
        ):
            made = sum(c * Fraction(talk.values[u]) for c, u in zip(row, heard.peers, strict=True))
            made += sum(
                c * Fraction(dithers[key]) for c, key in zip(other, heard.dithers, strict=True)
            )
            gaps.append(float(right - made) / error**0.5 if error else float(right != made))
    assert np.abs(gaps).max() < 12
    assert 0.1 < np.sqrt(np.mean(np.square(gaps))) < 3


def test_reduction_keeps_the_lattice_and_finds_its_short_vectors():
    short, kept = lll([[1, 0, 10**6], [0, 1, 10**6 + 1]])
    assert sorted(map(abs, short)) == [1, 1, 1]
    assert abs(short[0] * kept[1] - short[1] * kept[0]) == 1


def test_the_finding_one_message_gives_a_noisy_value_away():
    """Float mixing, values on sigma 2^-20: peer 3 is found exactly, though its printed loss is
    0.025."""
    found = audit_lattice(
        LatticeTarget(
            algorithm=br.Averaging(), graph=four_peers(), mechanism=NOISE, steps=2, numbers="float"
        ),
        [0],
        Trying(trials=60, of=3),
    )
    (guess,) = found.guesses
    assert (guess.found, guess.mistaken) == (60, 0)
    assert guess.loss == pytest.approx(0.0251, abs=1e-4)
    assert guess.epsilon == pytest.approx(3.76, abs=0.01)
    assert found.whole_release == pytest.approx(35.6, abs=0.05)
    assert guess.right >= 55
    assert guess.bound == pytest.approx(0.654, abs=1e-3)
    assert found.refuted
    assert found.verdict == "refutes the printed epsilon"


@pytest.mark.parametrize(("bits", "dither_bits"), [(20, 10), (40, 10), (40, 4), (20, 20)])
def test_dithered_whole_numbers_do_not(bits, dither_bits):
    """60 runs each; refuting a true claim has probability 1e-6, and a loss of 1 would be seen
    nearly always."""
    protocol = LatticeTarget(
        algorithm=br.Averaging(),
        graph=four_peers(),
        mechanism=NOISE,
        steps=2,
        numbers="dithered",
        bits=bits,
        dither_bits=dither_bits,
    )
    found = audit_lattice(protocol, [0], Trying(trials=60, of=3))
    assert found.found == 0
    assert not found.refuted


@pytest.mark.parametrize(
    ("numbers", "dithers", "unknowns", "found"),
    [
        ("float", "noise", 11, 45),
        ("dithered", "noise", 11, 0),
        ("dithered", "unknown", 52, 0),
    ],
)
def test_twelve_peers_are_found_in_floats_and_stay_hidden_with_dithers(
    numbers, dithers, unknowns, found
):
    protocol = LatticeTarget(
        algorithm=br.Averaging(),
        graph=graph("er:12,c=1,seed=2"),
        mechanism=NOISE,
        steps=5,
        numbers=numbers,
        bits=20,
    )
    made = audit_lattice(protocol, [0], Trying(trials=5, dithers=dithers))
    assert (len(made.hidden), made.unknowns, made.found) == (9, unknowns, found)


def test_many_values_at_default_weights():
    """er:24 after seven rounds: all twenty hidden values from 21 messages; with dithers none."""
    space = graph("er:24,c=1,seed=2")
    floats = audit_lattice(
        LatticeTarget(
            algorithm=br.Averaging(), graph=space, mechanism=NOISE, steps=7, numbers="float"
        ),
        [0],
        Trying(trials=3),
    )
    assert (floats.found, floats.everybody, len(floats.hidden)) == (60, 3, 20)
    assert not floats.refuted
    assert "so few trials could not" in floats.verdict
    dithered = audit_lattice(
        LatticeTarget(
            algorithm=br.Averaging(),
            graph=space,
            mechanism=NOISE,
            steps=7,
            numbers="dithered",
            bits=40,
        ),
        [0],
        Trying(trials=2),
    )
    assert dithered.found == 0


def test_twins_cannot_be_told_apart():
    """Two leaves with one weight: only their sum is known, so neither value is called
    determined."""
    found = audit_lattice(
        LatticeTarget(
            algorithm=br.Averaging(),
            graph=graph("star:4"),
            mechanism=NOISE,
            steps=3,
            numbers="float",
        ),
        [1],
        Trying(trials=20),
    )
    assert found.hidden == (2, 3)
    assert [guess.sure + guess.mistaken for guess in found.guesses] == [0, 0]


def test_the_attack_looks_only_at_what_its_peer_said_and_heard():
    protocol = LatticeTarget(
        algorithm=br.Averaging(), graph=four_peers(), mechanism=NOISE, steps=2, numbers="float"
    )
    puzzle, talk = puzzle_of(protocol, [0]), protocol.talk([0], coins_of(4, 0), 0, 0)
    unheard = talk.said.copy()
    unheard[:, [2, 3]] = np.nan
    assert np.array_equal(puzzle.solve(unheard).values, puzzle.solve(talk.said).values)
    assert puzzle.solve(unheard).fits


def test_messages_that_no_values_explain_do_not_fit():
    protocol = LatticeTarget(
        algorithm=br.Averaging(), graph=four_peers(), mechanism=NOISE, steps=2, numbers="float"
    )
    puzzle, talk = puzzle_of(protocol, [0]), protocol.talk([0], coins_of(4, 0), 0, 0)
    wrong = talk.said.copy()
    wrong[1, 1] += 1e6
    solved = puzzle.solve(wrong)
    assert not solved.fits
    assert not solved.determined.any()


def test_fewer_messages_find_less():
    space = graph("er:24,c=1,seed=2")
    found = audit_lattice(
        LatticeTarget(
            algorithm=br.Averaging(), graph=space, mechanism=NOISE, steps=7, numbers="float"
        ),
        [0],
        Trying(trials=2, messages=9),
    )
    assert found.messages == 9
    assert found.found < 20


def test_what_the_package_sends_is_not_refuted():
    assert not lattice_check(
        br.Averaging(), four_peers(), NOISE, 2, [0], Trying(trials=60, of=3)
    ).refuted


def test_the_check_of_an_audit_says_why_it_was_not_tried():
    name, refuted, sentence = lattice_check(br.GossipSGD(rate=0.1), graph("ring:4"), NOISE, 2, [0])
    assert (name, refuted) == ("lattice attack", False)
    assert sentence.startswith(
        "not tried: the lattice attack takes messages of averaging or chebyshev apart"
    )
    large = lattice_check(br.Averaging(), graph("complete:60"), NOISE, 2, [0])
    assert "59 unknown numbers, at most 40" in large.sentence
    assert "found none" in lattice_check(br.Averaging(), graph("ring:4"), None, 2, [0]).sentence
    nobody = lattice_check(br.Averaging(), graph("ring:4"), NOISE, 8, [0])
    assert "nothing to attack" in nobody.sentence or "does not refute" in nobody.sentence


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: NumberFormat(0.0, 0.5, 0.2), "plain floats have none"),
        (lambda: NumberFormat(0.1, 0.5, 0.0), "noise above 0"),
        (
            lambda: LatticeTarget(
                algorithm=br.Averaging(),
                graph=graph("ring:4"),
                mechanism=NOISE,
                steps=2,
                numbers="exact",
            ),
            "numbers are sent, float, dithered",
        ),
        (
            lambda: LatticeTarget(
                algorithm=br.Averaging(),
                graph=graph("ring:4"),
                mechanism=NOISE,
                steps=2,
                numbers="float",
                bits=60,
            ),
            "takes 0 to 48 bits",
        ),
        (lambda: Trying(trials=0), "tried once or more"),
        (
            lambda: audit_lattice(
                LatticeTarget(
                    algorithm=br.Averaging(),
                    graph=four_peers(),
                    mechanism=NOISE,
                    steps=2,
                    numbers="float",
                ),
                [0],
                Trying(of=1),
            ),
            "exposes its value by algebra",
        ),
        (
            lambda: audit_lattice(
                LatticeTarget(
                    algorithm=br.Averaging(),
                    graph=graph("path:9"),
                    mechanism=NOISE,
                    steps=2,
                    numbers="float",
                ),
                [0],
                Trying(of=8),
            ),
            "nothing of peer 8 reaches",
        ),
    ],
)
def test_bad_questions_get_one_sentence(make, text):
    with pytest.raises(ConfigError, match=text):
        make()


def test_without_flint_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(ConfigError, match=r"install bruit\[attack\]"):
        lll([[1]])


def test_the_command_exits_with_1_when_it_refutes(tmp_path):
    edges = tmp_path / "four.txt"
    edges.write_text("0 1 0.25\n1 2 0.31830988618379067\n1 3 0.051099895069\n")
    asked = [
        "attack",
        "lattice",
        "--graph",
        f"file:{edges}",
        "--steps",
        "2",
        "--sigma",
        "0.2",
        "--clip",
        "0.5",
        "--seen-by",
        "0",
        "--of",
        "3",
        "--trials",
        "60",
    ]
    broken = CliRunner().invoke(app, [*asked, "--numbers", "float"])
    assert broken.exit_code == 1
    assert "60 of 60 values found exactly" in broken.output
    assert "the lattice attack refutes the printed epsilon" in broken.output
    sound = CliRunner().invoke(app, [*asked, "--numbers", "dithered", "--json"])
    assert sound.exit_code == 0
    assert '"refuted": false' in sound.output


def test_a_run_folder_or_an_experiment_says_its_protocol(tmp_path):
    run = br.run(
        br.Averaging(), graph("er:12,c=1,seed=4"), br.tasks.Mean.uniform(12), privacy=NOISE, steps=3
    )
    run.save(tmp_path / "mine.run")
    asked = [
        "attack",
        "lattice",
        str(tmp_path / "mine.run"),
        "--seen-by",
        "0",
        "--trials",
        "2",
        "--numbers",
        "dithered",
    ]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0
    assert "averaging on er:12,c=1,seed=4, 3 steps" in found.output
    both = CliRunner().invoke(app, [*asked, "--graph", "ring:4"])
    assert isinstance(both.exception, ConfigError)
