"""What an audit does not attack, it refuses: questions of discovery."""

import pytest

from dpsyn_sql.auditing import audit
from dpsyn_sql.errors import InputError

DYADIC = {"columns": {"fare": {"type": "dyadic", "lower": 0, "upper": 200}}}


@pytest.mark.parametrize("method", [None, "hierarchical"])
@pytest.mark.parametrize(
    "domain", [DYADIC, {"columns": {"fare": {"type": "discover", "as": "categorical"}}}], ids=["tree", "keys"]
)
def test_a_domain_that_is_to_be_discovered(method, domain):
    with pytest.raises(InputError, match=r"attacks no discovery.*'fare'.*declare bins or categories"):
        audit(method=method, domain=domain, runs=10)


def test_a_method_that_asks_for_trees():
    with pytest.raises(InputError, match="'hierarchical' asks questions of discovery only"):
        audit(method="hierarchical", runs=10)
