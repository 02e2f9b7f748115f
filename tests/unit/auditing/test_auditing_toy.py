"""The toy table of an audit answers every marginal with its rows, each once."""

import pytest

from dpsyn_sql.auditing import prepared
from dpsyn_sql.auditing.testing import Toy
from dpsyn_sql.planning.queries import MarginalQuery


@pytest.mark.parametrize("attrs", [(), ("a",), ("b", "c"), ("a", "b", "c")])
def test_every_table_counts_all_rows_and_the_unit_in_one_cell(attrs):
    made = Toy(prepared(epsilon=3, method="adaptive", runs=1).plan, 50)
    query = MarginalQuery(attrs)
    table = made.table(query)
    assert table.shape == made.domain.shape(attrs) and table.sum() == 50
    ((without,), (within,)) = (made.counter(within=one).count([query]) for one in (False, True))
    assert (without == table).all() and within.sum() - without.sum() == made.unit_rows
    assert within[made.place(query)] - without[made.place(query)] == made.unit_rows
