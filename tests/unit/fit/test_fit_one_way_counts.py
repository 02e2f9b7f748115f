"""One-way counts from all noisy tables, against closed forms."""

import numpy as np
import pytest

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.fit.variances import one_way_counts
from dpsyn_sql.planning.queries import Map, NoisyMarginal

DOMAIN = Domain(
    (
        Attribute("a", "VARCHAR", "categorical", ("x", "y", "z")),
        Attribute("b", "VARCHAR", "categorical", ("u", "v")),
    )
)


def table(attrs: str, values: object, sigma: float, maps: tuple[Map | None, ...] = ()) -> NoisyMarginal:
    return NoisyMarginal(tuple(attrs), np.asarray(values, dtype=np.int64), sigma, maps)


def test_one_table_is_itself() -> None:
    found = one_way_counts(DOMAIN, [table("a", [5, -2, 9], 3.0)])
    assert list(found) == ["a"]
    assert found["a"].counts == pytest.approx([5, -2, 9])
    assert found["a"].sigma == pytest.approx([3.0] * 3)


def test_tables_alone_are_averaged_by_inverse_variance() -> None:
    found = one_way_counts(DOMAIN, [table("b", [10, 20], 1.0), table("b", [20, 40], 2.0)])["b"]
    assert found.counts == pytest.approx([(4 * 10 + 20) / 5, (4 * 20 + 40) / 5])
    assert found.sigma == pytest.approx([np.sqrt(4 / 5)] * 2)


def test_where_none_was_asked_alone_larger_tables_are_summed() -> None:
    pair = table("ba", [[1, 2, 3], [10, 20, 30]], 2.0)
    found = one_way_counts(DOMAIN, [pair, table("b", [7, 8], 9.0)])
    assert found["a"].counts == pytest.approx([11, 22, 33])
    assert found["a"].sigma == pytest.approx([2 * np.sqrt(2)] * 3)
    assert found["b"].counts == pytest.approx([7, 8])


def test_sums_of_several_tables_weigh_by_their_cells() -> None:
    bins = table("ab", [[9], [9], [9]], 2.0, (None, (0, 0)))
    pair = table("ab", [[1, 2], [3, 4], [5, 6]], 2.0)
    found = one_way_counts(DOMAIN, [bins, pair])["a"]
    assert found.counts == pytest.approx([(2 * 9 + 3) / 3, (2 * 9 + 7) / 3, (2 * 9 + 11) / 3])
    assert found.sigma == pytest.approx([2 * np.sqrt(2 / 3)] * 3)


def test_bins_wider_than_codes_tell_no_code() -> None:
    assert one_way_counts(DOMAIN, [table("a", [4, 5], 1.0, ((0, 1, 1),))]) == {}
    same = one_way_counts(DOMAIN, [table("a", [4, 5, 6], 1.0, ((0, 1, 2),))])
    assert same["a"].counts == pytest.approx([4, 5, 6])


def test_exact_tables_have_weight() -> None:
    found = one_way_counts(DOMAIN, [table("b", [10, 20], 0.0), table("b", [500, 500], 50.0)])["b"]
    assert found.counts == pytest.approx([10, 20], abs=1e-3)
