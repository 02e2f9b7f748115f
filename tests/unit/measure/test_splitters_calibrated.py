"""From shares of budgets to splitters."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from support.doors import NoNoise

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, event_from_dict, event_to_dict
from dpsyn_sql.errors import BudgetError, InputError
from dpsyn_sql.planning.queries import TreeQuery
from dpsyn_sql.private.measure.splitters import splitter_of

SHARES = [Budget.from_epsilon(1, 1e-9), Budget.from_epsilon(1, 0)]


@dataclass(frozen=True)
class Tree:
    """As much of a hierarchy as a splitter needs."""

    branching: int


def query(splitter, *branching, depth=6, **settings):
    return TreeQuery(tuple(map(Tree, branching)), splitter, depth, **settings)


@pytest.mark.parametrize("share", SHARES, ids=lambda share: share.kind)
@pytest.mark.parametrize("name", ["privtree", "basic", "improved", "direct"])
@pytest.mark.parametrize("rows", [1, 5])
def test_events_use_the_share_and_no_more(name, share, rows):
    event = splitter_of(query(name, 4), rows, share).event
    assert share.fraction * Fraction(999, 1000) < event.cost(share.kind) <= share.fraction
    assert event_from_dict(event_to_dict(event)) == event
    if name in ("basic", "direct"):
        levels = 6 + (name == "direct")
        if isinstance(event, GaussianEvent):
            assert event.l2_squared == levels * rows**2
        else:
            assert event.l1 == levels * rows
        assert isinstance(event, GaussianEvent) == (share.kind != "pure")


@pytest.mark.parametrize("branching", [2, 3, 16, 60])
def test_pure_noise_is_that_of_the_claims(branching):
    share = Budget.from_epsilon(1, 0)
    factor = (2 * branching - 1) / (branching - 1)
    tree, improved = (
        splitter_of(query(name, branching, 2), 3, share).event for name in ("privtree", "improved")
    )
    assert tree.branching == branching and tree.scale == pytest.approx(3 * factor)
    assert improved.scale == pytest.approx(3 * 2)


@pytest.mark.parametrize("share", SHARES, ids=lambda share: share.kind)
@pytest.mark.parametrize("branching", [2, 16, 300])
def test_noise_alone_makes_no_large_tree(share, branching):
    """Less than one of the children of an empty node is split on average."""
    basic, improved = (splitter_of(query(name, branching), 1, share) for name in ("basic", "improved"))
    scale = improved.event.scale
    assert branching * math.exp(-improved.threshold / scale) / (1 + math.exp(-1 / scale)) < 1
    event, reach = basic.event, basic.threshold
    gaussian = isinstance(event, GaussianEvent)
    tail = (
        math.erfc((reach - 0.5) / event.sigma / math.sqrt(2)) / 2
        if gaussian
        else math.exp(-reach / event.scale) / (1 + math.exp(-1 / event.scale))
    )
    assert branching * tail < 1
    assert splitter_of(query("privtree", branching), 1, share).threshold == 0


def test_a_threshold_at_which_noise_alone_splits_without_end_is_refused():
    share = Budget.from_epsilon(1, 0)  # noise of scale 2: e^(threshold / 2) is 16 from 5.55 on
    with pytest.raises(
        InputError, match=r"up to 16 children, more than e\^\(threshold / scale\).*threshold=6"
    ):
        splitter_of(query("improved", 16, threshold=5), 1, share)
    assert splitter_of(query("improved", 16, threshold=6), 1, share).threshold == 6
    assert splitter_of(query("improved", 16), 1, share).threshold == 6
    assert splitter_of(query("improved", 16, discount="uniform"), 1, share).discount == "uniform"


@pytest.mark.parametrize(
    ("name", "threshold"),
    [("privtree", -1), ("basic", -1), ("direct", 0), ("privtree", 2**63 - 1), ("improved", 2**58 + 1)],
)
def test_thresholds_out_of_range_are_refused(name, threshold):
    with pytest.raises(InputError, match=f"threshold={threshold} is out of range"):
        splitter_of(query(name, 4, threshold=threshold), 1, SHARES[0])


@pytest.mark.parametrize("name", ["privtree", "improved"])
@pytest.mark.parametrize(("units", "rows"), [(1, 10**6), (10**6, 10**12), (10**3, 1), (10**15, 10**15)])
def test_no_level_overflows(name, units, rows):
    """Whole numbers that do not fit would end a tree in an error that depends on its answers."""
    try:
        tests = splitter_of(query(name, 16), rows, Budget("pure", units)).tests(NoNoise())
    except BudgetError as error:
        assert rows > 1 and "wider than any table" in str(error)
        return
    nodes = np.zeros(2, dtype=np.int64)
    for _ in range(query(name, 16).depth):
        tests.level(np.array([0, 2**58]), nodes)


def test_a_tree_has_to_be_paid_for():
    with pytest.raises(BudgetError, match="no budget"):
        splitter_of(query("privtree", 4), 1, Budget.from_epsilon(1, 0).split([0, 1])[0])
