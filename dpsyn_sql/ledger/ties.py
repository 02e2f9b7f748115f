"""By which columns the rows of a table belong to a unit, as releases of an account say it (public facts).

Losses of one account add up for one kind of unit. Two units can be called the same: ``customers.id`` and
``orders.id``; and rows can belong to one unit in two ways: a transfer to its sender or its receiver. So a
table that was charged before must be tied to the unit as it was then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpsyn_sql.errors import AccountError
from dpsyn_sql.ledger.store import Store
from dpsyn_sql.planning.plan import ReleaseKey
from dpsyn_sql.source.names import fold

Tie = tuple[str, tuple[str, ...]]
"""The table that the columns name a row of (empty: their value is the unit), and the columns, folded."""


def ties_of(configuration: Mapping[str, Any]) -> dict[str, Tie]:
    """How each table of a release is tied to its unit, by the name of its source; none of single rows."""
    tables: Mapping[str, Any] = configuration.get("tables", {})
    if tables:
        root = next(name for name, told in tables.items() if told["parent"] is None)
        return {told["source"]: _tie(told, tables, root) for told in tables.values()}
    source, unit = configuration.get("source"), configuration.get("unit")
    if configuration.get("kind") != "table" or not isinstance(source, str) or unit is None:
        return {}
    return {source: ("", (fold(str(unit)),))}


def _tie(told: Mapping[str, Any], tables: Mapping[str, Any], root: str) -> Tie:
    """A child of the root names the unit itself, like a column of units in a release of one table."""
    if told["parent"] is None:
        return "", tuple(map(fold, told["key"]))
    above = "" if told["parent"] == root else str(tables[told["parent"]]["source"])
    return above, tuple(map(fold, told["foreign_key"]))


def refuse_other_ties(store: Store, account_id: int, name: str, key: ReleaseKey) -> None:
    """Refuse a release that ties a table to the unit otherwise than an earlier one of the account.

    Raises:
        AccountError: naming the table and both ways.
    """
    own = ties_of(key.configuration)
    if not own:
        return
    for row in store.all("all_entries"):
        if row["account_id"] != account_id or row["configuration"] is None:
            continue
        for source, tie in ties_of(json.loads(row["configuration"])).items():
            if own.get(source, tie) != tie:
                raise AccountError(
                    f"The account {name!r} has a release of {source!r} whose rows belong to the unit by "
                    f"{_in_words(tie)}; in this release they belong to it by {_in_words(own[source])}. What "
                    "one unit loses would not add up. Tie the table as before, or use a separate ledger=. "
                    "Nothing was read or charged."
                )


def _in_words(tie: Tie) -> str:
    above, columns = tie
    return f"({', '.join(columns)})" + (f" in {above!r}" if above else "")
