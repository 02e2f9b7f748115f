"""Lookups in DuckDB's catalog: relations, columns, named ENUM types, functions. No row is read.

A name is never tried out by running ``FROM name``: DuckDB would fall back to a Python variable or a
file of that name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dpsyn_sql.engines.builtin import (
    Function,
    builtin_names,
    builtin_overloads,
    changed_builtins,
    functions_of,
    overloads,
)
from dpsyn_sql.engines.csv_files import csv_call
from dpsyn_sql.engines.syntax_tree import read_syntax
from dpsyn_sql.errors import EngineFailure, SourceError
from dpsyn_sql.source.csv_form import CsvForm
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.expression_check import check_domains, check_expression, generated_columns
from dpsyn_sql.source.files import FileSet, find_files, refuse_clashes
from dpsyn_sql.source.names import (
    Identity,
    Namespace,
    display_name,
    fold,
    last_part,
    listed,
    near_matches,
    shorten,
    split_name,
    split_search_path,
)
from dpsyn_sql.source.query_check import CatalogRelation
from dpsyn_sql.source.query_words import Syntax
from dpsyn_sql.source.relation import Check, Column
from dpsyn_sql.sqltext.fragments import Fragment, comma, literal
from dpsyn_sql.sqltext.render import render

_READING = "reading the catalog"
_DEFAULT_SCHEMA = "main"
_UTC = frozenset({"etc/utc", "utc", "etc/uct", "uct", "etc/zulu", "zulu", "etc/gmt", "gmt", "universal"})
"""Names of one time zone: which of them a system has is chance."""
_PLAIN = CsvForm()


@dataclass(frozen=True, slots=True)
class Session:
    """Where a connection looks names up: current catalog and schema, and its search path."""

    catalog: str
    schema: str
    setting: str

    @property
    def path(self) -> tuple[Namespace, ...]:
        """The (catalog, schema) pairs in order; the current catalog's main schema is always the last."""
        entries = split_search_path(self.setting) or ((self.catalog, self.schema),)
        pairs = [entry if len(entry) == 2 else (self.catalog, *entry) for entry in entries]
        return tuple(dict.fromkeys((pair[0], pair[1]) for pair in [*pairs, (self.catalog, _DEFAULT_SCHEMA)]))


class DuckDBCatalog:
    """The catalog as one connection sees it, read once; see ``query_check.QueryCatalog``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _read(self, template: str, identity: Identity | None = None) -> list[dict[str, Any]]:
        """The rows of a statement about the catalog, or about one table in it, as dictionaries."""
        parts: dict[str, Any] = dict(
            zip(("catalog", "schema", "name"), map(literal, identity or ()), strict=False)
        )
        return _rows(self._engine.fetch(render(f"source/{template}", **parts), step=_READING))

    @cached_property
    def session(self) -> Session:
        """Current catalog, schema and search path."""
        row = self._read("session")[0]
        return Session(str(row["catalog"]), str(row["schema"]), str(row["search_path"] or ""))

    def conventions(self) -> dict[str, str]:
        """Settings that decide what expressions of a query, a view or a generated column give."""
        found = {str(row["name"]): str(row["value"]) for row in self._read("conventions")}
        return {name: "UTC" if fold(value) in _UTC else value for name, value in found.items()}

    @cached_property
    def _relation_rows(self) -> list[dict[str, Any]]:
        return self._read("relations")

    @cached_property
    def relations(self) -> dict[tuple[str, str, str], CatalogRelation]:
        """Every table and view that outlives its connection, by folded name."""
        found = {}
        for row in self._relation_rows:
            if not row["temporary"]:
                identity = (str(row["catalog"]), str(row["schema"]), str(row["name"]))
                definition = None if row["kind"] == "table" else str(row["definition"] or "")
                found[folded(identity)] = CatalogRelation(identity, definition)
        return found

    def references(self, home: tuple[str, str]) -> list[tuple[str, str]]:
        """Pairs of tables of a schema of which the first refers to the second by a foreign key."""
        rows = self._read("references", (*home, ""))
        return [(str(row["name"]), str(row["referenced"])) for row in rows]

    @cached_property
    def databases(self) -> dict[str, dict[str, Any]]:
        """Attached databases by folded name: catalog, path, readonly, internal, type."""
        return {fold(str(row["catalog"])): row for row in self._read("databases")}

    def numbers_rows(self, identity: Identity) -> bool:
        """Whether a table is DuckDB's own, of which ``rowid`` counts the places of rows from 0 up. Of an
        attached database of another kind it can be missing, negative, or as large as any integer."""
        return str(self.databases[fold(identity[0])]["type"]) == "duckdb"

    @cached_property
    def schemas(self) -> dict[tuple[str, str], Namespace]:
        """Schemas by folded (catalog, schema)."""
        pairs = [(str(row["catalog"]), str(row["schema"])) for row in self._read("schemas")]
        return {(fold(catalog), fold(schema)): (catalog, schema) for catalog, schema in pairs}

    @cached_property
    def _function_rows(self) -> list[Function]:
        return functions_of(self._engine)

    @cached_property
    def _macros(self) -> frozenset[str]:
        """Macros that somebody has made, of values and of tables."""
        made = (row for row in self._function_rows if "macro" in row.kind and not row.internal)
        return frozenset(fold(row.name) for row in made)

    def refuse_shadowing(self) -> None:
        """Refuse what stands for built-in functions: our own SQL would call it.

        Raises:
            SourceError: naming the macros, or the functions registered under built-in names.
        """
        taken = sorted(self._macros & builtin_names())
        if taken:
            raise SourceError(
                f"The database has macros with the names of built-in functions: {listed(taken)}. The SQL "
                "that counts would call these macros, and privacy could not be guaranteed. Rename or drop "
                "them."
            )
        changed = changed_builtins(self._function_rows)
        if changed:
            raise SourceError(
                f"Built-in functions of DuckDB were changed: {listed(changed)}. A function was registered "
                "under their names (create_function, or an extension), or they were removed. The SQL that "
                "counts would call the wrong function, and privacy could not be guaranteed. Open a new "
                "connection and give your functions other names (remove_function also removes the built-in "
                "function), or give the path of the database file instead of a connection."
            )

    def is_macro(self, function: str) -> bool:
        """Whether a user-defined macro, of values or of tables, has this name."""
        return fold(function) in self._macros

    @cached_property
    def _functions(self) -> dict[str, bool]:
        """Whether all that a name can mean here is built in, row-wise and repeatable."""
        known = builtin_overloads()
        return {
            name: found <= known.get(name, set()) and all(rowwise for *_, rowwise in found)
            for name, found in overloads(self._function_rows).items()
        }

    @cached_property
    def _named_enums(self) -> dict[str, tuple[str, ...]]:
        """Labels of every named ENUM type by the spelling the catalog gives a column of that type."""
        named = {}
        for row in self._read("enums"):
            labels = tuple(str(label) for label in row["labels"])
            quoted = ", ".join("'" + label.replace("'", "''") + "'" for label in labels)
            named[f"ENUM({quoted})"] = labels
        return named

    def find(self, parts: tuple[str, ...], scope: Namespace | None = None) -> CatalogRelation | None:
        """The relation that ``[catalog.][schema.]name`` means, or None.

        Args:
            parts: one to three parts, without quotes.
            scope: look an unqualified name up here (the home of a view) instead of the search path.

        Raises:
            SourceError: the first of two parts is a catalog and a schema, both with such a relation.
        """
        path = (scope, (scope[0], _DEFAULT_SCHEMA)) if scope is not None else self.session.path
        if len(parts) == 1:
            return self._first((catalog, schema, parts[0]) for catalog, schema in path)
        if len(parts) == 3:
            return self._first([parts])
        as_schema = self._first((catalog, *parts) for catalog, _ in path)
        as_catalog = self._first([(parts[0], _DEFAULT_SCHEMA, parts[1])])
        if as_schema is not None and as_catalog is not None and as_schema != as_catalog:
            raise SourceError(
                f"{shorten(display_name(*parts))} can mean {shorten(display_name(*as_schema.identity))} and "
                f"{shorten(display_name(*as_catalog.identity))}; write the name in full."
            )
        return as_schema or as_catalog

    def look_up(self, text: str) -> CatalogRelation | None:
        """The relation a person's text means: the text itself as a name, or a dotted, quoted name.

        Raises:
            SourceError: the two readings find different relations.
        """
        whole = self.find((text,))
        parts = split_name(text)
        dotted = self.find(parts) if parts is not None and parts != (text,) else None
        if whole is not None and dotted is not None and whole != dotted:
            raise SourceError(
                f"{shorten(text)!r} can mean {shorten(display_name(*whole.identity))} and "
                f"{shorten(display_name(*dotted.identity))}; quote the parts of the name."
            )
        return whole or dotted

    def temporary(self, text: str) -> bool:
        """Whether a temporary table or view, or a registered data frame, of this connection is meant."""
        parts = split_name(text) or (text,)
        wanted = {fold(text)}
        if len(parts) == 1 or fold(parts[0]) in ("temp", _DEFAULT_SCHEMA):
            wanted.add(fold(parts[-1]))
        return any(fold(name) in wanted for name in self.temporary_names)

    @cached_property
    def temporary_names(self) -> tuple[str, ...]:
        """Temporary tables and views, and registered data frames, of this connection."""
        return tuple(str(row["name"]) for row in self._relation_rows if row["temporary"])

    def near(self, text: str) -> list[str]:
        """Relations with a name like the last part of ``text``, for messages."""
        names = near_matches(last_part(text), (found.identity[2] for found in self.relations.values()))
        return [
            display_name(*found.identity)
            for name in names
            for found in self.relations.values()
            if found.identity[2] == name
        ][:3]

    def columns(self, identity: Identity) -> tuple[Column, ...]:
        """The columns of a table with their constraints, as the catalog states them."""
        rows = self._read("columns", identity)
        constraints = self._constraints(identity)
        unique = {fold(names[0]) for kind, _, names in constraints if kind != "CHECK" and len(names) == 1}
        checks = check_domains(text for kind, text, _ in constraints if kind == "CHECK")
        refused = self._refused(identity, [str(row["name"]) for row in rows])
        return tuple(
            replace(
                self._column(row["name"], row["sql_type"], bool(row["not_null"])),
                unique=fold(str(row["name"])) in unique,
                check=checks.get(fold(str(row["name"]))),
                refused=refused.get(fold(str(row["name"])), ""),
            )
            for row in rows
        )

    def types(self, identity: Identity) -> dict[str, str]:
        """The columns of a table in order, with their types."""
        return {str(row["name"]): str(row["sql_type"]) for row in self._read("columns", identity)}

    def _refused(self, identity: Identity, names: Sequence[str]) -> dict[str, str]:
        """Generated columns whose expression is not row-wise, by folded name, with the reason."""
        generated = self._generated(identity)
        if generated is None:
            return {fold(column): "is in a table whose generated columns cannot be found" for column in names}
        found = {}
        for column, expression in generated:
            fault = check_expression(expression, names, self).fault
            if fault:
                found[fold(column)] = f"is generated by an expression that is not accepted: {fault}"
        return found

    def _generated(self, identity: Identity) -> list[tuple[str, str]] | None:
        rows = self._read("table_sql", identity)
        return generated_columns(str(rows[0]["sql"]) if rows else "")

    def computes(self, identity: Identity) -> bool:
        """Whether a table may have generated columns."""
        return self._generated(identity) != []

    def checks(self, identity: Identity, columns: Sequence[Column]) -> tuple[Check, ...]:
        """The CHECK constraints of a table that our check of expressions knows to be row-wise."""
        names = [column.name for column in columns]
        found = []
        for kind, text, _ in self._constraints(identity):
            checked = check_expression(text, names, self) if kind == "CHECK" else None
            if checked is not None and not checked.fault:
                found.append(Check(checked.sql, tuple(sorted(checked.columns))))
        return tuple(found)

    def _constraints(self, identity: Identity) -> list[tuple[str, str, tuple[str, ...]]]:
        """Kind, expression (of a CHECK) and columns."""
        return [
            (str(row["kind"]), str(row["expression"] or ""), tuple(map(str, row["columns"])))
            for row in self._read("constraints", identity)
        ]

    def describe_files(self, call: Fragment, what: str) -> tuple[Column, ...]:
        """The columns of a read_parquet or read_csv call; it is bound, not read.

        Raises:
            SourceError: it cannot be bound.
        """
        return self._describe(render("source/describe", relation=call), what)

    def describe_query(self, query: Fragment, what: str) -> tuple[Column, ...]:
        """The columns of a query under the names it gives them; it is bound, not read.

        Raises:
            SourceError: it cannot be bound.
        """
        return self._describe(render("source/describe_query", query=query), what)

    def _describe(self, sql: Fragment, what: str) -> tuple[Column, ...]:
        rows: list[dict[str, Any]] | None = None
        with contextlib.suppress(EngineFailure):
            rows = _rows(self._engine.fetch(sql, step=_READING))
        if rows is None:
            raise SourceError(
                f"The database does not accept {what}. Run it yourself with LIMIT 0 to check its names and "
                "types."
            )
        return tuple(self._column(row["column_name"], row["column_type"], False) for row in rows)

    def file(self, path: str, form: CsvForm = _PLAIN) -> Fragment | None:
        """The SQL after FROM for a file, a folder or a glob; None when there is none."""
        files = find_files(path)
        return None if files is None else self.file_call(files, form=form)

    def file_call(self, files: FileSet, *, form: CsvForm = _PLAIN) -> Fragment:
        """The read_parquet or read_csv call for ``files``, with every option stated.

        Args:
            files: of one format.
            form: how they are written if they are CSV.

        Raises:
            SourceError: a header or schema is unreadable, or has clashing names; ``form`` does not fit them.
        """
        paths = comma(path_literal(path) for path in files.paths)
        if files.format == "parquet":
            refuse_clashes(self._parquet_names(files.paths[0]), f"The file {shorten(files.paths[0])!r}")
            self._refuse_mixed_schemas(files.paths)
            return render("source/read_parquet", paths=paths)
        return csv_call(files, paths, form)

    def _refuse_mixed_schemas(self, paths: Sequence[str]) -> None:
        """All files of a source have the columns of the first, in its order and of its types."""
        schemas = [
            self.describe_files(
                render("source/read_parquet", paths=path_literal(path)), f"the file {shorten(path)!r}"
            )
            for path in (paths if len(paths) > 1 else ())
        ]
        for path, schema in zip(paths, schemas, strict=False):
            if schema != schemas[0]:
                raise SourceError(
                    f"{shorten(path)!r} has other columns than {shorten(paths[0])!r}. The files of a "
                    "source must have the same columns, in the same order and of the same types."
                )

    def syntax(self, sql: str) -> Syntax | None:
        """DuckDB's own reading of a query, or None if it cannot parse it."""
        with contextlib.suppress(EngineFailure, ValueError, RecursionError):
            fetched = self._engine.fetch(
                render("source/syntax", query=literal(sql)), step="parsing the query"
            )
            return read_syntax(str(fetched["tree"][0]))
        return None

    def rowwise(self, function: str) -> bool:
        """Whether every scalar, aggregate or macro of this name is built in, row-wise and repeatable."""
        return self._functions.get(fold(function), False)

    def _first(self, identities: Iterable[Sequence[str]]) -> CatalogRelation | None:
        for catalog, schema, name in identities:
            found = self.relations.get((fold(catalog), fold(schema), fold(name)))
            if found is not None:
                return found
        return None

    def _column(self, name: Any, sql_type: Any, not_null: bool) -> Column:
        return Column(str(name), str(sql_type), not_null, self._named_enums.get(str(sql_type)))

    def _parquet_names(self, path: str) -> tuple[str, ...]:
        """Top-level column names as the file spells them (DuckDB renames clashing ones)."""
        rows: list[dict[str, Any]] = []
        with contextlib.suppress(EngineFailure):
            sql = render("source/parquet_names", path=path_literal(path))
            rows = _rows(self._engine.fetch(sql, step="reading the schema of the file"))
        if not rows:
            raise SourceError(f"The file {shorten(path)!r} is not a readable Parquet file.")
        names: list[str] = []
        position = 1
        while position < len(rows):
            names.append(str(rows[position]["name"]))
            pending = 1
            while pending and position < len(rows):
                pending += int(rows[position]["children"]) - 1
                position += 1
        return tuple(names)


def escaped_path(path: str) -> str:
    """A path in a form that DuckDB does not take for a glob."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in path)


def path_literal(path: str) -> Fragment:
    """``escaped_path`` as a literal."""
    return literal(escaped_path(path))


def folded(identity: Identity) -> Identity:
    """A full name as the database compares names."""
    return (fold(identity[0]), fold(identity[1]), fold(identity[2]))


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a small result as dictionaries; a masked cell is None."""
    names = list(columns)
    lists = [columns[name].tolist() for name in names]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*lists, strict=True)]
