"""What is odd about the file of a database: the rules of one table's domain, table by table.

No row of a private table is read; public tables that are referred to are, as for a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from dpsyn_sql.domain.advice import Advice, advise_table, in_order, refused_of_tables
from dpsyn_sql.domain.cases import Finding
from dpsyn_sql.domain.database_file import StatedTable, read_database
from dpsyn_sql.domain.document import load_yaml
from dpsyn_sql.domain.file import DomainSpec
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import DomainError, InputError
from dpsyn_sql.front.database_request import DatabaseRequest
from dpsyn_sql.front.tree import opened_tree
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS
from dpsyn_sql.source.relation import Relation


def is_of_database(domain: DomainSpec) -> bool:
    """Whether a domain has tables, and is the file of a database.

    Raises:
        DomainError: it cannot be read, or is no YAML.
    """
    document = _document(domain)
    return isinstance(document, Mapping) and "tables" in document


def advise_database(
    con: Connection,
    domain: DomainSpec,
    *,
    unit: str | None = None,
    public_tables: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Advice:
    """Judge the file beside the catalog of the database, or alone where ``con`` is None.

    Raises:
        InputError: the connection is none, or the database is missing.
        DomainError: the file cannot be read, or its parts outside of ``columns`` are wrong.
    """
    file, entries = read_database(domain), _document(domain)["tables"]
    relations, tied, found = dict[str, Relation](), dict[str, frozenset[str]](), list[Finding]()
    if con is not None:
        request = DatabaseRequest(unit, public_tables=public_tables, exclude=exclude, domain=domain)
        refused: tuple[str, ...] = ()
        try:
            with opened_tree(con, request) as (_, session, resolved):
                relations = dict(session.relations)
                tied = {table.name: table.tied for table in resolved.tree}
        except DomainError as error:
            refused = error.faults or (str(error),)
        except InputError as error:
            refused = (str(error),)
        found = [refused_of_tables(fault, file.tables) for fault in refused]
    for name, one in file.tables.items():
        declared = (entries[name] or {}).get("columns") or {}
        relation = relations.get(name)
        if relation is None and not one.domain.columns:
            continue
        own = tied.get(name, frozenset()) if relation is not None else _tied(one)
        judged = advise_table(name, declared, one.domain, relation, tied=own, most_cells=MAX_PAIR_CELLS)
        # What is refused beside the catalog is told by the refusal.
        found += [finding for finding in judged if con is None or finding.severity != "fault"]
    return in_order(found)


def _document(domain: Any) -> Any:
    return load_yaml(Path(domain)) if isinstance(domain, str | PathLike) else domain


def _tied(table: StatedTable) -> frozenset[str]:
    beside = (name for one in table.references.values() for name in one.columns)
    return frozenset((*table.key, *table.foreign_key, *table.references, *beside))
