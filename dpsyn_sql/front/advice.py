"""init() and suggest(): a domain file to fill in, and advice on a domain file.

No row of a private table is read; public tables that are referred to are, as for a plan.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, cast

from dpsyn_sql.attributes.advice import Advice, advise, advise_table, in_order, refused_of_tables
from dpsyn_sql.attributes.database_file import StatedTable, is_of_tables, read_database
from dpsyn_sql.attributes.document import load_yaml
from dpsyn_sql.attributes.file import DomainSpec
from dpsyn_sql.attributes.unit import Finding, check_unit
from dpsyn_sql.engines.open_source import is_database, open_source
from dpsyn_sql.engines.source_session import Connection
from dpsyn_sql.errors import DomainError, InputError, hides_own_frames
from dpsyn_sql.front.prepare import con_and_source
from dpsyn_sql.front.request import Request
from dpsyn_sql.front.tree import opened_tree
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS
from dpsyn_sql.planning.template import database_template, template_text
from dpsyn_sql.source.csv_form import CsvSpec, csv_form
from dpsyn_sql.source.frames import DataFrame
from dpsyn_sql.source.relation import Column, Relation


@hides_own_frames
def init(
    con: Connection | DataFrame,
    source: str | os.PathLike[str] | DataFrame | None = None,
    *,
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    csv: CsvSpec = None,
) -> str:
    """A domain file (YAML) to fill in, from catalog types or header names alone. Reads no row.

    Without a source, of a DuckDB connection or file: the file of a whole database, with the keys and links of
    all tables of its schema.

    Args:
        con: as for ``release``.
        source: as for ``release``.
        trust_query: as for ``release``.
        public_tables: as for ``release``.
        csv: as for ``release``.

    Raises:
        InputError: ``csv`` is not understood, or the source is none.
        SourceError: the source is missing, ambiguous or not accepted.
    """
    form = csv_form(csv)
    if source is None and is_database(con):
        with open_source(cast("Connection", con), None, public_tables=public_tables) as database:
            return database_template(database.facts, tuple(database.public))
    place, rows = con_and_source(con, source)
    with open_source(place, rows, trust_query=trust_query, public_tables=public_tables, form=form) as session:
        return template_text(session.relation)


@hides_own_frames
def suggest(
    con: Connection | DataFrame = None,
    source: str | os.PathLike[str] | DataFrame | None = None,
    *,
    domain: DomainSpec = None,
    unit: str | None = None,
    exclude: Sequence[str] = (),
    trust_query: bool = False,
    public_tables: Sequence[str] = (),
    csv: CsvSpec = None,
) -> Advice:
    """What is odd about a domain file, or about a catalog without one; most important first. Reads no row.

    ``suggest(con, source, domain="people.yml")`` judges the file beside the catalog of the source,
    ``suggest(domain="people.yml")`` the file alone, and ``suggest(con, source)`` the catalog alone: then
    ``Advice.domain`` is a mapping to begin with, which ``release`` takes as it is. The file of a database
    (with ``tables:``) is judged table by table, beside ``con`` or alone; ``unit`` is then its unit.

    Args:
        con: as for ``release``.
        source: as for ``release``.
        domain: as for ``release``.
        unit: as for ``release``.
        exclude: as for ``release``.
        trust_query: as for ``release``.
        public_tables: as for ``release``.
        csv: as for ``release``.

    Returns:
        Findings with ``.column`` (None: several columns, or the table), ``.what``, ``.cure`` and
        ``.severity``: ``fault`` (a release refuses it), ``serious`` (a column is ruined, or the protection is
        not what the owner means) or ``hint``.

    Raises:
        InputError: neither a source nor a domain is given, the unit's column does not exist, ``csv`` is
            not understood, or the source is none.
        SourceError: the source is missing, ambiguous or not accepted.
        DomainError: the file cannot be read, is no YAML, or has no ``columns:``.
    """
    if con is None and source is None and domain is None:
        raise InputError("Nothing to judge: give a source, or domain=.")
    if is_of_tables(domain):
        if con is not None and source is not None:
            raise InputError("domain= is the file of a database: give the database alone, without a table.")
        return _advise_tables(
            cast("Connection", con if source is None else source),
            domain,
            unit=unit,
            public_tables=public_tables,
            exclude=exclude,
        )
    request = Request(source, domain=domain, unit=unit, exclude=exclude)
    request.check()
    protected, stated = request.protected(), unit is not None
    form = csv_form(csv)
    if con is None and source is None:
        column = None if protected.column is None else Column(protected.column, "VARCHAR")
        return advise(domain, None, unit=column, stated=stated, exclude=exclude, most_cells=MAX_PAIR_CELLS)
    place, rows = con_and_source(con, source)
    with open_source(
        place, rows, trust_query=trust_query, public_tables=public_tables, unit=protected.column, form=form
    ) as session:
        relation = session.relation
        column = None if protected.column is None else check_unit(relation.columns, protected)
        return advise(
            domain, relation, unit=column, stated=stated, exclude=exclude, most_cells=MAX_PAIR_CELLS
        )


def _advise_tables(
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
        request = Request((), unit=unit, public_tables=public_tables, exclude=exclude, domain=domain)
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
        columns = (entries[name] or {}).get("columns") or {}
        relation = relations.get(name)
        if relation is None and not one.domain.columns:
            continue
        own = tied.get(name, frozenset()) if relation is not None else _tied(one)
        judged = advise_table(name, columns, one.domain, relation, tied=own, most_cells=MAX_PAIR_CELLS)
        # What is refused beside the catalog is told by the refusal.
        found += [finding for finding in judged if con is None or finding.severity != "fault"]
    return in_order(found)


def _document(domain: Any) -> Any:
    return load_yaml(Path(domain)) if isinstance(domain, str | PathLike) else domain


def _tied(table: StatedTable) -> frozenset[str]:
    beside = (name for one in table.references.values() for name in one.columns)
    return frozenset((*table.key, *table.foreign_key, *table.references, *beside))
