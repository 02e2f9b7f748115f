"""dbt in processes of its own. It is found in the environment of the tests, or in a folder that DPSYN_TEST_DBT
names (made with ``pip install --target FOLDER 'dbt-core<1.12' dbt-duckdb``), because its pins are not those of
the tests."""

import json
import os
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from dpsyn_sql.ledger.sqlite import SqliteLedger

ROOT = Path(__file__).resolve().parents[2]
CHILD = ROOT / "tests" / "e2e" / "dbt_child.py"
ELSEWHERE = os.environ.get("DPSYN_TEST_DBT")


def is_here():
    try:
        return ELSEWHERE is not None or find_spec("dbt.adapters.duckdb") is not None
    except ModuleNotFoundError:
        return False


def environment():
    paths = [os.environ.get("PYTHONPATH"), ELSEWHERE]  # the line of DuckDB that the tests run on comes first
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("DBT_", "DPSYN_"))},
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "NO_COLOR": "1",
    }


def dbt(folder, *arguments):
    """One command in a process of its own."""
    code = "import sys; from dbt.cli.main import cli; sys.argv[0] = 'dbt'; cli()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment(),
        text=True,
        capture_output=True,
    )


def dbt_in_turn(folder, *commands):
    """Several commands in one process: what each did, and all that was printed."""
    results = folder / "results.json"
    run = subprocess.run(
        [sys.executable, str(CHILD), str(results), json.dumps(commands)],
        cwd=folder,
        env=environment(),
        text=True,
        capture_output=True,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(results.read_text()), run.stdout + run.stderr


def released(ledger):
    """The releases that were charged, by name and version with their outputs, and how many they are."""
    with closing(SqliteLedger(ledger)) as open_ledger:
        found = open_ledger.overview()
    return {(one.name, one.version): dict(one.published) for one in found.releases}, len(found.releases)
