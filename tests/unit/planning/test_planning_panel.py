"""What a panel is made of, and how its budget is divided."""

from dataclasses import replace

import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.panel import (
    PRESENCE_SHARE,
    divided,
    families_of_period,
    panel_of,
    presence_domain,
    presence_step,
)
from dpsyn_sql.source.slices import Partition, Window

EDGES = ("2025-01-01", "2025-02-01", "2025-03-01", "2025-04-01")
WINDOW = Window("day", "months", EDGES, 1)
WHOLE = Budget.of_release(1, "1e-9")
DOMAIN = Domain(
    (
        Attribute("a", "VARCHAR", "categorical", labels=("x", "y")),
        Attribute("a before", "INTEGER", "numeric", edges=(0, 1, 2), nullable=True),
    )
)


def made(window=WINDOW, labels=(), version=EDGES[1], whole=WHOLE):
    """``labels``: of all windows, if they are not their edges."""
    return panel_of(replace(window, labels=labels) if labels else window, version, whole)


def test_periods_have_equal_parts_of_the_budget():
    parts = [made().at(period).budget for period in (1, 2, 3)]
    assert [part.amount for part in parts] == [WHOLE.amount // 3] * 3
    assert [part.delta for part in parts] == [WHOLE.delta, 0, 0]
    assert sum(part.amount for part in parts) <= WHOLE.amount
    own, rest = divided(parts[1])
    assert own.amount == int(PRESENCE_SHARE * parts[1].amount)
    assert own.amount + rest.amount == parts[1].amount


def test_the_key_of_a_period_holds_all_that_divides_the_budget():
    own = made()
    assert own.identity == own.at(3).identity
    longer = Window("day", "months", (*EDGES, "2025-05-01"), 1)
    assert made(longer).identity != own.identity
    assert made(labels=("a", "b", "c"), version="b").identity != own.identity
    assert replace(own, whole=Budget.of_release(2, "1e-9")).identity != own.identity


def test_a_period_is_called_as_its_window_is():
    for labels, label in (((), EDGES[1]), (("a", "b", "c"), "b")):
        for version in (None, label):
            own = made(labels=labels, version=version)
            assert (own.label, own.period, own.periods, own.follows) == (label, 2, 3, True)
            assert own.labels == (labels or EDGES[:-1])


def test_attributes_of_a_period_are_followed_by_those_of_the_period_before():
    families = families_of_period(DOMAIN)
    assert families.domain.names[:2] == DOMAIN.names
    assert len(set(families.domain.names)) == 5
    assert families.written == 2 and families.drawn == 2
    assert [one.attribute for one in families.above[:2]] == ["a", "a before"]
    assert families.persons == {one.name for one in families.above}
    # Absence is NULL: a code more where there is none.
    assert [one.size for one in families.domain.attributes] == [2, 3, 3, 3, 1]
    told = presence_domain(families)
    assert told.shape() == (3, 3, 3)
    step = presence_step(families, WHOLE)
    assert [len(query.attrs) for query in step.queries] == [1, 2, 2]
    assert all(query.attrs[-1] == told.names[-1] for query in step.queries)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": None}, "a calendar with an end"),
        ({"window": Partition("a", "x")}, "a calendar with an end"),
        ({"window": Window("day", "months", EDGES, 0, 3)}, "span 1"),
        ({"window": replace(WINDOW, most=1)}, "most="),
        ({"labels": ["a", "b", "c"]}, "tuple"),
        ({"labels": ("a", "a", "b")}, "same label"),
        ({"labels": EDGES}, "4 labels"),
        ({"version": "2025-05"}, "version='2025-05' must be the label of the window, '2025-02-01'"),
        ({"labels": ("a", "b", "c"), "version": EDGES[1]}, "version='2025-02-01' must be the label"),
        ({"window": replace(WINDOW, most=2), "version": "x"}, "most= must be left out.*; version='x'"),
        ({"whole": Budget("gdp", 2)}, "buys no answer"),
    ],
)
def test_what_is_no_panel_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        made(**change)
