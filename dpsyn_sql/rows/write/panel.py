"""Rows of a panel: read back from its output, numbered by person, and written after those of earlier periods.

All of it is public. A person has a number, from 0 in the order of its first period; its id follows from the
number alone, so it stays the same, and the number is found again from the id.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import uuid4

import numpy as np

from dpsyn_sql.domain.shape import Constant, Shape, UnitId
from dpsyn_sql.errors import EngineFailure, InternalError, PublishError
from dpsyn_sql.fit.arrays import Codes, IntArray
from dpsyn_sql.rows.decode.output import (
    Kept,
    capacity,
    constant_expression,
    output_statement,
    surrogate,
    units_of,
)
from dpsyn_sql.rows.write.outputs import CONFLICTS, committed, crossed, holds
from dpsyn_sql.rows.write.persist import StoredRelease, persist
from dpsyn_sql.rows.write.publish import Destination
from dpsyn_sql.rows.write.words import comment_statements
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment, ident, qualified
from dpsyn_sql.sqltext.render import render

_MOST = 10**9  # ids of so many persons, in text, have the same number of digits
_SAYING = "commenting the synthetic table"
_READING, _WRITING = "reading the rows of earlier periods", "writing the rows of a period"


@dataclass(frozen=True, slots=True)
class Persons:
    """Synthetic persons of a period, by number: ``numbers`` int64 (n,) ascending, ``codes`` (n, attributes).
    ``so_far``: how many persons all periods have had."""

    numbers: IntArray
    codes: Codes
    so_far: int


@dataclass(frozen=True, slots=True)
class PanelOutput:
    """The output of a panel: ``table`` is its qualified name, ``shape`` that of a period (its column that
    tells the period is the constant ``period``)."""

    table: Fragment
    shape: Shape
    period: str

    def id(self, number: str) -> Fragment:
        """The id of the person of a number."""
        return surrogate(self.unit.type, Fragment(number), _MOST, f"unit|{self.unit.name}", 0)

    @property
    def unit(self) -> UnitId:
        """The column of the persons' ids.

        Raises:
            InternalError: there is none.
        """
        found = next((role for role in self.shape.roles if isinstance(role, UnitId)), None)
        if found is None:
            raise InternalError("the output of a panel has no column of persons")
        return found

    def rows(self, constant: Constant) -> Fragment:
        """The rows of a period, to put after FROM."""
        value = constant_expression(constant)
        return Fragment(f"(SELECT * FROM {self.table} WHERE {ident(constant.name)} = {value})")

    @property
    def so_far(self) -> Fragment:
        """The rows of all periods up to this one, to put after FROM."""
        own = self.constant
        value = constant_expression(own)
        return Fragment(f"(SELECT * FROM {self.table} WHERE {ident(own.name)} <= {value})")

    @property
    def constant(self) -> Constant:
        """The column that tells the period, with its value in this one."""
        return next(
            role for role in self.shape.roles if isinstance(role, Constant) and role.name == self.period
        )

    def _bytes(self, value: str) -> Fragment:
        return DUCKDB.text_bytes(f"CAST({value} AS VARCHAR)")

    def persons(self, engine: Engine, coded: Fragment, attributes: int) -> Persons:
        """The persons of a period; ``coded`` is the query of its rows: parent, p0, p1, ...

        Raises:
            EngineFailure: the output is not what was written.
        """
        counted = render("write/panel_count", rows=self.so_far, id=self._bytes(ident(self.unit.name)))
        so_far = int(engine.fetch(counted, step=_READING)["persons"][0])
        names = [Fragment(f"p{place}") for place in range(attributes)]
        own = self._bytes(self.id("number"))
        query = render("write/panel_persons", coded=coded, codes=names, id=own, persons=so_far)
        found = engine.fetch(query, step=_READING)
        columns = [np.asarray(found[name]).astype(np.int64) for name in names]
        return Persons(found["number"].astype(np.int64), np.stack(columns, axis=1), so_far)

    def check_room(self, persons: int) -> None:
        """Refuse a type that cannot hold as many ids.

        Raises:
            PublishError: it cannot.
        """
        most = capacity(self.unit.type)
        if most is not None and persons > most:
            raise PublishError(
                f"Column {self.unit.name!r} needs ids for {persons} persons, but its type has only {most} "
                "values. Nothing was written."
            )

    def query(
        self,
        staged: Fragment,
        numbered: Fragment,
        rows: int,
        seed: int,
        past: Constant | None,
        shared: Collection[str],
    ) -> Fragment:
        """The rows of a period as values; ``numbered`` is the table of the persons of staged rows.

        Persons of the period before, ``past``, keep their values of the attributes that are ``shared``.
        """
        kept = [] if past is None else self._columns(shared)
        joined = render(
            "write/panel_joined",
            staged=staged,
            numbered=numbered,
            past=None if past is None or not kept else self.rows(past),
            own=self._bytes(self.id("n.person")),
            id=self._bytes(f"earlier.{ident(self.unit.name)}"),
            kept=_earlier(kept),
        )
        found = _places(kept)
        return output_statement(
            self.shape, joined, rows, units_of(None, rows), seed, ids=self.id("person"), kept=found
        )

    def kept(
        self, engine: Engine, staged: Fragment, numbered: Fragment, past: Constant, shared: Collection[str]
    ) -> Kept | None:
        """What persons of the period before, ``past``, keep in the staged rows that ``numbered`` names, as of
        ``query``; None if they keep nothing. Staged rows keep their numbers as long as it is used."""
        columns, table = self._columns(shared), qualified("temp", "main", f"dpsyn_kept_{uuid4().hex}")
        if not columns:
            return None
        made = render(
            "write/panel_kept",
            table=table,
            numbered=numbered,
            past=self.rows(past),
            own=self._bytes(self.id("n.person")),
            id=self._bytes(f"earlier.{ident(self.unit.name)}"),
            kept=_earlier(columns),
        )
        engine.execute(made, step=_READING)
        names = list(_places(columns).values())
        return Kept(render("write/panel_looked", staged=staged, table=table, kept=names), _places(columns))

    def _columns(self, shared: Collection[str]) -> list[str]:
        """The columns that attributes are written to."""
        own = [one for one in self.shape.domain.attributes if one.name in shared]
        return [column.name for one in own for column in one.columns]


def _earlier(kept: list[str]) -> list[Fragment]:
    """Columns of the period before, under the names of ``_places``."""
    return [Fragment(f"earlier.{ident(name)} AS kept{place}") for place, name in enumerate(kept)]


def _places(kept: list[str]) -> dict[str, Fragment]:
    """The column of staged rows that holds what is kept of each column."""
    return {name: Fragment(f"kept{place}") for place, name in enumerate(kept)}


def digest(engine: Engine, rows: Fragment) -> tuple[int, str]:
    """How many rows there are, and what they are in short; ``rows`` stands after FROM."""
    found = engine.fetch(render("write/panel_digest", rows=rows), step=_READING)
    return int(found["rows"][0]), str(found["digest"][0])


def number_rows(engine: Engine, table: Fragment, rows: IntArray, persons: IntArray) -> None:
    """Make the table of the persons (n,) of staged rows of these numbers (n,)."""
    engine.execute(render("write/panel_numbers", table=table), step=_WRITING)
    engine.load(table, {"row": rows, "person": persons}, step=_WRITING)


def staged_numbers(engine: Engine, staged: Fragment) -> IntArray:
    """The numbers of staged rows, ascending."""
    found = engine.fetch(render("write/panel_rows", staged=staged), step=_WRITING)
    return np.asarray(found["row"].astype(np.int64))


def append_period(
    engine: Engine,
    target: Destination,
    output: PanelOutput,
    query: Fragment,
    kept: StoredRelease,
    *,
    exists: bool,
) -> None:
    """Write the rows of a period after those of earlier ones, in one transaction with the stored model.

    Rows that are there stay as they are.

    Raises:
        PublishError: rows of the period are there, and are others; or the table cannot be written.
        EngineFailure: the database failed otherwise.
    """
    if target.database is None:
        raise InternalError("the output of a panel is no table")
    there, database = output.rows(output.constant), target.database

    def write() -> None:
        if not exists:
            create = render("write/create_table", target=output.table, replace=0, query=query)
            engine.execute(create, step=_WRITING)
            _describe(engine, output, kept)
        elif digest(engine, there)[0] == 0:
            insert = render("write/insert", table=output.table, query=query)
            engine.execute(insert, step=_WRITING)
            _say(engine, output, kept)
        elif not holds(engine, there, query):
            raise PublishError(
                f"The rows of this period in {output.table} differ from what this call writes: they were "
                "changed, or made by another version of the package or on another machine. Nothing was "
                "changed."
            )
        persist(engine, database, kept)

    failure = committed(engine, write)
    if failure is None:
        return
    if failure.kind in CONFLICTS:
        raise PublishError(crossed(f"The table {output.table} cannot be written"))
    if failure.kind == "CatalogException":
        raise PublishError(
            f"The table {output.table} cannot be written: it was made, changed or removed meanwhile. Nothing "
            "was written."
        )
    raise EngineFailure(failure.step, failure.kind, failure.statement)


def _describe(engine: Engine, output: PanelOutput, kept: StoredRelease) -> None:
    for name in output.shape.not_null:
        constraint = render("write/not_null", table=output.table, column=ident(name))
        engine.execute(constraint, step=_WRITING)
    for comment in comment_statements(output.table, output.shape, kept):
        engine.execute(comment, step=_SAYING)


def _say(engine: Engine, output: PanelOutput, kept: StoredRelease) -> None:
    """The comment of the table is that of its latest period."""
    engine.execute(next(comment_statements(output.table, output.shape, kept)), step=_SAYING)
