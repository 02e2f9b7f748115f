"""Questions with labels at the door: what they cost, what is stored, and what is refused before the charge."""

from dataclasses import replace

import numpy as np
import pytest
from support.doors import FakeCounter, NoNoise, OneRelease, ReadAtOnce, table_of
from support.labels import nearest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InternalError, ReleaseChanged
from dpsyn_sql.planning.queries import Choice, Distances, MarginalQuery, Marginals
from dpsyn_sql.planning.row_labels import labelled

DOMAIN = Domain(
    tuple(
        Attribute(f"x{place}", "INTEGER", "categorical", labels=tuple(range(size)))
        for place, size in enumerate((2, 3, 5))
    )
)
CODES = np.random.default_rng(1).integers(0, (2, 3, 5), (100, 3)).T
NEAREST, OTHER = (nearest(DOMAIN, np.random.default_rng(2 + i), name=f"label {1 + i}") for i in range(2))
LABELS = (NEAREST, OTHER)
A, NEAR, SECOND = MarginalQuery(("x0",)), MarginalQuery(("label 1", "x2")), MarginalQuery(("x1", "label 2"))
BUDGET, LARGE = Budget("gdp", 10**13), Budget("gdp", 10**15)


class Labelled(FakeCounter):
    """The rows of ``CODES``, with the labels of the last question."""

    def __init__(self):
        super().__init__(None)
        self.labels = ()

    def count(self, queries, labels=()):
        self.labels = labels
        columns = dict(zip(DOMAIN.names, CODES, strict=True))
        codes = [*CODES, *(label.codes(columns) for label in labels)]
        self.asked.append(list(queries))
        return [table_of(labelled(DOMAIN, labels), codes, query) for query in queries]


def door(release=None, rows=1):
    entry = (release or OneRelease(LARGE)).open()
    counter = Labelled()
    return ReadAtOnce(counter, DOMAIN, rows, entry, NoNoise()), entry, counter


def truth(query):
    return Labelled().count([query], LABELS)[0]


@pytest.mark.parametrize("rows", [1, 3])
def test_labelled_tables_cost_what_others_do_and_are_not_shown(rows):
    curator, entry, _ = door(rows=rows)
    tables = curator.ask(Marginals([A, NEAR, SECOND], LABELS), BUDGET)
    for query, table in zip([A, NEAR, SECOND], tables, strict=True):
        assert table.attrs == query.attrs
        np.testing.assert_array_equal(table.values, truth(query))
    assert entry.events[0].l2_squared == 3 * rows**2
    assert [table.attrs for table in curator.measurements] == [("x0",)]


def test_a_replay_with_other_parameters_asks_the_same_question():
    """Fits differ in their last bits between machines: name and size are stored, parameters are not."""
    release = OneRelease(LARGE)
    curator, entry, _ = door(release)
    first = curator.ask(Marginals([NEAR], [NEAREST]), BUDGET)
    other = nearest(DOMAIN, np.random.default_rng(9))
    assert other != NEAREST
    curator, entry, counter = door(release)
    (again,) = curator.ask(Marginals([NEAR], [other]), BUDGET)
    np.testing.assert_array_equal(again.values, first[0].values)
    assert counter.asked == [] and len(entry.events) == 1


@pytest.mark.parametrize("what", ["size", "name"])
def test_a_replay_with_another_label_is_another_question(what):
    release = OneRelease(LARGE)
    curator, _, _ = door(release)
    curator.ask(Marginals([NEAR], [NEAREST]), BUDGET)
    curator, _, _ = door(release)
    other = nearest(DOMAIN, np.random.default_rng(2), classes=5)
    query = NEAR
    if what == "name":
        other, query = replace(NEAREST, name="label 3"), MarginalQuery(("label 3", "x2"))
    with pytest.raises(ReleaseChanged):
        curator.ask(Marginals([query], [other]), BUDGET)


def test_a_wrong_label_is_refused_before_the_charge():
    curator, entry, counter = door()
    wrong = replace(NEAREST, offsets=(0.5, 0, 0, 0))
    with pytest.raises(InternalError, match="whole number"):
        curator.ask(Marginals([NEAR], [wrong]), BUDGET)
    with pytest.raises(InternalError):
        curator.ask(Marginals([NEAR]), BUDGET)  # no label of this name
    assert entry.events == () and counter.asked == []


class Changing(int):
    """Its text in a statement is not the number that was checked."""

    def __str__(self):
        return "(SELECT count(*) FROM t)"


class Twice(list):
    """Another list the second time."""

    def __init__(self, first, second):
        super().__init__(second)
        self.first, self.asked = first, 0

    def __iter__(self):
        self.asked += 1
        return iter(self.first) if self.asked == 1 else super().__iter__()


def test_the_bins_of_a_map_are_plain_numbers():
    """They stand in the text of a statement."""
    for query in (
        MarginalQuery(("x1",), ((Changing(0), 0, 1),)),
        MarginalQuery(("x1", "label 1"), (None, (Changing(0), 1, 1, 1))),
        MarginalQuery(("x1",), ((False, True, True),)),
    ):
        curator, entry, counter = door()
        with pytest.raises(InternalError, match="cannot change"):
            curator.ask(Marginals([query], [NEAREST]), BUDGET)
        assert entry.events == () and counter.asked == []


def test_what_a_caller_changes_after_the_check_has_no_say():
    reference = truth(A)
    curator, _, counter = door()
    count = counter.count

    def overwritten(queries, labels=()):
        reference[:] = 2**56
        return count(queries, labels)

    counter.count = overwritten
    assert curator.ask(Distances([A], [reference]), BUDGET) == [0]
    curator, _, _ = door()
    allowed = Twice([0, 0], [2**56, 0])
    zero = np.zeros(2, dtype=np.int64)
    assert curator.ask(Choice([A, A], [zero, truth(A)], 1, allowed), BUDGET) == [0]
    curator, entry, _ = door()
    with pytest.raises(InternalError, match="allowance"):
        curator.ask(Choice([A, A], [zero, zero], 1, [Changing(0), 0]), BUDGET)
    assert entry.events == ()
