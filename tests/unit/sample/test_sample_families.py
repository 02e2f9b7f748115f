"""Rows of units that go together: persons, then their rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chisquare
from support.domains import attribute
from support.families import (
    CHAIN,
    MISSED,
    MOST,
    VISITS,
    chain,
    dated,
    mean_places,
    model_of,
    plain,
    timed,
    visits,
)

from dpsyn_sql.attributes.attribute import Attribute, Domain, Recoding, edge_ticks
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.given import Given
from dpsyn_sql.planning.families import Families, numbers_of_rows
from dpsyn_sql.planning.panel import families_of_period
from dpsyn_sql.rows.sample import walk as sampled_families
from dpsyn_sql.rows.sample.systematic import generator_of
from dpsyn_sql.rows.sample.tables import places
from dpsyn_sql.rows.sample.ticks import check_ticks


def drawn(model, units, seed=1):
    """People, codes, ticks and the unit of each row."""
    sampler = model.sampler()
    people = sampler.people(units, seed)
    batches = list(sampler.rows(people, seed))
    codes = np.concatenate([batch.codes for batch in batches]).astype(int)
    ticks = np.concatenate([batch.ticks for batch in batches])
    return people, codes, ticks, np.repeat(np.arange(units), people.rows)


def shares(model, names):
    return model.project(names) / model.total


def test_what_a_person_keeps_decides_what_follows_from_it():
    """The model knows of no tie of the region to that of the period before: what is kept is known, not drawn."""
    families = families_of_period(Domain((attribute("region", 3), attribute("state", 3))), {"region"})
    follows = np.array([[0.0, -40.0, -40.0], [-40.0, 0.0, -40.0]])
    model = model_of(families, {("region", "state"): follows}, bins={"region": [0, 0, 1]})
    people, joins = 600, 300
    kept = np.concatenate([np.repeat([0, 1, 2], people // 3), np.full(joins, -1)])
    columns = {one.name: np.zeros(people + joins, np.int64) for one in families.above}
    ones = np.ones(people + joins, np.int64)
    given = Given(columns | {"region": kept}, ones, ones.astype(float), 0 * ones)
    sampler = model.sampler()
    (batch,) = sampler.rows(sampler.people(0, 1, given), 1)
    region, state = batch.codes.T.astype(int)
    assert (region[:people] == kept[:people]).all()
    assert np.bincount(region[people:], minlength=3).min() > 50
    assert (np.array([0, 0, 1])[region] == state).mean() > 0.99


def test_families_are_contiguous_and_sizes_say_how_many():
    people, codes, _, owners = drawn(plain(), 5000)
    assert len(codes) == people.total == owners.size
    assert people.rows.dtype == np.int64 and people.rows.min() >= 1 and people.rows.max() <= MOST


def test_every_size_is_drawn_as_often_as_the_model_says():
    model = plain()
    people, _, _, _ = drawn(model, 20_000)
    expected = 20_000 * shares(model, ["n"])
    assert np.abs(np.bincount(people.rows, minlength=MOST + 1)[1:] - expected).max() < 2


def test_numbers_of_rows_are_even_within_the_bins_of_large_sizes():
    size = numbers_of_rows("n", 100)
    families = Families(Domain((attribute("x", 2), size)), 1, frozenset({"n"}), "n")
    model = model_of(families, {("x", "n"): np.zeros((2, size.size))})
    people, _, _, _ = drawn(model, 60_000)
    edges, found_sizes = np.array(edge_ticks(size)), np.bincount(people.rows, minlength=101)
    for code in np.flatnonzero(np.diff(edges) > 1):
        found = found_sizes[edges[code] : edges[code + 1]]
        assert chisquare(found).pvalue > 1e-4
    assert found_sizes.size == 101 and people.rows.size == 60_000


def test_units_share_their_attributes_and_rows_follow_the_model_given_the_unit():
    model, units = plain(), 200_000
    people, codes, _, owners = drawn(model, units)
    assert all(
        codes[owners == unit, 0].max() == codes[owners == unit, 0].min() for unit in range(0, units, 997)
    )
    weights = 1 / people.rows[owners]
    found = np.zeros((3, MOST, 2))
    np.add.at(found, (codes[:, 0], people.rows[owners] - 1, codes[:, 1]), weights / units)
    np.testing.assert_allclose(found, shares(model, ["age", "n", "color"]), atol=2e-3)
    pair = np.zeros((2, 3))
    np.add.at(pair, (codes[:, 1], codes[:, 2]), weights / units)
    np.testing.assert_allclose(pair, shares(model, ["color", "kind"]), atol=4e-3)


def test_low_variance_of_each_rank():
    model = plain(persons=False)
    people, codes, _, owners = drawn(model, 3000)
    pair = shares(model, ["n", "color"])
    given = pair / pair.sum(axis=1, keepdims=True)
    ranks = np.arange(owners.size) - people.starts[owners]
    for rows in range(1, MOST + 1):
        for rank in range(rows):
            own = codes[(people.rows[owners] == rows) & (ranks == rank), 1]
            if own.size:
                assert abs((own == 1).sum() - own.size * given[rows - 1, 1]) < 3.0


def agreement(model, seeds, units=8):
    """How often the two rows of units of two rows agree in a coin: few units, where low variance matters."""
    agree = [
        np.equal(*drawn(model, units, seed)[1][:, 0].reshape(units, 2).T).mean() for seed in range(seeds)
    ]
    return float(np.mean(agree)), float(np.std(agree) / np.sqrt(seeds))


def coins():
    size = Attribute("n", "BIGINT", "numeric", edges=(2, 3), ordered=True)
    families = Families(Domain((attribute("coin", 2), size)), 1, frozenset({"n"}), "n")
    return model_of(families, {("coin", "n"): np.zeros((2, 1))})


def test_siblings_are_independent_given_their_unit():
    mean, error = agreement(coins(), 3000)
    assert abs(mean - 0.5) < 4 * error


def test_low_variance_through_a_unit_would_pull_siblings_apart(monkeypatch):
    monkeypatch.setattr(
        sampled_families.People,
        "owners",
        lambda self, rows: (np.searchsorted(self.starts, rows, "right") - 1, 0 * rows),
    )
    mean, error = agreement(coins(), 3000)
    assert mean < 0.5 - 8 * error


@pytest.mark.parametrize("place", [True, False])
def test_walks_follow_a_planted_chain(place):
    people, codes, _, owners = drawn(chain(place), 60_000)
    state, first = codes[:, 0], np.zeros(owners.size, bool)
    first[people.starts[:-1]] = True
    before = np.where(first, 3, np.roll(state, 1))
    found = np.zeros((4, 3))
    np.add.at(found, (before, state), 1)
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), CHAIN, atol=0.01)


def pairs_of(codes, people, none):
    """Shares of each code and the code of the row before, ``none`` before a first row; units weigh the same."""
    before = np.roll(codes, 1)
    before[people.starts[:-1]] = none
    found = np.zeros((none + 1, codes.max() + 1))
    np.add.at(found, (before, codes), np.repeat(1 / people.rows, people.rows))
    return found / found.sum()


def test_moments_follow_the_moment_of_the_row_before_as_in_the_model():
    """Visits 1, 2, 3, 4, 5 of a unit, all but certain: no unit has two of one number."""
    model = visits()
    people, codes, _, _ = drawn(model, 4000)
    number, day = codes.T
    assert np.bincount(number) / number.size == pytest.approx(np.full(VISITS, 1 / VISITS), abs=0.005)
    in_model = shares(model, ["nr before", "nr"])
    assert np.abs(pairs_of(number, people, VISITS) - in_model).sum() / 2 < 0.01  # sorted: .46
    assert (np.diff(number.reshape(-1, VISITS), axis=1) == 1).all(axis=1).mean() > 0.98
    assert np.abs(pairs_of(day, people, VISITS) - shares(model, ["day before", "day"])).sum() / 2 < 0.02
    assert (day == VISITS).mean() == pytest.approx(MISSED, abs=0.01)
    assert (day == number).mean() == pytest.approx(1 - MISSED, abs=0.01)


def test_moments_that_are_drawn_again_follow_the_row_before():
    model = visits()
    sampler = model.sampler()
    people = sampler.people(4000, 1)
    for rank in (3, 1, 0, 2):
        rows, ranks = people.starts[:-1] + rank, np.full(4000, rank)
        sampler.draw_moments_again(people, rows, ranks, generator_of(1, 2**33 + rank))
    number = people.moments[0].astype(int)
    assert np.abs(pairs_of(number, people, VISITS) - shares(model, ["nr before", "nr"])).sum() / 2 < 0.01


def test_rows_that_meet_what_the_model_excludes_follow_their_own_moment():
    """Sorted moments repeat and leave gaps: of rows whose number is not one after the one before, the model all
    but leaves NULL. Such are those of SQL."""
    model = visits()
    sampler = replace(model.sampler(), succession=None)
    codes = np.concatenate(list(sampler.batches(4000, 1))).astype(int)
    number, day = codes.T
    assert np.bincount(number) / number.size == pytest.approx(np.full(VISITS, 1 / VISITS), abs=0.02)
    assert (day == VISITS).mean() == pytest.approx(MISSED, abs=0.02)
    assert (day == number).mean() == pytest.approx(1 - MISSED, abs=0.02)
    first = np.arange(number.size) % VISITS == 0
    after = np.flatnonzero(~first & (np.roll(number, 1) != number - 1))
    assert after.size > 0.4 * number.size
    assert (day[after] == VISITS).mean() == pytest.approx(MISSED, abs=0.03)


@pytest.mark.parametrize("nullable", [False, True])
def test_moments_have_the_distribution_of_the_model_for_every_number_of_rows(nullable):
    model = timed(nullable=nullable)
    people, codes, _, owners = drawn(model, 30_000)
    joint = shares(model, ["region", "n", "day"])
    given = joint / joint.sum(axis=2, keepdims=True)
    found, units = np.zeros_like(joint), np.zeros(joint.shape[:2])
    np.add.at(found, (codes[:, 0], people.rows[owners] - 1, codes[:, 2]), 1)
    np.add.at(units, (codes[people.starts[:-1], 0], people.rows - 1), 1)
    rows = np.arange(1, MOST + 1)[None, :, None]
    # Of each rank a count of bins is within one of its expectation, and that of codes in them within two.
    assert (np.abs(found - units[:, :, None] * rows * given) <= 3 * rows).all()
    assert found.sum(axis=(0, 2)).min() > 500


def test_moments_of_a_unit_are_independent_and_then_sorted():
    model = timed()
    people, codes, _, _ = drawn(model, 60_000)
    joint = shares(model, ["region", "n", "day"])
    for region in range(3):
        chosen = (people.rows == 2) & (codes[people.starts[:-1], 0] == region)
        pairs = codes[people.starts[:-1][chosen][:, None] + np.arange(2), 2]
        day = joint[region, 1] / joint[region, 1].sum()
        wanted = np.triu(2 * np.outer(day, day)) - np.diag(day**2)
        found = np.histogram2d(*pairs.T, bins=[np.arange(13)] * 2)[0] / len(pairs)
        error = np.sqrt(wanted / len(pairs)) + 2 / len(pairs)
        assert len(pairs) > 500 and (np.abs(found - wanted) < 4.5 * error).all()


def test_rows_follow_the_moment_and_the_row_before():
    model = timed()
    people, codes, _, owners = drawn(model, 60_000)
    first = np.zeros(owners.size, bool)
    first[people.starts[:-1]] = True
    before = np.where(first, 3, np.roll(codes[:, 1], 1))
    found = np.zeros((4, 12, 3))
    np.add.at(found, (before, codes[:, 2], codes[:, 1]), 1)
    joint = shares(model, ["state before", "day", "state"])
    wanted, rows = joint / joint.sum(axis=2, keepdims=True), found.sum(axis=2, keepdims=True)
    assert (np.abs(found - rows * wanted) < 4.5 * np.sqrt(rows * wanted) + 3).all() and rows.min() > 50


@pytest.mark.parametrize("nullable", [False, True])
def test_moments_that_are_drawn_again_never_go_backwards(nullable):
    model = timed(nullable=nullable)
    sampler = model.sampler()
    people = sampler.people(4000, 1)
    moments = {variable: own.copy() for variable, own in people.moments.items()}
    code = sampler.network.codes[2]
    units = np.flatnonzero(people.rows > 2)
    ranks = np.where(units % 2, 0, 1)
    rows = people.starts[units] + ranks
    for attempt in range(20):
        sampler.draw_moments_again(people, rows, ranks, generator_of(1, 2**33 + attempt))
    again, owners = people.until_end(rows), people.owners(np.arange(people.total))[0]
    others = np.setdiff1d(np.arange(people.total), again)
    for variable, own in people.moments.items():
        np.testing.assert_array_equal(own[others], moments[variable][others])
        assert (own[again] != moments[variable][again]).mean() > 0.3
    found = people.moments[code].astype(int)
    assert (np.diff(found)[owners[1:] == owners[:-1]] >= 0).all()
    assert set(people.moments) == {code, 2}
    np.testing.assert_array_equal(people.moments[2], model.bins[2][found])
    whole = people.until_end(rows[ranks == 0])
    joint = shares(model, ["n", "day"])
    for number in range(3, MOST + 1):
        own = found[whole[people.rows[people.owners(whole)[0]] == number]]
        assert (
            chisquare(
                np.bincount(own, minlength=joint.shape[1]),
                joint[number - 1] / joint[number - 1].sum() * own.size,
            ).pvalue
            > 1e-4
        )


def test_moments_that_are_but_noise_become_others_before_they_are_sorted():
    model = timed(nullable=True)
    families = model.families
    day = replace(families.domain.attributes[2], recoding=Recoding((12,), (0, 0, 5)))
    known = families.domain.attributes[:2]
    changed = families.with_attributes(Domain((*known, day)))
    sampler = replace(model.sampler(), families=changed)
    people = sampler.people(20_000, 1)
    codes = np.concatenate([batch.codes for batch in sampler.rows(people, 1)]).astype(int)[:, 2]
    plainly = np.concatenate(list(model.sampler().batches(20_000, 1))).astype(int)[:, 2]
    lost = (plainly == 12).sum()
    more = np.bincount(codes, minlength=13) - np.bincount(plainly, minlength=13)
    assert lost > 1000 and more[12] == -lost and more[0] + more[5] == lost
    assert abs(more[0] / lost - 2 / 3) < 0.05
    owners = people.owners(np.arange(people.total))[0]
    assert (np.diff(codes)[owners[1:] == owners[:-1]] >= 0).all()


def test_rows_in_one_bin_are_spread_over_it():
    model = timed()
    _, codes, ticks, owners = drawn(model, 20_000)
    first = edge_ticks(model.domain.attributes[2])[0]
    places, runs = mean_places(owners, codes[:, 2], ticks - first)
    assert runs > 1000 and np.abs(np.subtract(places, [0.25, 0.5, 0.75])).max() < 0.03


def test_places_of_rows():
    rows, ranks = np.array([1, 2, 2, 4, 4, 4]), np.array([0, 0, 1, 0, 2, 3])
    assert places(rows, ranks).tolist() == [0, 1, 3, 1, 2, 3]


@pytest.mark.parametrize("options", [{}, {"since": False}, {"granularity": 7}, {"nullable": True}])
def test_dates_of_a_unit_never_go_backwards_and_lie_in_their_bins(options):
    model = dated(**options)
    day = model.domain.attributes[1]
    edges = np.array(edge_ticks(day))
    _, codes, ticks, owners = drawn(model, 4000)
    known = codes[:, 1] < day.regular
    ticks, code, owners = ticks[known], codes[known, 1], owners[known]
    assert (edges[code] <= ticks).all() and (ticks < edges[code + 1]).all()
    same = owners[1:] == owners[:-1]
    assert (np.diff(ticks)[same] >= 0).all() and (np.diff(code)[same] >= 0).all()
    assert same.sum() > 1000
    if "nullable" in options:
        assert not known.all()
    if "granularity" in options:
        assert np.mean(ticks % 7 == 0) > 0.95


def test_time_since_the_row_before_is_met_where_the_day_allows_it():
    day = Attribute("day", "INTEGER", "numeric", edges=(0, 10**6), ordered=True)
    gap = Attribute("gap", "BIGINT", "numeric", edges=(0, 7, 40, 200), nullable=True, ordered=True)
    domain = Domain((day, numbers_of_rows("n", MOST), attribute("place", 4), gap))
    families = Families(domain, 1, frozenset({"n"}), "n", place="place", since="gap", order="day")
    wanted = np.array([0.5, 0.2, 0.3])
    ties = np.full((4, 4), -30.0)
    ties[:2, 3] = 0.0  # first rows have no row before
    ties[2:, :3] = np.log(wanted)
    model = model_of(families, {("place", "gap"): ties, ("n", "day"): np.zeros((MOST, 1))})
    people, _, ticks, owners = drawn(model, 20_000)
    gaps = np.diff(ticks)[owners[1:] == owners[:-1]]
    found = np.histogram(gaps, [0, 7, 40, 200])[0]
    assert found.sum() > 0.999 * gaps.size > 10_000 and people.total > 10_000
    np.testing.assert_allclose(found / gaps.size, wanted, atol=0.01)


@pytest.mark.parametrize("model", [plain, chain, timed])
def test_small_batches_hold_whole_units_even_larger_ones(model, monkeypatch):
    monkeypatch.setattr(sampled_families, "BATCH_ROWS", 4)
    sampler = model().sampler()
    people = sampler.people(300, 2)
    lengths = [len(batch.codes) for batch in sampler.rows(people, 2)]
    assert sum(lengths) == people.total and max(lengths) == MOST > 4
    assert set(np.cumsum([0, *lengths])) <= set(people.starts.tolist())


def test_no_units():
    for model in (plain(), dated(), timed()):
        sampler = model.sampler()
        people = sampler.people(0, 1)
        assert people.total == 0 and people.rows.size == 0
        assert list(sampler.rows(people, 1)) == [] and list(sampler.batches(0, 1)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        attribute("x", 3),
        Attribute("x", "DOUBLE", "numeric", edges=(0.0, 1.0), ordered=True),
        Attribute("x", "HUGEINT", "numeric", edges=(0, 2**100), ordered=True),
    ],
)
def test_what_cannot_order_rows_is_refused(wrong):
    with pytest.raises(InputError, match="cannot be ordered by column 'x'"):
        check_ticks(wrong)
