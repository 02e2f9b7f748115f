"""Columns that are asked about once: the grid, the mixture that made its counts, the attribute, the shares."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.domains import SOURCE
from support.doors import FakeDoor

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain, Recoding, edge_ticks, fill_ticks
from dpsyn_sql.attributes.grids import after, grid_attribute, grid_cuts, mixed_cuts, special_cuts
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.types import CLASSES, INTEGER, from_tick, supported_type
from dpsyn_sql.discovery.attributes import (
    _residues,
    attribute_of_hidden,
    attribute_of_nothing,
    likely_granularity,
    likely_steps,
    within_equal_bins,
)
from dpsyn_sql.discovery.cells import Piece
from dpsyn_sql.discovery.designs import design, few_units, left_of
from dpsyn_sql.discovery.learn import Chooser, discovered
from dpsyn_sql.discovery.mixtures import REACH, Bell, Hump, mixture_of
from dpsyn_sql.discovery.one_look import (
    _cellular,
    _Grid,
    _of_bounds,
    attribute_of_one_look,
    other_part,
)
from dpsyn_sql.fit.denoise import reshaped
from dpsyn_sql.methods.adaptive.method import LEAST_STRENGTH, Adaptive, rows_needed
from dpsyn_sql.methods.independent import candidate_queries
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.queries import GridQuery, KeyQuery, NoisyKeys, NoisyMarginal, NoisySteps, StepQuery
from dpsyn_sql.source.relation import PrivacyUnit

TYPES = ("TINYINT", "INTEGER", "UBIGINT", "HUGEINT", "DECIMAL(18,2)", "DECIMAL(38,10)", "FLOAT", "DOUBLE")
TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "TIME")
ROW = PrivacyUnit()


def grid_of(kind, cuts):
    """A grid whose cells are all counted as themselves."""
    return _Grid(kind, cuts, tuple(range(len(cuts) - 1)))


@pytest.mark.parametrize("sql_type", [*TYPES, *TIMES])
def test_the_grid_covers_the_type_and_small_whole_numbers_are_cells(sql_type):
    kind = supported_type(sql_type, "x")
    cuts = mixed_cuts(kind)
    assert list(cuts) == sorted(set(cuts)) and len(cuts) < 4_000
    grid = grid_attribute("x", sql_type, cuts)
    if kind.discrete:
        ends = edge_ticks(grid)[0], edge_ticks(grid)[-1]
        part_of_a_day = kind.day if kind.temporal else 0  # at the ends of TIMESTAMP_NS
        assert ends[0] - kind.low <= part_of_a_day and 0 <= kind.high + 1 - ends[1] <= part_of_a_day
    if not kind.temporal:
        least = 0 if kind.family == "integer" and kind.low == 0 else -5
        for value in range(least, 21):
            start = Fraction(value * 10**kind.scale)
            assert cuts[cuts.index(start) + 1] == after(kind, start)


@given(low=st.integers(-1000, 1000), width=st.integers(1, 3000), sql_type=st.sampled_from(TYPES[1:]))
def test_the_grid_stays_within_bounds(low, width, sql_type):
    kind = supported_type(sql_type, "x")
    low = max(low, 0) if sql_type == "UBIGINT" else low
    cuts = mixed_cuts(kind, Fraction(low), Fraction(low + width))
    assert cuts[0] == low and cuts[-1] == after(kind, Fraction(low + width))


@given(
    part=st.one_of(
        st.builds(Hump, st.sampled_from([1, -1]), st.floats(-5, 30), st.floats(0.05, 2), st.floats(0.05, 2)),
        st.builds(Bell, st.floats(-20, 20), st.floats(0.5, 100)),
    )
)
def test_quantiles_of_a_part_are_where_its_distribution_function_says(part):
    shares = np.linspace(0, 1, 33)
    values = part.quantiles(shares)
    assert (np.diff(values) >= 0).all()
    assert part.cdf(values) == pytest.approx(shares, abs=1e-6)
    assert (values[0], values[-1]) == pytest.approx(part.reach)


def test_half_of_the_heavier_side_of_a_hump_by_hand():
    hump = Hump(1, 3.0, 0.5, 1.5)  # continuous at its centre: below it lies 0.5 / (0.5 + 1.5) of it
    assert hump.cdf(np.array([8.0])) == pytest.approx([0.25])
    assert hump.reach == pytest.approx((2 ** (3 - 0.5 * REACH), 2 ** (3 + 1.5 * REACH)))


@settings(max_examples=30)
@given(
    centre=st.floats(0.5, 8),
    width=st.floats(0.2, 1.5),
    sql_type=st.sampled_from(["INTEGER", "DECIMAL(9,2)", "DOUBLE"]),
    step=st.sampled_from(["0.01", "1"]),
)
def test_shares_of_cells_are_those_of_rounded_values(centre, width, sql_type, step):
    """Against counting: 20,001 even quantiles, rounded to steps, put into the cells one by one."""
    kind = supported_type(sql_type, "x")
    cuts = mixed_cuts(kind)
    ticks = Fraction(step) if sql_type == "DOUBLE" else max(Fraction(1), Fraction(step) * 10**kind.scale)
    cells, hump = _cellular(grid_of(kind, cuts), ticks)[0], Hump(1, centre, width, width)
    unit = float(ticks) / 10**kind.scale
    values = hump.quantiles((np.arange(20_000) + 0.5) / 20_000)
    multiples = [int(place) * ticks for place in np.floor(values / unit + 0.5)]
    found = np.searchsorted([float(cut) for cut in cuts], [float(value) for value in multiples], side="right")
    counted = np.bincount(found - 1, minlength=len(cuts)) / 20_000
    assert cells.shares(hump) == pytest.approx(counted, abs=2e-4)
    assert cells.shares(hump).sum() == pytest.approx(1)


def column(sql_type, **options):
    kind = "temporal" if supported_type(sql_type, "x").temporal else "numeric"
    return Undiscovered("x", sql_type, kind, **options)


def noisy(values, own, sigma, seed, missing=0):
    """Noisy counts of the cells of whole or exact values (ticks, or doubles), and of NULL."""
    cuts = mixed_cuts(own.type, own.least, own.most)
    places = np.searchsorted([float(cut) for cut in cuts], np.asarray(values, float), side="right") - 1
    counts = np.append(np.bincount(np.clip(places, 0, len(cuts) - 2), minlength=len(cuts) - 1), missing)
    random = np.random.default_rng(seed)
    return cuts, NoisyMarginal(
        ("x",), np.rint(counts + random.normal(0, sigma, counts.size)).astype(int), sigma
    )


def mean_of(attribute: Attribute, table):
    """The mean of what is written, in ticks or doubles."""
    cuts = attribute.fill if attribute.type.family == "float" else fill_ticks(attribute)
    middles = [
        np.mean([(low + high - (not isinstance(low, float))) / 2 for low, high in itertools.pairwise(own)])
        if len(own) > 1
        else own[0]
        for own in cuts
    ]
    counts = table.values[: attribute.regular]
    return float(np.dot(counts, np.array(middles, float)) / counts.sum())


def test_an_indicator_has_two_values_whatever_its_type():
    for sql_type in ("INTEGER", "DOUBLE", "DECIMAL(9,2)"):
        own = column(sql_type)
        unit = 10**own.type.scale
        cuts, counts = noisy(np.repeat([0, unit], [1_100, 500]), own, 30.0, 1, missing=400)
        steps = NoisySteps((Decimal(1),), np.array([0, 500]), 40.0) if sql_type == "DOUBLE" else None
        found, table = attribute_of_one_look(own, cuts, counts, steps, 2_000.0)
        assert found.regular == 2 and all(len(own) == 1 for own in found.fill)
        assert mean_of(found, table) / unit == pytest.approx(500 / 1_600, abs=0.08)
        assert table.values[-1] == pytest.approx(400, abs=150) and table.values.sum() == pytest.approx(
            2_000, abs=3
        )


@pytest.mark.parametrize("sql_type", ["INTEGER", "DOUBLE", "DECIMAL(9,2)"])
def test_rows_that_may_have_another_value(sql_type):
    """Of 2,000 rows 1,500 have the value 7, 300 have none and 200 are too spread to be found."""
    own, total = column(sql_type), NoisyMarginal((), np.array(2_000), 4.0)
    value = 7 * 10**own.type.scale
    cuts, counts = noisy(np.repeat([value], 1_500), own, 0.0, 1, missing=300)
    counts = replace(counts, sigma=3.0)
    error = 3 * math.hypot(4.0, math.sqrt(2) * 3.0)
    single = Attribute("x", sql_type, "numeric", edges=_edges(own, value), nullable=True)
    assert other_part(own, cuts, single, counts, total) == pytest.approx((200 + error) / 2_000)
    nothing = replace(single, recoding=Recoding((0,), (1,)))
    assert other_part(own, cuts, nothing, counts, total) == pytest.approx((1_700 + error) / 2_000)
    wide = replace(single, edges=_edges(own, 1_000 * 10**own.type.scale))  # one of several values of its cell
    assert other_part(own, cuts, wide, counts, total) == 1
    place = cuts.index(value)
    owners = [*range(place + 1), place, *range(place + 2, len(cuts) - 1)]  # 7 is counted with what follows it
    assert other_part(own, cuts, single, counts, total, owners) == 1


def _edges(own, tick):
    """From a value to the one after it."""
    if own.type.family == "float":
        return float(tick), math.nextafter(tick, math.inf)
    return tuple(from_tick(own.type, one) for one in (tick, tick + 1))


def test_a_long_tail_keeps_its_mean_in_the_mean_of_many_releases():
    random, own = np.random.default_rng(3), column("INTEGER")
    values = np.rint(np.exp(random.normal(7.0, 1.0, 3_000)))
    means = []
    for seed in range(40):
        cuts, counts = noisy(values, own, 20.0, seed)
        found, table = attribute_of_one_look(own, cuts, counts, None, 3_000.0)
        means.append(mean_of(found, table))
    assert np.mean(means) == pytest.approx(values.mean(), rel=0.15)


def test_a_long_tail_keeps_its_deviation_where_counts_are_clear():
    """Cut off at 2.8 widths, log-normal amounts lose a quarter of their deviation."""
    random, own = np.random.default_rng(9), column("BIGINT")
    values = np.rint(np.exp(random.normal(8.0, 1.2, 30_000)))
    found = []
    for seed in range(8):
        cuts, counts = noisy(values, own, 28.0, seed)
        attribute, table = attribute_of_one_look(own, cuts, counts, None, 30_000.0)
        pieces = [
            (low, high, rows / (len(own) - 1))
            for own, rows in zip(fill_ticks(attribute), table.values, strict=False)
            for low, high in itertools.pairwise(own)
        ]
        low, high, rows = np.array(pieces, float).T
        mean = rows @ (low + high) / 2 / rows.sum()
        found.append(math.sqrt(rows @ ((low**2 + low * high + high**2) / 3) / rows.sum() - mean**2))
    assert np.mean(found) == pytest.approx(values.std(), rel=0.2)


def test_of_noise_alone_no_huge_number_is_written():
    for seed in range(20):
        for nullable in (True, False):
            own = column("DOUBLE", nullable=nullable)
            cuts, counts = noisy([], own, 50.0, seed)
            found, table = attribute_of_one_look(own, cuts, counts, None, 40.0)
            if nullable:
                assert found.size == table.values.size
            assert max(abs(float(cut)) for own in found.fill for cut in own) < 1e6


@pytest.mark.parametrize("sql_type", ["DATE", "TIMESTAMP", "TIME"])
@pytest.mark.parametrize("laplace", [False, True])
def test_of_noise_alone_no_dates_are_written(sql_type, laplace):
    """Of 40 columns without rows two have a stretch by luck at most."""
    random, own, lucky = np.random.default_rng(9), column(sql_type), 0
    cuts = mixed_cuts(own.type)
    for _ in range(40):
        law = random.laplace(0, 50 / 2**0.5, len(cuts)) if laplace else random.normal(0, 50, len(cuts))
        counts = NoisyMarginal(("x",), np.rint(law).astype(int), 50.0)
        found, _ = attribute_of_one_look(own, cuts, counts, None, 40.0)
        lucky += found.recoding is None
    assert lucky <= 2


def test_where_there_may_be_no_rows_nothing_is_found():
    own, fixed = column("INTEGER"), column("INTEGER", nullable=False)
    cuts, counts = noisy(np.repeat([0, 7], 500), own, 30.0, 1)
    found, table = attribute_of_one_look(own, cuts, counts, None, 0.0)
    assert found.recoding is not None and list(table.values) == [1, 0]
    found, table = attribute_of_one_look(fixed, cuts, counts, None, 0.0)
    assert found.fill == ((0,),) and list(table.values) == [1]


@pytest.mark.parametrize("sql_type", ["BIGINT", "HUGEINT", "DOUBLE", "DATE", "TIMESTAMP"])
@pytest.mark.parametrize("missing", [0, 300])
def test_values_of_which_nothing_is_found_are_no_nulls(sql_type, missing):
    """Every row is written as NULL, but the fit gets what was counted: else it takes every column that is
    measured with this one for mostly NULL."""
    own, random = column(sql_type), np.random.default_rng(2)
    cuts = mixed_cuts(own.type)
    spread = random.choice(np.arange(1, len(cuts) - 2), 3_000 - missing)  # few in each cell
    counts = np.append(np.bincount(spread, minlength=len(cuts) - 1), missing)
    answer = NoisyMarginal(("x",), np.rint(counts + random.normal(0, 60, counts.size)).astype(int), 60.0)
    found, table = attribute_of_one_look(own, cuts, answer, None, 3_000.0)
    if found.recoding is None:  # a hump of noise, or the cells of small numbers
        assert sql_type not in ("DATE", "TIMESTAMP")
    else:
        assert found.written == 1 and found.regular == 1
    assert table.values[-1] == pytest.approx(missing, abs=6 * 60)
    assert table.values.sum() == pytest.approx(3_000, abs=found.size)


@pytest.mark.parametrize("sql_type", ["INTEGER", "DATE", "DOUBLE"])
def test_nulls_of_a_column_that_has_none_are_in_the_code_of_its_least_value(sql_type):
    """As they are encoded; what is left of the noise would be scaled to all rows. A few are noise."""
    fixed = column(sql_type, least=Fraction(18_000), most=Fraction(18_365), nullable=False)
    cuts, random = mixed_cuts(fixed.type, fixed.least, fixed.most), np.random.default_rng(4)
    for nulls in (2_000, 30):
        noise = np.append(np.zeros(len(cuts) - 1), nulls) + random.normal(0, 11, len(cuts))
        answer = NoisyMarginal(("x",), np.rint(noise).astype(int), 11.0)
        found, table = attribute_of_one_look(fixed, cuts, answer, None, 2_000.0)
        assert table.values.sum() == pytest.approx(2_000, abs=found.size)
        if nulls == 2_000:
            assert table.values[found.fallback_code] == pytest.approx(2_000, abs=12 * 11)


def test_nulls_stay_as_they_were_counted_where_half_of_the_values_are_not_found():
    """300 of 3,000 rows are NULL, 1,000 are a found value, and the others lie far apart."""
    own, random = column("DOUBLE"), np.random.default_rng(3)
    cuts, nulls = mixed_cuts(own.type), []
    for _ in range(20):
        counts = np.append(np.bincount(random.choice(len(cuts) - 1, 1_700), minlength=len(cuts) - 1), 300)
        counts[np.searchsorted([float(cut) for cut in cuts], 7.0)] += 1_000
        answer = NoisyMarginal(("x",), np.rint(counts + random.normal(0, 30, counts.size)).astype(int), 30.0)
        nulls.append(attribute_of_one_look(own, cuts, answer, None, 3_000.0)[1].values[-1])
    assert np.mean(nulls) == pytest.approx(300, abs=6 * 30 / math.sqrt(20))


def test_bounds_end_the_values():
    own = column("INTEGER", least=Fraction(18), most=Fraction(90), nullable=False)
    random = np.random.default_rng(4)
    cuts, counts = noisy(np.clip(np.rint(random.normal(40, 15, 4_000)), 18, 90), own, 20.0, 4)
    found, table = attribute_of_one_look(own, cuts, counts, None, 4_000.0)
    assert edge_ticks(found)[0] >= 18 and edge_ticks(found)[-1] <= 91
    assert not found.nullable and table.values.size == found.regular


@pytest.mark.parametrize("strength", [40, 107, 429])
def test_noise_leaves_sixteen_bins_between_stated_bounds(strength):
    """Years of birth from 1850 on, of 1830 to 2010: octaves alone have two cells there, 1830 to 1877 and the
    rest, so that many died before they were born."""
    random, rows = np.random.default_rng(8), 10_000
    born = random.integers(1850, 2000, rows)
    own = column("INTEGER", least=Fraction(1830), most=Fraction(2010), nullable=False)
    cuts, counts = noisy(born, own, rows / strength, 8)
    found, table = attribute_of_one_look(own, cuts, counts, None, float(rows))
    widest = max(high - low for low, high in itertools.pairwise(edge_ticks(found)))
    assert widest <= math.ceil(181 / 16) and mean_of(found, table) == pytest.approx(born.mean(), abs=15)


def test_between_stated_bounds_noise_hides_bins_but_not_the_column():
    """Half of the rows are NULL; what is hidden is drawn to even counts, not to NULL or to a bound."""
    random, rows, nulls, sizes = np.random.default_rng(9), 2_000, [], []
    for strength in (3, 8, 20, 50):
        own = column("INTEGER", least=Fraction(0), most=Fraction(999))
        cuts, counts = noisy(random.integers(0, 1_000, 1_000), own, rows / strength, 3, missing=1_000)
        exact = noisy(np.arange(1_000), own, 0.0, 0, missing=1_000)[1].values.astype(float)
        pieces = _of_bounds(own, grid_of(own.type, cuts), exact, rows / strength, float(rows))
        sizes.append(len(pieces))
        held = 2_000 if strength == 3 else 1_000  # NULL is believed, or noise
        assert sum(piece.mass for piece in pieces) == pytest.approx(held, rel=0.06)
        nulls.append(attribute_of_one_look(own, cuts, counts, None, float(rows))[1].values[-1] / rows)
    assert sizes == [1, 2, 4, 8] and nulls[-1] == pytest.approx(0.5, abs=6 / 50)
    free = replace(own, most=None)
    assert _of_bounds(free, grid_of(own.type, cuts), counts.values.astype(float), 40.0, float(rows)) == []


def test_bins_of_a_large_table_end_where_equal_ones_between_stated_bounds_do():
    own = column("INTEGER", least=Fraction(0), most=Fraction(159))
    long = [Piece(Fraction(0), Fraction(128), 64.0), Piece(Fraction(128), Fraction(160), 32.0)]
    found = within_equal_bins(own, long)
    assert [piece.low for piece in found] == [*range(0, 121, 10), 128, 130, 140, 150]
    assert sum(piece.mass for piece in found) == pytest.approx(96) and found[0].mass == pytest.approx(5)
    hidden = attribute_of_hidden(own, grid_cuts(own.type, own.least, own.most), None)
    assert hidden.regular == 16 and hidden.recoding is None and hidden.edges == tuple(range(0, 161, 10))
    assert attribute_of_hidden(replace(own, least=None), grid_cuts(own.type), None).written == 1


def looked_at(values, strength, seed, sql_type="INTEGER"):
    """What one look with the cells of a table of such strength finds: the attribute, its table, what is
    written (rows by value, each piece evenly)."""
    own, sigma = column(sql_type), len(values) / strength
    cuts, owners = special_cuts(own.type, None, None, strength)
    places = np.searchsorted([float(cut) for cut in cuts], values, side="right") - 1
    random, steps = np.random.default_rng(seed), likely_steps(own.type)
    counts = np.append(np.bincount(np.array(owners)[places], minlength=len(cuts) - 1), 0)
    parts = [values[values != 0] / float(step) for step in steps]  # the question leaves zeros out
    last = np.sum([np.abs(part - np.rint(part)) < 1e-9 for part in parts], axis=0)
    fitting = np.bincount(last, minlength=len(steps) + 1)
    answer = NoisyMarginal(("x",), np.rint(counts + random.normal(0, sigma, counts.size)).astype(int), sigma)
    noisy_steps = np.rint(fitting + random.normal(0, 3 * sigma, fitting.size)).astype(int)
    found, table = attribute_of_one_look(
        own, cuts, answer, NoisySteps(steps, noisy_steps, 3 * sigma), float(len(values)), owners
    )
    written, step = Counter(), float(found.granularity or 1)
    for own_cuts, rows in zip(found.fill, table.values.tolist(), strict=False):
        pieces = list(itertools.pairwise(own_cuts)) or [(own_cuts[0], own_cuts[0] + step)]
        for low, high in pieces:
            held = (
                np.arange(math.ceil(low / step), max(math.ceil(high / step), math.ceil(low / step) + 1))
                * step
            )
            for value in held.tolist():
                written[value] += rows / len(pieces) / held.size
    return found, table, written


def apart(values, written):
    """The total variation between values and what is written."""
    real = Counter(np.asarray(values, float).tolist())
    total = sum(written.values())
    return sum(abs(real[one] / len(values) - written[one] / total) for one in {*real, *written}) / 2


HEAPS = {
    "years of ten": (lambda random: random.integers(2015, 2025, 10_000), "INTEGER"),
    "two terms": (lambda random: random.choice([36, 60], 10_000, p=[0.7, 0.3]), "INTEGER"),
    "multiples of 30": (
        lambda random: random.choice(
            [60, 120, 30, 90, 150, 180], 10_000, p=[0.56, 0.17, 0.15, 0.09, 0.02, 0.01]
        ),
        "BIGINT",
    ),
    "round amounts": (lambda random: random.choice([500, 1000, 1500, 2000, 3000, 5000], 10_000), "INTEGER"),
    "halves": (lambda random: random.integers(10, 60, 10_000) / 2, "DOUBLE"),
    "a code for none": (
        lambda random: np.where(random.random(10_000) < 0.5, 999, random.integers(0, 10, 10_000)),
        "INTEGER",
    ),
}


@pytest.mark.parametrize("name", HEAPS)
def test_values_that_many_rows_share_are_written_as_they_are(name):
    made, sql_type = HEAPS[name]
    values = made(np.random.default_rng(5))
    for strength, most in ((429, 0.08), (107, 0.35 if name == "round amounts" else 0.15)):
        *_, written = looked_at(values, strength, 1, sql_type)
        assert apart(values, written) < most, strength


def test_what_the_mixture_misses_by_far_is_a_piece_of_its_own():
    """Five heaps at numbers that nobody knows, beside a smooth column: more than a mixture has parts."""
    random, heaps = np.random.default_rng(6), (3_331, 7_777, 15_551, 31_013, 64_007)
    smooth, heaped = np.rint(np.exp(random.normal(4.0, 0.5, 20_000))), random.choice(heaps, 20_000)
    _, _, written = looked_at(np.where(random.random(20_000) < 0.25, heaped, smooth), 429, 2)
    for heap in heaps:
        near = sum(rows for value, rows in written.items() if heap / 1.1 < value < heap * 1.1)
        assert near / sum(written.values()) == pytest.approx(0.05, abs=6 / 429)


@pytest.mark.parametrize("strength", [40, 107, 429])
def test_smooth_columns_stay_smooth(strength):
    """Single cells cost a smooth column of ages little of its mean and its largest values."""
    ages = np.clip(np.rint(np.random.default_rng(7).normal(45, 17, 10_000)), 18, 95)
    means, tops = [], []
    for seed in range(4):
        *_, written = looked_at(ages, strength, seed)
        values, rows = map(np.array, zip(*sorted(written.items()), strict=True))
        means.append(float(values @ rows / rows.sum()))
        tops.append(float(values[np.searchsorted(np.cumsum(rows), 0.95 * rows.sum())]))
    assert np.mean(means) == pytest.approx(ages.mean(), rel=0.1)
    assert np.mean(tops) == pytest.approx(np.quantile(ages, 0.95), rel=0.15)


def test_zeros_tell_nothing_of_the_step():
    """Of 10,000 rows 9,000 are zero, and the others whole numbers."""
    values = np.where(np.arange(10_000) < 9_000, 0, np.random.default_rng(8).integers(1, 60, 10_000))
    for seed in range(5):
        found, *_ = looked_at(values, 100, seed, "DOUBLE")
        assert found.granularity == 1


def test_zero_and_one_alone_have_no_third_value():
    for pair in ((0, 1), (1, 2)):
        for seed in range(10):
            values = np.random.default_rng(seed).choice(pair, 3_000)
            *_, written = looked_at(values, 33, seed)
            assert {value for value, rows in written.items() if rows} <= set(map(float, pair))


def test_dates_stay_in_their_months():
    own = column("DATE")
    days = np.random.default_rng(5).integers(15_000, 16_000, 2_000)
    cuts, counts = noisy(days, own, 5.0, 5)
    found, table = attribute_of_one_look(own, cuts, counts, None, 2_000.0)
    assert edge_ticks(found)[0] > 14_800 and edge_ticks(found)[-1] < 16_200
    assert mean_of(found, table) == pytest.approx(days.mean(), abs=40)


@pytest.mark.parametrize(
    ("counts", "step"),
    [
        ([0, 0, 0, 0, 0, 0, 900, 90, 9, 1], Decimal(1)),
        ([0, 0, 800, 160, 20, 10, 9, 1, 0, 0], Decimal("0.01")),
        ([0, 0, 0, 0, 0, 500, 450, 45, 5, 0], Decimal("0.5")),
        ([0, 0, 0, 800, 0, 100, 90, 9, 1, 0], Decimal("0.1")),  # by its pattern: nobody asks for it
        ([1000, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
        ([0, 0, 400, 0, 0, 0, 9_000, 900, 90, 10], Decimal("0.01")),  # one in thirty is no whole number
        ([5, -3, 4, 1, -2, 0, 2, 1, 3, -1], Decimal(1)),  # noise: the prior
    ],
)
def test_the_step_that_fits_or_else_whole_numbers(counts, step):
    kind = supported_type("DOUBLE", "x")
    assert likely_granularity(kind, NoisySteps(likely_steps(kind), np.array(counts), 40.0)) == step


@given(st.sampled_from(["DOUBLE", "DECIMAL(9,4)", "DECIMAL(9,2)", "INTEGER", "TIMESTAMP", "TIME"]))
def test_each_step_that_is_asked_for_divides_the_next(sql_type):
    kind = supported_type(sql_type, "x")
    for one, two in itertools.pairwise(map(Fraction, likely_steps(kind))):
        assert one < two and (two / one).denominator == 1
    if not kind.temporal:
        for step in (None, *likely_steps(kind)):
            shares = _residues(kind, step, likely_steps(kind))
            assert shares.sum() == pytest.approx(1) and (shares >= 0).all()


def test_two_humps_and_an_atom_are_found_without_noise():
    kind = supported_type("INTEGER", "x")
    cells, _ = _cellular(grid_of(kind, mixed_cuts(kind)), Fraction(1))
    parts = Hump(1, 6.0, 0.3, 0.3), Hump(1, 12.0, 0.5, 0.5)
    counts = 4_000 * cells.shares(parts[0]) + 3_000 * cells.shares(parts[1])
    zero = int(np.flatnonzero(cells.singles & (cells.values == 0))[0])
    counts[zero] += 2_000
    found = mixture_of(cells, counts, 10.0, 9_000.0)
    assert zero in found.atoms and len(found.parts) >= 2
    explained = sum(rows * cells.shares(part) for part, rows in found.smooth)
    explained[list(found.values)] += list(found.values.values())
    assert np.abs(explained - counts).sum() < 400


def test_a_scale_of_a_few_values_has_no_smooth_part():
    """Whichever the pursuit finds first: a hump over 1 to 6 would reach values that no row has."""
    own, rows = column("BIGINT"), [1_137, 367, 99, 63, 162, 161]
    for seed in range(10):
        cuts, counts = noisy(np.repeat(np.arange(1, 7), rows), own, 6.0, seed)
        found, _ = attribute_of_one_look(own, cuts, counts, None, float(sum(rows)))
        written = sorted({cut for own in found.fill for cut in own})
        assert written[-6:] == [1, 2, 3, 4, 5, 6] and set(written[:-6]) <= {0}  # a zero is cheap


def test_no_code_is_finer_than_a_cell():
    """The rows of a part of a cell are a guess: a column of one value would look like one of ten."""
    own = column("BIGINT")
    cuts, counts = noisy(np.full(2_000, 1_120), own, 5.0, 1)
    found, table = attribute_of_one_look(own, cuts, counts, None, 2_000.0)
    places = np.searchsorted([float(cut) for cut in cuts], edge_ticks(found), side="right")
    assert np.unique(places[:-1]).size == found.regular
    (code,) = [
        place
        for place, cut in enumerate(edge_ticks(found)[:-1])
        if cut <= 1_120 < edge_ticks(found)[place + 1]
    ]
    assert table.values[code] > 1_900


@given(st.integers(0, 2**32 - 1), st.sampled_from(["BIGINT", "DOUBLE", "DECIMAL(9,2)"]), st.integers(0, 40))
def test_any_noisy_counts_become_an_attribute_and_its_table(seed, sql_type, strength):
    """Heaps of rows in a few cells, and any noise: two parts may become one when they are refined."""
    random, own = np.random.default_rng(seed), column(sql_type)
    cuts = mixed_cuts(own.type)
    counts = random.normal(0, 20, len(cuts))
    counts[random.integers(0, len(cuts), 3)] += 20 * strength
    asked = likely_steps(own.type)
    steps = NoisySteps(asked, random.normal(0, 40, len(asked) + 1).astype(int), 40.0)
    table = NoisyMarginal(("x",), np.rint(counts).astype(int), 20.0)
    found, known = attribute_of_one_look(own, cuts, table, steps, 60.0 * strength)
    assert known.values.shape == (found.size,) and (known.values >= 0).all()
    assert known.values.sum() == pytest.approx(max(60.0 * strength, 1), abs=found.size)


def test_prices_between_whole_numbers_are_told_apart():
    own = column("DOUBLE")
    values = np.random.default_rng(6).normal(1.7, 0.1, 4_000)
    cuts, counts = noisy(values, own, 10.0, 6)
    steps = NoisySteps((Decimal(1),), np.array([4_000, 0]), 10.0)
    found, table = attribute_of_one_look(own, cuts, counts, steps, 4_000.0)
    assert mean_of(found, table) == pytest.approx(1.7, abs=0.02)
    assert found.edges[0] > 1.2 and found.edges[-1] < 2.3


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=60),
    st.integers(0, 2**32 - 1),
    st.floats(0.1, 50),
)
def test_a_reshaped_part_keeps_its_rows(expected, seed, sigma):
    shape = np.array(expected)
    counts = shape + np.random.default_rng(seed).normal(0, 3 * sigma, shape.size)
    found = reshaped(shape, counts, sigma)
    assert found.shape == shape.shape and (found >= 0).all()
    assert found.sum() == pytest.approx(shape.sum(), abs=1e-6)
    assert not found[shape == 0].any()


def test_counts_are_followed_where_they_contradict_the_shape_and_only_there():
    """Twenty cells were expected, the middle ten are seen; noise as large as the counts changes nothing."""
    shape, seen = np.full(20, 50.0), np.repeat([0.0, 100.0, 0.0], [5, 10, 5])
    noise = np.random.default_rng(7).normal(0, 1, 20)
    found = reshaped(shape, seen + 2 * noise, 2.0)
    assert not found[:5].any() and not found[15:].any()
    assert found[5:15] == pytest.approx(np.full(10, 100.0), abs=12)
    changed = [
        not np.allclose(
            reshaped(shape, shape + 200 * np.random.default_rng(seed).normal(0, 1, 20), 200.0), shape
        )
        for seed in range(200)
    ]
    assert np.mean(changed) < 0.5  # nineteen splits at 2.5 deviations, and two ends


# -- shares ---------------------------------------------------------------------------------------------

AGE, PAY = Undiscovered("age", "INTEGER", "numeric"), Undiscovered("pay", "DOUBLE", "numeric")
CITY = Undiscovered("city", "VARCHAR", "categorical")
CODE = Undiscovered("code", "VARCHAR", "categorical", typed=False)
SEX = Attribute("sex", "VARCHAR", "categorical", ("f", "m"))


def test_a_column_without_a_found_value_is_in_no_pair():
    none = Attribute("t", "VARCHAR", "categorical", other=True, nullable=True, origin="discovered")
    wide = attribute_of_nothing(replace(AGE, name="w"), mixed_cuts(AGE.type))
    domain = Domain((SEX, none, replace(SEX, name="s"), wide))
    assert [query.attrs for query in candidate_queries(domain, 10**6)] == [("sex", "s")]


class Door(FakeDoor):
    """A door with a noisy number of rows, which keeps what it was asked."""

    def __init__(self, rows):
        self.rows, self.asked = rows, []

    def answer(self, query, budget):
        self.asked.append((query, budget))
        if isinstance(query, KeyQuery):
            return NoisyKeys(query.attr, ("Bonn",), np.array([self.rows // 2]), 5.0, 20)
        if isinstance(query, StepQuery):
            return NoisySteps(query.steps, np.zeros(len(query.steps) + 1, np.int64), 5.0)
        if isinstance(query, GridQuery):
            counts = np.zeros(query.grid.size, np.int64)
            counts[query.grid.size // 2 if query.grid.name != "rows" else 0] = self.rows
            return NoisyMarginal((query.grid.name,), counts, 5.0)
        return NoisyMarginal(
            (query.attr,), np.array([self.rows * (name == INTEGER) for name in CLASSES]), 5.0
        )


@pytest.mark.parametrize("wanted", [Fraction(1), Fraction(3, 5), Fraction(1, 3)])
@pytest.mark.parametrize("columns", [(AGE,), (AGE, PAY, CITY), (SEX, CODE, CITY, AGE)])
def test_a_small_table_is_asked_once_and_never_for_more_than_the_budget(wanted, columns):
    shape, budget = Shape(tuple(columns)), Budget.of_release(1, "1e-9")
    door = Door(900)
    found = discovered(shape, design(shape, ROW, budget), door, Chooser(budget, ROW, lambda _: wanted))
    assert found.tables[0].values == 900 and found.alone == (wanted == 1)
    rest = left_of(budget, found.asked)
    spent = sum(step.budget.amount for step in found.asked)
    assert [own for _, own in door.asked] == [step.budget for step in found.asked]
    assert spent + rest.amount == budget.amount and not rest.delta
    assert sum(step.budget.delta for step in found.asked) <= budget.delta
    assert {step.ask for step in found.asked} <= {"rows", "types", "mixed", "steps", "keys", "again"}
    numbers = {one.name for one in columns if one in (AGE, PAY, CODE)}
    assert {name for table in found.tables for name in table.attrs} == numbers
    if wanted == 1 and columns == (AGE,):
        assert rest.amount == 0
    for table in found.tables[1:]:
        assert table.values.size == found.shape.domain[table.attrs[0]].size and table.composed


def test_a_large_table_is_looked_at_more_closely():
    shape, budget = Shape((AGE, PAY, CITY)), Budget.of_release(1, "1e-9")
    chooser = Chooser(budget, ROW, lambda _: Fraction(1))
    found = discovered(shape, design(shape, ROW, budget), Door(10**6), chooser)
    assert (
        not found.tables
        and not found.alone
        and {"grid", "parts", "cells"} <= {step.ask for step in found.asked}
    )


def test_which_design_follows_from_the_noisy_number_alone():
    budget, shape = Budget("gdp", 10**13), Shape((AGE, PAY))
    deviation = (2 / (2 * 0.01)) ** 0.5
    assert few_units(shape, ROW, budget, 1_999 * deviation)
    assert not few_units(shape, ROW, budget, 2_001 * deviation)
    assert not few_units(shape, PrivacyUnit("who", 2), budget, 1.0)  # tables of units are none of rows
    pure = Budget("pure", 10**15)
    assert few_units(shape, ROW, pure, 1_999 * 2 * 2**0.5) and not few_units(
        shape, ROW, pure, 2_001 * 2 * 2**0.5
    )


def test_what_is_left_for_pairs_is_spent_on_pairs_where_the_whole_budget_shows_some():
    """The rest alone would look hopeless: it is judged once, by the whole budget."""
    names = tuple(f"c{place}" for place in range(20))
    budget = Budget("gdp", 10**13)
    rows = 1.1 * LEAST_STRENGTH * math.sqrt(190) / math.sqrt(2 * 0.01)
    assert rows >= rows_needed(20, budget)
    part = Adaptive().one_way_part(rows, 20, budget)
    assert part < 1 and Adaptive().one_way_part(rows / 2, 20, budget) == 1
    rest = budget.split((part, 1 - part))[1]
    assert rows < rows_needed(20, rest)
    columns = tuple(Undiscovered(name, "INTEGER", "numeric") for name in names)
    shape = Shape(columns)

    def wanted(noisy):
        return Adaptive().one_way_part(noisy, 20, budget)

    found = discovered(shape, design(shape, ROW, budget), Door(round(rows)), Chooser(budget, ROW, wanted))
    assert found.tables and not found.alone
    left = left_of(budget, found.asked)
    domain = Domain(tuple(replace(SEX, name=name) for name in names))
    plan = Adaptive().plan(SOURCE, domain, left, Terms(known=frozenset(names)))
    assert [step.budget.amount for step in plan.reserves] == [left.amount] and not plan.asked
    none = Adaptive().plan(SOURCE, domain, left, Terms(known=frozenset(names), alone=True))
    assert not none.steps
