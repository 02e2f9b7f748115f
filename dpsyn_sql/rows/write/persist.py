"""What stays in the database with a release: facts, noisy answers, the model, and macros to use them.

Everything here is public. Schema ``dpsyn`` of the target database holds the tables (``sql/macros``), schema
``main`` the macros ``dpsyn_releases``, ``dpsyn_certificate``, ``dpsyn_domain``, ``dpsyn_sample`` and
``dpsyn_marginal``; none needs Python or this package. A release of the same name (case aside, as the database
sees it) takes the place of the earlier one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import EngineFailure, InputError
from dpsyn_sql.fit.network import Model, Network, Table
from dpsyn_sql.fit.variances import NO_VARIANCES, Variances
from dpsyn_sql.planning.queries import Map, NoisyMarginal
from dpsyn_sql.rows.sample.sql_rows import MOST_LOW_VARIANCE_ROWS, share_table, variable_table
from dpsyn_sql.rows.write.macros import parameters, sample_queries
from dpsyn_sql.rows.write.staging import GroupedRows
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.names import fold
from dpsyn_sql.sqltext.fragments import Fragment, ident, qualified, string_literal
from dpsyn_sql.sqltext.release_tables import FORMAT, SCHEMA, TABLES
from dpsyn_sql.sqltext.render import render

Columns = Mapping[str, NDArray[Any]]

_STEP = "keeping the model with the release"

_LOADED = 60_000
"""Rows loaded at a time: less than a row group of DuckDB (122,880), which it would write to the file before
the commit, in pieces by thread, and again after it; the blocks of the first time stay in the file, empty."""


_MOST_LISTED = 30
"""Names of releases that an error lists."""


@dataclass(frozen=True, slots=True)
class NetworkTables:
    """The network of a model, None if it has none, and its conditional distributions as columns."""

    network: Network | None
    shares: Columns


def drawn_from(model: Model) -> NetworkTables:
    """What SQL draws rows of a model from."""
    network = model.network()
    return NetworkTables(network, {} if network is None else share_table(network))


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """What is kept of a release.

    ``created`` is the UTC day of the debit, ``facts`` the certificate, ``drawn`` what SQL draws rows from,
    ``labels[i][c]`` the label of code c of attribute i as a person reads it (None for NULL), ``variances``
    those of the model's estimates. ``parent``: of a table of a tree the table above; it is written before.
    ``lookups``: by measured attribute, the public rows that it stands for.
    """

    name: str
    release_id: str
    created: str
    facts: Mapping[str, Any]
    shape: Shape
    model: Model
    drawn: NetworkTables
    measurements: Sequence[NoisyMarginal]
    labels: Sequence[Sequence[object]]
    variances: Variances = NO_VARIANCES
    parent: StoredRelease | None = None
    lookups: Mapping[str, GroupedRows] = field(default_factory=dict)

    @property
    def way(self) -> tuple[StoredRelease, ...]:
        """The tables from the root of its tree to this one; itself alone if it is of no tree."""
        return (*(() if self.parent is None else self.parent.way), self)


def check_name(database: str | None, name: str) -> None:
    """Whether a release of this name can be kept in this database; to be asked before the debit.

    ``database`` is None for a file of its own.

    Raises:
        InputError: ``dpsyn`` would mean the database as well as the schema, or the name holds a NUL.
    """
    if database is not None and fold(database) == SCHEMA:
        raise InputError(
            "A database with the name 'dpsyn' cannot hold releases, because their schema has the same name: "
            "attach it under another name, or rename the file."
        )
    if "\x00" in name:
        raise InputError("The name of a release holds a NUL character.")


def persist(engine: Engine, database: str, kept: StoredRelease) -> None:
    """Write a release's tables and macros; to be run in the transaction that publishes it.

    Args:
        engine: the session that writes.
        database: name of the attached database that gets them.
        kept: what is written.

    Raises:
        InputError: as ``check_name``.
        EngineFailure: the database failed.
    """
    check_name(database, kept.name)
    schema = Fragment(f"{ident(database)}.{SCHEMA}")
    engine.execute(render("macros/tables", database=ident(database)), step=_STEP)
    number = _number_of(engine, schema, kept)
    for table, parts in _gathered(_contents(kept)).items():
        columns = parts[0] if len(parts) == 1 else _together(parts)
        rows = len(next(iter(columns.values())))
        for start in range(0, rows, _LOADED):
            part = {name: values[start : start + _LOADED] for name, values in columns.items()}
            owner = np.full(min(rows - start, _LOADED), number)
            engine.load(Fragment(f"{schema}.{table}"), {"release": owner, **part}, step=_STEP)
    known = engine.fetch(render("macros/names", schema=schema), step=_STEP)
    numbers = dict(zip(map(str, known["name"]), map(int, known["release"]), strict=True))
    with using(engine, ident(database)):
        for statement in _macros(database, schema, kept, numbers):
            engine.execute(statement, step=_STEP)


def _number_of(engine: Engine, schema: Fragment, kept: StoredRelease) -> int:
    """The number of a release that is new now: earlier ones of its name are forgotten. The root of a tree
    goes first, and an earlier release of all tables may have others: all of them are forgotten."""
    tied = "" if kept.parent is not None else str(kept.facts.get("database", {}).get("name", ""))
    name, whole = string_literal(fold(kept.name)), string_literal(fold(tied))
    numbers = engine.fetch(render("macros/next_release", schema=schema, name=name, whole=whole), step=_STEP)
    if int(numbers["earlier"][0]):
        for table in TABLES:
            forget = render("macros/forget", schema=schema, table=ident(table), name=name, whole=whole)
            engine.execute(forget, step=_STEP)
    return int(numbers["number"][0])


@contextmanager
def using(engine: Engine, home: Fragment) -> Iterator[None]:
    """Names are looked up in ``home`` inside, a quoted database or schema of one: macros must name ``dpsyn``
    without its database, because the file may be attached under any name later, and the database checks them
    when they are made."""
    session = engine.fetch(render("source/session"), step=_STEP)
    path = str(session["search_path"][0])
    if path:
        restored = render("source/set_search_path", search_path=string_literal(path))
    else:
        place = qualified(str(session["catalog"][0]), str(session["schema"][0]))
        restored = render("source/use", name=place)
    engine.execute(render("source/use", name=home), step=_STEP)
    with after(engine, restored):
        yield


@contextmanager
def after(engine: Engine, statement: Fragment) -> Iterator[None]:
    """Run a statement at the end. After an error, which is the one to show, the transaction may take none."""
    try:
        yield
    except BaseException:
        with suppress(EngineFailure):
            engine.execute(statement, step=_STEP)
        raise
    engine.execute(statement, step=_STEP)


def persist_beside(engine: Engine, path: Path, kept: Sequence[StoredRelease]) -> None:
    """As ``persist``, several releases into a database file of their own.

    Raises:
        EngineFailure: the file beside it is no database, is in use, or cannot be written.
    """
    name = "dpsyn_beside"
    place = string_literal(str(path))
    engine.execute(render("macros/attach", path=place, name=ident(name)), step=_STEP)
    with after(engine, render("source/detach", name=ident(name))):
        with engine.transaction():
            for one in kept:
                persist(engine, name, one)
        # Said aloud, because a file that is closed without room for all of it is no error.
        engine.execute(render("macros/checkpoint", name=ident(name)), step=_STEP)


def _contents(kept: StoredRelease) -> Iterator[tuple[str, Columns]]:
    """The rows of every table, without the release they belong to."""
    written, tables = kept.shape.domain.attributes, kept.model.tables()
    domain = Domain(
        (*written, *kept.model.domain.attributes[len(written) :])
    )  # those that only tie rows last
    yield (
        "releases",
        {
            "format": np.array([FORMAT]),
            "release_id": _texts([kept.release_id]),
            "name": _texts([kept.name]),
            "created": _texts([kept.created]),
            "total": np.array([float(kept.model.total)]),
            "certificate": _texts([json.dumps(dict(kept.facts), default=str)]),
        },
    )
    yield "attributes", _attributes(domain, tables.bins)
    for index, labels in enumerate(kept.labels):
        yield (
            "codes",
            {
                "attribute": np.full(len(labels), index),
                "code": np.arange(len(labels)),
                "label": _texts(["" if label is None else str(label) for label in labels]),
                "is_null": np.array([label is None for label in labels]),
                "bin": tables.bins[index],
                "within": tables.within[index],
            },
        )
    yield from _measurements(domain, kept.measurements)
    yield from _model(tables.tables)
    yield "shares", kept.drawn.shares
    yield "variances", _variances(kept.variances)
    yield "variables", {} if kept.drawn.network is None else variable_table(kept.drawn.network)


def _gathered(contents: Iterator[tuple[str, Columns]]) -> dict[str, list[Columns]]:
    """The parts of each table together: a load has a price of its own. Parts without rows are left out."""
    gathered: dict[str, list[Columns]] = {}
    for table, columns in contents:
        if len(next(iter(columns.values()), ())):
            gathered.setdefault(table, []).append(columns)
    return gathered


def _together(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _texts(values: Sequence[str]) -> NDArray[Any]:
    return np.array(values, dtype=object)


def _attributes(domain: Domain, bins: Sequence[NDArray[np.int64]]) -> Columns:
    return {
        "attribute": np.arange(len(domain.attributes)),
        "name": _texts(domain.names),
        "sql_type": _texts([attribute.sql_type for attribute in domain.attributes]),
        "size": np.array(domain.shape(), np.int64),
        "bins": np.array([int(own.max()) + 1 for own in bins], np.int64),
    }


def _measurements(domain: Domain, measured: Sequence[NoisyMarginal]) -> Iterator[tuple[str, Columns]]:
    """Noisy tables, together if they differ in attributes and values alone: there may be millions."""
    alike: dict[tuple[str, tuple[int, ...], tuple[bool, ...]], list[int]] = {}
    scopes = [[domain.index(name) for name in one.attrs] for one in measured]
    sizes = domain.shape()
    for number, (one, scope) in enumerate(zip(measured, scopes, strict=True)):
        maps, shape = one.maps or (None,) * len(scope), one.values.shape
        original = tuple(
            bins is None and size == sizes[place]
            for bins, size, place in zip(maps, shape, scope, strict=True)
        )
        kind = "fitted" if one.fitted else "composed" if one.composed else "measurement"
        alike.setdefault((kind, shape, original), []).append(number)
        yield from _bins(number, scope, maps)
    for (kind, shape, original), group in alike.items():
        numbers, cells = np.array(group), math.prod(shape)
        yield (
            "measurements",
            {
                "measurement": numbers,
                "sigma": np.array([measured[number].sigma for number in group], np.float64),
                "cells": np.full(len(group), cells),
            },
        )
        yield "axes", _axes(kind, numbers, [scopes[number] for number in group], shape, original)
        yield (
            "measured_cells",
            {
                "measurement": np.repeat(numbers, cells),
                "cell": np.tile(np.arange(cells), len(group)),
                "noisy": np.array([measured[number].values for number in group], np.int64).ravel(),
            },
        )


def _bins(number: int, scope: Sequence[int], maps: Sequence[Map | None]) -> Iterator[tuple[str, Columns]]:
    for position, bins in zip(scope, maps, strict=True):
        if bins is not None:
            codes = np.arange(len(bins))
            yield (
                "measured_bins",
                {
                    "measurement": np.full(codes.size, number),
                    "attribute": np.full(codes.size, position),
                    "code": codes,
                    "bin": np.array(bins, np.int64),
                },
            )


def _model(tables: Sequence[Table]) -> Iterator[tuple[str, Columns]]:
    """Joint tables of a model, those of one shape together; cells of probability 0 are left out."""
    alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for number, (scope, table) in enumerate(tables):
        alike.setdefault((len(scope), table.shape), []).append(number)
    for (axes, shape), group in alike.items():
        numbers = np.array(group)
        sizes = shape if len(shape) == axes else (1,) * axes
        yield "axes", _axes("model", numbers, [tables[n][0] for n in group], sizes, [False] * axes)
        flat = np.array([tables[number][1].ravel() for number in group], np.float32)
        held, cells = np.nonzero(flat)
        yield (
            "model_cells",
            {"number": numbers[held], "cell": cells, "probability": flat[held, cells]},
        )


def _variances(known: Variances) -> Columns:
    components = known.components
    return {
        "marginal": _texts([",".join(map(str, scope)) for scope in components]),
        "dispersion": np.array([one.dispersion for one in components.values()], np.float64),
        "precision": np.array([one.precision for one in components.values()], np.float64),
    }


def _axes(
    kind: str,
    numbers: NDArray[np.int64],
    scopes: Sequence[Sequence[int]],
    shape: Sequence[int],
    original: Sequence[bool],
) -> Columns:
    """The axes of tables of one shape, each with the positions of its attributes."""
    tables, axes = len(numbers), len(shape)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(axes)]
    return {
        "kind": _texts([kind] * (tables * axes)),
        "number": np.repeat(numbers, axes),
        "attribute": np.array(scopes, np.int64).ravel(),
        "size": np.tile(np.array(shape, np.int64), tables),
        "stride": np.tile(np.array(strides, np.int64), tables),
        "original": np.tile(np.array(original, np.bool_), tables),
    }


def _macros(
    database: str, schema: Fragment, kept: StoredRelease, numbers: Mapping[str, int]
) -> Iterator[Fragment]:
    """``numbers``: of all releases in the database by name, this one included."""
    home, names = ident(database), list(numbers)
    of_names = {fold(name): number for name, number in numbers.items()}
    low_variance, iid = sample_queries(kept.way, [of_names[fold(one.name)] for one in kept.way])
    rows, seed = parameters(one.shape for one in kept.way)
    for prefix, query in (("sample_", low_variance), ("iid_", iid)):
        macro = Fragment(f"{schema}.{ident(prefix + kept.name)}")
        yield render("macros/create_macro", macro=macro, rows=rows, seed=seed, query=query)
    yield render("macros/marginal", schema=schema, found=_found("dpsyn_marginal"))
    yield render("macros/dpsyn_releases", database=home)
    for name in ("dpsyn_certificate", "dpsyn_domain"):
        yield render(f"macros/{name}", database=home, found=_found(name))
    yield render(
        "macros/dpsyn_sample",
        database=home,
        most=MOST_LOW_VARIANCE_ROWS,
        names=[string_literal(fold(name)) for name in names],
        known=string_literal(_listed(names)),
    )
    yield render("macros/dpsyn_marginal", database=home)


def _found(caller: str) -> Fragment:
    """The release that a caller of a macro names by its parameter ``wanted_release``."""
    return render(
        "macros/found",
        caller=string_literal(caller),
        wanted=Fragment("wanted_release"),
        most=_MOST_LISTED,
    )


def _listed(names: Sequence[str]) -> str:
    """As ``sql/macros/found.sql`` lists them."""
    return ", ".join(
        [*map(string_literal, names[:_MOST_LISTED]), *(["..."] if len(names) > _MOST_LISTED else [])]
    )


_DOMAIN_OF = {
    "declared": "the domain is declared",
    "catalog": "the domain is from the catalog",
    "discovered": "the domain is discovered with noise",
}


def comment_statements(table: Fragment, shape: Shape, kept: StoredRelease) -> Iterator[Fragment]:
    """Statements that comment a new table and each of its columns."""
    shown = f"Certificate: FROM dpsyn_certificate({string_literal(kept.name)});"
    yield _comment("TABLE", table, f"{statement_of(kept.facts, kept.name)} {shown}")
    described = column_comments(shape)
    for name in shape.order or described:
        # The space: without it the end of the name could read like the name of a source.
        yield _comment("COLUMN", Fragment(f"{table} .{ident(name)}"), described[name])


def column_comments(shape: Shape) -> dict[str, str]:
    """What a column of the output is, by name."""
    described = {column.name: _measured(item) for item in shape.domain.attributes for column in item.columns}
    return described | {role.name: role.comment for role in shape.roles}


def statement_of(facts: Mapping[str, Any], name: str) -> str:
    """What a reader of the rows should know first, from a certificate. Epsilon and delta have all digits: a
    rounded bound would claim more."""
    guarantee = facts["guarantee"]
    return (
        "Synthetic rows, drawn from a model of noisy answers. Differential privacy: "
        f"epsilon {guarantee['epsilon']!r}, delta {guarantee['delta']!r}, for one privacy unit added or "
        f"removed; privacy unit: {guarantee['privacy_unit']}; rows per unit: at most "
        f"{guarantee['rows_per_unit']}. Method: {facts['method']}. Release: {name}, id "
        f"{facts['release']}."
    )


def readable_literal(text: str) -> Fragment:
    """A text literal of one piece: a statement that takes no expression cannot splice a NUL in."""
    return string_literal(text.replace("\x00", "\\0"))


def _comment(what: str, name: Fragment, text: str) -> Fragment:
    return render("write/comment", what=Fragment(what), name=name, text=readable_literal(text))


def _measured(attribute: Attribute) -> str:
    codes = "1 code" if attribute.size == 1 else f"{attribute.size} codes"
    if attribute.leaves is not None:
        codes = f"{len(attribute.leaves.codes)} leaves of the hierarchy {attribute.name!r} in {codes}"
        return f"Synthetic values: {codes}; {_DOMAIN_OF[attribute.origin]}."
    return f"Synthetic values: {attribute.kind}, {codes}; {_DOMAIN_OF[attribute.origin]}."
