"""Labels of rows: SQL, numpy and brute force agree; what is no function of one row is refused."""

from dataclasses import replace

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.doors import table_of
from support.labels import nearest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.row_labels import (
    MOST_CLASSES,
    NearestLabel,
    check_labels,
    free_names,
    labelled,
)
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

SIZES = (2, 3, 7, 40, 1, 256)
DOMAIN = Domain(
    tuple(
        Attribute(f"x{i}", "INTEGER", "categorical", labels=tuple(range(size)))
        for i, size in enumerate(SIZES)
    )
)
ONE_WAYS = [MarginalQuery((name,)) for name in DOMAIN.names]
NEAREST = nearest(DOMAIN, np.random.default_rng(1))


def by_hand(label, row):
    """The code of one row, by the definition."""
    sums = [
        offset + sum(table[code][row[name]] for name, table in label.scores)
        for code, offset in enumerate(label.offsets)
    ]
    return sums.index(min(sums))


def counter_of(con, codes, planned=ONE_WAYS, unit=PrivacyUnit(), names=DOMAIN.names):  # noqa: B008
    con.execute(f"CREATE TABLE t ({', '.join(f'{name} INTEGER' for name in names)})")
    con.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", codes)
    return SqlCounter(DuckDBEngine(con), Fragment("t"), DOMAIN, planned, unit=unit, key=5, further=True)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 60))
def test_counts_with_labels_are_those_of_brute_force(seed, classes, largest):
    random = np.random.default_rng(seed)
    codes = random.integers(0, SIZES, (60, len(SIZES)))
    labels = (nearest(DOMAIN, random, classes, largest=largest), nearest(DOMAIN, random, 5, "label 2"))
    check_labels(labels, DOMAIN)
    rows = [dict(zip(DOMAIN.names, row, strict=True)) for row in codes.tolist()]
    expected = [np.array([by_hand(label, row) for row in rows]) for label in labels]
    columns = dict(zip(DOMAIN.names, codes.T, strict=True))
    for label, found in zip(labels, expected, strict=True):
        np.testing.assert_array_equal(label.codes(columns), found)
    bins = tuple(code % min(2, classes) for code in range(classes))
    halves = tuple(code % 2 for code in range(40))
    asked = [
        MarginalQuery(("label 1",)),
        MarginalQuery(("x2", "label 1")),
        MarginalQuery(("label 1", "x3"), (bins, halves)),
        MarginalQuery(("label 2", "x0", "label 1")),
        MarginalQuery(("x5",)),
        MarginalQuery(("label 2", "x4")),
    ]
    wider = labelled(DOMAIN, labels)
    with duckdb.connect() as con:
        counter = counter_of(con, codes.tolist())
        for query, table in zip(asked, counter.count(asked, labels), strict=True):
            truth = table_of(wider, [*codes.T, *expected], query)
            np.testing.assert_array_equal(table, truth)
            assert not table.flags.writeable
        counter.close()


def test_ties_go_to_the_least_class_wherever_the_row_lies():
    even = NearestLabel("label 1", (3, 3, 3), (("x0", ((1, 1), (1, 1), (1, 0))),))
    codes = np.random.default_rng(3).integers(0, SIZES, (50, len(SIZES)))
    tables = []
    for order in (codes, codes[::-1]):
        with duckdb.connect() as con:
            (table,) = counter_of(con, order.tolist()).count([MarginalQuery(("x0", "label 1"))], [even])
            tables.append(table.tolist())
    zeros = int((codes[:, 0] == 0).sum())
    assert tables == [[[zeros, 0, 0], [0, 0, 50 - zeros]]] * 2


def test_labels_count_the_same_rows_of_a_unit_as_other_marginals():
    random = np.random.default_rng(4)
    codes = random.integers(0, SIZES, (90, len(SIZES)))
    rows = [[*row, int(who)] for row, who in zip(codes.tolist(), random.integers(0, 9, 90), strict=True)]
    names = (*DOMAIN.names, "who")
    with duckdb.connect() as con:
        counter = counter_of(con, rows, unit=PrivacyUnit("who", 4), names=names)
        plain = [*counter.count(ONE_WAYS)]
        found = [
            *counter.count(
                [MarginalQuery((name, "label 1")) for name in DOMAIN.names if name != "x4"], [NEAREST]
            )
        ]
    for one, table in zip([one for i, one in enumerate(plain) if i != 4], found, strict=True):
        np.testing.assert_array_equal(table.sum(axis=1), one)
    assert plain[0].sum() == 36


def test_labels_of_one_name_are_counted_anew():
    codes = np.random.default_rng(5).integers(0, SIZES, (40, len(SIZES)))
    query, other = MarginalQuery(("label 1",)), nearest(DOMAIN, np.random.default_rng(6))
    columns = dict(zip(DOMAIN.names, codes.T, strict=True))
    with duckdb.connect() as con:
        counter = counter_of(con, codes.tolist())
        for label in (NEAREST, other):
            (table,) = counter.count([query], [label])
            np.testing.assert_array_equal(table, np.bincount(label.codes(columns), minlength=4))


def test_a_label_looks_only_at_what_was_encoded():
    with duckdb.connect() as con:
        counter = counter_of(con, [[0] * len(SIZES)], planned=ONE_WAYS[:3])
        with pytest.raises(InternalError, match="not planned"):
            counter.count([MarginalQuery(("label 1",))], [NEAREST])


class Sneaky(NearestLabel):
    pass


class Rows(tuple):
    pass


class Named(str):
    pass


LARGE = 2**60
WRONG = {
    "a subclass": Sneaky("label 1", NEAREST.offsets, NEAREST.scores),
    "tuples that can change": replace(NEAREST, offsets=Rows(NEAREST.offsets)),
    "lists": replace(NEAREST, scores=list(NEAREST.scores)),
    "tables that are lists": replace(NEAREST, scores=(("x0", [[0, 0]] * 4),)),
    "a name of scores that can change": replace(NEAREST, scores=((Named("x0"), ((0, 0),) * 4),)),
    "scores of three parts": replace(NEAREST, scores=(("x0", ((0, 0),) * 4, 1),)),
    "a fraction": replace(NEAREST, offsets=(0, 0, 0, 0.5)),
    "a truth": replace(NEAREST, offsets=(0, 0, 0, True)),
    "a name that is taken": replace(NEAREST, name="x0"),
    "no name": replace(NEAREST, name=None),
    "a code without a score": replace(NEAREST, scores=(("x1", ((0, 0),) * 4),)),
    "a class without scores": replace(NEAREST, scores=(("x0", ((0, 0),) * 3),)),
    "no classes": NearestLabel("label 1", (), ()),
    "no attributes": NearestLabel("label 1", (0, 0), ()),
    "an attribute twice": replace(NEAREST, scores=NEAREST.scores + NEAREST.scores[:1]),
    "an unknown attribute": NearestLabel("label 1", (0, 0), (("y", ((0,), (1,))),)),
    "too many classes": NearestLabel(
        "label 1", (0,) * (MOST_CLASSES + 1), (("x4", ((0,),) * (MOST_CLASSES + 1)),)
    ),
    "sums beyond BIGINT": NearestLabel("label 1", (0, LARGE), (("x0", ((0, LARGE), (0, 0))),)),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_plain_function_of_one_row_is_refused(what):
    with pytest.raises(InternalError):
        check_labels([WRONG[what]], DOMAIN)


def test_two_labels_need_two_names():
    with pytest.raises(InternalError, match="name of its own"):
        check_labels([NEAREST, nearest(DOMAIN, np.random.default_rng(2))], DOMAIN)


def test_the_largest_scores_that_are_accepted_do_not_overflow():
    """Literals of DuckDB are INTEGER below 2^31: sums of several such scores are BIGINT."""
    large = 2**29
    label = NearestLabel(
        "label 1",
        (large, 0),
        tuple((name, ((large,) * DOMAIN[name].size, (0,) * DOMAIN[name].size)) for name in DOMAIN.names),
    )
    wide = NearestLabel("label 1", (-(2**58), 2**58), (("x0", ((0, 2**59), (2**58, -(2**59)))),))
    codes = np.random.default_rng(7).integers(0, SIZES, (30, len(SIZES)))
    columns = dict(zip(DOMAIN.names, codes.T, strict=True))
    with duckdb.connect() as con:
        counter = counter_of(con, codes.tolist())
        for one in (label, wide):
            check_labels([one], DOMAIN)
            (table,) = counter.count([MarginalQuery(("label 1",))], [one])
            np.testing.assert_array_equal(table, np.bincount(one.codes(columns), minlength=2))


def test_free_names_are_no_attributes():
    domain = Domain((Attribute("label 1", "INTEGER", "categorical", labels=(0,)), *DOMAIN.attributes))
    assert free_names(domain, 2) == ["label 2", "label 3"]
