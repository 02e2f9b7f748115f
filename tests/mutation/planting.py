"""A pytest plugin that plants one fault of ``faults.py`` before the package is loaded.

    DPSYN_FAULT="no noise" PYTHONPATH=tests/mutation python -m pytest -p planting <tests>

Sources and SQL templates are read as they are and changed in memory.
"""

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

import jinja2
import pytest
from faults import FAULTS
from hypothesis import Phase, settings

VARIABLE = "DPSYN_FAULT"

_chosen = [fault for fault in FAULTS if fault.name == os.environ.get(VARIABLE)]
_edits = [edit for fault in _chosen for edit in fault.edits]
_done = []


def _loaded_from():
    """Where the checkout's two folders are loaded from: the checkout itself, or an installed copy."""
    package = Path(PathFinder.find_spec("dpsyn_sql").origin).resolve().parent
    shipped = package / "_sql"
    return {"dpsyn_sql": package, "sql": shipped if shipped.is_dir() else package.parent / "sql"}


_FOLDERS = _loaded_from()


def _below(file):
    folder, _, path = file.partition("/")
    return _FOLDERS[folder] / path


_FAULTY = {_below(file) for file, _, _ in _edits}


def changed(path, text):
    """The text of a file with the edits of the fault."""
    for edit in _edits:
        file, old, new = edit
        if Path(path).resolve() == _below(file):
            if text.count(old) != 1:
                raise pytest.UsageError(f"{old!r} occurs {text.count(old)} times in {file}")
            text = text.replace(old, new)
            _done.append(edit)
    return text


class _Loader(SourceFileLoader):
    def get_code(self, fullname):
        # Not by way of the cached byte code, which is that of the sound source.
        text = changed(self.path, Path(self.path).read_text(encoding="utf-8"))
        return compile(text, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if not fullname.startswith("dpsyn_sql."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin and Path(spec.origin).resolve() in _FAULTY:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Templates(jinja2.FileSystemLoader):
    def get_source(self, environment, template):
        text, path, fresh = super().get_source(environment, template)
        return changed(path, text), path, fresh


if "dpsyn_sql" in sys.modules:
    raise pytest.UsageError("the package was loaded before a fault could be planted")
if VARIABLE in os.environ and len(_chosen) != 1:
    raise pytest.UsageError(f"{VARIABLE}={os.environ[VARIABLE]!r} names no fault")
if _edits:
    sys.meta_path.insert(0, _Finder())
    jinja2.FileSystemLoader = _Templates

# The first failure is enough; looking for the smallest one takes minutes.
settings.register_profile("gate", phases=[Phase.explicit, Phase.generate], derandomize=True, database=None)
settings.load_profile("gate")


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"PLANTED {len(set(_done))} of {len(_edits)} edits")
