"""Values inside bins with a fill: atoms, intervals and eight pieces of equal probability, against a brute force."""

import math
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.attribute import FILL_PIECES, Attribute, edge_ticks, fill_ticks
from dpsyn_sql.attributes.types import from_tick, to_tick
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment

SETTINGS = "SET TimeZone = 'Asia/Kolkata'"


def values(con, attribute, code, bits):
    expression = attribute.value(Fragment("code"), Fragment("bits")).values[attribute.name]
    listed = ", ".join(f"(CAST('{number}' AS UBIGINT))" for number in bits)
    # Fetching a moment with time zone would need pytz; its UTC text is the same.
    shown = "make_timestamp(epoch_us(v))" if "ZONE" in attribute.sql_type else "v"
    sql = (
        f"SELECT {shown}, typeof(v) FROM "
        f"(SELECT {expression} AS v FROM (SELECT {code} AS code, bits FROM (VALUES {listed}) b(bits)))"
    )
    rows = con.execute(sql).fetchall()
    assert {kind for _, kind in rows} == {attribute.sql_type}
    return [value for value, _ in rows]


def kind_of(edges):
    return "numeric" if isinstance(edges[0], int | float | Decimal) else "temporal"


def grid(low, high, parts):
    """Cuts that divide [low, high) of whole numbers."""
    return tuple(low + (high - low) * part // parts for part in range(parts + 1))


def one_of_pieces(cuts, bits, step=1, bin_=None):
    """The tick that the rule of ``Attribute.fill`` gives, in Python integers; two are possible, because
    narrow pieces use the upper 40 bits alone."""
    if len(cuts) == 1:
        return {cuts[0]}
    piece = bits % FILL_PIECES if len(cuts) > 2 else 0
    low, high = cuts[piece], cuts[piece + 1]
    if low == high:
        return {low}
    inside = [low - low % -step, high]  # the first multiple from low on
    number = -((inside[0] - high) // step)
    if number <= 0:
        near = [tick for tick in (low // step * step, -(-high // step) * step) if bin_[0] <= tick < bin_[1]]
        return {min(near, key=lambda tick: max(low - tick, tick - high + 1))} if near else {low}
    return {inside[0] + step * (bits * number >> 64), inside[0] + step * ((bits >> 24) * number >> 40)}


TYPES = {
    "TINYINT": (-(2**7), 2**7),
    "UTINYINT": (0, 2**8),
    "INTEGER": (-(2**31), 2**31),
    "BIGINT": (-(2**63), 2**63),
    "UBIGINT": (0, 2**64),
    "HUGEINT": (-(2**127), 2**127),
    "UHUGEINT": (0, 2**128),
    "DECIMAL(4,2)": (-9999, 10000),
    "DECIMAL(38,5)": (1 - 10**38, 10**38),
    "DATE": (to_tick(Attribute("v", "DATE", "temporal").type, date(1, 1, 1)), 2932897),
    "TIME": (0, 86_400_000_000),
    "TIMESTAMP": (-62135596800000000, 253402300800000000),
    "TIMESTAMP_S": (-62135596800, 253402300799),
    "TIMESTAMP_MS": (-62135596800000, 253402300799999),
    "TIMESTAMP WITH TIME ZONE": (-62135596800000000, 253402300800000000),
}


@st.composite
def attributes(draw):
    """A discrete attribute with bins anywhere in its type, one of which is often the whole of it."""
    sql_type = draw(st.sampled_from(sorted(TYPES)))
    low, end = TYPES[sql_type]
    kind = Attribute("v", sql_type, "numeric").type
    inner = draw(st.lists(st.integers(low + 1, end - 1), max_size=3, unique=True))
    ends = draw(st.sampled_from([(low, end), (low, low + 20), (end - 20, end), (0, 12)]))
    ticks = sorted({*ends, *(tick for tick in inner if ends[0] < tick < ends[1])})
    fill = []
    for first, after in pairwise(ticks):
        how = draw(st.sampled_from(["atom", "whole", "interval", "pieces", "narrow"]))
        number = {"atom": 1, "interval": 2, "pieces": 9, "narrow": 9}.get(how)
        if number is None:
            fill.append((first, after))
            continue
        top = min(after - 1, first + 3) if how == "narrow" else after - 1
        cuts = sorted(draw(st.lists(st.integers(first, top), min_size=number, max_size=number)))
        if number > 1 and (cuts[-1] == cuts[-2] or draw(st.booleans())):
            cuts[-1] = after
        fill.append(tuple(cuts))
    step = draw(st.sampled_from([1, 1, 1, 2, 7, 1000]))
    valued = [tuple(from_tick(kind, tick) for tick in cuts) for cuts in fill]
    edges = tuple(from_tick(kind, tick) for tick in ticks)
    made = Attribute(
        "v", sql_type, kind_of(edges), edges=edges, fill=tuple(valued), granularity=step if step > 1 else None
    )
    assert edge_ticks(made) == tuple(ticks)
    return made


@settings(max_examples=60, deadline=None)
@given(attributes(), st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_discrete_values_are_those_of_a_brute_force(con, attribute, more):
    bits = [0, 7, 2**63 + 3, 2**64 - 1, 2**64 - 8, *more]
    ticks, fill = edge_ticks(attribute), fill_ticks(attribute)
    for code, cuts in enumerate(fill):
        for number, value in zip(bits, values(con, attribute, code, bits), strict=True):
            bin_ = ticks[code : code + 2]
            moment = value.replace(tzinfo=UTC) if "ZONE" in attribute.sql_type else value
            tick = to_tick(attribute.type, moment)
            assert tick in one_of_pieces(cuts, number, attribute.granularity or 1, bin_)
            assert bin_[0] <= tick < bin_[1]
    assert set(values(con, attribute, attribute.regular, bits)) == {None}


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["DOUBLE", "FLOAT"]),
    st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=10, max_size=24, unique=True),
    st.lists(st.integers(0, 2**64 - 1), max_size=6),
    st.booleans(),
)
def test_floats_never_leave_their_piece(con, sql_type, found, more, atom):
    found = sorted({number + 0.0 for number in found})
    if len(found) < 10:
        return
    pieces, last = tuple(found[:9]), (found[8], found[9])
    single = (
        math.nextafter(found[-1], math.inf)
        if sql_type == "DOUBLE"
        else float(np.nextafter(np.float32(found[-1]), np.float32(np.inf)))
    )
    edges = (found[0], found[8], found[9], *([found[-1]] if found[-1] > found[9] else []), single)
    fill = [
        pieces,
        last,
        *([(found[9],)] if len(edges) == 5 else []),
        (found[-1],) if atom else (found[-1], single),
    ]
    attribute = Attribute("v", sql_type, "numeric", edges=edges, fill=tuple(fill), nullable=True)
    bits = [0, 7, 2**63 + 3, 2**64 - 1, 2**64 - 8, *more]
    for code, cuts in enumerate(fill):
        for number, value in zip(bits, values(con, attribute, code, bits), strict=True):
            piece = number % FILL_PIECES if len(cuts) > 2 else 0
            if len(cuts) == 1:
                assert value == cuts[0]
            else:
                assert cuts[piece] <= value < cuts[piece + 1]
    assert values(con, attribute, attribute.null_code, [5]) == [None]


def test_a_piece_without_width_is_its_value_in_floats(con):
    cuts = (0.1, 0.1, 0.25, 0.25, 0.25, 0.5, 0.5, 0.75, 1.0)
    for granularity in (None, Decimal("0.2")):
        attribute = Attribute(
            "v", "DOUBLE", "numeric", edges=(0.0, 1.0), fill=(cuts,), granularity=granularity
        )
        found = values(con, attribute, 0, range(8))
        assert [found[piece] for piece in (0, 2, 3, 5)] == [0.1, 0.25, 0.25, 0.5]


def test_every_piece_gets_an_eighth_and_is_even(con):
    cuts = (0, 1, 3, 6, 10, 10, 20, 40, 100)
    whole = Attribute("v", "INTEGER", "numeric", edges=(0, 100, 104), fill=(cuts, (100, 104)))
    rows = 80_000
    expression = whole.value("code", Fragment('hash("row")')).values[whole.name]
    found = con.execute(
        f'SELECT code, {expression} FROM (SELECT i AS "row", i % 2 AS code FROM range({2 * rows}) t(i))'
    ).fetchall()
    drawn = Counter(value for code, value in found if code == 0)
    expected = Counter()
    for low, high in pairwise(cuts):
        for value in range(low, max(high, low + 1)):
            expected[value] += rows / 8 / max(1, high - low)
    statistic = sum((drawn[value] - want) ** 2 / want for value, want in expected.items())
    assert set(drawn) == set(expected) == set(range(100))
    assert 50 < statistic < 170  # chi-square of 99 degrees; both limits are beyond 1e-4
    even = Counter(value for code, value in found if code == 1)
    assert all(abs(even[value] - rows / 4) < 5 * math.sqrt(rows / 4) for value in range(100, 104))


def test_quantiles_of_floats_are_the_cuts(con):
    cuts = (0.0, 0.5, 0.75, 1.0, 2.0, 4.0, 8.0, 100.0, 1e6)
    attribute = Attribute("v", "DOUBLE", "numeric", edges=(0.0, 1e9), fill=(cuts,))
    rows = 80_000
    expression = attribute.value("0", Fragment('hash("row")')).values[attribute.name]
    drawn = np.array(con.execute(f'SELECT {expression} FROM range({rows}) t("row")').fetchall()).ravel()
    inside = [(drawn < cut).mean() for cut in cuts[1:]]
    assert np.allclose(inside, np.arange(1, 9) / 8, atol=0.006)
    assert np.isclose(np.median(drawn[drawn >= 100]), 5e5, rtol=0.04)


@pytest.mark.parametrize("sql_type", ["DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"])
def test_first_days_of_months_in_pieces(con, sql_type):
    def moment(year, month, day):
        if sql_type == "DATE":
            return date(year, month, day)
        return datetime(year, month, day, tzinfo=UTC if "ZONE" in sql_type else None)

    days = [moment(2020, 1, 20), moment(2020, 1, 25), moment(2020, 2, 3), moment(2020, 2, 10)]
    days += [
        moment(2020, 2, 20),
        moment(2020, 2, 21),
        moment(2020, 3, 5),
        moment(2020, 3, 6),
        moment(2020, 3, 9),
    ]
    later = (moment(2020, 4, 2), moment(2020, 4, 20))
    attribute = Attribute(
        "v",
        sql_type,
        "temporal",
        edges=(days[0], days[-1], *later),
        fill=(tuple(days), (moment(2020, 3, 20), later[0]), (moment(2020, 4, 7), later[1])),
        granularity="month",
    )
    found = [(v.month, v.day) for v in values(con, attribute, 0, range(8))]
    # A piece without a first day takes the nearest one of its bin: of 20 January that of February.
    assert found == [(2, 1), (2, 1), (2, 1), (2, 1), (3, 1), (3, 1), (3, 1), (3, 1)]
    assert {(v.month, v.day) for v in values(con, attribute, 1, range(8))} == {(4, 1)}
    assert {(v.month, v.day) for v in values(con, attribute, 2, range(8))} == {(4, 7)}  # the bin has none
    atom = Attribute(
        "v", sql_type, "temporal", edges=(days[0], days[-1]), fill=((days[3],),), granularity="month"
    )
    assert {(v.month, v.day) for v in values(con, atom, 0, range(8))} == {(2, 10)}


def test_decimal_steps_in_pieces_of_floats(con):
    cuts = (0.0, 0.01, 0.02, 0.06, 0.07, 0.11, 0.2, 0.34, 0.9)
    attribute = Attribute(
        "v",
        "DOUBLE",
        "numeric",
        edges=(0.0, 0.9, 0.95),
        fill=(cuts, (0.9, 0.95)),
        granularity=Decimal("0.1"),
    )
    bits = [*range(8), *(2**64 - 8 + piece for piece in range(8))]
    found = values(con, attribute, 0, bits)
    assert found[:8] == [0.0, 0.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.4]
    assert found[8:] == [0.0, 0.0, 0.0, 0.1, 0.1, 0.2, 0.3, 0.8]
    assert set(values(con, attribute, 1, bits)) == {0.9}


def test_columns_without_shaped_bins_have_short_lists():
    edges = tuple(range(0, 1000, 10))
    plain = Attribute("v", "INTEGER", "numeric", edges=edges)
    fill = tuple((low,) if low % 20 else (low, high) for low, high in pairwise(edges))
    atoms = Attribute("v", "INTEGER", "numeric", edges=edges, fill=fill)
    text = [one.value(Fragment("c"), Fragment("b")).values[one.name] for one in (plain, atoms)]
    assert "b & 7" not in text[1]
    even = Attribute("v", "INTEGER", "numeric", edges=edges, fill=tuple(pairwise(edges)))
    assert even.value(Fragment("c"), Fragment("b")).values[even.name] == text[0]


@pytest.mark.parametrize(
    ("sql_type", "edges", "fill"),
    [
        ("INTEGER", (0, 5, 9), ((0, 5),)),
        ("INTEGER", (0, 5), ((0, 1, 5),)),
        ("INTEGER", (0, 5), ((5,),)),
        ("INTEGER", (0, 5), ((3, 1),)),
        ("INTEGER", (0, 5), ((3, 3),)),
        ("INTEGER", (0, 5), ((0, 6),)),
        ("INTEGER", (0, 5), ((-1,),)),
        ("INTEGER", (0, 5), ((0.5,),)),
        ("INTEGER", (0, 5), ((0, 1, 1, 1, 1, 1, 1, 5, 5),)),
        ("INTEGER", (0, 5), ((0, 1, 1, 2, 1, 1, 1, 4, 5),)),
        ("DOUBLE", (0.0, 5.0, 6.0), ((5.0,), (5.0,))),
        ("DOUBLE", (0.0, 5.0), ((math.nan,),)),
        ("DOUBLE", (0.0, 5.0), ((1,),)),
        ("FLOAT", (0.0, 5.0), ((0.1,),)),
        ("DATE", (date(2020, 1, 1), date(2020, 1, 9)), ((date(2020, 1, 9),),)),
    ],
)
def test_a_fill_that_does_not_fit_is_refused(sql_type, edges, fill):
    with pytest.raises(InternalError, match="fill"):
        Attribute("v", sql_type, kind_of(edges), edges=edges, fill=fill)


def test_categories_have_no_fill():
    with pytest.raises(InternalError, match="fill"):
        Attribute("v", "INTEGER", "categorical", (1, 2), fill=((1,), (2,)))
