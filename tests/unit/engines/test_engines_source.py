"""Opening sources: which string is what, bad input, odd names, and the end of access."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import EngineFailure, InputError, InternalError, SourceError
from dpsyn_sql.source.names import LedgerNames, display_name
from dpsyn_sql.sqltext.fragments import ident

ODD_NAMES = [
    'quo"te',
    "it's",
    "two words",
    "semi;colon; DROP TABLE x",
    "{{ template }}{% raw %}",
    "dotted.name",
    "a/b.parquet",
    "x" * 5000,
    "שלום עולם",
    "\u202edlrow",
    "select",
    "100%",
    "new\nline",
    "-- comment",
]


@pytest.fixture
def con():
    connection = duckdb.connect()
    yield connection
    connection.close()


def rows(session):
    sql = f"SELECT count(*) AS n FROM {session.relation.sql}"
    return int(session.engine.fetch(sql, step="counting")["n"][0])


def refused(con, source, word, **options):
    with pytest.raises(SourceError, match=word) as caught:
        open_source(con, source, **options)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    return str(caught.value)


# -- which string is what -----------------------------------------------------------------------


def test_a_table_with_its_columns(con):
    con.execute("CREATE TYPE mood AS ENUM ('sad', 'it''s'); CREATE TYPE big AS ENUM ('sad')")
    con.execute(
        "CREATE TABLE t (a INTEGER NOT NULL, m mood, anonymous ENUM('x', 'y'), b BOOLEAN, d DECIMAL(10,2))"
    )
    with open_source(con, "T") as session:
        relation = session.relation
        assert (relation.name, relation.kind, relation.sql) == (
            "memory.main.t",
            "table",
            '"memory"."main"."t"',
        )
        assert [(c.name, c.sql_type, c.not_null) for c in relation.columns] == [
            ("a", "INTEGER", True),
            ("m", "ENUM('sad', 'it''s')", False),
            ("anonymous", "ENUM('x', 'y')", False),
            ("b", "BOOLEAN", False),
            ("d", "DECIMAL(10,2)", False),
        ]
        assert [c.enum_labels for c in relation.columns] == [None, ("sad", "it's"), None, None, None]
        assert session.default_into == "memory.main.t_synthetic"
        assert relation.statements == () and session.warnings == ()
        assert rows(session) == 0


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_work_as_they_are_and_quoted(con, name):
    con.execute(f"CREATE TABLE {ident(name)} (a INTEGER); INSERT INTO {ident(name)} VALUES (1)")
    for text in (name, ident(name), display_name("memory", "main", name)):
        with open_source(con, text) as session:
            assert session.relation.sql == f'"memory"."main".{ident(name)}'
            assert rows(session) == 1
            assert session.default_into == display_name("memory", "main", f"{name}_synthetic")


@pytest.mark.slow
@settings(max_examples=15)
@given(
    name=st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=20)
)
def test_any_name_is_found_by_its_printed_form(name):
    with duckdb.connect() as con:
        con.execute(f"CREATE SCHEMA {ident('s ' + name)}")
        con.execute(f"CREATE TABLE {ident('s ' + name)}.{ident(name)} ({ident(name)} INTEGER)")
        with open_source(con, display_name("memory", "s " + name, name)) as session:
            assert [column.name for column in session.relation.columns] == [name]
            assert rows(session) == 0


def test_a_name_with_a_dot_that_means_two_things_must_be_quoted(con):
    con.execute('CREATE SCHEMA s; CREATE TABLE s.t (a INTEGER); CREATE TABLE "s.t" (b INTEGER)')
    refused(con, "s.t", "quote")
    with open_source(con, '"s.t"') as session:
        assert session.relation.columns[0].name == "b"
    with open_source(con, "s.t".replace("s", '"s"')) as session:
        assert session.relation.columns[0].name == "a"


def test_a_schema_and_a_database_of_one_name_need_the_full_name(con):
    con.execute("ATTACH ':memory:' AS x; CREATE TABLE x.t (a INTEGER); CREATE SCHEMA memory.x")
    con.execute("CREATE TABLE memory.x.t (b INTEGER)")
    refused(con, "x.t", "in full")
    with open_source(con, "memory.x.t") as session:
        assert session.relation.columns[0].name == "b"


def test_the_callers_search_path_decides(con):
    con.execute("ATTACH ':memory:' AS one; ATTACH ':memory:' AS two")
    for name in ("one", "two"):
        con.execute(f"CREATE TABLE {name}.t AS SELECT '{name}' AS {name}")
    con.execute("USE two")
    with open_source(con, "t") as session:
        assert session.relation.name == "two.main.t"
    with open_source(con, "SELECT * FROM t") as session:
        assert '"two"."main"."t"' in session.relation.sql
    con.execute("CREATE SCHEMA one.s; CREATE TABLE one.s.u (a INTEGER); SET search_path = 'two.main,one.s'")
    with open_source(con, "u") as session:
        assert session.relation.name == "one.s.u"
    assert con.execute("SELECT current_database()").fetchone() == ("two",)


def test_files(tmp_path):
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1::TINYINT AS a, 'x' AS b) TO '{tmp_path}/t.parquet'")
    for source in (str(tmp_path / "t.parquet"), tmp_path / "t.parquet"):
        for con in (None, duckdb.connect()):
            with open_source(con, source) as session:
                assert session.relation.kind == "parquet" and rows(session) == 1
                assert [(c.name, c.sql_type) for c in session.relation.columns] == [
                    ("a", "TINYINT"),
                    ("b", "VARCHAR"),
                ]
                assert session.default_into == str(tmp_path / "t_synthetic.parquet")
                assert session.resolved_name(LedgerNames.of(tmp_path / "l")) == "t.parquet"


def test_globs_and_folders_have_no_default_output(tmp_path):
    with duckdb.connect() as con:
        for name in ("a", "b"):
            con.execute(f"COPY (SELECT 1 AS x) TO '{tmp_path}/{name}.parquet'")
    for source in (tmp_path, tmp_path / "*.parquet", tmp_path / "[ab].parquet"):
        with open_source(None, source) as session:
            assert rows(session) == 2 and session.default_into is None


@pytest.mark.parametrize(
    "name", ["b[ra]cket.parquet", "st*ar?.parquet", "it's {a,b}.parquet", "back\\slash.parquet"]
)
def test_odd_file_names_are_read_as_they_are(tmp_path, name):
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 7 AS x) TO '{tmp_path}/plain.parquet'")
    (tmp_path / "plain.parquet").rename(tmp_path / name)
    for decoy in ("br.parquet", "stXarY.parquet", "it's a.parquet"):
        (tmp_path / decoy).write_bytes(b"decoy")
    with open_source(None, tmp_path / name) as session:
        assert rows(session) == 1


def test_a_csv_is_text_with_names_from_its_header_alone(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a;b\n1;x\n;""\n3\n"q;""";z\n4;5;6\n\xff')
    with open_source(None, path) as session:
        assert [(c.name, c.sql_type) for c in session.relation.columns] == [
            ("a", "VARCHAR"),
            ("b", "VARCHAR"),
        ]
        got = session.engine.fetch(f"SELECT a, b FROM {session.relation.sql}", step="reading")
        cells = list(zip(got["a"].tolist(), got["b"].tolist(), strict=True))
        assert cells[:5] == [("1", "x"), (None, None), ("3", None), ('q;"', "z"), ("4", "5")]
        assert session.warnings


def test_the_shape_of_a_csv_does_not_depend_on_its_rows(tmp_path):
    shapes = set()
    for number, body in enumerate(["", "1,2\n", "1,2\nx,2020-01-01\n", '"a\nb",c\n', "1;2;3\n" * 100]):
        path = tmp_path / f"{number}.csv"
        path.write_text("a,b\n" + body)
        with open_source(None, path) as session:
            shapes.add(session.relation.columns)
            rows(session)
    assert len(shapes) == 1


def test_queries_and_views(con):
    con.execute("CREATE TABLE t (a INTEGER NOT NULL); INSERT INTO t VALUES (1), (2)")
    con.execute("CREATE VIEW v AS SELECT a + 1 AS b FROM t; CREATE TABLE p (k INTEGER)")
    with open_source(con, "v") as session:
        assert session.relation.kind == "view" and session.default_into == "memory.main.v_synthetic"
        assert session.reads == (("memory", "main", "v"), ("memory", "main", "t"))
        assert rows(session) == 2
    with open_source(con, "SELECT a FROM t LEFT JOIN p ON k = a", public_tables=["p"]) as session:
        assert session.relation.kind == "query" and session.default_into is None
        assert any("memory.main.p" in line for line in session.relation.statements)
        assert any("a row of the result is what is protected" in line for line in session.relation.statements)
    with open_source(con, "SELECT sum(a) AS s FROM t", trust_query=True) as session:
        assert "trust_query=True" in session.relation.statements[0]
        assert rows(session) == 1


def test_two_queries_over_one_table_have_two_names(con):
    con.execute("CREATE TABLE t (a INTEGER)")
    names = set()
    for query in ("SELECT a FROM t", "SELECT a FROM t WHERE a = 'x y'", "SELECT a FROM t WHERE a = 'x  y'"):
        with open_source(con, query) as session:
            names.add(session.resolved_name(LedgerNames()))
    assert len(names) == 3


def test_a_view_over_a_macro_or_window_is_refused(con):
    con.execute("CREATE TABLE t (a INTEGER); CREATE VIEW w AS SELECT rank() OVER (ORDER BY a) AS r FROM t")
    assert "trust_query=True" in refused(con, "w", "window")
    with open_source(con, "w", trust_query=True) as session:
        assert rows(session) == 0


def test_a_view_is_looked_up_at_its_home(con):
    con.execute("CREATE SCHEMA s; CREATE TABLE s.t (inside INTEGER); CREATE TABLE t (outside INTEGER)")
    con.execute("USE memory.s; CREATE VIEW s.v AS SELECT * FROM t; USE memory.main")
    expected = [column[0] for column in con.execute("FROM s.v").description]
    with open_source(con, "s.v") as session:
        assert [column.name for column in session.relation.columns] == expected


def test_a_query_over_a_file_reads_it_unsniffed(tmp_path, con):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    for source in (
        f"SELECT * FROM '{tmp_path}/t.csv'",
        f"SELECT t.a, t.b FROM '{tmp_path}/t.csv'",
        f"FROM read_csv('{tmp_path}/t.csv')",
    ):
        for connection in (None, con):
            with open_source(connection, source) as session:
                assert [c.sql_type for c in session.relation.columns] == ["VARCHAR", "VARCHAR"]
                assert rows(session) == 1 and session.paths == (str(tmp_path / "t.csv"),)


# -- a database file ----------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "ware house.v1.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE t AS SELECT 1 AS a; CREATE SCHEMA s; CREATE VIEW s.v AS SELECT a FROM main.t"
        )
    return path


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_database_file(database, kind):
    for text in ("t", "main.t", '"ware house".main.t', "s.v", "SELECT a FROM t"):
        with open_source(kind(database), text) as session:
            assert rows(session) == 1
            with pytest.raises(EngineFailure):
                session.engine.execute('CREATE TABLE "ware house".main.new (a INTEGER)', step="writing")
    assert [item.name for item in database.parent.iterdir()] == [database.name]


def test_a_database_file_that_is_none(tmp_path, database):
    (tmp_path / "no.duckdb").write_text("no database at all, but long enough to look like one " * 200)
    refused(tmp_path / "no.duckdb", "t", "DuckDB database")
    refused(tmp_path / "missing.duckdb", "t", "no database file")
    assert not (tmp_path / "missing.duckdb").exists()
    with duckdb.connect(str(database)):
        refused(database, "t", "pass the connection")


def test_a_file_source_beside_a_database_file(database, tmp_path):
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/f.parquet'")
    with open_source(database, str(tmp_path / "f.parquet")) as session:
        assert session.relation.kind == "parquet" and session.database is None


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_empty_text(con, text):
    refused(con, text, "empty")


def test_missing_names_say_what_is_near(con):
    con.execute("CREATE TABLE adult (a INTEGER)")
    assert "memory.main.adult" in refused(con, "adlut", "no table, view or file")
    refused(con, "main.missing", "no table")
    refused(con, "x" * 5000, "no table")
    refused(con, "a\x00b", "NUL")


def test_missing_files(tmp_path):
    refused(None, "adult", "needs con=")
    refused(None, tmp_path / "none.parquet", "no file")
    refused(None, str(tmp_path / "*.parquet"), "no file")
    refused(None, "SELECT a FROM t", "not a table")


def test_a_broken_parquet_file(tmp_path):
    (tmp_path / "x.parquet").write_text("PAR1 secret PAR1")
    assert "secret" not in refused(None, tmp_path / "x.parquet", "Parquet")


def test_uncommitted_temporary_and_registered_relations(con):
    con.execute("CREATE TEMP TABLE temporary_one (a INTEGER)")
    refused(con, "temporary_one", "Write it to a table")
    refused(con, "temp.temporary_one", "Write it to a table")
    con.register("frame", {"a": __import__("numpy").array([1])})
    refused(con, "frame", "Write it to a table")
    con.execute("BEGIN; CREATE TABLE fresh (a INTEGER)")
    refused(con, "fresh", "COMMIT first")
    con.execute("COMMIT")
    open_source(con, "fresh").close()


def test_a_frame_that_hides_a_table_is_refused(con):
    con.execute("CREATE TABLE t (a INTEGER)")
    con.register("t", {"b": __import__("numpy").array([1])})
    refused(con, "t", "full name")
    with open_source(con, "memory.main.t") as session:
        assert session.relation.columns[0].name == "a"


def test_a_data_frame_variable_is_never_read(con):
    frame = __import__("pandas").DataFrame({"a": [1]})  # noqa: F841 - DuckDB would find it by this name
    refused(con, "frame", "no table")
    refused(con, "SELECT * FROM frame", "not a table")


def test_clashing_column_names(tmp_path, con):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table([[1], [2]], names=["a", "A"]), tmp_path / "x.parquet")
    refused(None, tmp_path / "x.parquet", "'a', 'A'")


def test_clashing_names_in_csv_and_query(tmp_path, con):
    (tmp_path / "x.csv").write_text("a,A\n1,2\n")
    refused(None, tmp_path / "x.csv", "'a', 'A'")
    con.execute("CREATE TABLE t (a INTEGER)")
    refused(con, "SELECT a, a + 1 AS A FROM t", "tell apart|accept")


def test_queries_that_do_not_bind(con):
    con.execute("CREATE TABLE t (a INTEGER)")
    refused(con, "SELECT nope FROM t", "does not accept the query")
    refused(con, "SELECT sum(nope) FROM t", "does not accept", trust_query=True)


def test_closed_or_broken_connections(con):
    con.execute("CREATE TABLE t (a INTEGER); BEGIN")
    with pytest.raises(duckdb.Error):
        con.execute("SELECT error('x')")
    refused(con, "t", "ROLLBACK")
    con.execute("ROLLBACK")
    con.close()
    refused(con, "t", "closed")


def test_public_tables_must_exist_and_be_a_list(con):
    con.execute("CREATE TABLE t (a INTEGER)")
    refused(con, "SELECT a FROM t", "has unknown tables: nope", public_tables=["nope"])
    refused(con, "SELECT a FROM t", "list", public_tables="t")


def test_memory_limits_need_an_instance_of_ours(con, database):
    con.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(InputError, match="limits= with 'memory' would change"):
        open_source(con, "t", memory_limit="1GB")
    with open_source(database, "t", memory_limit="1GB") as session:
        got = session.engine.fetch("SELECT current_setting('memory_limit') AS m", step="reading")
        assert got["m"][0] == "953.6 MiB"


# -- the end of access --------------------------------------------------------------------------


def test_after_release_the_source_cannot_be_named(con, database, tmp_path):
    con.execute("CREATE TABLE t (a INTEGER)")
    con.execute(f"COPY t TO '{tmp_path}/t.parquet'")
    for session in (
        open_source(con, "t"),
        open_source(con, "SELECT a FROM t"),
        open_source(database, "t"),
        open_source(None, tmp_path / "t.parquet"),
    ):
        sql = f"SELECT a FROM {session.relation.sql}"
        session.engine.execute("CREATE TEMP TABLE encoded AS " + sql, step="encoding")
        session.release_source()
        session.release_source()
        with pytest.raises(InternalError, match="after the last question"):
            session.engine.fetch(sql, step="peeking")
        left = session.engine.fetch(
            "SELECT count(*) AS n FROM duckdb_tables() WHERE table_name = 'encoded'", step="looking"
        )
        assert left["n"][0] == 0
        if session.database is not None:
            with pytest.raises(EngineFailure):
                session.engine.fetch("SELECT a FROM t", step="peeking")
        session.close()
        session.close()


def test_the_callers_connection_is_as_it_was(con):
    con.execute("CREATE TABLE t (a INTEGER)")
    settings_sql = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    before = con.execute(settings_sql).fetchall()
    with open_source(con, "t") as session:
        session.engine.execute("CREATE TEMP TABLE encoded AS SELECT 1 AS x", step="encoding")
        session.release_source()
    assert con.execute(settings_sql).fetchall() == before
    assert con.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (1,)
    con.execute("INSERT INTO t VALUES (1)")


@pytest.mark.parametrize(
    "statements",
    [
        ["USE two"],
        ["USE two.s"],
        ["SET schema = 'other'"],
        ["SET search_path = 'other,two'"],
        ["SET search_path = 'other,main'"],
        ["SET search_path = 'two.s,other'"],
        ["SET search_path = 'two,one.other'"],
        ["USE two", "SET search_path = 'main,s'"],
    ],
    ids=str,
)
def test_a_bare_name_means_what_it_means_to_the_caller(tmp_path, statements):
    """Entries of the search path with and without a catalog, and the main schema behind them all."""
    con = duckdb.connect(str(tmp_path / "one.duckdb"))
    con.execute(f"ATTACH '{tmp_path}/two.duckdb' AS two; CREATE SCHEMA one.other; CREATE SCHEMA two.s")
    homes = {"one.main": "in_main", "one.other": "in_other", "two.main": "in_two", "two.s": "in_s"}
    for home, alone in homes.items():
        for table in (alone, "everywhere"):
            con.execute(f"CREATE TABLE {home}.{table} AS SELECT '{home}' AS home")
    for statement in statements:
        con.execute(statement)
    for name in ("everywhere", *homes.values()):
        try:
            (home,) = con.execute(f"FROM {name}").fetchone()
        except duckdb.CatalogException:
            with pytest.raises(SourceError):
                open_source(con, name)
        else:
            with open_source(con, name) as session:
                assert session.relation.name == f"{home}.{name}"
    con.close()
