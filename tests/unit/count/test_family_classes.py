"""The class of a unit: SQL, numpy and the definition agree, and no other unit has a say."""

from dataclasses import replace
from itertools import pairwise

import duckdb
import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.row_labels import (
    DRAW_BITS,
    SCALE,
    FamilyClass,
    NearestLabel,
    class_costs,
    gumbel_costs,
)
from dpsyn_sql.sqltext.fragments import Fragment, lot

SIZES = (2, 5, 9)
KEY = 2**63 + 12345
DOMAIN = Domain(
    tuple(
        Attribute(f"x{i}", "INTEGER", "categorical", labels=tuple(range(size)))
        for i, size in enumerate(SIZES)
    )
)


def mixture(random, classes, names=("x0", "x2")):
    laws = [(name, random.dirichlet(np.ones(DOMAIN[name].size) * 3, classes)) for name in names]
    return class_costs("group", random.dirichlet(np.ones(classes) * 5), laws)


def by_sql(family, rows, key=KEY, most=1_000):
    """``rows``: (unit, codes ...), at most ``most`` of a unit. The class of each unit, and its draws."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (who INTEGER, x0 BIGINT, x1 BIGINT, x2 BIGINT)")
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        con.execute("CREATE VIEW k AS SELECT *, encode(CAST(who AS VARCHAR)) AS unit FROM t")
        codes = {name: Fragment(name) for name in DOMAIN.names}
        text = family.code(codes, Fragment("unit"), key, rows=most)
        found = con.execute(
            f"SELECT min(who) AS who, {text} AS z FROM k GROUP BY unit ORDER BY who"
        ).fetchall()
        lots = ", ".join(
            f"{lot([f'CAST({j} AS BIGINT)'], 'unit', key)} >> {64 - DRAW_BITS}"
            for j in range(family.costs.size)
        )
        draws = con.execute(f"SELECT DISTINCT who, {lots} FROM k ORDER BY who").fetchall()
    return dict(found), {who: list(rest) for who, *rest in draws}


def rows_of(random, units=40, most=7):
    rows = []
    for who in range(units):
        for _ in range(random.integers(1, most)):
            rows.append([who, *map(int, random.integers(0, SIZES))])
    return rows


def defined(family, rows, draws):
    """The class of one unit, by the definition."""
    sums = [
        offset
        + sum(table[j][row[int(name[1:])]] for row in rows for name, table in family.costs.scores)
        + gumbel_costs()[draws[j]]
        for j, offset in enumerate(family.costs.offsets)
    ]
    return sums.index(min(sums))


@pytest.mark.parametrize(("seed", "classes"), [(1, 1), (2, 2), (3, 5), (4, 12)])
def test_sql_numpy_and_the_definition_agree(seed, classes):
    random = np.random.default_rng(seed)
    family, rows = mixture(random, classes), rows_of(random)
    family.check(DOMAIN, 10**6)
    found, draws = by_sql(family, rows, most=6)
    assert len(found) == 40
    for who, code in found.items():
        assert code == defined(family, [row[1:] for row in rows if row[0] == who], draws[who])
    table = np.array(rows)
    columns = {name: table[:, 1 + i] for i, name in enumerate(DOMAIN.names)}
    numbers = np.array([draws[who] for who in range(40)])
    assert family.codes(columns, table[:, 0], numbers).tolist() == [found[who] for who in range(40)]


def test_neither_other_units_nor_the_order_of_rows_have_a_say():
    random = np.random.default_rng(5)
    family, rows = mixture(random, 5), rows_of(random)
    found, _ = by_sql(family, rows)
    backwards, _ = by_sql(family, rows[::-1])
    assert backwards == found
    for left_out in (0, 7, 39):
        others, _ = by_sql(family, [row for row in rows if row[0] != left_out])
        assert others == {who: code for who, code in found.items() if who != left_out}


def test_another_key_draws_other_classes():
    random = np.random.default_rng(6)
    family, rows = mixture(random, 5), rows_of(random, units=300, most=3)
    assert by_sql(family, rows, 1)[0] != by_sql(family, rows, 2)[0]


def test_a_class_is_drawn_with_its_probability():
    law = np.array([[0.5, 0.5], [0.8, 0.2]])
    family = class_costs("group", np.array([0.7, 0.3]), [("x0", law)])
    rows = [[who, 1, 0, 0] for who in range(20_000)]
    found, _ = by_sql(family, rows)
    expected = 0.3 * 0.2 / (0.7 * 0.5 + 0.3 * 0.2)
    share = np.mean([code == 1 for code in found.values()])
    assert abs(share - expected) < 5 * np.sqrt(expected / 20_000)


def test_a_class_that_says_little_does_not_tie_independent_coins():
    """The most likely class would: P(both 1 | class) then is 1/2 and 1/6 in place of 1/4."""
    law = np.array([[0.51, 0.49], [0.49, 0.51]])
    family = class_costs("group", np.array([0.5, 0.5]), [("x0", law)])
    random = np.random.default_rng(7)
    coins = random.integers(0, 2, (30_000, 2))
    rows = [[who, int(coin), 0, 0] for who, pair in enumerate(coins) for coin in pair]
    found, _ = by_sql(family, rows)
    classes = np.array([found[who] for who in range(len(coins))])
    both = sum(np.mean(classes == j) * coins[classes == j].mean() ** 2 for j in range(2))
    assert abs(both - 0.25) < 0.01


def test_many_rows_of_largest_costs_do_not_overflow():
    wide = tuple(tuple(2**40 * (code == j) for code in range(2)) for j in range(2))
    family = FamilyClass(NearestLabel("group", (0, 0), (("x0", wide),)))
    family.check(DOMAIN, 2**20)
    found, _ = by_sql(family, [[1, 1, 0, 0]] * 3_000 + [[2, 0, 0, 0]] * 3_000, most=2**20)
    assert found == {1: 0, 2: 1}
    with pytest.raises(InternalError, match="2\\^62"):
        family.check(DOMAIN, 2**22)


@pytest.mark.parametrize("rows", [1, 3, 5, 100])
def test_sums_of_classes_that_share_a_number_keep_apart(rows):
    """All rows of a unit have the largest cost in some classes and none in the others: the sums fill their bits."""
    costs = np.random.default_rng(9).integers(0, 2, (7, 9)) * (2**9 - 1)
    table = tuple(tuple(map(int, row)) for row in costs)
    family = FamilyClass(NearestLabel("group", (0,) * 7, (("x2", table),)))
    told = [[code, 0, 0, code] for code in range(9) for _ in range(rows)]
    found, draws = by_sql(family, told, most=rows)
    for code in range(9):
        assert found[code] == defined(family, [[0, 0, code]] * rows, draws[code])


@pytest.mark.parametrize(("most", "more"), [(1, 0.1), (4, 0.05), (16, 0.03)])
def test_the_costs_of_a_row_may_pass_an_integer(most, more):
    """Classes that hardly differ: in one number the costs of each attribute take 31 bits, those of a row more."""
    laws = []
    for name, size in zip(DOMAIN.names, SIZES, strict=True):
        law = np.ones((2, size))
        law[1, 0] += more
        laws.append((name, law / law.sum(axis=1, keepdims=True)))
    family = class_costs("group", np.array([0.5, 0.5]), laws)
    family.check(DOMAIN, most)
    told = [[code, code % 2, code % 5, code] for code in range(9) for _ in range(most)]
    found, draws = by_sql(family, told, most=most)
    for code in range(9):
        assert found[code] == defined(family, [[code % 2, code % 5, code]] * most, draws[code])


def test_what_is_no_plain_total_function_is_refused():
    family = mixture(np.random.default_rng(8), 3)

    class Other(FamilyClass):
        pass

    for wrong, match in (
        (Other(family.costs), "plain FamilyClass"),
        (FamilyClass(replace(family.costs, offsets=(0.5, 1, 2))), "whole number"),
        (FamilyClass(replace(family.costs, scores=family.costs.scores[:1] * 2)), "each once"),
        (FamilyClass(replace(family.costs, scores=(("x1", family.costs.scores[0][1]),))), "every class"),
        (FamilyClass(replace(family.costs, name="x0")), "name of its own"),
    ):
        with pytest.raises(InternalError, match=match):
            wrong.check(DOMAIN, 5)


def test_gumbel_costs_descend_from_the_tail_to_zero():
    costs = gumbel_costs()
    assert len(costs) == 2**DRAW_BITS
    assert costs[-1] == 0
    assert all(a >= b for a, b in pairwise(costs))
    numbers = -np.array(costs) / SCALE
    assert abs(numbers.std() - np.pi / np.sqrt(6)) < 0.01
