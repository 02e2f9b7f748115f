"""The names of questions in the ledger. They are public and never change, so that stored ledgers replay."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from dpsyn_sql.domain.hierarchies.base import Hierarchy
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.sqltext.fragments import Fragment


def tables_named(ask: str, queries: Sequence[MarginalQuery]) -> dict[str, Any]:
    """A question about marginals."""
    named: dict[str, Any] = {"ask": ask, "tables": [list(query.attrs) for query in queries]}
    if any(query.maps for query in queries):
        named["maps"] = digest(repr([query.maps for query in queries]))
    return named


def column_named(what: str, name: str, sql_type: str, source: Fragment | None) -> dict[str, Any]:
    """A question about a column, or about what ``source`` computes from columns. It has an ENUM without its
    labels, which may come from the rows."""
    kind = "ENUM" if sql_type.startswith("ENUM(") else sql_type
    named = {"ask": "discover", "what": what, "attr": name, "type": kind}
    return named if source is None else {**named, "source": str(source)}


def nodes_named(what: str, hierarchies: Sequence[Hierarchy]) -> dict[str, Any]:
    """A question about nodes of hierarchies."""
    return {"ask": "discover", "what": what, "hierarchies": [dict(one.named()) for one in hierarchies]}


def digest(text: str) -> str:
    """A hash of public parts that are too long to keep; a replay with other parts is noticed."""
    return hashlib.sha256(text.encode()).hexdigest()
