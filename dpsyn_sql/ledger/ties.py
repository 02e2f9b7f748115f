"""By which columns the rows of a table belong to a unit, as releases of an account say it (public facts).

Losses of one account add up for one kind of unit. Two units can be called the same: ``customers.id`` and
``orders.id``; and rows can belong to one unit in two ways: a transfer to its sender or its receiver. So a
table that was charged before, by its name or through a query or a view, must be tied to the unit as it was
then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dpsyn_sql.errors import AccountError
from dpsyn_sql.ledger.chain import append
from dpsyn_sql.ledger.store import Store
from dpsyn_sql.planning.plan import ReleaseKey, Tie
from dpsyn_sql.source.names import fold


def record_ties(store: Store, account: str, release: str, key: ReleaseKey) -> None:
    """Record with a debit how its sources are tied to the unit; call inside its transaction."""
    if key.ties:
        ties = {source: [above, list(columns)] for source, (above, columns) in key.ties.items()}
        append(store, "tied", {"release": release, "account": account, "ties": ties})


def refuse_other_ties(store: Store, account_id: int, name: str, key: ReleaseKey) -> None:
    """Refuse a release that ties a table to the unit otherwise than an earlier one of the account.

    Raises:
        AccountError: naming the table and both ways.
    """
    if not key.ties:
        return
    for source, tie in _before(store, account_id, name):
        own = key.ties.get(source, tie)
        if own != tie:
            raise AccountError(
                f"The account {name!r} has a release of {source!r} whose rows belong to the unit by "
                f"{_in_words(tie)}; in this release they belong to it by {_in_words(own)}. What "
                "one unit loses would not add up. Tie the table as before, or use a separate ledger=. "
                "Nothing was read or charged."
            )


def two_owners(source: str, tie: Tie, other: Tie) -> str:
    """The message that refuses a table that is read twice in one release."""
    return (
        f"The rows of {source!r} belong to the unit by {_in_words(tie)}, and by {_in_words(other)} in "
        "another table of this release: one row would count for two units, and removing one of them changes "
        "what the other one has. Take one of the two out of the release. Nothing was read or charged."
    )


def row_of(keys: Mapping[str, tuple[str, ...]]) -> str:
    """A row of a table, as the table's base tables and the columns of its key, views followed."""
    return "; ".join(f"{source} ({', '.join(columns)})" for source, columns in sorted(keys.items()))


def _before(store: Store, account_id: int, name: str) -> Iterator[tuple[str, Tie]]:
    """The ties of all releases of an account."""
    recorded = set[str]()
    for row in store.all("all_ties"):
        body = json.loads(row["body"])
        if body["account"] != name:
            continue
        recorded.add(body["release"])
        for source, (above, columns) in body["ties"].items():
            yield source, (above, tuple(columns))
    for row in store.all("all_entries"):
        if row["account_id"] == account_id and row["release_id"] not in recorded:
            yield from _told(json.loads(row["configuration"])).items()


def _told(configuration: Mapping[str, Any]) -> dict[str, Tie]:
    """The ties of a release whose debit has no record of them: what its settings say of its tables."""
    tables: Mapping[str, Any] = configuration.get("tables", {})
    if tables:
        root = next(name for name, one in tables.items() if one["parent"] is None)
        return {one["source"]: _tie(one, tables, root) for one in tables.values()}
    source, unit = configuration.get("source"), configuration.get("unit")
    if configuration.get("kind") != "table" or not isinstance(source, str) or unit is None:
        return {}
    return {source: ("", (fold(str(unit)),))}


def _tie(table: Mapping[str, Any], tables: Mapping[str, Any], root: str) -> Tie:
    """A child of the root names the unit itself, like a column of units in a release of one table."""
    parent = table["parent"]
    if parent is None:
        return "", tuple(map(fold, table["key"]))
    key = tuple(map(fold, tables[parent]["key"]))
    above = "" if parent == root else row_of({str(tables[parent]["source"]): key})
    return above, tuple(map(fold, table["foreign_key"]))


def _in_words(tie: Tie) -> str:
    above, columns = tie
    return f"({', '.join(columns)})" + (f" in {above!r}" if above else "")
