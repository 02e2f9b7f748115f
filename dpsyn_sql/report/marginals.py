"""Marginals of a release with error bars, as data frames of pandas; public.

Pandas takes half a second to load, so only what a caller looks at does so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dpsyn_sql.fit.network import MarginalModel
from dpsyn_sql.fit.variances import NO_VARIANCES, Variances
from dpsyn_sql.methods.models.margins import checked_names
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.fitted import marginal_figures
from dpsyn_sql.report.labels import code_labels

_FIGURES = ("estimate", "estimate_error", "noisy", "standard_error")


class MarginalTable(pd.DataFrame):
    """Counts with their errors: printed as whole rows and in full width, kept as they are; below them what
    ``attrs["counts"]`` says of what is counted."""

    @property
    def _constructor(self) -> type[MarginalTable]:
        return MarginalTable

    def __repr__(self) -> str:
        shown = self._as_shown()
        most = pd.get_option("display.max_rows")
        text: str = shown.to_string(max_rows=most, min_rows=pd.get_option("display.min_rows"))
        cut = "" if most is None or len(shown) <= most else f"\n\n[{len(shown):,} rows]"
        counts = f"\n\n{self.attrs['counts']}" if "counts" in self.attrs else ""
        return f"{text}{cut}{counts}"

    def _repr_html_(self) -> str:
        shown: str = self._as_shown()._repr_html_()  # type: ignore[operator]
        return shown

    def _as_shown(self) -> pd.DataFrame:
        """The figures as text. An attribute may have the name of a figure: it is no float."""
        columns = []
        for position, name in enumerate(self.columns):
            column = pd.Series(self.iloc[:, position])
            figures = name in _FIGURES and column.dtype == np.float64
            columns.append(column.map(_rows) if figures else column)
        return pd.concat(columns, axis=1) if columns else pd.DataFrame(self)


def _rows(number: float) -> str:
    """Whole rows; the first digit of less than one, and nothing where nothing is known."""
    if math.isnan(number):
        return ""
    return f"{number:,.0f}" if abs(number) >= 1 or number == 0 else f"{number:.1g}"


def marginal_table(
    model: MarginalModel,
    measurements: Sequence[NoisyMarginal],
    attrs: Sequence[str],
    variances: Variances = NO_VARIANCES,
) -> MarginalTable:
    """One row per cell of the marginal over ``attrs``, in row-major order of the codes.

    Columns: the attributes (labels, bins as text, None for NULL), then

    - ``estimate``: expected count of the model, in rows; denoised (ordered one-ways smoothed, rare codes
      pooled, cells not below 0, tables agree with each other). Closest to the source on average, but
      biased towards what is smooth.
    - ``estimate_error``: standard error (rows) of ``estimate`` as an estimate of the true count, by
      ``variances``; NaN where these know none.
    - ``noisy``: inverse-variance mean of all measured tables that contain ``attrs``, or the sum of the
      measured residuals of ``attrs`` and of their margins, unprocessed: it is unbiased and may be below 0.
    - ``standard_error``: of ``noisy`` (not of ``estimate``), exact, in rows.
    - ``basis``: ``"measured"`` (a table over exactly these attributes was measured, or its residual),
      ``"summed"`` (only larger tables were), ``"grouped"`` (several attributes were counted together over
      wider groups of their codes alone) or ``"modelled"`` (no table has them together, or one attribute has a
      curve through noisy counts). Of the last two ``noisy`` and ``standard_error`` are NaN.

    Raises:
        InputError: unknown or repeated attributes, or a marginal the model cannot answer.
    """
    names = checked_names(model.domain, attrs)
    figures = marginal_figures(model, measurements, names, variances)
    labels = [code_labels(model.domain[name]) for name in names]
    index = np.indices([model.domain[name].size for name in names]).reshape(len(names), -1)
    columns: dict[str, object] = {
        name: pd.Series([labels[axis][code] for code in index[axis]], dtype=object)
        for axis, name in enumerate(names)
    }
    # An attribute may have the name of a figure: then both columns are there, the attribute first.
    return MarginalTable(pd.concat([pd.DataFrame(columns), pd.DataFrame(figures)], axis=1))
