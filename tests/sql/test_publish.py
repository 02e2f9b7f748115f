"""Publishing is all or nothing: tables, files, existing outputs, failures and empty releases."""

import os
from dataclasses import replace as but

import duckdb
import numpy as np
import pytest
from support.publishing import publish
from support.shapes import shape_of_domain

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.roles import Key
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, InternalError, PublishError
from dpsyn_sql.rows.write.publish import Destination
from dpsyn_sql.rows.write.staging import append, make_room
from dpsyn_sql.sqltext.fragments import Fragment

DOMAIN = Domain(
    (
        Attribute("age", "INTEGER", "numeric", edges=(0, 10, 100), nullable=True),
        Attribute('it\'s "x"', "VARCHAR", "categorical", labels=("", "b,c"), other=True, nullable=True),
    )
)
SHAPE = shape_of_domain(DOMAIN)
STAGED = Fragment("temp.staged")
BATCHES = (np.array([[0, 0], [2, 1]]), np.zeros((0, 2), dtype=np.int64), np.array([[1, 2], [1, 3], [1, 0]]))


class Session(DuckDBEngine):
    """The engine with its statements recorded, and the connection for looking at the outcome."""

    def __init__(self, con):
        self.con, self.log = con, []
        super().__init__(con, trace=self.log.append)


@pytest.fixture
def session(tmp_path):
    con = duckdb.connect(str(tmp_path / "out.duckdb"))
    yield Session(con)
    con.close()


def table(name='syn"thetic', **options):
    """``support.publishing`` calls its table "rows"; with ``only_same`` it is there."""
    existing = frozenset({"rows"} if options.get("only_same") else ())
    names, home = {"rows": name}, ("out", "main")
    return Destination(kind="table", names=names, home=home, existing=existing, **options)


def file(path, **options):
    return Destination(kind="file", path=path, **options)


def staged(session, batches=BATCHES):
    make_room(session, DOMAIN, STAGED)
    return append(session, DOMAIN, iter(batches), STAGED, 0)


def rows(session, source='out.main."syn""thetic"'):
    return session.con.execute(f"FROM {source}").fetchall()


def test_stage_numbers_rows_over_batches_with_the_smallest_types(session):
    assert staged(session) == 5
    assert rows(session, STAGED) == [(0, 0, 0), (1, 2, 1), (2, 1, 2), (3, 1, 3), (4, 1, 0)]
    types = session.con.execute(f"DESCRIBE {STAGED}").fetchall()
    assert [(name, kind) for name, kind, *_ in types] == [
        ("row", "BIGINT"),
        ("a0", "UTINYINT"),
        ("a1", "UTINYINT"),
    ]


@pytest.mark.parametrize("wrong", [[[3, 0]], [[0, -1]], [[0, 300]], [[0]], [0, 1]])
def test_stage_refuses_codes_outside_the_domain(session, wrong):
    with pytest.raises(InternalError):
        staged(session, [np.array(wrong)])


def test_table_in_one_transaction(session):
    staged(session)
    start = len(session.log)
    publish(session, table(), SHAPE, STAGED, 1)
    log = session.log[start:]
    assert "count(*)" in log[0] and log[1] == "BEGIN TRANSACTION" and log[3:] == ["COMMIT"]
    assert "CREATE TABLE" in log[2] and "OR REPLACE" not in log[2]
    got = rows(session)
    assert [row[1] for row in got] == ["", "b,c", "__other__", None, ""]
    assert 0 <= got[0][0] < 10 and got[1][0] is None and all(10 <= row[0] < 100 for row in got[2:])
    names = [(name, kind) for name, kind, *_ in session.con.execute('DESCRIBE "syn""thetic"').fetchall()]
    assert names == [("age", "INTEGER"), ('it\'s "x"', "VARCHAR")]


def test_existing_table_is_kept_without_replace_and_swapped_with_it(session):
    staged(session)
    session.con.execute('CREATE TABLE "syn""thetic" AS SELECT 42 AS kept')
    with pytest.raises(PublishError) as caught:
        publish(session, table(), SHAPE, STAGED, 1)
    assert caught.value.__context__ is None
    assert rows(session) == [(42,)]
    publish(session, table(replace=True), SHAPE, STAGED, 1)
    assert len(rows(session)) == 5


def test_failure_while_replacing_keeps_the_old_table(session):
    session.con.execute('CREATE TABLE "syn""thetic" AS SELECT 42 AS kept')
    with pytest.raises((EngineFailure, PublishError)):
        publish(session, table(replace=True), SHAPE, Fragment("temp.no_such_table"), 1)
    assert rows(session) == [(42,)]


@pytest.mark.parametrize("batches", [(), (np.zeros((0, 2), dtype=np.int64),)])
@pytest.mark.parametrize("form", ["table", "parquet", "csv"])
def test_no_rows(session, tmp_path, batches, form):
    assert staged(session, batches) == 0
    path = tmp_path / f"o.{form}"
    target = table() if form == "table" else file(path)
    publish(session, target, SHAPE, STAGED, 1)
    source = 'out.main."syn""thetic"' if form == "table" else f"'{path}'"
    assert rows(session, source) == []
    names = [name for name, *_ in session.con.execute(f"DESCRIBE FROM {source}").fetchall()]
    assert names == ["age", 'it\'s "x"']


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_file_is_complete_and_deterministic(session, tmp_path, form):
    staged(session)
    folder = tmp_path / "it's here"
    folder.mkdir()
    contents = []
    for name in ("one", "two"):
        target = file(folder / f"{name}.{form}")
        publish(session, target, SHAPE, STAGED, 1)
        contents.append(target.path.read_bytes())
    assert contents[0] == contents[1]
    publish(session, table(), SHAPE, STAGED, 1)
    quoted = str(folder / f"one.{form}").replace("'", "''")
    reader = "read_parquet" if form == "parquet" else "read_csv"
    options = "" if form == "parquet" else ", allow_quoted_nulls = FALSE"
    assert rows(session, f"{reader}('{quoted}'{options})") == rows(session)
    assert sorted(path.name for path in folder.iterdir()) == [f"one.{form}", f"two.{form}"]


def written(tmp_path, form, shape, threads, piece, *, moved=False, keeps=True):
    """The bytes of a file of 400,000 rows that came in pieces, and whether they were sorted."""
    codes = np.random.default_rng(1).integers(0, (3, 4), (400_000, 2))
    target = file(tmp_path / f"o.{form}", replace=True)
    config = {"threads": threads, "preserve_insertion_order": keeps}
    with duckdb.connect(str(tmp_path / "out.duckdb"), config=config) as con:
        session = Session(con)
        staged(session, (codes[first : first + piece] for first in range(0, len(codes), piece)))
        if moved:
            con.execute(f"CREATE TABLE moved AS FROM {STAGED} ORDER BY hash(row)")
            con.execute(f"DELETE FROM {STAGED}")
            con.execute(f"INSERT INTO {STAGED} FROM moved")
            con.execute("DROP TABLE moved")
        publish(session, target, shape, STAGED, 1)
        (copy,) = (statement for statement in session.log if "\nCOPY (" in f"\n{statement}")
    return target.path.read_bytes(), 'ORDER BY "row"' in copy


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_rows_that_lie_in_their_order_are_not_sorted(tmp_path, form):
    """The same bytes at any number of threads, and of rows that have to be sorted."""
    keyed = but(SHAPE, roles=(Key("id", "INTEGER"),), order=(*SHAPE.order, "id"))
    for shape in (SHAPE, keyed):
        whole, ordered = written(tmp_path, form, shape, 1, 400_000)
        assert not ordered
        for threads, piece in ((2, 50_000), (4, 262_144), (4, 399_999)):
            assert written(tmp_path, form, shape, threads, piece) == (whole, False)
        assert written(tmp_path, form, shape, 2, 50_000, moved=True) == (whole, True)
        assert written(tmp_path, form, shape, 4, 100_000, keeps=False) == (whole, True)


@pytest.mark.parametrize("kind", [{"never": (Fragment("age > 200"),)}, {"together": True}])
def test_rows_of_pieces_of_any_size_are_sorted(tmp_path, kind):
    """Row groups of a file would tell the pieces."""
    assert written(tmp_path, "parquet", but(SHAPE, **kind), 2, 50_000)[1]


CHANGES = [
    'DELETE FROM "syn""thetic" WHERE rowid = 0',
    'INSERT INTO "syn""thetic" FROM "syn""thetic" LIMIT 1',
    'CREATE OR REPLACE TABLE "syn""thetic" AS SELECT 42 AS mine',
    'ALTER TABLE "syn""thetic" ADD COLUMN mine INTEGER',
    """CREATE OR REPLACE TABLE "syn""thetic" AS SELECT 'a text', 'another'""",
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_is_written_again_only_over_the_same_rows(session, change):
    staged(session)
    again = table(replace=True, only_same=True)
    publish(session, table(), SHAPE, STAGED, 1)
    first = rows(session)
    session.con.execute("""COMMENT ON TABLE "syn""thetic" IS 'mine'""")
    publish(session, again, SHAPE, STAGED, 1)
    assert rows(session) == first
    comments = session.con.execute("SELECT comment FROM duckdb_tables() WHERE comment IS NOT NULL")
    assert comments.fetchall() == [("mine",)]  # nothing was rewritten
    session.con.execute(change)
    changed = rows(session)
    with pytest.raises(PublishError, match=r"it was changed.*replace=True") as caught:
        publish(session, again, SHAPE, STAGED, 1)
    assert caught.value.__context__ is None and rows(session) == changed


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_is_written_again_only_over_the_same_bytes(session, tmp_path, form):
    staged(session)
    path = tmp_path / f"o.{form}"
    again = file(path, replace=True, only_same=True)
    publish(session, again, SHAPE, STAGED, 1)  # gone meanwhile
    first = path.read_bytes()
    publish(session, again, SHAPE, STAGED, 1)
    assert path.read_bytes() == first
    path.write_text("mine")
    with pytest.raises(PublishError, match=r"it was changed.*replace=True"):
        publish(session, again, SHAPE, STAGED, 1)
    assert path.read_text() == "mine" and not list(tmp_path.glob(".dpsyn*"))


def test_existing_file_is_kept_without_replace(session, tmp_path):
    staged(session)
    path = tmp_path / "o.csv"
    path.write_text("mine")
    with pytest.raises(PublishError, match="replace=True"):
        publish(session, file(path), SHAPE, STAGED, 1)
    assert path.read_text() == "mine"
    assert not list(tmp_path.glob(".dpsyn*"))
    publish(session, file(path, replace=True), SHAPE, STAGED, 1)
    assert len(path.read_text().splitlines()) == 6


def test_file_systems_without_hard_links(session, tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", no_links)
    staged(session)
    path = tmp_path / "o.parquet"
    target = file(path)
    publish(session, target, SHAPE, STAGED, 1)
    assert len(rows(session, f"'{path}'")) == 5
    before = path.read_bytes()
    with pytest.raises(PublishError):
        publish(session, target, SHAPE, STAGED, 2)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".dpsyn*"))


def test_failed_copy_leaves_nothing(session, tmp_path):
    path = tmp_path / "o.parquet"
    with pytest.raises(EngineFailure):
        publish(session, file(path), SHAPE, Fragment("temp.none"), 1)
    assert [file.name for file in tmp_path.iterdir() if "duckdb" not in file.name] == []


def test_missing_folder_is_our_own_error(session, tmp_path):
    staged(session)
    target = file(tmp_path / "none" / "o.csv")
    with pytest.raises((EngineFailure, PublishError)):
        publish(session, target, SHAPE, STAGED, 1)


def test_a_table_made_meanwhile_by_another_connection_wins(session):
    staged(session)
    other = session.con.cursor()
    other.execute('CREATE TABLE "syn""thetic" AS SELECT 42 AS kept')
    with pytest.raises(PublishError, match="Nothing was written"):
        publish(session, table(), SHAPE, STAGED, 1)
    assert rows(session) == [(42,)]
    other.execute('DROP TABLE "syn""thetic"')
    other.execute("BEGIN")
    other.execute('CREATE TABLE "syn""thetic" AS SELECT 43 AS kept')
    with pytest.raises(PublishError):
        publish(session, table(), SHAPE, STAGED, 1)
    other.execute("COMMIT")
    assert rows(session) == [(43,)]


def test_a_view_is_never_replaced(session):
    staged(session)
    session.con.execute('CREATE VIEW "syn""thetic" AS SELECT 42 AS kept')
    for replace in (False, True):
        with pytest.raises(PublishError):
            publish(session, table(replace=replace), SHAPE, STAGED, 1)
    assert rows(session) == [(42,)]
