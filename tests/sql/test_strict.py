"""CSV text that must parse: the same rows, typed; a value that does not parse stops the statement."""

from dataclasses import replace
from decimal import Decimal

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.errors import EngineFailure
from dpsyn_sql.private.rows.relations import typed_relation
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment

COLUMNS = tuple(Column(name, "VARCHAR") for name in ("a", 'b"', "d", "left"))
SHAPE = Shape(
    (
        Attribute("a", "INTEGER", "numeric", edges=(0, 10)),
        Attribute('b"', "VARCHAR", "categorical", ("x",)),
        Undiscovered("d", "DATE", "temporal"),
    )
)


def test_text_is_read_as_its_type_or_the_statement_stops():
    sql = typed_relation(Relation("f", "csv", Fragment("texts"), COLUMNS), SHAPE).sql
    con = duckdb.connect()
    con.execute('CREATE TABLE texts (a VARCHAR, "b""" VARCHAR, d VARCHAR, "left" VARCHAR)')
    con.execute("INSERT INTO texts VALUES (' 7', 'x', '2020-01-01', 'z'), ('', NULL, ' ', 'z')")
    assert [row[0] for row in con.execute(f"FROM {sql}").fetchall()] == [7, None]
    con.execute("INSERT INTO texts VALUES ('secret', 'x', NULL, NULL)")
    with pytest.raises(duckdb.ConversionException):
        con.execute(f"FROM {sql}").fetchall()


def test_numbers_with_a_comma_are_read_or_the_statement_stops():
    relation = Relation("f", "csv", Fragment("texts"), (Column("a", "VARCHAR"),))
    shape = Shape((Attribute("a", "DECIMAL(9,2)", "numeric", edges=(0, 10)),))
    sql = typed_relation(replace(relation, decimal=","), shape).sql
    con = duckdb.connect()
    con.execute("CREATE TABLE texts AS SELECT unnest([' 7,5', '', '3', NULL]) AS a")
    assert [row[0] for row in con.execute(f"FROM {sql}").fetchall()] == [
        Decimal("7.5"),
        None,
        Decimal("3"),
        None,
    ]
    con.execute("INSERT INTO texts VALUES ('1.234')")
    with pytest.raises(duckdb.ConversionException):
        con.execute(f"FROM {sql}").fetchall()


DOMAIN = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}


@pytest.mark.filterwarnings("ignore")
def test_a_release_stops_without_naming_the_value(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n\n" + "5\n" * 200 + "secret7\n")
    options = {"domain": DOMAIN, "ledger": tmp_path / "l", "epsilon": 1}
    done = dpsyn_sql.release(None, path, into=tmp_path / "o.parquet", **options)
    assert done.rows > 100
    with pytest.raises(EngineFailure) as caught:
        dpsyn_sql.release(None, path, into=tmp_path / "p.parquet", csv={"on_error": "fail"}, **options)
    assert caught.value.kind == "ConversionException"
    assert "secret" not in str(caught.value) + caught.value.statement
    assert caught.value.__context__ is None
    path.write_text("n\n" + "5\n" * 200)
    with pytest.raises(dpsyn_sql.errors.ReleaseExists, match=r"name='p.parquet'"):
        dpsyn_sql.release(None, path, into=tmp_path / "q.parquet", csv={"on_error": "fail"}, **options)
    ok = dpsyn_sql.release(None, path, into=tmp_path / "p.parquet", csv={"on_error": "fail"}, **options)
    assert ok.rows > 100
