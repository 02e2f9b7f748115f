"""Figures of a database beside another, against rows joined and paired one by one, and at the edges."""

import itertools
import math
from collections import Counter, defaultdict

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsyn_sql
from dpsyn_sql import evaluate
from dpsyn_sql.errors import InputError, SourceError

TABLES = ["people", "visits", "tests", "calls"]
COLUMNS = {"people": ["town"], "visits": ["ward", "day"], "tests": ["kind", "high"], "calls": ["kind"]}
PARENTS = {"visits": "people", "tests": "visits", "calls": "people"}
FILE = {
    "unit": "people.person",
    "tables": {
        "people": {"key": "person"},
        "visits": {"key": ["person", "visit"], "parent": "people", "foreign_key": "person", "order": "day"},
        "tests": {"parent": "visits", "foreign_key": ["person", "visit"]},
        "calls": {"parent": "people", "foreign_key": "who"},
    },
}
DDL = {
    "people": "person INTEGER, town VARCHAR",
    "visits": "person INTEGER, visit INTEGER, ward INTEGER, day INTEGER",
    "tests": "person INTEGER, visit INTEGER, kind VARCHAR, high BOOLEAN",
    "calls": "who INTEGER, kind VARCHAR",
}


def drawn(seed, people=25):
    """Rows by table: persons without visits, visits without tests, keys that are NULL or name nothing, and a
    visit whose key stands twice."""
    rng = np.random.default_rng(seed)
    towns = [str(rng.choice(["a", "b", "c"])) for _ in range(people)]
    rows = {"people": [(person, town) for person, town in enumerate(towns)]}
    rows["visits"], rows["tests"], rows["calls"] = [], [], []
    for person, town in enumerate(towns):
        for visit in range(rng.integers(4)):
            ward = int(rng.integers(3)) if town != "a" else 0
            day = None if rng.random() < 0.1 else int(rng.integers(6))
            rows["visits"].append((person, visit, ward, day))
            for _ in range(rng.integers(4)):
                kind = None if rng.random() < 0.1 else f"k{(ward + int(rng.integers(2))) % 3}"
                rows["tests"].append((person, visit, kind, bool(rng.random() < 0.3 * ward)))
        rows["calls"] += [(person, f"c{rng.integers(2)}") for _ in range(rng.integers(3))]
    rows["visits"] += [(None, 0, 1, 1), (999, 0, 2, 2), (*rows["visits"][0][:2], 2, 5)]
    rows["tests"] += [(None, None, "k0", True), (999, 0, "k1", True), (1, 77, "k1", False)]
    rows["calls"] += [(None, "c0"), (1_000, "c1")]
    return rows


def write(con, schema, rows, ddl=DDL):
    con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    for name, columns in ddl.items():
        con.execute(f"CREATE TABLE {schema}.{name} ({columns})")
        if rows.get(name):
            marks = ", ".join("?" * len(rows[name][0]))
            con.executemany(f"INSERT INTO {schema}.{name} VALUES ({marks})", rows[name])


def nested(rows):
    """Rows as (place, codes by (table, column), place of the parent, place of the person)."""
    people = [(i, {("people", "town"): row[1]}, None, i) for i, row in enumerate(rows["people"])]
    first_person = {row[0]: i for i, row in reversed([*enumerate(rows["people"])])}
    visits = []
    for i, (person, _, ward, day) in enumerate(rows["visits"]):
        if person in first_person:
            _, codes, _, unit = people[first_person[person]]
            own = {("visits", "ward"): ward, ("visits", "day"): day}
            visits.append((i, {**codes, **own}, first_person[person], unit))
    first_visit = {}
    for one in visits:
        first_visit.setdefault(rows["visits"][one[0]][:2], one)
    tests = []
    for i, (person, visit, kind, high) in enumerate(rows["tests"]):
        if (person, visit) in first_visit:
            above = first_visit[person, visit]
            own = {("tests", "kind"): kind, ("tests", "high"): high}
            tests.append((i, {**above[1], **own}, above[0], above[3]))
    calls = []
    for i, (person, kind) in enumerate(rows["calls"]):
        if person in first_person:
            above = people[first_person[person]]
            calls.append((i, {**above[1], ("calls", "kind"): kind}, above[0], above[3]))
    return {"people": people, "visits": visits, "tests": tests, "calls": calls}


def apart(first, second):
    totals = sum(first.values()), sum(second.values())
    return sum(abs(first[k] / totals[0] - second[k] / totals[1]) for k in {*first, *second}) / 2


def brute_excess(rows, whose, column):
    """Every pair of rows, each family and each pair of families alike."""
    families = defaultdict(list)
    for row in rows:
        families[row[whose]].append(row[1][column])
    families = [one for one in families.values() if len(one) > 1]
    own = [np.mean([a == b for a, b in itertools.permutations(one, 2)]) for one in families]
    others = [
        np.mean([a == b for a, b in itertools.product(one, other)])
        for one, other in itertools.permutations(families, 2)
    ]
    return np.mean(own) - np.mean(others)


def compared(seed):
    data = {"main": drawn(seed), "made": drawn(seed + 50, 33)}
    with duckdb.connect() as con:
        for schema, rows in data.items():
            write(con, schema, rows)
        found = evaluate(con, TABLES, "made", domain=FILE)
    return found, nested(data["main"]), nested(data["made"])


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_joined_rows_are_those_of_rows_joined_one_by_one(seed):
    found, real, made = compared(seed)
    frame = found.tables["joined_pairs"]
    paths = {"visits": ["people"], "tests": ["people", "visits"], "calls": ["people"], "people": []}
    wanted = {}
    for below, above in paths.items():
        for other in [*above, below]:
            own = [(below, name) for name in COLUMNS[below]]
            pairs = itertools.product([(other, name) for name in COLUMNS[other]], own)
            for first, second in itertools.combinations(own, 2) if other == below else pairs:
                cells = [Counter((r[1][first], r[1][second]) for r in side[below]) for side in (real, made)]
                wanted[(*first, *second)] = apart(*cells)
    lines = {(r["above"], r["first"], r["below"], r["second"]): r["tv"] for _, r in frame.iterrows()}
    assert lines == pytest.approx(wanted) and len(lines) == 1 + 2 + 1 + 2 + 4 + 1
    assert frame["tv"].is_monotonic_decreasing
    joined = found.tables["joined"].set_index(["above", "below"])
    of_visits = [value for key, value in wanted.items() if key[0] == "visits" and key[2] == "tests"]
    line = joined.loc["visits", "tests"]
    assert [line["pairs"], line["tv_mean"], line["tv_worst"]] == pytest.approx(
        [4, np.mean(of_visits), max(of_visits)]
    )


@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_children_are_counted_with_those_who_have_none(seed):
    found, *sides = compared(seed)
    links = found.tables["links"].set_index("table")
    numbers = found.tables["numbers"].set_index(["table", "column"])["tv"]
    for child, parent in PARENTS.items():
        counted = []
        for side in sides:
            own = Counter(row[2] for row in side[child])
            firsts = {row[0] for row in side[child]} and {*own}
            assert firsts <= {row[0] for row in side[parent]}
            counted.append([(own[row[0]], row[1]) for row in side[parent]])
        sizes = [Counter(n for n, _ in one) for one in counted]
        line = links.loc[child]
        assert line["tv"] == pytest.approx(apart(*sizes))
        assert line["childless_real"] == pytest.approx(sizes[0][0] / len(counted[0]))
        assert line["children_synthetic"] == pytest.approx(np.mean([n for n, _ in counted[1]]))
        for column in COLUMNS[parent]:
            cells = [Counter((n, codes[parent, column]) for n, codes in one) for one in counted]
            assert numbers.loc[child, column] == pytest.approx(apart(*cells))
        assert line["columns_tv"] == pytest.approx(numbers.loc[child].mean())


@pytest.mark.parametrize("seed", range(3))
def test_relatives_agree_as_all_pairs_of_rows_do(seed):
    found, *sides = compared(seed)
    frame = found.tables["relative_columns"].set_index(["table", "of", "column"])
    wanted = {("visits", "people"): 2, ("tests", "visits"): 2, ("tests", "people"): 3, ("calls", "people"): 2}
    assert {key[:2] for key in frame.index} == {*wanted}
    for (table, of), whose in wanted.items():
        for column in COLUMNS[table]:
            for name, side in zip(("real", "synthetic"), sides, strict=True):
                own = frame.loc[(table, of, column), f"excess_{name}"]
                assert own == pytest.approx(brute_excess(side[table], whose, (table, column)))
    means = found.tables["relatives"].set_index(["table", "of"])
    for key in wanted:
        assert means.loc[key, "excess_real"] == pytest.approx(frame.loc[key, "excess_real"].mean())


@pytest.mark.parametrize("seed", range(3))
def test_steps_are_within_the_rows_of_one_parent(seed):
    found, *sides = compared(seed)
    line = found.tables["sequences"].set_index("column").loc["ward"]
    moves = []
    for side in sides:
        families = defaultdict(list)
        for row in side["visits"]:
            if row[1]["visits", "day"] is not None:
                families[row[2]].append((row[1]["visits", "day"], row[1]["visits", "ward"]))
        pairs = [(a[1], b[1]) for one in families.values() for a, b in itertools.pairwise(sorted(one))]
        moves.append(Counter(pairs))
    assert line["steps_tv"] == pytest.approx(apart(*moves))
    assert [*found.tables["sequences"]["table"].unique()] == ["visits"]


def test_keys_that_break_are_counted():
    found, *_ = compared(7)
    rows = drawn(7)
    keys = found.tables["keys"].set_index(["table", "key"])
    assert keys.loc[("people", "person"), ["rows_real", "missing_real", "broken_real"]].tolist() == [25, 0, 0]
    visits = ["rows_real", "missing_real", "broken_real"]
    assert keys.loc[("visits", "person, visit"), visits].tolist() == [len(rows["visits"]), 1, 1]
    assert keys.loc[("visits", "person"), visits].tolist() == [len(rows["visits"]), 1, 1]
    assert keys.loc[("tests", "person, visit"), visits].tolist() == [len(rows["tests"]), 1, 1]
    assert keys.loc[("calls", "who"), ["missing_synthetic", "broken_synthetic"]].tolist() == [1, 1]
    assert "2 real rows of calls name no row of people" in " ".join(found.notes)


def test_a_dangling_row_of_a_dangling_row_belongs_to_nobody():
    """The test of visit (999, 0) names a visit that is there, whose person is not."""
    rows = drawn(3)
    assert [row for row in rows["tests"] if row[:2] == (999, 0)]
    assert not [row for row in nested(rows)["tests"] if rows["tests"][row[0]][0] == 999]


# -- a database beside itself, halves, and worse ones ------------------------------------------------


@pytest.fixture(name="shop")
def _shop():
    """3,000 customers with orders and items that go together; a copy; items in other orders; orders of other
    customers; independent columns."""
    with duckdb.connect() as con:
        con.execute(
            "SET enable_progress_bar = false; CREATE SCHEMA copy; CREATE SCHEMA loose; CREATE SCHEMA lone"
        )
        con.execute("SELECT setseed(0.5)")
        con.execute(
            "CREATE TABLE customers AS "
            "SELECT range AS c, (range % 4)::INTEGER AS segment FROM range(3000) ORDER BY c"
        )
        con.execute(
            "CREATE TABLE orders AS SELECT (row_number() OVER ()) AS o, c, "
            "((segment + (random() < 0.3)::INTEGER) % 4)::INTEGER AS channel "
            "FROM (SELECT c, segment, unnest(range(segment + (c % 2))) FROM customers ORDER BY ALL)"
        )
        con.execute(
            "CREATE TABLE items AS SELECT o, ((channel + theme * 2) % 5)::INTEGER AS category "
            "FROM (SELECT *, unnest(range(3)) FROM "
            "(SELECT o, channel, floor(3 * random())::INTEGER AS theme FROM orders ORDER BY o))"
        )
        for schema in ("copy", "loose", "lone"):
            for name in ("customers", "orders", "items"):
                con.execute(f"CREATE TABLE {schema}.{name} AS FROM main.{name}")
        shuffled = "SELECT row_number() OVER (ORDER BY hash({0}, 1)) AS place, {0} FROM main.{1}"
        kept = "SELECT row_number() OVER (ORDER BY hash(rowid, 7)) AS place, category FROM main.items"
        con.execute(
            "CREATE OR REPLACE TABLE loose.items AS SELECT o, category FROM "
            f"(SELECT row_number() OVER (ORDER BY o) AS place, o FROM main.items) JOIN ({kept}) USING (place)"
        )
        con.execute(
            "CREATE OR REPLACE TABLE lone.orders AS SELECT o, c, channel FROM "
            "(SELECT row_number() OVER (ORDER BY o) AS place, c FROM main.orders) "
            f"JOIN ({shuffled.format('o, channel', 'orders')}) USING (place)"
        )
        yield con


SHOP = {
    "tables": {
        "customers": {"key": "c"},
        "orders": {"key": "o", "parent": "customers", "foreign_key": "c"},
        "items": {"parent": "orders", "foreign_key": "o"},
    }
}


def test_a_copy_has_no_distance_and_a_shuffled_level_loses_its_own_link_alone(shop):
    same, loose, lone = (evaluate(shop, None, name, domain=SHOP).tables for name in ("copy", "loose", "lone"))
    assert same["joined_pairs"]["tv"].max() == 0 and same["links"][["tv", "columns_tv"]].max().max() == 0
    relatives = same["relatives"]
    assert relatives["excess_real"].tolist() == pytest.approx(relatives["excess_synthetic"].tolist())
    tv = {
        name: one["joined"].set_index(["above", "below"])["tv_mean"]
        for name, one in (("same", same), ("loose", loose), ("lone", lone))
    }
    floor = same["joined"].set_index(["above", "below"])["tv_halves_mean"]
    assert tv["loose"]["orders", "items"] > 5 * floor["orders", "items"]
    assert tv["loose"]["customers", "orders"] == 0
    assert tv["lone"]["customers", "orders"] > 5 * floor["customers", "orders"]
    assert tv["lone"]["orders", "items"] == pytest.approx(0, abs=1e-12)
    excess = {
        name: one["relatives"].set_index(["table", "of"])["excess_synthetic"]
        for name, one in (("same", same), ("loose", loose), ("lone", lone))
    }
    assert excess["same"]["items", "orders"] > 0.3 and abs(excess["loose"]["items", "orders"]) < 0.02
    assert excess["same"]["orders", "customers"] > 0.2 and abs(excess["lone"]["orders", "customers"]) < 0.03
    assert excess["lone"]["items", "orders"] == pytest.approx(excess["same"]["items", "orders"])


def test_the_floor_is_of_two_halves_of_the_units(shop):
    """Halves of 1,500 customers differ as two samples do; of another seed they are others."""
    first, again, other = (
        evaluate(shop, None, "loose", domain=SHOP, seed=seed).tables["joined"]["tv_halves_mean"]
        for seed in (1, 1, 2)
    )
    assert first.equals(again) and not np.allclose(first, other)
    assert 0.01 < first[1] < 0.06  # 16 cells of customers x orders


# -- the same figures of one table and of several ----------------------------------------------------


def test_rows_of_units_are_rows_below_a_table_of_keys_alone():
    """What ``unit=`` says is what a table of persons without columns says, to the halves."""
    file = {"tables": {"people": {"key": "person"}, "visits": {"parent": "people", "foreign_key": "person"}}}
    with duckdb.connect() as con:
        for schema, seed in (("main", 4), ("made", 5)):
            write(con, schema, {"visits": [row for row in drawn(seed)["visits"] if row[0] != 999]})
            con.execute(f"DELETE FROM {schema}.people; ALTER TABLE {schema}.people DROP town")
            con.execute(
                f"INSERT INTO {schema}.people SELECT DISTINCT person FROM {schema}.visits WHERE person IS NOT NULL"
            )
        several = evaluate(con, ["people", "visits"], "made", domain=file, order="visits.day").tables
        one = evaluate(con, "visits", "made.visits", unit="person", order="day").tables
    for name in ("links", "relatives", "relative_columns", "sequences", "joined"):
        wanted = several[name].replace("people", "person")
        pd.testing.assert_frame_equal(one[name].reset_index(drop=True), wanted.reset_index(drop=True))
    (line,) = one["keys"].to_dict("records")
    assert (line["key"], line["names"], line["missing_real"], line["broken_real"]) == (
        "person",
        "person",
        1,
        0,
    )


def test_each_table_has_the_figures_of_one():
    with duckdb.connect() as con:
        write(con, "main", drawn(1))
        write(con, "made", drawn(2))
        write(con, "held", drawn(3))
        several = evaluate(
            con, TABLES, "made", "held", domain=FILE, places=["visits.ward", "visits.day"],
            never={"TESTS": ["high AND kind = 'k0'"], "calls": ["kind = 'c1'"]},
        )  # fmt: skip
        keys = {"people": "person", "visits": "person, visit", "tests": "person, visit", "calls": "who"}
        for table in TABLES:
            sides = [
                f"SELECT * EXCLUDE ({keys[table]}) FROM {side}.{table}" for side in ("main", "made", "held")
            ]
            never = {"tests": ["high AND kind = 'k0'"], "calls": ["kind = 'c1'"]}.get(table, [])
            places = ["ward", "day"] if table == "visits" else None
            alone = evaluate(con, *sides, never=never, places=places).tables
            for name, frame in alone.items():
                own = several.tables[name].query("table == @table").drop(columns="table")
                pd.testing.assert_frame_equal(
                    own[[*frame]].reset_index(drop=True), frame, check_dtype=False, obj=f"{table} {name}"
                )
    assert {"visits"} == {*several.tables["clusters"]["table"]}
    assert "No membership test: it is of one table, and a list of them is compared." in several.notes


def test_a_column_of_a_table_is_learnt():
    pytest.importorskip("sklearn")
    with duckdb.connect() as con:
        write(con, "main", drawn(1))
        write(con, "made", drawn(2))
        found = evaluate(con, TABLES, "made", domain=FILE, target="tests.high")
    frame = found.tables["efficacy"]
    assert {*frame["table"]} == {"tests"} and {*frame["target"]} == {"high"}
    assert any(note.startswith("tests: Efficacy is judged on a seeded fifth") for note in found.notes)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": "high"}, "target='high': of several tables give a table and its column, such as 'people.person'"),
        ({"target": "tests.none"}, "target='none' is no column"),
        ({"places": ["visits.ward", "tests.high"]}, "give columns of one table"),
        ({"places": "visits.ward"}, "places='visits.ward': give the names of columns"),
        ({"places": ["visits.none"]}, "'none' is no column of numbers"),
        ({"never": ["high"]}, "of several tables give a mapping"),
        ({"never": {"nothing": ["high"]}}, "never= names 'nothing', which is no table"),
        ({"never": {"tests": ["highest"]}}, "'highest'"),
        ({"order": "day"}, "order='day': of several tables"),
        ({"order": "people.town"}, "order='town' is no column of numbers"),
        ({"unit": "nobody.person"}, "unit='nobody.person' names no table"),
        ({"holdout": 3}, "holdout=3: give a schema"),
    ],
)  # fmt: skip
def test_options_of_several_tables_name_a_table(given, said):
    with duckdb.connect() as con:
        write(con, "main", drawn(1))
        write(con, "made", drawn(2))
        with pytest.raises(InputError, match=said):
            evaluate(con, TABLES, "made", domain=FILE, **given)


def test_a_holdout_that_is_a_database_file_is_refused(tmp_path):
    file, made = tmp_path / "real.duckdb", tmp_path / "made.duckdb"
    for path in (file, made):
        with duckdb.connect(str(path)) as con:
            write(con, "main", drawn(1))
    with pytest.raises(InputError, match="holdout=.* is a database file: give a folder"):
        evaluate(file, TABLES, made, made, domain=FILE)


# -- where tables and links come from ----------------------------------------------------------------


def constrained(con, schema):
    con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    con.execute(f"CREATE TABLE {schema}.goods (good VARCHAR PRIMARY KEY, sort VARCHAR)")
    con.execute(f"CREATE TABLE {schema}.people (person INTEGER PRIMARY KEY, town VARCHAR)")
    con.execute(
        f"CREATE TABLE {schema}.orders (id INTEGER PRIMARY KEY, person INTEGER REFERENCES {schema}.people, "
        f"before INTEGER REFERENCES {schema}.orders, payer INTEGER, good VARCHAR REFERENCES {schema}.goods)"
    )
    con.execute(f"INSERT INTO {schema}.goods VALUES ('x', 'big'), ('y', 'big'), ('z', 'small')")
    con.execute(f"INSERT INTO {schema}.people SELECT range, range % 3 FROM range(20)")
    con.execute(
        f"INSERT INTO {schema}.orders SELECT range, range % 20, NULL, range % 7, "
        "CASE WHEN range % 3 = 0 THEN 'x' WHEN range % 3 = 1 THEN 'z' END FROM range(60)"
    )


def test_what_a_release_of_a_database_excluded_is_left_out_and_named(tmp_path):
    """A column, and a foreign key that is not the one to the parent; other keys tell whose row it is."""
    with duckdb.connect() as con:
        constrained(con, "main")
        dpsyn_sql.release(
            con, unit="people.person", source=["people", "orders"], into="made", ledger=tmp_path / "ledger",
            exclude=["orders.payer", "orders.before", "orders.good"], most={"orders": 5}, epsilon=20,
        )  # fmt: skip
        found = evaluate(con, ["people", "orders"], "made")
        assert (
            "orders: Not compared, because the synthetic table lacks them: 'before', 'payer', 'good'."
            in found.notes
        )
        assert found.tables["keys"]["key"].tolist() == ["person", "id", "person"]
        con.execute(
            "CREATE SCHEMA cut; CREATE TABLE cut.people AS FROM made.people; CREATE TABLE cut.orders AS SELECT id FROM made.orders"
        )
        with pytest.raises(InputError, match="lacks 'person', which says whose row it is"):
            evaluate(con, ["people", "orders"], "cut")


def test_links_come_from_the_catalog_and_references_are_compared_by_what_they_name():
    with duckdb.connect() as con:
        constrained(con, "main")
        constrained(con, "made")
        con.execute("UPDATE made.orders SET good = 'y' WHERE good = 'x'; UPDATE made.orders SET payer = 99")
        con.execute("UPDATE made.orders SET before = 0 WHERE id > 30")
        columns = {"payer": {"references": "people"}, "good": {"references": "goods", "by": ["sort"]}}
        domain = {"tables": {"people": {}, "orders": {"parent": "people", "columns": columns}}}
        found = evaluate(con, ["people", "orders"], "made", domain=domain)
    keys = found.tables["keys"].set_index(["table", "key"])
    assert keys.loc[("orders", "good"), ["missing_real", "broken_real", "broken_synthetic"]].tolist() == [
        20,
        0,
        0,
    ]
    assert keys.loc[("orders", "payer"), ["broken_real", "broken_synthetic"]].tolist() == [0, 60]
    assert keys.loc[("orders", "before"), ["names", "missing_real", "missing_synthetic"]].tolist() == [
        "orders",
        60,
        31,
    ]
    pairs = found.tables["joined_pairs"].set_index(["first", "second"])["tv"]
    assert pairs["town", "good: sort"] == 0  # another key of the same sort
    assert pairs["town", "before given"] == pytest.approx(29 / 60)
    assert pairs["town", "payer given"] == 0
    assert len(keys) == 2 + 1 + 3


def test_a_file_with_its_tables_in_a_schema_has_public_tables_that_foreign_keys_name(tmp_path):
    file = tmp_path / "real.duckdb"
    with duckdb.connect(str(file)) as con:
        constrained(con, "own")
        constrained(con, "made")
        con.execute("UPDATE made.orders SET good = 'z'")
    found = evaluate(file, ["own.people", "own.orders"], "made")
    pairs = found.tables["joined_pairs"].set_index(["first", "second"])["tv"]
    assert pairs["town", "good: good"] == pytest.approx(2 / 3) and found.real == "own.people, own.orders"
    keys = found.tables["keys"].set_index(["table", "key"])
    assert keys.loc[("own.orders", "good"), ["names", "missing_synthetic"]].tolist() == ["goods", 0]


def test_tables_whose_rows_could_be_too_many_for_a_release_are_compared():
    names = [f"t{place}" for place in range(7)]
    with duckdb.connect() as con:
        for schema in ("main", "made"):
            con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            for above, name in zip([None, *names], names, strict=False):
                con.execute(
                    f"CREATE TABLE {schema}.{name} (id INTEGER PRIMARY KEY, x INTEGER, "
                    f"up INTEGER {f'REFERENCES {schema}.{above}' if above else ''})"
                )
                con.execute(f"INSERT INTO {schema}.{name} SELECT range, range % 2, range // 2 FROM range(8)")
        found = evaluate(con, names, "made")
    assert len(found.tables["links"]) == 6 and found.tables["joined_pairs"]["tv"].max() == 0


def test_a_table_below_one_that_is_left_out_is_none_of_the_tree():
    """What a foreign key names beside the compared tables counts as public, whatever the file says of it."""
    with duckdb.connect() as con:
        constrained(con, "main")
        constrained(con, "made")
        con.execute("UPDATE made.orders SET good = 'z' WHERE good = 'x'")
        stated = {"goods": {"key": "good"}, "people": {"key": "person"}, "orders": {"parent": "people"}}
        domain = {"unit": "people.person", "tables": stated}
        found = evaluate(con, ["people", "orders"], "made", domain=domain)
    pairs = found.tables["joined_pairs"].set_index(["first", "second"])["tv"]
    assert pairs["town", "good: good"] == pytest.approx(1 / 3)


def test_two_owners_need_a_word():
    with duckdb.connect() as con:
        for schema in ("main", "made"):
            con.execute(
                f"CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE {schema}.a (a INTEGER PRIMARY KEY, x INTEGER)"
            )
            con.execute(f"CREATE TABLE {schema}.b (b INTEGER PRIMARY KEY, a INTEGER REFERENCES {schema}.a)")
            con.execute(
                f"CREATE TABLE {schema}.c (a INTEGER REFERENCES {schema}.a, b INTEGER REFERENCES {schema}.b, y INTEGER)"
            )
            con.execute(f"INSERT INTO {schema}.a VALUES (1, 1), (2, 2); INSERT INTO {schema}.b VALUES (1, 1)")
            con.execute(f"INSERT INTO {schema}.c VALUES (1, 1, 3), (2, NULL, 4)")
        with pytest.raises(InputError, match="c belongs to units in several ways: 'a -> a', 'b -> b'. Say"):
            evaluate(con, ["a", "b", "c"], "made")
        domain = {"tables": {"a": {}, "b": {}, "c": {"parent": "a"}}}
        found = evaluate(con, None, "made", domain=domain)
    frame = found.tables["joined_pairs"]
    assert set(zip(frame["first"], frame["second"], strict=True)) == {
        ("x", "y"),
        ("x", "b given"),
        ("y", "b given"),
    }


def test_an_empty_child_table_and_a_table_of_keys_alone():
    with duckdb.connect() as con:
        rows = {"people": [(1, "a"), (2, "b")], "visits": [(1, 0, 1, 1)], "tests": [], "calls": []}
        write(con, "main", rows)
        write(con, "made", rows)
        for schema in ("main", "made"):
            con.execute(f"ALTER TABLE {schema}.calls DROP kind")
        found = evaluate(con, TABLES, "made", domain=FILE)
    links = found.tables["links"].set_index("table")
    assert links.loc["tests", ["childless_real", "tv"]].tolist() == [1, 0]
    assert math.isnan(
        found.tables["joined"].set_index(["above", "below"]).loc[("people", "tests"), "tv_mean"]
    )
    assert found.summary().startswith("PRIVATE")


def test_a_file_and_a_folder_are_read_as_a_schema_is(tmp_path):
    file, made, folder = tmp_path / "real.duckdb", tmp_path / "made.duckdb", tmp_path / "made"
    folder.mkdir()
    with duckdb.connect(str(file)) as con:
        write(con, "main", drawn(1))
        write(con, "made", drawn(2))
    with duckdb.connect(str(made)) as con:
        write(con, "main", drawn(2))
        for name in TABLES:
            con.execute(f"COPY {name} TO '{folder / name}.parquet'")
    found = [evaluate(file, TABLES, where, domain=FILE) for where in ("made", made, folder)]
    for name, frame in found[0].tables.items():
        assert all(frame.equals(other.tables[name]) for other in found[1:])
    with duckdb.connect(str(file)) as con:
        with pytest.raises(InputError, match="con is a connection.*ATTACH"):
            evaluate(con, TABLES, made, domain=FILE)
        con.execute(f"ATTACH '{made}' AS other (READ_ONLY)")
        attached = evaluate(con, TABLES, "other.main", domain=FILE)
    assert attached.tables["joined"].equals(found[0].tables["joined"])


def test_a_page_has_every_table(tmp_path):
    found, *_ = compared(1)
    page = found.report(tmp_path / "a.private.html").read_text()
    headings = (
        "Keys",
        "How many rows",
        "Columns of joined rows",
        "How alike rows of one row above are",
    )
    assert all(word in page for word in headings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"real": []}, "Say which tables"),
        ({"real": ["people", "PEOPLE"]}, "twice"),
        ({"real": ["people", 5]}, "give a list"),
        ({"real": ["people", "visits"], "domain": None}, "One table has no parent"),
        ({"domain": {"columns": {}}}, "must be a mapping with the key tables:"),
        ({"real": ["visits", "tests"]}, "parent: 'people', which is no private table"),
        ({"seed": -1}, "whole number"),
        ({"real": [*TABLES, "nothing"]}, "no table, view or file 'nothing'"),
        ({"synthetic": 3}, "give a schema"),
        ({"synthetic": "none"}, "no table, view or file"),
        ({"con": None}, "con=None"),
    ],
)
def test_bad_input_is_said(given, said):
    with duckdb.connect() as con:
        write(con, "main", drawn(1))
        write(con, "made", drawn(2))
        arguments = {"con": con, "real": TABLES, "synthetic": "made", "domain": FILE, **given}
        with pytest.raises((InputError, SourceError), match=said):
            evaluate(**arguments)
