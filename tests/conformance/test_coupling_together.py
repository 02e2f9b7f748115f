"""The coupling suite for rows that stay together: what was answered on a table, its neighbour may answer."""

from functools import partial

import pytest
from conformance.test_coupling import (
    EVERY,
    NEIGHBOURS,
    QUICK,
    Extreme,
    K,
    answers_of,
    check_coupled,
    on_table,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.source.relation import WEIGHT

UNITS = {
    "together": dict(unit="who", most=K),
    "ordered": dict(unit="who", most=K, order="d"),
    "numbered": dict(unit="who", most=2 * K, order="n"),
}
METHODS_HERE = sorted(name for name, method in EVERY.items() if method.takes_families)
VISITS = [
    (
        f"p{i // 4}",
        (i // 4 % 2) * 9 + i % 3,
        (i % 4) / 4,
        "ab"[i // 4 % 2],
        f"200{1 + i % 2}-05-{1 + i % 28:02}",
    )
    for i in range(240)
]
"""People who are alike in all rows, so that classes are asked for."""


def check(method, unit, rows, added, alike, place, removed, style, delta):
    added = [("eve", *row[1:]) for row in ([added[0]] * len(added) if alike else added)]
    tables = rows, [*rows[:place], *added, *rows[place:]]
    first, second = reversed(tables) if removed else tables
    counted = None if style in ("noise", "low", "zero") else 30
    run = partial(on_table, method=method, delta=delta, rows=counted, **UNITS[unit])
    check_coupled(run, first, second, answers_of(style), WEIGHT)


@QUICK
@given(st.sampled_from(sorted(UNITS)), st.fixed_dictionaries(NEIGHBOURS))
def test_neighbours_answer_alike(unit, neighbours):
    check("adaptive", unit, **neighbours)


@pytest.mark.slow
@pytest.mark.required
@pytest.mark.parametrize("unit", sorted(UNITS))
@pytest.mark.parametrize("method", METHODS_HERE)
@settings(QUICK, max_examples=8)
@given(**NEIGHBOURS)
def test_many_neighbours_answer_alike(method, unit, **neighbours):
    check(method, unit, **neighbours)


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_pairs_of_rows_and_classes_change_by_no_more_than_is_declared(unit):
    """At a large budget rows of a unit stand out, and its class is asked for: all kinds of question meet."""
    eve = [("eve", 3, 0.1, "b", f"2002-05-0{i + 1}") for i in range(2 * K + 1)]
    run = partial(on_table, method="adaptive", delta=1e-9, rows=30, epsilon=200.0, **UNITS[unit])
    asked = run(VISITS, Extreme("exact")).questions
    assert {"siblings", "distance"} <= {question["ask"] for question in asked}
    assert any("group" in attrs for question in asked for attrs in question.get("tables", ()))
    for table in ([*eve, *VISITS], [*VISITS[::-1], *eve]):
        check_coupled(run, VISITS, table, Extreme("exact"), WEIGHT)
