"""What ``import dpsyn_sql`` gives, whatever was imported first, and what it costs."""

import pickle
import pkgutil
import subprocess
import sys
import warnings

import pytest

import dpsyn_sql
from dpsyn_sql import errors
from dpsyn_sql.ledger.sqlite import SqliteLedger

HEAVY = ("duckdb", "jinja2", "numpy", "opendp", "pandas", "pydantic", "rich", "scipy", "sqlglot", "yaml")

ORDERS = {
    "the modules first": "import dpsyn_sql.planning.limits, dpsyn_sql.front.release, dpsyn_sql.auditing, dpsyn_sql.front.request",
    "a name out of a module": "from dpsyn_sql.front.release import release\nfrom dpsyn_sql.planning.plan import Plan",
    "the functions first": "from dpsyn_sql import release, plan, audit\nimport dpsyn_sql.front.release, dpsyn_sql.planning.plan",
    "everything": "from dpsyn_sql import *\nassert callable(release) and callable(plan) and issubclass(errors.TargetError, errors.InputError)",
    "nothing": "",
}


def python(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_the_public_names_are_the_functions_whatever_is_imported_first(order):
    told = python(
        f"{ORDERS[order]}\nimport dpsyn_sql\n"
        "for name in ('release', 'plan', 'init', 'audit', 'Request', 'methods', 'errors'):\n"
        "    print(type(getattr(dpsyn_sql, name)).__name__)\n"
    )
    assert told.split() == ["function"] * 4 + ["type"] + ["module"] * 2


def test_no_module_has_the_name_of_a_public_function_or_class():
    modules = {module.name for module in pkgutil.iter_modules(dpsyn_sql.__path__)}
    assert modules & set(dpsyn_sql.__all__) == {"errors", "methods"}


def test_the_command_imports_nothing_heavy_before_it_runs():
    code = "import sys, dpsyn_sql.cli.main, dpsyn_sql.cli.start\nprint([m for m in {} if m in sys.modules])"
    assert python(code.format(HEAVY)).strip() == "[]"


NOTHING_DUE = """sources: {s: {path: s.csv, window: day}}
releases: {monthly: {source: s, output: "of-{period}.csv", cadence: month, start: 2150-01-01}}
"""


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["ledger", "show"], ["run"], ["status"]])
def test_quick_commands_import_no_database_and_no_statistics(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dpsyn.yml").write_text(NOTHING_DUE)
    SqliteLedger(tmp_path / ".dpsyn-ledger").close()
    code = (
        f"import sys; sys.argv = ['dpsyn', *{command}]\n"
        "from dpsyn_sql.cli.start import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print([m for m in {HEAVY} if m in sys.modules and m not in ('jinja2', 'pydantic', 'yaml')])"
    )
    assert python(code).splitlines()[-1] == "[]"


def test_a_release_loads_nothing_that_it_does_not_use(tmp_path):
    """What libraries take for optional, and load where it is installed."""
    (tmp_path / "t.csv").write_text("a\n" + "x\ny\n" * 50)
    code = (
        "import sys, warnings, dpsyn_sql; warnings.simplefilter('ignore')\n"
        f"dpsyn_sql.release(None, {str(tmp_path / 't.csv')!r}, into={str(tmp_path / 'u.csv')!r})\n"
        "print([m for m in ('sklearn', 'polars', 'matplotlib', 'pyspark') if m in sys.modules])"
    )
    assert python(code).splitlines()[-1] == "[]"
    assert (tmp_path / "u.csv").exists()


def test_every_public_name_is_listed_and_there():
    assert set(dpsyn_sql.__all__) <= set(dir(dpsyn_sql))
    for name in dpsyn_sql.__all__:
        assert getattr(dpsyn_sql, name).__name__.removeprefix("dpsyn_sql.") == name
    with pytest.raises(AttributeError):
        dpsyn_sql.nothing  # noqa: B018


def test_help_explains_the_function():
    assert "epsilon: Privacy loss" in python("import dpsyn_sql\nhelp(dpsyn_sql.release)")


def test_a_test_of_somebody_else_may_replace_a_public_name(monkeypatch):
    known = dpsyn_sql.release
    with monkeypatch.context() as patch:
        patch.setattr(dpsyn_sql, "release", "mine")
        assert dpsyn_sql.release == "mine"
    assert dpsyn_sql.release is known


@pytest.mark.parametrize(
    "error",
    [
        errors.TargetError("a"),
        errors.DomainError("a", ["b", "c"]),
        errors.LedgerDamaged("a", 3),
        errors.EngineFailure("counting", "BinderException", "SELECT 1"),
    ],
)
def test_errors_pass_from_process_to_process(error):
    error.add_note("n")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


def test_importing_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        python("import dpsyn_sql.front.release, dpsyn_sql.planning.plan, dpsyn_sql.cli.main")
