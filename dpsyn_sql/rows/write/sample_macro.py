"""The query behind ``dpsyn_sample``: rows of a network as values, in the columns of the release.

The seed and the number of rows, or of units if their rows go together, are parameters of the macro. Rows are
drawn from the model of the release; the released ones were drawn from it by ``sample.compile``. Keys and unit
ids are NULL, because fresh ones would repeat those of the released table without being the same rows; ids of
units that are drawn number them, and say no more. Rows that the owner's conditions exclude are left out, not
replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpsyn_sql.domain.shape import Shape, UnitId
from dpsyn_sql.fit.network import Network
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.decode.output import surrogate, written_type
from dpsyn_sql.rows.sample.family_text import FamilyScript
from dpsyn_sql.rows.sample.sql_text import MOST_NODES, MOST_ON_WAY, Script
from dpsyn_sql.rows.write.drawn_values import MOST_NUMBERED, DrawnTable, fresh_tick, row_bits, valued
from dpsyn_sql.rows.write.table_macro import TableOfTree, table_queries
from dpsyn_sql.source.names import fold
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal
from dpsyn_sql.sqltext.render import render


def parameters(shapes: Iterable[Shape]) -> tuple[Fragment, Fragment]:
    """The names of the macros' parameters. A parameter hides columns of its name, so no column has it: of the
    table, and of those above it."""
    taken = {fold(name) for shape in shapes for name in shape.order or shape.types}
    rows, seed = "dpsyn_rows", "dpsyn_seed"
    while rows in taken or seed in taken:
        rows, seed = f"{rows}_", f"{seed}_"
    return Fragment(rows), Fragment(seed)


def sample_queries(tables: Sequence[DrawnTable], name: str) -> tuple[Fragment, Fragment]:
    """The queries of the low-variance and of the independent rows of a release.

    ``tables``: the one of the release last; before it those above in its tree, the root first. Where rows go
    together, or are of a tree, the queries draw units. A model that is no network, and networks of more steps
    than ``MOST_NODES``, on the way from a root ``MOST_ON_WAY``, give an error that says so.
    """
    shape, networks = tables[-1].shape, [one.network for one in tables if one.network is not None]
    few = sum(len(network.nodes) for network in networks) <= (MOST_NODES if len(tables) == 1 else MOST_ON_WAY)
    if len(networks) < len(tables) or not few:
        why = "has too many variables for one query" if not few else "is no network"
        message = (
            f"The model of release {name} {why}, so SQL cannot draw rows of it; its table and "
            "dpsyn_marginal() are here. For more rows call release(..., rows=) under the same name, at no "
            "cost."
        )
        failing = render("macros/no_model", columns=_columns(shape), message=string_literal(message))
        return failing, failing
    names = parameters(one.shape for one in tables)
    nrows, seed = (
        Fragment(f"CAST({parameter} AS {kind})")
        for parameter, kind in zip(names, ("BIGINT", "UBIGINT"), strict=True)
    )
    families = tables[-1].families
    if families is not None and families.table:
        way = [
            TableOfTree(
                replace(one.shape, ticks=one.families.order),
                one.network,
                one.families,
                one.stored,
                one.lookups,
            )
            for one in tables
            if one.network is not None and one.families is not None
        ]
        return table_queries(way, nrows, seed)
    if families is not None:
        return _of_units(tables[-1], networks[-1], families, nrows, seed)
    script, stored = Script(networks[-1], seed), tables[-1].stored
    low_variance, iid, bits = script.low_variance(nrows, stored), script.iid(nrows, stored), row_bits(seed)
    return valued(shape, low_variance, bits, {}), valued(shape, iid, bits, {})


def _of_units(
    table: DrawnTable, network: Network, families: Families, units: Fragment, seed: Fragment
) -> tuple[Fragment, Fragment]:
    """The same of rows that are drawn unit by unit."""
    shape, own = table.shape, families.with_attributes(table.shape.domain)
    script, fresh = FamilyScript(network, seed, own), fresh_tick(shape, own, seed)
    unit = Fragment(f'("row" // {script.stride})')
    bits = row_bits(seed, unit, shape.per_unit)
    ids = {
        role.name: surrogate(role.type, unit, MOST_NUMBERED, f"unit|{role.name}", 0)
        for role in shape.roles
        if isinstance(role, UnitId)
    }
    low_variance, independent = (
        valued(shape, script.query(units, table.stored, low_variance=low, fresh=fresh), bits, ids)
        for low in (True, False)
    )
    return low_variance, independent


def _columns(shape: Shape) -> list[Fragment]:
    """The columns of the release without values."""
    kinds = shape.types
    names = shape.order or tuple(kinds)
    return [Fragment(f"CAST(NULL AS {written_type(kinds[name])}) AS {ident(name)}") for name in names]
