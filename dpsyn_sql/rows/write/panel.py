"""Rows of a panel: read back from its output, numbered by person, and written after those of earlier periods.

All of it is public. A person has a number, from 0 in the order of its first period; its id follows from the
number alone, so it stays the same, and the number is found again from the id.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.attributes.output import Kept, output_statement, units_of
from dpsyn_sql.attributes.roles import Constant, UnitId, capacity
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import InternalError, PublishError
from dpsyn_sql.fit.arrays import Codes, IntArray
from dpsyn_sql.rows.write.staging import load_table
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, ident, temporary_table, text_bytes
from dpsyn_sql.sqltext.render import render

_MOST = 10**9  # ids of so many persons, in text, have the same number of digits
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
        return self.unit.of(Fragment(number), _MOST, 0)

    @property
    def unit(self) -> UnitId:
        """The column of the persons' ids.

        Raises:
            InternalError: there is none.
        """
        ids = self.shape.roles_of(UnitId)
        if not ids:
            raise InternalError("the output of a panel has no column of persons")
        return ids[0]

    def rows(self, constant: Constant) -> Fragment:
        """The rows of a period, to put after FROM."""
        return Fragment(f"(SELECT * FROM {self.table} WHERE {ident(constant.name)} = {constant.sql})")

    @property
    def so_far(self) -> Fragment:
        """The rows of all periods up to this one, to put after FROM."""
        constant = self.constant
        return Fragment(f"(SELECT * FROM {self.table} WHERE {ident(constant.name)} <= {constant.sql})")

    @property
    def constant(self) -> Constant:
        """The column that tells the period, with its value in this one."""
        return next(role for role in self.shape.roles_of(Constant) if role.name == self.period)

    def _bytes(self, value: str) -> Fragment:
        return text_bytes(f"CAST({value} AS VARCHAR)")

    def persons(self, engine: Engine, coded: Fragment, attributes: int) -> Persons:
        """The persons of a period; ``coded`` is the query of its rows: parent, p0, p1, ...

        Raises:
            EngineFailure: the output is not what was written.
        """
        counted = render("write/panel_count", rows=self.so_far, id=self._bytes(ident(self.unit.name)))
        so_far = int(engine.fetch(counted, step=_READING)["persons"][0])
        names = [Fragment(f"p{position}") for position in range(attributes)]
        own = self._bytes(self.id("number"))
        query = render("write/panel_persons", coded=coded, codes=names, id=own, persons=so_far)
        fetched = engine.fetch(query, step=_READING)
        columns = [np.asarray(fetched[name]).astype(np.int64) for name in names]
        return Persons(fetched["number"].astype(np.int64), np.stack(columns, axis=1), so_far)

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
        columns, table = self._columns(shared), temporary_table("dpsyn_kept")
        if not columns:
            return None
        statement = render(
            "write/panel_kept",
            table=table,
            numbered=numbered,
            past=self.rows(past),
            own=self._bytes(self.id("n.person")),
            id=self._bytes(f"earlier.{ident(self.unit.name)}"),
            kept=_earlier(columns),
        )
        engine.execute(statement, step=_READING)
        names = list(_places(columns).values())
        return Kept(render("write/panel_looked", staged=staged, table=table, kept=names), _places(columns))

    def _columns(self, shared: Collection[str]) -> list[str]:
        """The columns that attributes are written to."""
        attributes = [attribute for attribute in self.shape.domain.attributes if attribute.name in shared]
        return [column.name for attribute in attributes for column in attribute.columns]


def _earlier(kept: list[str]) -> list[Fragment]:
    """Columns of the period before, under the names of ``_places``."""
    return [Fragment(f"earlier.{ident(name)} AS kept{position}") for position, name in enumerate(kept)]


def _places(kept: list[str]) -> dict[str, Fragment]:
    """The column of staged rows that holds what is kept of each column."""
    return {name: Fragment(f"kept{position}") for position, name in enumerate(kept)}


def number_rows(engine: Engine, table: Fragment, rows: IntArray, persons: IntArray) -> None:
    """Make the table of the persons (n,) of staged rows of these numbers (n,)."""
    load_table(engine, table, {"row": rows, "person": persons}, step=_WRITING)


def staged_numbers(engine: Engine, staged: Fragment) -> IntArray:
    """The numbers of staged rows, ascending."""
    fetched = engine.fetch(render("write/panel_rows", staged=staged), step=_WRITING)
    return np.asarray(fetched["row"].astype(np.int64))
