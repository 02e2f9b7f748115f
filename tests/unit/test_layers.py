"""The import contracts can fail: each is broken by imports planted in a copy of the package."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"

LAYERS = "Rooms follow the way of the data"
DRIVERS = "Only engines import the driver of any other database"
FRAMEWORKS = "Nobody imports a framework of tensors or graphs, nor tests and benchmarks"

# Contract, the module that a line is planted in, what the line imports.
PLANTED = [
    (LAYERS, "accounting.planted", "dpsyn_sql.planning.plan"),
    (LAYERS, "errors", "dpsyn_sql.sqltext.fragments"),
    (LAYERS, "common.progress", "dpsyn_sql.source.names"),
    (LAYERS, "front.release", "dpsyn_sql.schedule.running"),
    (LAYERS, "report.planted", "dpsyn_sql.evaluation"),
    (
        "In front, what is asked stands above how it is carried out",
        "front.prepare",
        "dpsyn_sql.front.release",
    ),
    (
        "On the private side, the door stands above the counts",
        "private.count.planted",
        "dpsyn_sql.private.measure",
    ),
    ("Rows are drawn, then written", "rows.sample.planted", "dpsyn_sql.rows.write.publish"),
    (
        "The public side never reaches the private side, not even indirectly",
        "methods.planted",
        "dpsyn_sql.private.count.counter",
    ),
    (
        "The public side never reaches the private side, not even indirectly",
        "rows.sample.planted",
        "dpsyn_sql.private.rows.codes",
    ),
    (
        "Only the door imports the counter (front joins them)",
        "methods.planted",
        "dpsyn_sql.private.count.counter",
    ),
    ("Only engines import a database driver", "rows.write.planted", "duckdb"),
    (DRIVERS, "private.count.planted", "psycopg"),
    (DRIVERS, "fit.planted", "pyarrow"),
    (DRIVERS, "front.prepare", "pyspark"),
    (DRIVERS, "report.planted", "google"),
    ("Only the ledger imports SQLite", "private.measure.planted", "sqlite3"),
    (FRAMEWORKS, "fit.planted", "torch"),
    (FRAMEWORKS, "engines.planted", "networkx"),
    (FRAMEWORKS, "auditing.planted", "benchmarks"),
    ("Only the door imports the noise library", "fit.planted", "opendp"),
    ("Only SQL texts and pages import the template engine", "source.planted", "jinja2"),
    (
        "The page of a release takes plain values, not the release",
        "report.public.planted",
        "dpsyn_sql.report.result",
    ),
    ("Only evaluation imports scikit-learn", "report.planted", "sklearn"),
    ("Arithmetic is numpy and scipy only", "planning.planted", "pandas"),
]
INDIRECT = ("report.planted", "dpsyn_sql.methods.planted")
ALLOWED = ("engines.planted", "pyarrow")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is said of each contract that is broken, with every violation planted at once; "" if it is kept."""
    copy = tmp_path_factory.mktemp("planted")
    package = copy / "dpsyn_sql"
    shutil.copytree(CHECKOUT / "dpsyn_sql", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", copy)
    for module, line in dict.fromkeys([*(case[1:] for case in PLANTED), INDIRECT, ALLOWED]):
        with (package / f"{module.replace('.', '/')}.py").open("a") as file:
            file.write(f"\nimport {line}\n")
    run = subprocess.run([sys.executable, "-c", LINT], cwd=copy, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    verdicts = dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b", run.stdout, flags=re.MULTILINE))
    parts = re.split(r"^(.+)\n-+$", run.stdout, flags=re.MULTILINE)
    said = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {name: said[name] if found == "BROKEN" else "" for name, found in verdicts.items()}


@pytest.mark.parametrize(("contract", "module", "imported"), PLANTED)
def test_a_planted_import_breaks_the_contract(told, contract, module, imported):
    assert f"dpsyn_sql.{module} -> {imported} " in told[contract]


def test_the_public_side_is_held_back_by_way_of_another_folder(told):
    module, imported = INDIRECT
    found = told["The public side never reaches the private side, not even indirectly"]
    assert f"dpsyn_sql.{module} -> {imported} " in found


def test_engines_may_import_a_driver(told):
    assert "dpsyn_sql.engines" not in told[DRIVERS]


def test_every_contract_has_a_planted_import(told):
    assert set(told) == {contract for contract, *_ in PLANTED}
