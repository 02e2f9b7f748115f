"""Rows that SQL draws, as values in the columns of the release: what queries of all kinds of rows share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.shape import Constant, Derived, Shape
from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.decode.leaves import measured_columns, with_leaves
from dpsyn_sql.rows.decode.output import conditions, constant_expression, derived_value, written_type
from dpsyn_sql.rows.decode.values import tick_expression
from dpsyn_sql.rows.sample.sql_text import Tables
from dpsyn_sql.rows.write.public_rows import GroupedRows
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal
from dpsyn_sql.sqltext.render import render

MOST_NUMBERED = 10**9
"""Rows whose keys have the same number of digits, where keys are text."""


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """A table of rows that SQL draws. ``network``: None for a model that is none. ``families``: how rows go
    together, None where each is by itself. ``release``: its number in the tables of models. ``lookups``: by
    attribute, the public rows that it stands for."""

    shape: Shape
    network: Network | None
    families: Families | None
    release: int
    lookups: Mapping[str, GroupedRows] = field(default_factory=dict)

    @property
    def stored(self) -> Tables:
        """Where its distributions are."""
        return Tables(Fragment("dpsyn.shares"), Fragment(f"release = {self.release}"))


def fresh_tick(shape: Shape, families: Families, seed: Fragment) -> Fragment:
    """The tick of a row from its own code, ``own``, if a column orders rows."""
    if not shape.ticks:
        return Fragment("0")
    order = families.domain[shape.ticks]
    return tick_expression(order, Fragment("own"), row_bits(seed)(order))


def valued(
    shape: Shape, staged: Fragment, bits: Callable[[Attribute], Fragment], keys: Mapping[str, Fragment]
) -> Fragment:
    """Values of staged codes, columns in the order of the release. ``keys``: values of columns that name
    rows; all others that do are NULL."""
    roles = {role.name: role for role in shape.roles}
    measured = measured_columns(shape.domain, bits, shape.ticks)
    order = shape.order or tuple(measured)
    columns, written = list[Fragment](), list[Fragment]()
    for name in order:
        role = roles.get(name)
        if isinstance(role, Derived):
            written.append(Fragment(f"{derived_value(role)} AS {ident(name)}"))
            continue
        written.append(ident(name))
        if role is None:
            value = measured[name]
        elif isinstance(role, Constant):
            value = constant_expression(role)
        elif name in keys:
            value = keys[name]
        else:
            value = Fragment(f"CAST(NULL AS {written_type(role.type)})")
        columns.append(Fragment(f"{value} AS {ident(name)}"))
    return render(
        "macros/sampled",
        staged=with_leaves(Fragment(f"(\n{staged}\n    )"), shape.domain, bits),
        columns=columns,
        written=written,
        conditions=conditions(shape),
    )


def row_bits(
    seed: Fragment, unit: Fragment | None = None, shared: frozenset[str] = frozenset()
) -> Callable[[Attribute], Fragment]:
    """As ``position_bits``, with the seed as an expression; of the attributes ``shared`` by rows of a unit
    from its number."""

    def bits(attribute: Attribute) -> Fragment:
        purpose = string_literal(f"{attribute.name}|position|")
        number = unit if unit is not None and attribute.name in shared else ident("row")
        return Fragment(f"hash(xor(CAST({number} AS UBIGINT), hash({purpose} || {seed})))")

    return bits
