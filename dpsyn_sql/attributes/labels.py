"""Columns of listed values: the code of a value is the place of its label, the value of a code is its label.

Text is looked up in a constant map of its labels; many labels are joined where a statement can join. (Casting
to an ENUM is fast only while every cast succeeds, and a tree of comparisons costs one pass per label.)
Integers that lie close together are looked up in a constant list, everything else by a balanced tree of
comparisons. With ``prefixes``, labels that stand for a beginning come after whole ones, the longest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from dpsyn_sql.attributes.attribute import (
    ANY_REST,
    MAX_SIZE,
    OTHER,
    Attribute,
    Coded,
    Label,
    Valued,
    named_value,
    or_missing,
)
from dpsyn_sql.attributes.fields import Prefixes
from dpsyn_sql.attributes.spec import ListedSpec, Terms, TypedColumn, Unfit, integer_name, natural_kind, shown
from dpsyn_sql.attributes.types import (
    LOOKUP,
    SqlType,
    clipped,
    enum_type,
    listed_value,
    supported_type,
    tick_literal,
)
from dpsyn_sql.errors import InternalError
from dpsyn_sql.source.relation import Column
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, code_of_label, literal, text_bytes, value_at

_MAPPED = 256  # longest map of labels; its cost grows with its length, that of a join does not
_FEW_CUTS = 3  # a tree of so few comparisons is as fast as a list
_ANY_VALUE = {"integer": "0", "boolean": "FALSE", "enum": "NULL"}
# The value of a column that cannot be NULL if no label is known.


# -- declarations ------------------------------------------------------------------------------------


class CategoricalSpec(ListedSpec):
    """A column of listed values; ``other: false`` states that the list is complete."""

    type: Literal["categorical"]
    categories: list[StrictBool | StrictInt | StrictStr]
    other: StrictBool | None = None
    ordered: StrictBool = False
    prefixes: Prefixes = Field(default=[])

    def implied_types(self) -> tuple[SqlType, ...]:
        integral = bool(self.categories) and all(type(label) is int for label in self.categories)
        name = integer_name([int(label) for label in self.categories]) if integral else "VARCHAR"
        return (supported_type(name, ""),)

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Attribute:
        ((column, kind),) = columns
        if kind.family not in ("text", "integer", "boolean", "enum"):
            raise Unfit(f"type {kind.text} cannot be categorical; write type: {natural_kind(kind)}")
        faults = [*_label_faults(column, kind, self.categories), *_prefix_faults(kind, self)]
        if faults:
            raise Unfit(*faults)
        labels = tuple(self.categories)
        has_other = not _complete(column, kind, labels) if self.other is None else self.other
        if has_other and OTHER in labels:
            raise Unfit(f"{OTHER!r} is reserved for values outside the categories; add other: false")
        sql_type = kind.text
        if kind.family == "enum":
            # An anonymous ENUM may hold the data's own values: the output gets the declared ones.
            strings = column.enum_labels or tuple(label for label in labels if isinstance(label, str))
            sql_type = enum_type(strings)
        return Attribute(
            column.name,
            sql_type,
            "categorical",
            labels,
            other=has_other,
            nullable=self.nullable and not column.not_null,
            ordered=self.ordered,
            prefixes=tuple(self.prefixes),
        )


SPECS = {"categorical": CategoricalSpec}


def catalog_attribute(column: Column, kind: SqlType) -> Attribute | None:
    """The domain that the type alone makes public: BOOLEAN and named ENUM; else None."""
    labels: tuple[Label, ...]
    if kind.family == "boolean":
        labels, sql_type = (False, True), kind.text
    elif kind.family == "enum" and column.enum_labels and not any("\x00" in x for x in column.enum_labels):
        labels, sql_type = column.enum_labels, enum_type(column.enum_labels)
    else:
        return None
    nullable = not column.not_null
    return Attribute(column.name, sql_type, "categorical", labels, nullable=nullable, origin="catalog")


def _prefix_faults(kind: SqlType, spec: CategoricalSpec) -> Iterator[str]:
    """Every length needs a category that is such a beginning."""
    fault = lengths_fault(kind, spec.prefixes)
    if fault is not None:
        yield fault
        return
    lengths = {len(str(label)) - 1 for label in spec.categories if str(label).endswith(ANY_REST)}
    for length in spec.prefixes:
        if length not in lengths:
            yield (
                f"prefixes has the length {length}, but no category of so many characters and "
                f"{ANY_REST!r}; add one, or leave the length out"
            )


def lengths_fault(kind: SqlType, lengths: Sequence[int]) -> str | None:
    """What is wrong with lengths of prefixes of a type, or None."""
    if lengths and kind.family != "text":
        return f"prefixes need text, and the type is {shown(kind)}; leave them out"
    if list(lengths) != sorted(set(lengths), reverse=True):
        return f"prefixes is {list(lengths)}; write lengths once each, the longest first"
    return None


def _complete(column: Column, kind: SqlType, labels: Sequence[Label]) -> bool:
    if kind.family == "boolean":
        return len(labels) == 2
    return column.enum_labels is not None and set(labels) == set(column.enum_labels)


def _label_faults(column: Column, kind: SqlType, labels: Sequence[Label]) -> Iterator[str]:
    if not labels:
        yield "categories is empty; list at least one value"
    if len(labels) > MAX_SIZE:
        yield f"{len(labels)} categories; at most {MAX_SIZE} are allowed"
    wanted = {"integer": int, "boolean": bool}.get(kind.family, str)
    wrong = [label for label in labels if type(label) is not wanted]
    if wrong:
        advice = "write it in quotes" if wanted is str else f"write {wanted.__name__} values"
        yield f"category {wrong[0]!r} does not fit the type {shown(kind)}; {advice}"
        return
    doubles = sorted(str(label) for label, times in Counter(labels).items() if times > 1)
    if doubles:
        yield f"category {doubles[0]!r} is listed twice"
    for label in labels:
        fault = _label_fault(label, column, kind)
        if fault is not None:
            yield f"category {label!r} {fault}"


def _label_fault(label: Label, column: Column, kind: SqlType) -> str | None:
    if isinstance(label, str):
        if "\x00" in label or any("\ud800" <= character <= "\udfff" for character in label):
            return "holds a NUL or half a surrogate pair, which SQL text cannot hold"
        if column.enum_labels is not None and label not in column.enum_labels:
            return "is not a label of the column's ENUM type"
    elif kind.family == "integer" and not kind.low <= label <= kind.high:
        return f"does not fit the type {kind.text}"
    return None


# -- codes -------------------------------------------------------------------------------------------


def code(attribute: Attribute, slot: str, decimal: str, *, joined: bool) -> Coded:
    """As ``Attribute.code``; text of many labels is joined, if it may be."""
    column = Fragment(slot)
    named, kind = named_value(attribute, slot, decimal), attribute.type
    if _is_one_of_two(attribute):
        return Coded(named, _one_of_two(attribute, column))
    if kind.family not in ("text", "enum"):
        return Coded(named, or_missing(attribute, column, _label_tree(attribute, kind, column)))
    if joined and len(attribute.labels) > _MAPPED:
        joins = tuple(_label_joins(attribute, column, f"l{slot}"))
        sought = [f"l{slot}.code", *(f"l{slot}_{length}.code" for length in attribute.prefixes)]
    else:
        joins, sought = (), _mapped(attribute, kind, column)
    code = f"COALESCE({', '.join(sought)}, {attribute.fallback_code})"
    return Coded(named, or_missing(attribute, column, code), joins=joins)


def _is_one_of_two(attribute: Attribute) -> bool:
    """Whether an integer or boolean column has two codes in all, one of them for every other value too."""
    plain = attribute.type.family in ("integer", "boolean")
    return plain and attribute.size == 2 and attribute.null_code is None


def _one_of_two(attribute: Attribute, column: Fragment) -> Fragment:
    """One comparison, which NULL fails like every other value; a third of the time of ``or_missing``."""
    compared = 1 - attribute.fallback_code
    text = _literal(attribute.type, attribute.labels[compared])
    return Fragment(f"CASE WHEN {column} = {text} THEN {compared} ELSE {attribute.fallback_code} END")


def _literal(kind: SqlType, label: Label) -> str:
    return tick_literal(kind, int(label)) if kind.family == "integer" else literal(label)


def _mapped(attribute: Attribute, kind: SqlType, column: Fragment) -> list[str]:
    """The code of text that is a label, and of each beginning that is one; NULL for others."""
    whole = code_of_label(_pairs(attribute), _as_text(kind, column))
    return [whole, *(code_of_label(attribute.stems(n), _stem(column, n)) for n in attribute.prefixes)]


def _stem(text: str, length: int) -> str:
    """The label that stands for all text with this beginning; a function of one value."""
    return f"substr({text}, 1, {length}) || '{ANY_REST}'"


def _as_text(kind: SqlType, column: Fragment) -> str:
    return f"CAST({column} AS VARCHAR)" if kind.family == "enum" else column


def _pairs(attribute: Attribute) -> list[tuple[Label, int]]:
    """The labels with their codes; a repeated one would let a join double rows, and with them the
    sensitivity."""
    if len(set(attribute.labels)) < len(attribute.labels):
        raise InternalError(f"attribute {attribute.name!r} has a label twice")
    return [(label, code) for code, label in enumerate(attribute.labels)]


def _label_joins(attribute: Attribute, column: Fragment, name: str) -> Iterator[Fragment]:
    """Hash joins with the distinct labels as bytes, and with those that are prefixes: no collation can make
    two of them match one value, so every row stays exactly one row."""
    text = _as_text(attribute.type, column)
    yield _join(_pairs(attribute), name, text)
    for length in attribute.prefixes:
        yield _join(attribute.stems(length), f"{name}_{length}", _stem(text, length))


def _join(pairs: Sequence[tuple[Label, int]], name: str, text: str) -> Fragment:
    rows = ", ".join(f"({text_bytes(literal(label))}, {code})" for label, code in pairs)
    return Fragment(f"LEFT JOIN (VALUES {rows}) AS {name}(label, code) ON {name}.label = {text_bytes(text)}")


def _label_tree(attribute: Attribute, kind: SqlType, column: Fragment) -> str:
    """Integers that count up by subtraction, close together by a constant list; others by balanced search
    over sorted labels, equality at the leaves."""
    pairs = sorted((label, code) for code, label in enumerate(attribute.labels))
    if kind.family == "integer" and len(pairs) > _FEW_CUTS:
        low, high = int(pairs[0][0]), int(pairs[-1][0])
        counts_up = pairs == [(low + code, code) for code in range(len(pairs))]
        if counts_up or high - low < LOOKUP:
            return _label_list(attribute, kind, column, (low, high))
    texts = [_literal(kind, label) for label, _ in pairs]
    leaves = [
        f"CASE WHEN {column} = {text} THEN {code} ELSE {attribute.fallback_code} END"
        for text, (_, code) in zip(texts, pairs, strict=True)
    ]
    return by_cuts(column, texts[1:], leaves)


def _label_list(attribute: Attribute, kind: SqlType, column: Fragment, ends: tuple[int, int]) -> str:
    """A list of the codes of all integers from the lowest to the highest label; none if it counts up."""
    low, high = ends
    codes = {int(label): code for code, label in enumerate(attribute.labels)}
    listed = [codes.get(value, attribute.fallback_code) for value in range(low, high + 1)]
    place = clipped(kind, column, (low, high + 1))
    inside = place if listed == list(range(len(listed))) else value_at(listed, place)
    bounds = f"{column} >= {tick_literal(kind, low)} AND {column} <= {tick_literal(kind, high)}"
    return f"CASE WHEN {bounds} THEN {inside} ELSE {attribute.fallback_code} END"


# -- values ------------------------------------------------------------------------------------------


def value(attribute: Attribute, code: Fragment, bits: Fragment, slot: str) -> Valued:
    """As ``Attribute.value``; nothing is named. ``__other__`` is text, else NULL; where a column cannot be
    NULL, some label."""
    kind = attribute.type
    labels = [_literal(kind, label) for label in attribute.labels]
    if not attribute.other:
        return _valued(attribute, _plain_label(attribute, labels, code))
    if kind.family == "text" or attribute.nullable:
        others = literal(OTHER if kind.family == "text" else None)
        return _valued(attribute, listed_value([*labels, others], kind, code))
    if not labels:
        return _valued(attribute, Fragment(f"CAST({_ANY_VALUE[kind.family]} AS {kind.sql})"))
    drawn = f"CAST((({bits} >> 32) * {len(labels)}) >> 32 AS BIGINT)"
    chosen = Fragment(f"CASE WHEN {code} < {len(labels)} THEN CAST({code} AS BIGINT) ELSE {drawn} END")
    return _valued(attribute, listed_value(labels, kind, chosen))


def _valued(attribute: Attribute, label: Fragment) -> Valued:
    return Valued({attribute.name: label})


def _plain_label(attribute: Attribute, labels: Sequence[str], code: Fragment) -> Fragment:
    """The label of a code, NULL for the code of NULL."""
    kind = attribute.type
    if attribute.nullable:
        return listed_value(labels, kind, code)
    if kind.family == "integer" and attribute.labels == tuple(range(len(labels))):
        return Fragment(f"CAST({code} AS {kind.sql})")
    if len(labels) == 2:
        return Fragment(f"CAST(CASE WHEN {code} < 1 THEN {labels[0]} ELSE {labels[1]} END AS {kind.sql})")
    return listed_value(labels, kind, code)
