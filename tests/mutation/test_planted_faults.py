"""The suite can tell: each planted fault makes its named test fail, and without it the test passes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from planted_faults import KILLED_BY

REPOSITORY = Path(__file__).resolve().parents[2]


def run(tests, fault=""):
    here = str(Path(__file__).resolve().parent)
    path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)
    environment = {**os.environ, "DPSYN_FAULT": fault, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""}
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "planted_faults",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(
        [*command, "-W", "ignore", *tests],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_without_a_fault_the_named_tests_pass():
    result = run(sorted(set(KILLED_BY.values())))
    assert result.returncode == 0, result.stdout[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("fault", KILLED_BY)
def test_a_planted_fault_is_killed(fault):
    result = run([KILLED_BY[fault]], fault)
    assert result.returncode == 1, result.stdout[-3000:] + result.stderr[-2000:]
