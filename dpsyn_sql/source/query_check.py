"""Is every row of a query's result computed from one unit's rows? Checked on the syntax tree, fail-closed.

An aggregate, a self-join or a window over the rows of several lets one person change many rows of the
result, which breaks every sensitivity. Each table is replaced by its full name (so that no Python variable
can stand in for it), each view by its definition; every node of the tree must be allowed in its place; and
the text that runs is printed from that tree. DuckDB's own parser then reads the text again: its clauses,
functions and kinds of expression must be allowed too, so that no difference between two parsers lets
anything through, and no two private tables may meet in a join.

Casts that can fail are not refused here; a failure reaches the operator only (docs/privacy.md).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import sqlglot
import sqlglot.expressions as exp

from dpsyn_sql.errors import SourceError
from dpsyn_sql.source import file_options, traces
from dpsyn_sql.source import query_words as words
from dpsyn_sql.source.csv_form import CsvForm
from dpsyn_sql.source.names import Identity, Namespace, fold, shorten
from dpsyn_sql.source.origins import Origins, origins_of
from dpsyn_sql.source.query_tree import (
    PARSER_TROUBLE,
    Node,
    argument_fault,
    clause_fault,
    in_select_list,
    is_cte,
    is_relation,
    operands,
    parsed,
    print_tree,
    refused_construct,
    write_name,
)
from dpsyn_sql.source.query_words import (
    Name,
    Syntax,
    expressions_fault,
    multiplies,
    structure_fault,
    trusted_fault,
    windows_fault,
)
from dpsyn_sql.sqltext.fragments import Fragment, ident

_DEEPEST_VIEW = 32
_PLAIN = CsvForm()


@dataclass(frozen=True, slots=True)
class CatalogRelation:
    """A table or view of the catalog: (catalog, schema, name) and a view's CREATE statement."""

    identity: Identity
    definition: str | None = None

    @property
    def kind(self) -> str:
        """``"view"`` or ``"table"``."""
        return "table" if self.definition is None else "view"


class QueryCatalog(Protocol):
    """What the check asks of the database; nothing here reads a row."""

    def find(self, parts: tuple[str, ...], scope: Namespace | None) -> CatalogRelation | None:
        """The relation a reference means, looked up in a view's own schema if ``scope`` is given."""

    def file(self, path: str, form: CsvForm) -> Fragment | None:
        """The SQL after FROM that reads a file, with nothing guessed from its rows; None if missing."""

    def syntax(self, sql: str) -> Syntax | None:
        """The engine's own reading of a query, or None if it cannot parse it."""

    def rowwise(self, function: str) -> bool:
        """Whether every function of this name is built in, scalar and repeatable."""

    def is_macro(self, function: str) -> bool:
        """Whether a user-defined macro has this name."""


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query fit to be put after FROM in brackets: every name in full, views written out.

    ``relations`` and ``files`` are everything it reads, views and public tables included; ``forms`` are the
    files with how each is written, one that is read twice twice;
    ``public`` are the tables that the owner calls public. ``multiplies`` says that one row of the
    private table can become several rows of the result (a join, or UNION ALL of a table with itself).
    ``ordered``: a window function puts rows into an order, so that none of them may hold a VARIANT.
    """

    sql: Fragment
    relations: tuple[Identity, ...]
    files: tuple[str, ...]
    public: tuple[Identity, ...]
    multiplies: bool
    ordered: bool = False
    forms: tuple[tuple[str, CsvForm], ...] = ()


def check_query(
    sql: str,
    catalog: QueryCatalog,
    public: frozenset[Identity] = frozenset(),
    *,
    trusted: bool = False,
    unit: str | None = None,
) -> CheckedQuery:
    """Check a query, or only resolve its names if the owner answers for it (``trusted``).

    ``unit``: the column of the result that tells whose row it is; None if each row is a unit.

    Raises:
        SourceError: it is no single SELECT, names something unknown, or (not trusted) holds a
            construct that can mix rows; the message names the construct.
    """
    check = _Check(catalog, public, trusted, unit)
    return check.finish(parsed(sql), None)


def check_view(
    view: CatalogRelation,
    catalog: QueryCatalog,
    public: frozenset[Identity] = frozenset(),
    *,
    trusted: bool = False,
    unit: str | None = None,
) -> CheckedQuery:
    """Check a view through its definition; the result stands for the view. ``unit``: as in ``check_query``.

    Raises:
        SourceError: as ``check_query``.
    """
    check = _Check(catalog, public, trusted, unit)
    check.relations[view.identity] = None
    return check.finish(_whole(view), view.identity[:2])


def origins(
    source: str | CatalogRelation,
    catalog: QueryCatalog,
    types: Callable[[Identity | Fragment], Mapping[str, str]],
) -> dict[str, Origins] | None:
    """Where each column of a query or a view comes from (``source/origins.py``); None if it cannot be
    followed. ``types``: the columns of a table, or of the files that a call reads, with their types."""
    check = _Check(catalog, frozenset(), trusted=False, unit=None)
    with contextlib.suppress(SourceError):
        tree = parsed(source) if isinstance(source, str) else _whole(source)
        check._bind(tree, None if isinstance(source, str) else source.identity[:2])
        calls = {path: check.calls[token] for token, path in check.tokens.items()}
        return origins_of(
            tree, check.tokens, lambda table: types(calls[table] if isinstance(table, str) else table)
        )
    return None


def _whole(view: CatalogRelation) -> Node:
    """The query of a view, with the names that it gives its columns."""
    query, columns = _definition(view)
    if not columns:
        return query
    alias = exp.TableAlias(this=exp.to_identifier("dpsyn_view", quoted=True), columns=columns)
    return exp.select("*").from_(exp.Subquery(this=query, alias=alias))


def _refuse(construct: str) -> SourceError:
    return SourceError(f"The query uses {construct}, which may mix rows. {words.HOW_TO_GO_ON}")


def _definition(view: CatalogRelation) -> tuple[Node, list[Node]]:
    """The query in a view's CREATE statement and the column names it declares."""
    tree: Any = None
    with contextlib.suppress(*PARSER_TROUBLE):
        tree = sqlglot.parse_one(view.definition or "", read="duckdb")
    query = tree.args.get("expression") if isinstance(tree, exp.Create) else None
    if not isinstance(query, exp.Query):
        raise SourceError(
            f"The definition of the view {shorten('.'.join(view.identity))} cannot be parsed, so it cannot "
            "be checked; release a table or a query instead."
        )
    head = tree.this
    names = head.expressions if isinstance(head, exp.Schema) else []
    columns = [exp.to_identifier(column.name, quoted=True) for column in names]
    return query, columns


@dataclass
class _Check:
    """One walk; it collects what is read. State lives only as long as the walk."""

    catalog: QueryCatalog
    public: frozenset[Identity]
    trusted: bool
    unit: str | None
    relations: dict[Identity, None] = field(default_factory=dict)
    used_public: dict[Identity, None] = field(default_factory=dict)
    files: list[tuple[str, CsvForm]] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    calls: dict[str, Fragment] = field(default_factory=dict)
    private_of_table: dict[Name, bool] = field(default_factory=dict)
    windows: list[Node] = field(default_factory=list)

    def finish(self, tree: Node, scope: Namespace | None) -> CheckedQuery:
        """Bind, check and print."""
        self._bind(tree, scope)
        if self.trusted:
            self._refuse_macros(tree)
        else:
            self._judge(tree)
        completed: dict[str, Fragment] = {}
        stem = f"dpsyn_{uuid.uuid4().hex}"
        for window in self.windows:
            traces.settle(window, completed, stem)
        text = print_tree(tree)
        if text is None:
            raise _refuse("a construct that this check cannot write")
        for token, part in completed.items():
            text = text.replace(ident(token), part)
        several = self._judge_again(text)
        for token, call in self.calls.items():
            text = text.replace(ident(token), call)
        paths = dict.fromkeys(path for path, _ in self.files)
        read = (tuple(self.relations), tuple(paths), tuple(self.used_public))
        forms = tuple(self.files)
        return CheckedQuery(Fragment(text), *read, several, ordered=bool(self.windows), forms=forms)

    def _judge_again(self, text: str) -> bool:
        """What DuckDB's parser sees in the printed text must be allowed too; whether rows can multiply."""
        syntax = self.catalog.syntax(text)
        if syntax is None or syntax.statements != 1:
            raise _refuse("syntax that the database reads otherwise than this check")
        if self.trusted:
            fault = trusted_fault(syntax, self._private, self.catalog.is_macro)
            if fault is not None:
                raise SourceError(f"The query uses {fault}. This is refused even with trust_query=True.")
            return True
        traced = self.unit is not None and bool(self.windows)
        fault = expressions_fault(syntax, self.catalog.rowwise, windows=traced)
        fault = fault or structure_fault(syntax, self._private, windows=traced)
        if traced and fault is None:
            fault = windows_fault(syntax, str(self.unit), self.catalog.is_macro)
        if fault is not None:
            raise _refuse(fault)
        if not any(map(self._private, syntax.tables)):
            raise SourceError(
                "The query reads no private table: it names only constants and tables of public_tables=."
            )
        return multiplies(syntax, self._source)

    def _source(self, name: Name) -> Hashable | None:
        """What holds the private rows of a table of the printed text; two paths can mean one file."""
        if not self._private(name):
            return None
        return "file" if name[0] in self.tokens else tuple(map(fold, name))

    def _private(self, name: Name) -> bool | None:
        """Whether a table of the printed text holds private rows; None if this check has not bound it."""
        if len(name) == 1 and name[0] in self.tokens:
            return True
        return self.private_of_table.get(tuple(map(fold, name)))

    # -- names ----------------------------------------------------------------------------------

    def _bind(self, tree: Node, scope: Namespace | None, depth: int = 0) -> None:
        """Replace each table by its full name and each view by its definition, and remember what they are."""
        for table in list(tree.find_all(exp.Table)):
            if isinstance(table.this, exp.Func):
                self._bind_function(table, scope)
                continue
            name_parts = tuple(part.name for part in table.parts)
            if len(name_parts) == 1 and is_cte(table, name_parts[0]):
                hidden = self.catalog.find(name_parts, scope) if self.trusted else None
                if hidden is not None:  # the database may read it after all; it is charged in any case
                    self._remember(hidden)
                continue
            relation = self.catalog.find(name_parts, scope)
            if relation is not None:
                self._remember(relation)
                write_name(table, relation.identity)
                if relation.kind == "view" and not self.trusted:
                    self._write_out(table, relation, depth)
            elif len(name_parts) > 1 or not self._bind_file(table, name_parts[0]):
                raise SourceError(
                    f"The query reads {shorten('.'.join(name_parts))!r}, which is not a table or view of the "
                    "database or a file. Write a data frame in a Python variable to a table first."
                )

    def _remember(self, relation: CatalogRelation) -> None:
        """Note what is read. A trusted query is not checked, but what its views read is charged."""
        if relation.identity in self.relations:
            return
        self.relations[relation.identity] = None
        if relation.identity in self.public and not self.trusted:
            self.used_public[relation.identity] = None
        if self.trusted or relation.kind == "table":  # else the view is written out
            self.private_of_table[tuple(map(fold, relation.identity))] = relation.identity not in self.public
        if self.trusted and relation.kind == "view":
            query, _ = _definition(relation)
            self._refuse_macros(query)
            self._bind(query, relation.identity[:2])

    def _refuse_macros(self, tree: Node) -> None:
        """A macro can read tables that do not show in the query."""
        for call in tree.find_all(exp.Func):
            name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
            if self.catalog.is_macro(name):
                raise SourceError(
                    f"The query uses the macro {shorten(name)}. Macros are refused even with "
                    "trust_query=True: they can read tables that are not charged. Write out its definition."
                )

    def _bind_function(self, table: exp.Table, scope: Namespace | None) -> None:
        """``read_parquet('path')`` and ``read_csv('path', ...)`` with constant options are files."""
        call = table.this
        name = fold(call.name if isinstance(call, exp.Anonymous) else call.sql_name())
        arguments = [
            value for value in (call.args.get("this"), *call.expressions) if isinstance(value, exp.Expression)
        ]
        path = arguments[0].name if arguments and arguments[0].is_string else None
        if path is not None and (name == "read_csv" or (name == "read_parquet" and len(arguments) == 1)):
            if not self._bind_file(table, path, file_options.csv_form_of(arguments[1:])):
                raise SourceError(f"The query reads {shorten(path)!r}, which is not a file.")
        elif not self.trusted:
            raise _refuse(f"the table function {shorten(name)} ({file_options.ALLOWED})")
        elif name not in words.TABLE_FUNCTIONS_WITHOUT_FILES:
            raise SourceError(
                f"The query uses the table function {shorten(name)}. Others can read rows to find their "
                f"columns, before anything is charged; even with trust_query=True {file_options.ALLOWED}."
            )

    def _bind_file(self, table: exp.Table, path: str, form: CsvForm = _PLAIN) -> bool:
        call = self.catalog.file(path, form)
        if call is None:
            return False
        token = f"dpsyn_file_{uuid.uuid4().hex}"
        self.files.append((path, form))
        self.tokens[token], self.calls[token] = path, call
        if not table.alias:
            stem = path.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0] or "file"
            alias = exp.to_identifier(stem, quoted=True)
            table.set("alias", exp.TableAlias(this=alias))
        table.set("this", exp.to_identifier(token, quoted=True))
        return True

    def _write_out(self, node: exp.Table, view: CatalogRelation, depth: int) -> None:
        """Put a view's definition where its name stood."""
        if depth >= _DEEPEST_VIEW:
            raise SourceError("Views are nested too deeply to be checked.")
        query, columns = _definition(view)
        self._bind(query, view.identity[:2], depth + 1)
        alias = node.args.get("alias")
        view_name = exp.to_identifier(view.identity[2], quoted=True)
        name = alias.this if alias is not None and alias.this else view_name
        renamed = list(alias.columns) if alias is not None else []
        names = renamed + columns[len(renamed) :]
        node.replace(
            exp.Subquery(
                this=query, alias=exp.TableAlias(this=name, columns=names), joins=node.args.get("joins")
            )
        )

    # -- what may stand where --------------------------------------------------------------------

    def _judge(self, tree: Node) -> None:
        """Every node must be allowed in its place. What meets in joins is judged on the printed text."""
        waiting = [tree]
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, exp.Window) and self.unit is not None and in_select_list(node):
                fault = traces.window_fault(node, self.unit)
                self.windows.append(node)
                waiting += traces.operands(node)
            else:
                fault = self._fault(node, is_relation=node is tree or is_relation(node))
                waiting += operands(node)
            if fault is not None:
                raise _refuse(fault)

    def _fault(self, node: Node, *, is_relation: bool) -> str | None:
        if isinstance(node, exp.Query | exp.UDTF | exp.Table) and not is_relation:
            return refused_construct(node)
        for kind, allowed in words.ALLOWED_CLAUSES:
            if isinstance(node, kind):
                further = ("qualify",) if isinstance(node, exp.Select) and self.unit is not None else ()
                return argument_fault(node, *allowed, *further) or clause_fault(node)
        if not is_relation:
            return refused_construct(node)
        return "a LATERAL join or UNNEST" if isinstance(node, exp.Lateral | exp.Unnest) else node.key.upper()
