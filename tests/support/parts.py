"""An engine whose source really lies in parts: each statement about rows runs part by part, in a DuckDB of one
thread, and the counts are added up in plain Python. What the database beside it holds of the source is empty.
"""

from collections import Counter

import duckdb
import numpy as np

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.private.rows.codes import unit_bytes
from dpsyn_sql.sqltext.fragments import Fragment

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_PART = Fragment('"temp"."main"."rows of a part"')


class PartedEngine(DuckDBEngine):
    """``SourceEngine`` over the rows of a table in parts.

    Args:
        store: a DuckDB connection; sees the table ``relation``.
        relation: the text after FROM, unique in statements.
        parts: their number; without a unit rows are dealt in turn, so that each unit is torn.
        unit: the unit column of the release; a statement that uses it must say so, and only such a one.
        settings: a statement that sessions begin with.
        driver: the connection beside the parts; without one, a new one in which the table is empty.
    """

    def __init__(self, store, relation, parts, unit=None, settings="", driver=None):
        if driver is None:
            driver = duckdb.connect()
            columns = store.execute(f"DESCRIBE FROM {relation}").fetchall()
            listed = ", ".join(f'"{name}" {kind}' for name, kind, *_ in columns)
            driver.execute(f"{settings}; CREATE TABLE {relation} ({listed})")
        super().__init__(driver)
        self._store, self._rows, self._parts, self._of_unit = store, relation, parts, unit
        self._settings, self._stored = settings, {}
        self.passes = 0
        """How often the rows of the source were read."""
        self.kept = []
        """What was kept, in order."""

    @property
    def in_parts(self):
        return True

    def sums(self, tallies, *, step, over=None, unit=None):
        for kinds, rows in self._added(list(tallies), over, unit):
            columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
            yield {name: _array(values) for name, values in zip(kinds, columns, strict=True)}

    def part_of(self, relation, unit):
        return relation

    def parts(self, over):
        return 1

    def part_sums(self, tallies, *, over, step, keep=False):
        if keep:
            self.keep(over, step=step)
        yield from enumerate(self.sums(tallies, step=step, over=over))

    def gather(self, table, tally, *, step, unit=None):
        ((kinds, rows),) = self._added([tally], None, unit)
        kinds = {name: kind if kind == "BLOB" else "BIGINT" for name, kind in kinds.items()}
        columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        self._connection.execute(f"CREATE TEMP TABLE {table} ({columns})")
        unnested = ", ".join(f"unnest(?::{kind}[])" for kind in kinds.values())
        if rows:
            lists = [list(values) for values in zip(*rows, strict=True)]
            self._connection.execute(f"INSERT INTO {table} SELECT {unnested}", lists)

    def _added(self, tallies, over, unit):
        """By tally: types of the columns by name, and rows of keys and sums."""
        assert over is None or unit is None
        kinds, found = [{} for _ in tallies], [Counter() for _ in tallies]
        for part in self._dealt(unit) if over is None else self._made(over):
            for place, tally in enumerate(tallies):
                kinds[place], rows = self._counted(part, tally, unit, of_source=over is None)
                for *keys, n in rows:
                    found[place][tuple(keys)] += n
        return [
            (kind, [(*keys, n) for keys, n in added.items() if n >= tally.least])
            for tally, kind, added in zip(tallies, kinds, found, strict=True)
        ]

    def keep(self, encoding, *, step):
        name = f'"kept {len(self.kept)}"'
        for place, part in enumerate(self._made(encoding)):
            start = f"CREATE TABLE {name} AS" if place == 0 else f"INSERT INTO {name}"
            part.execute(f"{start} FROM {encoding.table}")
        self._stored[encoding.table] = name
        self.kept.append(encoding)

    def drop(self, table, *, step):
        if table in self._stored:
            self._store.execute(f"DROP TABLE {self._stored.pop(table)}")
        else:
            super().drop(table, step=step)

    @property
    def holds(self):
        """How many tables of codes are there."""
        return len(self._stored)

    def _dealt(self, unit):
        """A session per part of the source."""
        self.passes += 1
        place = "row_number() OVER ()" if unit is None else f"hash({unit_bytes(unit)}, 5)"
        yield from self._split(self._rows, _PART, place)

    def _split(self, rows, name, place):
        for number in range(self._parts):
            with self._store.cursor() as part:
                part.execute(f"{self._settings}; SET threads = 1")
                part.execute(
                    f"CREATE TEMP TABLE {name} AS SELECT * EXCLUDE (place) FROM "
                    f"(SELECT *, coalesce({place}, 0) AS place FROM {rows}) WHERE place % {self._parts} = {number}"
                )
                yield part

    def _made(self, encoding):
        """A session per part of the codes: of those that are kept, or made in passing."""
        if encoding.table in self._stored:
            yield from self._split(self._stored[encoding.table], encoding.table, "row_number() OVER ()")
            return
        of_source = encoding.of is None
        for part in self._dealt(encoding.unit) if of_source else self._made(encoding.of):
            query = self._told(encoding.query, encoding.unit) if of_source else encoding.query
            part.execute(f"CREATE TEMP TABLE {encoding.table} AS {query}")
            names = [(name, kind) for name, kind, *_ in part.execute(f"DESCRIBE {encoding.table}").fetchall()]
            assert {kind for _, kind in names} <= set(INTEGERS)
            missing = " OR ".join(f"{name} IS NULL" for name, _ in names)
            assert part.execute(f"SELECT count(*) FROM {encoding.table} WHERE {missing}").fetchone() == (0,)
            yield part

    def _counted(self, part, tally, unit, *, of_source):
        query = self._told(tally.query, unit) if of_source else tally.query
        part.execute(query)
        kinds = {name: str(kind) for name, kind, *_ in part.description}
        assert list(kinds) == [*tally.keys, "n"]
        assert kinds["n"] == "BIGINT"
        assert {kinds[key] for key in tally.keys} <= {*INTEGERS, "BLOB"}
        rows = part.fetchall()
        assert len({row[:-1] for row in rows}) == len(rows)
        return kinds, rows

    def _told(self, query, unit):
        """A statement about the source, about the rows of a part."""
        bounded = self._of_unit is not None and unit_bytes(self._of_unit) in query
        assert unit == (self._of_unit if bounded else None)
        assert self._rows in query
        return query.replace(self._rows, _PART)


def _array(values):
    """As a database hands out a column: NULL masks a value, bytes are objects."""
    missing = [value is None for value in values]
    if any(isinstance(value, bytes) for value in values):
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found
    whole = np.array([0 if value is None else value for value in values], dtype=np.int64)
    return np.ma.masked_array(whole, missing) if any(missing) else whole
