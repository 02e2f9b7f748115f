"""By which columns the rows of each table that a query or view reads belong to the unit, for the ledger."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256

from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.names import Identity, fold
from dpsyn_sql.source.origins import AWAY, IN_SELECT, Origins, Place
from dpsyn_sql.source.query_check import CatalogRelation, origins
from dpsyn_sql.sqltext.fragments import Fragment

_CHANCE = re.compile(r"(?<=dpsyn_)[0-9a-f]{32}")
"""What differs from call to call in a text that is checked."""


def origins_in(catalog: DuckDBCatalog, source: str | CatalogRelation) -> dict[str, Origins] | None:
    """Where the columns of a query or view of this catalog come from; None if it cannot be followed."""

    def types(read: Identity | Fragment) -> Mapping[str, str]:
        if not isinstance(read, str):
            return catalog.types(read)
        columns = catalog.describe_files(read, "a file of the query")
        return {column.name: column.sql_type for column in columns}

    return origins(source, catalog, types)


def owners_of(
    known: Mapping[str, Origins] | None,
    columns: Sequence[str],
    sources: Iterable[str],
    named: Callable[[Place], Iterable[str]],
    *,
    query: str,
    trusted: bool,
) -> dict[str, tuple[str, ...]]:
    """By what the rows of each source belong to the unit that ``columns`` of a query name.

    What cannot be followed is an owner like no other. Of a trusted query the owner answers for tables that
    the columns do not come from: they are not named here.

    Args:
        known: where the columns of the query come from; None if it cannot be followed.
        columns: of the query; together they name the unit, or the row of another table.
        sources: the private tables and files that the query reads, as the ledger calls them.
        named: what the ledger calls a table, or the files of a path.
        query: its text. What can only be told within it is an owner like no other of another query.
        trusted: the owner states that the query mixes no rows.

    Raises:
        SourceError: the rows of one source belong to units by two columns.
    """
    found = {source: list[str]() for source in sources}
    alone = f"in the query {sha256(_CHANCE.sub('', query).encode()).hexdigest()[:16]}"
    for column in columns:
        if known is None:
            all_origins: Origins = frozenset()
            elsewhere = fold(column) if trusted else f"the value of {column} {alone}"
        else:
            all_origins = known.get(fold(column), frozenset())
            elsewhere = "" if trusted else f"the value of {column} {alone}"
        texts = {source: set[str]() for source in found}
        for place, text in all_origins:
            for source in () if place is None else named(place):
                if source in texts and not (trusted and text.startswith(AWAY)):
                    own = f"{text} for {column} {alone}" if IN_SELECT in text and not trusted else text
                    texts[source].add(own)
        for source, ways in texts.items():
            if len(ways) > 1:
                both = " and by ".join(sorted(ways))
                raise SourceError(
                    f"The rows of {source!r} belong to the unit {column!r} by {both}: one row would count "
                    "for two units, and removing one of them changes what the other one has. Release the "
                    "rows of one owner, or give each owner a release and a ledger= of its own. Nothing was "
                    "read or charged."
                )
            found[source] += ways or ([elsewhere] if elsewhere else [])
    return {source: tuple(own) for source, own in found.items() if len(own) == len(columns)}
