"""What a release tells of the types that it found for columns of text; from noisy answers alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsyn_sql.fit.discovered import FoundType
from dpsyn_sql.source.names import listed

_MANY = 0.01
"""A release tells of texts that are no values of the found type from this noisy share on."""


def types_facts(types: Mapping[str, FoundType]) -> dict[str, Any]:
    """The found types with the noisy share of values that become NULL, JSON-ready; nothing if none was
    looked for."""
    found = {name: {"type": one.sql_type, "becomes_null": round(one.odd, 4)} for name, one in types.items()}
    return {"found_types": found} if found else {}


def odd_texts(types: Mapping[str, FoundType]) -> str | None:
    """Columns of numbers or times in which texts became NULL."""
    odd = [
        f"{listed([name])} ({one.odd:.0%} are no {one.sql_type})"
        for name, one in types.items()
        if one.odd >= _MANY and one.sql_type != "VARCHAR"
    ]
    if not odd:
        return None
    return (
        f"Some texts do not fit the type that was found and become NULL, by noisy counts: {', '.join(odd)}. "
        "To keep them, state sql_type: VARCHAR in a domain file."
    )


def unknown_types(types: Mapping[str, FoundType]) -> str | None:
    """Columns whose type the noise hides."""
    names = [name for name, one in types.items() if not one.sure]
    if not names:
        return None
    taken = ", ".join(f"{listed([name])} ({types[name].sql_type})" for name in names)
    return (
        f"The noise hides the type of {taken}: the likeliest was taken, or text. State sql_type in a domain "
        "file, or spend a larger epsilon."
    )
