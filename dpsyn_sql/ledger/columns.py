"""What kind of value each column of a ledger holds: a damaged file can hold any kind in any column."""

from __future__ import annotations

from typing import Any

_INTEGERS = (
    *("position", "account_id", "entry_id", "sequence", "ordinal", "synthetic_rows", "publications"),
    *("limit_amount", "limit_delta", "spent_amount", "spent_delta", "amount", "delta", "last", "handed"),
)
_TEXTS = (
    *("kind", "body", "previous", "hash", "name", "unit", "granted_epsilon", "granted_delta", "account"),
    "shown_delta",
    *("release_id", "version", "configuration", "configuration_hash", "debited_at", "state", "measured_on"),
    *("event", "question", "shapes", "digest", "target", "sliced", "stop"),
)
_OPTIONAL = (
    "unit",
    "granted_epsilon",
    "granted_delta",
    "limit_amount",
    "limit_delta",
    "version",
    "measured_on",
    "sliced",
)

_KINDS: dict[str, type] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys(_TEXTS, str),
    "content": bytes,
}


def misplaced(row: dict[str, Any]) -> str | None:
    """The first column that holds another kind of value than it may."""
    for column, value in row.items():
        wanted = _KINDS.get(column)
        if wanted is None or (value is None and column in _OPTIONAL):
            continue
        if type(value) is not wanted:
            return column
    return None
