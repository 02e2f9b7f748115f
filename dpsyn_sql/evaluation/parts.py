"""PRIVATE: sums of the real and the synthetic units, and of two halves of the real ones, side by side.

Statements tell a ``part`` of each row: 0 and 1 are the halves of the real units, drawn by a hash, 2 is
synthetic. The distance of the halves is the floor of a figure: two samples of one law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.sqltext.fragments import Fragment, string_literal
from dpsyn_sql.sqltext.render import render

STEP = "comparing units"

SIDES = {"real": (0, 1), "synthetic": (2,), "first half": (0,), "second half": (1,)}
"""By side: its parts."""

_COMPARED = (("real", "synthetic"), ("first half", "second half"))

Sums = Mapping[str, "pd.Series[Any]"]
"""By side: a sum for each cell."""


def part_of(unit: Fragment, seed: int) -> Fragment:
    """The part of a row of a ``side``, whose unit is text."""
    # One text: the last bit of a hash of two values is a sum of theirs, so all seeds would give these halves.
    half = f"CAST(hash(concat({unit}, {string_literal(f'|half|{seed}')})) % 2 AS UTINYINT)"
    return Fragment(f"CASE side WHEN 1 THEN CAST(2 AS UTINYINT) ELSE {half} END")


def fetched(engine: DuckDBEngine, sql: Fragment) -> pd.DataFrame:
    """The rows of a statement; -2000 stands for NULL."""
    found = engine.fetch(sql, step=STEP)
    return pd.DataFrame({name: np.ma.filled(np.ma.asarray(cells), -2_000) for name, cells in found.items()})


def of_side(frame: pd.DataFrame, side: str) -> pd.DataFrame:
    """Its rows."""
    return frame[frame["part"].isin(SIDES[side])]


def sums(frame: pd.DataFrame, cells: Sequence[str], value: str) -> Sums:
    """Of a value in each cell."""
    return {side: of_side(frame, side).groupby([*cells])[value].sum() for side in SIDES}


def apart(summed: Sums) -> tuple[float, float]:
    """Total variation of the synthetic from the real table, and of the halves of the real units."""
    first, second = (_distance(summed[one], summed[other]) for one, other in _COMPARED)
    return first, second


def _distance(first: pd.Series[Any], second: pd.Series[Any]) -> float:
    totals = first.sum(), second.sum()
    if not all(totals):
        return float("nan")
    return float((first / totals[0]).sub(second / totals[1], fill_value=0).abs().sum() / 2)


def ratio(over: float, under: float) -> float:
    """NaN of nothing."""
    return float(over / under) if under else float("nan")


def excess(frame: pd.DataFrame) -> dict[str, float]:
    """By side, from ``evaluate/siblings.sql``: how much more often two rows of a unit have one code.

    Over units u of several rows, whose share of code a is w: the mean of what their pairs of rows agree, less
    the sum of w(u, a) w(v, a) over pairs of different units, a mean as well.
    """
    return {side: _excess(of_side(frame, side)) for side in SIDES}


def _excess(frame: pd.DataFrame) -> float:
    codes = frame.groupby("code")[["several", "agreeing", "squares"]].sum()
    units = round(codes["several"].sum())
    if units < 2:
        return float("nan")
    strangers = ((codes["several"] ** 2).sum() - codes["squares"].sum()) / (units * (units - 1))
    return float(codes["agreeing"].sum() / units - strangers)


def step_figures(
    engine: DuckDBEngine, steps: Fragment, previous: Fragment, code: Fragment
) -> dict[str, float]:
    """Distances of steps from a row to the next, of first and of last rows; ``steps``: of steps.sql."""
    frame = fetched(engine, render("evaluate/transitions", table=steps, previous=previous, code=code))
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
