"""The import contracts can fail: each is broken by an import planted in a copy of the package."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"

PLANTED = {
    "Layers follow the pipeline": ("accounting", "import dpsyn_sql.planning.plan"),
    "Errors, folders and progress serve everybody and import nothing of ours": (
        "errors.py",
        "import dpsyn_sql.sqltext.fragments",
    ),
    "The public side never reaches the private side, not even indirectly": (
        "sample",
        "import dpsyn_sql.methods.planted",
    ),
    "Encoding reads rows: the public side never reaches it, nor does decoding": (
        "decode",
        "import dpsyn_sql.encode.codes",
    ),
    "Only the door imports the counter (the release joins them)": (
        "methods",
        "import dpsyn_sql.count.counter",
    ),
    "Only engines import a database driver": ("write", "import duckdb"),
    "Only the door imports the noise library": ("fit", "import opendp.prelude"),
    "Only sqltext imports the template engine": ("source", "import jinja2"),
    "Arithmetic is numpy and scipy only": ("planning", "import pandas"),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """KEPT or BROKEN by the name of the contract, with every violation planted at once."""
    copy = tmp_path_factory.mktemp("planted")
    shutil.copytree(CHECKOUT / "dpsyn_sql", copy / "dpsyn_sql", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", copy)
    for place, line in PLANTED.values():
        target = copy / "dpsyn_sql" / place
        target = target / "planted.py" if target.is_dir() else target
        with target.open("a") as file:
            file.write(f"\n{line}\n")
    run = subprocess.run([sys.executable, "-c", LINT], cwd=copy, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    return dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b", run.stdout, flags=re.MULTILINE))


@pytest.mark.parametrize("contract", PLANTED)
def test_a_planted_import_breaks_the_contract(verdicts, contract):
    assert verdicts[contract] == "BROKEN"


def test_every_contract_has_a_planted_import(verdicts):
    assert set(verdicts) == set(PLANTED)
