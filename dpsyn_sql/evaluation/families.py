"""PRIVATE: the rows of one unit together: how many, how alike, in which order.

Each figure is a sum over units, from histograms of a unit's rows; pairs of rows are never made. A unit counts
one, whatever its number of rows, but for steps from a row to the next, which count one each. The floor beside
a distance is that of two halves of the real units, drawn by a hash: two samples of one law.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.evaluation.codes import Codes
from dpsyn_sql.evaluation.parts import (
    SIDES,
    STEP,
    apart,
    excess,
    fetched,
    of_side,
    part_of,
    ratio,
    step_figures,
    sums,
)
from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.source.names import fold, name_hint, shorten
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

_FIGURES = ("figure", "real", "synthetic", "tv", "tv_halves")
_SIBLINGS = (
    "column",
    "constant_real",
    "constant_synthetic",
    "excess_real",
    "excess_synthetic",
    "excess_halves",
    "rows_tv",
    "rows_tv_halves",
)
STEPS = (
    "column",
    "steps_tv",
    "steps_tv_halves",
    "steps_tv_independent",
    "first_tv",
    "first_tv_halves",
    "last_tv",
    "last_tv_halves",
)


def order_column(session: Session, order: str) -> ComparedColumn:
    """The column that orders the rows of a unit.

    Raises:
        InputError: it is no column of numbers, dates or times that is compared.
    """
    if not isinstance(order, str):
        raise InputError(f"order={said(order)}: give the name of one column")
    known = {fold(one.name): one for one in session.columns if one.kind in ("numeric", "temporal")}
    if fold(order) not in known:
        hint = name_hint(order, [one.name for one in known.values()], "there are")
        raise InputError(
            f"order={shorten(order)!r} is no column of numbers, dates or times that is compared; {hint}"
        )
    return known[fold(order)]


def families(
    codes: Codes, order: ComparedColumn | None = None, seed: int = 1
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Frames on the rows of a unit, and what a reader must know. The session has a unit.

    ``"families"``, one line per figure: ``real`` and ``synthetic`` (number of units; mean number of rows of a
    unit; with an order the mean time between a row and the one before, in seconds or the unit of the column),
    ``tv`` (total variation of octaves), ``tv_halves``.

    ``"siblings"``, one line per column: ``constant`` (share of units of several rows that have one value in
    all of them), ``excess`` (chance that two rows of a unit have one code, less the chance of two rows of
    different units; units of several rows, each counts one; ``excess_halves`` is the difference of the
    halves), ``rows_tv`` (total variation of the table octave of the number of rows x code).

    ``"steps"``, with an order, one line per column: ``steps_tv`` (total variation of the table code of the
    row before x code; ``steps_tv_independent``: of the real table from the product of its margins),
    ``first_tv`` and ``last_tv`` (of the codes of first and of last rows). Rows without a finite place in the
    order take no part.

    Raises:
        EngineFailure: the database failed, such as for want of room.
    """
    engine, table = codes.engine, DUCKDB.temporary("families")
    unit, part = codes.keys[0], part_of(codes.keys[0], seed)
    moment = {} if order is None else {"moment": _moment(codes, order)}
    relation = codes.rows(part=part, unit=unit, **moment)
    with phase("units", len(codes.columns)) as done:
        values = {f"z{one.place}": Fragment(f"v{one.place}") for one in codes.columns}
        named = codes.rows(part=part, unit=unit, **values)
        sql = render("evaluate/units", relation=named, values=[*map(Fragment, values)])
        units = fetched(codes.engine, sql)
        if not all(units["part"].isin(SIDES[side]).any() for side in ("real", "synthetic")):
            empty = {"families": pd.DataFrame([], columns=[*_FIGURES])}
            return empty, ["A table has no row with a unit: nothing is said of the rows of a unit."]
        engine.execute(render("evaluate/families", table=table, relation=relation), step=STEP)
        figures = _of_units(units)
        siblings = [_sibling_line(codes, table, units, place, done) for place in range(len(codes.columns))]
        found = {"siblings": pd.DataFrame(siblings, columns=[*_SIBLINGS])}
        if order is not None:
            waits, steps = _ordered(codes, table)
            figures.append(waits)
            found["steps"] = pd.DataFrame(steps, columns=[*STEPS])
        engine.execute(render("count/drop", table=table), step=STEP)
    return {"families": pd.DataFrame(figures, columns=[*_FIGURES]), **found}, _notes(codes, units)


def _moment(codes: Codes, order: ComparedColumn) -> Fragment:
    place = next(one.place for one in codes.columns if one.column == order)
    return Fragment(f"v{place}")


def _notes(codes: Codes, units: pd.DataFrame) -> list[str]:
    notes = []
    for side in ("real", "synthetic"):
        own = of_side(units, side)
        without = codes.session.rows[side] - int(own["rows"].sum())
        if without:
            notes.append(f"{without:,} {side} rows have no unit; figures on units leave them out.")
        if not own["several"].sum():
            notes.append(f"No unit of the {side} table has several rows: how alike they are is unknown.")
    return notes


# -- how many, and how alike -------------------------------------------------------------------------


def _of_units(units: pd.DataFrame) -> list[dict[str, object]]:
    counted = {side: of_side(units, side)[["units", "rows"]].sum() for side in ("real", "synthetic")}
    tv, halves = apart(sums(units, ["octave"], "units"))
    return [
        {"figure": "units", **{side: float(own["units"]) for side, own in counted.items()}},
        {
            "figure": "rows of a unit",
            **{side: ratio(own["rows"], own["units"]) for side, own in counted.items()},
            "tv": tv,
            "tv_halves": halves,
        },
    ]


def _sibling_line(
    codes: Codes, table: Fragment, units: pd.DataFrame, place: int, done: Any
) -> dict[str, object]:
    column = codes.columns[place]
    frame = fetched(codes.engine, render("evaluate/siblings", table=table, code=column.key))
    agreed = excess(frame)
    tv, halves = apart(sums(frame, ["octave", "code"], "persons"))
    constant = dict[str, float]()
    for side in ("real", "synthetic"):
        own = of_side(units, side)
        constant[f"constant_{side}"] = ratio(own[f"s{place}"].sum(), own["several"].sum())
    done(1)
    return {
        "column": column.column.name,
        **constant,
        "excess_real": agreed["real"],
        "excess_synthetic": agreed["synthetic"],
        "excess_halves": abs(agreed["first half"] - agreed["second half"]),
        "rows_tv": tv,
        "rows_tv_halves": halves,
    }


# -- in which order ------------------------------------------------------------------------------------


def _ordered(codes: Codes, table: Fragment) -> tuple[dict[str, object], list[dict[str, object]]]:
    """The line on times between rows, and one on the steps of each column."""
    steps, keys = DUCKDB.temporary("steps"), [one.key for one in codes.columns]
    codes.engine.execute(render("evaluate/steps", table=steps, families=table, codes=keys), step=STEP)
    waits = fetched(codes.engine, render("evaluate/waits", table=steps))
    tv, halves = apart(sums(waits, ["octave"], "rows"))
    means = {
        side: ratio(of_side(waits, side)["total"].sum(), of_side(waits, side)["rows"].sum())
        for side in ("real", "synthetic")
    }
    line = {"figure": "time between rows", **means, "tv": tv, "tv_halves": halves}
    lines = [_step_line(codes, steps, place) for place in range(len(keys))]
    codes.engine.execute(render("count/drop", table=steps), step=STEP)
    return line, lines


def _step_line(codes: Codes, steps: Fragment, place: int) -> dict[str, object]:
    column = codes.columns[place]
    figures = step_figures(codes.engine, steps, Fragment(f"p{column.place}"), column.key)
    return {"column": column.column.name, **figures}
