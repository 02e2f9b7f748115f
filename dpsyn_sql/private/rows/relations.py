"""The rows that are read, as SQL to put after FROM: of a slice, one window of a calendar or one declared
partition; of text that must be readable as its type; of two periods of a panel, joined; of a table of a tree,
with their units.

This runs on the private side of the door. Whether a row is in a slice is a total function of that row. With
``most`` and a unit column, which windows count is a function of the rows of its unit alone
(docs/privacy.md, "Windows and panels"). A row of a panel is a function of the rows of its unit alone, and a
unit has at most one ("Panels").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import count

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.attributes.types import SqlType, parse_type, tick_literal
from dpsyn_sql.attributes.unit import family_of
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.planning.panel import JOINS, LEAVES, STAYS, families_of_period, presence_domain
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.private.rows.codes import key_bytes, unit_bytes
from dpsyn_sql.private.rows.kept import Bound, rows_of_units
from dpsyn_sql.source.names import fold, name_hint, shorten
from dpsyn_sql.source.relation import Column, PrivacyUnit, Relation, Source
from dpsyn_sql.source.slices import Partition, Slice, Sliced, Window
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, ident, literal, number_text, text_as, text_bytes
from dpsyn_sql.sqltext.render import render

_ADVICE = "Cast the column in a query or view: TRY_CAST(day AS DATE) AS day."


@dataclass(frozen=True, slots=True)
class _Bound:
    """How the template restricts a unit to its first windows."""

    most: int
    unit: Fragment
    number: Fragment
    before: Fragment
    its_unit: Fragment
    its_number: Fragment
    a_unit: Fragment
    a_number: Fragment
    place: Fragment


def sliced_source(relation: Relation, unit: PrivacyUnit, wanted: Slice, shape: Shape) -> Source:
    """The source with the rows of one slice. Reads nothing.

    Raises:
        InputError: no such column, a type or value that makes no slice, or a bound that nothing enforces.
    """
    column = _column(relation.columns, wanted.column)
    _check_most(wanted, unit)
    read = (one for item in shape.measured for one in item.columns)
    declared = {one.name: one.type for one in read if one.source is None}
    decimal = relation.decimal if relation.kind == "csv" else ""
    kind = declared.get(column.name) if decimal else parse_type(column.sql_type)
    if isinstance(wanted, Window):
        sliced, inside, bound = _window(wanted, column, kind, relation, unit, decimal=decimal)
    else:
        sliced, inside = _partition(wanted, column, kind, decimal=decimal)
        bound = None
    sliced = replace(sliced, unit=unit.column)
    names = [ident(item.name) for item in relation.columns if not item.refused]
    values = {"relation": relation.sql, "columns": names, "inside": inside, "bound": bound}
    sql = render("encode/slice", **values)
    return Source(replace(relation, sql=sql), unit, sliced)


def _column(columns: Sequence[Column], name: str) -> Column:
    found = next((column for column in columns if fold(column.name) == fold(name)), None)
    if found is None:
        hint = name_hint(name, [column.name for column in columns])
        raise InputError(f"The slice is by {shorten(name)!r}, which is not a column of the source; {hint}")
    if found.refused:
        raise InputError(f"The slice is by {shorten(name)!r}, but this column {found.refused}.")
    return found


def _check_most(wanted: Slice, unit: PrivacyUnit) -> None:
    """Only a bound that is enforced may be charged."""
    if wanted.most is None:
        return
    if unit.column is None and wanted.most != 1:
        raise InputError(
            f"most={wanted.most} with unit='row': a row has one date. Give most=1, or None to charge "
            "every window."
        )
    if unit.column is not None and isinstance(wanted, Partition):
        raise InputError(
            f"most={wanted.most} with unit={unit.column!r}: a unit can have rows in every "
            "partition, and nothing bounds in how many it counts. Leave most= out: every one is charged."
        )


def _window(
    window: Window,
    column: Column,
    kind: SqlType | None,
    relation: Relation,
    unit: PrivacyUnit,
    *,
    decimal: str,
) -> tuple[Sliced, Fragment, _Bound | None]:
    """The window, whether a row is in it, and the bound on the windows of a unit."""
    reads = "" if kind is None else kind.text
    if decimal and reads not in _EDGES:
        reads = "TIMESTAMP"
    if reads not in _EDGES:
        raise InputError(
            f"The windows are of {shorten(column.name)!r}, which is of type {family_of(column.sql_type)}: "
            f"a window needs DATE or TIMESTAMP without a time zone. {_ADVICE}"
        )
    moments = window.moments
    if reads == "DATE" and any(moment.time() != time() for moment in moments):
        raise InputError(
            f"The windows are of {shorten(column.name)!r}, which is a DATE, but an edge of the calendar "
            f"{window.calendar!r} is a time of the day: give whole days."
        )
    value = ident(column.name)
    if decimal:
        value = text_as(value, reads, decimal)
    edges = [_EDGES[reads](moment) for moment in moments]
    inside = _between(value, edges[window.index], edges[-1])
    sliced = Sliced(window, column.name, reads)
    if window.most is None or unit.column is None:
        return sliced, inside, None
    number = by_cuts(value, edges[1:-1], [str(place) for place in range(len(edges) - 1)])
    bound = _Bound(
        most=window.most,
        unit=unit_bytes(unit.column),
        number=Fragment(f"CAST({number} AS INTEGER)"),
        before=_between(value, edges[0], edges[-1]),
        **_unused(relation.columns),
    )
    return sliced, inside, bound


def _day(moment: datetime) -> Fragment:
    return literal(moment.date())


_EDGES: Mapping[str, Callable[[datetime], Fragment]] = {"DATE": _day, "TIMESTAMP": literal}
"""The types that a window can be of, with their literals."""


def _between(value: Fragment, start: Fragment, end: Fragment) -> Fragment:
    """NULL is in no window."""
    return Fragment(f"{value} >= {start} AND {value} < {end}")


def _unused(columns: Sequence[Column]) -> dict[str, Fragment]:
    """Names that no column has."""
    taken = {fold(column.name) for column in columns}
    made = {}
    for name in ("its_unit", "its_number", "a_unit", "a_number", "place"):
        free = next(text for number in count() if (text := f"{name}{number}") not in taken)
        made[name] = ident(free)
    return made


def _partition(
    partition: Partition, column: Column, kind: SqlType | None, *, decimal: str
) -> tuple[Sliced, Fragment]:
    """The partition, and whether a row is in it."""
    family = "text" if decimal and kind is None else "" if kind is None else kind.family
    value = ident(column.name)
    if family in ("text", "enum"):
        if family == "enum" and not decimal:
            value = Fragment(f"CAST({value} AS VARCHAR)")
        wanted = partition.value
        # Bytes have no collation: else 'north' and 'North' could be two partitions with the same rows.
        same = f"{text_bytes(value)} = {text_bytes(literal(wanted))}"
        return Sliced(partition, column.name, "text", wanted), Fragment(same)
    found = None if kind is None else _constant(kind, partition.value)
    if kind is None or found is None:
        what = family_of(column.sql_type) if kind is None else kind.text
        raise InputError(
            f"The partition is of {shorten(column.name)!r}, which is of type {what}: the value "
            f"{shorten(partition.value)!r} cannot be one of its values. A partition needs text, an ENUM, "
            f"whole numbers, BOOLEAN (true, false) or DATE (2013-01-31). {_ADVICE}"
        )
    if decimal:
        value = text_as(value, kind.sql, decimal)
    spelled, constant = found
    return Sliced(partition, column.name, family, spelled), Fragment(f"{value} = {constant}")


def _constant(kind: SqlType, text: str) -> tuple[str, Fragment] | None:
    """A value in its one spelling and as a literal of the type; None if the type has no such value."""
    if kind.family == "boolean" and text.lower() in ("true", "false"):
        return text.lower(), literal(text.lower() == "true")
    if kind.family == "integer" and re.fullmatch(r"[+-]?[0-9]{1,40}", text):
        number = int(text)
        return (str(number), tick_literal(kind, number)) if kind.low <= number <= kind.high else None
    if kind.family == "date" and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        try:
            day = date.fromisoformat(text)
        except ValueError:
            return None
        return text, literal(day)
    return None


def typed_relation(relation: Relation, shape: Shape) -> Relation:
    """The relation of a CSV file with its measured columns read strictly (``CsvForm.strict``); others stay
    text, and nothing reads them.

    The failure of a cast depends on a row and is outside the privacy promise. Its text, which quotes
    the value, is not shown, as for every statement.
    """
    read = (column for item in shape.measured for column in item.columns)
    types = {column.name: column.type for column in read if column.source is None}
    columns = []
    for column in relation.columns:
        kind, name = types.get(column.name), ident(column.name)
        # Empty text is NULL already; text of spaces alone is empty too.
        typed = kind is not None and kind.family != "text"
        text = number_text(f"nullif(trim({name}), '')", relation.decimal)
        value = f"CAST({text} AS {kind.sql})" if typed and kind is not None else name
        columns.append(Fragment(f"{value} AS {name}"))
    return replace(relation, sql=render("encode/strict", relation=relation.sql, columns=columns), strict=True)


# -- panels --------------------------------------------------------------------------------------------


UNIT = "unit"
"""The column of the join that holds the unit, as bytes."""


def joined_rows(
    now: Source,
    before: Source,
    domain: Domain,
    key: int,
    *,
    everybody: bool,
) -> tuple[Fragment, Domain]:
    """The joined rows, as the text after FROM, and how their columns are read.

    Args:
        now: the rows of a period; its unit is a column, and one row of each unit is kept.
        before: those of the period before.
        domain: the attributes of a row in either of them.
        key: of the draw among the rows that a unit has in a period.
        everybody: rows of all units that have a row in one of the periods, with their presence and the period
            before; else of those with a row in the period, with both periods.

    Returns:
        The second value has the attributes of ``families_of_period`` (with ``everybody`` those of the period
        before, then ``presence``), each read from the column that holds its code.

    Raises:
        InternalError: units are no column, or several of their rows count.
    """
    unit = now.unit.column
    if unit is None or now.unit.max_rows != 1:
        raise InternalError("a panel is of units with one row in each period")

    def kept(source: Source) -> Fragment:
        relation, bound = source.relation, Bound(unit, 1, key)
        return rows_of_units(relation.sql, domain, bound, relation.text_decimal)

    families = families_of_period(domain)
    own = [] if everybody else list(domain.attributes)
    *earlier, size = families.domain.attributes[families.written :]
    columns = [f"present.p{place} AS n{place}" for place in range(len(own))]
    columns += [
        f"coalesce(past.p{place}, {attribute.size - 1}) AS b{place}"
        for place, attribute in enumerate(earlier)
    ]
    sql = render(
        "encode/panel",
        now=kept(now),
        before=kept(before),
        everybody=everybody,
        stays=STAYS,
        leaves=LEAVES,
        joins=JOINS,
        columns=[Fragment(column) for column in columns],
    )
    last = _coded(presence_domain(families).attributes[-1], "presence") if everybody else _coded(size, "0")
    return sql, Domain((*_all_coded(own, "n"), *_all_coded(earlier, "b"), last))


def _all_coded(attributes: Iterable[Attribute], stem: str) -> list[Attribute]:
    return [_coded(attribute, f"{stem}{place}") for place, attribute in enumerate(attributes)]


def _coded(attribute: Attribute, value: str) -> Attribute:
    """An attribute of as many codes, read from what already is its code."""
    codes = tuple(range(attribute.size))
    return Attribute(attribute.name, "INTEGER", "categorical", labels=codes, source=Fragment(value))


# -- tables of a tree ----------------------------------------------------------------------------------


_OWN = "own"


def discovery_relation(tree: Tree, name: str) -> tuple[Relation, str]:
    """The rows of a table with the unit that each belongs to, and the name of the unit's column, which holds
    bytes and is never NULL.

    A row of two units is there once for each, a row of nobody is not. Nothing is bounded: what counts over it
    counts with ``PrivacyUnit(column, max_rows=1)``.
    """
    table = tree[name]
    relation = table.relation
    taken = {fold(column.name) for column in relation.columns}
    unit = next(text for number in count() if (text := f"its_unit{number or ''}") not in taken)
    sql = render(
        "encode/tree_joined",
        relation=relation.sql,
        columns=[ident(column.name) for column in relation.columns if not column.refused],
        unit=ident(unit),
        owner=key_bytes(table.foreign_key if table.parent else table.key, of=_OWN),
        units=None if table.parent is None else units_of_rows(tree, tree[table.parent]),
    )
    columns = (*relation.columns, Column(unit, "BLOB", not_null=True))
    return replace(relation, sql=sql, columns=columns), unit


def units_of_rows(tree: Tree, table: Table) -> Fragment:
    """The query of the units of an inner table's rows, by the keys of these rows."""
    return render(
        "encode/tree_units",
        relation=table.relation.sql,
        key=key_bytes(table.key, of=_OWN),
        owner=key_bytes(table.foreign_key, of=_OWN) if table.parent else Fragment(""),
        units=None if table.parent is None else units_of_rows(tree, tree[table.parent]),
    )
