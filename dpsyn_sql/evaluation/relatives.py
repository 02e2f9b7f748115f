"""PRIVATE: what rows have to do with each other: joined rows, numbers of rows below, rows of one unit.

A joined row counts one; so does a row with its number of rows below. Of relatives (rows of one unit, or of
one row above) each family counts one, whatever its number of rows, but steps from a row to the next count one
each. Figures of families are sums of histograms; pairs of rows are never made. The floor beside a distance is
that of two halves of the real units.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from dpsyn_sql.common.progress import phase
from dpsyn_sql.evaluation.linked import (
    COMPARED,
    PARTS,
    STEP,
    LinkedRows,
    apart,
    fetched,
    of_side,
    ratio,
    sums,
)
from dpsyn_sql.sqltext.fragments import Fragment, temporary_table
from dpsyn_sql.sqltext.render import render

_JOINED = ("above", "below", "pairs", "tv_mean", "tv_halves_mean", "tv_worst", "worst")
_PAIRS = ("above", "first", "below", "second", "tv", "tv_halves")
_LINKS = (
    *("table", "of"),
    *(f"{figure}_{side}" for figure in ("rows_above", "children", "childless") for side in COMPARED),
    *("tv", "tv_halves", "columns_tv", "columns_tv_halves"),
)
_NUMBERS = ("table", "of", "column", "tv", "tv_halves")
_RELATIVE_FIGURES = (
    *("constant_real", "constant_synthetic"),
    *("excess_real", "excess_synthetic", "excess_halves"),
    *("rows_tv", "rows_tv_halves"),
)

Line = dict[str, object]


def between(rows: Sequence[LinkedRows]) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Frames by name, and what a reader must know.

    ``"joined"``, one line per table and table above it (or itself: columns of one row): mean and worst total
    variation of the tables of a column of each; ``"joined_pairs"``, one line per pair, the worst first.

    ``"links"``, one line per table and what is above it: number of rows above, mean number of children of
    each, the share without any, ``tv`` of the number (each up to 16, then doublings), ``columns_tv`` of the
    number x a column of the parent, mean over the columns of ``"numbers"``; with an order the mean ``wait``
    between a row and the one before, in seconds or the unit of the column, and its ``wait_tv`` by octaves.

    ``"relatives"``, one line per table and table above: ``constant`` (share of rows above with several rows
    that have one value in all of them), ``excess`` (how much more often two rows of one row above have the
    same code than rows of two; ``excess_halves``: the difference of the halves), ``rows_tv`` (total variation
    of the table octave of the number of rows x code); means over the columns of ``"relative_columns"``.

    ``"sequences"``, one line per column of a table with an order: ``steps_tv`` (total variation of the table
    code of the row before x code within one row above; ``steps_tv_independent``: of the real table from the
    product of its margins), ``first_tv``, ``last_tv`` (of first and of last rows). Rows without a finite
    value of the order take no part.

    Raises:
        EngineFailure: the database failed, such as for want of room.
    """
    if not _has_units(rows[0]):
        note = "A table has no row with a unit: nothing is said of the rows of a unit."
        return {"links": pd.DataFrame([], columns=[*_LINKS])}, [note]
    with phase("columns of joined rows", len(rows)) as done:
        pairs = list[Line]()
        for of_table in rows:
            pairs += _pairs(of_table)
            done(1)
    joined_pairs = pd.DataFrame(pairs, columns=[*_PAIRS])
    with phase("relatives", len(rows)) as done:
        lines = _Lines()
        for of_table in rows:
            lines.add(of_table)
            done(1)
    alike = pd.DataFrame(lines.relatives)
    frames = {
        "joined": _joined(joined_pairs),
        "links": pd.DataFrame(lines.links),
        "relatives": _means(alike),
        "joined_pairs": joined_pairs.sort_values("tv", ascending=False, kind="stable", ignore_index=True),
        "numbers": pd.DataFrame(lines.numbers),
        "relative_columns": alike.assign(excess_halves=alike["excess_halves"].abs()) if len(alike) else alike,
        "sequences": pd.DataFrame(lines.sequences),
    }
    return {name: frame for name, frame in frames.items() if len(frame)}, lines.notes


@dataclass
class _Lines:
    """The lines of frames, and notes."""

    links: list[Line] = field(default_factory=list)
    numbers: list[Line] = field(default_factory=list)
    relatives: list[Line] = field(default_factory=list)
    sequences: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, rows: LinkedRows) -> None:
        """What rows have to do with those above them, if there are any."""
        if rows.above is None:
            return
        link, numbers = _link(rows.above, rows)
        waits, steps = _ordered(rows) if rows.ordered else ({}, [])
        self.links.append(link | waits)
        self.numbers += numbers
        self.sequences += steps
        for of, whose in _families(rows):
            relatives, notes = _relatives(rows, of, whose)
            self.relatives += relatives
            self.notes += notes


def _has_units(root: LinkedRows) -> bool:
    """Whether both sides have units; those of a table are rows of it."""
    sides = Fragment("side")
    counted = fetched(root.engine, render("evaluate/crossed", table=root.rows, first=sides, second=sides))
    return root.in_table or all(len(of_side(counted, side)) for side in COMPARED)


# -- columns of joined rows --------------------------------------------------------------------------


def _pairs(rows: LinkedRows) -> Iterator[Line]:
    for upper in [*rows.path, rows]:
        chosen = combinations(rows.columns, 2) if upper is rows else product(upper.columns, rows.columns)
        for (first, first_name), (second, second_name) in chosen:
            tv, halves = _crossed(rows, rows.rows, first_name, second_name)
            yield {
                "above": upper.name,
                "first": first.column.name,
                "below": rows.name,
                "second": second.column.name,
                "tv": tv,
                "tv_halves": halves,
            }


def _crossed(rows: LinkedRows, table: Fragment, first: Fragment, second: Fragment) -> tuple[float, float]:
    sql = render("evaluate/crossed", table=table, first=first, second=second)
    return apart(sums(fetched(rows.engine, sql), ["first", "second"], "rows"))


def _joined(pairs: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for (above, below), group in pairs.groupby(["above", "below"], sort=False):
        line: Line = {"above": above, "below": below, "pairs": len(group)}
        line |= {"tv_mean": group["tv"].mean(), "tv_halves_mean": group["tv_halves"].mean()}
        if group["tv"].notna().any():
            worst = group.sort_values("tv", ascending=False, kind="stable").iloc[0]
            line |= {"tv_worst": worst["tv"], "worst": f"{worst['first']} x {worst['second']}"}
        lines.append(line)
    return pd.DataFrame(lines, columns=[*_JOINED])


# -- numbers of rows below ---------------------------------------------------------------------------


def _link(parent: LinkedRows, child: LinkedRows) -> tuple[Line, list[Line]]:
    """How many rows a row above has; and the same x each column of the parent."""
    engine, table = child.engine, temporary_table("children")
    names = [name for _, name in parent.columns]
    sql = render("evaluate/children", table=table, parents=parent.rows, children=child.rows, columns=names)
    engine.execute(sql, step=STEP)
    link: Line = {"table": child.name, "of": parent.name}
    frame = fetched(engine, render("evaluate/numbered", table=table))
    line = {**link}
    for side in COMPARED:
        numbered = of_side(frame, side)
        above = numbered["rows"].sum()
        line[f"rows_above_{side}"] = int(above)
        line[f"children_{side}"] = ratio(numbered["children"].sum(), above)
        line[f"childless_{side}"] = ratio(numbered[numbered["number"] == 0]["rows"].sum(), above)
    line["tv"], line["tv_halves"] = apart(sums(frame, ["number"], "rows"))
    lines = []
    for column, name in parent.columns:
        tv, halves = _crossed(child, table, name, Fragment("number"))
        lines.append({**link, "column": column.column.name, "tv": tv, "tv_halves": halves})
    means = pd.DataFrame(lines, columns=[*_NUMBERS])
    line |= {"columns_tv": means["tv"].mean(), "columns_tv_halves": means["tv_halves"].mean()}
    engine.execute(render("count/drop", table=table), step=STEP)
    return {name: line[name] for name in _LINKS}, lines


# -- rows of one row above ---------------------------------------------------------------------------


def _families(rows: LinkedRows) -> Iterator[tuple[LinkedRows, Fragment]]:
    """Above whom rows are relatives: the parent; below the second table also the unit."""
    yield rows.path[-1], Fragment("parent")
    if len(rows.path) > 1:
        yield rows.path[0], Fragment("unit")


def _make_families(rows: LinkedRows, table: Fragment, whose: Fragment, names: Sequence[Fragment]) -> None:
    listed = "".join(f", {name}" for name in [*names, *(name for _, name in rows.columns)])
    relation = Fragment(f"(SELECT side, part, {whose} AS unit{listed} FROM {rows.rows})")
    rows.engine.execute(render("evaluate/families", table=table, relation=relation), step=STEP)


def _relatives(rows: LinkedRows, of: LinkedRows, whose: Fragment) -> tuple[list[Line], list[str]]:
    """One line per column, and what is unknown."""
    families = temporary_table("families")
    _make_families(rows, families, whose, rows.hashes)
    constant = fetched(rows.engine, render("evaluate/constant", table=families, values=rows.hashes))
    lines = []
    for number, (column, name) in enumerate(rows.columns):
        frame = fetched(rows.engine, render("evaluate/siblings", table=families, code=name))
        agreed = excess(frame)
        line: Line = {"table": rows.name, "of": of.name, "column": column.column.name}
        for side in COMPARED:
            of_several = of_side(constant, side)[[f"s{number}", "several"]].sum()
            line[f"constant_{side}"] = ratio(of_several[f"s{number}"], of_several["several"])
            line[f"excess_{side}"] = agreed[side]
        line["excess_halves"] = agreed["first half"] - agreed["second half"]
        line["rows_tv"], line["rows_tv_halves"] = apart(sums(frame, ["octave", "code"], "persons"))
        lines.append({name: line[name] for name in ("table", "of", "column", *_RELATIVE_FIGURES)})
    rows.engine.execute(render("count/drop", table=families), step=STEP)
    alone = [side for side in COMPARED if lines and not of_side(constant, side)["several"].sum()]
    return lines, [_unknown(rows, of, side) for side in alone]


def _unknown(rows: LinkedRows, of: LinkedRows, side: str) -> str:
    if of.in_table:
        who = f"No row of {of.name} has several {side} rows of {rows.name}"
    else:
        who = f"No unit of the {side} table has several rows"
    return f"{who}: how alike they are is unknown."


def excess(frame: pd.DataFrame) -> dict[str, float]:
    """By side, from ``evaluate/siblings.sql``: how much more often two rows of a unit have one code.

    Over units u of several rows, whose share of code a is w: the mean of what their pairs of rows agree, less
    the sum of w(u, a) w(v, a) over pairs of different units, a mean as well.
    """
    return {side: _excess(of_side(frame, side)) for side in PARTS}


def _excess(frame: pd.DataFrame) -> float:
    codes = frame.groupby("code")[["several", "agreeing", "squares"]].sum()
    units = round(codes["several"].sum())
    if units < 2:
        return float("nan")
    strangers = ((codes["several"] ** 2).sum() - codes["squares"].sum()) / (units * (units - 1))
    return float(codes["agreeing"].sum() / units - strangers)


def _means(relatives: pd.DataFrame) -> pd.DataFrame:
    """Means over columns; the halves' difference is that of their means."""
    lines = []
    for (table, of), group in relatives.groupby(["table", "of"], sort=False) if len(relatives) else ():
        means = group[[*_RELATIVE_FIGURES]].mean()
        line: Line = {"table": table, "of": of, "columns": len(group), **means}
        lines.append({**line, "excess_halves": abs(means["excess_halves"])})
    return pd.DataFrame(lines)


# -- in which order ----------------------------------------------------------------------------------


def _ordered(rows: LinkedRows) -> tuple[Line, list[Line]]:
    """Times between a row and the one before within one row above, and steps of each column."""
    families, steps = temporary_table("families"), temporary_table("steps")
    _make_families(rows, families, Fragment("parent"), [Fragment("moment")])
    names = [name for _, name in rows.columns]
    rows.engine.execute(render("evaluate/steps", table=steps, families=families, codes=names), step=STEP)
    frame = fetched(rows.engine, render("evaluate/waits", table=steps))
    waits: Line = {}
    for side in COMPARED:
        of_waits = of_side(frame, side)[["total", "rows"]].sum()
        waits[f"wait_{side}"] = ratio(of_waits["total"], of_waits["rows"])
    waits["wait_tv"], waits["wait_tv_halves"] = apart(sums(frame, ["octave"], "rows"))
    lines = []
    for number, (column, name) in enumerate(rows.columns):
        figures = _step_figures(rows, steps, Fragment(f"p{number}"), name)
        lines.append({"table": rows.name, "column": column.column.name, **figures})
    for table in (families, steps):
        rows.engine.execute(render("count/drop", table=table), step=STEP)
    return waits, lines


def _step_figures(
    rows: LinkedRows, steps: Fragment, previous: Fragment, code: Fragment
) -> Mapping[str, float]:
    """Distances of steps from a row to the next, of first and of last rows; ``steps``: of steps.sql."""
    frame = fetched(rows.engine, render("evaluate/transitions", table=steps, previous=previous, code=code))
    first = frame["previous"] < 0
    moves = sums(frame[~first], ["previous", "code"], "rows")
    line = dict[str, float]()
    line["steps_tv"], line["steps_tv_halves"] = apart(moves)
    line["steps_tv_independent"] = _memory(moves["real"])
    line["first_tv"], line["first_tv_halves"] = apart(sums(frame[first], ["code"], "rows"))
    line["last_tv"], line["last_tv_halves"] = apart(sums(frame, ["code"], "lasts"))
    return line


def _memory(moves: pd.Series[Any]) -> float:
    """How far steps are from those of a row that forgets the row before."""
    if not moves.sum():
        return float("nan")
    table = moves.unstack(fill_value=0).to_numpy(np.float64) / moves.sum()
    return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2)
