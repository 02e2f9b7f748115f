"""Generated tables with the shapes that ruin values: long tails, atoms, small sets of values, rare classes.

Each is the shape of a well known public table, made with a fixed seed: no row is anybody's. A generator
returns the columns of one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

SEED = 20140502

Columns = Mapping[str, Any]


def _even(rows: int) -> NDArray[np.float64]:
    """Normal scores at even probabilities: the shape without sampling error."""
    return ndtri((np.arange(rows) + 0.5) / rows)


def _ranked(values: NDArray[Any], score: NDArray[np.float64]) -> NDArray[Any]:
    """The sorted ``values`` in the order of ``score``."""
    made = np.empty_like(values)
    made[np.argsort(score, kind="stable")] = values
    return made


def _together(noise: np.random.Generator, score: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Normal scores that correlate with ``score``."""
    return weight * score + np.sqrt(1 - weight * weight) * noise.standard_normal(len(score))


def _some(noise: np.random.Generator, rows: int, values: list[Any], counts: list[float]) -> NDArray[Any]:
    """As many of each value as its share of the rows, in any order."""
    ends = np.round(np.cumsum(counts) / np.sum(counts) * rows).astype(int)
    return noise.permutation(np.repeat(np.array(values), np.diff(ends, prepend=0)))


def credit() -> Columns:
    """30,000 holders of a credit card: a payment with a long tail and many zeros, two bills, a few codes.

    Payment: 17.5 % are 0, the median is 2,100, the mean about 5,636, the largest 1,684,259. Bills: Spearman's
    correlation .86, some below zero. ``sex`` is 1 or 2. Amounts are whole; four in ten are rounded to
    thousands or hundreds, as people pay.
    """
    rows, noise = 30_000, np.random.default_rng(SEED)
    wealth = noise.standard_normal(rows)
    zeros = round(0.175 * rows)
    paid = np.exp(8.04 + 1.25 * _even(rows - zeros))
    paid = np.where(noise.random(rows - zeros) < 0.4, np.maximum(100, np.round(paid, -2)), paid)
    paid = np.where(noise.random(rows - zeros) < 0.2, np.maximum(1000, np.round(paid, -3)), paid)
    paid[-1] = 1_684_259
    payments = np.sort(np.concatenate([np.zeros(zeros), np.round(paid)]))
    bill = np.exp(10.0 + 1.1 * _even(rows)) - 1500
    bill = np.sort(np.round(np.where(np.arange(rows) < 0.09 * rows, 0, bill)))
    bill[:600] = -np.round(np.exp(6 + _even(600)))[::-1]
    first = _together(noise, wealth, 0.5)
    return {
        "id": np.arange(1, rows + 1),
        "sex": _some(noise, rows, [1, 2], [11_888, 18_112]),
        "education": _some(noise, rows, [0, 1, 2, 3, 4, 5, 6], [14, 10_585, 14_030, 4_917, 123, 280, 51]),
        "age": np.clip(np.round(21 + noise.gamma(2.2, 6.6, rows)), 21, 79).astype(np.int64),
        "bill_1": _ranked(bill, first).astype(np.int64),
        "bill_2": _ranked(np.round(bill * 0.96), _together(noise, first, 0.87)).astype(np.int64),
        "payment": _ranked(payments, _together(noise, wealth, 0.6)).astype(np.int64),
        "defaulted": (_together(noise, -wealth, 0.4) > 0.77).astype(np.int64),
    }


def connections() -> Columns:
    """395,000 network connections: a counter that stops at 511, rates of two decimals, a rare class.

    Exactly 182,000 counters are 511, and 306,000 rates are 1.0. ``label`` has a class of 0.1 %.
    """
    rows, noise = 395_000, np.random.default_rng(SEED + 1)
    flood = 182_000
    counter = np.concatenate([np.full(flood, 511), np.floor(511 * noise.random(rows - flood) ** 6)])
    rate = np.ones(rows)
    below = np.arange(rows - 89_000, rows)
    rate[below] = np.round(noise.beta(0.4, 1.2, len(below)), 2)
    rate[below] = np.minimum(rate[below], 0.99)
    errors = np.where(noise.random(rows) < 0.82, 0.0, 1.0)
    some = noise.random(rows) < 0.01
    errors[some] = np.round(noise.random(int(some.sum())), 2)
    protocol = np.where(np.arange(rows) < 283_000, "icmp", _some(noise, rows, ["tcp", "udp"], [0.83, 0.17]))
    sent = np.where(protocol == "icmp", 1032, np.round(np.exp(5 + 1.6 * noise.standard_normal(rows))))
    sent[-1] = 693_375_640
    label = np.where(np.arange(rows) < 280_000, "smurf", np.where(errors > 0.5, "neptune", "normal"))
    label = label.astype(object)
    label[_rare(noise, rows, 400)] = "guess_passwd"
    order = noise.permutation(rows)
    found = {
        "protocol": protocol,
        "sent_bytes": sent.astype(np.int64),
        "counter": counter.astype(np.int64),
        "same_service_rate": rate,
        "error_rate": errors,
        "label": label,
    }
    return {name: values[order] for name, values in found.items()}


def _rare(noise: np.random.Generator, rows: int, wanted: int) -> NDArray[np.int64]:
    return noise.choice(rows, wanted, replace=False)


FLOORS = {1.0: 10_680, 2.0: 8_241, 1.5: 1_910, 3.0: 613, 2.5: 161, 3.5: 8}
CITY = {"lat": (47.1559, 47.7776), "long": (-122.519, -121.315)}


def houses() -> Columns:
    """21,613 sales of houses: six numbers of floors, 70 postal codes, a box of coordinates, a rare indicator.

    ``waterfront`` is 1 for 0.75 %, ``yr_renovated`` 0 for 95.7 %. ``zipcode`` is text, ``zip_number`` the
    same as a number. Prices: median 450,000, largest 7.7 million.
    """
    rows, noise = 21_613, np.random.default_rng(SEED + 2)
    worth = noise.standard_normal(rows)
    zipcode = 98_001 + 2 * np.sort(noise.choice(100, 70, replace=False))
    zips = np.sort(_some(noise, rows, list(zipcode), list(noise.gamma(4.0, 1.0, 70) + 0.6)))
    zips = _ranked(zips, noise.standard_normal(rows))
    place = (zips - zips.min()) / np.ptp(zips)
    price = np.round(np.exp(13.017 + 0.527 * _even(rows)), -2)
    price[-1], price[0] = 7_700_000, 75_000
    built = np.round(1900 + 115 * noise.beta(2.0, 1.0, rows))
    renovated = np.where(
        noise.random(rows) < 0.042, np.minimum(2015, built + noise.integers(10, 90, rows)), 0
    )
    low, high = CITY["lat"]
    lat = np.clip(low + (high - low) * np.clip(place + 0.08 * noise.standard_normal(rows), 0, 1), low, high)
    west, east = CITY["long"]
    size = np.exp(7.55 + 0.42 * _together(noise, worth, 0.7))
    waterfront = np.zeros(rows, np.int64)
    waterfront[_rare(noise, rows, 163)] = 1
    return {
        "id": 1_000_102 + noise.permutation(9_899_000)[:rows].astype(np.int64) * 1000,
        "sold": np.datetime64("2014-05-02") + noise.integers(0, 390, rows).astype("timedelta64[D]"),
        "price": _ranked(price, worth),
        "sqft_living": np.round(np.clip(size, 290, 13_540), -1).astype(np.int64),
        "floors": _some(noise, rows, list(FLOORS), list(FLOORS.values())),
        "waterfront": waterfront,
        "yr_built": built.astype(np.int64),
        "yr_renovated": renovated.astype(np.int64),
        "zipcode": zips.astype(str),
        "zip_number": zips.astype(np.int64),
        "lat": np.round(lat, 4),
        "long": np.round(west + (east - west) * noise.beta(2.2, 4.5, rows), 3),
    }


GENERATED: Mapping[str, Callable[[], Columns]] = {
    "credit": credit,
    "connections": connections,
    "houses": houses,
}


def create(con: duckdb.DuckDBPyConnection, name: str) -> None:
    """The generated table ``name``, every column NOT NULL."""
    con.register("generated", pd.DataFrame(dict(GENERATED[name]())))
    kinds = con.execute("SELECT column_name, column_type FROM (DESCRIBE generated)").fetchall()
    columns = ", ".join(f'"{column}" {_declared(column, kind)} NOT NULL' for column, kind in kinds)
    con.execute(f"CREATE TABLE {name} ({columns})")
    con.execute(f"INSERT INTO {name} FROM generated")
    con.unregister("generated")


def _declared(column: str, kind: str) -> str:
    return "DATE" if column == "sold" else kind
