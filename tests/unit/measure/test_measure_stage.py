"""What is asked lies within the plan: the law of what a recipe reserves."""

import numpy as np
import pytest
from support.doors import FakeCounter, NoNoise, OneRelease, opened

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.asking import Reserve, planned_steps
from dpsyn_sql.planning.queries import GridQuery, MarginalQuery, Marginals, Siblings
from dpsyn_sql.planning.row_labels import NearestLabel
from dpsyn_sql.private.measure.curator import LocalCurator

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}
DOMAIN = Domain(
    tuple(
        Attribute(name, "INTEGER", "categorical", labels=tuple(range(size))) for name, size in SIZES.items()
    )
)
WHOLE, SHARE = Budget("gdp", 10**13), Budget("gdp", 10**12)
AB, ABC, ABD = (MarginalQuery(tuple(names)) for names in ("ab", "abc", "abd"))
ONE_WAYS = tuple(MarginalQuery((name,)) for name in SIZES)


def ones(query):
    return np.ones(query.shape(DOMAIN), dtype=np.int64)


def looked(*reserves):
    """A door after the first look, with what was reserved before it; the log of its counts; its entry."""
    log, entry = [], OneRelease(WHOLE).open()
    door = opened(FakeCounter(ones, log), DOMAIN, 1, entry, NoNoise())
    handle = door.ask(Marginals(ONE_WAYS), SHARE, "one-way")
    for reserve in reserves:
        door.reserve(reserve)
    handle.read()
    log.clear()
    return door, log, entry


def test_candidates_and_what_was_asked_may_be_asked_about_over_codes_and_bins():
    door, _, _ = looked(Reserve("pairs", WHOLE, (AB,)))
    binned = MarginalQuery(("a", "b"), (None, (0, 0, 1)))
    for query in (AB, binned, ONE_WAYS[2]):
        (table,) = door.ask(Marginals([query]), SHARE).read()
        assert table.attrs == query.attrs and table.maps == query.maps


@pytest.mark.parametrize(
    "reserve",
    [
        Reserve("pairs", WHOLE, (AB,)),
        Reserve("narrow", WHOLE, (), 2, 10**6, 10**6),
        Reserve("small", WHOLE, (), 3, 23, 10**6),
        Reserve("few", WHOLE, (), 3, 10**6, 23),
    ],
    ids=lambda reserve: reserve.name,
)
def test_a_marginal_beyond_what_was_reserved_is_neither_charged_nor_counted(reserve):
    door, log, entry = looked(reserve)
    with pytest.raises(InternalError, match="not reserved"):
        door.ask(Marginals([ABC]), SHARE)  # 24 cells
    assert log == [] and len(entry.events) == 1


def test_all_that_is_asked_for_stays_within_what_was_reserved():
    door, _, _ = looked(Reserve("later", WHOLE, (), 3, 10**6, 24 + 30))
    door.ask(Marginals([ABC]), SHARE).read()
    door.ask(Marginals([ABC, ABD]), SHARE).read()  # the first costs no cells again
    with pytest.raises(InternalError, match="not reserved"):
        door.ask(Marginals([MarginalQuery(("a", "c"))]), SHARE)


def test_marginals_with_labels_count_each_time():
    label = NearestLabel("label 1", (0, 1), (("a", ((0, 1), (1, 0))),))
    door, _, _ = looked(Reserve("labels", WHOLE, (), 2, 10, 8))
    question = Marginals([MarginalQuery(("b", "label 1"))], (label,))
    door.ask(question, SHARE)
    with pytest.raises(InternalError, match="not reserved"):
        door.ask(question, SHARE)


def test_no_more_is_spent_than_was_reserved():
    door, log, _ = looked(Reserve("pairs", SHARE, (AB,)))
    half = Budget("gdp", SHARE.amount // 2)
    door.ask(Marginals([AB]), half).read()
    log.clear()
    with pytest.raises(InternalError, match="costs more than was reserved"):
        door.ask(Marginals([AB]), Budget("gdp", half.amount + 1))
    assert log == []


def test_pairs_of_rows_are_asked_about_where_they_were_reserved():
    door, log, _ = looked(Reserve("pairs", WHOLE, (AB,)))
    with pytest.raises(InternalError, match="pairs of rows are asked for"):
        door.ask(Siblings([AB]), SHARE)
    assert log == []


def test_nothing_is_reserved_after_the_first_look():
    door, _, _ = looked()
    with pytest.raises(InternalError, match="after the first look"):
        door.reserve(Reserve("pairs", SHARE, (AB,)))
    with pytest.raises(InternalError, match="costs more than was reserved"):
        door.ask(Marginals([AB]), SHARE)


def test_a_plan_is_what_is_asked_and_reserved_before_the_first_look():
    asked, read = [], []

    def run(door):
        handles = [door.ask(Marginals([query]), SHARE, query.attrs[0]) for query in ONE_WAYS]
        door.reserve(Reserve("pairs", SHARE, (AB,)))
        asked.append(len(handles))
        read.append(handles[0].read())
        asked.append("after the look")

    steps = planned_steps(run)
    assert [step.name for step in steps] == [*SIZES, "pairs"] and asked == [4] and read == []
    assert [query for step in steps for query in step.queries] == [*ONE_WAYS, AB]


def test_what_is_learnt_of_a_table_costs_no_more_than_its_budget():
    """Also where the entry, which pays for other tables too, holds more."""
    grid = GridQuery(Attribute("n", "INTEGER", "numeric", edges=(0, 1, 2)))
    entry = OneRelease(WHOLE).open()
    door = LocalCurator(entry, NoNoise())
    with pytest.raises(InternalError, match="before a table is open"):
        door.reserve(Reserve("columns", SHARE))
    for _ in range(2):
        door.discover(FakeCounter(ones, []), 1)
        with pytest.raises(InternalError, match="more than was reserved"):
            door.ask(grid, SHARE)
        door.reserve(Reserve("columns", Budget("gdp", 2 * SHARE.amount)))
        door.ask(grid, SHARE)
        door.ask(grid, SHARE)
        with pytest.raises(InternalError, match="more than was reserved"):
            door.ask(grid, Budget("gdp", 1))
    assert not entry.events


class Changing(list):
    """Another marginal from the second time on that it is gone through."""

    def __iter__(self):
        first, self[:] = self[:], [AB]
        return iter(first)


def test_what_is_admitted_and_priced_is_what_is_counted():
    """Whatever becomes of the question in between."""
    door, _, _ = looked(Reserve("pairs", WHOLE, (AB,)))
    with pytest.raises(InternalError, match="was not reserved"):
        door.ask(Marginals(Changing([ABC])), SHARE)
    query = MarginalQuery(("a", "b"))
    handle = door.ask(Marginals([query]), SHARE)
    object.__setattr__(query, "attrs", ("a", "b", "c"))
    assert handle.read()[0].values.shape == (2, 3)

    class Cheap(Budget):
        """No budget of the door's."""

    with pytest.raises(InternalError, match="no budget"):
        door.ask(Marginals([AB]), Cheap("gdp", 1))
