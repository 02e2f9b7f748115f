"""Adaptive histograms: a table that is one key of hierarchies (places, journeys, strings, ids).

    which nodes are split                     discovery, by the splitter
    rows of each leaf, and in all             discovery; direct synthesis commits them with the tree
    counts that agree along the tree          discovery/branches.py
    rows by leaf, values inside a leaf        rows/sample/systematic.py, attributes/leaves.py

After "Synthetic Data via Differential Privacy" (basic: section 2, improved: section 3, direct: section 4)
and PrivTree (Zhang, Xiao, Xie, SIGMOD 2016). The claim: docs/privacy.md, "Trees".
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, get_args

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.discovery.designs import Growth
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Door
from dpsyn_sql.planning.limits import NO_TERMS, Terms
from dpsyn_sql.planning.queries import Discount, Splitter

SPLITTERS: tuple[Splitter, ...] = get_args(Splitter)
DISCOUNTS: tuple[Discount, ...] = get_args(Discount)


@dataclass(frozen=True, slots=True)
class Hierarchical(Recipe):
    """Rows by the leaves of an adaptive tree; every column has to be a hierarchy (places, text, ids).

    ``splitter``: privtree, improved, basic, direct, or auto: privtree for delta = 0, else basic.
    ``structure``: share of the budget that finds the tree; the rest counts its leaves (direct takes all for
    the tree). ``depth``: levels that are split at most. ``threshold``: rows from which a node is split. 0, 0
    and -1 stand for those of the splitter. ``discount``: what improved takes off counts level by level.
    """

    splitter: str = "auto"
    structure: float = 0.0
    depth: int = 0
    threshold: int = -1
    discount: str = DISCOUNTS[0]

    name = "hierarchical"
    model = ProductModel
    choices: ClassVar = {"splitter": ("auto", *SPLITTERS), "discount": DISCOUNTS}

    @property
    def growth(self) -> Growth:
        """The tree as the settings say.

        Raises:
            InputError: a setting is out of range.
        """
        faults = []
        if not 0 <= self.checked().structure < 1:
            faults.append(f"structure={self.structure}; it can be 0 (as usual) or a number below 1")
        if self.depth < 0:
            faults.append(f"depth={self.depth}; it can be 0 (as usual) or a number of levels")
        if self.threshold < -1:
            faults.append(f"threshold={self.threshold}; it can be -1 (as usual) or a number of rows")
        if self.splitter == "direct" and self.structure:
            faults.append(f"structure={self.structure}, but direct takes the whole budget for the tree")
        if self.splitter != "improved" and self.discount != DISCOUNTS[0]:
            faults.append(f"discount={self.discount!r}, which only splitter='improved' has")
        if faults:
            raise InputError(f"method={self.name!r} has the setting {', and '.join(faults)}")
        return Growth(
            next((splitter for splitter in SPLITTERS if splitter == self.splitter), None),
            Fraction(self.structure) or None,
            self.depth or None,
            None if self.threshold == -1 else self.threshold,
            next(discount for discount in DISCOUNTS if discount == self.discount),
        )

    def run(self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS) -> ProductModel:
        """No question: discovery asks them all. The rows of each leaf as it has counted them.

        Raises:
            InternalError: discovery has counted none.
        """
        counted = terms.evidence.read().counted
        if counted is None:
            raise InternalError("a key was released whose leaves nobody has counted")
        return ProductModel.of_rows(domain, counted.total, counted.rows, counted.committed)
