"""Noise drawn from bits: what each string of bits becomes, and the law that follows."""

import ast
import itertools
import math
import os
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare

import dpsyn_sql.private.measure.drawing as drawing
from dpsyn_sql.errors import InternalError
from dpsyn_sql.private.measure.drawing import drawn
from dpsyn_sql.private.measure.laws import Law, block_floors, gaussian_law, laplace_law
from dpsyn_sql.private.measure.noise import gaussian_mechanism, laplace_mechanism

MEASURE = Path(drawing.__file__).parent
LAWS = [gaussian_law(0.4), gaussian_law(1.0), laplace_law(2.5), laplace_law(0.3)]
WIDE_LAWS = [gaussian_law(64.0), gaussian_law(70.0), gaussian_law(1e5), laplace_law(32.0), laplace_law(1e5)]


class NoMoreBitsError(Exception):
    pass


class Script:
    """Bits that were written down: of each call its words, or one whole number of 64 bits. It ends."""

    def __init__(self, *answers):
        self.left, self.asked = list(answers), []

    def __call__(self, number):
        self.asked.append(number)
        if not self.left:
            raise NoMoreBitsError
        answer = self.left.pop(0)
        if isinstance(answer, int):
            return answer.to_bytes(number, "big")
        return np.array(answer, dtype=np.uint32).tobytes()


def blocks_of(law, words, *more):
    return drawing._blocks(law, drawing._table(law), np.array(words, dtype=np.uint32), Script(*more)).tolist()


def probabilities(law, magnitudes=400):
    """P[|Z| = m] for m = 0, 1, ... in decimals; the last is all that follow."""
    with localcontext(prec=60):
        weights = []
        for m in range(magnitudes):
            exponent = law.exponent(m)
            weights.append((-Decimal(exponent.numerator) / exponent.denominator).exp() * (1 if m == 0 else 2))
        total = sum(weights)
        return [weight / total for weight in weights]


@pytest.mark.parametrize("law", LAWS)
def test_every_string_of_fourteen_bits_becomes_the_number_whose_interval_it_lies_in(law, monkeypatch):
    """All strings of 6 bits and, where these do not decide, all that continue them by 8: each that is decided
    lies between the exact probabilities of its number, and each that is not holds one of these."""
    monkeypatch.setattr(drawing, "_FIRST", 6)
    monkeypatch.setattr(drawing, "_MORE", 8)
    drawing._table.cache_clear()
    edges = list(itertools.accumulate(probabilities(law)))
    decided = undecided = 0
    for word in range(64):
        for more in range(256):
            low, high = Decimal(word * 256 + more) / 2**14, Decimal(word * 256 + more + 1) / 2**14
            try:
                (found,) = blocks_of(law, [word], more)
            except NoMoreBitsError:
                undecided += 1
                assert any(low <= edge < high for edge in edges)
            else:
                decided += 1
                assert high <= edges[found] and (found == 0 or edges[found - 1] <= low)
    drawing._table.cache_clear()
    assert decided + undecided == 2**14
    assert undecided <= len(block_floors(law, 14))


@pytest.mark.parametrize("law", [*LAWS, *WIDE_LAWS])
def test_words_beside_every_entry_of_a_table(law):
    """One below an entry is the number before it, one above the number after it; itself it needs more bits."""
    floors = block_floors(law, 32)
    for index, floor in enumerate(floors[:-1]):
        around = [floor - 1, floor + 1]
        if not {floor - 1, floor, floor + 1} & (set(floors) - {floor}) and floors.count(floor) == 1:
            assert blocks_of(law, around) == [index, index + 1]
        with pytest.raises(NoMoreBitsError):
            blocks_of(law, [floor])


@pytest.mark.parametrize("law", [*LAWS, *WIDE_LAWS])
def test_more_bits_decide_at_the_entry_of_a_longer_table(law):
    floors, longer = block_floors(law, 32), block_floors(law, 96)
    for index in sorted({0, len(floors) // 3, len(floors) // 2}):
        word, rest = divmod(longer[index], 2**64)
        assert word == floors[index]
        if not 0 < rest < 2**64 - 1 or floors.count(word) > 1:
            continue
        assert blocks_of(law, [word], rest - 1) == [index]
        assert blocks_of(law, [word], rest + 1) == [index + 1]
        once_more = block_floors(law, 160)[index] % 2**64
        assert blocks_of(law, [word], rest, once_more - 1) == [index]
        assert blocks_of(law, [word], rest, once_more + 1) == [index + 1]


@pytest.mark.parametrize("law", [gaussian_law(1.0), gaussian_law(1e5), laplace_law(1e5)])
def test_the_tail_has_no_end(law):
    """U that begins with ever more ones: each further word of ones is further out, without a limit."""
    ones, before = 2**64 - 1, len(block_floors(law, 32)) - 2
    for words in range(4):
        (found,) = blocks_of(law, [2**32 - 1], *[ones] * words, 2**63)
        assert found > before
        before = found


@given(st.sampled_from(WIDE_LAWS), st.integers(0, drawing._MOST_BLOCKS - 1), st.integers(0, 2**32 - 1))
def test_bounds_in_words_hold_the_exponential_function(law, block, fraction):
    """x is that of a place ``fraction`` of a block, whether or not it has so many."""
    square, line = law.blocks
    f = Fraction(fraction, 2**32)
    x = f * (square * (2 * block + f) + line)
    with localcontext(prec=60):
        true = (-Decimal(x.numerator) / x.denominator).exp() * 2**32
    ((low,), (high,)) = drawing._exp_bounds(
        drawing._table(law), np.array([block], dtype=np.uint64), np.array([fraction], dtype=np.uint64)
    )
    assert 0 <= int(low) <= true <= int(high)
    assert int(high) - int(low) <= 12 + float(x) ** 3 * 2**32 * 0.26 + float(x) ** 2 * 2**19


@given(st.fractions(0, 3, max_denominator=10**6), st.integers(-3, 3), st.integers(-(2**64), 2**64))
def test_a_comparison_is_that_of_real_numbers(exponent, beside, further):
    """U = a word and 64 bits, near exp(-x) by less than a word or by less than one unit of all bits."""
    with localcontext(prec=100):
        true = (-Decimal(exponent.numerator) / exponent.denominator).exp() * 2**96
    whole = min(max(0, int(true) + (beside if further % 2 else further)), 2**96 - 1)
    word, more = divmod(whole, 2**64)
    try:
        found = drawing._below(word, exponent, Script(more))
    except NoMoreBitsError:
        assert abs(whole - true) < 2
    else:
        assert found == (whole < true)


@pytest.mark.parametrize("law", WIDE_LAWS)
def test_places_are_kept_as_often_as_their_weight_says(law):
    """Words around the bounds, and those between them: the exact comparison of each."""
    width = 1 << law.doublings
    for block, place in [(0, 0), (0, width - 1), (1, 1), (7, width // 2), (300, width - 1), (700, width - 1)]:
        grown = law.exponent(block * width + place) - law.exponent(block * width)
        with localcontext(prec=60):
            true = (-Decimal(grown.numerator) / grown.denominator).exp() * 2**32
        words = [w for w in (0, int(true) - 2000, int(true) - 1, int(true) + 1, 2**32 - 1) if 0 <= w < 2**32]
        many = np.full(len(words), block), np.full(len(words), place), np.array(words, dtype=np.uint32)
        kept = drawing._kept(law, drawing._table(law), *many, Script())
        assert kept.tolist() == [word + 1 <= true for word in words]


@pytest.mark.parametrize("law", [gaussian_law(100.0), laplace_law(100.0)])
def test_a_proposal_is_a_block_a_place_a_sign_and_a_look_at_the_weight(law):
    """Three words, of which the second holds place and sign; zero with a minus and what is too heavy are left
    out, and the next words are proposals of their own."""
    second = block_floors(law, 32)[0] + 1
    width, place = 1 << law.doublings, 1 << (32 - law.doublings)
    blocks = [second, second, 0, 0, second]
    places_and_signs = [0, place + 1, 1, 0, (width - 1) * place]
    weights = [0, 0, 0, 0, 2**32 - 1]
    script = Script(blocks + places_and_signs + weights, [second, 0, place, 2 * place - 1, 5, 5])
    assert drawn(law, 5, script).tolist() == [width, -(width + 1), 0, width + 1, -1]
    assert script.asked == [4 * 15, 4 * 6]


@pytest.mark.parametrize("law", LAWS)
def test_small_scales_need_two_words_and_refuse_nothing(law):
    words = np.linspace(5, 2**32 - 2**8, 99).astype(np.uint32).tolist()
    positive = drawn(law, 99, Script([*words, *[2] * 99]))
    assert (positive >= 0).all() and positive.any()
    assert drawn(law, 99, Script([*words, *[1] * 99])).tolist() == (-positive).tolist()


@pytest.mark.parametrize("law", [gaussian_law(1.0), gaussian_law(300.0), laplace_law(300.0)])
def test_every_byte_is_fresh_and_used_once(law):
    """Each byte that was given out is a word of one proposal: their number is that of the proposals."""
    given = []

    def bits(number):
        given.append(os.urandom(number))
        return given[-1]

    number = 3 * drawing._AT_ONCE + 17
    noise = drawn(law, number, bits)
    words = 2 if law.doublings == 0 else 3
    asked = [len(one) for one in given if len(one) > 8]
    assert asked[:3] == [4 * words * drawing._AT_ONCE] * 3
    assert sum(asked) < 4 * words * number * (1.2 if words == 3 else 1.0001)
    assert len(noise) == number and noise.dtype == np.int64


def test_a_block_beyond_int64_is_an_error_and_wraps_nowhere(monkeypatch):
    class Endless:
        """A table whose first 2^40 entries every U reaches."""

        def __len__(self):
            return 2**40

        def __getitem__(self, place):
            return -1

    monkeypatch.setattr(drawing, "block_floors", lambda law, bits: Endless())
    law = laplace_law(2.0**36 - 1)
    with pytest.raises(InternalError, match="64 bits"):
        drawing._block(law, 5, Script(5))
    assert drawing._block(laplace_law(2.0), 5, Script(5)) == 2**40


def test_a_source_that_fails_or_gives_too_little_is_an_error():
    def broken(number):
        raise OSError("no entropy")

    with pytest.raises(OSError, match="no entropy"):
        drawn(gaussian_law(3.0), 10, broken)
    with pytest.raises(ValueError, match="reshape"):
        drawn(gaussian_law(3.0), 10, lambda number: os.urandom(number - 4))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts processes in other ways")
def test_a_forked_process_draws_noise_of_its_own():
    law = gaussian_law(1e6)
    drawn(law, 10)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, drawn(law, 100).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    other = np.frombuffer(os.read(reader, 800), dtype=np.int64)
    assert len(other) == 100 and (other != drawn(law, 100)).sum() > 90


def law_of(name, scale):
    return {"gaussian": gaussian_law, "laplace": laplace_law}[name](scale)


def check(noise, law, reach):
    """Chi-square of every value from -reach to reach and of both tails, against exact weights."""
    mass = np.array([math.exp(-float(law.exponent(abs(z)))) for z in range(-30 * reach, 30 * reach + 1)])
    mass /= mass.sum()
    start = 29 * reach
    inner = mass[start : len(mass) - start]
    expected = np.array([mass[:start].sum(), *inner, mass[len(mass) - start :].sum()])
    observed = np.bincount(np.clip(noise, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    assert chisquare(observed, len(noise) * expected / expected.sum()).pvalue > 1e-7


@pytest.mark.parametrize(
    ("name", "scale", "reach"),
    [
        ("gaussian", 0.4, 1),
        ("gaussian", 5.0, 15),
        ("gaussian", 63.9, 150),
        ("gaussian", 64.0, 150),
        ("gaussian", 150.0, 400),
        ("laplace", 0.5, 4),
        ("laplace", 31.9, 120),
        ("laplace", 32.0, 120),
        ("laplace", 90.0, 300),
    ],
)
def test_chi_square_of_every_value(name, scale, reach):
    law, draws = law_of(name, scale), 400_000 if scale >= 0.5 else 4_000_000  # 14 of them in either tail
    check(drawn(law, draws), law, reach)


@pytest.mark.parametrize("law", [gaussian_law(4096.0), laplace_law(4096.0)])
def test_places_of_a_block_have_the_weights_of_the_law(law):
    """Sixteenths of all blocks together: places that are accepted without a look would be alike."""
    width = 1 << law.doublings
    magnitudes = np.arange(200_000)
    mass = np.exp(-(float(law.square) * magnitudes**2 + float(law.line) * magnitudes))
    mass[0] /= 2
    expected = np.bincount(magnitudes % width * 16 // width, weights=mass)
    observed = np.bincount(np.abs(drawn(law, 4_000_000)) % width * 16 // width)
    assert chisquare(observed, 4_000_000 * expected / expected.sum()).pvalue > 1e-7
    assert chisquare(observed).pvalue < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scale", "reach"), [("gaussian", 140.0, 560), ("laplace", 60.0, 600)])
def test_chi_square_of_many_draws(name, scale, reach):
    """A probability that is off by a part in five hundred anywhere within two scales fails this."""
    law = law_of(name, scale)
    check(drawn(law, 50_000_000), law, reach)


@pytest.mark.parametrize("law", [gaussian_law(70.0), laplace_law(40.0)])
def test_the_exact_comparison_alone_draws_the_same_law(law, monkeypatch):
    """With bounds that decide nothing, every place is judged by whole numbers of any length."""
    monkeypatch.setattr(
        drawing,
        "_exp_bounds",
        lambda table, q, f: (np.zeros(len(f), np.uint64), np.full(len(f), 2**33, np.uint64)),
    )
    check(drawn(law, 20_000), law, 60)


@pytest.mark.parametrize("law", [gaussian_law(2.0), laplace_law(1.5)])
def test_tables_of_few_bits_draw_the_same_law(law, monkeypatch):
    """Words of 4 bits, of which most need more: all that was said of 32 holds."""
    monkeypatch.setattr(drawing, "_FIRST", 4)
    drawing._table.cache_clear()

    def bits(number):
        if number == 8:
            return os.urandom(8)
        return (np.frombuffer(os.urandom(number), dtype=np.uint32) & 15).tobytes()

    check(drawn(law, 20_000, bits), law, 5)
    drawing._table.cache_clear()


@pytest.mark.parametrize(("name", "scale"), [("gaussian", 1.0), ("gaussian", 100.0), ("laplace", 50.0)])
def test_opendp_draws_the_same_law(name, scale):
    draws = 40_000
    mechanism = {"gaussian": gaussian_mechanism, "laplace": laplace_mechanism}[name](scale)
    edges = np.unique(np.round(np.linspace(-2.5, 2.5, 40) * scale))
    both = [
        np.bincount(np.searchsorted(edges, noise), minlength=len(edges) + 1)
        for noise in (np.array(mechanism([0] * draws)), drawn(law_of(name, scale), draws))
    ]
    assert chi2_contingency([one for one in np.transpose(both) if one.sum() > 20]).pvalue > 1e-7


@pytest.mark.parametrize("law", [gaussian_law(2.0**36 - 2**8), laplace_law(2.0**36 - 2**8)])
def test_places_of_the_largest_blocks_are_uniform_and_magnitudes_scale(law):
    noise = np.abs(drawn(law, 200_000))
    for shift in (0, 10, 20):
        assert chisquare(np.bincount(noise >> shift & 15, minlength=16)).pvalue > 1e-7
    spread = 1.0 if law.square else 2**0.5
    assert np.sqrt((noise.astype(float) ** 2).mean()) == pytest.approx(spread * 2.0**36, rel=0.02)


@pytest.mark.parametrize("module", ["drawing.py", "laws.py", "noise.py"])
def test_noise_is_made_without_floats_and_without_generators(module):
    """No generator of numpy or Python but the system's, and in what draws no float and no division."""
    tree = ast.parse((MEASURE / module).read_text(encoding="utf-8"))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"default_rng", "Generator", "PCG64", "RandomState", "seed", "Random", "secrets"}
    assert ("random" in names) == (module == "noise.py")  # for random.SystemRandom
    if module == "drawing.py":
        assert not names & {"float", "float64", "float32", "double"}
        for node in ast.walk(tree):
            assert not isinstance(node, ast.Div)
            assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))


def test_a_law_of_blocks_is_a_value():
    assert gaussian_law(70.0) == Law(Fraction(1, 9800), Fraction(0), 1)
