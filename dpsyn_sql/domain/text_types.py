"""What a text can be read as: a public list of classes, and the SQL type of each.

A CSV file has no types, and a type that somebody guessed from its rows is not public. So each value of a
column falls into exactly one of these classes (``private/count/discovery.py``), noisy numbers of units in
each are asked for, and the type of the column follows from them (``discovery/attributes.py``).
"""

from __future__ import annotations

from typing import Final

MOST_DIGITS: Final = 6
"""Digits after the point up to which numbers are decimals; numbers with more are DOUBLE."""

DECIMALS: Final = tuple(f"{digits} digits after the point" for digits in range(1, MOST_DIGITS + 1))

EMPTY: Final = "empty"
MISSING: Final = "a mark for missing"
TEXT: Final = "other text"
CODE: Final = "digits after a leading zero"
BOOLEAN: Final = "true or false"
INTEGER: Final = "integer"
LONG: Final = "integer beyond 64 bits"
WHOLE: Final = "integer with a point"
NUMBER: Final = "other number"
DATE: Final = "date"
TIMESTAMP: Final = "timestamp"
ZONED: Final = "timestamp with a time zone"
TIME: Final = "time of day"

CLASSES: Final = (
    EMPTY,
    MISSING,
    TEXT,
    CODE,
    BOOLEAN,
    INTEGER,
    LONG,
    WHOLE,
    *DECIMALS,
    NUMBER,
    DATE,
    TIMESTAMP,
    ZONED,
    TIME,
)
"""Every text is in exactly one class; its code is the place in this tuple. Stored ledgers keep the codes."""

MARKS: Final = ("na", "n/a", "#n/a", "nan", "null", "none", "nil", r"\n", "?", "-", ".")
"""Texts, in any letter case, that stand for a missing value in columns of numbers and times."""

LONGEST: Final = 64
"""Bytes of the longest text that is looked at; longer ones are other text."""


def decimal_type(digits: int) -> str:
    """The type of numbers with so many digits after the point: 64 bits hold it."""
    return f"DECIMAL(18,{digits})"
