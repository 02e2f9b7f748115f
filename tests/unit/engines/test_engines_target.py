"""Targets: every refusal comes before anything is written, and the writer cannot name the source."""

import os

import duckdb
import pytest

from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.open_target import open_target
from dpsyn_sql.errors import InternalError, TargetError
from dpsyn_sql.source.names import display_name
from dpsyn_sql.sqltext.fragments import ident
from dpsyn_sql.sqltext.render import render


@pytest.fixture
def con():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v AS SELECT a FROM t")
    connection.execute("CREATE TABLE other (b INTEGER); CREATE SCHEMA s")
    yield connection
    connection.close()


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "house.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE SCHEMA s; CREATE TABLE other (b INTEGER)")
    return path


@pytest.fixture
def parquet(tmp_path):
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/t.parquet'")
    return tmp_path / "t.parquet"


def refused(con, source, into, word, *, replace=False, **options):
    with open_source(con, source, **options) as session, pytest.raises(TargetError, match=word) as caught:
        open_target(con, into, session, replace=replace)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


# -- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("into", "name"),
    [
        (None, "memory.main.t_synthetic"),
        ("new", "memory.main.new"),
        ("s.new", "memory.s.new"),
        ("S.new", "memory.s.new"),
        ("memory.new", "memory.main.new"),
        ("memory.s.new", "memory.s.new"),
        ('"a.b"', 'memory.main."a.b"'),
        ('"x.parquet"', 'memory.main."x.parquet"'),
        ('quo"te', 'memory.main."quo""te"'),
        ("two words; DROP TABLE t {{ x }}", 'memory.main."two words; DROP TABLE t {{ x }}"'),
        ("x" * 5000, "memory.main." + "x" * 5000),
    ],
)
def test_tables_of_a_connection(con, into, name):
    with open_source(con, "t") as session:
        target = open_target(con, into, session)
        assert (target.name, target.kind, target.path, target.format) == (name, "table", None, None)
        session.release_source()
        engine = target.open()
        engine.execute(f"CREATE TABLE {target.sql} AS SELECT 2 AS a", step="writing")
        engine.close()
    assert con.execute(f"FROM {target.sql}").fetchall() == [(2,)]


@pytest.mark.parametrize("name", ['quo"te', "a/b.parquet", "dotted.name", "שלום", "new\nline", "x" * 5000])
def test_the_default_of_an_odd_source_name_works(con, name):
    con.execute(f"CREATE TABLE {ident(name)} (a INTEGER)")
    with open_source(con, ident(name)) as session:
        target = open_target(con, None, session)
        assert target.kind == "table"
        assert target.name == display_name("memory", "main", f"{name}_synthetic")


@pytest.mark.parametrize(
    ("source", "into", "word", "replace"),
    [
        ("t", "t", "is the source", False),
        ("t", "T", "is the source", True),
        ("t", "memory.main.t", "is the source", True),
        ("v", "t", "is the source", True),
        ("v", "v", "is the source", True),
        ("SELECT a FROM v", "t", "is the source", True),
        ("SELECT a FROM t", None, "as into=", False),
        ("t", "other", "exists", False),
        ("t", "v", "is a view", True),
        ("t", "temp.x", "temporary or internal", False),
        ("t", "system.main.x", "temporary or internal", False),
        ("t", "nowhere.x", "no schema or database nowhere", False),
        ("t", "x.duckdb", "One table is written to a table, or to a file", False),
        ("t", "a.b.c", "no schema or database", False),
        ("t", "", "name of a table", False),
        ("t", "a\x00b", "NUL", False),
    ],
)
def test_refused_tables(con, source, into, word, replace):
    before = con.execute("SELECT * FROM duckdb_tables()").fetchall()
    refused(con, source, into, word, replace=replace)
    assert con.execute("SELECT * FROM duckdb_tables()").fetchall() == before


def test_an_existing_table_may_be_replaced(con):
    with open_source(con, "t") as session:
        assert open_target(con, "other", session, replace=True).replace


@pytest.mark.parametrize(
    "made", ["TABLE DPSYN.codes AS SELECT 1 AS x", "VIEW dpsyn.releases AS SELECT 1 AS x"]
)
def test_what_stands_where_models_belong_is_told_in_time(con, made):
    con.execute("CREATE SCHEMA dpsyn; CREATE TABLE dpsyn.mine AS SELECT 1 AS x")
    with open_source(con, "t") as session:
        open_target(con, "new", session)
    refused(con, "t", "dpsyn.new", "another schema")
    con.execute(f"CREATE {made}")
    refused(con, "t", "new", "a table for models")
    con.execute("ATTACH ':memory:' AS elsewhere")
    with open_source(con, "t") as session:
        open_target(con, "elsewhere.main.new", session)


def test_tables_of_models_take_more_but_are_no_source_beside_their_own_target(con):
    con.execute(render("macros/tables", database=ident("memory")))
    with open_source(con, "t") as session:
        open_target(con, "new", session)
    refused(con, "dpsyn.codes", "new", "a table for models")


def test_a_database_called_as_the_schema_of_models_is_told_in_time(con):
    con.execute("ATTACH ':memory:' AS dpsyn")
    refused(con, "t", "new", "another name")


def test_public_tables_and_join_partners_are_no_targets(con):
    refused(
        con,
        "SELECT a FROM t SEMI JOIN other ON a = b",
        "other",
        "is the source",
        replace=True,
        public_tables=["other"],
    )


def test_a_read_only_database_is_no_target(database):
    with duckdb.connect(str(database), read_only=True) as con:
        refused(con, "t", None, "read-only")
    con = duckdb.connect()
    con.execute(f"ATTACH '{database}' AS house (READ_ONLY)")
    refused(con, "house.t", None, "read-only")
    with open_source(con, "house.t") as session:
        assert open_target(con, "memory.main.out", session).name == "memory.main.out"


def test_the_writer_cannot_name_the_source(con, database, parquet):
    for connection, source in ((con, "t"), (database, "t"), (con, parquet)):
        with open_source(connection, source) as session:
            target = open_target(connection, "new_one", session)
            session.release_source()
            engine = target.open()
            with pytest.raises(InternalError, match="after the last question"):
                engine.fetch(f"SELECT a FROM {session.relation.sql}", step="peeking")
            engine.close()


def test_a_database_file_is_written_after_the_source_is_released(database):
    for into, name in ((None, "house.main.t_synthetic"), ("s.x", "house.s.x")):
        with open_source(database, "t") as session:
            target = open_target(database, into, session)
            assert target.name == name
            with pytest.raises(InternalError, match="released"):
                target.open()
            assert session.engine.fetch("SELECT a FROM t", step="reading")["a"].tolist() == [1]
            session.release_source()
            engine = target.open()
            engine.execute(f"CREATE TABLE {target.sql} AS SELECT 2 AS a", step="writing")
            engine.close()
    with duckdb.connect(str(database)) as con:
        assert con.execute("FROM t_synthetic UNION ALL FROM s.x").fetchall() == [(2,), (2,)]
    assert [item.name for item in database.parent.iterdir()] == [database.name]


@pytest.mark.parametrize(
    ("into", "word"), [("other", "exists"), ("t", "is the source"), ("no.x", "no schema")]
)
def test_refused_tables_of_a_database_file(database, into, word):
    refused(database, "t", into, word)


def test_checking_a_database_file_changes_nothing(database):
    before = database.read_bytes()
    with open_source(database, "t") as session:
        open_target(database, None, session)
    assert database.read_bytes() == before
    assert [item.name for item in database.parent.iterdir()] == [database.name]


def test_a_database_in_use_by_a_reader_is_no_target(database):
    reader = duckdb.connect(str(database), read_only=True)
    refused(database, "t", None, "cannot be written")
    reader.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_database_file_without_write_permission_is_no_target(database):
    database.chmod(0o400)
    refused(database, "t", None, "cannot be written")


def test_a_missing_database_file_is_not_created(tmp_path, parquet):
    refused(tmp_path / "missing.duckdb", parquet, "x", "no database file")
    assert not (tmp_path / "missing.duckdb").exists()


# -- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [("o.parquet", "parquet"), ("o.csv", "csv"), ("o.csv.gz", "csv"), ("it's [1] {{x}}.PARQUET", "parquet")],
)
def test_files(con, parquet, tmp_path, name, kind):
    for connection, source in ((con, "t"), (None, parquet), (con, parquet)):
        with open_source(connection, source) as session:
            target = open_target(connection, str(tmp_path / name), session)
            assert (target.kind, target.format, target.sql) == ("file", kind, None)
            assert target.path == tmp_path / name
            session.release_source()
            engine = target.open()
            engine.execute("SELECT 1", step="working")
            engine.close()
    assert not (tmp_path / name).exists()


def test_the_default_of_a_file_lies_beside_it(parquet, con):
    for connection in (None, con):
        with open_source(connection, parquet) as session:
            assert open_target(connection, None, session).path == parquet.with_name("t_synthetic.parquet")


def test_a_relative_path_is_taken_from_here(parquet, monkeypatch):
    monkeypatch.chdir(parquet.parent)
    with open_source(None, "t.parquet") as session:
        target = open_target(None, None, session)
        assert target.name == "t_synthetic.parquet"
        assert target.path == parquet.with_name("t_synthetic.parquet")


def test_refused_files(parquet, tmp_path):
    (tmp_path / "old.csv").write_text("a\n")
    (tmp_path / "folder.parquet").mkdir()
    link = tmp_path / "link.parquet"
    link.symlink_to(parquet)
    hard = tmp_path / "hard.parquet"
    os.link(parquet, hard)
    for into, word, replace in [
        ("x.txt", "does not end in", False),
        ("x", "does not end in", False),
        (tmp_path / "missing" / "x.csv", "does not exist", False),
        (tmp_path / "old.csv", "exists", False),
        (tmp_path / "folder.parquet", "not a file", True),
        (parquet, "is the source", True),
        (link, "is the source", True),
        (hard, "is the source", True),
        (tmp_path / "." / "sub" / ".." / "t.parquet", "does not exist|is the source", True),
        (tmp_path / "t.parquet" / "x.csv", "does not exist", False),
    ]:
        refused(None, parquet, into, word, replace=replace)
    with open_source(None, parquet) as session:
        assert open_target(None, tmp_path / "old.csv", session, replace=True).replace


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_folder_without_write_permission(parquet, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    refused(None, parquet, tmp_path / "locked" / "x.csv", "cannot be written")


def test_a_file_where_the_model_belongs_is_told_in_time(parquet, tmp_path):
    beside = tmp_path / "o.csv.dpsyn.duckdb"
    beside.touch()
    refused(None, parquet, tmp_path / "o.csv", "file for the model of the release")
    with open_source(None, parquet) as session:
        assert open_target(None, tmp_path / "o.csv", session, replace=True).replace
    beside.unlink()
    beside.mkdir()
    refused(None, parquet, tmp_path / "o.csv", "file for the model of the release", replace=True)


def test_the_database_of_the_source_is_not_replaced_by_a_model(tmp_path):
    path = tmp_path / "o.csv.dpsyn.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
    refused(path, "t", tmp_path / "o.csv", "source", replace=True)


def test_a_new_file_may_not_become_part_of_the_source(parquet, tmp_path):
    inside, outside = tmp_path / "new.parquet", tmp_path / "new.csv"
    (tmp_path / "deep").mkdir()
    for source in (
        tmp_path,
        tmp_path / "*.parquet",
        tmp_path / "[t-z]*.parquet",
        tmp_path / "**" / "*.parquet",
    ):
        with open_source(None, source) as session:
            assert open_target(None, outside, session).kind == "file"
        if "[t-z]" not in str(source):
            refused(None, source, inside, "become part")
        refused(None, source, None, "as into=")
    refused(None, tmp_path / "**" / "*.parquet", tmp_path / "deep" / "x.parquet", "become part")
    with open_source(None, tmp_path / "[t-z]*.parquet") as session:
        assert open_target(None, inside, session).path == inside


def test_a_file_source_may_be_written_to_a_table(con, parquet, database):
    with open_source(con, str(parquet)) as session:
        assert open_target(con, "new_one", session).name == "memory.main.new_one"
    with open_source(database, parquet) as session:
        target = open_target(database, "new_one", session)
        assert target.name == "house.main.new_one"
        session.release_source()
        engine = target.open()
        engine.execute(f"CREATE TABLE {target.sql} AS SELECT 2 AS a", step="writing")
        engine.close()


def test_the_database_itself_is_no_file_target(tmp_path):
    path = tmp_path / "odd.parquet"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
    refused(path, "t", path, "is the source", replace=True)
