"""What binds sources, accounts and windows in the ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsyn_sql.accounting.account import Charge, Place, describe
from dpsyn_sql.accounting.budget import DELTA_UNITS, Budget
from dpsyn_sql.errors import AccountError, InputError, InternalError, LedgerError, SeriesUnfinished
from dpsyn_sql.ledger.stops import taken_by_release
from dpsyn_sql.ledger.store import IN_MEMORY, Store, append, canonical_json
from dpsyn_sql.planning.plan import ReleaseKey, Tie
from dpsyn_sql.source.names import LedgerNames, fold
from dpsyn_sql.source.relation import ROW_OF_RESULT


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
        requested = key.ties.get(source, tie)
        if requested != tie:
            raise AccountError(
                f"The account {name!r} has a release of {source!r} whose rows belong to the unit by "
                f"{_in_words(tie)}; in this release they belong to it by {_in_words(requested)}. What "
                "one unit loses would not add up. Tie the table as before, or use a separate ledger=. "
                "Nothing was read or charged."
            )


def two_owners(source: str, tie: Tie, second: Tie) -> str:
    """The message that refuses a table that is read twice in one release."""
    return (
        f"The rows of {source!r} belong to the unit by {_in_words(tie)}, and by {_in_words(second)} in "
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
        root = next(name for name, table in tables.items() if table["parent"] is None)
        return {table["source"]: _tie(table, tables, root) for table in tables.values()}
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


# -- moves -------------------------------------------------------------------------------------------

# Where a ledger lies and where its names begin: recorded first when it is made, and again after a move.
#
# A ledger that is not where its last such record says is refused until somebody says how it was moved.
# Otherwise its names would mean other tables and files, and what was spent on them would be forgotten.


def here(store: Store) -> dict[str, str]:
    """Facts for a record: the ledger lies here, and its names begin here."""
    path = _place(store)
    return {} if path is None else {"place": path, "home": path}


def home(store: Store) -> LedgerNames:
    """Where names begin; call inside a transaction."""
    return LedgerNames.of(_recorded(store)[1])


def settle(store: Store) -> None:
    """Refuse a ledger that was moved; inside a transaction.

    Raises:
        LedgerError: it is not where its record says.
    """
    recorded, actual = _recorded(store)[0], _place(store)
    if actual is None or actual == recorded:
        return
    raise LedgerError(
        f"This ledger was at {recorded} and is now at {actual}. If the data were moved or renamed together "
        f"with it, run `dpsyn ledger moved {actual} --with-data`. If the data stayed where they were, run "
        f"`dpsyn ledger moved {actual} --alone`. Nothing was read or charged."
    )


def moved(store: Store, *, with_data: bool) -> None:
    """Record the new place; inside a writing transaction.

    Raises:
        InputError: it is where its record says, or in memory.
    """
    (recorded, start), actual = _recorded(store), _place(store)
    if actual is None or actual == recorded:
        raise InputError(f"The ledger {store.place} was not moved: it is where its record says.")
    append(store, "moved", {"place": actual, "home": actual if with_data else start})


def refuse_own_file(store: Store, account: str) -> None:
    """Refuse to grant a table of the ledger's own database under the file's name; inside a transaction.

    Raises:
        InputError: no release would ever be charged to such an account.
    """
    file, colon, table = account.partition(":")
    database = home(store).database
    if not colon or not table or database is None:
        return
    if file == database.name or os.path.realpath(file) == str(database):
        meant = table if "#" in table else f"{table}#row"
        raise InputError(
            f"No release would be charged to {account!r}: this ledger lies beside {database.name} and "
            f"names the tables in it without the file; did you mean {meant!r}?"
        )


def _place(store: Store) -> str | None:
    return None if store.place == IN_MEMORY else os.path.realpath(store.place)


def _recorded(store: Store) -> tuple[str | None, str | None]:
    """The place and the home of the last record that has them."""
    row = store.one("last_home")
    body = {} if row is None else json.loads(row["body"])
    return body.get("place"), body.get("home")


# -- windows of a calendar ---------------------------------------------------------------------------

# Which panel an entry of the ledger belongs to, read from its configuration.

_OF_ONE_SLICE = ("index", "value", "edges")
"""Facts of a slice that do not belong to its panel."""


@dataclass(frozen=True, slots=True)
class Debited:
    """A release of an account; ``measured``: its source is not read any more."""

    charge: Charge
    name: str
    version: str | None
    measured: bool


def charge_of(
    budget: Budget, configuration: str | None, name: str, taken_over: tuple[int, int] | None = None
) -> Charge:
    """What a release debits, and where; without a configuration outside of panels. ``taken_over``: the
    amount and the threshold delta that it took over from releases that stopped.

    Raises:
        InternalError: the configuration is not one that was written here.
    """
    over = None if taken_over is None else Budget(budget.kind, *taken_over)
    if configuration is None or '"slice":' not in configuration:
        return Charge(budget, None, over)
    try:
        return Charge(budget, place_of(json.loads(configuration), name), over)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        pass
    raise InternalError("a release has an impossible slice")


def place_of(configuration: Mapping[str, Any], name: str) -> Place | None:
    """Where a release lies in its panel; None if it is charged in full.

    A panel is all that decides the slices. A bound on the windows of a unit holds within the releases of one
    name; that a row is in one slice only holds for all of them.
    """
    slice_facts = configuration.get("slice")
    if slice_facts is None or slice_facts["most"] is None:
        return None
    unit = configuration.get("unit")
    ordered = unit not in (None, ROW_OF_RESULT)
    source = [configuration.get("source"), configuration.get("kind"), unit, name if ordered else None]
    panel = {fact: value for fact, value in slice_facts.items() if fact not in _OF_ONE_SLICE}
    number, most = slice_facts["value" if "value" in slice_facts else "index"], slice_facts["most"]
    edges = tuple(slice_facts.get("edges", ()))
    if type(most) is not int or most < 1 or type(number) not in (int, str):
        raise ValueError("no slice")
    return Place(canonical_json([*source, panel]), number, most, edges, ordered)


def debits(store: Store, account_id: int) -> list[Debited]:
    """All releases of an account, in the order of their debits."""
    rows, taken_over = (
        store.all("account_budgets", account_id=account_id),
        taken_by_release(store, account_id),
    )
    releases = []
    for row in rows:
        budget = Budget(row["kind"], row["amount"], row["delta"])
        charge = charge_of(budget, row["sliced"], row["name"], taken_over.get(row["release_id"]))
        releases.append(Debited(charge, row["name"], row["version"], row["state"] != "debited"))
    return releases


def refuse_unfinished(releases: Sequence[Debited], slot: Place | None) -> None:
    """A series is read in the order of its windows: an earlier one must not be read after this one.

    Raises:
        SeriesUnfinished: a release of an earlier window was begun and is not measured.
    """
    for release in releases:
        earlier = release.charge.place
        if release.measured or earlier is None or slot is None or not must_precede(earlier, slot):
            continue
        raise SeriesUnfinished(
            f"The release {release.name!r} version {release.version!r} of another window was begun and is "
            "not measured. Units are counted in at most so many windows only if the windows are read one "
            "after the other: finish it first (the same call costs nothing more), or leave most= out. "
            "Nothing was read or charged."
        )


def must_precede(earlier: Place, later: Place) -> bool:
    """Whether ``earlier`` must be measured before ``later`` is debited: it is a window of the series before
    that one."""
    if not later.ordered or earlier.panel != later.panel:
        return False
    return isinstance(earlier.number, int) and isinstance(later.number, int) and earlier.number < later.number


def in_words(charge: Charge, cost: Budget, delta: Fraction, *, shared: bool) -> str:
    """What a new debit costs; empty where that is all of it. ``shared``: it has the bound of its panel."""
    slot = charge.place
    if slot is None and charge.taken is not None:
        more = f"{describe(cost, delta)} more" if cost.amount else "nothing more"
        if cost.delta and not cost.amount:
            more = f"a threshold delta of {cost.delta / DELTA_UNITS:.3g} more"
        return (
            f"a new debit of {describe(charge.budget, delta)}, of which a release that stopped has paid "
            f"{describe(charge.taken, delta)}: costs {more}, which fits the account"
        )
    if slot is None:
        return ""
    slices = "windows" if slot.edges else "partitions"
    bound = f"one of the {slices}" if slot.most == 1 else f"{slot.most} of the {slices}"
    debit_words = f"a new debit of {describe(charge.budget, delta)}; a unit can be in {bound}: costs "
    if cost.amount == cost.delta == 0:
        return f"{debit_words}nothing more"
    if shared:
        return f"{debit_words}{describe(cost, delta)} more, which fits the account"
    why = f"a later window was released, or the calendar has other edges than the {slices} before"
    return f"a new debit of {describe(cost, delta)}, charged in full ({why}), which fits the account"
