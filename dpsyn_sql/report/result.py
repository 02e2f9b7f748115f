"""What ``release()`` and ``load()`` return, a tree of tables: all of it is public but ``timings``."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.common.progress import Timing
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.network import MarginalModel
from dpsyn_sql.fit.variances import NO_VARIANCES, Variances
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.certificate import certificate_of_release, protected_words
from dpsyn_sql.report.loss_words import summary_of_losses, verdict_table
from dpsyn_sql.report.picture import picture
from dpsyn_sql.report.public.page import PublicRelease, PublicTable, short_report, write_report
from dpsyn_sql.source.names import listed

if TYPE_CHECKING:  # pandas takes half a second to load: whoever looks at a data frame waits for it
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, repr=False)
class ReleasedTable:
    """A table of a release.

    ``table`` is the quoted name or the path that was written; ``facts`` its certificate. ``measurements``:
    all noisy tables that it is made from: measured ones, and those composed of measured residuals. ``draw``
    gives rows of the stored model: of their number and a seed. ``read`` gives the synthetic rows: of the kind
    of data frame. ``variances``: of the model's estimates, by marginal.
    """

    table: str
    facts: dict[str, Any]
    model: MarginalModel
    measurements: tuple[NoisyMarginal, ...]
    draw: Callable[[int, int | None], pd.DataFrame] = field(compare=False)
    read: Callable[[str], Any] = field(compare=False)
    variances: Variances = NO_VARIANCES

    def __repr__(self) -> str:
        return f"ReleasedTable({self.table}, rows={self.rows}, id={self.id})"

    @property
    def rows(self) -> int:
        """The number of synthetic rows."""
        return int(self.facts["sampling"]["rows"])

    @property
    def id(self) -> str:
        """That of the release; of a table of several with the name of the table."""
        return str(self.facts["release"])

    def marginal(self, attrs: Sequence[str]) -> pd.DataFrame:
        """As ``Release.marginal`` of a release of one table.

        Raises:
            InputError: unknown attributes, or a marginal that the model cannot answer.
        """
        from dpsyn_sql.report.marginals import marginal_table

        return marginal_table(self.model, self.measurements, attrs, self.variances)

    def plot(self, attrs: str | Sequence[str]) -> Figure:
        """As ``Release.plot``.

        Raises:
            InputError: as ``Release.plot``.
        """
        return picture(self.model, [attrs] if isinstance(attrs, str) else attrs, f"{self.table}, synthetic")

    def to_df(self, kind: Literal["pandas", "polars", "arrow"] = "pandas") -> Any:
        """As ``Release.to_df``.

        Raises:
            InputError: as ``Release.to_df``.
        """
        return self.read(kind)

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """As ``Release.sample`` of a release of one table. Of a tree they are the rows that belong to so many
        new rows of the root, and keys are numbers: samples of all tables with one number and one seed join.

        Raises:
            InputError: as ``Release.sample``.
        """
        check_draw(rows, seed)
        return self.draw(rows, seed)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the page of this table alone, as ``Release.report``.

        Raises:
            InputError: as ``Release.report``.
        """
        return write_report(PublicRelease(self.table, self.facts, {self.table: self.public}), path)

    @property
    def public(self) -> PublicTable:
        """The values that its part of the report is made from."""
        return PublicTable(self.table, self.rows, self.facts, self.model, self.measurements, self.variances)

    @property
    def verdict(self) -> pd.DataFrame:
        """As ``Release.verdict`` of a release of one table."""
        return verdict_table(self.facts["losses"])

    def certificate(self) -> dict[str, Any]:
        """All that a reader needs to judge the privacy claim; JSON-ready."""
        return copy.deepcopy(self.facts)


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """A finished release of a tree of tables: mostly of one, or of several that join.

    ``tables``: each ``ReleasedTable`` by its name, the root first; also ``release["orders"]``. What is of a
    table (``table``, ``rows``, ``model``, ``measurements``, ``variances``, ``plot()``, ``to_df()``) can be
    asked of the release itself if it has one; a release of several refuses, and says which tables it has.

    ``into``: the table, file, schema or folder that was written; of a loaded release its name. ``facts``: the
    certificate of the whole. ``replayed``: an earlier run of the same release stored the answers, and they
    cost nothing now. ``notes``: messages for the operator.

    ``timings`` is PRIVATE: where the time of this call went, for the operator alone, as it follows from the
    rows of the source too (docs/privacy.md). ``pandas.DataFrame(release.timings)`` shows it: ``phase``,
    ``times``, ``seconds`` of the clock, ``processor`` (seconds of all cores of this process), ``done``; the
    sum of all is the whole call. Nothing else of a release has it: no certificate, report, file or text. It
    is empty for a release that was loaded.
    """

    tables: Mapping[str, ReleasedTable]
    into: str
    facts: dict[str, Any]
    replayed: bool
    notes: tuple[str, ...]
    timings: tuple[Timing, ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls,
        tables: Mapping[str, ReleasedTable],
        into: str | None = None,
        *,
        replayed: bool = True,
        notes: tuple[str, ...] = (),
        timings: tuple[Timing, ...] = (),
    ) -> Release:
        """The release of all these tables: its certificate is made from theirs.

        Args:
            tables: by name; of several each with the facts of ``certificate_in_tree``.
            into: what was written; None: of several the name of the release, of one its table.
            replayed: nothing was charged.
            notes: for the operator.
            timings: of the call that wrote it.

        Raises:
            InputError: as ``certificate_of_release``.
        """
        facts = certificate_of_release({name: table.facts for name, table in tables.items()})
        ordered = {member["table"]: tables[member["table"]] for member in facts.get("tree", ())} or tables
        if into is None:
            into = facts["name"] if "tree" in facts else next(iter(tables.values())).table
        return cls(ordered, into, facts, replayed, notes, timings)

    def __repr__(self) -> str:
        claim = f"epsilon={shown(self.epsilon)}, delta={self.delta:g}"
        replayed = ", replayed" if self.replayed else ""
        rows = ", ".join(f"{name}={table.rows}" for name, table in self.tables.items())
        rows = f"rows: {rows}" if len(self.tables) > 1 else f"rows={self.rows}"
        return f"Release({self.into}, {rows}, {claim}, id={self.id}{replayed})"

    def __getitem__(self, table: str) -> ReleasedTable:
        """A table of the release.

        Raises:
            InputError: there is no such table.
        """
        if table not in self.tables:
            raise InputError(
                f"There is no table {said(table)} in this release; there are {listed([*self.tables])}."
            )
        return self.tables[table]

    # -- the promise ------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Of the release; random."""
        return str(self.facts["release"])

    @property
    def epsilon(self) -> float:
        """Of the budget reserved before the run, of all tables together; rounded up."""
        return float(self.facts["guarantee"]["epsilon"])

    @property
    def delta(self) -> float:
        """The same of delta."""
        return float(self.facts["guarantee"]["delta"])

    @property
    def rho(self) -> float:
        """Of the same budget (mu^2/2, which implies this rho, where an account counts by it)."""
        return float(self.facts["guarantee"]["rho"])

    def certificate(self) -> dict[str, Any]:
        """All that a reader needs to judge the privacy claim of the whole; JSON-ready."""
        return copy.deepcopy(self.facts)

    # -- the only table ---------------------------------------------------------------------------

    def _only_table(self, part: str) -> ReleasedTable:
        if len(self.tables) > 1:
            raise InputError(
                f"This release has several tables, and {part} is of one: ask a table for it, such as "
                f"release[{next(iter(self.tables))!r}].{part}; there are {listed([*self.tables])}."
            )
        return next(iter(self.tables.values()))

    @property
    def table(self) -> str:
        """The quoted name or the path of the only table."""
        return self._only_table("table").table

    @property
    def rows(self) -> int:
        """The number of synthetic rows of the only table."""
        return self._only_table("rows").rows

    @property
    def model(self) -> MarginalModel:
        """The model of the only table."""
        return self._only_table("model").model

    @property
    def measurements(self) -> tuple[NoisyMarginal, ...]:
        """The noisy answers of the only table."""
        return self._only_table("measurements").measurements

    @property
    def variances(self) -> Variances:
        """Of the estimates of the only table's model."""
        return self._only_table("variances").variances

    def plot(self, attrs: str | Sequence[str]) -> Figure:
        """A picture of where the rows lie along a point: its leaves and their density; costs nothing.

        It is drawn from the model alone, never from rows. Write it with ``figure.savefig("map.png")``. Of a
        latitude and a longitude north is up; any other first column goes across.

        Args:
            attrs: a point of at most two columns, or one or two columns of one point.

        Raises:
            InputError: other columns, a release of several tables, or matplotlib is missing:
                ``pip install 'dpsyn_sql[plot]'``.
        """
        return self._only_table("plot()").plot(attrs)

    def to_df(self, kind: Literal["pandas", "polars", "arrow"] = "pandas") -> Any:
        """The synthetic rows as a data frame, read from the table or file that was written.

        Args:
            kind: ``"pandas"`` (DECIMAL becomes float64), ``"polars"``, or ``"arrow"`` (a ``pyarrow.Table``).
                The last two need ``pip install 'dpsyn_sql[polars]'`` or ``'dpsyn_sql[arrow]'``.

        Raises:
            InputError: an unknown kind, a missing package, an output that was replaced or removed since, a
                release of several tables, or one that was loaded: read the table or file itself.
        """
        return self._only_table("to_df()").to_df(kind)

    # -- the whole tree ---------------------------------------------------------------------------

    def sample(self, rows: int, seed: int | None = None) -> Any:
        """More rows of the models, in the columns of the release; costs nothing.

        The database draws them from the stored model, so these are the rows of
        ``dpsyn_sample(name, rows, seed := seed)`` in SQL: keys and unit ids are NULL, rows that the owner
        excludes are left out, and no seed gives the released rows. The connection or file must still
        exist and be readable. The data frame is in memory: about 8 bytes per number and 60 per text.

        Of several tables each frame is ``dpsyn_sample('<release>.<table>', rows, seed := seed)``. Keys are
        numbers: a foreign key is the key of a row of its parent's frame. Keys of public rows are NULL.

        Args:
            rows: how many, of several tables of the root: the others have what their models give them. The
                result has fewer if the owner's conditions exclude some.
            seed: 0 to 2^64 - 1; None: 1, as in SQL.

        Returns:
            A ``pandas.DataFrame``; of several tables one by the name of each.

        Raises:
            InputError: rows or seed out of range, a model that SQL cannot draw from (the copula, or more than
                120 steps), or a release that was replaced, changed or removed since.
        """
        if len(self.tables) > 1:
            return {name: table.sample(rows, seed) for name, table in self.tables.items()}
        return self._only_table("sample()").sample(rows, seed)

    def marginal(self, attrs: Sequence[str]) -> pd.DataFrame:
        """Counts of a marginal, denoised and as measured, with standard errors; costs nothing.

        It is printed in whole rows; its values have all digits. Where rows stay together counts are of units,
        each of which counts one, divided among its rows. Of several tables the model of the lowest of those
        named answers: its counts are of root rows (persons) that have rows in this table. The printed table
        says so, and ``attrs["counts"]`` of the frame.

        Args:
            attrs: columns; of several tables ``"table.column"``, such as ``["customers.region",
                "items.category"]``, also ``"number of <table>"`` in place of the column: how many rows of a
                table below a row has.

        Returns:
            Columns: the attributes, named as they were given, ``estimate`` (of the model, denoised: closest
            on average, biased), ``estimate_error`` (of ``estimate``, in rows; NaN where none is known),
            ``noisy`` (as measured: unbiased), ``standard_error`` (of ``noisy``, in rows), ``basis``, as in
            ``dpsyn_sql.report.marginals.marginal_table``.

        Raises:
            InputError: unknown attributes, tables of which none is below all others, or a marginal that the
                model cannot answer.
        """
        if len(self.tables) == 1:
            return self._only_table("marginal()").marginal(attrs)
        if isinstance(attrs, str):
            raise InputError(f"attrs={said(attrs)}: give a list of columns, such as ['customers.region']")
        columns = [self._table_and_column(name) for name in attrs]
        lowest = self._lowest([table for table, _ in columns])
        answering = self.tables[lowest]
        above = {
            (attribute["table"], attribute["attribute"]): str(attribute["name"])
            for attribute in answering.facts["public_facts"]["families"]["above"]
        }
        names = [column if table == lowest else above.get((table, column)) for table, column in columns]
        for attr, name in zip(attrs, names, strict=True):
            if name is None or name not in answering.model.domain.names:
                raise InputError(f"The release has no column {said(attr)} that it measured.")
        import pandas as pd

        from dpsyn_sql.report.marginals import MarginalTable

        counts = MarginalTable(answering.marginal([str(name) for name in names]))
        counts.columns = pd.Index([*attrs, *counts.columns[len(attrs) :]])
        counts.attrs["counts"] = self._counted(lowest)
        return counts

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page for a person who reads it: what this is good for, the promise in plain words, every
        column with error bars, pairs, accuracy, budget (docs/report.md). It costs nothing.

        The page is one file that needs neither network nor JavaScript. It is as public as the release: it is
        computed from the models, the noisy answers and the certificates. Of several tables it says how they
        are tied and the promise once, then shows each. A file that exists is replaced.

        Args:
            path: ends in .html or .htm.

        Returns:
            The path that was written.

        Raises:
            InputError: a folder, another ending, a folder that does not exist, or that cannot be written.
        """
        return write_report(self.public, path)

    def _repr_html_(self) -> str:
        """A short form of the report, which notebooks show."""
        return short_report(self.public)

    @property
    def public(self) -> PublicRelease:
        """The values that its report is made from."""
        tables = {name: table.public for name, table in self.tables.items()}
        return PublicRelease(self.into, self.facts, tables)

    @property
    def verdict(self) -> pd.DataFrame:
        """What to trust: a row for the table, one for the dependences, and one for each column, the worst
        first (docs/what_was_lost.md). It costs nothing.

        Columns: of several tables ``table``; ``about`` (``"table"``, ``"dependences"``, ``"column"``),
        ``column`` (None but for columns), ``verdict`` (``"good"``, ``"rough"`` or ``"do not use"``), ``why``
        (the reason and what helps; empty if it is good).
        """
        if len(self.tables) == 1:
            return self._only_table("verdict").verdict
        import pandas as pd

        verdicts = [
            table.verdict.assign(table=name)[["table", "about", "column", "verdict", "why"]]
            for name, table in self.tables.items()
        ]
        return pd.concat(verdicts, ignore_index=True)

    def summary(self) -> str:
        """What was released, the verdict and what was lost, for people, table by table: each column that is
        not good or lost something, pairs, and all warnings (docs/what_was_lost.md). It costs nothing.
        """
        claim = f"epsilon={shown(self.epsilon)}, delta={self.delta:g}, release {self.id}"
        if len(self.tables) == 1:
            losses = summary_of_losses(self.facts["losses"])
            return "\n".join([f"{self.into}: {self.rows:,} synthetic rows", claim, *losses])
        lines = [
            f"{self.into}: {len(self.tables)} synthetic tables",
            claim,
            f"Protects {protected_words(self.facts['tree'])}.",
            *(f"Not protected: {text}" for text in self.facts["not_protected"]),
        ]
        for name, table in self.tables.items():
            lines += ["", f"{name}: {table.rows:,} rows", *summary_of_losses(table.facts["losses"])]
        return "\n".join(lines)

    # -- columns of joined tables -----------------------------------------------------------------

    def _table_and_column(self, name: object) -> tuple[str, str]:
        """The table and the column of a name; of tables whose names begin alike the longest."""
        tables = [table for table in self.tables if isinstance(name, str) and name.startswith(f"{table}.")]
        if not isinstance(name, str) or not tables:
            raise InputError(
                f"{said(name)} is no column of a table of this release: give 'table.column', with one of the "
                f"tables {listed([*self.tables])}"
            )
        table = max(tables, key=len)
        return table, name[len(table) + 1 :]

    def _path(self, table: str) -> list[str]:
        """The tables from the root to this one."""
        parents = {str(member["table"]): member["parent"] for member in self.facts["tree"]}
        path = [table]
        while (parent := parents[path[0]]) is not None:
            path.insert(0, str(parent))
        return path

    def _lowest(self, tables: Sequence[str]) -> str:
        """The table among these that is below all others, or itself."""
        if not tables:
            raise InputError("Give at least one column.")
        lowest = max(tables, key=lambda table: len(self._path(table)))
        aside = [table for table in tables if table not in self._path(lowest)]
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


def check_draw(rows: int, seed: int | None) -> None:
    """Refuse what ``dpsyn_sample`` does not take.

    Raises:
        InputError: rows or seed out of range.
    """
    _check("rows", rows, 2**63)
    if seed is not None:
        _check("seed", seed, 2**64)


def _check(name: str, value: object, below: int) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not 0 <= value < below:  # type: ignore[operator]
        raise InputError(
            f"{name}={said(value)} is out of range: give a whole number from 0 up and below {below}"
        )
