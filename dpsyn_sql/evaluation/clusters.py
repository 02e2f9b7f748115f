"""PRIVATE: do centres that k-means finds in synthetic places serve the real ones?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from dpsyn_sql.errors import InputError, said
from dpsyn_sql.evaluation.drawing import MOST_ROWS, drawn, read_as
from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.source.names import fold, listed, name_hint, shorten
from dpsyn_sql.sqltext.fragments import Fragment, literal
from dpsyn_sql.sqltext.render import render

CENTRES = (1, 2, 5, 10, 20)
"""Numbers of centres that are tried; one centre says how far the places are spread."""

STARTS = 5
"""k-means starts so often, each time from other centres (k-means++), and the best end counts."""

COLUMNS = ("places", "centres", "synthetic_centres", "real_centres", "ratio")

FloatArray = NDArray[np.float64]
_STEP = "measuring distances to centres"


def clusters(session: Session, places: Sequence[str], seed: int = 1) -> tuple[pd.DataFrame, list[str]]:
    """Mean squared distance of all real places to the nearest centre: of those that k-means finds in the
    synthetic places, beside the real table's own.

    Distances are Euclidean in the columns as they are: columns of one unit belong together. Centres are
    learnt from at most ``MOST_ROWS`` rows of each table, drawn by a seed; the cost is of all real rows.
    Columns: ``COLUMNS``; the costs of both in squared units of the columns, ``ratio`` is the first by the
    second.

    Returns:
        The table and what a reader must know.

    Raises:
        InputError: ``places`` are no columns of numbers.
    """
    columns = place_columns(session, places)
    points = {name: _points(session, name, columns, seed) for name in ("synthetic", "real")}
    notes = list[str]()
    for name, own in points.items():
        if not len(own):
            return _table([]), [f"No {name} row has all of {listed(places)}: places are not clustered."]
    if any(session.rows[name] > MOST_ROWS for name in points):
        notes.append(f"Centres of places are learnt from at most {MOST_ROWS:,} rows of each table.")
    most = min(len(np.unique(own, axis=0)) for own in points.values())
    counts = [number for number in CENTRES if number <= most]
    centres = {
        (name, number): centres_of(own, number, seed) for name, own in points.items() for number in counts
    }
    costs = dict(zip(centres, _costs(session, columns, list(centres.values())), strict=True))
    told = ", ".join(column.name for column in columns)
    lines = [[told, number, costs["synthetic", number], costs["real", number]] for number in counts]
    return _table(lines), notes


def place_columns(session: Session, places: Sequence[str]) -> tuple[ComparedColumn, ...]:
    """The columns of places.

    Raises:
        InputError: they are no list of different columns of numbers.
    """
    if isinstance(places, str) or not all(isinstance(name, str) for name in places) or not places:
        raise InputError(
            f"places={said(places)}: give the names of columns of numbers, such as ('lat', 'lon')"
        )
    known = {fold(column.name): column for column in session.columns if column.kind == "numeric"}
    for name in places:
        if fold(name) not in known:
            names = [column.name for column in known.values()]
            hint = name_hint(name, names, "there are")
            raise InputError(f"places: {shorten(name)!r} is no column of numbers that is compared; {hint}")
    if len({fold(name) for name in places}) < len(places):
        raise InputError("places names a column twice")
    return tuple(known[fold(name)] for name in places)


def _points(session: Session, name: str, columns: Sequence[ComparedColumn], seed: int) -> FloatArray:
    rows = drawn(session, "real" if name == "real" else "synthetic", columns, seed)
    return np.asarray(rows.dropna().to_numpy(np.float64))


def centres_of(points: FloatArray, number: int, seed: int) -> FloatArray:
    """The centres (number, columns) of k-means that cost least of ``STARTS`` starts (Lloyd 1982, with the
    start of Arthur and Vassilvitskii 2007)."""
    middle = points.mean(axis=0)
    shifted = points - middle  # so that squares of large numbers keep their digits
    best, least = shifted[:1], np.inf
    for start in range(STARTS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a centre without points stays where it is
            rng = np.random.default_rng([seed, number, start])
            found, _ = kmeans2(shifted, number, minit="++", seed=rng)
        cost = mean_cost(shifted, found)
        if cost < least:
            best, least = found, cost
    return np.asarray(best + middle)


def mean_cost(points: FloatArray, centres: FloatArray) -> float:
    """Mean squared distance to the nearest centre."""
    return float(cdist(points, centres, "sqeuclidean").min(axis=1).mean())


def _costs(session: Session, columns: Sequence[ComparedColumn], lists: Sequence[FloatArray]) -> list[float]:
    """The mean cost of each list of centres over all real rows."""
    sql = render(
        "evaluate/nearest",
        relation=session.tables["real"],
        coordinates=[read_as(column) for column in columns],
        names=[Fragment(f"v{place}") for place in range(len(columns))],
        nearest=[_nearest(centres) for centres in lists],
    )
    found = session.engine.fetch(sql, step=_STEP)
    return [float(found[f"m{place}"][0]) for place in range(len(lists))]


def _nearest(centres: FloatArray) -> Fragment:
    squares = (
        " + ".join(
            f"(v{place} - {literal(float(value))}) * (v{place} - {literal(float(value))})"
            for place, value in enumerate(centre)
        )
        for centre in centres
    )
    return Fragment(f"least({', '.join(squares)})")


def _table(lines: Sequence[list[object]]) -> pd.DataFrame:
    table = pd.DataFrame(list(lines), columns=list(COLUMNS[:-1]))
    synthetic, real = (table[name].astype(float) for name in COLUMNS[2:4])
    table["ratio"] = (synthetic / real).where(real > 0)  # none where the real centres meet every place
    return table
