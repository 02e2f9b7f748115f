"""What database engines spell differently, in one place.

Everything else in the counting statements is common to engines. A second engine needs one more value here
and one class in ``engines``, which names it as its ``dialect``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, literal, qualified

Label = bool | int | str


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spellings of one engine.

    Args:
        name: of the engine; golden texts are kept in a folder of this name.
        code_types: unsigned types with their bits, narrowest first.
        create_temporary: the start of a statement that makes a temporary table.
        temporary_schema: where temporary tables are.
        of_labels: (codes of labels, text) to the code of a text, NULL for others.
        of_places: (values, place) to one of the values, the first at place 0.
        last_start: (ascending starts with a number each, a name, a key) to a join whose ``<name>.code`` is
            the number of the last start that is not above the key, NULL if there is none; each row stays one.
        text_bytes: text to bytes, which have no collation.
        text_of_bytes: such bytes to their text.
        decimal_comma: whether numbers in text have a comma before their decimals.
        guarded_cast: (text, type) to a value, NULL if the text is not one.
        matches: (text, pattern of RE2) to whether all of the text fits the pattern.
        epoch: a moment to whole units since 1970-01-01: microseconds, or (True) nanoseconds.
        lot: (what is drawn, its unit, key) to a hash whose order draws among a unit's own; the
            unit passes through the key. Indented as an expression of a CTE.
    """

    name: str
    code_types: tuple[tuple[str, int], ...]
    create_temporary: Fragment
    temporary_schema: tuple[str, ...]
    of_labels: Callable[[Sequence[tuple[Label, int]], str], Fragment]
    of_places: Callable[[Sequence[int], str], Fragment]
    last_start: Callable[[Sequence[tuple[str, int]], str, str], Fragment]
    text_bytes: Callable[[str], Fragment]
    text_of_bytes: Callable[[str], Fragment]
    guarded_cast: Callable[[str, str], Fragment]
    matches: Callable[[str, str], Fragment]
    epoch: Callable[[str, bool], Fragment]
    lot: Callable[[Sequence[str], str, int], Fragment]
    decimal_comma: bool = False

    def number_text(self, text: str) -> Fragment:
        """Text of a file, with a point where its numbers have a comma, and the other way round: a number with
        points between its thousands is then none."""
        if not self.decimal_comma:
            return Fragment(text)
        number = self.matches(text, "[-+ 0-9.,eE]*")
        return Fragment(f"CASE WHEN {number} THEN translate({text}, '.,', ',.') ELSE {text} END")

    def text_as(self, text: str, kind: str) -> Fragment:
        """Text of a file as a value of a type; NULL if it is not one."""
        return self.guarded_cast(self.number_text(text), kind)

    def code_type(self, size: int) -> Fragment:
        """The smallest type that holds the codes 0..size-1.

        Raises:
            InternalError: no type holds so many codes.
        """
        for name, bits in self.code_types:
            if size <= 2**bits:
                return Fragment(name)
        raise InternalError(f"no unsigned type holds {size} codes")

    def bytes_of(self, size: int) -> int:
        """What a code of so many takes."""
        return next(bits for _, bits in self.code_types if size <= 2**bits) // 8

    def temporary(self, stem: str) -> Fragment:
        """A new name for a temporary table."""
        return qualified(*self.temporary_schema, f"{stem}_{uuid4().hex}")


def _duckdb_of_labels(pairs: Sequence[tuple[Label, int]], text: str) -> Fragment:
    listed = ", ".join(f"{literal(label)}: {code}" for label, code in pairs)
    return Fragment(f"(MAP {{{listed}}})[{text}]")


def _duckdb_of_places(values: Sequence[int], index: str) -> Fragment:
    return Fragment(f"([{', '.join(map(str, values))}])[{index} + 1]")


def _duckdb_last_start(starts: Sequence[tuple[str, int]], name: str, key: str) -> Fragment:
    rows = ", ".join(f"({start}, {number})" for start, number in starts)
    return Fragment(f"ASOF LEFT JOIN (VALUES {rows}) AS {name}(start, code) ON {key} >= {name}.start")


def _duckdb_guarded_cast(text: str, kind: str) -> Fragment:
    """A bare TRY_CAST of a column is pushed into DuckDB's CSV reader, which then drops the whole line
    as an error of the file. This casts the result of trim, line by line."""
    return Fragment(f"TRY_CAST(trim({text}) AS {kind})")


def _duckdb_lot(drawn: Sequence[str], unit: str, key: int) -> Fragment:
    """One more hash outside, because hash() only xors its last argument in."""
    inner = f"hash({drawn[0]})"
    if len(drawn) > 1:
        inner = "hash(\n                " + ",\n                ".join(drawn) + "\n            )"
    keyed = f"hash(xor(hash({unit}), CAST({key} AS UBIGINT)))"
    return Fragment(f"hash(xor(\n            {inner},\n            {keyed}\n        ))")


DUCKDB = Dialect(
    name="duckdb",
    code_types=(("UTINYINT", 8), ("USMALLINT", 16), ("UINTEGER", 32), ("UBIGINT", 64)),
    create_temporary=Fragment("CREATE TEMP TABLE"),
    temporary_schema=("temp", "main"),
    of_labels=_duckdb_of_labels,
    of_places=_duckdb_of_places,
    last_start=_duckdb_last_start,
    text_bytes=lambda text: Fragment(f"encode({text})"),
    text_of_bytes=lambda content: Fragment(f"decode({content})"),
    guarded_cast=_duckdb_guarded_cast,
    matches=lambda text, pattern: Fragment(f"regexp_full_match({text}, {literal(pattern)})"),
    epoch=lambda moment, nanoseconds: Fragment(f"epoch_{'ns' if nanoseconds else 'us'}({moment})"),
    lot=_duckdb_lot,
)
