"""Proofs about committed bits: true statements pass, anything else does not (perso:GOPA-10, range
and bits)."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from bruit.errors import ConfigError, RemoteProtocolError
from bruit.statistics.average.board.pair_secret import is_shared, show
from bruit.statistics.average.proofs.bit_proof import (
    BitProof,
    Statement,
    Weighted,
    bit_equations,
    prove_bits,
    range_bits,
    range_weights,
)
from bruit.statistics.average.proofs.equations import Equation, all_hold, failing
from bruit.statistics.average.proofs.group import ORDER, generator, random_scalar
from bruit.statistics.average.proofs.multi_scalar import table, weighted_sum
from bruit.statistics.average.proofs.pedersen import (
    bit_commitment,
    blinding_base,
    commitment,
    vector_bases,
)
from bruit.statistics.average.proofs.transcript import Transcript

N, TOP = 8, 5


def proven(vector, value=None, coins=None, domain=b"test"):
    """Statement and proof about a vector: three bits of a range 0..5, five coins."""
    weights = range_weights(TOP)
    signs = tuple(coins or (1, -1, 1, 1, -1))
    known = [
        sum(w * int(b) for w, b in zip(ws, part, strict=True))
        for ws, part in ((weights, vector[:3]), (signs, vector[3:]))
    ]
    r, s, alpha = (random_scalar() for _ in range(3))
    left, right = vector_bases(N)
    rows = np.concatenate((left, right, table([blinding_base()])))
    bits = weighted_sum(rows, [*(int(b) for b in vector), *(int(b) - 1 for b in vector), alpha])
    committed = (commitment(known[0] if value is None else value, r), commitment(known[1], s))
    statement = Statement(
        N, bits, (Weighted(committed[0], 0, weights), Weighted(committed[1], 3, signs))
    )
    return statement, prove_bits(statement, np.array(vector), alpha, [r, s], Transcript(domain))


def holds(statement, proof, domain=b"test"):
    return all_hold(bit_equations(statement, proof, Transcript(domain)))


BITS = [1, 0, 1, 0, 1, 1, 0, 1]


@pytest.mark.parametrize("vector", [BITS, [0] * 8, [1] * 8])
def test_true_statements_pass_after_a_journey_through_bytes(vector):
    statement, proof = proven(vector)
    assert holds(statement, BitProof.decoded(proof.encoded(), N))
    assert (
        len(proof.encoded()) == 33 * (3 + 2 * 3) + 32 * 5
    )  # 2 log2(N) + 3 points (A is not counted), 5 scalars


@pytest.mark.parametrize("vector", [[2, *BITS[1:]], [*BITS[:7], -1], [ORDER // 2 + 1, *BITS[1:]]])
def test_what_is_no_bit_does_not(vector):
    statement, proof = proven(vector)
    assert not holds(statement, proof)


def test_a_wrong_sum_does_not():
    statement, proof = proven(BITS, value=6)  # 1, 0, 1 is 1 + 0 + 2
    assert not holds(statement, proof)


def test_every_part_of_the_statement_is_hashed():
    statement, proof = proven(BITS)
    ranges, coins = statement.sums
    others = [
        replace(statement, bits=statement.bits + generator()),
        replace(statement, sums=(coins, ranges)),
        replace(statement, sums=(replace(ranges, value=ranges.value + generator()), coins)),
        replace(statement, sums=(ranges, replace(coins, weights=(1, 1, 1, 1, -1)))),
        replace(statement, sums=(ranges, replace(coins, start=2))),
        replace(statement, sums=(ranges,)),
    ]
    assert holds(statement, proof)
    assert not holds(statement, proof, b"another run")
    assert not any(holds(other, proof) for other in others)


def test_every_part_of_the_proof_counts():
    statement, proof = proven(BITS)
    data = proof.encoded()
    scalars = ("t", "t_blinding", "blinding")
    changed = [replace(proof, **{name: getattr(proof, name) + 1}) for name in scalars]
    changed += [
        replace(proof, **{name: getattr(proof, name) + generator()}) for name in ("s", "t1", "t2")
    ]
    inner = proof.inner
    changed += [
        replace(proof, inner=replace(inner, **{name: getattr(inner, name) + 1}))
        for name in ("a", "b")
    ]
    swapped = replace(inner, left=inner.right, right=inner.left)
    assert not any(holds(statement, other) for other in (*changed, replace(proof, inner=swapped)))
    with pytest.raises(
        RemoteProtocolError,
        match=f"a proof about 8 bits has {len(data)} bytes, found {len(data) - 1}",
    ):
        BitProof.decoded(data[:-1], N)


@pytest.mark.parametrize("top", [1, 2, 3, 5, 10, 31, 32, 33])
def test_weights_reach_the_range_and_nothing_else(top):
    weights = range_weights(top)
    reached = {
        sum(w for w, b in zip(weights, bits, strict=True) if b)
        for bits in product((0, 1), repeat=len(weights))
    }
    assert reached == set(range(top + 1))
    for value in range(top + 1):
        assert sum(w for w, b in zip(weights, range_bits(value, top), strict=True) if b) == value


def test_a_batch_finds_who_is_wrong():
    groups = []
    for k in range(6):
        statement, proof = proven(BITS, value=None if k not in (1, 4) else 0)
        groups.append(bit_equations(statement, proof, Transcript(b"test")))
    calls = []

    def counted(equations):
        calls.append(len(equations))
        return all_hold(equations)

    assert failing(groups, counted) == [1, 4]
    assert calls[0] == 12
    assert failing(groups[:1]) == []


def test_errors_that_cancel_are_seen():
    """Why coefficients are random: two false equations whose sum is true."""
    wrong = [Equation(base=1), Equation(base=-1)]
    assert all_hold(wrong, coefficients=[1, 1])
    assert not all_hold(wrong)


def test_the_batch_is_one_sum(monkeypatch):
    import bruit.statistics.average.proofs.equations as module

    calls = []
    monkeypatch.setattr(
        module, "weighted_sum", lambda rows, by: calls.append(len(rows)) or weighted_sum(rows, by)
    )
    both = [e for _ in range(3) for e in bit_equations(*proven(BITS), Transcript(b"test"))]
    assert all_hold(both)
    assert calls == [3 * (2 + 2 + 2 + 6) + 3 + 2 * N]


def test_shared_points_are_proven():
    """Chaum-Pedersen: the point two keys share, for this run and these keys only."""
    a, b = random_scalar(), random_scalar()
    mine, other = a * generator(), b * generator()
    shown = show(b"run", a, mine, other)
    assert shown.shared == b * mine
    assert is_shared(b"run", shown, mine, other)
    assert not is_shared(b"other run", shown, mine, other)
    assert not is_shared(b"run", shown, other, mine)
    assert not is_shared(b"run", replace(shown, shared=shown.shared + generator()), mine, other)
    assert not is_shared(b"run", replace(shown, response=shown.response + 1), mine, other)
    lying = show(b"run", a + 1, mine, other)
    assert not is_shared(b"run", lying, mine, other)


def test_bad_statements_are_refused():
    point = bit_commitment(np.array([True, False]), 1)
    with pytest.raises(ConfigError, match="a power of two of them, found 3"):
        Statement(3, point, ())
    with pytest.raises(ConfigError, match="beyond the 2 bits"):
        Statement(2, point, (Weighted(point, 1, (1, 1)),))
    with pytest.raises(ConfigError, match="top >= 1, found 0"):
        range_weights(0)


def test_transcripts_keep_pieces_apart():
    def said(*pieces):
        made = Transcript(b"d")
        for label, data in pieces:
            made.append(label, data)
        return made.challenge(b"c")

    variants = [
        [(b"a", b"bc")],
        [(b"ab", b"c")],
        [(b"a", b"b"), (b"", b"c")],
        [(b"a", b"b"), (b"c", b"")],
        [],
    ]
    assert len({said(*pieces) for pieces in variants}) == len(variants)
    one = Transcript(b"d")
    assert said() == one.challenge(b"c") != one.challenge(b"c")
