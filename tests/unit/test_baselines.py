"""The mechanisms that benchmarks compare with do what their papers say, at the scale that is stated."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
lap = pytest.importorskip("baselines.lap", reason="the benchmarks are not beside the tests")
comparison = pytest.importorskip("comparison", reason="the benchmarks are not beside the tests")
histogram = pytest.importorskip("baselines.histogram", reason="the benchmarks are not beside the tests")
mwem = pytest.importorskip("baselines.mwem", reason="the benchmarks are not beside the tests")


def table(seed=0, rows=4000, sizes=(2, 3, 4)):
    """The second attribute follows the first, the third neither."""
    rng = np.random.default_rng(seed)
    first = rng.random(rows) < 0.7
    second = np.where(first, 0, rng.integers(1, sizes[1], rows))
    return np.stack([first, second, rng.integers(0, sizes[2], rows)], axis=1).astype(np.int64), list(sizes)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_error_of_direct_noise_is_its_closed_form(law):
    rows, sizes = table()
    scale = lap.laplace_scale(3, 0.5) if law == "laplace" else lap.gaussian_sigma(3, 0.5, 1e-9)
    rng = np.random.default_rng(1)
    true = comparison.shares(rows, sizes, (1, 2))
    errors = [
        comparison.squared_error(true, lap.answered(rows, sizes, [(1, 2)], scale, rng, law)[0])
        for _ in range(2000)
    ]
    expected = lap.squared_error(12, len(rows), scale, law)
    assert np.mean(errors) == pytest.approx(expected, rel=6 * np.std(errors) / np.mean(errors) / 2000**0.5)


def test_multiplicative_weights_step_is_the_hand_computed_one():
    # n = 4; the answer says 3 and 1 for the first axis, the table 2 and 2: steps of +1/8 and -1/8.
    found = mwem.updated(np.full((2, 2), 1.0), (0,), np.array([3.0, 1.0]))
    up, down = math.exp(1 / 8), math.exp(-1 / 8)
    assert found[0] == pytest.approx([4 * up / (2 * up + 2 * down)] * 2)
    assert found[1] == pytest.approx([4 * down / (2 * up + 2 * down)] * 2)
