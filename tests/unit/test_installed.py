"""The package that is tested is complete, and in continuous integration it is the installed one."""

import os
from pathlib import Path

import pytest

import dpsyn_sql
from dpsyn_sql.sqltext.render import templates_folder

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = Path(dpsyn_sql.__file__).resolve().parent


def test_every_template_is_shipped():
    written = {path.relative_to(CHECKOUT / "sql") for path in (CHECKOUT / "sql").rglob("*.sql")}
    shipped = {path.relative_to(templates_folder()) for path in templates_folder().rglob("*.sql")}
    assert written
    assert shipped == written


@pytest.mark.skipif("DPSYN_TEST_INSTALLED" not in os.environ, reason="a development checkout is tested")
def test_the_installed_package_is_tested():
    assert not PACKAGE.is_relative_to(CHECKOUT)
    assert templates_folder() == PACKAGE / "_sql"
    assert (PACKAGE / "py.typed").is_file()
