"""Working bins, and the graphical model over them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.belief import all_pairs, calibrate
from dpsyn_sql.fit.denoise import merged_neighbours, merged_rare, within_bins, working_bins
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.models.graphical import GraphicalModel


def attribute(name, size, ordered=True, other=False, nullable=False):
    return Attribute(name, "INTEGER", "categorical", tuple(range(size)), (), other, nullable, ordered)


VALUES = st.lists(st.floats(-100, 1e4), min_size=1, max_size=60).map(np.array)


@given(VALUES, st.floats(0, 500), st.integers(1, 40), st.booleans(), st.booleans())
def test_working_bins_are_numbered_without_gaps_and_neighbours_stay_together(
    values, least, most, order, null
):
    null = null and values.size > 1
    bins = working_bins(attribute("x", values.size - null, order, nullable=null), values, least, most)
    assert bins.shape == values.shape and set(bins) == set(range(bins.max() + 1))
    if order:
        assert np.all(np.diff(bins[: values.size - null]) >= 0)


def test_heavy_codes_stay_alone_and_light_ones_are_merged():
    assert merged_neighbours(np.array([1.0, 1, 1, 50, 1, 1, 1, 1]), 3.0, 100).tolist() == [
        0,
        0,
        0,
        1,
        2,
        2,
        2,
        2,
    ]
    assert merged_rare(np.array([9.0, 1, 8, 1, 1]), 3.0).tolist() == [0, 2, 1, 2, 2]
    assert merged_rare(np.array([9.0, 1, 8]), 3.0).tolist() == [0, 1, 2]
    with_null = working_bins(
        attribute("x", 3, nullable=True, other=True), np.array([9.0, 9, 9, 0, 9]), 3.0, 9
    )
    assert with_null.tolist() == [0, 1, 2, 2, 3]


def test_probabilities_within_bins():
    given_bin = within_bins(np.array([0.1, 0.3, 0.0, 0.0, 0.6]), np.array([0, 0, 1, 1, 2]))
    np.testing.assert_allclose(given_bin, [0.25, 0.75, 0.5, 0.5, 1.0])


def model():
    domain = Domain(tuple(attribute(n, 3) for n in "abcd"))
    bins = (np.array([0, 0, 1]),) + (np.arange(3),) * 3
    rng = np.random.default_rng(5)
    potentials = {p: rng.normal(0, 1, (2 if p[0] == 0 else 3, 3)) for p in ((0, 1), (1, 2), (2, 3))}
    beliefs = calibrate(junction_tree((2, 3, 3, 3), potentials), potentials)
    return GraphicalModel(domain, 100.0, beliefs, bins, (np.array([0.2, 0.8, 1.0]),) + (np.ones(3),) * 3)


def test_marginals_of_a_model_agree_with_each_other():
    fitted = model()
    for pair in combinations("abcd", 2):
        table = fitted.project(pair)
        np.testing.assert_allclose(table.sum(axis=1), fitted.project(pair[:1]))
        np.testing.assert_allclose(fitted.project(pair[::-1]), table.T)
    assert fitted.project("a")[0] == pytest.approx(fitted.project("a")[1] / 4)
    assert all_pairs(fitted.beliefs, [(0, 3), (1, 2)]).keys() == {(0, 3), (1, 2)}
    with pytest.raises(InputError, match="fitted together"):
        fitted.project(["a", "b", "d"])
