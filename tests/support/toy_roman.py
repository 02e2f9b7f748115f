"""A toy kind of column in one file: Roman numerals from I to MMMCMXCIX, in bins of equally many numbers."""

from itertools import pairwise
from typing import Literal

from dpsyn_sql.attributes.attribute import OTHER, Attribute, Coded, Valued, named_value, or_missing
from dpsyn_sql.attributes.fields import BinCount
from dpsyn_sql.attributes.spec import ListedSpec, Unfit
from dpsyn_sql.attributes.types import listed_value
from dpsyn_sql.sqltext.fragments import Fragment, fits_pattern, literal

LAST = 3_999
_PATTERN = "M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})"
_SHORT = {"CM": "DCCCC", "CD": "CCCC", "XC": "LXXXX", "XL": "XXXX", "IX": "VIIII", "IV": "IIII"}
_WORTH = {"M": 1000, "D": 500, "C": 100, "L": 50, "X": 10, "V": 5, "I": 1}


def roman(number):
    """A whole number, 1 to 3,999, as a Roman numeral."""
    digits = [int(digit) for digit in f"{number:04}"]
    return "".join(texts[digit] for texts, digit in zip(_digits(), digits, strict=True))


def _digits():
    """The texts of the digits 0 to 9 of thousands, hundreds, tens and ones."""
    for one, five, ten in ("M??", "CDM", "XLC", "IVX"):
        yield ["", one, one * 2, one * 3, one + five, five, *(five + one * n for n in (1, 2, 3)), one + ten]


class RomanSpec(ListedSpec):
    """A column of Roman numerals."""

    type: Literal["roman"]
    bins: BinCount

    def attribute(self, name, columns, terms):
        ((column, kind),) = columns
        if kind.family != "text":
            raise Unfit("Roman numerals are text")
        ends = [1 + LAST * part // self.bins for part in range(self.bins + 1)]
        labels = [f"{roman(low)} to {roman(end - 1)}" for low, end in pairwise(ends)]
        nullable = self.nullable and not column.not_null
        return Attribute(
            column.name, kind.text, "categorical", tuple(labels), other=True, nullable=nullable, form="roman"
        )


SPECS = {"roman": RomanSpec}


def code(attribute, slot, decimal, *, joined):
    """The bin of the number; text that is no numeral has the code of all other values."""
    plain = slot
    for short, long in _SHORT.items():
        plain = f"replace({plain}, '{short}', '{long}')"
    worth = (
        f"(length({plain}) - length(replace({plain}, '{sign}', ''))) * {n}" for sign, n in _WORTH.items()
    )
    number = f"({' + '.join(worth)})"
    numeral = f"{fits_pattern(slot, _PATTERN)} AND {slot} <> ''"
    inside = f"(({number} - 1) * {attribute.regular} + {attribute.regular - 1}) // {LAST}"
    present = f"CASE WHEN {numeral} THEN {inside} ELSE {attribute.fallback_code} END"
    return Coded(named_value(attribute, slot, decimal), or_missing(attribute, Fragment(slot), present))


def value(attribute, code, bits, slot):
    """A numeral of the bin, each equally likely."""
    first = f"(({code}) * {LAST} // {attribute.regular})"
    count = f"((({code}) + 1) * {LAST} // {attribute.regular} - {first})"
    number = f"(1 + {first} + CAST((({bits} >> 40) * CAST({count} AS UBIGINT)) >> 24 AS BIGINT))"
    parts = [
        listed_value([literal(text) for text in texts], attribute.type, f"({number} // {power} % 10)")
        for texts, power in zip(_digits(), (1000, 100, 10, 1), strict=True)
    ]
    others = f"WHEN {code} = {attribute.other_code} THEN {literal(OTHER)}"
    inside = f"WHEN {code} < {attribute.regular} THEN {' || '.join(parts)}"
    return Valued({attribute.name: Fragment(f"CASE {inside} {others} END")})
