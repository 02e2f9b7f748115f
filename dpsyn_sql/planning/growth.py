"""What is asked about a table that is one key of hierarchies, at what share; from public facts only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.discovery import (
    STRUCTURE_PARTS,
    DiscoveryStep,
    contributions_share,
    usual_depth,
    usual_splitter,
)
from dpsyn_sql.planning.queries import Discount, Splitter, TreeQuery
from dpsyn_sql.source.relation import PrivacyUnit

TOTAL_SHARE = Fraction(1, 20)
"""Share of the budget for the rows in all: inside the hierarchies, outside, and without a value. The sum of
thousands of noisy leaves has much more noise."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How the tree of a key is grown.

    ``splitter``: None for the usual one of the account. ``structure``: part of the budget that finds which
    nodes are split; the rest counts the leaves (none is left for ``direct``, which commits their counts).
    ``depth``: levels that are split at most. ``threshold``: rows from which a node is split. Those that are
    None are as usual for the splitter. ``discount``: of the improved splitter.
    """

    splitter: Splitter | None = None
    structure: Fraction | None = None
    depth: int | None = None
    threshold: int | None = None
    discount: Discount = "clamped"


def planned_growth(
    shape: Shape, unit: PrivacyUnit, budget: Budget, growth: Growth
) -> tuple[tuple[DiscoveryStep, ...], Budget]:
    """The steps that spend the whole budget, and the nothing that is left of it.

    Raises:
        InputError: a column is no hierarchy, or the depth is more than the hierarchies have.
    """
    others = [item.name for item in shape.measured if isinstance(item, Attribute) or item.hierarchy is None]
    if others or not shape.measured:
        named = f"these are none: {', '.join(map(repr, others))}" if others else "there is no column at all"
        raise InputError(
            f"method='hierarchical' takes tables whose columns are all hierarchies; {named}. "
            "Declare them as point, string, dyadic or taxonomy in the domain file, leave them out "
            "with exclude=, or use method='auto', which takes hierarchies beside other columns."
        )
    hierarchies = tuple(item.hierarchy for item in shape.undiscovered if item.hierarchy is not None)
    name, deepest = shape.measured[0].name, sum(one.depth for one in hierarchies)
    if growth.depth is not None and growth.depth > deepest:
        raise InputError(
            f"method='hierarchical' has the setting depth={growth.depth}, and the columns have {deepest} "
            "levels: give a depth of at most so many, or none"
        )
    splitter = growth.splitter or usual_splitter(budget.kind)
    depth = growth.depth or usual_depth(hierarchies, splitter)
    query = TreeQuery(hierarchies, splitter, depth, growth.threshold, discount=growth.discount)
    rows = contributions_share(shape, unit)
    usual = STRUCTURE_PARTS[splitter]
    structure = usual if usual == 1 or growth.structure is None else growth.structure
    rest = 1 - rows - TOTAL_SHARE
    weights = (rows, TOTAL_SHARE, structure * rest, (1 - structure) * rest)
    contributions, total, tree, leaves = budget.without_thresholds().split(weights)
    steps = [DiscoveryStep("total", name, total, tree=query), DiscoveryStep("tree", name, tree, tree=query)]
    if structure < 1:
        steps.append(DiscoveryStep("leaves", name, leaves, tree=query))
    if rows:
        steps.append(DiscoveryStep("contributions", None, contributions))
    return tuple(steps), Budget(budget.kind, 0)
