"""Pooling of noisy tables."""

import numpy as np
import pytest

from dpsyn_sql.fit.estimate import Observation, with_seen


def test_seen_labels_are_the_best_linear_estimate_with_the_known_sum():
    """Against generalised least squares by matrices: five cells, three of them seen again, the sum known."""
    random = np.random.default_rng(11)
    table = Observation(random.normal(100, 20, 5), np.asarray(20.0))
    counts = random.normal(100, 10, 3)
    found = with_seen(table, counts, 10.0)
    design = np.vstack([np.eye(5), np.eye(5)[:3], np.ones((1, 5))])
    seen = np.concatenate([table.values, counts, [table.values.sum()]])
    weights = np.concatenate([np.full(5, 20.0**-2), np.full(3, 10.0**-2), [1e4]])
    wanted = np.linalg.solve(design.T * weights @ design, design.T * weights @ seen)
    assert found.values == pytest.approx(wanted, rel=1e-5)
    assert float(found.sigma) == pytest.approx(np.sqrt((3 * 80 + 2 * 400) / 5))
