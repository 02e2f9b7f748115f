"""PRIVATE: counts of units for discovery, and the exact values that they are of.

PRIVATE side: the exact values of a column as SQL: as keys, which steps they are multiples of, and the
class of a text (``attributes/types.py``).

Total functions of one value: comparisons come before arithmetic, so that nothing overflows or raises.

PRIVATE: exact numbers of units for private discovery: keys, codes of grids, steps, rows.

A unit counts once for each of at most k things, which a hash draws among its own. Rows without a unit
do not count. What a row adds is a total function of its own value: no value raises an error here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Granularity
from dpsyn_sql.attributes.types import (
    BOOLEAN,
    CLASSES,
    CODE,
    DATE,
    DECIMALS,
    EMPTY,
    INTEGER,
    LONG,
    LONGEST,
    MARKS,
    MISSING,
    MOST_DIGITS,
    NUMBER,
    TEXT,
    TIME,
    TIMESTAMP,
    WHOLE,
    ZONED,
    SqlType,
    decimal_type,
    moment_tick,
    read_as,
    supported_type,
    tick_literal,
)
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.asking import Ask, counted_per_unit
from dpsyn_sql.planning.queries import (
    Beginning,
    ContributionQuery,
    Exact,
    GridQuery,
    KeyQuery,
    StepQuery,
    TypesQuery,
)
from dpsyn_sql.private.count.sums import scatter, whole
from dpsyn_sql.private.count.trees import TreeCounter
from dpsyn_sql.private.rows.codes import unit_bytes
from dpsyn_sql.source.engine import Tally
from dpsyn_sql.sqltext.fragments import (
    Fragment,
    fits_pattern,
    guarded_cast,
    ident,
    number_text,
    temporary_table,
    text_bytes,
    text_of_bytes,
    value_at,
)
from dpsyn_sql.sqltext.render import render

# -- values of a column --------------------------------------------------------------------------------


_WHOLE = "-?(0|[1-9][0-9]*)"
_FRACTION = r"-?(0|[1-9][0-9]*)?\.[0-9]+"
_POWER = r"-?(0|[1-9][0-9]*)?(\.[0-9]*)?[eE][-+]?[0-9]+"
_DAY = "(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2})"
_MOMENT = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(?:[.][0-9]{1,9})?)?"
_ZONE = " ?(Z|[-+][0-9]{2}(:?[0-9]{2})?)"


def key_expression(kind: SqlType, longest: int, column: Fragment) -> Fragment:
    """A key that two values share only if they are the same: bytes of a text, so that no collation can merge
    two of them, otherwise a number; NULL for values that are no keys.

    Raises:
        InternalError: values of the type cannot be keys.
    """
    if kind.family in ("text", "enum"):
        text = Fragment(f"CAST({column} AS VARCHAR)") if kind.family == "enum" else column
        # Bytes first: long text is never read.
        short = f"strlen({text}) <= {4 * longest} AND length({text}) <= {longest}"
        return Fragment(f"CASE WHEN {short} AND NOT contains({text}, chr(0)) THEN {text_bytes(text)} END")
    if kind.family == "boolean" or kind.family in ("integer", "decimal"):
        return column
    if kind.family == "float":  # 0.0 and -0.0 are one value
        return Fragment(
            f"CASE WHEN isfinite({column}) THEN CASE WHEN {column} = 0 THEN 0 ELSE {column} END END"
        )
    if kind.temporal:
        return _moment(kind, column)
    raise InternalError(f"values of type {kind.family} cannot be keys")


def beginning_expression(beginning: Beginning, column: Fragment) -> Fragment:
    """The bytes of the first characters of a text; NULL for text that is shorter or has a known label.

    Raises:
        InternalError: all other values have no code of their own.
    """
    known, length = beginning.known, beginning.length
    if known.other_code is None:
        raise InternalError("beginnings are those of text that no label covers")
    first = Fragment(f"substr({column}, 1, {length})")
    code = known.code(column).code
    key = key_expression(known.type, length, first)
    return Fragment(f"CASE WHEN length({first}) = {length} AND {code} = {known.other_code} THEN {key} END")


def key_text(kind: SqlType, key: Fragment) -> Fragment:
    """The bytes of the one text of a key."""
    if kind.family in ("text", "enum"):
        return key
    return text_bytes(f"CAST({key} AS VARCHAR)")


def text_of_key(content: bytes) -> str | None:
    """The text of such bytes; None if they are no UTF-8, which Arrow data can hold: no key either.

    An error of the codec would hold the bytes.
    """
    text = content.decode("utf-8", "replace")
    return text if text.encode() == content else None


def key_value(kind: SqlType, text: str) -> Exact:
    """The key of such a text."""
    if kind.family in ("text", "enum"):
        return text
    if kind.family == "boolean":
        return text == "true"
    if kind.family == "float":
        return _double(kind, text)
    return int(text.replace(".", ""))  # a DECIMAL's text has all digits of its scale


def _double(kind: SqlType, text: str) -> float:
    return float(np.float32(text)) if kind.text == "FLOAT" else float(text)


def _moment(kind: SqlType, column: Fragment) -> Fragment:
    """The tick of a date or time that Python has; NULL for others, and for infinity."""
    low, high = tick_literal(kind, kind.low), tick_literal(kind, kind.high)
    return Fragment(
        f"CASE WHEN {column} >= {low} AND {column} <= {high} THEN {moment_tick(kind, column)} END"
    )


def step_expression(kind: SqlType, steps: tuple[Granularity, ...], column: Fragment) -> Fragment:
    """How many of the steps, from the first, a value is a multiple of, as BIGINT; NULL for numbers that are
    zero, and for what is no value.

    Raises:
        InternalError: a step that does not fit the type.
    """
    tests = [f"WHEN {_divides(kind, step, column)} THEN {place}" for place, step in enumerate(steps, start=1)]
    fits = f"CASE {' '.join(reversed(tests))} ELSE 0 END" if tests else "0"
    if kind.temporal:
        counts = f"{column} >= {tick_literal(kind, kind.low)} AND {column} <= {tick_literal(kind, kind.high)}"
    else:
        counts = f"{column} <> 0" + (f" AND isfinite({column})" if kind.family == "float" else "")
    return Fragment(f"CASE WHEN {counts} THEN CAST({fits} AS BIGINT) END")


def _divides(kind: SqlType, step: Granularity, column: Fragment) -> str:
    """Whether a value is a multiple of a step."""
    if kind.family == "float" and isinstance(step, Decimal):
        return _divides_double(kind, step, column)
    if step == "month" and kind.temporal and kind.family != "time" and not kind.zoned:
        midnight = f" AND {moment_tick(kind, column)} % {kind.day} = 0"
        return f"day({column}) = 1{'' if kind.family == 'date' else midnight}"
    if not isinstance(step, int) or not 0 < step < 2**62:
        raise InternalError(f"no step of a {kind.text}")
    if kind.family in ("integer", "decimal"):
        if step > kind.high:
            return "FALSE"
        return f"{column} % {tick_literal(kind, step)} = 0"
    return f"{moment_tick(kind, column)} % {step} = 0"


def _divides_double(kind: SqlType, step: Decimal, column: Fragment) -> str:
    """Whether it is the value of the type nearest to a multiple: n step, or n / (1 / step) below one."""
    value = f"CAST({column} AS DOUBLE)"
    if step >= 1:
        # Not by fmod(): lines of DuckDB round it in different ways where values are far above 2^53.
        whole = _double_literal(int(step))
        return f"{value} - {whole} * floor({value} / {whole}) = 0"
    times = 1 / step
    if times != int(times):
        raise InternalError("a step of doubles is a whole number or the inverse of one")
    nearest = f"round({value} * {_double_literal(int(times))}) / {_double_literal(int(times))}"
    return f"CAST({nearest} AS {kind.sql}) = {column}" if kind.text == "FLOAT" else f"{nearest} = {column}"


def _double_literal(number: int) -> str:
    return f"CAST('{number}' AS DOUBLE)"


def text_class_expression(text: Fragment) -> Fragment:
    """The code of the class of ``text``, a plain reference to a column of trimmed text.

    Patterns decide, so that no collation and no setting of the session has a say; guarded casts keep out what
    the type cannot hold. Spaces around are ignored, as they are when a text is read as a type.
    """

    def reads(kind: str) -> str:
        return f"{guarded_cast(text, kind)} IS NOT NULL"

    def fits(pattern: str, *, any_case: bool = False) -> str:
        return fits_pattern(text, f"(?i)({pattern})" if any_case else pattern)

    digits = f"strlen({text}) - strpos({text}, '.')"
    first = CLASSES.index(DECIMALS[0])
    integer = _choose([(reads("BIGINT"), INTEGER), (reads("HUGEINT"), LONG)])
    decimal = (
        f"CASE WHEN {digits} <= {MOST_DIGITS} AND {reads(decimal_type(MOST_DIGITS))} "
        f"THEN {first - 1} + {digits} WHEN {reads('DOUBLE')} THEN {CLASSES.index(NUMBER)} "
        f"ELSE {CLASSES.index(TEXT)} END"
    )
    number = (
        f"CASE WHEN {fits(_WHOLE)} THEN {integer} "
        f"WHEN {fits('-?0[0-9]+')} THEN {CLASSES.index(CODE)} "
        f"WHEN {fits(_WHOLE + '[.]0*')} AND {reads('BIGINT')} THEN {CLASSES.index(WHOLE)} "
        f"WHEN {fits(_FRACTION)} THEN {decimal} ELSE "
        + _choose(
            [
                (f"{fits(_DAY)} AND {reads('DATE')}", DATE),
                (f"{fits(f'{_DAY}[ T]{_MOMENT}')} AND {reads('TIMESTAMP')}", TIMESTAMP),
                (f"{fits(f'{_DAY}[ T]{_MOMENT}{_ZONE}')} AND {reads('TIMESTAMP WITH TIME ZONE')}", ZONED),
                (f"{fits(_MOMENT)} AND {reads('TIME')}", TIME),
                (f"{fits(_POWER)} AND {reads('DOUBLE')}", NUMBER),
            ]
        )
        + " END"
    )
    marks = "|".join(re.escape(mark) for mark in MARKS)
    word = _choose(
        [
            (f"{fits('true|false', any_case=True)} AND {reads('BOOLEAN')}", BOOLEAN),
            (fits("-?inf(inity)?", any_case=True), NUMBER),
        ]
    )
    return Fragment(
        f"CASE WHEN {text} IS NULL OR strlen({text}) = 0 THEN {CLASSES.index(EMPTY)} "
        f"WHEN strlen({text}) > {LONGEST} THEN {CLASSES.index(TEXT)} "
        f"WHEN strlen({text}) <= {max(map(len, MARKS))} AND {fits(marks, any_case=True)} "
        f"THEN {CLASSES.index(MISSING)} "
        f"WHEN {fits('[-.0-9][-+.:/ 0-9eETZ]*')} THEN {number} ELSE {word} END"
    )


def _choose(cases: Sequence[tuple[str, str]]) -> str:
    """The code of the first class whose condition holds, else of other text."""
    whens = " ".join(f"WHEN {condition} THEN {CLASSES.index(name)}" for condition, name in cases)
    return f"CASE {whens} ELSE {CLASSES.index(TEXT)} END"


# -- the counter ---------------------------------------------------------------------------------------


PART = 100_000
"""Keys read at a time."""

_VALUE = Fragment("c")
_THING = Fragment("thing")
_KEYS = ("thing",)


class SqlDiscoveryCounter(TreeCounter):
    """Counts units by GROUP BY where the rows lie; arguments as
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
            key_expression(kind, query.longest, _VALUE)
            if query.beginning is None
            else beginning_expression(query.beginning, _VALUE)
        )
        carried = _Carried.of(kind, in_parts=self._engine.in_parts)
        tally = self._counted("keys", query.value, kind, key, least, carried.spelled)
        gathered, table = (temporary_table("dpsyn_keys") for _ in range(2))
        try:
            self._engine.gather(gathered, tally, step="counting units per key", unit=self._unit)
            sql = render("discover/keys", table=table, gathered=gathered, order=carried.order)
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
        coded = grid.code(_VALUE, joined=True)
        code: str = coded.code
        if query.owners:
            owners = [*query.owners, *range(len(query.owners), grid.size)]
            code = value_at(owners, code)
        code = Fragment(f"CAST({code} AS BIGINT)")
        tally = self._counted("grid", grid.columns[0].read(), grid.type, code, joins=coded.joins)
        return self._summed(tally, grid.size, step="counting units per cell of a grid")

    def types(self, query: TypesQuery) -> NDArray[np.int64]:
        """Distinct units per class of text, int64[len(CLASSES)]. PRIVATE."""
        trimmed = number_text(f"trim({ident(query.attr)})", self._decimal)
        code = Fragment(f"CAST({text_class_expression(_VALUE)} AS BIGINT)")
        tally = self._counted("types", trimmed, supported_type("VARCHAR", query.attr), code)
        return self._summed(tally, len(CLASSES), step="counting units per type of text")

    def steps(self, query: StepQuery) -> NDArray[np.int64]:
        """Distinct units by the last step that fits, int64[len(query.steps) + 1]. PRIVATE.

        Raises:
            InternalError: a step that does not fit the type.
            EngineFailure: the statement failed.
        """
        kind = query.type
        step = step_expression(kind, query.steps, _VALUE)
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
            unit=unit_bytes(self._bound.column),
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
        joins: Sequence[Fragment] = (),
    ) -> Tally:
        bound = self._bound
        query = render(
            "discover/units",
            relation=self._relation,
            value=read_as(kind, column, self._decimal),
            thing=thing,
            spelled=spelled,
            joins=list(joins),
            unit=None if bound is None else unit_bytes(bound.column),
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
    def of(cls, kind: SqlType, *, in_parts: bool) -> Self:
        """As they are; between parts only integers and bytes, so that other numbers are their text there."""
        text = key_text(kind, _THING)
        wide = kind.family == "integer" and not -(2**63) <= kind.low <= kind.high < 2**63
        if not in_parts or not (wide or kind.family in ("boolean", "decimal", "float")):
            return cls(_THING, _THING, text)
        value = Fragment(f"CAST({text_of_bytes(_THING)} AS {kind.sql})")
        return cls(text, value, _THING)
