"""From a request to its open source and the tree of its tables: whose row each row is, and their shapes.

Everything here is decided from public facts, before anything is charged, and every refusal of declarations
happens here. Of private tables no row is read; public tables that are referred to are read openly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.cuts import evenly_binned
from dpsyn_sql.attributes.database_file import read_database
from dpsyn_sql.attributes.file import shape_of
from dpsyn_sql.attributes.made import key_role
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.sliced import shape_of_slice, without_time
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.attributes.unit import check_unit
from dpsyn_sql.common.notices import warn
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.identities import given_of
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.engines.source_session import Connection, SourceSession
from dpsyn_sql.errors import DomainError, InputError, SourceError, said
from dpsyn_sql.front.references import Lookups, PublicRows, with_references
from dpsyn_sql.front.request import Request
from dpsyn_sql.planning.explain import stay_text
from dpsyn_sql.planning.limits import read_limits
from dpsyn_sql.planning.panel import Panel
from dpsyn_sql.planning.running import Total
from dpsyn_sql.planning.tree import Table, Tree, roles_of
from dpsyn_sql.planning.tying.keys import Given
from dpsyn_sql.planning.tying.tables import check_weights, tied_tables
from dpsyn_sql.private.rows.relations import discovery_relation, sliced_source, typed_relation
from dpsyn_sql.rows.sample.ticks import ordering
from dpsyn_sql.rows.write.expressions import check_expressions
from dpsyn_sql.source.names import display_name, fold, listed
from dpsyn_sql.source.relation import ROW_OF_RESULT, Column, PrivacyUnit, Relation, Source


@dataclass(frozen=True, slots=True)
class TreeOfTables:
    """The tables of a release, all that is public about them.

    ``tree``: in the relation of each table references are codes already, in columns of their own.
    ``shapes``: by table what is written; its measured attributes are first those of its own columns, then its
    references. ``lookups``: by table and by attribute the rows that a reference to a public table can name.
    ``sources``: by table the rows that discovery reads, and the unit.
    """

    tree: Tree
    shapes: Mapping[str, Shape]
    lookups: Mapping[str, Mapping[str, PublicRows]]
    sources: Mapping[str, Source]

    @property
    def orders(self) -> dict[str, str]:
        """By table the attribute that orders its rows; tables without one are not named."""
        return {table.name: table.order for table in self.tree if table.order}


def _declared(request: Request) -> Request:
    """The request of several tables, with the unit and the tables of their file where it names none.

    Raises:
        InputError: neither names tables, or neither names the unit.
        DomainError: the file cannot be read.
    """
    file = read_database(request.domain)
    tables, unit = request.tables or tuple(file.tables), request.unit or file.unit
    if not tables:
        raise InputError(
            "No table is named: give a list of tables as the source, such as ['customers', 'orders'], or "
            "their file as domain=."
        )
    if not unit:
        raise InputError(
            "unit= is missing: name the key of the table whose rows are protected, such as "
            "'customers.customer_id'. It can stand in the file of the tables, too."
        )
    return replace(
        request,
        source=tables,
        unit=unit,
        public_tables=tuple(request.public_tables) or tuple(file.public),
    )


@contextmanager
def opened_tree(con: Connection, request: Request) -> Iterator[tuple[Request, SourceSession, TreeOfTables]]:
    """The request with what its file says, its open tables, and their tree.

    Raises:
        InputError, SourceError: the request, the tables or the file are refused.
    """
    request.check()
    request = _declared(request)
    limits = read_limits(request.limits)
    with open_source(
        con, request.tables, public_tables=request.public_tables, memory_limit=limits.engine
    ) as session:
        session.choose_scratch(limits.scratch)
        yield request, session, tree_of(request, session)


def tree_of(request: Request, session: SourceSession) -> TreeOfTables:
    """The tree of the tables, and the shape of each.

    Args:
        request: as ``_declared`` gives it.
        session: its open tables.

    Raises:
        InputError: the tables are no tree, or a name, key, bound or public table is refused.
        DomainError: with all faults of the domains of all tables.
    """
    file = read_database(request.domain)
    most = request.most if isinstance(request.most, Mapping) else {}
    given = given_of(session, file, request.unit or "", most, request.exclude)
    tree = tied_tables(given)
    check_weights(tree)
    _check_unit_name(tree)
    _check_excluded_keys(tree, given)
    faults, shapes = list[str](), dict[str, Shape]()
    for table in tree:
        try:
            shapes[table.name] = _own_shape(table, tree, given, session, discover=request.discover)
        except DomainError as error:
            faults += [f"{table.name}: {fault}" for fault in error.faults or (str(error),)]
    if faults:
        raise DomainError("The domains do not fit the tables:", faults)
    lookups, found = Lookups(session.engine, tree), dict[str, Mapping[str, PublicRows]]()
    tables = list[Table]()
    for table in tree:
        seen, attributes, rows = with_references(table, lookups)
        shape = _with_ties(shapes[table.name], table, tree, attributes, given)
        if seen.order:
            seen = replace(seen, order=_ordered(shape, seen))
        shapes[table.name], found[table.name] = shape, rows
        tables.append(seen)
    tree = replace(tree, tables=tuple(tables))
    return TreeOfTables(tree, shapes, found, {table.name: _source_of(tree, table) for table in tree})


def _source_of(tree: Tree, table: Table) -> Source:
    """The rows of a table, each with the unit that it belongs to."""
    relation, column = discovery_relation(tree, table.name)
    unit = PrivacyUnit(column, tree.rows_per_unit(table.name), together=True, order=table.order or None)
    return Source(relation, unit)


def _check_unit_name(tree: Tree) -> None:
    """A ledger calls single rows, and rows of results, by words that a key must not have.

    Raises:
        InputError: the key of the units has such a name.
    """
    name = ", ".join(tree.root.key)
    if fold(name) in ("row", ROW_OF_RESULT):
        raise InputError(
            f"The key of {tree.root.name} is called {name!r}, which means single rows to a ledger. Rename "
            "the column, or give it another name in a view."
        )


def _check_excluded_keys(tree: Tree, given: Given) -> None:
    """What ties tables together is written, or the other tables would name what is not there."""
    for table in tree:
        ties = {*table.foreign_key, *(table.key if table is tree.root or _named(table, tree) else ())}
        lost = ties & given.excluded.get(table.name, frozenset())
        if lost:
            raise InputError(
                f"exclude= leaves out {table.name}.{min(lost)}, which ties {table.name} to other tables: it "
                "gets fresh values. Take it from exclude=."
            )


def _named(table: Table, tree: Tree) -> bool:
    """Whether rows of other tables, or of this one, name its rows."""
    referred = any(table.name == one.table for other in tree for one in other.references)
    return referred or bool(tree.children(table.name))


# -- shapes ------------------------------------------------------------------------------------------


def _own_shape(table: Table, tree: Tree, given: Given, session: SourceSession, *, discover: bool) -> Shape:
    """The shape of the columns that are no keys, or measured parts of one.

    Raises:
        DomainError: with the faults of its domain.
    """
    domain, tied = given.words(table.name).domain, table.tied
    faults = [*domain.faults, *_measured_names(table, tree)]
    kept = {
        text: entry
        for text, entry in domain.columns.items()
        if (column := given.private[table.name].column(text)) is None or column.name not in tied
    }
    if domain.per_unit:
        faults.append(
            f"per_unit: is for one table; take it away from {listed(sorted(domain.per_unit))}: what a unit "
            "has once is a column of its own table"
        )
    domain = replace(domain, columns=kept, faults=tuple(faults))
    excluded = given.excluded.get(table.name, frozenset()) | tied
    shape = None
    try:
        shape = domain.to_shape(
            _columns(table, tree),
            sorted(excluded),
            discover=discover,
            checks=table.relation.checks,
            tied=True,
        )
    except SourceError as error:
        faults = [str(error)]
    if shape is None:
        raise DomainError("", faults)
    return check_expressions(shape, session.engine, DuckDBCatalog(session.engine))


def _columns(table: Table, tree: Tree) -> tuple[Column, ...]:
    """The columns of a table: a key that other rows name has no NULL, for rows without it are left out."""
    never = table.measured_key if _named(table, tree) else frozenset[str]()
    return tuple(
        replace(column, not_null=True) if column.name in never else column
        for column in table.relation.columns
    )


def _measured_names(table: Table, tree: Tree) -> Iterator[str]:
    """Faults of a key that other rows name and that nothing makes: measured values may repeat."""
    if not table.measured_key or not _named(table, tree) or tree.has_unique_key(table.name):
        return
    for column in table.key:
        if column in table.measured_key:
            yield (
                f"column {column!r} is a key of the table that other rows name, and measured values may "
                "repeat: such a key needs a part without an entry. Take away its entry"
            )


def _with_ties(
    shape: Shape, table: Table, tree: Tree, attributes: tuple[Attribute, ...], given: Given
) -> Shape:
    """The same shape with its keys and references."""
    excluded = given.excluded.get(table.name, frozenset())
    written = [column for column in table.relation.columns if column.name not in excluded]
    own, tied = set(shape.order), table.tied
    types = {
        column.name: key_role(column, kind, "declared").sql_type
        for column in table.relation.columns
        if column.name in tied and (kind := parse_type(column.sql_type)) is not None
    }
    names = {column.name for column in written}
    ties = {role.name: role for role in roles_of(tree, table.name, types) if role.name in names}
    strict = {
        *shape.not_null,
        *(column.name for column in written if column.name in tied and column.not_null),
    }
    return replace(
        shape,
        measured=(*shape.measured, *attributes),
        roles=(*shape.roles, *ties.values()),
        order=tuple(column.name for column in written if column.name in own or column.name in ties),
        not_null=tuple(column.name for column in written if column.name in strict),
    )


def _ordered(shape: Shape, table: Table) -> str:
    """The attribute that orders the rows of a table.

    Raises:
        InputError: it cannot order rows, or the rows are the units.
    """
    if table.parent is None:
        raise InputError(f"{table.name} holds the units: its rows have no order:. Take it away.")
    made = {role.name for role in shape.fresh}
    if fold(table.order) in map(fold, made.intersection(table.key)):
        raise InputError(
            f"{display_name(table.name)}: order={said(table.order)} is a part of the key, which gets made-up "
            "values. Declare it under columns:, with its bounds, and it is measured."
        )
    own = replace(shape, measured=tuple(one for one in shape.measured if one.name not in table.tied))
    message = ""
    try:
        return ordering(own, table.order)
    except InputError as error:
        message = str(error)
    raise InputError(f"{display_name(table.name)}: {message}")


# -- one table ---------------------------------------------------------------------------------------


def tree_of_one(
    request: Request, session: SourceSession, total: Total | None, panel: Panel | None
) -> TreeOfTables:
    """The tree of one table: its root is single rows, or the rows of the units that a column names.

    Raises:
        InputError, SourceError, DomainError: the unit, the order or the domain is refused.
    """
    source, shape = _resolved(request, session)
    if panel is not None and source.sliced is not None:
        shape = without_time(shape, source.sliced)
    elif total is not None:
        shape = _of_total(shape)
    elif source.sliced is not None:
        shape = shape_of_slice(shape, source.sliced)
    name = session.first.name
    return TreeOfTables(Tree((Table(name, source.relation, ()),)), {name: shape}, {}, {name: source})


def _of_total(shape: Shape) -> Shape:
    """Tables of different windows add up only if they have the same cells: bounds get equal bins.

    Raises:
        InputError: the domain of a column is not public.
    """
    measured = tuple(
        (evenly_binned(item) or item) if isinstance(item, Undiscovered) else item for item in shape.measured
    )
    shape = replace(shape, measured=measured)
    if shape.undiscovered:
        names = ", ".join(repr(column.name) for column in shape.undiscovered)
        raise InputError(
            f"A running total needs declared domains, and those of {names} would have to be discovered: in "
            "each window others would be found, so the tables of the windows would not add up. Declare them "
            "in the domain file (dpsyn init), or leave the columns out with exclude=."
        )
    return shape


def _resolved(request: Request, session: SourceSession) -> tuple[Source, Shape]:
    """What is protected, and what is public of its columns."""
    unit, relation = request.protected(), session.relation
    column = None if unit.column is None else check_unit(relation.columns, unit)
    _check_row(request.unit, relation)
    if column is not None:
        unit = replace(unit, column=column.name)
        if column.unique and request.most is None and unit.order is None:
            unit = replace(unit, max_rows=1, together=False)
    shape = shape_of(request.domain, relation, request.exclude, discover=request.discover, unit=column)
    untyped = shape.untyped
    shape = check_expressions(shape, session.engine, DuckDBCatalog(session.engine))
    if relation.strict:
        shape = shape.as_text(untyped)
    elif request.window is not None:
        sliced = fold(request.window.column)
        shape = shape.as_text([name for name in untyped if fold(name) == sliced])
    if unit.order is not None:
        unit = replace(unit, order=ordering(shape, unit.order))
    if stays := [name for name in untyped if name not in shape.untyped]:
        warn(stay_text(stays))
    return protected_source(request, session, unit, shape), shape


def _check_row(unit: str | None, relation: Relation) -> None:
    """``"Row"`` means single rows, unless there is a column of that name."""
    if unit is None:
        return
    taken = any(column.name == unit for column in relation.columns)
    if taken and unit != "row" and fold(unit) == "row":
        raise InputError(
            f"unit={unit!r} is ambiguous: it can mean single rows or the column of this "
            "name. Write 'row' for single rows, or rename the column."
        )


def protected_source(request: Request, session: SourceSession, unit: PrivacyUnit, shape: Shape) -> Source:
    """The rows that are read, and the unit that is protected."""
    source = Source(session.relation, unit)
    if request.window is not None:
        source = sliced_source(source.relation, unit, request.window, shape)
    if source.sliced is not None and request.series:
        source = replace(source, sliced=replace(source.sliced, together=True))
    if source.relation.strict:
        source = replace(source, relation=typed_relation(source.relation, shape))
    return source
