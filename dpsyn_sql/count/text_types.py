"""PRIVATE: the class of a text (``domain/text_types.py``) as a SQL expression: a total function of the value.

Patterns decide, so that no collation and no setting of the session has a say; guarded casts keep out what
the type cannot hold. Spaces around are ignored, as they are when a text is read as a type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpsyn_sql.domain.text_types import (
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
    decimal_type,
)
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment

_WHOLE = "-?(0|[1-9][0-9]*)"
_FRACTION = r"-?(0|[1-9][0-9]*)?\.[0-9]+"
_POWER = r"-?(0|[1-9][0-9]*)?(\.[0-9]*)?[eE][-+]?[0-9]+"
_DAY = "(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2})"
_MOMENT = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(?:[.][0-9]{1,9})?)?"
_ZONE = " ?(Z|[-+][0-9]{2}(:?[0-9]{2})?)"


def text_class_expression(text: Fragment, dialect: Dialect) -> Fragment:
    """The code of the class of ``text``, a plain reference to a column of trimmed text."""

    def reads(kind: str) -> str:
        return f"{dialect.guarded_cast(text, kind)} IS NOT NULL"

    def fits(pattern: str, *, any_case: bool = False) -> str:
        return dialect.matches(text, f"(?i)({pattern})" if any_case else pattern)

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
