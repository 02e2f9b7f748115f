"""The scores of PrivBayes for a child X and its parents P, of a joint distribution (Zhang, Cormode,
Procopiuc, Srivastava and Xiao, TODS 2017): mutual information, F and R.

Their sensitivities in the paper hold for a public number of rows and the exchange of a row. Here they see
distributions made from noisy tables only, and have no part in the privacy of a release.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_GRID = 2.0**-30
# Of a probability: states of F that differ by less are one.


def mutual_information(joint: FloatArray) -> float:
    """I(X, P) in bits of a joint distribution (parents' values, child's values)."""
    positive = joint > 0
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    ratio = np.divide(joint, apart, out=np.ones_like(joint), where=positive & (apart > 0))
    return float((joint[positive] * np.log2(ratio[positive])).sum())


def distance_to_independence(joint: FloatArray) -> float:
    """R(X, P): half the L1 distance of a joint distribution (parents', child's values) to independence."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return float(np.abs(joint - apart).sum() / 2)


def distance_to_dependence(joint: FloatArray) -> float:
    """F(X, P) of a binary child: minus half the L1 distance of a joint distribution (parents' values, 2) to
    the nearest of largest mutual information.

    Those have X uniform, and each value of the parents goes with one value of X alone. If the values A go
    with 0 and B with 1, half the distance is (1/2 - P[0, A])+ + (1/2 - P[1, B])+. As in the paper's dynamic
    program, values of the parents are divided one after another; of the sums reached, those that others
    exceed in both are dropped.
    """
    reached = np.zeros((1, 2))
    for pair in joint:
        both = np.concatenate([reached + np.array(step) for step in ((pair[0], 0.0), (0.0, pair[1]))])
        reached = _undominated(np.minimum(both, 0.5))
    return -float((1.0 - reached.sum(axis=1)).min())


def _undominated(sums: FloatArray) -> FloatArray:
    """The sums that no other exceeds in both places."""
    order = np.lexsort((-sums[:, 1], -sums[:, 0]))
    ordered = sums[order]
    best = np.maximum.accumulate(ordered[:, 1])
    kept = np.append(True, ordered[1:, 1] > best[:-1] + _GRID)
    return np.asarray(ordered[kept])


SCORES: Final[dict[str, Callable[[FloatArray], float]]] = {
    "mi": mutual_information,
    "f": distance_to_dependence,
    "r": distance_to_independence,
}
"""By the name of the setting ``score``."""
