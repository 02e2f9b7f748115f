"""The type of a column from noisy numbers of units per class of text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.attributes.types import (
    BOOLEAN,
    CLASSES,
    CODE,
    DATE,
    DECIMALS,
    EMPTY,
    INTEGER,
    LONG,
    MISSING,
    NUMBER,
    TEXT,
    TIME,
    TIMESTAMP,
    WHOLE,
    ZONED,
    parse_type,
)
from dpsyn_sql.discovery.attributes import ODD, FoundType, type_from_classes

SIGMA = 10.0


def typed(counts, sigma=SIGMA):
    return type_from_classes(np.array([counts.get(name, 0) for name in CLASSES], dtype=np.int64), sigma)


@pytest.mark.parametrize(
    ("counts", "sql_type"),
    [
        ({INTEGER: 1_000}, "BIGINT"),
        ({INTEGER: 1_000, WHOLE: 500}, "BIGINT"),
        ({WHOLE: 1_000, EMPTY: 5_000, MISSING: 3_000}, "BIGINT"),
        ({INTEGER: 1_000, LONG: 200}, "HUGEINT"),
        ({INTEGER: 1_000, DECIMALS[1]: 100}, "DECIMAL(18,2)"),
        ({DECIMALS[0]: 900, DECIMALS[1]: 9_000, INTEGER: 100}, "DECIMAL(18,2)"),
        ({DECIMALS[1]: 100_000, DECIMALS[5]: 400}, "DECIMAL(18,2)"),  # four in a thousand are rounded
        ({DECIMALS[1]: 100_000, DECIMALS[5]: 900}, "DECIMAL(18,6)"),
        ({DECIMALS[1]: 1_000, NUMBER: 500}, "DOUBLE"),
        ({DECIMALS[1]: 1_000, LONG: 500}, "DOUBLE"),
        ({DATE: 1_000}, "DATE"),
        ({DATE: 1_000, TIMESTAMP: 100}, "TIMESTAMP"),
        ({ZONED: 1_000}, "TIMESTAMP WITH TIME ZONE"),
        ({TIME: 1_000}, "TIME"),
        ({BOOLEAN: 1_000}, "BOOLEAN"),
        ({TEXT: 1_000}, "VARCHAR"),
        ({INTEGER: 10_000, CODE: 50}, "VARCHAR"),  # postal codes of which few begin with a zero
        ({INTEGER: 1_000, TEXT: 60}, "VARCHAR"),
        ({INTEGER: 1_000, DATE: 1_000}, "VARCHAR"),
        ({DATE: 1_000, ZONED: 1_000}, "VARCHAR"),
        ({BOOLEAN: 1_000, INTEGER: 1_000}, "VARCHAR"),
        ({EMPTY: 9_000}, "VARCHAR"),
        ({MISSING: 9_000}, "VARCHAR"),
    ],
)
def test_the_most_specific_type_that_holds_what_stands_out(counts, sql_type):
    assert typed(counts) == FoundType(sql_type, 0.0, sure=True)
    assert parse_type(sql_type) is not None


def test_a_small_share_of_odd_texts_is_told():
    few = typed({INTEGER: 10_000, TEXT: 400})
    assert few.sql_type == "BIGINT" and few.odd == pytest.approx(400 / 10_400)
    assert typed({INTEGER: 10_000, TEXT: 600}).sql_type == "VARCHAR" and 400 / 10_400 < ODD < 600 / 10_600
    assert typed({INTEGER: 10_000, TEXT: 40}).odd == 0.0  # noise may be as large


def test_noise_alone_is_no_type():
    assert typed({}) == typed({INTEGER: 24}) == FoundType("VARCHAR", 0.0, sure=False)
    assert typed({INTEGER: 30, DATE: 29}) == FoundType("BIGINT", 0.0, sure=False)
    assert typed({TEXT: 30, DATE: 29}) == FoundType("VARCHAR", 0.0, sure=False)
    assert typed({DATE: 30, EMPTY: 900}) == FoundType("VARCHAR", 0.0, sure=True)  # hardly a value is there


@given(st.lists(st.integers(-(2**40), 2**40), min_size=19, max_size=19), st.floats(1, 1e9))
def test_any_answer_gives_a_type(counts, sigma):
    got = type_from_classes(np.array(counts, dtype=np.int64), sigma)
    assert parse_type(got.sql_type) is not None and 0 <= got.odd <= 1


def test_empty_classes_are_rarely_taken_for_types():
    """With 30,000 rows the type of a plain column is right, whatever the noise of a small budget."""
    noise = np.random.default_rng(1)
    exact = np.array([30_000 if name == INTEGER else 0 for name in CLASSES])
    drawn = [
        type_from_classes(exact + np.rint(noise.normal(0, 1_500, 19)).astype(np.int64), 1_500.0)
        for _ in range(2_000)
    ]
    assert sum(one.sql_type == "BIGINT" for one in drawn) >= 1_997
