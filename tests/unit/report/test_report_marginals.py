"""What ``Release.marginal()`` says: the denoised estimate apart from the measurement and its error."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.copula import fit_copula
from dpsyn_sql.fit.variances import NO_VARIANCES
from dpsyn_sql.fit.views import Measurements, fit_margins
from dpsyn_sql.methods.models.margins import CopulaModel, ProductModel
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.fitted import total_error
from dpsyn_sql.report.marginals import marginal_table
from dpsyn_sql.report.public.accuracy import pairs_of

DOMAIN = Domain(
    (
        Attribute("x", "INTEGER", "categorical", tuple(range(32)), ordered=True),
        Attribute("y", "VARCHAR", "categorical", ("a", "b")),
    )
)
TRUTH = np.rint(np.outer(1_000 * np.exp(-(((np.arange(32) - 10) / 8) ** 2)), [0.5, 0.5]))


def table(attrs, exact, sigma, seed=0):
    noise = np.rint(np.random.default_rng(seed).normal(0, sigma, exact.shape))
    return NoisyMarginal(attrs, (exact + noise).astype(np.int64), sigma)


ONE, TWO = table(("x",), TRUTH.sum(axis=1), 100.0), table(("x", "y"), TRUTH, 100.0, seed=1)


def product_model(tables):
    return ProductModel(DOMAIN, fit_margins(DOMAIN, Measurements(tables)))


@pytest.mark.parametrize(
    "fit",
    [product_model, lambda tables: CopulaModel(DOMAIN, fit_copula(DOMAIN, tables))],
    ids=["independent", "copula"],
)
def test_the_estimate_is_denoised_and_the_error_belongs_to_the_measurement(fit):
    found = marginal_table(fit([ONE, TWO]), [ONE, TWO], ["x"])
    # The pair holds two cells for each code: twice the variance.
    weights = np.array([1 / 100.0**2, 1 / (2 * 100.0**2)])
    mean = (weights[0] * ONE.values + weights[1] * TWO.values.sum(axis=1)) / weights.sum()
    np.testing.assert_allclose(found["noisy"], mean)
    np.testing.assert_allclose(found["standard_error"], 1 / math.sqrt(weights.sum()))
    assert set(found["basis"]) == {"measured"}
    errors = {name: np.abs(found[name] - TRUTH.sum(axis=1)).sum() for name in ("estimate", "noisy")}
    assert errors["estimate"] < 0.7 * errors["noisy"]
    assert found["estimate"].min() >= 0


def test_an_unordered_one_way_is_only_projected_and_unmeasured_pairs_have_no_error():
    one = table(("y",), TRUTH.sum(axis=0), 50.0)
    model = product_model([ONE, one])
    found = marginal_table(model, [ONE, one], ["y"])
    np.testing.assert_array_equal(found["noisy"], one.values)
    assert np.ptp(found["estimate"] - found["noisy"]) == pytest.approx(0, abs=1e-6)
    pair = marginal_table(model, [ONE, one], ["x", "y"])
    assert set(pair["basis"]) == {"modelled"}
    assert pair["noisy"].isna().all() and pair["standard_error"].isna().all()


@pytest.mark.parametrize(
    ("tables", "basis"),
    [
        ([TWO], "measured"),
        ([replace(TWO, composed=True)], "measured"),
        ([replace(TWO, maps=(None, (0, 0)), values=TWO.values.sum(axis=1, keepdims=True))], "grouped"),
        ([ONE], "modelled"),
    ],
)
def test_page_and_table_say_the_same_of_how_a_pair_is_known(tables, basis):
    tables, model = [ONE, *tables], product_model([ONE, TWO])
    found = marginal_table(model, tables, ["x", "y"])
    assert set(found["basis"]) == {basis} and found["noisy"].isna().all() == (
        basis in ("grouped", "modelled")
    )
    (pair,) = pairs_of(model, tables, NO_VARIANCES).strongest
    assert (pair.kind == "measured", pair.grouped) == (basis != "modelled", basis == "grouped")


def test_the_error_of_the_total_pools_the_sums_of_all_tables():
    variances = np.array([32 * 100.0**2, 64 * 100.0**2])
    assert total_error([ONE, TWO]) == pytest.approx(1 / math.sqrt((1 / variances).sum()))


def test_a_table_is_printed_with_its_errors_in_whole_rows_and_keeps_its_values():
    attribute = Attribute("estimate", "VARCHAR", "categorical", ("a", "b"))
    domain = Domain((attribute, Attribute("y", "BOOLEAN", "categorical", (False, True))))
    large = NoisyMarginal(("estimate",), np.array([1_234_567, -3]), 25.98)
    found = marginal_table(
        ProductModel(domain, fit_margins(domain, Measurements([large]))), [large], ["estimate"]
    )
    lines = str(found).splitlines()
    assert lines[0].split() == ["estimate", "estimate", "estimate_error", "noisy", "standard_error", "basis"]
    assert lines[1].split() == ["0", "a", "1,234,564", "1,234,567", "26", "measured"]
    assert "<td>1,234,567</td>" in found._repr_html_()
    assert found["noisy"].tolist() == [1_234_567, -3] and found["standard_error"].iloc[0] == 25.98
    assert str(found.head(1)).splitlines() == lines[:2]
    assert " 0.3 " in str(found.assign(standard_error=0.26))
