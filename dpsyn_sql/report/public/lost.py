"""What a column lost, in words for a person who never saw a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.losses import single_values
from dpsyn_sql.report.public.words import code_words, percent
from dpsyn_sql.report.worth import Told, worth_telling


def lost_words(column: Mapping[str, Any], attribute: Attribute) -> str:
    """One text of sentences; empty if nothing is lost that is worth telling.

    Args:
        column: facts of a certificate. One whose figures cannot be read has its own short words.
        attribute: the column.
    """
    if "lost" not in column:
        return ""
    try:
        told = [_sentence(one, column, attribute) for one in worth_telling(column, single_values(attribute))]
    except (KeyError, TypeError, ValueError):
        return str(column["lost"])
    return " ".join(told)


def _sentence(one: Told, column: Mapping[str, Any], attribute: Attribute) -> str:
    share = percent(float(one.share["share"])) if one.share else ""
    place = _range(one, attribute) if one.share else ""
    match one.kind:
        case "null" if one.written:
            return f"{share} of the rows have no value."
        case "other" if one.written:
            return f"{share} of the rows have a value that is not named: “other values”."
        case "null":
            return f"{share} of the rows have no value, and one of those above here."
        case "other":
            return f"{share} of the rows have a value that is not named, and one of those above here."
        case "first bin":
            return f"{share} of the rows are in the lowest range, {place}, or below it."
        case "last bin":
            return f"{share} of the rows are in the highest range, {place}, or above it."
        case "wide bin":
            return f"{share} of the rows share the wide range {place}, and are spread evenly in it."
        case "wide bins":
            return f"{one.number:,} more wide range{'' if one.number == 1 else 's'} hold many rows."
        case "prefixes":
            return f"Of {share} of the rows only the beginning of the text is known."
        case "found":
            return _found(one, column)
        case "in noise":
            several = "1 category" if one.number == 1 else f"{one.number:,} categories"
            return f"{several} cannot be told from noise: rare, or not there."


def _range(one: Told, attribute: Attribute) -> str:
    """The words of a bin by its label."""
    label = str(one.share["code"])
    return dict(zip(map(str, code_labels(attribute)), code_words(attribute), strict=True)).get(label, label)


def _found(one: Told, column: Mapping[str, Any]) -> str:
    many = "1 value was found" if one.number == 1 else f"{one.number:,} values were found"
    if "hidden_below" not in column:
        return f"{many}."
    return f"{many}; values of fewer than about {float(column['hidden_below']):,.0f} rows could not be."
