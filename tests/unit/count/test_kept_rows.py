"""What keeping rows costs where each row is a unit: nothing. And which tables of a source can be kept."""

import duckdb
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.engines.code_slices import TableSlicing
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.private.rows.kept import Bound, KeptRows
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.fragments import Fragment

A = Attribute("a", "BIGINT", "categorical", labels=(0, 1, 2))
B = Attribute("b", "BIGINT", "categorical", labels=(0, 1))
DOMAIN = Domain((A, B))
SOURCE = Fragment("source")


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


def test_single_rows_are_read_in_slices_and_those_of_units_are_not(engine):
    engine.read_in_parts(SOURCE, TableSlicing(engine, SOURCE))
    single = KeptRows.of_table(engine, SOURCE, DOMAIN).encoding("", DOMAIN, [(0,)])
    units = KeptRows.of_table(engine, SOURCE, DOMAIN, bound=Bound("id", 3, 5)).encoding("", DOMAIN, [(0,)])
    assert single.part is not None and single.part in single.query
    assert units.part is None and units.unit == "id"


def test_single_rows_do_not_stay_together(engine):
    families = families_of(DOMAIN, PrivacyUnit("id", 3, True), ())
    with pytest.raises(InternalError, match="those of a unit"):
        KeptRows.of_table(engine, SOURCE, families.domain, families=families)
