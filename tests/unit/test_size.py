"""The figures that ``.ci/size.py`` prints, on a small project that is counted by hand."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci/size.py"

FILES = {
    "dpsyn_sql/__init__.py": '''"""One line of documentation."""

from dpsyn_sql.errors import Fault
''',
    "dpsyn_sql/errors.py": "class Fault(Exception):\n    pass\n",
    "dpsyn_sql/rooms/__init__.py": "",
    "dpsyn_sql/rooms/door.py": '''# a comment
import json
from dpsyn_sql import errors
from dpsyn_sql.errors import Fault
from dpsyn_sql.rooms import door


def closed():
    """Two lines
    of documentation."""
    "a third"
    text = """
    some text
    """  # a line of code

    raise Fault(text)
''',
    "tests/unit/test_door.py": "# nothing\n\nassert True\n",
    "benchmarks/speed.py": "a = 1\nb = 2\n",
    "sql/count.sql": "SELECT 1",
    "sql/write/row.sql": "SELECT 2",
    "sql/README.md": "not counted",
    "README.md": "# Three words here\n",
    "CHANGELOG.md": "not counted",
    "docs/howto/share.md": "two-way",
}

COUNTED = {
    "package_code": 1 + 2 + 0 + 9,
    # Of __init__.py 5 nodes (module, expression, text, import, alias), of errors.py 5 (module, class, base, its
    # context, pass), of an empty file 1. Of door.py: module; 4 imports with an alias each; the function with its
    # arguments; two texts that stand alone, 2 nodes each; the assignment with name, context, text; raise, the
    # call, two names with a context. A context is one node wherever it is met.
    "package_nodes": 5 + 5 + 1 + (1 + 8 + 2 + 4 + 4 + 6),
    "package_modules": 4,
    # the package -> errors, door -> errors (twice); not json, not itself
    "package_imports": 2,
    "test_code": 1,
    "benchmark_code": 2,
    "sql_files": 2,
    "document_words": 3 + 2,
    "refusals": 1,
}


@pytest.fixture(scope="module")
def size():
    spec = importlib.util.spec_from_file_location("size", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def allow(project, **limits):
    lines = [f"{key} = {number}" for key, number in (COUNTED | limits).items()]
    (project / "pyproject.toml").write_text("\n".join(["[tool.dpsyn.size]", *lines]))


def test_every_figure_is_what_a_hand_counts(size, project):
    assert size.sizes(project) == COUNTED


def test_what_is_allowed_exactly_passes(size, project, capsys):
    allow(project)
    assert size.main(project) is None
    printed = capsys.readouterr().out
    assert "at most 12" in printed
    assert "at least 1" in printed
    assert "<--" not in printed


@pytest.mark.parametrize("key", COUNTED)
def test_each_figure_has_a_limit_of_its_own(size, project, capsys, key):
    allow(project, **{key: COUNTED[key] + (1 if key == "refusals" else -1)})
    assert f"pyproject.toml: {key}. Make it smaller" in size.main(project)
    assert f"<-- {key}" in capsys.readouterr().out


def test_a_smaller_project_with_more_refusals_passes(size, project):
    larger = {key: number + (-1 if key == "refusals" else 1) for key, number in COUNTED.items()}
    allow(project, **larger)
    assert size.main(project) is None


@pytest.mark.parametrize("line", ["words = 3", ""])
def test_a_limit_that_is_missing_or_unknown_is_an_error(size, project, line):
    limits = [f"{key} = {number}" for key, number in COUNTED.items()]
    text = "\n".join(["[tool.dpsyn.size]", *limits[bool(not line) :], line])
    (project / "pyproject.toml").write_text(text)
    assert "needs these keys and no others" in size.main(project)
