"""Noisy distances to public references, and marginals over public bins."""

import numpy as np
import pytest
from support.doors import FakeCounter, NoNoise, OneRelease, ReadAtOnce

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.auditing.testing import RecordingNoise
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import Distances, MarginalQuery, Marginals
from dpsyn_sql.private.measure.counting import Counts
from dpsyn_sql.private.measure.noise import ExactNoise

DOMAIN = Domain(
    tuple(
        Attribute(name, "VARCHAR", "categorical", labels=tuple("vwxyz"[:size]))
        for name, size in (("a", 2), ("b", 5))
    )
)
TABLES = {
    ("a",): np.array([60, 40]),
    ("b",): np.array([10, 20, 30, 0, 40]),
    ("a", "b"): np.array([[10, 20, 30, 0, 0], [0, 0, 0, 0, 40]]),
}
A, B, AB = (MarginalQuery(attrs) for attrs in TABLES)
BINS = (1, 0, 1, 0, 2)
BINNED = MarginalQuery(("a", "b"), (None, BINS))
BUDGET, LARGE = Budget("gdp", 10**13), Budget("gdp", 10**15)


def counter():
    return FakeCounter(lambda query: TABLES[query.attrs].copy())


def door(noise=None, rows=1, budget=LARGE):
    entry = OneRelease(budget).open()
    return ReadAtOnce(counter(), DOMAIN, rows, entry, noise or NoNoise()), entry


def first_and_again(noise):
    """Two doors of one release, the second a replay."""
    release = OneRelease(LARGE)
    for _ in range(2):
        yield ReadAtOnce(counter(), DOMAIN, 1, release.open(), noise)


def test_distances_are_l1_and_charged_together():
    curator, entry = door()
    references = [np.array([50, 50]), np.zeros(5, dtype=np.int64)]
    assert curator.ask(Distances([A, B], references), BUDGET) == [20, 100]
    (event,) = entry.events
    assert isinstance(event, GaussianEvent) and event.l2_squared == 2
    assert curator.measurements == ()


@pytest.mark.parametrize("rows", [1, 3])
def test_sensitivity_of_m_distances_for_units_of_k_rows(rows):
    references = [TABLES["a",], TABLES["b",], TABLES["a", "b"]]
    curator, entry = door(rows=rows)
    curator.ask(Distances([A, B, AB], references), BUDGET)
    assert entry.events[0].l2_squared == 3 * rows**2
    curator, entry = door(rows=rows, budget=Budget("pure", 10**15))
    curator.ask(Distances([A, B, AB], references), Budget("pure", 10**14))
    assert isinstance(entry.events[0], LaplaceEvent) and entry.events[0].l1 == 3 * rows


def test_a_unit_changes_a_distance_by_at_most_its_rows():
    """Brute force: k rows more in any cell, against every reference."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        counts, reference = rng.integers(0, 20, 6), rng.integers(-5, 25, 6)
        more = counts + rng.multinomial(3, np.full(6, 1 / 6))
        assert abs(np.abs(more - reference).sum() - np.abs(counts - reference).sum()) <= 3


def test_the_noise_has_the_scale_charged():
    curator, entry = door(ExactNoise(), budget=Budget("gdp", 10**18))
    errors = [
        curator.ask(Distances([A, B], [np.array([50, 50]), np.zeros(5, dtype=np.int64)]), BUDGET)[0] - 20
        for _ in range(300)
    ]
    assert np.std(errors) == pytest.approx(entry.events[0].sigma, rel=0.2)
    assert abs(np.mean(errors)) < 5 * entry.events[0].sigma / np.sqrt(300)


def test_a_replay_gives_the_stored_distances_also_when_a_reference_was_rounded_differently():
    first, again = first_and_again(ExactNoise())
    answer = first.ask(Distances([A], [np.array([50, 50])]), BUDGET)
    assert again.ask(Distances([A], [np.array([50, 51])]), BUDGET) == answer


def test_codes_of_a_bin_are_summed_before_the_noise():
    noise, counts, entry = RecordingNoise(NoNoise()), counter(), OneRelease(LARGE).open()
    curator = ReadAtOnce(counts, DOMAIN, 1, entry, noise)
    binned, plain = curator.ask(Marginals([BINNED, AB]), BUDGET)
    expected = np.array([[20, 40, 0], [0, 0, 40]])
    np.testing.assert_array_equal(binned.values, expected)
    assert binned.maps == BINNED.maps and plain.maps == ()
    assert [call.exact.tolist() for call in noise.calls] == [
        [16 * count for count in (*expected.ravel(), *TABLES["a", "b"].ravel())]
    ]
    assert entry.events[0].l2_squared == 2
    assert curator.ask(Distances([BINNED], [expected]), BUDGET) == [0]


def test_bins_partition_the_codes_so_that_one_row_changes_one_cell():
    for place in np.ndindex(2, 5):
        counts = Counts(counter, DOMAIN)
        before = next(counts.exact([BINNED]))
        TABLES["a", "b"][place] += 1
        try:
            change = next(counts.exact([BINNED])) - before
        finally:
            TABLES["a", "b"][place] -= 1
        assert change.min() == 0 and change.sum() == change.max() == 1


@pytest.mark.parametrize(
    "maps", [((0, 0), None, None), (None, (0, 1)), (None, (0, 2, 0, 2, 0)), (None, (1, 1, 1, 1, 2)), (None,)]
)
def test_maps_give_every_code_a_bin_and_every_bin_a_code_or_nothing_is_charged(maps):
    curator, entry = door()
    with pytest.raises(InternalError, match="map"):
        curator.ask(Marginals([MarginalQuery(("a", "b"), maps)]), BUDGET)
    assert entry.events == ()
