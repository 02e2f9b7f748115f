"""How the network grows: families chosen by the L1 score, or by a score of noisy tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.consistency import raked, simplex_projection
from dpsyn_sql.fit.reproducible import snapped
from dpsyn_sql.fit.shrinkage import shrink_singular_values
from dpsyn_sql.methods.privbayes.asking import Pair, Task
from dpsyn_sql.methods.privbayes.candidates import FEW_CANDIDATES, candidates, largest_number
from dpsyn_sql.methods.privbayes.encoding import Family
from dpsyn_sql.methods.privbayes.growing import Grown, doubly_centred
from dpsyn_sql.methods.privbayes.scores import distance_to_independence

FloatArray = NDArray[np.float64]
Score = Callable[[FloatArray], float]

RANK_PERCENT = 25
"""Of the budget of the choices, for the distances of pairs that rank candidates."""

_GRID = 2.0**-24
# Of a score or a probability.

_ROUNDS = 30
# Of proportional fitting of a joint distribution to its pairs.


def interleaved(task: Task) -> Grown:
    """One attribute after the other: a private choice, then the noisy table of the chosen family."""
    grown, outside = _first(task)
    ranks, choosing = None, task.choosing
    if largest_number(task.encoded, task.active, task.bounds.degree) > FEW_CANDIDATES:
        ranking, choosing = choosing.split((RANK_PERCENT, 100 - RANK_PERCENT))
        ranks = task.distances(ranking)
    choices = choosing.split([1] * task.steps)
    tables = task.measuring.split([1] * task.steps)
    for choice, table in zip(choices, tables, strict=True):
        inside = [v for v in task.active if v not in outside]
        families = candidates(task.encoded, inside, outside, task.bounds, ranks, task.target)
        if not families:
            break
        family = task.chosen(grown, families, choice)
        (observed,) = task.measured([family], table)
        grown.place(family, observed, task.total)
        outside.remove(family.child)
    return _with_independent(grown)


def two_phases(task: Task, score: Score) -> Grown:
    """As in the paper: the whole structure, then the tables of all families.

    The structure is post-processing: it rests on noisy tables of all pairs. The score of several parents is
    that of the joint distribution of largest entropy with these pairs.
    """
    joints = _pair_joints(task)
    ranks = {
        pair: float(snapped(np.array([distance_to_independence(joint)]), _GRID)[0])
        for pair, joint in joints.items()
    }
    grown, outside = _first(task)
    inside, families = list(grown.placed), list[Family]()
    while outside:
        found = candidates(task.encoded, inside, outside, task.bounds, ranks, task.target)
        if not found:
            break
        scores = np.array([score(_joint_of(task, joints, family)) for family in found])
        family = found[int(np.argmax(snapped(scores, _GRID)))]
        families.append(family)
        inside.append(family.child)
        outside.remove(family.child)
    if families:
        for family, observed in zip(families, task.measured(families, task.measuring), strict=True):
            grown.place(family, observed, task.total)
    return _with_independent(grown)


def _first(task: Task) -> tuple[Grown, list[int]]:
    """The target, else the attribute of most entropy, is placed; the other active ones remain."""
    grown = Grown.of(task.encoded)
    own = [np.maximum(task.encoded.shares[v], np.finfo(np.float64).tiny) for v in task.active]
    entropies = snapped(np.array([-(q * np.log(q)).sum() for q in own]), _GRID)
    first = task.active[int(np.argmax(entropies))] if task.target is None else task.target
    grown.place(Family(first, ()), None, task.total)
    return grown, [v for v in task.active if v != first]


def _with_independent(grown: Grown) -> Grown:
    """Attributes without a family that may be counted are independent."""
    for v in range(len(grown.encoded.levels)):
        if v not in grown.placed and grown.encoded.size((v, 0)) > 1:
            grown.place(Family(v, ()), None, 1.0)
    return grown


def _pair_joints(task: Task) -> dict[Pair, FloatArray]:
    """Joint distributions of all pairs of active attributes that may be counted, from noisy tables."""
    found, families = dict[Pair, FloatArray](), task.pairs()
    if not families:
        return found
    for family, table in zip(families, task.measured(families, task.choosing), strict=True):
        ((parent, _),), child = family.parents, family.child
        first, second = task.encoded.shares[parent], task.encoded.shares[child]
        apart = task.total * np.outer(first, second)
        signal = shrink_singular_values(doubly_centred(table.values - apart), float(table.sigma))
        joint = simplex_projection(apart + signal, task.total) / task.total
        found[parent, child] = raked(joint, first, second)
    return found


def _joint_of(task: Task, joints: Mapping[Pair, FloatArray], family: Family) -> FloatArray:
    """The joint distribution (parents' values, child's values) of most entropy with the noisy pairs, by
    proportional fitting."""
    encoded = task.encoded
    members = [*family.parents, (family.child, 0)]
    sizes = encoded.shape(family)
    table = np.full(sizes, 1.0 / np.prod(sizes))
    wanted: list[tuple[tuple[int, int], FloatArray]] = []
    for one in range(len(members)):
        for other in range(one + 1, len(members)):
            (a, i), (b, j) = members[one], members[other]
            pair = joints.get((a, b)) if a < b else None
            turned = joints.get((b, a)) if a > b else None
            own = pair if pair is not None else None if turned is None else turned.T
            if own is not None:
                rows, columns = encoded.levels[a][i], encoded.levels[b][j]
                coarse = np.zeros((sizes[one], sizes[other]))
                np.add.at(coarse, (rows[:, None], columns[None, :]), own)
                wanted.append(((one, other), coarse))
    for _ in range(_ROUNDS if len(wanted) > 1 else 1):
        for (one, other), own in wanted:
            gone = tuple(axis for axis in range(len(sizes)) if axis not in (one, other))
            now = table.sum(axis=gone, keepdims=True)
            shape = [size if axis in (one, other) else 1 for axis, size in enumerate(sizes)]
            table = table * np.divide(own.reshape(shape), now, out=np.zeros_like(now), where=now > 0)
    return np.asarray(table.reshape(-1, sizes[-1]) / max(float(table.sum()), np.finfo(np.float64).tiny))
