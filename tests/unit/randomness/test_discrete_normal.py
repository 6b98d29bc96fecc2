"""The exact sampler of discrete normal numbers: intervals against mpmath, integers against floats
against compiled."""

from itertools import chain, repeat

import numpy as np
import pytest
from mpmath import exp, mp, mpf

from bruit.errors import ConfigError
from bruit.randomness import Replay
from bruit.randomness import compiled as noise
from bruit.randomness.discrete_normal import (
    BLOCKS,
    LAST,
    _compiled,
    _depth,
    _stream,
    discrete_normals,
    histogram,
    sample,
)
from bruit.randomness.exact_coins import below_exponential, coin, exp_interval

ADDRESS = (np.array([3]), np.array([2]), 1, np.array([0]))
PARAMETERS = [0.3, 1.0, 2.7, 16.0, 50.0, 2.0**20 + 0.1, 2.0**40, 2.0**46.3]


@pytest.mark.parametrize("bits", [64, 128, 256])
@pytest.mark.parametrize(
    ("numerator", "denominator"),
    [
        (0, 1),
        (1, 1),
        (3, 7),
        (500, 3),
        (10**30 + 1, 3 * 10**29),
        (1, 10**40),
        (123456, 7),
    ],
)
def test_the_interval_holds_the_exponential(numerator, denominator, bits):
    mp.prec = 1000
    low, high = exp_interval(numerator, denominator, bits)
    assert low <= exp(-mpf(numerator) / denominator) * mpf(2) ** bits <= high
    assert high - low <= 2


@pytest.mark.parametrize("s", PARAMETERS)
def test_heights_are_high_enough_and_sure_numbers_are_sure(s):
    """In exact arithmetic: A f(j w) <= c_j, and U below sure / 2**bits is below A f(x) / c_j
    everywhere in block j."""
    mp.prec = 400
    table = histogram(s)
    assert sum(map(int, table.heights)) < 2**64
    assert BLOCKS << table.shift >= 16 * s
    for j in range(0, BLOCKS, 7):
        begin, end = (exp(-((mpf(k) * 2**table.shift / mpf(s)) ** 2) / 2) for k in (j, j + 1))
        assert table.unit * begin <= int(table.heights[j])
        assert mpf(int(table.sure[j])) / mpf(2) ** table.bits <= table.unit * end / int(
            table.heights[j]
        )


@pytest.mark.parametrize("s", PARAMETERS)
def test_blocks_beyond_the_table_are_high_enough_and_share_one_place(s):
    """A f(j w) <= 2**-a_j for all j >= 512, which add up to 2**-98; the table leaves the last place
    of word 0 free."""
    mp.prec = 400
    table = histogram(s)
    assert int(table.ends[-1]) < LAST
    heights = [mpf(2) ** -_depth(j) for j in range(BLOCKS, BLOCKS + 400)]
    assert sum(heights) < mpf(2) ** -98
    for j, height in zip(range(BLOCKS, BLOCKS + 400), heights, strict=True):
        assert table.unit * exp(-((mpf(j) * 2**table.shift / mpf(s)) ** 2) / 2) <= height


@pytest.mark.parametrize("block", [0, 1, 2, 3, 7, 40])
def test_the_law_has_no_end(block):
    """Data 15 deviations apart were told apart by noise that ended 16 deviations out (delta was
    0.16 at every epsilon, and 1e-6 was printed at 183). Words that choose a block beyond the table:
    the number is there, in integers; floats leave the row to them."""
    table = histogram(2.0**40)
    pair, second = divmod(block, 2)
    choice = 1 << (29 - pair) | second << (28 - pair)
    words = [LAST, 0, choice, 3, *[0] * 40]  # the number 3 of the block, and U is nearly 0
    assert sample(iter(words), table) == (BLOCKS + block << table.shift) + 3
    args = (table.s, table.shift, float(table.unit), table.heights, table.ends, table.sure, 1.0)
    tried = np.array([words[:6]], np.uint64)
    assert noise.discrete_rows(tried, np.empty((1, 1)), *args).tolist() == [noise.UNSURE]


def test_hardly_any_words_choose_a_block_beyond_the_table():
    """The next word must be 0 and 34 bits more; else the try is over after its two words, as in
    floats."""
    table = histogram(5.0)
    args = (table.s, table.shift, float(table.unit), table.heights, table.ends, table.sure, 1.0)
    for second in (1, 2**63):
        words = [LAST, second, 0, 0]  # 0, 0 is the number 0
        assert sample(iter(words), table) == 0
        assert noise.discrete_rows(
            np.array([words], np.uint64), np.empty((1, 1)), *args
        ).tolist() == [noise.DONE]
    assert sample(iter([LAST, 0, 2**30, 0, 0]), table) == 0


@pytest.mark.parametrize("s", PARAMETERS)
def test_integers_and_compiled_floats_decide_alike(s):
    compiled = discrete_normals(Replay(8), "noise", np.arange(20), 2, 1, 40, s)
    stream = _stream(Replay(8), "noise", ADDRESS, 64)
    assert [sample(stream, histogram(s)) for _ in range(40)] == compiled[3].tolist()


def test_a_row_does_not_depend_on_its_batch_and_lies_on_its_grid():
    alone = discrete_normals(Replay(8), "noise", np.array([3]), 2, 1, 40, 2.0**40, grid=2.0**-41)
    batch = discrete_normals(Replay(8), "noise", np.arange(999), 2, 1, 40, 2.0**40, grid=2.0**-41)
    assert (alone[0] == batch[3]).all()
    assert (np.mod(batch, 2.0**-41) == 0).all()
    assert batch.std() == pytest.approx(0.5, rel=0.02)


def test_rows_short_of_words_start_again_and_give_the_same_numbers():
    out = np.empty((1, 30))
    assert _compiled(Replay(8), "noise", ADDRESS, histogram(5.0), out, count=8).size == 0
    stream = _stream(Replay(8), "noise", ADDRESS, 64)
    assert [sample(stream, histogram(5.0)) for _ in range(30)] == out[0].tolist()


def test_a_number_too_close_to_call_is_left_to_the_integers():
    """U has 63 bits at s = 5, and its first bits are set to those of A f(7) / c_7: only further
    words decide."""
    table = histogram(5.0)
    mp.prec = 300
    edge = int(mpf(2) ** 63 * (table.unit * exp(-mpf(49) / 50) / int(table.heights[7])))
    words = np.array([int(table.ends[6]), edge << 1, 0, 0], np.uint64)
    rows = np.empty((1, 1))
    args = (table.s, table.shift, float(table.unit), table.heights, table.ends, table.sure, 1.0)
    assert noise.discrete_rows(words[None], rows, *args).tolist() == [noise.UNSURE]
    assert sample(chain(words[:2].tolist(), [0], repeat(0)), table) == 7
    kept = chain(words[:2].tolist(), [2**64 - 1], [0, 0], repeat(0))
    assert sample(kept, table) == 0  # tails that time: the next try, of zeros, is kept


@pytest.mark.parametrize(("second", "heads"), [(0, True), (2**64 - 1, False)])
def test_an_undecided_coin_reads_more_words(second, heads):
    """The first word is floor(2**64 / e), so it cannot decide the coin of 1 / e: the next word
    does."""
    mp.prec = 300
    words = iter([int(mpf(2) ** 64 / exp(1)), second, 77])
    assert coin(words, 1, 1) is heads
    assert next(words) == 77


def test_the_exact_comparison_with_factor_and_scale():
    assert below_exponential(1, 2, 3, 0, 1, iter([]), scale=1)  # [1/4, 1/2) < 3
    assert not below_exponential(3, 2, 1, 0, 1, iter([0]), scale=2)  # 2 [3/4, 1) >= 1


@pytest.mark.parametrize("s", [0.0, -1.0, 2.0**48, float("nan")])
def test_parameters_out_of_range_are_refused(s):
    with pytest.raises(ConfigError, match=r"between 0 and 2\*\*47"):
        histogram(s)
