"""PRIVATE: exact numbers of units for private discovery: keys, codes of grids, steps, rows.

A unit counts once for each of at most k things, which a hash draws among its own. Rows without a unit
do not count. What a row adds is a total function of its own value: no value raises an error here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.text_types import CLASSES
from dpsyn_sql.domain.types import SqlType, supported_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.discovery import Ask, counted_per_unit
from dpsyn_sql.planning.queries import ContributionQuery, Exact, GridQuery, KeyQuery, StepQuery, TypesQuery
from dpsyn_sql.private.count.exact import (
    beginning_expression,
    key_expression,
    key_text,
    key_value,
    step_expression,
    text_class_expression,
    text_of_key,
)
from dpsyn_sql.private.count.marginalise import scatter, whole
from dpsyn_sql.private.count.trees import TreeCounter, read_as
from dpsyn_sql.private.encode.codes import encode_expression, unit_bytes
from dpsyn_sql.source.parts import Tally
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render

PART = 100_000
"""Keys read at a time."""

_VALUE = Fragment("c")
_THING = Fragment("thing")
_KEYS = ("thing",)


class SqlDiscoveryCounter(TreeCounter):
    """Counts units by GROUP BY where the rows lie (implements ``DiscoveryCounter``); arguments as
    ``TreeCounter``."""

    def __repr__(self) -> str:
        return "SqlDiscoveryCounter()"

    def keys(self, query: KeyQuery, least: int = 1) -> Iterator[tuple[list[Exact], NDArray[np.int64]]]:
        """Distinct values, or beginnings, with the distinct units that have each, in parts. PRIVATE.

        Ascending, text by its bytes; only values that at least ``least`` units have.

        Raises:
            InternalError: values of the type cannot be keys.
            EngineFailure: a statement failed.
        """
        kind = query.type
        key = (
            key_expression(kind, query.longest, _VALUE, self._dialect)
            if query.beginning is None
            else beginning_expression(query.beginning, _VALUE, self._dialect)
        )
        carried = _Carried.of(kind, self._dialect, in_parts=self._engine.in_parts)
        tally = self._counted("keys", query.value, kind, key, least, carried.spelled)
        gathered, table = (self._dialect.temporary("dpsyn_keys") for _ in range(2))
        try:
            self._engine.gather(gathered, tally, step="counting units per key", unit=self._unit)
            sql = render(
                "discover/keys", dialect=self._dialect, table=table, gathered=gathered, order=carried.order
            )
            self._engine.execute(sql, step="numbering keys")
            self._engine.drop(gathered, step="dropping the table of keys")
            start, full, text = 0, True, carried.text
            while full:
                sql = render("discover/part", table=table, text=text, start=start, stop=start + PART)
                found = self._engine.fetch(sql, step="reading keys")
                texts = [text_of_key(bytes(text)) for text in found["thing"]]
                held = [place for place, text in enumerate(texts) if text is not None]
                keys = [key_value(kind, text) for text in texts if text is not None]
                yield keys, whole(found["n"])[held]
                start, full = start + PART, len(texts) == PART
        finally:
            for made in (gathered, table):
                self._engine.drop(made, step="dropping the table of keys")

    def cells(self, query: GridQuery) -> NDArray[np.int64]:
        """Distinct units per code of the grid, int64[grid.size]. PRIVATE.

        Codes that are counted together become one before units are made distinct: a unit of several rows
        adds 1 to their count, not 1 for each.
        """
        grid = query.grid
        code: str = encode_expression(grid, _VALUE, dialect=self._dialect)
        if query.owners:
            owners = [*query.owners, *range(len(query.owners), grid.size)]
            code = self._dialect.of_places(owners, code)
        code = Fragment(f"CAST({code} AS BIGINT)")
        tally = self._counted("grid", grid.value, grid.type, code)
        return self._summed(tally, grid.size, step="counting units per cell of a grid")

    def types(self, query: TypesQuery) -> NDArray[np.int64]:
        """Distinct units per class of text, int64[len(CLASSES)]. PRIVATE."""
        trimmed = self._dialect.number_text(f"trim({ident(query.attr)})")
        code = Fragment(f"CAST({text_class_expression(_VALUE, self._dialect)} AS BIGINT)")
        tally = self._counted("types", trimmed, supported_type("VARCHAR", query.attr), code)
        return self._summed(tally, len(CLASSES), step="counting units per type of text")

    def steps(self, query: StepQuery) -> NDArray[np.int64]:
        """Distinct units by the last step that fits, int64[len(query.steps) + 1]. PRIVATE.

        Raises:
            InternalError: a step that does not fit the type.
            EngineFailure: the statement failed.
        """
        kind = query.type
        step = step_expression(kind, query.steps, _VALUE, self._dialect)
        tally = self._counted("steps", query.value, kind, step)
        return self._summed(tally, len(query.steps) + 1, step="counting units per step of their values")

    def contributions(self, query: ContributionQuery) -> NDArray[np.int64]:
        """Units by number of rows after the bound, int64[query.most]. PRIVATE.

        Raises:
            InternalError: rows are their own units, or the question has another bound.
        """
        if self._bound is None or self._bound.max_rows != query.most:
            raise InternalError("rows of units are counted up to the bound of a unit column")
        text = render(
            "discover/contributions",
            relation=self._relation,
            unit=unit_bytes(self._bound.column, self._dialect),
            most=query.most,
        )
        return self._summed(Tally(text, _KEYS), query.most, step="counting units by their rows")

    def _summed(self, tally: Tally, size: int, *, step: str) -> NDArray[np.int64]:
        """The sums of things 0 to size - 1, int64[size]."""
        (found,) = self._engine.sums([tally], step=step, unit=self._unit)
        return scatter([found["thing"]], found["n"], (size,))

    def _counted(
        self,
        ask: Ask,
        column: Fragment,
        kind: SqlType,
        thing: Fragment,
        least: int = 1,
        spelled: Fragment = _THING,
    ) -> Tally:
        bound = self._bound
        query = render(
            "discover/units",
            dialect=self._dialect,
            relation=self._relation,
            value=read_as(kind, column, self._dialect, csv=self._csv),
            thing=thing,
            spelled=spelled,
            unit=None if bound is None else unit_bytes(bound.column, self._dialect),
            bound=None if bound is None else replace(bound, max_rows=counted_per_unit(ask, bound.max_rows)),
        )
        return Tally(query, _KEYS, least)


@dataclass(frozen=True, slots=True)
class _Carried:
    """How keys of a type come from the rows, as expressions of ``thing``: ``spelled``, what a tally has as
    its key; and of that, ``order``, what keys ascend by, and ``text``, the bytes of their one text."""

    spelled: Fragment
    order: Fragment
    text: Fragment

    @classmethod
    def of(cls, kind: SqlType, dialect: Dialect, *, in_parts: bool) -> Self:
        """As they are; between parts only integers and bytes, so that other numbers are their text there."""
        text = key_text(kind, _THING, dialect)
        wide = kind.family == "integer" and not -(2**63) <= kind.low <= kind.high < 2**63
        if not in_parts or not (wide or kind.family in ("boolean", "decimal", "float")):
            return cls(_THING, _THING, text)
        value = Fragment(f"CAST({dialect.text_of_bytes(_THING)} AS {kind.sql})")
        return cls(text, value, _THING)
