"""What ``release_database()`` and ``load()`` return of several tables: all is public but ``timings``."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.common.stopwatch import Timing
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.report.database_certificate import database_certificate, protected_words
from dpsyn_sql.report.loss_words import summary_of_losses, verdict_table
from dpsyn_sql.report.marginals import MarginalTable
from dpsyn_sql.report.public.database import DatabasePage, short_database_report, write_database_report
from dpsyn_sql.report.result import Release
from dpsyn_sql.source.names import listed


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseRelease:
    """A finished release of several tables that join.

    ``tables``: of each table its ``Release``, by its name, the root first. ``into``: the schema, the database
    file or the folder that was written; of a loaded release its name. ``id`` is random; ``epsilon``,
    ``delta`` and ``rho`` are those of all tables together, as for one table. ``facts``: the certificate of
    the whole. ``replayed``: the stored answers of an earlier run were used, and cost nothing now. ``notes``:
    messages for the operator. ``timings``: PRIVATE, for the operator alone: where the time of this call
    went, of all tables together, as ``Release.timings``.
    """

    tables: Mapping[str, Release]
    into: str
    id: str
    epsilon: float
    delta: float
    rho: float
    facts: dict[str, Any]
    replayed: bool
    notes: tuple[str, ...]
    timings: tuple[Timing, ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls, tables: Mapping[str, Release], into: str | None = None, timings: tuple[Timing, ...] = ()
    ) -> DatabaseRelease:
        """The release of these tables: what they share is taken from their certificates.

        Args:
            tables: by name, each with the facts of ``table_certificate``.
            into: what was written; None: the name of the release.
            timings: of the call that wrote it.

        Raises:
            InputError: as ``database_certificate``.
        """
        facts = database_certificate({name: one.facts for name, one in tables.items()})
        guarantee = facts["guarantee"]
        return cls(
            tables={one["table"]: tables[one["table"]] for one in facts["tree"]},
            into=facts["name"] if into is None else into,
            id=facts["release"],
            epsilon=float(guarantee["epsilon"]),
            delta=float(guarantee["delta"]),
            rho=float(guarantee["rho"]),
            facts=facts,
            replayed=all(one.replayed for one in tables.values()),
            notes=tuple(dict.fromkeys(note for one in tables.values() for note in one.notes)),
            timings=timings,
        )

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}={one.rows}" for name, one in self.tables.items())
        claim = f"epsilon={shown(self.epsilon)}, delta={self.delta:g}"
        replayed = ", replayed" if self.replayed else ""
        return f"DatabaseRelease({self.into}, rows: {rows}, {claim}, id={self.id}{replayed})"

    def __getitem__(self, table: str) -> Release:
        """The release of a table.

        Raises:
            InputError: there is no such table.
        """
        if table not in self.tables:
            raise InputError(
                f"There is no table {said(table)} in this release; there are {listed([*self.tables])}."
            )
        return self.tables[table]

    def to_df(self, table: str, kind: Literal["pandas", "polars", "arrow"] = "pandas") -> Any:
        """The synthetic rows of a table as a data frame, as ``Release.to_df``.

        Raises:
            InputError: there is no such table, or as ``Release.to_df``.
        """
        return self[table].to_df(kind)

    def sample(self, units: int, seed: int | None = None) -> dict[str, pd.DataFrame]:
        """More rows of the models, table by table, that join; costs nothing.

        Each frame is ``dpsyn_sample('<release>.<table>', units, seed := seed)`` in SQL. Keys are numbers: a
        foreign key is the key of a row of its parent's frame. Keys of public rows are NULL.

        Args:
            units: rows of the root; the other tables have what their models give them.
            seed: as of ``Release.sample``.

        Raises:
            InputError: as ``Release.sample``.
        """
        return {name: one.sample(units, seed) for name, one in self.tables.items()}

    def marginal(self, attrs: Sequence[str]) -> pd.DataFrame:
        """Counts of columns of joined tables, denoised and as measured, with standard errors; costs nothing.

        The model of the lowest of the tables answers. Its counts are of root rows (persons) that have rows in
        this table: each counts one, divided among its rows. The printed table says so, and
        ``attrs["counts"]`` of the frame.

        Args:
            attrs: ``"table.column"``, such as ``["customers.region", "items.category"]``; also ``"number of
                <table>"`` in place of the column: how many rows of a table below a row has.

        Returns:
            As ``Release.marginal``; the columns are named as they were given.

        Raises:
            InputError: unknown columns, tables of which none is below all others, or a marginal that the
                model cannot answer.
        """
        if isinstance(attrs, str):
            raise InputError(f"attrs={said(attrs)}: give a list of columns, such as ['customers.region']")
        wanted = [self._column(name) for name in attrs]
        table = self._lowest([owner for owner, _ in wanted])
        release = self.tables[table]
        known = {
            (one["table"], one["attribute"]): str(one["name"])
            for one in release.facts["public_facts"]["families"]["above"]
        }
        names = [column if owner == table else known.get((owner, column)) for owner, column in wanted]
        for given, name in zip(attrs, names, strict=True):
            if name is None or name not in release.model.domain.names:
                raise InputError(f"The release has no column {said(given)} that it measured.")
        found = release.marginal([str(name) for name in names])
        named = dict(enumerate(attrs))
        found.columns = pd.Index([named.get(place, column) for place, column in enumerate(found.columns)])
        made = MarginalTable(found)
        made.attrs["counts"] = self._counted(table)
        return made

    def _column(self, name: object) -> tuple[str, str]:
        """The table and the column of a name; of tables whose names begin alike the longest."""
        owners = [table for table in self.tables if isinstance(name, str) and name.startswith(f"{table}.")]
        if not isinstance(name, str) or not owners:
            raise InputError(
                f"{said(name)} is no column of a table of this release: give 'table.column', with one of the "
                f"tables {listed([*self.tables])}"
            )
        table = max(owners, key=len)
        return table, name[len(table) + 1 :]

    def _way(self, table: str) -> list[str]:
        """The tables from the root to this one."""
        parents = {str(one["table"]): one["parent"] for one in self.facts["tree"]}
        way = [table]
        while (parent := parents[way[0]]) is not None:
            way.insert(0, str(parent))
        return way

    def _lowest(self, owners: Sequence[str]) -> str:
        """The table among these that is below all others, or itself."""
        if not owners:
            raise InputError("Give at least one column.")
        lowest = max(owners, key=lambda table: len(self._way(table)))
        aside = [table for table in owners if table not in self._way(lowest)]
        if aside:
            raise InputError(
                f"Tables {aside[0]!r} and {lowest!r} stand side by side: no model has columns of both. Ask "
                "for columns of one table and of those above it."
            )
        return lowest

    def _counted(self, table: str) -> str:
        root = next(iter(self.tables))
        if table == root:
            return f"Counts are of rows of {root}."
        return f"Counts are of rows of {root} that have rows in {table}: each counts one, divided among them."

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page for a person who reads it: the tables and how they are tied, the promise once, then
        every table as in ``Release.report``. It costs nothing.

        Args:
            path: ends in .html or .htm; a file that exists is replaced.

        Returns:
            The path that was written.

        Raises:
            InputError: as ``Release.report``.
        """
        return write_database_report(self._page, path)

    def _repr_html_(self) -> str:
        """A short form of the report, which notebooks show."""
        return short_database_report(self._page)

    @property
    def _page(self) -> DatabasePage:
        tables = {name: one.public for name, one in self.tables.items()}
        return DatabasePage(self.into, self.facts, tables)

    @property
    def verdict(self) -> pd.DataFrame:
        """What to trust, as ``Release.verdict``, of all tables: with the column ``table`` first."""
        parts = [
            verdict_table(one.facts["losses"]).assign(table=name)[
                ["table", "about", "column", "verdict", "why"]
            ]
            for name, one in self.tables.items()
        ]
        return pd.concat(parts, ignore_index=True)

    def summary(self) -> str:
        """What was released, the verdict and what was lost, for people, table by table. It costs nothing."""
        lines = [
            f"{self.into}: {len(self.tables)} synthetic tables",
            f"epsilon={shown(self.epsilon)}, delta={self.delta:g}, release {self.id}",
            f"Protects {protected_words(self.facts['tree'])}.",
            *(f"Not protected: {text}" for text in self.facts["not_protected"]),
        ]
        for name, one in self.tables.items():
            lines += ["", f"{name}: {one.rows:,} rows", *summary_of_losses(one.facts["losses"])]
        return "\n".join(lines)

    def certificate(self) -> dict[str, Any]:
        """All that a reader needs to judge the privacy claim of the whole; JSON-ready."""
        return copy.deepcopy(self.facts)
