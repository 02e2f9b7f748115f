"""What a certificate claims, and by which accounting."""

from fractions import Fraction

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.accounting.account import reported_epsilon
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.report.certificate import Claim, attribute_facts, claim_of, measured_facts
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.stored_facts import attribute_of_facts

DELTA = Fraction(1, 10**9)


def test_the_claim_of_a_budget_is_that_of_its_accounting_rounded_up():
    budget = Budget.from_epsilon("1.7", DELTA)
    claimed = claim_of(budget, DELTA)
    assert {name for name, bound in claimed.bounds.items() if bound is not None} == {"gdp"}
    exact = Fraction(reported_epsilon(budget, DELTA))
    assert exact <= Fraction(repr(claimed.epsilon)) <= exact * (1 + Fraction(1, 10**11))
    assert claimed.epsilon <= 1.7 and claimed.delta == 1e-9


def test_the_claim_of_a_pure_budget_has_no_delta():
    claimed = claim_of(Budget.from_epsilon("1.7", 0), 0)
    assert claimed.bounds == {"gdp": None, "pld": None, "pure": 1.7} and claimed.delta == 0


def test_a_loss_distribution_is_a_second_opinion_and_no_claim():
    """Its rounding is estimated, so a smaller figure proves nothing."""
    assert Claim(1e-9, gdp=1.0, pld=0.99).epsilon == 1.0
    assert Claim(1e-9, gdp=1.0, pld=0.99).bounds["pld"] == 0.99


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("delta", "kind", "said", "lattice"),
    [("1e-9", "gdp", "exact Gaussian accounting (mu = ", 16), (0, "pure", "pure differential privacy", None)],
)
def test_a_certificate_names_its_accounting_and_the_lattice_of_its_noise(delta, kind, said, lattice):
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS b FROM range(300) r(i)")
        facts = dpsyn_sql.release(con, "t", delta=delta, method="independent").facts
    guarantee, budget = facts["guarantee"], facts["budget"]
    assert budget["kind"] == kind and guarantee["accounting"].startswith(said)
    assert set(guarantee["bounds"]) == {"gdp", "pld", "pure"}
    assert guarantee["epsilon"] == guarantee["bounds"][kind] <= 1
    assert guarantee["rho"] * 10**15 == pytest.approx(Budget.of_release(1, delta).rho * 10**15)
    assert 0 < budget["used_units_of_1e-15"] <= budget["reserved_units_of_1e-15"]
    assert {one.get("lattice") for one in facts["mechanisms"]} == {lattice}


def test_what_codes_of_a_reference_are_called_is_told_and_decides_no_answer():
    """The key of a stored release has it not, so that another name, or an older release, is no other question."""
    named = Attribute(
        "p", "BIGINT", "categorical", labels=(0, 1), named=("bread", "milk, 1 l"), nullable=True
    )
    bare = Attribute("p", "BIGINT", "categorical", labels=(0, 1), nullable=True)
    assert attribute_of_facts(attribute_facts(named)) == named != bare
    assert measured_facts(named) == measured_facts(bare) == attribute_facts(bare)
    assert code_labels(named) == ["bread", "milk, 1 l", None] and code_labels(bare) == [0, 1, None]
