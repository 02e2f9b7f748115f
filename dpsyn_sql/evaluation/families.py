"""PRIVATE: the rows of one unit together: how many, how alike, in which order.

Each figure is a sum over units, from histograms of a unit's rows; pairs of rows are never made. A unit counts
one, whatever its number of rows, but for steps from a row to the next, which count one each. The floor beside
a distance is that of two halves of the real units, drawn by a hash: two samples of one law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpsyn_sql.common.progress import phase
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.evaluation.codes import Codes
from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.source.names import fold, name_hint, shorten
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render

_STEP = "comparing units"

_SIDES = {"real": (0, 1), "synthetic": (2,), "first half": (0,), "second half": (1,)}
"""Parts: the halves of the real units, and the synthetic units."""

_COMPARED = (("real", "synthetic"), ("first half", "second half"))

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
_STEPS = (
    "column",
    "steps_tv",
    "steps_tv_halves",
    "steps_tv_independent",
    "first_tv",
    "first_tv_halves",
    "last_tv",
    "last_tv_halves",
)

Sums = Mapping[str, "pd.Series[Any]"]
"""By side: a sum for each cell."""


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
    unit, part = codes.unit, _part(codes.unit, seed)
    moment = {} if order is None else {"moment": _moment(codes, order)}
    relation = codes.rows(part=part, unit=unit, **moment)
    with phase("units", len(codes.columns)) as done:
        values = {f"z{one.place}": Fragment(f"v{one.place}") for one in codes.columns}
        named = codes.rows(part=part, unit=unit, **values)
        units = _fetch(codes, render("evaluate/units", relation=named, values=[*map(Fragment, values)]))
        if not all(units["part"].isin(_SIDES[side]).any() for side in ("real", "synthetic")):
            empty = {"families": pd.DataFrame([], columns=[*_FIGURES])}
            return empty, ["A table has no row with a unit: nothing is said of the rows of a unit."]
        engine.execute(render("evaluate/families", table=table, relation=relation), step=_STEP)
        figures = _of_units(units)
        siblings = [_sibling_line(codes, table, units, place, done) for place in range(len(codes.columns))]
        found = {"siblings": pd.DataFrame(siblings, columns=[*_SIBLINGS])}
        if order is not None:
            waits, steps = _ordered(codes, table)
            figures.append(waits)
            found["steps"] = pd.DataFrame(steps, columns=[*_STEPS])
        engine.execute(render("count/drop", table=table), step=_STEP)
    return {"families": pd.DataFrame(figures, columns=[*_FIGURES]), **found}, _notes(codes, units)


def _part(unit: Fragment, seed: int) -> Fragment:
    half = f"CAST(hash({unit}, {string_literal(f'half|{seed}')}) % 2 AS UTINYINT)"
    return Fragment(f"CASE side WHEN 1 THEN CAST(2 AS UTINYINT) ELSE {half} END")


def _moment(codes: Codes, order: ComparedColumn) -> Fragment:
    place = next(one.place for one in codes.columns if one.column == order)
    return Fragment(f"v{place}")


def _notes(codes: Codes, units: pd.DataFrame) -> list[str]:
    notes = []
    for side in ("real", "synthetic"):
        own = _of(units, side)
        without = codes.session.rows[side] - int(own["rows"].sum())
        if without:
            notes.append(f"{without:,} {side} rows have no unit; figures on units leave them out.")
        if not own["several"].sum():
            notes.append(f"No unit of the {side} table has several rows: how alike they are is unknown.")
    return notes


def _fetch(codes: Codes, sql: Fragment) -> pd.DataFrame:
    found = codes.engine.fetch(sql, step=_STEP)
    return pd.DataFrame({name: np.ma.filled(np.ma.asarray(cells), -2_000) for name, cells in found.items()})


def _of(frame: pd.DataFrame, side: str) -> pd.DataFrame:
    return frame[frame["part"].isin(_SIDES[side])]


def _sums(frame: pd.DataFrame, cells: Sequence[str], value: str) -> Sums:
    return {side: _of(frame, side).groupby([*cells])[value].sum() for side in _SIDES}


def _apart(sums: Sums) -> tuple[float, float]:
    """Total variation of the synthetic from the real table, and of the halves of the real units."""
    first, second = (_distance(sums[one], sums[other]) for one, other in _COMPARED)
    return first, second


def _distance(first: pd.Series[Any], second: pd.Series[Any]) -> float:
    totals = first.sum(), second.sum()
    if not all(totals):
        return float("nan")
    return float((first / totals[0]).sub(second / totals[1], fill_value=0).abs().sum() / 2)


def _ratio(over: float, under: float) -> float:
    return float(over / under) if under else float("nan")


# -- how many, and how alike -------------------------------------------------------------------------


def _of_units(units: pd.DataFrame) -> list[dict[str, object]]:
    counted = {side: _of(units, side)[["units", "rows"]].sum() for side in ("real", "synthetic")}
    tv, halves = _apart(_sums(units, ["octave"], "units"))
    return [
        {"figure": "units", **{side: float(own["units"]) for side, own in counted.items()}},
        {
            "figure": "rows of a unit",
            **{side: _ratio(own["rows"], own["units"]) for side, own in counted.items()},
            "tv": tv,
            "tv_halves": halves,
        },
    ]


def _sibling_line(
    codes: Codes, table: Fragment, units: pd.DataFrame, place: int, done: Any
) -> dict[str, object]:
    column = codes.columns[place]
    frame = _fetch(codes, render("evaluate/siblings", table=table, code=column.key))
    excess = {side: _excess(_of(frame, side)) for side in _SIDES}
    tv, halves = _apart(_sums(frame, ["octave", "code"], "persons"))
    constant = {
        f"constant_{side}": _ratio(_of(units, side)[f"s{place}"].sum(), _of(units, side)["several"].sum())
        for side in ("real", "synthetic")
    }
    done(1)
    return {
        "column": column.column.name,
        **constant,
        "excess_real": excess["real"],
        "excess_synthetic": excess["synthetic"],
        "excess_halves": abs(excess["first half"] - excess["second half"]),
        "rows_tv": tv,
        "rows_tv_halves": halves,
    }


def _excess(frame: pd.DataFrame) -> float:
    """Over units u of several rows, whose share of code a is w: the mean of what their pairs of rows agree,
    less the sum of w(u, a) w(v, a) over pairs of different units, a mean as well."""
    codes = frame.groupby("code")[["several", "agreeing", "squares"]].sum()
    units = round(codes["several"].sum())
    if units < 2:
        return float("nan")
    strangers = ((codes["several"] ** 2).sum() - codes["squares"].sum()) / (units * (units - 1))
    return float(codes["agreeing"].sum() / units - strangers)


# -- in which order ------------------------------------------------------------------------------------


def _ordered(codes: Codes, table: Fragment) -> tuple[dict[str, object], list[dict[str, object]]]:
    """The line on times between rows, and one on the steps of each column."""
    steps, keys = DUCKDB.temporary("steps"), [one.key for one in codes.columns]
    codes.engine.execute(render("evaluate/steps", table=steps, families=table, codes=keys), step=_STEP)
    waits = _fetch(codes, render("evaluate/waits", table=steps))
    tv, halves = _apart(_sums(waits, ["octave"], "rows"))
    means = {
        side: _ratio(_of(waits, side)["total"].sum(), _of(waits, side)["rows"].sum())
        for side in ("real", "synthetic")
    }
    line = {"figure": "time between rows", **means, "tv": tv, "tv_halves": halves}
    lines = [_step_line(codes, steps, place) for place in range(len(keys))]
    codes.engine.execute(render("count/drop", table=steps), step=_STEP)
    return line, lines


def _step_line(codes: Codes, steps: Fragment, place: int) -> dict[str, object]:
    column = codes.columns[place]
    sql = render("evaluate/transitions", table=steps, previous=Fragment(f"p{column.place}"), code=column.key)
    frame = _fetch(codes, sql)
    first = frame["previous"] < 0
    moves = _sums(frame[~first], ["previous", "code"], "rows")
    line: dict[str, object] = {"column": column.column.name}
    line["steps_tv"], line["steps_tv_halves"] = _apart(moves)
    line["steps_tv_independent"] = _memory(moves["real"])
    line["first_tv"], line["first_tv_halves"] = _apart(_sums(frame[first], ["code"], "rows"))
    line["last_tv"], line["last_tv_halves"] = _apart(_sums(frame, ["code"], "lasts"))
    return line


def _memory(moves: pd.Series[Any]) -> float:
    """How far steps are from those of a row that forgets the row before."""
    if not moves.sum():
        return float("nan")
    table = moves.unstack(fill_value=0).to_numpy(np.float64) / moves.sum()
    return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2)
