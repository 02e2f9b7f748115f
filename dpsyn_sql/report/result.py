"""What ``release()`` and ``load()`` return: all of it is public but ``timings``."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.common.stopwatch import Timing
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.model import MarginalModel
from dpsyn_sql.fit.variances import NO_VARIANCES, Variances
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.loss_words import summary_of_losses, verdict_table
from dpsyn_sql.report.marginals import marginal_table
from dpsyn_sql.report.picture import picture
from dpsyn_sql.report.public.page import PublicRelease, short_report, write_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """A finished release.

    ``table`` is the quoted name or the path that was written, ``rows`` the number of synthetic
    rows, ``epsilon`` (rounded up) and ``rho`` those of the budget reserved before the run (mu^2/2, which
    implies this rho, where an account counts by it), ``id`` random, ``measurements`` all noisy tables that it
    is made from: measured ones, and those composed of measured residuals. ``replayed``: an earlier run of
    the same release stored the answers, and they cost nothing now. ``notes``: messages for the
    operator. ``draw`` gives rows of the stored model: of their number and a seed. ``read`` gives the
    synthetic rows: of the kind of data frame. ``variances``: of the model's estimates, by marginal.

    ``timings`` is PRIVATE: where the time of this call went, for the operator alone, as it follows from the
    rows of the source too (docs/privacy.md). ``pandas.DataFrame(release.timings)`` shows it: ``phase``,
    ``times``, ``seconds`` of the clock, ``processor`` (seconds of all cores of this process), ``done``; the
    sum of all is the whole call. Nothing else of a release has it: no certificate, report, file or text. It
    is empty for a release that was loaded.
    """

    table: str
    rows: int
    epsilon: float
    delta: float
    rho: float
    id: str
    model: MarginalModel
    measurements: tuple[NoisyMarginal, ...]
    facts: dict[str, Any]
    replayed: bool
    notes: tuple[str, ...]
    draw: Callable[[int, int | None], pd.DataFrame] = field(compare=False)
    read: Callable[[str], Any] = field(compare=False)
    variances: Variances = NO_VARIANCES
    timings: tuple[Timing, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        claim = f"epsilon={shown(self.epsilon)}, delta={self.delta:g}"
        replayed = ", replayed" if self.replayed else ""
        return f"Release({self.table}, rows={self.rows}, {claim}, id={self.id}{replayed})"

    def marginal(self, attrs: Sequence[str]) -> pd.DataFrame:
        """Counts of a marginal, denoised and as measured, with standard errors; costs nothing.

        It is printed in whole rows; its values have all digits. Where rows stay together counts are of units,
        each of which counts one, divided among its rows.

        Columns: the attributes, ``estimate`` (of the model, denoised: closest on average, biased),
        ``estimate_error`` (of ``estimate``, in rows; NaN where none is known), ``noisy`` (as measured:
        unbiased), ``standard_error`` (of ``noisy``, in rows), ``basis``, as in
        ``dpsyn_sql.report.marginals.marginal_table``.

        Raises:
            InputError: unknown attributes, or a marginal that the model cannot answer.
        """
        return marginal_table(self.model, self.measurements, attrs, self.variances)

    def plot(self, attrs: str | Sequence[str]) -> Figure:
        """A picture of where the rows lie along a point: its leaves and their density; costs nothing.

        It is drawn from the model alone, never from rows. Write it with ``figure.savefig("map.png")``. Of a
        latitude and a longitude north is up; any other first column goes across.

        Args:
            attrs: a point of at most two columns, or one or two columns of one point.

        Raises:
            InputError: other columns, or matplotlib is missing: ``pip install 'dpsyn_sql[plot]'``.
        """
        return picture(self.model, [attrs] if isinstance(attrs, str) else attrs, f"{self.table}, synthetic")

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page for a person who reads it: what this is good for, the promise in plain words, every
        column with error bars, pairs, accuracy, budget (docs/report.md). It costs nothing.

        The page is one file that needs neither network nor JavaScript. It is as public as the release: it is
        computed from the model, the noisy answers and the certificate. A file that exists is replaced.

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
        return PublicRelease(self.table, self.rows, self.facts, self.model, self.measurements, self.variances)

    def to_df(self, kind: Literal["pandas", "polars", "arrow"] = "pandas") -> Any:
        """The synthetic rows as a data frame, read from the table or file that was written.

        Args:
            kind: ``"pandas"`` (DECIMAL becomes float64), ``"polars"``, or ``"arrow"`` (a ``pyarrow.Table``).
                The last two need ``pip install 'dpsyn_sql[polars]'`` or ``'dpsyn_sql[arrow]'``.

        Raises:
            InputError: an unknown kind, a missing package, an output that was replaced or removed since, or a
                release that was loaded: read the table or file itself.
        """
        return self.read(kind)

    def sample(self, rows: int, seed: int | None = None) -> pd.DataFrame:
        """More rows of the model, in the columns of the release; costs nothing.

        The database draws them from the stored model, so these are the rows of
        ``dpsyn_sample(name, rows, seed := seed)`` in SQL: keys and unit ids are NULL, rows that the owner
        excludes are left out, and no seed gives the released rows. The connection or file must still
        exist and be readable. The data frame is in memory: about 8 bytes per number and 60 per text.
        Of a table of a database release they are the rows that belong to so many new rows of the root, and
        keys are numbers: samples of all its tables with one number and one seed join.

        Args:
            rows: how many; the result has fewer if the owner's conditions exclude some.
            seed: 0 to 2^64 - 1; None: 1, as in SQL.

        Raises:
            InputError: rows or seed out of range, a model that SQL cannot draw from (the copula, or more than
                120 steps), or a release that was replaced, changed or removed since.
        """
        check_draw(rows, seed)
        return self.draw(rows, seed)

    @property
    def verdict(self) -> pd.DataFrame:
        """What to trust: a row for the table, one for the dependences, and one for each column, the worst
        first (docs/what_was_lost.md). It costs nothing.

        Columns: ``about`` (``"table"``, ``"dependences"``, ``"column"``), ``column`` (None but for columns),
        ``verdict`` (``"good"``, ``"rough"`` or ``"do not use"``), ``why`` (the reason and what helps; empty
        if it is good).
        """
        return verdict_table(self.facts["losses"])

    def summary(self) -> str:
        """What was released, the verdict and what was lost, for people: each column that is not good or lost
        something, pairs, and all warnings (docs/what_was_lost.md). It costs nothing.
        """
        lines = [
            f"{self.table}: {self.rows:,} synthetic rows",
            f"epsilon={shown(self.epsilon)}, delta={self.delta:g}, release {self.id}",
            *summary_of_losses(self.facts["losses"]),
        ]
        return "\n".join(lines)

    def certificate(self) -> dict[str, Any]:
        """All that a reader needs to judge the privacy claim; JSON-ready."""
        return copy.deepcopy(self.facts)


def check_draw(rows: int, seed: int | None) -> None:
    """Refuse what ``dpsyn_sample`` does not take.

    Raises:
        InputError: rows or seed out of range.
    """
    _check("rows", rows, 2**63)
    if seed is not None:
        _check("seed", seed, 2**64)


def _check(name: str, value: object, below: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not 0 <= value < below:  # type: ignore[operator]
        raise InputError(
            f"{name}={said(value)} is out of range: give a whole number from 0 up and below {below}"
        )
