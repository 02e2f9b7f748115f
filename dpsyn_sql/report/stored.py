"""Read the tables stored with a release: domain, noisy answers, model. All of it is public.

Anybody can edit these tables, so each fact is checked against the others: the certificate has the domain,
the codes have its labels, noisy answers have all their cells, probabilities sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.variances import Components, Variances
from dpsyn_sql.methods.models.stored import StoredModel, StoredTable
from dpsyn_sql.planning.queries import Map, NoisyMarginal
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.stored_facts import attribute_of_facts, facts_of, require, undamaged

Columns = Mapping[str, NDArray[Any]]
_SLACK = 1e-3
"""How far the sum of probabilities of seven digits may be from 1."""

_LARGEST = 1e100
"""No noise, and no figure about noise, is larger, or smaller than one part of it: squares stay finite."""

_MOST_TOGETHER = {"copula": 2, "dpcopula": 2}
"""The most attributes that a model answers together, by its method; other methods have no such limit."""


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The content of the tables of a release: its certificate, noisy answers and model."""

    facts: dict[str, Any]
    measurements: tuple[NoisyMarginal, ...]
    model: StoredModel
    variances: Variances

    @property
    def rows(self) -> int:
        """Number of synthetic rows that were written."""
        return int(self.facts["sampling"]["rows"])


def read_parts(total: float, certificate: str, tables: Mapping[str, Columns]) -> StoredParts:
    """A release from its tables.

    Args:
        total: noisy number of source rows.
        certificate: JSON.
        tables: ``attributes``, ``codes``, ``measurements``, ``axes``, ``measured_bins``, ``measured_cells``,
            ``model_cells`` and ``variances``, each without rows of other releases.

    Raises:
        InputError: something is missing, or contradicts something else.
    """
    for table, columns in tables.items():
        require(not any(np.ma.is_masked(values) for values in columns.values()), f"NULL in table {table}")
    facts = facts_of(certificate)
    domain = undamaged(lambda: _domain(facts, tables["attributes"]), "its certificate and table attributes")
    bins, within = undamaged(lambda: _codes(domain, tables["attributes"], tables["codes"]), "table codes")
    axes = undamaged(lambda: _axes(tables["axes"], len(domain.attributes)), "table axes")
    measured = undamaged(lambda: _measured(domain, axes, tables), "the noisy answers")
    require(math.isfinite(total), "the total")
    stored = undamaged(lambda: _tables(axes, bins, total, tables["model_cells"]), "the tables of the model")
    most = _MOST_TOGETHER.get(facts["method"])
    known = tables["variances"]
    variances = undamaged(lambda: Variances(within, _components(len(bins), known)), "table variances")
    return StoredParts(facts, measured, StoredModel(domain, total, bins, within, stored, most), variances)


# -- domain -------------------------------------------------------------------------------------


def _domain(facts: Mapping[str, Any], attributes: Columns) -> Domain:
    domain = Domain(tuple(attribute_of_facts(one) for one in facts["public_facts"]["domain"]))
    order = np.argsort(attributes["attribute"], kind="stable")
    require(attributes["attribute"][order].tolist() == list(range(len(domain.names))), "table attributes")
    for column, known in (
        ("name", list(domain.names)),
        ("sql_type", [attribute.sql_type for attribute in domain.attributes]),
        ("size", list(domain.shape())),
    ):
        same = attributes[column][order].tolist() == known
        require(same, f"table attributes, whose column {column} differs from the certificate")
    return domain


def _codes(
    domain: Domain, attributes: Columns, codes: Columns
) -> tuple[tuple[NDArray[np.int64], ...], tuple[NDArray[np.float64], ...]]:
    """Working bin of each code and its share of the bin, by attribute."""
    numbers = dict(zip(attributes["attribute"].tolist(), attributes["bins"].tolist(), strict=True))
    bins, within = [], []
    order = np.lexsort((codes["code"], codes["attribute"]))
    parts = _parts(codes["attribute"][order], order, len(domain.attributes))
    for position, attribute in enumerate(domain.attributes):
        rows, known = parts[position], code_labels(attribute)
        told = f"table codes, where {attribute.name!r} is not as in the certificate"
        require(codes["code"][rows].tolist() == list(range(len(known))), told)
        require(codes["is_null"][rows].tolist() == [label is None for label in known], told)
        text = ["" if label is None else str(label) for label in known]
        require(codes["label"][rows].tolist() == text, told)
        own = codes["bin"][rows].astype(np.int64)
        share = codes["within"][rows].astype(np.float64)
        occupied = _numbered(np.unique(own), numbers[position])
        require(occupied, f"table codes, the bins of {attribute.name!r}")
        whole = np.abs(np.bincount(own, share) - 1) < _SLACK
        require(bool(whole.all() and (share >= 0).all()), f"table codes, the shares of {attribute.name!r}")
        bins.append(own)
        within.append(share)
    return tuple(bins), tuple(within)


# -- noisy answers and the model's tables -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Axis:
    attribute: int
    size: int
    stride: int
    original: bool


def _axes(axes: Columns, attributes: int) -> dict[tuple[str, int], tuple[_Axis, ...]]:
    """Axes by kind and number of a table, in the order of its dimensions (row-major)."""
    names = ("kind", "number", "attribute", "size", "stride", "original")
    found: dict[tuple[str, int], list[_Axis]] = {}
    for kind, number, *rest in zip(*(axes[name].tolist() for name in names), strict=True):
        found.setdefault((kind, number), []).append(_Axis(*rest))
    ordered = {}
    for table, own in found.items():
        # An axis of one place has the same stride as its neighbour; the longer one comes first.
        own.sort(key=lambda axis: (-axis.stride, -axis.size))
        sizes = [axis.size for axis in own]
        strides = [math.prod(sizes[place + 1 :]) for place in range(len(own))]
        known = len({axis.attribute for axis in own} & set(range(attributes))) == len(own)
        require(known and min(sizes) > 0 and [axis.stride for axis in own] == strides, "table axes")
        ordered[table] = tuple(own)
    return ordered


def _measured(
    domain: Domain, axes: Mapping[tuple[str, int], tuple[_Axis, ...]], tables: Mapping[str, Columns]
) -> tuple[NoisyMarginal, ...]:
    heads, cells, bins = tables["measurements"], tables["measured_cells"], tables["measured_bins"]
    number = len(heads["measurement"])
    order = np.argsort(heads["measurement"], kind="stable")
    require(heads["measurement"][order].tolist() == list(range(number)), "table measurements")
    by_cell = np.lexsort((cells["cell"], cells["measurement"]))
    values = _parts(cells["measurement"][by_cell], by_cell, number)
    by_code = np.lexsort((bins["code"], bins["attribute"], bins["measurement"]))
    mapped = _parts(bins["measurement"][by_code], by_code, number)
    made = []
    for place in range(number):
        fitted = ("fitted", place) in axes
        composed = fitted or ("composed", place) in axes
        kind = "fitted" if fitted else "composed" if composed else "measurement"
        own, rows = axes.get((kind, place), ()), values[place]
        shape = tuple(axis.size for axis in own)
        sigma, size = float(heads["sigma"][order[place]]), int(heads["cells"][order[place]])
        whole = size == math.prod(shape) and _numbered(cells["cell"][rows], size)
        require(
            whole and 1 / _LARGEST < sigma < _LARGEST, "the noisy answers, which lack cells or have too many"
        )
        maps = tuple(_map(domain, axis, bins, mapped[place]) for axis in own)
        made.append(
            NoisyMarginal(
                tuple(domain.names[axis.attribute] for axis in own),
                cells["noisy"][rows].astype(np.int64).reshape(shape),
                sigma,
                maps if any(one is not None for one in maps) else (),
                composed,
                fitted,
            )
        )
    return tuple(made)


def _map(domain: Domain, axis: _Axis, bins: Columns, rows: NDArray[np.int64]) -> Map | None:
    """The bin of each code on an axis; None for an axis in original codes."""
    codes = domain.attributes[axis.attribute].size
    if axis.original:
        require(axis.size == codes, "table axes")
        return None
    own = rows[bins["attribute"][rows] == axis.attribute]
    found = bins["bin"][own].tolist()
    whole = bins["code"][own].tolist() == list(range(codes)) and set(found) == set(range(axis.size))
    require(whole, "table measured_bins")
    return tuple(found)


def _tables(
    axes: Mapping[tuple[str, int], tuple[_Axis, ...]],
    bins: Sequence[NDArray[np.int64]],
    total: float,
    cells: Columns,
) -> tuple[StoredTable, ...]:
    number = sum(kind == "model" for kind, _ in axes)
    order = np.argsort(cells["number"], kind="stable")
    parts = _parts(cells["number"][order], order, number)
    sizes = [int(own.max()) + 1 for own in bins]
    made = []
    for place in range(number):
        own, rows = axes["model", place], parts[place]
        one = StoredTable(
            tuple(axis.attribute for axis in own),
            tuple(axis.size for axis in own),
            cells["cell"][rows].astype(np.int64),
            cells["probability"][rows].astype(np.float32),
        )
        require(list(one.shape) == [sizes[position] for position in one.scope], "table axes")
        inside = bool(((one.cells >= 0) & (one.cells < one.size)).all())
        mass = float(one.probabilities.sum(dtype=np.float64))
        # A model of no rows has tables without cells.
        whole = abs(mass - 1) < _SLACK or (mass == 0 and total <= 0)
        require(inside and bool((one.probabilities >= 0).all()) and whole, "the tables of the model")
        made.append(one)
    return tuple(made)


def _components(attributes: int, stored: Columns) -> dict[tuple[int, ...], Components]:
    names = [str(name) for name in stored["marginal"].tolist()]
    figures = np.column_stack([stored[name] for name in ("dispersion", "precision")])
    scopes = [tuple(int(place) for place in name.split(",")) for name in names]
    ascending = all(scope == tuple(sorted(set(scope) & set(range(attributes)))) for scope in scopes)
    require(ascending and len(set(scopes)) == len(scopes), "table variances")
    require(bool((figures >= 0).all() and (figures < _LARGEST).all()), "table variances")
    single = np.array([len(scope) == 1 for scope in scopes], np.bool_)
    require(bool((figures[single, 1] > 1 / _LARGEST).all()), "table variances")
    return {scope: Components(*row) for scope, row in zip(scopes, figures.tolist(), strict=True)}


def _numbered(values: NDArray[Any], number: int) -> bool:
    """Whether they are 0, 1, ... below ``number``. The size is compared first, because a table can hold any
    number."""
    return values.size == number and np.array_equal(values, np.arange(number))


def _parts(keys: NDArray[Any], rows: NDArray[np.int64], number: int) -> list[NDArray[np.int64]]:
    """The rows of each of the sorted keys 0..number-1; no other key may occur."""
    inside = keys.size == 0 or (int(keys[0]) >= 0 and int(keys[-1]) < number)
    require(inside, "rows of attributes or tables that do not exist")
    ends = np.searchsorted(keys, np.arange(number + 1))
    return [rows[ends[place] : ends[place + 1]] for place in range(number)]
