"""examples/schedule runs from a clean checkout: as cron starts it, by hand, and by Dagster.

Dagster is found in the environment of the tests, or in a folder that DPSYN_TEST_DAGSTER names (made with
``pip install --target FOLDER dagster``).
"""

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.commands import search_path

from dpsyn_sql.ledger.sqlite import SqliteLedger

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "schedule"
ELSEWHERE = os.environ.get("DPSYN_TEST_DAGSTER", "")
DAGSTER = [sys.executable, "-m", "dagster"] if ELSEWHERE else ["dagster"]

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy with its data, and the command ``dpsyn`` of this environment on the path."""
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    shutil.copytree(EXAMPLE, tmp_path / "clinic", ignore=shutil.ignore_patterns("clinic.*", "visits_*"))
    subprocess.run([sys.executable, str(tmp_path / "clinic" / "make_data.py")], check=True)
    monkeypatch.setenv("PATH", search_path(tmp_path))
    return tmp_path / "clinic"


def called(folder, *arguments, **environment):
    done = subprocess.run(
        arguments, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    return done.returncode, done.stdout + done.stderr


def released(folder):
    with closing(SqliteLedger(folder / "clinic.ledger", read_only=True)) as ledger:
        ledger.verify()
        found = ledger.overview()
    return sorted((one.name, one.version, one.state) for one in found.releases), found.accounts[0].spent


EXPECTED = [("quarterly", f"2025-Q{n}", "published") for n in (1, 2, 3, 4)] + [
    ("yearly", "2025", "published")
]


def test_as_cron_starts_it_and_then_by_hand(folder):
    code, text = called(folder, "dpsyn", "run", "--dry-run")
    assert code == 0 and "4 windows, a person can be in all of them: 4 x epsilon=1" in text
    (line,) = [text for text in (folder / "crontab").read_text().splitlines() if text.startswith("10 3")]
    command = line.removeprefix("10 3 * * * ").replace("/srv/clinic", str(folder))
    assert called("/", "/bin/sh", "-c", command)[0] == 0
    assert "ended with" not in (folder / "dpsyn.log").read_text()
    found, spent = released(folder)
    assert found == EXPECTED and (folder / "visits_2025-Q4.parquet").exists()
    assert called(folder, "dpsyn", "run") == (0, "Nothing is due.\n")
    assert released(folder) == (found, spent)
    code, text = called(folder, "dpsyn", "status")
    assert code == 0 and text.count("published") == 5 and "gone" not in text


@pytest.mark.skipif(not ELSEWHERE and shutil.which("dagster") is None, reason="Dagster is not installed")
def test_dagster_runs_it_and_a_second_run_costs_nothing(folder, tmp_path):
    recipe = (*DAGSTER, "job", "execute", "-f", str(folder / "dagster_job.py"), "-j", "release")
    (tmp_path / "home").mkdir()
    environment = {
        "DAGSTER_HOME": str(tmp_path / "home"),
        "DAGSTER_DISABLE_TELEMETRY": "true",
        "PYTHONPATH": os.pathsep.join(path for path in (ELSEWHERE, os.environ.get("PYTHONPATH")) if path),
    }
    for _ in range(2):
        code, text = called(folder, *recipe, **environment)
        assert code == 0 and "RUN_SUCCESS" in text, text
        assert released(folder)[0] == EXPECTED
    schedule = folder / "dpsyn.yml"
    schedule.write_text(schedule.read_text().replace("cadence: year", "cadence: fortnight"))
    code, text = called(folder, *recipe, **environment)
    assert code != 0 and "RUN_FAILURE" in text and "must be" in text
