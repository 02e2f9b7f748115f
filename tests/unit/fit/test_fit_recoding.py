"""Which codes are not written, and what is written in their place."""

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Recoding
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.discovery.labels import MOST_LEFT_OUT, NOISE, recoded
from dpsyn_sql.fit.variances import OneWayCounts

TEXT = Attribute("a", "VARCHAR", "categorical", ("x", "y"), other=True, nullable=True)
CODES = Attribute("a", "INTEGER", "categorical", (1, 2, 3), other=True)


def recoding(
    attribute: Attribute, counts: list[float], sigma: float, total: float = 10_000
) -> Recoding | None:
    known = OneWayCounts(np.array(counts, float), np.full(len(counts), sigma))
    (item,) = recoded(Shape((attribute,)), {"a": known}, total).measured
    assert isinstance(item, Attribute)
    return item.recoding


@pytest.mark.parametrize("count", [-500.0, 0.0, 29.9])
def test_a_count_below_its_noise_is_not_written(count: float) -> None:
    found = recoding(TEXT, [7_000, 3_000, count, 5_000], 10.0)
    assert found is not None and found.codes == (2,)
    assert recoding(TEXT, [7_000, 3_000, 5_000, count], 10.0).codes == (3,)


def test_a_count_that_stands_out_is_written() -> None:
    assert recoding(TEXT, [7_000, 3_000, NOISE * 10.0, 40.0], 10.0) is None


def test_much_of_the_rows_is_written_however_uncertain() -> None:
    share = MOST_LEFT_OUT * 10_000
    assert recoding(TEXT, [7_000, 3_000, share, share], 1_000.0) is None
    assert recoding(TEXT, [7_000, 3_000, share - 1, share - 1], 1_000.0).codes == (2, 3)


def test_labels_and_bins_are_always_written() -> None:
    bins = Attribute("a", "INTEGER", "numeric", edges=(0, 5, 10), nullable=True)
    assert recoding(bins, [-80, 0, 9_000], 50.0) is None
    assert recoding(bins, [-80, 0, 0], 50.0) == Recoding((2,), (0,) * 128 + (1,) * 128)


def test_a_column_without_found_labels_keeps_its_codes() -> None:
    nothing = Attribute("a", "VARCHAR", "categorical", (), other=True, nullable=True)
    assert recoding(nothing, [0, 0], 50.0) is None
    assert recoding(nothing, [10_000, 20], 50.0) == Recoding((1,), (0,) * 256)


def test_rows_get_the_other_codes_by_their_shares() -> None:
    found = recoding(TEXT, [7_500, 2_500, 0, 0], 10.0)
    assert found is not None
    assert np.bincount(found.instead).tolist() == [192, 64]


def test_other_that_no_value_stands_for_is_one_of_the_labels() -> None:
    """Whole numbers have no value for it: where NULL is not written, a label is."""
    found = recoding(CODES, [1_000, 0, 3_000, 6_000], 10.0)
    assert found is not None and found.codes == (3,)
    assert np.bincount(found.instead, minlength=4).tolist() == [64, 0, 192, 0]
    nullable = Attribute("a", "INTEGER", "categorical", (1, 2, 3), other=True, nullable=True)
    assert recoding(nullable, [1_000, 0, 3_000, 6_000, 500], 10.0) is None
    assert recoding(nullable, [1_000, 0, 3_000, 6_000, 5], 10.0).codes == (3, 4)


def test_what_the_owner_excludes_is_never_written() -> None:
    stated = Attribute("a", "VARCHAR", "categorical", ("x", "y"), other=True, recoding=Recoding((2,), (0, 1)))
    found = recoding(stated, [100, 300, 9_600], 10.0)
    assert found is not None and found.codes == (2,)
    assert np.bincount(found.instead).tolist() == [64, 192]


def test_an_attribute_that_no_table_holds_is_left_alone() -> None:
    shape = Shape((TEXT,))
    assert recoded(shape, {}, 100.0) == shape
