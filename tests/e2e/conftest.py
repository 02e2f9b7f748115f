"""Processes that run one release each, and may die on the way."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def children():
    """Runs a list of jobs at the same time; returns their exit statuses (see ``release_child.py``)."""
    command = [sys.executable, str(Path(__file__).with_name("release_child.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def run(*jobs):
            process.stdin.write(json.dumps(jobs) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()
