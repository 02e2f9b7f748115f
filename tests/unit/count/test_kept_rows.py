"""What keeping rows costs where each row is a unit: nothing. And which tables of a source can be kept."""

import re

import duckdb
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.code_slices import TableSlicing
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.rows.kept import Bound, KeptRows
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

A = Attribute("a", "BIGINT", "categorical", labels=(0, 1, 2))
B = Attribute("b", "BIGINT", "categorical", labels=(0, 1))
DOMAIN = Domain((A, B))
SOURCE = Fragment("source")
PAIR = MarginalQuery(("a", "b"))


class Watching(DuckDBEngine):
    """An engine that knows the statements that ran."""

    def __init__(self, con):
        super().__init__(con)
        self.ran = []

    def execute(self, sql, *, step):
        self.ran.append(sql)
        super().execute(sql, step=step)

    def fetch(self, sql, *, step):
        self.ran.append(sql)
        return super().fetch(sql, step=step)


@pytest.fixture
def engine():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE source AS SELECT i % 7 AS id, i % 3 AS a, i % 2 AS b FROM range(300) t(i)")
        yield Watching(con)


def test_single_rows_are_a_projection_without_key_hash_window_or_weight(engine):
    rows = KeptRows.of_table(engine, SOURCE, DOMAIN)
    encoding = rows.encoding("", DOMAIN, [(0, 1)])
    assert rows.single and encoding.unit is None and not engine.ran
    described = engine.fetch(f"DESCRIBE {encoding.query}", step="looking")
    assert described["column_name"].tolist() == ["p0"]
    plan = engine.fetch(f"EXPLAIN {encoding.query}", step="looking")["explain_value"][0]
    operators = set(re.findall(r"[A-Z]+(?:_[A-Z]+)+|PROJECTION|FILTER|WINDOW", plan))
    assert operators <= {"PROJECTION", "SEQ_SCAN"}
    assert not re.search(r"hash|row_number|OVER|PARTITION|MATERIALIZED", encoding.query)


def test_single_rows_are_counted_once_each_and_from_one_table_of_codes(engine):
    counter = SqlCounter(engine, SOURCE, DOMAIN, [PAIR])
    (table,) = counter.count([PAIR])
    counter.close()
    assert table.sum() == 300
    assert sum("TEMP TABLE" in sql for sql in engine.ran) == 1
    assert any("count(*)" in sql for sql in engine.ran) and not any("sum(w)" in sql for sql in engine.ran)


def test_one_way_tables_of_single_rows_come_straight_from_the_source(engine):
    queries = [MarginalQuery(("a",)), MarginalQuery(("b",))]
    counter = SqlCounter(engine, SOURCE, DOMAIN, queries)
    assert [table.sum() for table in counter.count(queries)] == [300, 300]
    assert counter.plan.strategy == "scan" and len(engine.ran) == 1 and "CREATE" not in engine.ran[0]


def test_single_rows_are_read_in_slices_and_those_of_units_are_not(engine):
    engine.read_in_parts(SOURCE, TableSlicing(engine, SOURCE))
    single = KeptRows.of_table(engine, SOURCE, DOMAIN).encoding("", DOMAIN, [(0,)])
    units = KeptRows.of_table(engine, SOURCE, DOMAIN, bound=Bound("id", 3, 5)).encoding("", DOMAIN, [(0,)])
    assert single.part is not None and single.part in single.query
    assert units.part is None and units.unit == "id"


def test_rows_of_units_count_one_each_and_with_families_their_weight(engine):
    bound = Bound("id", 3, 5)
    plain = KeptRows.of_table(engine, SOURCE, DOMAIN, bound=bound)
    families = families_of(DOMAIN, PrivacyUnit("id", 3, True), ())
    weighted = KeptRows.of_table(engine, SOURCE, families.domain, bound=bound, families=families)
    for rows, columns in ((plain, ["p0"]), (weighted, ["p0", "w"])):
        query = rows.encoding("", rows._domains[""], [(0,)]).query
        found = engine.fetch(query, step="reading")
        assert sorted(found) == columns and len(found["p0"]) == 21 and not rows.single
    assert set(found["w"].tolist()) == {2**20 // 3}


def test_single_rows_do_not_stay_together(engine):
    families = families_of(DOMAIN, PrivacyUnit("id", 3, True), ())
    with pytest.raises(InternalError, match="those of a unit"):
        KeptRows.of_table(engine, SOURCE, families.domain, families=families)
