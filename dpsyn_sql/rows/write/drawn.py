"""Rows as they were drawn, for a comparison with the noisy answers: a million at most."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.sample.hidden import with_hidden
from dpsyn_sql.rows.sample.quotas import generator_of
from dpsyn_sql.rows.sample.tree import TableRows
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, ident, qualified, string_literal
from dpsyn_sql.sqltext.render import render

MOST_ROWS, _MOST_CODES = 1_000_000, 60_000_000
"""Rows that are compared at most; of wide tables so many codes."""

_CHOSEN = 2**42
# The stream of random numbers that chooses rows; those of rows are below.

_STEP = "comparing sampled rows with the answers"


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """``columns``: codes (n,) by attribute. ``weights`` (float64, n): of each row, in units. ``row``: the
    units of one row, for the variance of the weight in a cell. ``evenly``: rows are laid out with low
    variance, not drawn one by one."""

    columns: Mapping[str, Codes]
    weights: FloatArray
    row: float = 1.0
    evenly: bool = False


def staged_codes(
    engine: Engine, staged: Fragment, names: Sequence[str], rows: int, seed: int, *, laid_out: bool
) -> DrawnRows:
    """Rows of a staged table whose rows are independent of each other.

    Args:
        engine: the session that writes.
        staged: quoted name of the table with the columns row, a0, a1, ...
        names: of the attributes, in their order.
        rows: how many are staged.
        seed: not negative; chooses rows of a table of more than are compared.
        laid_out: the rows have low variance, and are not independent.
    """
    part = min(1.0, _most(names) / max(rows, 1))
    columns = _fetched(engine, staged, names, condition=None if part == 1 else _chosen(part, seed))
    number = len(next(iter(columns.values()))) if columns else 0
    return DrawnRows(columns, np.ones(number), evenly=laid_out and part == 1)


def _chosen(part: float, seed: int) -> Fragment:
    """Whether a row is one of those that are compared. Its number alone does not tell: conditions give rows
    that they change other numbers, and parts of a large table begin anew."""
    bits = f"hash(xor(CAST(s.{ident('row')} AS UBIGINT), hash({string_literal(f'compared|{seed}')}))) >> 32"
    return Fragment(f"{bits} < {math.ceil(part * 2**32)}")


def staged_families(
    engine: Engine, staged: Fragment, families: Families, sizes: IntArray, seed: int
) -> DrawnRows | None:
    """Rows of units that are staged unit by unit, ascending by their rows; None if nobody can tell which rows
    are of one unit, because conditions left out units of a large table.

    ``sizes``: entry i is the number of units with i+1 rows.
    """
    names = families.domain.names[: families.written]
    rows = np.repeat(np.arange(1, sizes.size + 1), sizes)
    starts, chosen = np.cumsum(rows) - rows, None
    part = int(rows.sum()) > _most(names)
    if part:
        order = generator_of(seed, _CHOSEN).permutation(rows.size)
        units = np.sort(order[np.cumsum(rows[order]) <= _most(names)])
        rows = rows[units]
        chosen = np.repeat(starts[units] - (np.cumsum(rows) - rows), rows) + np.arange(rows.sum())
        beyond = Fragment(f"s.{ident('row')} >= {int(sizes @ np.arange(1, sizes.size + 1))}")
        if any(codes.size for codes in _fetched(engine, staged, names[:1], condition=beyond).values()):
            return None
    columns = _fetched(engine, staged, names, chosen, ordered=True)
    owners = np.repeat(np.arange(rows.size), rows)
    found, weights = with_hidden(families, columns, owners)
    return DrawnRows(found, weights, 1.0 if part else _row(weights), evenly=not part)


def table_codes(rows: TableRows, seed: int, above: Mapping[str, Codes] | None = None) -> DrawnRows:
    """Rows of a table of a tree, with the attributes of the rows above them; ``above``: these, by their
    names, where the rows above have them not. What rows keep of those above is their own: a row that has none
    above has its code too."""
    families = rows.families
    names = families.domain.names[: families.drawn]
    own = {name: np.asarray(rows.codes[:, place]) for place, name in enumerate(names)}
    owners = np.arange(rows.total) if rows.above is None else rows.parent
    found, _ = with_hidden(families, own, owners)
    if above is not None:
        found = {name: codes[rows.parent] for name, codes in above.items()} | found
    elif rows.above is not None:
        found |= {one.name: rows.column(one.name) for one in families.above}
    drawn = DrawnRows(found, rows.weights, _row(rows.weights), evenly=True)
    most = _most(tuple(found))
    if rows.total <= most:
        return drawn
    chosen = np.sort(generator_of(seed, _CHOSEN).choice(rows.total, most, replace=False))
    part = {name: codes[chosen] for name, codes in found.items()}
    return DrawnRows(part, rows.weights[chosen], float(rows.weights.max()))


def _most(names: Sequence[str]) -> int:
    return min(MOST_ROWS, max(_MOST_CODES // max(len(names), 1), 1))


def _row(weights: FloatArray) -> float:
    return float(weights @ weights) / max(float(weights.sum()), 1e-9)


def _fetched(
    engine: Engine,
    staged: Fragment,
    names: Sequence[str],
    chosen: IntArray | None = None,
    condition: Fragment | None = None,
    *,
    ordered: bool = False,
) -> dict[str, Codes]:
    """Codes of all rows, of those of the chosen numbers, or of those that meet a condition, by attribute."""
    if not names:
        return {}
    columns, listed = [Fragment(f"a{place}") for place in range(len(names))], None
    if chosen is not None:
        listed = qualified("temp", "main", f"dpsyn_{uuid4().hex}")
        engine.execute(render("write/listed", table=listed), step=_STEP)
        engine.load(listed, {"row": chosen, "donor": chosen}, step=_STEP)
    query = render(
        "write/drawn", staged=staged, listed=listed, condition=condition, columns=columns, ordered=ordered
    )
    found = engine.fetch(query, step=_STEP)
    if listed is not None:
        engine.execute(render("sample/drop", table=listed), step=_STEP)
    return {name: np.asarray(found[column]) for name, column in zip(names, columns, strict=True)}
