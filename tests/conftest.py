"""What holds for every test."""

import duckdb
import pytest
from hypothesis import HealthCheck, settings
from support.spark import LOUD, spark

__all__ = ["spark"]  # a fixture

# A busy machine is slow, not wrong: no example fails by the clock.
settings.register_profile("no deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no deadline")


@pytest.fixture
def con():
    """An empty database in memory."""
    with duckdb.connect() as connection:
        yield connection


def pytest_terminal_summary(terminalreporter):
    """Say once, in full, that Spark is not tested here, and why."""
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", []) if report.longrepr]
    reasons = {reason.partition(LOUD)[2] for reason in skipped if LOUD in reason}
    for reason in sorted(reasons):
        number = sum(reason in one for one in skipped)
        terminalreporter.write_line(f"{number} tests of Spark were NOT run: {reason}", yellow=True, bold=True)
