"""The noise that a plan tells is that of the tables which the release shows."""

import numpy as np
import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.fit.reconstruct import shown_tables
from dpsyn_sql.methods.adaptive import Adaptive
from dpsyn_sql.planning.queries import NoisyMarginal, NoisyResidual
from dpsyn_sql.private.measure.noise import standard_deviation
from dpsyn_sql.private.measure.planned_events import asked_events, explained_noise
from dpsyn_sql.source.relation import Relation, Source


@pytest.mark.parametrize("epsilon", [0.1, 1, 100])
def test_a_plan_tells_the_noise_of_the_tables_that_residuals_make(epsilon):
    """At epsilon 100 most of it is rounding to whole rows."""
    domain = Domain((Attribute("a", "INTEGER", "categorical", labels=tuple(range(40)), other=False),))
    source = Source(Relation("people", "table", "people", ()))
    plan = Adaptive().plan(source, domain, Budget.of_release(epsilon, "1e-9"))
    (total,), (residual,) = asked_events(plan)
    shown = shown_tables(
        domain,
        [
            NoisyMarginal((), np.array(7), standard_deviation(total)),
            NoisyResidual(("a",), np.zeros(40, np.int64), residual.sigma),
        ],
    )
    assert [noise.deviation for noise in explained_noise(plan)] == pytest.approx([one.sigma for one in shown])
