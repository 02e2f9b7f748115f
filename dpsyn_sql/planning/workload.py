"""Which marginals matter most: public weights of pairs of attributes, the owner's statement.

A method that uses them minimises the sum over pairs of weight x L1 error instead of the plain sum. With
noise that falls as s^(-1/2) in the share s of a budget, tables of n cells and weight w then get shares
proportional to (w n)^(2/3): a table counts as one of w times as many cells.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from dpsyn_sql.accounting.budget import Number, exact_number
from dpsyn_sql.errors import BudgetError, InputError, said
from dpsyn_sql.source.names import fold, listed, name_hint

if TYPE_CHECKING:  # loads numpy, and requests are read without
    from dpsyn_sql.attributes.shape import Shape

WorkloadSpec = str | Mapping[str | tuple[str, ...], Number] | None
"""A workload as people write it: ``"income"``, or ``{"income": "target", ("age", "sex"): 2}``."""

TARGET = "target"
"""In place of a weight: the column that others are to predict."""

TARGET_WEIGHT = Fraction(10)
"""Of every pair with a target: chosen by ``benchmarks/target.py``."""

LEAST, MOST = Fraction(1, 1000), Fraction(1000)
"""Range of weights. Beyond it the other tables would get no budget at all."""

_EXAMPLE = "write for example workload='income', or workload={'income': 5, ('age', 'sex'): 2}"


@dataclass(frozen=True, slots=True)
class Workload:
    """Weights of sets of attributes, exact.

    A set of one attribute gives its weight to all pairs with it, a larger set to all pairs within it. If a
    pair is in several sets, the largest weight applies. A pair in no set has weight 1. ``target`` names the
    attribute that the others shall explain (empty: none): it counts as a set of ``TARGET_WEIGHT``.
    """

    sets: tuple[tuple[tuple[str, ...], Fraction], ...] = ()
    target: str = ""

    @property
    def weighted(self) -> tuple[tuple[tuple[str, ...], Fraction], ...]:
        """All sets, with that of the target."""
        return (*self.sets, *([((self.target,), TARGET_WEIGHT)] if self.target else []))

    def pairs(self, names: Sequence[str]) -> dict[tuple[str, str], Fraction]:
        """Weights of the pairs that some set has; the names of a pair in the order of ``names``."""
        places = {name: place for place, name in enumerate(names)}
        found: dict[tuple[str, str], Fraction] = {}
        for members, weight in self.weighted:
            for pair in _pairs_of(members, names):
                first, second = sorted(pair, key=places.__getitem__)
                found[first, second] = max(weight, found.get((first, second), weight))
        return found

    def means(self, names: Sequence[str]) -> dict[str, Fraction]:
        """For each attribute the mean weight of the pairs with it; 1 if it is the only one."""
        excess = dict.fromkeys(names, Fraction(0))
        for pair, weight in self.pairs(names).items():
            for name in pair:
                excess[name] += weight - 1
        return {name: 1 + sum_ / max(1, len(names) - 1) for name, sum_ in excess.items()}

    def matched(self, shape: Shape) -> Workload:
        """The same with the names of the source's columns, in their order; equal sets are one.

        Raises:
            InputError: a name is not a measured column.
        """
        places = {item.name: place for place, item in enumerate(shape.measured)}
        weights: dict[tuple[str, ...], Fraction] = {}
        for members, weight in self.sets:
            found = {_measured(name, shape) for name in members}
            if len(found) < len(members):
                raise InputError(f"workload names a column twice in {_in_words(members)}: name it once")
            known = tuple(sorted(found, key=places.__getitem__))
            weights[known] = max(weight, weights.get(known, weight))
        target = _measured(self.target, shape) if self.target else ""
        return Workload(tuple(sorted(weights.items())), target)

    def in_words(self) -> str:
        """For a plan: ``income x 5; (age, sex) x 2``."""
        return "; ".join(f"{_in_words(members)} x {float(weight):.6g}" for members, weight in self.sets)

    def lines(self) -> Iterator[str]:
        """Lines of a plan; none if every pair has weight 1."""
        if self.sets:
            yield f"Workload    {self.in_words()}; other pairs x 1"
        if self.target:
            yield f"Target      {self.target}: its pairs count {TARGET_WEIGHT} times as much as others"

    def facts(self) -> list[dict[str, Any]]:
        """The sets for a certificate and a release key; JSON-ready."""
        return [{"attributes": list(members), "weight": str(weight)} for members, weight in self.sets]


UNWEIGHTED = Workload()
"""Every pair has weight 1."""


def read_workload(spec: WorkloadSpec) -> Workload:
    """Read a target and weights as people write them; names are checked by ``Workload.matched``.

    Raises:
        InputError: neither the name of a column nor such a mapping, a weight that is not a number from 0.001
            to 1000, or a target that is not one column.
    """
    if spec is None:
        return UNWEIGHTED
    entries: Mapping[Any, Any] = {spec: TARGET} if isinstance(spec, str) else spec
    if not isinstance(entries, Mapping) or spec == "":
        raise InputError(
            f"workload={said(spec)}: give the column that others are to predict, or a mapping of attributes "
            f"to weights; {_EXAMPLE}"
        )
    weights = {key: value for key, value in entries.items() if value != TARGET}
    sets = tuple((_members(key), _weight(key, value)) for key, value in weights.items())
    targets = [_members(key) for key in entries if key not in weights]
    if len(targets) > 1 or any(len(members) > 1 or not members[0] for members in targets):
        marked = ", ".join(map(listed, targets))
        raise InputError(f"workload has the target {marked}: name one column, and give others weights")
    return Workload(sets, targets[0][0] if targets else "")


def members_of(text: str) -> tuple[str, ...]:
    """Names as in a line of CSV, so that one with a comma can be quoted; empty if it is no such line."""
    with contextlib.suppress(csv.Error):
        return tuple(next(csv.reader([text]), ()))
    return ()


def _members(key: Any) -> tuple[str, ...]:
    members = (key,) if isinstance(key, str) else key
    if not isinstance(members, tuple) or not members or not all(isinstance(name, str) for name in members):
        raise InputError(f"workload has the key {said(key)}: give a name or a tuple of names; {_EXAMPLE}")
    return members


def _weight(key: Any, value: Any) -> Fraction:
    weight = None
    with contextlib.suppress(BudgetError):
        weight = exact_number("workload", value)
    if weight is None or not LEAST <= weight <= MOST:
        raise InputError(
            f"workload has the weight {said(value)} for {listed(_members(key))}: give a number from 0.001 to "
            "1000, or 'target'; pairs that are not named have weight 1"
        )
    return weight


def _measured(name: str, shape: Shape) -> str:
    """The measured attribute of this name, or with a column of this name: an exact match, else one in another
    letter case."""
    items = {one.name: item.name for item in shape.measured for one in item.columns}
    items |= {item.name: item.name for item in shape.measured}
    names = list(items)
    if name in items:
        return items[name]
    alike = [known for known in names if fold(known) == fold(name)]
    if alike:
        return items[alike[0]]
    for role in shape.roles:
        if fold(role.name) == fold(name):
            raise InputError(
                f"workload names {name!r}, which is not measured ({type(role).__name__}): leave it out"
            )
    hint = name_hint(name, names, "its columns are")
    raise InputError(f"workload names {name!r}, which is not a column of the release; {hint}")


def _pairs_of(members: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(members) > 1:
        return combinations(members, 2)
    return ((members[0], other) for other in names if other != members[0])


def _in_words(members: Sequence[str]) -> str:
    return members[0] if len(members) == 1 else f"({', '.join(members)})"
