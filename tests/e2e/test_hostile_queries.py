"""Hostile queries, one by one: refused in words of ours, or row-wise by brute force over neighbouring tables."""

import contextlib
import random
from collections import Counter

import duckdb
import hostile_queries as hostile
import pytest

import dpsyn_sql
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import InputError, SourceError
from dpsyn_sql.source.query_check import check_query

PUBLIC = frozenset({("memory", "main", "pub")})
ADMITTED = [*hostile.ROW_WISE, *hostile.SEVERAL, *hostile.CALLED_SEVERAL]
REFUSED = [(word, query) for word, queries in hostile.REFUSED.items() for query in queries]

# Duplicates in what queries return, NULLs everywhere, and one value that no message may quote.
ROWS_OF_T = [
    "(1, 'canary-4711', DATE '2020-01-02', [1, 2], {'f': 1, 'g': 'x'}, MAP {'x': 1, 'y': 2})",
    "(1, 'x', NULL, [], {'f': 1, 'g': NULL}, MAP {'x': NULL})",
    "(2, 'y', DATE '1999-12-31', [3, 3, 1], NULL, NULL)",
    "(2, 'y', DATE '1999-12-31', [3, 3, 1], {'f': 2, 'g': 'x'}, MAP {})",
    "(3, NULL, NULL, NULL, {'f': NULL, 'g': 'z'}, NULL)",
    "(NULL, NULL, NULL, [NULL], NULL, NULL)",
]
ROWS_OF_U = ["(1, 'one')", "(NULL, NULL)"]


def files(folder, con):
    con.execute(f"COPY (SELECT 'x' AS b, 'q' AS c) TO '{folder}/f.csv'")
    con.execute(f"COPY (SELECT 1 AS a, 'x' AS b) TO '{folder}/f.parquet'")
    (folder / "f.json").write_text('{"a": 1}')


def fill(con, of_t, of_u):
    """``of_t`` and ``of_u`` hold row numbers."""
    for table, pool, rows in (("t", ROWS_OF_T, of_t), ("u", ROWS_OF_U, of_u)):
        con.execute(f"DELETE FROM {table}")
        if rows:
            con.execute(f"INSERT INTO {table} VALUES {', '.join(pool[row] for row in rows)}")


class World:
    """One database, its catalog as the check sees it, and every hostile query as a view where that works."""

    def __init__(self, folder):
        self.folder, self.con = folder, duckdb.connect()
        self.con.execute(hostile.SETUP)
        files(folder, self.con)
        fill(self.con, [0, 1, 2, 2, 5], [0, 1])
        self.views = []
        for number, (_, query) in enumerate(REFUSED):
            if ";" in query:  # a second statement would run
                continue
            try:
                self.con.execute(f"CREATE VIEW hostile_{number} AS {self.text(query)}")
                self.views.append((f"hostile_{number}", query))
            except duckdb.Error:
                pass
        self.catalog = DuckDBCatalog(DuckDBEngine(self.con.cursor()))

    def text(self, query):
        return query.replace("{folder}", str(self.folder))

    def check(self, query, **options):
        return check_query(self.text(query), self.catalog, PUBLIC, **options)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("hostile"))
    yield made
    made.con.close()


def judged(action):
    """The message of a refusal, which must be of our own making."""
    with pytest.raises(SourceError) as caught:
        action()
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert "canary" not in str(caught.value) and "LINE 1" not in str(caught.value)
    return caught


def test_the_list_is_as_long_as_it_claims_and_says_nothing_twice():
    queries = [query for _, query in REFUSED] + hostile.UNBOUND + ADMITTED
    assert len(REFUSED) > 350 and len(queries) == len(set(queries))


@pytest.mark.parametrize(("word", "query"), REFUSED, ids=range(len(REFUSED)))
def test_what_can_mix_rows_is_refused_and_the_construct_is_named(world, word, query):
    caught = judged(lambda: world.check(query))
    assert caught.match(word)


def test_the_same_hidden_in_stored_views_is_refused(world):
    assert len(world.views) > 150
    passed = []
    for view, query in world.views:
        with contextlib.suppress(SourceError):
            world.check(f"SELECT * FROM {view}")
            passed.append(query)
    assert set(passed) <= hostile.STORED_AS_SOMETHING_ALLOWED


@pytest.mark.parametrize("query", hostile.UNBOUND)
def test_what_the_text_does_not_show_is_refused_where_the_source_is_opened(world, query):
    frame = {"a": [1]}  # noqa: F841 - DuckDB would find it by this name
    judged(lambda: open_source(world.con, world.text(query), public_tables=["pub"]))


@pytest.mark.parametrize("query", hostile.REFUSED_EVEN_IF_TRUSTED)
def test_an_owners_word_covers_nothing_that_is_not_charged(world, query):
    judged(lambda: world.check(query, trusted=True))


def test_nothing_was_written_by_any_of_them(world):
    assert sorted(path.name for path in world.folder.iterdir()) == ["f.csv", "f.json", "f.parquet"]
    assert world.con.execute("SELECT count(*) FROM u").fetchone() == (2,)


@pytest.fixture(scope="module")
def answers(world):
    """By query: what each row alone adds to the result of empty tables, and (rows, result) of random tables."""
    con, chance = world.con.cursor(), random.Random(5)
    checked = {query: world.check(query) for query in ADMITTED}

    def results(of_t, of_u=()):
        fill(con, of_t, of_u)
        return {
            query: Counter(map(repr, con.execute(f"FROM (\n{one.sql}\n)").fetchall()))
            for query, one in checked.items()
        }

    empty = results([])
    alone = [results([row]) for row in range(len(ROWS_OF_T))]
    alone += [results([], [row]) for row in range(len(ROWS_OF_U))]
    drawn = [
        (chance.choices(range(len(ROWS_OF_T)), k=size), chance.choices(range(len(ROWS_OF_U)), k=size // 3))
        for size in (2, 3, 5, 8, 13)
    ]
    together = [results(*rows) for rows in drawn]
    fill(con, [0, 1, 2, 2, 5], [0, 1])
    return {
        query: (
            checked[query],
            empty[query],
            [one[query] for one in alone],
            [([*of_t, *(len(ROWS_OF_T) + row for row in of_u)], one[query]) for (of_t, of_u), one in
             zip(drawn, together, strict=True)],
        )
        for query in ADMITTED
    }  # fmt: skip


@pytest.mark.parametrize("query", ADMITTED)
def test_the_result_of_an_admitted_query_is_what_its_rows_give_alone(answers, query):
    """So each row adds its own rows, which hang on no other row, and takes none away."""
    checked, empty, alone, together = answers[query]
    assert not any(empty - one for one in alone)
    own = [one - empty for one in alone]
    for rows, result in together:
        expected = empty.copy()
        for row in rows:
            expected += own[row]
        assert result == expected
    most = max(one.total() for one in own)
    assert checked.multiplies == (query not in hostile.ROW_WISE)
    assert (most > 1) == (query in hostile.SEVERAL)


@pytest.mark.parametrize("query", ADMITTED)
def test_what_runs_means_what_was_written(world, query):
    con = world.con.cursor()
    con.execute("SET lambda_syntax = 'ENABLE_SINGLE_ARROW'")
    try:
        expected = con.execute(world.text(query).rstrip(";")).fetchall()
    except (duckdb.CatalogException, duckdb.ConversionException):
        return  # a text in quotes that is no type and no interval
    names = [column[0] for column in con.description]
    got = con.execute(f"FROM (\n{world.check(query).sql}\n)").fetchall()
    assert Counter(map(repr, got)) == Counter(map(repr, expected))
    assert [column[0] for column in con.description] == names


@pytest.mark.parametrize(
    "source",
    [
        "SELECT a, count(*) OVER () AS n FROM t",
        "SELECT x.a FROM t AS x, t AS y",
        "SELECT ts_or_ds_add(d, 1, 'day AS x FROM memory.main.t LIMIT 1 --') AS x FROM t",
        "SELECT missing FROM t",
        "SELECT a FROM t; DROP TABLE t",
        "EXPLAIN SELECT a FROM t",
        "FROM read_text('{folder}/f.csv')",
        "summed",
    ],
)
def test_a_refused_source_leaves_no_table_no_file_no_ledger(tmp_path, source):
    with duckdb.connect(str(tmp_path / "w.duckdb")) as con:
        con.execute(hostile.SETUP)
        con.execute("CREATE VIEW summed AS SELECT sum(a) AS a FROM t")
        files(tmp_path, con)
        tables = con.execute("FROM duckdb_tables()").fetchall()
        before = sorted(path.name for path in tmp_path.iterdir())
        with pytest.raises(InputError):
            dpsyn_sql.release(con, source.replace("{folder}", str(tmp_path)), into="o")
        assert con.execute("FROM duckdb_tables()").fetchall() == tables
        assert sorted(path.name for path in tmp_path.iterdir()) == before
