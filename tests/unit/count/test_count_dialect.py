"""A second engine is one dialect and one engine class: all that counts asks the engine's dialect."""

from dataclasses import replace

import numpy as np
import pytest

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.domain.hierarchies.base import HierarchyColumn, Leaves
from dpsyn_sql.domain.hierarchies.points import Points
from dpsyn_sql.engines.counting_engine import CountingEngine
from dpsyn_sql.planning.plan import LaterMarginals
from dpsyn_sql.planning.queries import (
    ContributionQuery,
    GridQuery,
    KeyQuery,
    MarginalQuery,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.private.count.counter import SqlCounter
from dpsyn_sql.private.count.discovery import SqlDiscoveryCounter
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment

ELSEWHERE = replace(
    DUCKDB,
    name="elsewhere",
    code_types=(("CODE", 64),),
    create_temporary=Fragment("CREATE SCRATCH"),
    temporary_schema=("scratch",),
    of_labels=lambda pairs, text: Fragment(f"LABEL_OF({text})"),
    of_places=lambda values, place: Fragment(f"PLACE_OF({place})"),
    last_start=lambda starts, name, key: Fragment(f"LAST_START {name}"),
    text_bytes=lambda text: Fragment(f"BYTES({text})"),
    text_of_bytes=lambda content: Fragment(f"TEXT({content})"),
    guarded_cast=lambda text, kind: Fragment(f"GUARDED({text}, {kind})"),
    matches=lambda text, pattern: Fragment(f"FITS({text}, '{pattern}')"),
    epoch=lambda moment, nanoseconds: Fragment(f"SINCE({moment})"),
    lot=lambda drawn, unit, key: Fragment(f"LOT({', '.join(drawn)}, {unit}, {key})"),
)
OURS = (
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "CREATE TEMP",
    '"temp"',
    "MAP {",
    "([",
    "encode(",
    "decode(",
)
OURS += ("TRY_CAST", "epoch_", "hash(", "xor(", "ASOF")


def numbers(name, size):
    """An attribute of leaves, each a code."""
    depth = (size - 1).bit_length()
    points = Points(name, (HierarchyColumn(name, "INTEGER"),), (0,), (size - 1,), depth)
    leaves = Leaves((points,), ((depth,) * size,), (tuple(range(size)),), (1.0,) * size, tuple(range(size)))
    labels = tuple(map(str, range(size)))
    return Attribute(name, "VARCHAR", "categorical", labels, other=True, leaves=leaves)


DOMAIN = Domain(
    (
        Attribute("t", "VARCHAR", "categorical", ("x", "y"), other=True),
        Attribute("many", "VARCHAR", "categorical", tuple(map(str, range(300))), other=True),
        Attribute("n", "INTEGER", "categorical", (1, 2, 5, 9), other=True),
        Attribute("b", "INTEGER", "numeric", edges=(0, 1, 3, 7, 8, 20)),
    )
)
LEAVES = Domain((numbers("few", 8), numbers("lots", 512)))


class Elsewhere(CountingEngine):
    """Runs nothing: a result has no row."""

    dialect = ELSEWHERE
    in_parts = False
    memory = 2**32

    def __init__(self):
        super().__init__()
        self.ran = []

    def execute(self, sql, *, step):
        self.ran.append("\n".join(line for line in sql.splitlines() if not line.startswith("--")))

    def fetch(self, sql, *, step):
        self.execute(sql, step=step)
        if "max(rowid)" in sql:
            return {name: np.array([place]) for name, place in (("n", 0), ("first", 0), ("last", -1))}
        names = ("thing", "n", "attribute", "code", "p0", "p1", "p2", "p3")
        return dict.fromkeys(names, np.zeros(0, dtype=np.int64))


@pytest.fixture
def engine():
    return Elsewhere()


def spelled(engine, *pieces):
    text = "\n".join(engine.ran)
    assert [piece for piece in OURS if piece in text] == []
    assert [piece for piece in pieces if piece not in text] == []


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("id", 2)], ids=["row", "unit"])
def test_marginals(engine, unit):
    pair, further = MarginalQuery(("t", "many", "n", "b")), MarginalQuery(("t", "b"))
    counter = SqlCounter(
        engine, Fragment("src"), DOMAIN, [pair], csv=True, unit=unit, further=LaterMarginals(2, 1000, 1000)
    )
    counter.count([pair])
    counter.count([further])
    counter.close()
    spelled(engine, "CODE", "CREATE SCRATCH", '"scratch"', "LABEL_OF", "PLACE_OF", "BYTES", "GUARDED")
    if unit.column:
        spelled(engine, "LOT(p0")


def test_leaves(engine):
    pair = MarginalQuery(("few", "lots"))
    SqlCounter(engine, Fragment("src"), LEAVES, [pair], csv=True).count([pair])
    spelled(engine, "LAST_START l1", "GUARDED")
    assert "LAST_START l0" not in engine.ran[0]
    query = MarginalQuery(("few",))
    SqlCounter(engine, Fragment("src"), LEAVES, [query], csv=True).count([query])
    spelled(engine, "GUARDED")


def test_one_way_scans(engine):
    queries = [MarginalQuery((name,)) for name in DOMAIN.names]
    SqlCounter(engine, Fragment("src"), DOMAIN, queries, csv=True).count(queries)
    spelled(engine, "CODE", "LABEL_OF", "PLACE_OF", "GUARDED")


def test_discovery(engine):
    counter = SqlDiscoveryCounter(engine, Fragment("src"), csv=True, unit=PrivacyUnit("id", 2))
    list(counter.keys(KeyQuery("t", "VARCHAR")))
    list(counter.keys(KeyQuery("n", "INTEGER")))
    counter.cells(GridQuery(DOMAIN["b"]))
    counter.types(TypesQuery("t"))
    for kind in ("TIMESTAMP", "TIMESTAMP_NS"):
        counter.steps(StepQuery("m", kind, (60,)))
    counter.contributions(ContributionQuery(2))
    spelled(
        engine, "CREATE SCRATCH", '"scratch"', "BYTES", "GUARDED", "SINCE", "LOT(thing", "PLACE_OF", "FITS"
    )
