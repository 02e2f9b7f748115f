"""Of the columns that an analyst does not believe most are named, of those that are believed few."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def benchmark():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import believed
    finally:
        sys.path.remove(str(BENCHMARKS))
    return believed


def counted(benchmark, folder, tables, epsilons):
    found = benchmark.Count()
    for name in tables:
        source = benchmark.source_of(name, folder)
        if source is None:
            pytest.skip(f"{name} is not in the data folder")
        for epsilon in epsilons:
            found = sum(benchmark.counted(source, epsilon, 1), found)
    return found


def test_generated_tables(benchmark, tmp_path):
    found = counted(benchmark, tmp_path, ["survey", "measurements"], [1.0, 3.0])
    rejected = found.columns - found.believed
    assert rejected >= 10 and found.named_rejected >= 0.5 * rejected
    assert found.named_believed <= 0.45 * found.believed


def test_real_tables(benchmark, tmp_path):
    """Those that are released in seconds; the benchmark has all."""
    tables = ["movies", "birdstrikes", "weather", "401ksubs", "german_credit"]
    found = counted(benchmark, tmp_path, tables, [1.0, 3.0])
    assert found.named_rejected >= 0.75 * (found.columns - found.believed)
    assert found.named_believed <= 0.3 * found.believed
