"""PRIVATE: what a database holds between its tables: columns of joined rows, numbers of children, relatives.

A joined row counts one; so does a row with its number of children. Of relatives (rows of one row above) each
family counts one. The floor beside a distance is that of two halves of the real units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pandas as pd

from dpsyn_sql.common.progress import phase
from dpsyn_sql.evaluation.families import STEPS
from dpsyn_sql.evaluation.linked import Linked
from dpsyn_sql.evaluation.parts import (
    STEP,
    apart,
    excess,
    fetched,
    of_side,
    ratio,
    step_figures,
    sums,
)
from dpsyn_sql.planning.tree import Tree
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

_BOTH = ("real", "synthetic")
_JOINED = ("above", "below", "pairs", "tv_mean", "tv_halves_mean", "tv_worst", "worst")
_PAIRS = ("above", "first", "below", "second", "tv", "tv_halves")
_LINKS = (
    "table",
    "of",
    *(f"{what}_{side}" for what in ("children", "childless") for side in _BOTH),
    "tv",
    "tv_halves",
    "columns_tv",
    "columns_tv_halves",
)
_NUMBERS = ("table", "of", "column", "tv", "tv_halves")
_EXCESS = ("excess_real", "excess_synthetic", "excess_halves")
_RELATIVES = ("table", "of", "columns", *_EXCESS)
_RELATIVE_COLUMNS = ("table", "of", "column", *_EXCESS)


def between(tree: Tree, tables: Sequence[Linked]) -> dict[str, pd.DataFrame]:
    """Frames by name.

    ``"joined"``, one line per table and table above it (or itself: columns of one row): mean and worst total
    variation of the tables of a column of each; ``"joined_pairs"``, one line per pair, the worst first.

    ``"links"``, one line per table and its parent: mean number of children of a parent's row and the share
    without any, ``tv`` of the number (each up to 16, then doublings), ``columns_tv`` of the number x a column
    of the parent, mean over the columns of ``"numbers"``.

    ``"relatives"``, one line per table and table above: how much more often two rows of one row above have
    the same code than rows of two, mean over the columns of ``"relative_columns"``; rows above with several.

    ``"sequences"``, one line per column of a table with an order: steps within one row above.

    Raises:
        EngineFailure: the database failed, such as for want of room.
    """
    paths = {one.table.name: _path(tree, tables, one) for one in tables}
    with phase("columns of joined rows", len(tables)) as done:
        pairs = list[dict[str, object]]()
        for one in tables:
            pairs += _pairs(paths[one.table.name], one)
            done(1)
    found = pd.DataFrame(pairs, columns=[*_PAIRS])
    with phase("numbers of children"):
        links, numbers = _children(tables)
    with phase("relatives"):
        relatives = pd.DataFrame(
            [line for one in tables for line in _relatives(paths[one.table.name], one)],
            columns=[*_RELATIVE_COLUMNS],
        )
        sequences = [line for one in tables if one.table.order for line in _sequence(one)]
    frames = {
        "joined": _joined(found),
        "links": links,
        "relatives": _meant(relatives),
        "joined_pairs": found.sort_values("tv", ascending=False, kind="stable", ignore_index=True),
        "numbers": numbers,
        "relative_columns": relatives.drop(columns=["halves"], errors="ignore"),
    }
    if sequences:
        frames["sequences"] = pd.DataFrame(sequences, columns=["table", *STEPS])
    return frames


def _path(tree: Tree, tables: Sequence[Linked], one: Linked) -> list[Linked]:
    """The tables above, the root first."""
    names = [step.name for step in tree.path(one.table.name)[:-1]]
    return [table for name in names for table in tables if table.table.name == name]


# -- columns of joined rows --------------------------------------------------------------------------


def _pairs(above: Sequence[Linked], own: Linked) -> Iterator[dict[str, object]]:
    for other in [*above, own]:
        chosen = combinations(own.columns, 2) if other is own else product(other.columns, own.columns)
        for (first, one), (second, two) in chosen:
            tv, halves = _crossed(own, own.rows, one, two)
            yield {
                "above": other.table.name,
                "first": first.column.name,
                "below": own.table.name,
                "second": second.column.name,
                "tv": tv,
                "tv_halves": halves,
            }


def _crossed(own: Linked, table: Fragment, first: Fragment, second: Fragment) -> tuple[float, float]:
    sql = render("evaluate/crossed", table=table, first=first, second=second)
    return apart(sums(fetched(own.engine, sql), ["first", "second"], "rows"))


def _joined(pairs: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for (above, below), group in pairs.groupby(["above", "below"], sort=False):
        line: dict[str, object] = {"above": above, "below": below, "pairs": len(group)}
        line |= {"tv_mean": group["tv"].mean(), "tv_halves_mean": group["tv_halves"].mean()}
        if group["tv"].notna().any():
            worst = group.sort_values("tv", ascending=False, kind="stable").iloc[0]
            line |= {"tv_worst": worst["tv"], "worst": f"{worst['first']} x {worst['second']}"}
        lines.append(line)
    return pd.DataFrame(lines, columns=[*_JOINED])


# -- numbers of children -----------------------------------------------------------------------------


def _children(tables: Sequence[Linked]) -> tuple[pd.DataFrame, pd.DataFrame]:
    links, numbers = list[dict[str, object]](), list[dict[str, object]]()
    for one in tables:
        parent = next((other for other in tables if other.table.name == one.table.parent), None)
        if parent is None:
            continue
        line, lines = _link(parent, one)
        links.append(line)
        numbers += lines
    return pd.DataFrame(links, columns=[*_LINKS]), pd.DataFrame(numbers, columns=[*_NUMBERS])


def _link(parent: Linked, child: Linked) -> tuple[dict[str, object], list[dict[str, object]]]:
    engine, table = child.engine, DUCKDB.temporary("children")
    names = [name for _, name in parent.columns]
    sql = render("evaluate/children", table=table, parents=parent.rows, children=child.rows, columns=names)
    engine.execute(sql, step=STEP)
    own: dict[str, object] = {"table": child.table.name, "of": parent.table.name}
    frame = fetched(engine, render("evaluate/numbered", table=table))
    line = {**own}
    for side in _BOTH:
        held = of_side(frame, side)
        line[f"children_{side}"] = ratio(held["children"].sum(), held["rows"].sum())
        line[f"childless_{side}"] = ratio(held[held["number"] == 0]["rows"].sum(), held["rows"].sum())
    line["tv"], line["tv_halves"] = apart(sums(frame, ["number"], "rows"))
    lines = []
    for column, name in parent.columns:
        tv, halves = _crossed(child, table, name, Fragment("number"))
        lines.append({**own, "column": column.column.name, "tv": tv, "tv_halves": halves})
    means = pd.DataFrame(lines, columns=[*_NUMBERS])
    line |= {"columns_tv": means["tv"].mean(), "columns_tv_halves": means["tv_halves"].mean()}
    engine.execute(render("count/drop", table=table), step=STEP)
    return line, lines


# -- relatives ---------------------------------------------------------------------------------------


def _relatives(above: Sequence[Linked], own: Linked) -> Iterator[dict[str, object]]:
    """Rows of one parent; below the second table also those of one unit."""
    if above:
        yield from _agreeing(own, above[-1], Fragment("parent"))
    if len(above) > 1:
        yield from _agreeing(own, above[0], Fragment("unit"))


def _agreeing(own: Linked, of: Linked, whose: Fragment) -> Iterator[dict[str, object]]:
    with_families = DUCKDB.temporary("families")
    _families(own, with_families, whose, [])
    for column, name in own.columns:
        sql = render("evaluate/siblings", table=with_families, code=name)
        agreed = excess(fetched(own.engine, sql))
        yield {
            "table": own.table.name,
            "of": of.table.name,
            "column": column.column.name,
            "excess_real": agreed["real"],
            "excess_synthetic": agreed["synthetic"],
            "excess_halves": agreed["first half"] - agreed["second half"],
        }
    own.engine.execute(render("count/drop", table=with_families), step=STEP)


def _families(own: Linked, table: Fragment, whose: Fragment, more: Sequence[str]) -> None:
    names = ", ".join([*more, *(name for _, name in own.columns)])
    listed = f", {names}" if names else ""
    rows = Fragment(f"(SELECT side, part, {whose} AS unit{listed} FROM {own.rows})")
    own.engine.execute(render("evaluate/families", table=table, relation=rows), step=STEP)


def _meant(relatives: pd.DataFrame) -> pd.DataFrame:
    """Means over columns; the halves' difference is that of their means."""
    lines = []
    for (table, of), group in relatives.groupby(["table", "of"], sort=False):
        means = group[[*_EXCESS]].mean()
        line: dict[str, object] = {"table": table, "of": of, "columns": len(group), **means}
        lines.append({**line, "excess_halves": abs(means["excess_halves"])})
    relatives["excess_halves"] = relatives["excess_halves"].abs()
    return pd.DataFrame(lines, columns=[*_RELATIVES])


def _sequence(own: Linked) -> Iterator[dict[str, object]]:
    """Steps from a row to the next one of the same parent."""
    families, steps = DUCKDB.temporary("families"), DUCKDB.temporary("steps")
    _families(own, families, Fragment("parent"), ["moment"])
    names = [name for _, name in own.columns]
    own.engine.execute(render("evaluate/steps", table=steps, families=families, codes=names), step=STEP)
    for place, (column, name) in enumerate(own.columns):
        figures = step_figures(own.engine, steps, Fragment(f"p{place}"), name)
        yield {"table": own.table.name, "column": column.column.name, **figures}
    for table in (families, steps):
        own.engine.execute(render("count/drop", table=table), step=STEP)
