"""Second looks cost no more than was planned for them, and go where much is hidden that can be found."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.doors import FakeDoor

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.discovery.designs import design, left_of
from dpsyn_sql.discovery.labels import both_looks
from dpsyn_sql.discovery.learn import HIDDEN, LOWER, Chooser, FirstLook, discovered, second_looks
from dpsyn_sql.planning.queries import GridQuery, NoisyKeys, NoisyMarginal
from dpsyn_sql.private.measure.questions.columns import keys_event, shown_from
from dpsyn_sql.source.relation import PrivacyUnit

LOOKS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.builds(
        FirstLook, st.integers(1, 2**58), st.integers(2, 5_000), st.integers(0, 20_000), st.floats(0, 900)
    ),
)


@given(
    pool=st.one_of(st.integers(0, 10**12), st.integers(2**52, 2**60)),
    looks=LOOKS,
    rows=st.one_of(st.none(), st.floats(-1e3, 1e5)),
)
def test_no_more_than_the_pool_and_only_where_it_finds_something(pool, looks, rows):
    costs = second_looks(pool, looks, rows)
    assert sum(costs.values()) <= pool and set(costs) <= set(looks)
    total = max((look.shown for look in looks.values()), default=0) if rows is None else rows
    for name, cost in costs.items():
        assert cost > 0 and total - looks[name].shown > HIDDEN * total


def test_budget_is_divided_in_proportion_to_the_hidden_rows():
    looks = {
        "one": FirstLook(10**6, 500, 1_000, 70.0),
        "two": FirstLook(10**6, 500, 7_000, 70.0),
        "seen": FirstLook(10**6, 500, 9_800, 70.0),
    }
    assert second_looks(12 * 10**6, looks, 10_000) == {"one": 9 * 10**6, "two": 3 * 10**6}


def test_what_cannot_be_found_is_left_to_the_others():
    rare = FirstLook(10**6, 1_900, 1_880, 90.0)  # 120 rows are hidden, and no threshold comes so low
    wide = FirstLook(10**6, 1_900, 0, 0.0)
    assert second_looks(10**7, {"rare": rare, "wide": wide}, 2_000) == {"wide": 10**7}
    assert second_looks(int(10**6 / LOWER), {"wide": wide}, 2_000) == {}


def test_a_threshold_is_not_made_lower_than_what_matters():
    costs = second_looks(10**12, {"x": FirstLook(10**6, 1_000, 0, 0.0)}, 100_000)
    assert costs == {"x": 4 * 10**6}
    assert second_looks(10**12, {"x": FirstLook(10**6, 500, 0, 0.0)}, 100_000) == {}


def test_without_the_number_of_rows_the_most_that_was_found_stands_for_it():
    looks = {"full": FirstLook(10**6, 500, 9_000, 70.0), "half": FirstLook(10**6, 500, 4_000, 70.0)}
    assert second_looks(10**7, looks, None) == {"half": 10**7}


def keys(found, sigma, threshold):
    return NoisyKeys("c", tuple(found), np.array(list(found.values()), np.int64), sigma, threshold)


def test_counts_are_pooled_and_a_missing_answer_is_below_its_threshold():
    pooled = both_looks(keys({"a": 900, "c": 700}, 100.0, 600), keys({"a": 800, "b": 300}, 50.0, 250))
    assert pooled.keys == ("a", "b", "c") and pooled.threshold == 250
    assert pooled.values.tolist() == [820, 300, round((700 + 4 * 249) / 5)]
    assert pooled.sigma == pytest.approx((100.0**-2 + 50.0**-2) ** -0.5)


def test_no_bias_of_values_that_are_clearly_shown():
    random, true = np.random.default_rng(5), 1_000
    means = [
        both_looks(
            keys({"a": round(true + random.normal(0, 90))}, 90.0, 300),
            keys({"a": round(true + random.normal(0, 40))}, 40.0, 150),
        ).values[0]
        for _ in range(2_000)
    ]
    assert abs(np.mean(means) - true) < 5 * 40 / np.sqrt(2_000)  # five errors: below 1e-6


class Looks(FakeDoor):
    """A door that shows the values above the threshold of each budget, without noise."""

    def __init__(self, columns):
        self.columns, self.spent, self.delta = columns, 0, 0

    def answer(self, query, budget):
        self.spent += budget.amount
        if isinstance(query, GridQuery):
            return NoisyMarginal(("rows",), np.array([30_030, 5]), 30.0)
        event = keys_event(1, budget)
        self.delta += event.delta_units
        held = {key: n for key, n in self.columns[query.attr].items() if n >= shown_from(event)}
        return keys(dict(sorted(held.items())), event.sigma, shown_from(event))


COLUMNS = {
    "port": {f"p{place}": 200 for place in range(150)},
    "phase": {"up": 18_000, "down": 12_000},
    "id": {f"i{place}": 1 for place in range(30_000)},
}


def test_columns_where_much_is_hidden_are_asked_again_within_the_plan():
    columns = (Undiscovered(name, "VARCHAR", "categorical", max_codes=200) for name in COLUMNS)
    shape = Shape(tuple(columns))
    budget = Budget.of_release(1, "1e-9")
    planned = design(shape, PrivacyUnit(), budget)
    door, chooser = Looks(COLUMNS), Chooser(budget, PrivacyUnit(), lambda _: Fraction(1, 3))
    found = discovered(shape, planned, door, chooser)
    assert {step.attr for step in found.asked if step.ask == "again"} == {"port", "id"}
    assert found.shape.domain["port"].labels == tuple(sorted(COLUMNS["port"]))
    assert found.shape.domain["phase"].labels == ("down", "up") and not found.shape.domain["id"].labels
    assert door.spent == sum(step.budget.amount for step in found.asked)
    assert left_of(budget, planned).amount <= left_of(budget, found.asked).amount
    assert door.delta <= sum(step.budget.delta for step in found.asked) <= budget.delta
