"""Runs tests in fresh processes, with one fault planted or none."""

import contextlib
import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What takes seconds to load and is not ours is loaded once; the package itself never is.
HEAVY = ("pytest", "hypothesis", "duckdb", "opendp.measurements", "pandas", "scipy.stats", "scipy.optimize")
HEAVY += ("sqlglot", "jinja2", "pydantic", "rich.progress", "dp_accounting.pld.privacy_loss_distribution")


def pool(processes):
    """Each job gets a process of its own, forked from one that has loaded ``HEAVY``."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(HEAVY))
    return ProcessPoolExecutor(processes, mp_context=context, max_tasks_per_child=1)


def verdict(tests, fault=None):
    """pytest's exit code and everything it printed."""
    import pytest

    os.chdir(ROOT)
    os.environ.pop("DPSYN_FAULT", None)
    os.environ.pop("PYTEST_ADDOPTS", None)  # with -n the tests would run in processes without the fault
    if fault is not None:
        os.environ["DPSYN_FAULT"] = fault
    # One failure suffices, and nobody reads how its values differ, which can take hours to tell.
    quick = ["--maxfail=1", "--assert=plain"]
    options = ["-p", "planting", "-p", "no:cacheprovider", "--tb=short", "-m", "", *quick]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = int(pytest.main([*options, *tests]))
        printed.seek(0)
        return code, printed.read()
