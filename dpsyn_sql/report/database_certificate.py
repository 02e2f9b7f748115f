"""The certificate of a release of several tables: one guarantee, and the facts of each table.

Each table keeps a certificate of its own, which has the guarantee of the whole. That of the whole is made
from those of all tables: what they share is said once.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from dpsyn_sql.accounting.account import in_words
from dpsyn_sql.accounting.budget import DELTA_UNITS, Budget
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import Tree
from dpsyn_sql.report.certificate import Claim
from dpsyn_sql.report.labels import counted

Facts = Mapping[str, Any]

_SHARED = ("release", "debited_at", "guarantee", "budget", "not_promised", "versions", "database")
"""Facts of a table's certificate that are, but for the release and what is of a table, those of all."""

_NEIGHBOURS = (
    "add or remove one privacy unit with all its rows in all tables; the numbers of rows are private"
)

_GRADES = ("good", "rough", "do not use")


def id_of_table(release: str, table: str) -> str:
    """The id of a table of a release."""
    return f"{release}.{table}"


def name_of_table(name: str, table: str) -> str:
    """The name that a table of a release is stored by, for ``load()``, ``dpsyn_sample`` and
    ``dpsyn_marginal``."""
    return f"{name}.{table}"


def table_certificate(
    facts: Facts,
    tree: Tree,
    table: str,
    *,
    name: str,
    release: str,
    budget: Budget,
    claimed: Claim,
    not_protected: Sequence[str] = (),
) -> dict[str, Any]:
    """The certificate of a table of a release of several: its guarantee is that of all tables together.

    Args:
        facts: of ``certificate()`` for the table by itself.
        tree: of all tables.
        table: its name in the tree.
        name: of the release.
        release: the id of the release.
        budget: of all tables together, as it was charged.
        claimed: of all tables together.
        not_protected: lines about persons, and rows, that the release does not protect.

    Returns:
        The same facts with the guarantee and the budget of the whole (``used`` is what the table used), and,
        under ``"database"``, JSON-ready: ``name``, ``release``, ``table``, ``tables`` (the root first: each
        with ``table``, ``parent``, ``most``, ``rows_per_unit``), ``public_tables``, ``not_protected``.
    """
    root = tree.root
    made = copy.deepcopy(dict(facts))
    made["release"] = id_of_table(release, table)
    made["guarantee"] |= {
        "epsilon": claimed.epsilon,
        "delta": claimed.delta,
        "bounds": claimed.bounds,
        "accounting": in_words(budget),
        "rho": float(budget.rho),
        "definition": "pure differential privacy" if budget.kind == "pure" else "(epsilon, delta)",
        "neighbours": _NEIGHBOURS,
        "privacy_unit": ", ".join(f"{root.name}.{column}" for column in root.key),
        "rows_per_unit": tree.rows_per_unit(table),
    }
    made["budget"] |= {
        "kind": budget.kind,
        "reserved_units_of_1e-15": budget.amount,
        "threshold_delta": budget.delta / DELTA_UNITS,
    }
    made["database"] = {
        "name": name,
        "release": release,
        "table": table,
        "tables": [
            {
                "table": one.name,
                "parent": one.parent,
                "most": one.most,
                "rows_per_unit": tree.rows_per_unit(one.name),
            }
            for one in tree
        ],
        "public_tables": [one.name for one in tree.public],
        "not_protected": list(not_protected),
    }
    return made


def database_certificate(tables: Mapping[str, Facts]) -> dict[str, Any]:
    """The certificate of the whole release, JSON-ready, from those of its tables.

    The guarantee, the budget (``used`` by all tables), what is not promised and versions stand once;
    ``mechanisms`` has those of all tables, each with its ``table``; ``tables`` has all other facts of each
    table by its name. ``losses`` has the verdict of the worst table, and the warnings of all tables, each
    after the name of its table.

    Args:
        tables: by name the certificate of each table.

    Raises:
        InputError: they are not those of all tables of one release.
    """
    first = next(iter(tables.values()), None)
    known = None if first is None else first.get("database")
    if first is None or known is None:
        raise InputError("These are not the certificates of a release of several tables.")
    wanted = [str(one["table"]) for one in known["tables"]]
    whole = all(_belongs(facts, known, first, table) for table, facts in tables.items())
    if not whole or set(tables) != set(wanted):
        raise InputError(
            f"The stored release {known['name']!r} was changed or is damaged: its tables are not of one "
            "release. The same call of release_database() with replace=True stores it again and costs "
            "nothing more."
        )
    used = sum(int(facts["budget"]["used_units_of_1e-15"]) for facts in tables.values())
    shared = copy.deepcopy(dict(first))
    guarantee = {key: own for key, own in shared["guarantee"].items() if key != "rows_per_unit"}
    return {
        "release": known["release"],
        "name": known["name"],
        "debited_at": shared["debited_at"],
        "guarantee": guarantee | {"protects": protected_words(known["tables"])},
        "mechanisms": [{"table": table, **one} for table in wanted for one in tables[table]["mechanisms"]],
        "budget": shared["budget"] | {"used_units_of_1e-15": used},
        "tree": copy.deepcopy(known["tables"]),
        "public_tables": list(known["public_tables"]),
        "not_protected": list(known["not_protected"]),
        "tables": {table: _own(tables[table]) for table in wanted},
        "losses": _worst({table: tables[table]["losses"] for table in wanted}),
        "not_promised": shared["not_promised"],
        "versions": shared["versions"],
    }


def _belongs(facts: Facts, known: Facts, first: Facts, table: str) -> bool:
    """Whether a certificate is that of a table of the same release."""
    own = facts.get("database")
    guarantees = ({**one["guarantee"], "rows_per_unit": 0} for one in (facts, first))
    return (
        own is not None
        and {**own, "table": ""} == {**known, "table": ""}
        and own["table"] == table
        and facts["release"] == id_of_table(known["release"], table)
        and len({str(one) for one in guarantees}) == 1
    )


def _own(facts: Facts) -> dict[str, Any]:
    """What a certificate says of its table alone."""
    return {key: copy.deepcopy(own) for key, own in facts.items() if key not in (*_SHARED, "mechanisms")}


def _worst(losses: Mapping[str, Facts]) -> dict[str, Any]:
    """Verdicts of the worst of the tables, and all warnings."""
    found: dict[str, Any] = {}
    for about in ("table", "dependences"):
        table = max(losses, key=lambda one: _badness(losses[one][about]))
        worst = losses[table][about]
        found[about] = {**worst, "why": f"{table}: {worst['why']}"} if "why" in worst else dict(worst)
    warnings = [f"{table}: {text}" for table, own in losses.items() for text in own["warnings"]]
    return found | {"warnings": warnings}


def _badness(verdict: Facts) -> tuple[int, float]:
    return _GRADES.index(verdict["verdict"]), float(verdict.get("harm", 0.0))


def protected_words(tables: Sequence[Facts]) -> str:
    """Whom a release protects, as one clause: ``one row of customers with all rows that belong to it, of
    which at most 16 rows of orders (each with at most 32 rows of items) count``.

    Args:
        tables: as the certificate has them, the root first.
    """
    root = next(str(one["table"]) for one in tables if one["parent"] is None)
    below = _with_rows(tables, root)
    return f"one row of {root}" + (
        f" with all rows that belong to it, of which {below} count" if below else ""
    )


def _with_rows(tables: Sequence[Facts], parent: str) -> str:
    parts = []
    for one in tables:
        if one["parent"] == parent:
            below = _with_rows(tables, str(one["table"]))
            rows = f"at most {counted(int(one['most']), 'row')} of {one['table']}"
            parts.append(f"{rows} (each with {below})" if below else rows)
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
