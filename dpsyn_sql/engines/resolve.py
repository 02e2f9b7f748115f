"""Which string is what: a query, a table or view, or files, with all that the relation is made of.

PRIVATE side. Reads catalogs, a CSV header or a Parquet schema, never a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dpsyn_sql.engines.catalog import DuckDBCatalog, path_literal
from dpsyn_sql.engines.code_slices import ParquetSlicing, TableSlicing
from dpsyn_sql.engines.connections import Reader
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.engines.identities import StoredTable, origins_in, refuse_one_table_twice, stored
from dpsyn_sql.engines.source_session import MULTIPLIES, TRUSTED, OpenedSource
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.csv_form import CsvForm
from dpsyn_sql.source.files import FileSet, common_header, find_files, refuse_clashes, text_files
from dpsyn_sql.source.names import (
    Identity,
    absolute_path,
    absolute_pattern,
    display_name,
    fold,
    is_query,
    shorten,
)
from dpsyn_sql.source.query_check import CatalogRelation, CheckedQuery, check_query, check_view
from dpsyn_sql.source.relation import Relation, RelationKind
from dpsyn_sql.sqltext.fragments import Fragment, qualified

_SKIPPED = (
    "Lines of the CSV source that cannot be parsed are skipped; fields that are missing are NULL, and "
    "further ones are left out."
)
_COMMAS = (
    "The CSV source has ';' between its fields, as files have whose numbers are written 1234,5: these would "
    "be read as text. If there are such numbers, give csv={'decimal': ','}; if not, csv={'decimal': '.'}."
)
_STATED = "the owner states how the CSV file is written"


# -- queries, tables and views -----------------------------------------------------------------------


def resolved(
    reader: Reader, text: str, *, trusted: bool, public_tables: Sequence[str], unit: str | None = None
) -> OpenedSource | None:
    """What a query, or the name of a table or view, means; None if the text is neither.

    Raises:
        SourceError: it is ambiguous, mixes rows, or the caller alone sees what it means.
    """
    catalog = reader.catalog
    if is_query(text):
        public = public_identities(catalog, public_tables)
        checked = check_query(text, catalog, public, trusted=trusted, unit=unit)
        # The text itself is the name: two queries over one table are two sources to the ledger.
        source = _checked(reader.engine, catalog, text, checked, trusted)
        source.origins = origins_in(catalog, text)
        reader.refuse_hidden(source.reads)
        return source
    relation = reader.look_up(text)
    if relation is None:
        return None
    if relation.kind == "view":
        public = public_identities(catalog, public_tables)
        checked = check_view(relation, catalog, public, trusted=trusted, unit=unit)
        source = _checked(reader.engine, catalog, text, checked, trusted, relation)
        source.origins = origins_in(catalog, relation)
        return source
    return _table(reader.engine, catalog, text, relation.identity)


def _table(engine: DuckDBEngine, catalog: DuckDBCatalog, text: str, identity: Identity) -> OpenedSource:
    engine.watch_tables((identity,))
    columns = catalog.columns(identity)
    checks = catalog.checks(identity, columns)
    source = OpenedSource(
        relation=Relation(display_name(*identity), "table", qualified(*identity), columns, checks=checks),
        spelled=text,
        default_into=_beside(identity),
        reads=(identity,),
        tables=_base_tables(catalog, (identity,)),
        catalogued=stored(catalog, identity),
        conventions=catalog.conventions() if catalog.computes(identity) else {},
    )
    unnamed = "rowid" not in map(fold, (column.name for column in columns))
    if unnamed and catalog.numbers_rows(identity):
        engine.read_in_parts(source.relation.sql, TableSlicing(engine, source.relation.sql))
    return source


def _checked(
    engine: DuckDBEngine,
    catalog: DuckDBCatalog,
    text: str,
    checked: CheckedQuery,
    trusted: bool,
    view: CatalogRelation | None = None,
) -> OpenedSource:
    columns = catalog.describe_query(checked.sql, "the query" if view is None else "the view")
    refuse_clashes(tuple(column.name for column in columns), "The result of the query")
    statements = [TRUSTED] if trusted else []
    if checked.public:
        public_names = ", ".join(display_name(*identity) for identity in checked.public)
        statements.append(f"public_tables: the owner states that {public_names} hold no private data")
    if checked.multiplies:
        statements.append(MULTIPLIES)
    kind: RelationKind = "query" if view is None else "view"
    name = checked.sql if view is None else display_name(*view.identity)
    sql = Fragment(f"(\n{checked.sql}\n)")
    reads = tuple(stored(catalog, identity) for identity in checked.relations)
    refuse_one_table_twice(reads)
    files = [(files, form) for path, form in checked.forms if (files := find_files(path)) is not None]
    tables = _base_tables(catalog, checked.relations, checked.public)
    engine.watch_tables(table.identity for table in _base_tables(catalog, checked.relations))
    if not trusted:
        _refuse_generated(catalog, tables)
    if checked.ordered:
        _refuse_variants(catalog, checked)
    source = OpenedSource(
        relation=Relation(name, kind, sql, columns, tuple(statements), multiplies=checked.multiplies),
        spelled=text,
        default_into=None if view is None else _beside(view.identity),
        reads=checked.relations,
        paths=tuple(dict.fromkeys(path for query_files, _ in files for path in query_files.paths)),
        tables=tables,
        catalogued=None if view is None else stored(catalog, view.identity),
        stored=reads,
        texts=tuple(file for query_files, form in files for file in text_files(query_files, form)),
        conventions=catalog.conventions(),
    )
    engine.watch(source.paths)
    return source


def _base_tables(
    catalog: DuckDBCatalog, reads: Sequence[Identity], public: Sequence[Identity] = ()
) -> tuple[StoredTable, ...]:
    """Those of ``reads`` that are base tables and not public."""
    relations = [catalog.find(identity) for identity in sorted(set(reads) - set(public))]
    tables = (relation for relation in relations if relation is not None and relation.kind == "table")
    return tuple(stored(catalog, table.identity) for table in tables)


def _refuse_generated(catalog: DuckDBCatalog, tables: Iterable[StoredTable]) -> None:
    """A query may read any column of its tables."""
    for table in tables:
        for column in catalog.columns(table.identity):
            if column.refused:
                raise SourceError(
                    f"The column {shorten(column.name)!r} of {shorten(display_name(*table.identity))} "
                    f"{column.refused}. Drop the column, or add trust_query=True to state that each of its "
                    "values comes from its own row."
                )


def _refuse_variants(catalog: DuckDBCatalog, checked: CheckedQuery) -> None:
    """Two numbers of different types can be one in an order of VARIANT, and functions tell them apart."""
    relations = [catalog.find(identity) for identity in checked.relations]
    columns = [
        column
        for relation in relations
        if relation and relation.kind == "table"
        for column in catalog.columns(relation.identity)
    ]
    for path in checked.files:
        files = find_files(path)
        if files is not None and files.format == "parquet":
            columns += catalog.describe_files(catalog.file_call(files), f"the file {shorten(path)!r}")
    for column in columns:
        if "VARIANT" in column.sql_type.upper():
            raise SourceError(
                f"The column {shorten(column.name)!r} is a VARIANT, which a query with window functions may "
                "not read: values of different types can be one in its order. Write the table without it."
            )


def _beside(identity: Identity) -> str:
    return display_name(identity[0], identity[1], f"{identity[2]}_synthetic")


# -- public tables -----------------------------------------------------------------------------------


def public_identities(catalog: DuckDBCatalog, names: Sequence[str]) -> frozenset[Identity]:
    """The identities of the tables that the owner calls public."""
    if isinstance(names, str):
        raise SourceError("public_tables= must be a list of names.")
    relations = {name: catalog.look_up(name) for name in names}
    missing = [name for name, relation in relations.items() if relation is None]
    if missing:
        raise SourceError(f"public_tables= has unknown tables: {', '.join(map(shorten, missing))}.")
    views = [name for name, relation in relations.items() if relation is not None and relation.kind == "view"]
    if views:
        raise SourceError(
            f"public_tables= names views: {', '.join(shorten(name) for name in views)}. A view can read "
            "private tables; name base tables."
        )
    return frozenset(relation.identity for relation in relations.values() if relation is not None)


def public_sources(reader: Reader, names: Sequence[str]) -> list[OpenedSource]:
    """Public tables as they are, to be read beside the private ones.

    Raises:
        SourceError: one is missing, a view, or visible to the caller alone.
    """
    catalog, sources = reader.catalog, list[OpenedSource]()
    for name in names:
        reader.look_up(name)  # refuses what the caller alone sees
    public_identities(catalog, names)
    for name in dict.fromkeys(names):
        table = catalog.look_up(name)
        if table is not None:
            identity = table.identity
            relation = Relation(
                display_name(*identity), "table", qualified(*identity), catalog.columns(identity)
            )
            catalogued = stored(catalog, identity)
            sources.append(
                OpenedSource(relation=relation, spelled=name, reads=(identity,), catalogued=catalogued)
            )
    return sources


# -- files -------------------------------------------------------------------------------------------


def opened_files(engine: DuckDBEngine, files: FileSet, text: str, form: CsvForm) -> OpenedSource:
    """Files as a source; ``text`` is how they were given.

    Raises:
        SourceError: a header or schema is unreadable, or has clashing names; ``form`` does not fit them.
    """
    catalog, strict = DuckDBCatalog(engine), form.strict and files.format == "csv"
    sql = catalog.file_call(files, form=form)
    columns = catalog.describe_files(sql, f"the file {shorten(text)!r}")
    stated = (f"{', '.join(form.stated)}: {_STATED}",) if form.stated and files.format == "csv" else ()
    if files.format == "parquet" and "file_row_number" not in map(fold, (column.name for column in columns)):
        engine.read_in_parts(sql, ParquetSlicing(engine, tuple(map(path_literal, files.paths))))
    engine.watch(files.paths)
    path, folder = Path(text), Path(text).is_dir()
    default = str(path.with_name(f"{path.name.split('.')[0] or path.name}_synthetic.parquet"))
    warnings: tuple[str, ...] = (_SKIPPED,) if files.format == "csv" and not strict else ()
    if files.format == "csv" and form.decimal is None and common_header(files, form).delimiter == ";":
        warnings += (_COMMAS,)
    pattern = None if files.single else absolute_pattern(text)
    if folder:
        pattern = str(absolute_path(text) / f"*.{files.format}")
    return OpenedSource(
        relation=Relation(
            files.name, files.format, sql, columns, stated, decimal=form.decimal or ".", strict=strict
        ),
        spelled=text,
        default_into=default if files.single else None,
        warnings=warnings,
        paths=files.paths,
        pattern=pattern,
        folder=folder,
        texts=text_files(files, form),
    )
