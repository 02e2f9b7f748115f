"""A person's rows on the page of a release: from a model whose joint table is known."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.planning.families import families_of
from dpsyn_sql.report.public import page
from dpsyn_sql.report.public.promise import hidden_names, persons_rows
from dpsyn_sql.source.relation import PrivacyUnit

AGE = Attribute("age", "INTEGER", "numeric", edges=(0, 40, 90))
WARD = Attribute("ward", "VARCHAR", "categorical", labels=("ear", "eye", "heart"))
FAMILIES = families_of(Domain((AGE, WARD)), PrivacyUnit("who", 6, together=True), {"age"})
DOMAIN = FAMILIES.domain


def joint(seed=3):
    """Persons (age, number of rows) and a ward that follows both: float64 (age, ward, size)."""
    rng = np.random.default_rng(seed)
    persons, given = rng.dirichlet(np.ones(12)).reshape(2, 6), rng.dirichlet(np.ones(3), (2, 6))
    return 1000 * np.einsum("as,asw->aws", persons, given)


class Known:
    """A model of one joint table; no person has two ages."""

    def __init__(self, table):
        self.domain, self.total = DOMAIN, float(table.sum())
        self.table = np.stack([table, np.zeros_like(table)], axis=3)

    def supports(self, attrs):
        return True

    def project(self, attrs):
        axes = [DOMAIN.index(name) for name in attrs]
        others = tuple(axis for axis in range(4) if axis not in axes)
        kept = [axis for axis in range(4) if axis in axes]
        return self.table.sum(axis=others).transpose([kept.index(axis) for axis in axes])


def facts(families=FAMILIES.facts):
    public = {} if families is None else {"families": families}
    return {"public_facts": public, "guarantee": {"privacy_unit": "who", "rows_per_unit": 6}}


def test_the_number_of_rows_is_by_octaves_of_persons():
    table = joint()
    found = persons_rows(Known(table), facts())
    shares = table.sum(axis=(0, 1)) / table.sum()
    assert [one.label for one in found.bars] == ["1", "2 to 3", "4 to 6"]
    assert [one.value for one in found.bars] == pytest.approx(
        [shares[0], shares[1:3].sum(), shares[3:].sum()]
    )
    assert found.mean == pytest.approx(shares @ np.arange(1, 7))
    assert (found.shared, found.most, found.order, found.unit) == (["age"], 6, "", "who")


def test_how_alike_rows_are_is_a_lower_bound_of_the_model():
    table = joint()
    (ward,) = persons_rows(Known(table), facts()).alike
    shares = table / table.sum()
    strangers = sum(shares.sum(axis=(0, 2)) ** 2)
    by_one = [
        sum(
            pair[place, code] ** 2 / pair[place].sum()
            for place, code in product(range(pair.shape[0]), range(3))
        )
        for pair in (shares.sum(axis=2), shares.sum(axis=0).T)
    ]
    own = sum(
        shares[age, code, size] ** 2 / shares[age, :, size].sum()
        for age, code, size in product(range(2), range(3), range(6))
    )
    assert (ward.name, ward.related, ward.strangers) == (
        "ward",
        pytest.approx(max(by_one)),
        pytest.approx(strangers),
    )
    assert strangers < ward.related < own


def test_independent_rows_agree_as_strangers_do():
    table = np.einsum("a,w,s->aws", [0.3, 0.7], [0.2, 0.3, 0.5], np.full(6, 100.0))
    (ward,) = persons_rows(Known(table), facts()).alike
    assert ward.related == pytest.approx(ward.strangers) == pytest.approx(0.38)


@pytest.mark.parametrize("families", [None, {**FAMILIES.facts, "size": "gone"}])
def test_without_families_there_is_nothing(families):
    assert persons_rows(Known(joint()), facts(families)) is None
    assert hidden_names(facts(None)) == frozenset()


def test_a_model_of_nobody_says_nothing():
    assert persons_rows(Known(np.zeros((2, 3, 6))), facts()) is None


def test_the_section_says_who_and_how_alike():
    found = persons_rows(Known(joint()), facts())
    text = str(page._parts().families(found))
    assert "1/n" in text and "age" in text and "ward" in text
    assert "4 to 6" in text
    assert "each depends on the row before" not in text
    ordered = SimpleNamespace(**{name: getattr(found, name) for name in found.__slots__} | {"order": "day<"})
    assert "day&lt;" in str(page._parts().families(ordered))


def test_hidden_attributes_are_no_columns():
    assert hidden_names(facts()) == {"rows of the unit", "columns that differ"}
