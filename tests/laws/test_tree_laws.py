"""The laws of kept rows, codes and counts: what must hold of any encoder, for any tree of tables.

Each law is a function of a case. It is tested on full trees, on a few random ones, and, slowly, on many.
"""

import random
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from laws.adapter import codes, counts, kept_rows, meanings, sensitivity, statements
from laws.trees import (
    BOUNDED,
    PERSONS,
    SHAPES,
    SINGLE,
    TREE,
    WEIGHT,
    Forest,
    Question,
    alike,
    cases,
    dense,
    nameless,
    recoded,
    shuffled,
    units,
    without,
)

LAWS = {}


def law(shapes=SHAPES, examples=4):
    """A test of a law on a full tree of each shape, and on small random ones."""

    def tested(check):
        LAWS[check.__name__] = check, shapes
        test = given(case=cases(shapes))(check)
        for shape in shapes:
            test = example(case=dense(shape))(test)
        return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))(test)

    return tested


def questions_of(case, seed):
    """All attributes alone, some pairs of them, the number of rows, and pairs of rows of one family."""
    dice, questions = random.Random(seed), []
    for table, described in meanings(case).items():
        names = list(described)
        pairs = [tuple(dice.sample(names, 2)) for _ in range(4)]
        questions += [Question(table, "rows", names) for names in ((), *((name,) for name in names), *pairs)]
        if case.shape in (PERSONS, TREE):
            own = [name for name in names if described[name].what in ("column", "number", "most frequent")]
            questions += [Question(table, "pairs", (dice.choice(own), dice.choice(own))) for _ in range(2)]
    return list(dict.fromkeys(questions))


# -- 1: codes are total ------------------------------------------------------------------------------


@law()
def test_codes_are_total(con, case):
    """Every kept row has a code within the size of every attribute, whatever stands in the row."""
    rows = kept_rows(con, case)
    for table, columns in codes(con, case).items():
        described = meanings(case)[table]
        assert columns.keys() == described.keys()
        for name, column in columns.items():
            assert column.shape == (len(rows[table]),), (table, name)
            assert not np.ma.is_masked(column), (table, name)
            assert all(0 <= code < described[name].attribute.size for code in column.tolist()), (table, name)


# -- 2: a unit moves every table of counts by its weight at most -------------------------------------


@law(examples=2)
def test_a_unit_moves_counts_by_its_weight_at_most(con, case):
    """With the same secret, and rows in any other order: the sum and the length of the change are charged."""
    questions, bound = questions_of(case, 1), sensitivity(case)
    assert bound == {SINGLE: 1, BOUNDED: case.root.most}.get(case.shape, WEIGHT)
    before = counts(con, case, questions)
    for unit in units(case)[:3]:
        after = counts(con, shuffled(without(case, unit), 1), questions)
        for question, more, less in zip(questions, before, after, strict=True):
            change = np.abs(more - less)
            assert change.sum() <= bound, (question, unit)
            assert int((change**2).sum()) <= bound**2, (question, unit)


# -- 3: kept rows do not depend on other units -------------------------------------------------------


def paths(forest, rows, unit=None):
    """The kept rows of a table, by name and weight, but for those of a unit."""
    return Counter((forest.unit(row), row.path) for row in rows if forest.unit(row) != unit)


@law()
def test_kept_rows_depend_on_their_unit_alone(con, case):
    """With the same secret, and rows in any other order: without a unit all others keep the same rows."""
    rows = kept_rows(con, case)
    forest = Forest(case, rows)
    for unit in units(case)[:3]:
        neighbour = shuffled(without(case, unit), 2)
        others = kept_rows(con, neighbour)
        remaining = Forest(neighbour, others)
        for table in rows:
            left = paths(forest, rows[table], unit if case.shape != SINGLE else None)
            if case.shape == SINGLE:  # of copies of a row one is taken
                left -= Counter(dict.fromkeys([one for one in left if one[0] == unit], 1))
            assert left == paths(remaining, others[table]), (table, unit)


@law([BOUNDED, PERSONS, TREE], examples=3)
def test_units_of_equal_rows_keep_the_same_rows_when_one_leaves(con, case):
    """Nothing tells rows of equal codes apart but their unit: nobody numbers those of several units in turn."""
    equal = alike(case)
    rows = kept_rows(con, equal)
    for unit in units(equal)[:3]:
        others = kept_rows(con, shuffled(without(equal, unit), 3))
        for table in rows:
            before, after = (Counter(row.path for row in some[table]) for some in (rows, others))
            assert after <= before, (table, unit)


@law(examples=2)
def test_the_order_of_rows_has_no_say(con, case):
    """Also where rows are equal in all codes, and others hang on them."""
    equal = nameless(case)
    questions = questions_of(equal, 6)
    before = counts(con, equal, questions)
    for question, table, other in zip(
        questions, before, counts(con, shuffled(equal, 4), questions), strict=True
    ):
        np.testing.assert_array_equal(table, other, str(question))


@law([TREE])
def test_rows_with_rows_below_are_chosen_by_their_keys(con, case):
    """Their codes have no say: rows of equal codes have other rows below them."""
    chosen = []
    for variant in (case, recoded(case)):
        rows = kept_rows(con, variant)
        forest = Forest(variant, rows)
        inner = [table.name for table in case.tables if case.is_inner(table.name)]
        chosen.append({name: Counter(map(forest.keys, rows[name])) for name in inner})
    assert chosen[0] == chosen[1]


# -- 4: counts are those of the definitions ----------------------------------------------------------


@law()
def test_rows_are_chosen_among_those_of_their_parent(con, case):
    """At most so many of one parent, all if they are no more, and they weigh no more than the parent."""
    rows = kept_rows(con, case)
    forest = Forest(case, rows)
    for table in case.tables:
        families = list(forest.families(table))
        assert sum(len(family.rows) for family in families) == len(rows[table.name])
        for family in families:
            chosen = Counter(row.number for row in family.rows)
            assert chosen <= family.candidates, table.name
            assert chosen.total() == min(family.most, family.candidates.total()), table.name
            for row in family.rows:
                weight = 1 if family.weight is None else family.weight // chosen.total()
                assert row.weight == weight, table.name
                assert row.siblings in (None, chosen.total()), table.name


@law()
def test_counts_are_those_of_the_kept_rows(con, case):
    """One-way and two-way, of a row and of those above, below, before and beside it."""
    described, questions = meanings(case), questions_of(case, 3)
    forest = Forest(case, kept_rows(con, case))
    for question, table in zip(questions, counts(con, case, questions), strict=True):
        asked = [described[question.table][name] for name in question.names]
        if any(meaning.drawn for meaning in asked):  # by a hash: each row has one class
            assert table.sum() == sum(row.weight for row in forest.rows[question.table]), question
            assert table.min() >= 0, question
            continue
        np.testing.assert_array_equal(table, forest.counts(question, asked), str(question))


# -- 5: single rows stay as they are -----------------------------------------------------------------

_COMMENT = re.compile(r"--[^\n]*")
_MORE = re.compile(
    r"row_number|rank\(|\bhash|\bover\b|\bwindow\b|\bjoin\b|\bkey\b|\bencode\(|\bsum\(|\bw\b", re.IGNORECASE
)
# What a projection and its counts have no use for.


@law([SINGLE], examples=8)
def test_single_rows_are_projected_and_counted(con, case):
    """Without a key, a lot, a copy's number, a weight or a window over rows; what is kept are codes alone."""
    questions = questions_of(case, 4)
    traced = statements(con, case, questions)
    ran = [_COMMENT.sub("", sql) for sql in [*traced.reading, *traced.later]]
    assert [sql for sql in ran if _MORE.search(sql)] == []
    assert [sql for sql in ran if "count(*)" in sql and "GROUP BY" in sql]
    assert sum(traced.sources[case.root.name] in sql for sql in ran) == 1


# -- 6: the source is read once ----------------------------------------------------------------------


@law()
def test_the_source_is_read_once(con, case):
    """Each table by one statement, which makes its codes; counts read these, also when they are asked again."""
    ran = statements(con, case, questions_of(case, 5))
    for table, name in ran.sources.items():
        assert sum(name in sql for sql in ran.reading) == 1, table
        assert not [sql for sql in ran.later if name in sql], table
    assert ran.reading


# -- all laws on many trees --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_laws_hold_for_many_trees(con, name, data):
    check, shapes = LAWS[name]
    check(con, data.draw(cases(shapes)))


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("seed", range(2, 6))
def test_laws_hold_for_full_trees(con, name, seed):
    check, shapes = LAWS[name]
    for shape in shapes:
        check(con, dense(shape, seed))
