"""How tables are tied, how many rows belong to a row above or to a person, and how alike they are.

All of it is computed from the models, in which each unit weighs one: rows of n count 1/n each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Attribute, edge_ticks
from dpsyn_sql.fit.model import MarginalModel
from dpsyn_sql.report.html.templates import Bar
from dpsyn_sql.report.labels import percent

FloatArray = NDArray[np.float64]

_MOST_CELLS = 400_000


@dataclass(frozen=True, slots=True)
class Alike:
    """A column. ``related``: chance that two rows of one person agree, at least; ``strangers``: that rows of
    two persons do."""

    name: str
    related: float
    strangers: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of rows. ``bars``: shares by number. ``mean``: of the number. ``none``: the share of 0."""

    bars: list[Bar]
    mean: float
    none: float


@dataclass(frozen=True, slots=True)
class PersonsRows:
    """``unit``: whose rows they are. ``bars``: shares of persons by their number of rows. ``mean``: of that
    number. ``most``: rows of a person that counted. ``shared``: columns of one value per person. ``alike``:
    the other columns, the most alike first. ``order``: what orders the rows, or nothing."""

    unit: str
    bars: list[Bar]
    mean: float
    most: int
    shared: list[str]
    alike: list[Alike]
    order: str


def hidden_names(facts: Mapping[str, Any]) -> frozenset[str]:
    """Attributes of the model that are not columns: what the rows of a person decide together."""
    families = facts["public_facts"].get("families") or {"hidden": ()}
    return frozenset(families["hidden"])


def persons_rows(model: MarginalModel, facts: Mapping[str, Any]) -> PersonsRows | None:
    """None if rows do not stay together; also of a table of several, whose page says how they are tied."""
    families, names = facts["public_facts"].get("families"), model.domain.names
    if not families or families.get("table"):
        return None
    sizes, hidden = sizes_of(model, families["size"]), hidden_names(facts)
    if sizes is None:
        return None
    persons = [name for name in names if name in families["persons"]]
    columns = [name for name in names if name not in hidden and name not in persons]
    return PersonsRows(
        unit=facts["guarantee"]["privacy_unit"],
        bars=sizes.bars,
        mean=sizes.mean,
        most=facts["guarantee"]["rows_per_unit"],
        shared=[name for name in persons if name not in hidden],
        alike=alike_columns(model, columns, persons),
        order=families["order"],
    )


def sizes_of(model: MarginalModel, name: str) -> Sizes | None:
    """Of the attribute that is a number of rows; None if there is none, or nothing is known."""
    if name not in model.domain.names:
        return None
    size = model.domain[name]
    if size.leaves is not None or size.type.family != "integer" or len(size.edges) != size.size + 1:
        return None  # a certificate that somebody changed
    sizes = model.project([name])
    total = float(sizes.sum())
    if not total > 0:
        return None
    shares = sizes / total
    none = float(shares[0]) if edge_ticks(size)[:2] == (0, 1) else 0.0
    return Sizes(_bars(size, shares), float(_middles(size) @ shares), none)


def alike_columns(model: MarginalModel, columns: Sequence[str], persons: Sequence[str]) -> list[Alike]:
    """How alike rows are that share ``persons``, column by column, the most alike first."""
    alike = [agreeing for name in columns if (agreeing := _alike(model, name, persons)) is not None]
    return sorted(alike, key=lambda column: column.strangers - column.related)


def _middles(size: Attribute) -> FloatArray:
    """The mean number of rows of each code."""
    edges = np.asarray(size.edges, np.float64)
    return (edges[:-1] + edges[1:] - 1) / 2


def _bars(size: Attribute, shares: FloatArray) -> list[Bar]:
    """By octaves of the number of rows: 0 if that occurs, 1, 2 to 3, 4 to 7, ..., as far as somebody is."""
    edges = [int(edge) for edge in size.edges]  # type: ignore[arg-type]
    octaves = np.array([max(0, edge).bit_length() - 1 for edge in edges[:-1]])
    bars = []
    for octave in range(int(octaves.min()), int(octaves[shares > 0].max(initial=0)) + 1):
        inside = np.flatnonzero(octaves == octave)
        if inside.size:
            first, last = edges[inside[0]], edges[inside[-1] + 1] - 1
            share = float(shares[inside].sum())
            words = f"{first:,}" if first == last else f"{first:,} to {last:,}"
            bars.append(Bar(words, share, share, share, percent(share)))
    return bars


def _alike(model: MarginalModel, name: str, persons: Sequence[str]) -> Alike | None:
    """Given one attribute of a person two of her rows are independent in the model, or more alike: the
    attribute that says most gives a lower bound of their agreement."""
    shares = model.project([name])
    total = float(shares.sum())
    if shares.size < 2 or not total > 0:
        return None
    strangers = float(((shares / total) ** 2).sum())
    related = [_agreement(model, name, shared) for shared in persons]
    return Alike(name, max([strangers, *related]), strangers)


def _agreement(model: MarginalModel, name: str, shared: str) -> float:
    """The chance that two draws of an attribute agree, given the same value of another; 0 if unknown."""
    pair = [name, shared]
    if model.domain.cells(pair) > _MOST_CELLS or not model.supports(pair):
        return 0.0
    joint = model.project(pair)
    margin = joint.sum(axis=0)
    occurs = margin > 0
    return float((joint[:, occurs] ** 2 / margin[occurs]).sum() / margin.sum())


# -- tables of a tree ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of the tree: ``depth`` (the root has 0), ``most`` rows of a row of the parent, ``most_of_unit``
    of one root row, ``rows`` that were written."""

    name: str
    depth: int
    parent: str | None
    most: int
    most_of_unit: int
    rows: int


@dataclass(frozen=True, slots=True)
class Link:
    """A table and its parent. ``sizes``: rows of a row of the parent, None if unknown. ``alike``: columns in
    which rows of one row of the parent agree more often than others."""

    table: str
    parent: str
    most: int
    sizes: Sizes | None
    alike: Sequence[Alike]
    order: str


def tree_lines(tree: Sequence[Mapping[str, Any]], rows: Mapping[str, int]) -> list[TableLine]:
    """Each table followed by those below it.

    Args:
        tree: as the certificate has it, parents before their children.
        rows: that were written, by table.
    """
    depths, lines = dict[str, int](), list[TableLine]()
    for table in tree:
        name, parent = str(table["table"]), table["parent"]
        depths[name] = 0 if parent is None else depths[str(parent)] + 1
        lines.append(TableLine(name, depths[name], parent, table["most"], table["rows_per_unit"], rows[name]))
    return _below(lines, None)


def _below(lines: Sequence[TableLine], parent: str | None) -> list[TableLine]:
    ordered = list[TableLine]()
    for line in lines:
        if line.parent == parent:
            ordered += [line, *_below(lines, line.name)]
    return ordered


def link_of(
    line: TableLine,
    parent: tuple[MarginalModel, Mapping[str, Any]],
    table: tuple[MarginalModel, Mapping[str, Any]],
) -> Link | None:
    """How a table is tied to its parent; None for the root.

    Args:
        line: of the table.
        parent: its model and its certificate; of the root anything.
        table: the same of the table.
    """
    if line.parent is None:
        return None
    (above, above_facts), (model, facts) = parent, table
    numbers = [
        below["name"]
        for below in above_facts["public_facts"]["families"]["below"]
        if below["table"] == line.name and below["number"]
    ]
    families, hidden, names = facts["public_facts"]["families"], hidden_names(facts), model.domain.names
    return Link(
        table=line.name,
        parent=line.parent,
        most=line.most,
        sizes=sizes_of(above, numbers[0]) if numbers else None,
        alike=alike_columns(
            model,
            [name for name in names if name not in hidden],
            [attribute["name"] for attribute in families["above"] if attribute["name"] in names],
        ),
        order=families["order"],
    )
