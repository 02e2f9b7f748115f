"""Columns of listed values: the code of a value is the place of its label, the value of a code is its label.

Text is looked up in a constant map of its labels; many labels are joined where a statement can join. (Casting
to an ENUM is fast only while every cast succeeds, and a tree of comparisons costs one pass per label.)
Integers that lie close together are looked up in a constant list, everything else by a balanced tree of
comparisons. With ``prefixes``, labels that stand for a beginning come after whole ones, the longest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsyn_sql.attributes.attribute import (
    ANY_REST,
    OTHER,
    Attribute,
    Coded,
    Label,
    Valued,
    named_value,
    or_missing,
)
from dpsyn_sql.attributes.types import LOOKUP, SqlType, clipped, listed_value, tick_literal
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.expressions import code_of_label, text_bytes, value_at
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, literal

_MAPPED = 256  # longest map of labels; its cost grows with its length, that of a join does not
_FEW_CUTS = 3  # a tree of so few comparisons is as fast as a list
_ANY_VALUE = {"integer": "0", "boolean": "FALSE", "enum": "NULL"}
# The value of a column that cannot be NULL if no label is known.


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
