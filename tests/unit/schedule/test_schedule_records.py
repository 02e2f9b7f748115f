"""What a schedule reads of a ledger."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.ledger.overview import ReleaseOverview
from dpsyn_sql.schedule.records import Records

COST = Budget("gdp", 10)
ENTRY = ReleaseOverview("1", "people", "year", "2024", "stopped", COST, COST, "", "", None, ())


@pytest.mark.parametrize("state", ["debited", "measured", "published"])
def test_of_a_period_that_stopped_once_the_entry_that_came_further_is_told(state):
    item = SimpleNamespace(
        key=("year", "2024"), releases=SimpleNamespace(source=SimpleNamespace(account=None))
    )
    further = replace(ENTRY, release_id="2", state=state)
    assert Records(releases=(ENTRY,)).of(item) is ENTRY
    for both in ((ENTRY, further), (further, ENTRY)):
        assert Records(releases=both).of(item) is further
