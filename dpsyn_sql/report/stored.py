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

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.fit.variances import Components, Variances
from dpsyn_sql.methods.models.margins import StoredModel, StoredTable
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
    components = tables["variances"]
    variances = undamaged(lambda: Variances(within, _components(len(bins), components)), "table variances")
    return StoredParts(facts, measured, StoredModel(domain, total, bins, within, stored, most), variances)


# -- domain -------------------------------------------------------------------------------------


def _domain(facts: Mapping[str, Any], attributes: Columns) -> Domain:
    domain = Domain(
        tuple(attribute_of_facts(attribute_facts) for attribute_facts in facts["public_facts"]["domain"])
    )
    order = np.argsort(attributes["attribute"], kind="stable")
    require(attributes["attribute"][order].tolist() == list(range(len(domain.names))), "table attributes")
    for column, certified in (
        ("name", list(domain.names)),
        ("sql_type", [attribute.sql_type for attribute in domain.attributes]),
        ("size", list(domain.shape())),
    ):
        same = attributes[column][order].tolist() == certified
        require(same, f"table attributes, whose column {column} differs from the certificate")
    return domain


def _codes(
    domain: Domain, attributes: Columns, codes: Columns
) -> tuple[tuple[NDArray[np.int64], ...], tuple[NDArray[np.float64], ...]]:
    """Working bin of each code and its share of the bin, by attribute."""
    numbers = dict(zip(attributes["attribute"].tolist(), attributes["bins"].tolist(), strict=True))
    bins, within = [], []
    order = np.lexsort((codes["code"], codes["attribute"]))
    rows_of = _rows_by_key(codes["attribute"][order], order, len(domain.attributes))
    for position, attribute in enumerate(domain.attributes):
        rows, labels = rows_of[position], code_labels(attribute)
        difference = f"table codes, where {attribute.name!r} is not as in the certificate"
        require(codes["code"][rows].tolist() == list(range(len(labels))), difference)
        require(codes["is_null"][rows].tolist() == [label is None for label in labels], difference)
        text = ["" if label is None else str(label) for label in labels]
        require(codes["label"][rows].tolist() == text, difference)
        bin_of_code = codes["bin"][rows].astype(np.int64)
        share = codes["within"][rows].astype(np.float64)
        occupied = _numbered(np.unique(bin_of_code), numbers[position])
        require(occupied, f"table codes, the bins of {attribute.name!r}")
        sums_to_one = np.abs(np.bincount(bin_of_code, share) - 1) < _SLACK
        require(
            bool(sums_to_one.all() and (share >= 0).all()), f"table codes, the shares of {attribute.name!r}"
        )
        bins.append(bin_of_code)
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
    by_table: dict[tuple[str, int], list[_Axis]] = {}
    for kind, number, *numbers in zip(*(axes[name].tolist() for name in names), strict=True):
        by_table.setdefault((kind, number), []).append(_Axis(*numbers))
    ordered = {}
    for table, table_axes in by_table.items():
        # An axis of one place has the same stride as its neighbour; the longer one comes first.
        table_axes.sort(key=lambda axis: (-axis.stride, -axis.size))
        sizes = [axis.size for axis in table_axes]
        strides = [math.prod(sizes[position + 1 :]) for position in range(len(table_axes))]
        distinct = len({axis.attribute for axis in table_axes} & set(range(attributes))) == len(table_axes)
        require(distinct and min(sizes) > 0 and [axis.stride for axis in table_axes] == strides, "table axes")
        ordered[table] = tuple(table_axes)
    return ordered


def _measured(
    domain: Domain, axes: Mapping[tuple[str, int], tuple[_Axis, ...]], tables: Mapping[str, Columns]
) -> tuple[NoisyMarginal, ...]:
    heads, cells, bins = tables["measurements"], tables["measured_cells"], tables["measured_bins"]
    number = len(heads["measurement"])
    order = np.argsort(heads["measurement"], kind="stable")
    require(heads["measurement"][order].tolist() == list(range(number)), "table measurements")
    by_cell = np.lexsort((cells["cell"], cells["measurement"]))
    values = _rows_by_key(cells["measurement"][by_cell], by_cell, number)
    by_code = np.lexsort((bins["code"], bins["attribute"], bins["measurement"]))
    mapped = _rows_by_key(bins["measurement"][by_code], by_code, number)
    marginals = []
    for index in range(number):
        fitted = ("fitted", index) in axes
        composed = fitted or ("composed", index) in axes
        kind = "fitted" if fitted else "composed" if composed else "measurement"
        table_axes, rows = axes.get((kind, index), ()), values[index]
        shape = tuple(axis.size for axis in table_axes)
        sigma, size = float(heads["sigma"][order[index]]), int(heads["cells"][order[index]])
        complete = size == math.prod(shape) and _numbered(cells["cell"][rows], size)
        require(
            complete and 1 / _LARGEST < sigma < _LARGEST,
            "the noisy answers, which lack cells or have too many",
        )
        maps = tuple(_map(domain, axis, bins, mapped[index]) for axis in table_axes)
        marginals.append(
            NoisyMarginal(
                tuple(domain.names[axis.attribute] for axis in table_axes),
                cells["noisy"][rows].astype(np.int64).reshape(shape),
                sigma,
                maps if any(binning is not None for binning in maps) else (),
                composed,
                fitted,
            )
        )
    return tuple(marginals)


def _map(domain: Domain, axis: _Axis, bins: Columns, rows: NDArray[np.int64]) -> Map | None:
    """The bin of each code on an axis; None for an axis in original codes."""
    codes = domain.attributes[axis.attribute].size
    if axis.original:
        require(axis.size == codes, "table axes")
        return None
    of_axis = rows[bins["attribute"][rows] == axis.attribute]
    bin_of_code = bins["bin"][of_axis].tolist()
    complete = bins["code"][of_axis].tolist() == list(range(codes)) and set(bin_of_code) == set(
        range(axis.size)
    )
    require(complete, "table measured_bins")
    return tuple(bin_of_code)


def _tables(
    axes: Mapping[tuple[str, int], tuple[_Axis, ...]],
    bins: Sequence[NDArray[np.int64]],
    total: float,
    cells: Columns,
) -> tuple[StoredTable, ...]:
    number = sum(kind == "model" for kind, _ in axes)
    order = np.argsort(cells["number"], kind="stable")
    rows_of = _rows_by_key(cells["number"][order], order, number)
    sizes = [int(bin_of_code.max()) + 1 for bin_of_code in bins]
    model_tables = []
    for index in range(number):
        table_axes, rows = axes["model", index], rows_of[index]
        table = StoredTable(
            tuple(axis.attribute for axis in table_axes),
            tuple(axis.size for axis in table_axes),
            cells["cell"][rows].astype(np.int64),
            cells["probability"][rows].astype(np.float32),
        )
        require(list(table.shape) == [sizes[position] for position in table.scope], "table axes")
        inside = bool(((table.cells >= 0) & (table.cells < table.size)).all())
        mass = float(table.probabilities.sum(dtype=np.float64))
        # A model of no rows has tables without cells.
        sums_to_one = abs(mass - 1) < _SLACK or (mass == 0 and total <= 0)
        require(inside and bool((table.probabilities >= 0).all()) and sums_to_one, "the tables of the model")
        model_tables.append(table)
    return tuple(model_tables)


def _components(attributes: int, stored: Columns) -> dict[tuple[int, ...], Components]:
    names = [str(name) for name in stored["marginal"].tolist()]
    figures = np.column_stack([stored[name] for name in ("dispersion", "precision")])
    scopes = [tuple(int(attribute) for attribute in name.split(",")) for name in names]
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


def _rows_by_key(keys: NDArray[Any], rows: NDArray[np.int64], number: int) -> list[NDArray[np.int64]]:
    """The rows of each of the sorted keys 0..number-1; no other key may occur."""
    inside = keys.size == 0 or (int(keys[0]) >= 0 and int(keys[-1]) < number)
    require(inside, "rows of attributes or tables that do not exist")
    ends = np.searchsorted(keys, np.arange(number + 1))
    return [rows[ends[key] : ends[key + 1]] for key in range(number)]
