"""The query behind ``dpsyn_sample``: rows of a network as values, in the columns of the release.

The seed and the number of rows, or of units if their rows go together, are parameters of the macro. Rows are
drawn from the model of the release; the released ones were drawn from it by ``sample.compile``. Keys and unit
ids are NULL, because fresh ones would repeat those of the released table without being the same rows; ids of
units that are drawn number them, and say no more. Rows that the owner's conditions exclude are left out, not
replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.domain.shape import Constant, Derived, Shape, UnitId
from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.decode.leaves import measured_columns, with_leaves
from dpsyn_sql.rows.decode.output import (
    conditions,
    constant_expression,
    derived_value,
    surrogate,
    written_type,
)
from dpsyn_sql.rows.decode.values import tick_expression
from dpsyn_sql.rows.sample.family_text import FamilyScript
from dpsyn_sql.rows.sample.sql_text import MOST_NODES, Script, Tables
from dpsyn_sql.source.names import fold
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal
from dpsyn_sql.sqltext.render import render

_MOST_NUMBERED = 10**9
"""Units whose ids have the same number of digits, where ids are text."""


def parameters(shape: Shape) -> tuple[Fragment, Fragment]:
    """The names of the macros' parameters. A parameter hides columns of its name, so no column has it."""
    taken = {fold(name) for name in shape.order or shape.types}
    rows, seed = "dpsyn_rows", "dpsyn_seed"
    while rows in taken or seed in taken:
        rows, seed = f"{rows}_", f"{seed}_"
    return Fragment(rows), Fragment(seed)


def sample_queries(
    network: Network | None, shape: Shape, name: str, number: int, families: Families | None = None
) -> tuple[Fragment, Fragment]:
    """The queries of the low-variance and of the independent rows of a release.

    ``number`` is that of the release in its tables. ``families``: how rows of a unit go together; the queries
    then draw units. ``network`` is None for a model that is none; both
    queries are then an error that says so, as for a network of more than ``MOST_NODES`` variables.
    """
    if network is None or len(network.nodes) > MOST_NODES:
        why = "is no network" if network is None else "has too many variables for one query"
        message = (
            f"The model of release {name} {why}, so SQL cannot draw rows of it; its table and "
            "dpsyn_marginal() are here. For more rows call release(..., rows=) under the same name, at no "
            "cost."
        )
        failing = render("macros/no_model", columns=_columns(shape), message=string_literal(message))
        return failing, failing
    nrows, seed = (
        Fragment(f"CAST({parameter} AS {kind})")
        for parameter, kind in zip(parameters(shape), ("BIGINT", "UBIGINT"), strict=True)
    )
    tables = Tables(Fragment("dpsyn.shares"), Fragment(f"release = {number}"))
    if families is not None:
        return _of_units(network, shape, families, nrows, seed, tables)
    script = Script(network, seed)
    low_variance, iid = script.low_variance(nrows, tables), script.iid(nrows, tables)
    return _valued(shape, low_variance, seed), _valued(shape, iid, seed)


def _of_units(
    network: Network, shape: Shape, families: Families, units: Fragment, seed: Fragment, tables: Tables
) -> tuple[Fragment, Fragment]:
    """The same of rows that are drawn unit by unit."""
    hidden = families.domain.attributes[families.written :]
    own = replace(families, domain=Domain((*shape.domain.attributes, *hidden)))
    script, fresh = FamilyScript(network, seed, own), Fragment("0")
    if shape.ticks:
        order = own.domain.attributes[own.domain.index(shape.ticks)]
        fresh = tick_expression(order, Fragment("own"), _bits(seed)(order))
    unit = Fragment(f'("row" // {script.stride})')
    low_variance, independent = (
        _valued(shape, script.query(units, tables, low_variance=low, fresh=fresh), seed, unit)
        for low in (True, False)
    )
    return low_variance, independent


def _valued(shape: Shape, staged: Fragment, seed: Fragment, unit: Fragment | None = None) -> Fragment:
    """Values of staged codes, columns in the order of the release; ``unit``: number of the unit of a row."""
    roles = {role.name: role for role in shape.roles}
    bits = _bits(seed, unit, shape.per_unit)
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
        elif isinstance(role, UnitId) and unit is not None:
            value = surrogate(role.type, unit, _MOST_NUMBERED, f"unit|{name}", 0)
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


def _columns(shape: Shape) -> list[Fragment]:
    """The columns of the release without values."""
    kinds = shape.types
    names = shape.order or tuple(kinds)
    return [Fragment(f"CAST(NULL AS {written_type(kinds[name])}) AS {ident(name)}") for name in names]


def _bits(
    seed: Fragment, unit: Fragment | None = None, shared: frozenset[str] = frozenset()
) -> Callable[[Attribute], Fragment]:
    """As ``position_bits``, with the seed as an expression; of the attributes ``shared`` by rows of a unit
    from its number."""

    def bits(attribute: Attribute) -> Fragment:
        purpose = string_literal(f"{attribute.name}|position|")
        number = unit if unit is not None and attribute.name in shared else ident("row")
        return Fragment(f"hash(xor(CAST({number} AS UBIGINT), hash({purpose} || {seed})))")

    return bits
