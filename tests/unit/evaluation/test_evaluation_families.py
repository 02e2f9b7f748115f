"""Figures on the rows of a unit, against pairs of rows made one by one, and at the edges."""

import itertools
import math
from collections import Counter, defaultdict

import duckdb
import numpy as np
import pandas as pd
import pytest

from dpsyn_sql.errors import InputError
from dpsyn_sql.evaluation.evaluating import evaluate
from dpsyn_sql.evaluation.linked import PARTS, coded, linked, notes_on_keys
from dpsyn_sql.evaluation.relatives import between
from dpsyn_sql.evaluation.tables import opened

NAMES = ("town", "item", "day")


def rows(seed, number=60, units=17):
    """Units, some of them None; a town that is the unit's; items; places with ties and gaps."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        unit = int(rng.integers(units)) ** 2 // units
        missing = rng.random() < 0.1
        item = None if rng.random() < 0.1 else int(rng.integers(3))
        at = None if rng.random() < 0.1 else int(rng.integers(12))
        found.append((None if missing else unit, f"t{unit % 3}", item, at))
    return found


def write(con, name, found):
    con.execute(f"CREATE OR REPLACE TABLE {name} (who INTEGER, town VARCHAR, item INTEGER, day INTEGER)")
    if found:
        con.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", found)


def compared(con, order=None):
    with opened(con, "real", "synthetic", unit="WHO", order=order) as tables:
        (table,) = tables.tree
        codes = {table.name: coded(table, tables.sessions[table.name])}
        linked_rows, keys = linked(tables.tree, codes, 1)
        frames, notes = between(linked_rows)
    return frames, [*notes_on_keys(tables.tree, keys), *notes]


def by_unit(found):
    units = defaultdict(list)
    for row in found:
        if row[0] is not None:
            units[row[0]].append(row[1:])
    return list(units.values())


def brute_excess(units, place):
    """Every pair of rows, each unit and each pair of units alike."""
    units = [[row[place] for row in unit] for unit in units if len(unit) > 1]
    own = [np.mean([a == b for a, b in itertools.permutations(unit, 2)]) for unit in units]
    others = [
        np.mean([a == b for a, b in itertools.product(one, other)])
        for one, other in itertools.permutations(units, 2)
    ]
    return np.mean(own) - np.mean(others)


def apart(first, second):
    totals = sum(first.values()), sum(second.values())
    return sum(abs(first[k] / totals[0] - second[k] / totals[1]) for k in {*first, *second}) / 2


def number_bin(number):
    return number if number <= 16 else 16 + math.ceil(math.log2(number / 16))


def table_of_rows(units, place):
    found = Counter()
    for unit in units:
        for row in unit:
            found[int(math.log2(len(unit))), row[place]] += 1 / len(unit)
    return found


def in_order(units):
    """Rows with a place in the order, by it; rows alike in all else may change places."""
    known = [[row for row in unit if row[2] is not None] for unit in units]
    return [
        sorted(unit, key=lambda row: (row[2], row[0], -1 if row[1] is None else row[1])) for unit in known
    ]


@pytest.mark.parametrize("seed", range(4))
def test_figures_are_those_of_all_pairs_of_rows(seed):
    data = {"real": rows(seed), "synthetic": rows(seed + 100, 80)}
    with duckdb.connect() as con:
        for name, found in data.items():
            write(con, name, found)
        tables, notes = compared(con, "day")
    units = {name: by_unit(found) for name, found in data.items()}
    siblings, steps = (tables[name] for name in ("relative_columns", "sequences"))
    (link,) = tables["links"].to_dict("records")
    sizes = {name: Counter(number_bin(len(unit)) for unit in own) for name, own in units.items()}
    assert link["tv"] == pytest.approx(apart(sizes["real"], sizes["synthetic"]))
    assert (link["childless_real"], link["childless_synthetic"]) == (0, 0)
    for name, own in units.items():
        assert link[f"rows_above_{name}"] == len(own)
        assert link[f"children_{name}"] == pytest.approx(sum(map(len, own)) / len(own))
        several = [unit for unit in own if len(unit) > 1]
        for place, column in enumerate(NAMES):
            line = siblings.iloc[place]
            assert line["column"] == column
            assert line[f"excess_{name}"] == pytest.approx(brute_excess(own, place))
            constant = np.mean([len({row[place] for row in unit}) == 1 for unit in several])
            assert line[f"constant_{name}"] == pytest.approx(constant)
    ordered = {name: in_order(own) for name, own in units.items()}
    waits = {
        name: [b[2] - a[2] for unit in own for a, b in itertools.pairwise(unit)]
        for name, own in ordered.items()
    }
    octaves = {n: Counter(int(math.log2(w)) if w else None for w in own) for n, own in waits.items()}
    assert link["wait_tv"] == pytest.approx(apart(octaves["real"], octaves["synthetic"]))
    assert [link[f"wait_{name}"] for name in waits] == pytest.approx([np.mean(own) for own in waits.values()])
    for place in range(len(NAMES)):
        line = siblings.iloc[place]
        assert line["rows_tv"] == pytest.approx(apart(*(table_of_rows(own, place) for own in units.values())))
        line = steps.iloc[place]
        moves = [
            Counter((a[place], b[place]) for unit in own for a, b in itertools.pairwise(unit))
            for own in ordered.values()
        ]
        assert line["steps_tv"] == pytest.approx(apart(*moves))
        before, after = Counter(), Counter()
        for (one, other), number in moves[0].items():
            before[one] += number
            after[other] += number
        product = Counter({(a, b): m * n for a, m in before.items() for b, n in after.items()})
        assert line["steps_tv_independent"] == pytest.approx(apart(moves[0], product))
        for name, at in (("first", 0), ("last", -1)):
            ends = [Counter(unit[at][place] for unit in own if unit) for own in ordered.values()]
            assert line[f"{name}_tv"] == pytest.approx(apart(*ends))
    missing = {name: sum(row[0] is None for row in found) for name, found in data.items()}
    assert [f"{number} {name} rows have no unit" in " ".join(notes) for name, number in missing.items()] == [
        True,
        True,
    ]


def test_siblings_that_agree_and_siblings_that_do_not():
    """Of 200 units each has a taste of two: its rows follow it nine times in ten; the copy mixes the rows."""
    rng = np.random.default_rng(0)
    tastes = rng.integers(2, size=200)
    planted = [
        (unit, f"t{taste}", int(taste if rng.random() < 0.9 else 1 - taste), at)
        for unit, taste in enumerate(tastes)
        for at in range(6)
    ]
    order = rng.permutation(len(planted))
    mixed = [(row[0], *planted[other][1:]) for row, other in zip(planted, order, strict=True)]
    with duckdb.connect() as con:
        write(con, "real", planted)
        write(con, "synthetic", mixed)
        tables, notes = compared(con)
    assert not notes
    assert {*tables} == {"links", "relatives", "relative_columns", "joined", "joined_pairs"}
    town, item = tables["relative_columns"].iloc[0], tables["relative_columns"].iloc[1]
    assert (town["constant_real"], town["excess_real"]) == (1, pytest.approx(0.5, abs=0.02))
    assert item["excess_real"] == pytest.approx(0.32, abs=0.04)  # .9^2 + .1^2 less a half
    assert max(abs(town["excess_synthetic"]), abs(item["excess_synthetic"])) < 0.03
    assert item["excess_halves"] < 0.1
    assert tables["links"]["tv"][0] == 0


def test_the_order_of_rows_in_the_table_does_not_matter(tmp_path):
    found = rows(3, 200)
    with duckdb.connect() as con:
        write(con, "synthetic", rows(9))
        write(con, "real", found)
        first = compared(con, "day")[0]
        write(con, "real", found[::-1])
        second = compared(con, "day")[0]
    for name, frame in first.items():
        pd.testing.assert_frame_equal(frame, second[name])


def test_units_of_one_row_have_no_siblings():
    with duckdb.connect() as con:
        write(con, "real", [(unit, "t", unit % 2, 1) for unit in range(20)])
        write(con, "synthetic", rows(1))
        tables, notes = compared(con, "day")
    assert tables["relative_columns"][["constant_real", "excess_real", "excess_halves"]].isna().all(axis=None)
    assert tables["relative_columns"]["excess_synthetic"].notna().all()
    assert tables["sequences"]["steps_tv"].isna().all()
    assert tables["sequences"]["first_tv"].notna().all()
    assert any("No unit of the real table has several rows" in note for note in notes)


@pytest.mark.parametrize("side", ["real", "synthetic"])
def test_a_table_without_units_says_so(side):
    with duckdb.connect() as con:
        write(con, "real", rows(1))
        write(con, "synthetic", rows(2))
        con.execute(f"UPDATE {side} SET who = NULL")
        found = evaluate(con, "real", "synthetic", unit="who", order="day")
    assert found.tables["links"].empty
    assert "relatives" not in found.tables
    assert any("no row with a unit" in note for note in found.notes)


def test_units_of_other_types_are_compared_and_are_no_column(tmp_path):
    with duckdb.connect() as con:
        write(con, "real", rows(1))
        write(con, "copy", rows(2))
        con.execute("CREATE VIEW synthetic AS SELECT 'p' || who AS Who, * EXCLUDE who FROM copy")
        whole = evaluate(con, "real", "synthetic", unit="who", order="day")
        write(con, "synthetic_too", rows(2))
        plain = evaluate(con, "real", "synthetic_too", unit="who", order="day")
        without = evaluate(con, "real", "synthetic_too")
    pd.testing.assert_frame_equal(whole.tables["relative_columns"], plain.tables["relative_columns"])
    assert whole.tables["columns"]["column"].tolist() == [*NAMES]
    assert not {"links", "relatives", "sequences", "keys"} & {*without.tables}
    page = whole.report(tmp_path / "e.private.html").read_text(encoding="utf-8")
    assert "How alike rows of one row above are" in page
    assert "From a row to the next" in page


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"unit": "whom"}, "is no column; did you mean 'who'"),
        ({"unit": 3}, "give the name of one column"),
        ({"order": "day"}, "give unit= too"),
        ({"unit": "who", "order": "town"}, "no column of numbers, dates or times"),
        ({"unit": "who", "order": "who"}, "no column of numbers, dates or times"),
        ({"unit": "who", "order": ["day"]}, "give the name of one column"),
    ],
)
def test_wrong_units_and_orders_are_refused(given, told):
    with duckdb.connect() as con:
        write(con, "real", rows(1))
        write(con, "synthetic", rows(2))
        with pytest.raises(InputError, match=told):
            evaluate(con, "real", "synthetic", **given)


def test_the_sides_are_parts_of_units():
    assert PARTS["real"] == (*PARTS["first half"], *PARTS["second half"])
