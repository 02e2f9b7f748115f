"""Every template of ``sql/``: its header is true, it is one statement (or a script) that its engine parses, its text is kept."""

import re
import sqlite3

import duckdb
import jinja2
import jinja2.meta
import pytest
from template_examples import EXAMPLES
from texts import FOLDER, TEMPLATES, dialect_of, statement, texts_of

from dpsyn_sql.sqltext.render import templates_folder

ENVIRONMENT = jinja2.Environment()
PYTHONS = {"lambda"}  # DuckDB writes it as Python does
SCHEMA = "ledger/schema"
SCRIPTS = {SCHEMA, "macros/tables"}  # of several statements
FROM_THE_RENDERER = {"dialect"}
WRITE = "run python -m tests.golden and look at the difference"


def header_of(source):
    """What the comment before the statement says of ``in:`` and ``out:``."""
    comment = re.match(r"\{#-?(.*?)#\}|((?:--.*\n)+)", source, flags=re.DOTALL)
    assert comment, "the template starts with a comment that has in: and out:"
    lines = [line.removeprefix("--").strip() for line in (comment[1] or comment[2]).splitlines()]
    found = re.search(r"(?:^| )in: +(.*?) out: +(\S.*)$", " ".join(lines))
    assert found, "the header says in: and out: (or in: nothing)"
    return found[1], found[2]


def names_in(said):
    """The variables that a header names: what stands between commas, parentheses left out."""
    while said != (said := re.sub(r"\([^()]*\)", "", said)):
        pass
    return set() if said.strip() == "nothing" else {name.strip(" :") for name in said.split(",")}


def used_in(template, source):
    if dialect_of(template) == "sqlite":
        return set(re.findall(r"(?<!:):(\w+)", statement(source)))
    return jinja2.meta.find_undeclared_variables(ENVIRONMENT.parse(source)) - FROM_THE_RENDERER


@pytest.fixture(scope="module")
def engines():
    """A DuckDB that parses, and a ledger without entries whose statements SQLite can compile."""
    with duckdb.connect() as con, sqlite3.connect(":memory:") as ledger:
        ledger.executescript((templates_folder() / f"{SCHEMA}.sql").read_text())
        reserved = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
        yield con, ledger, {row[0] for row in con.execute(reserved).fetchall()} - PYTHONS
    ledger.close()


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_is_what_it_says(template, engines):
    con, ledger, reserved = engines
    source = (templates_folder() / f"{template}.sql").read_text()
    if template != SCHEMA:
        assert names_in(header_of(source)[0]) == used_in(template, source), "in: names other variables"
    needed = dialect_of(template) != "sqlite" and used_in(template, source)
    assert not needed or template in EXAMPLES, (
        f"add values for {template} to tests/golden/template_examples.py"
    )
    for path, text in texts_of(template).items():
        assert path.exists(), f"{path.relative_to(FOLDER)} is not kept: {WRITE}"
        assert text == path.read_text(), f"{path.relative_to(FOLDER)} says something else: {WRITE}"
        words = [text[start:].split(None, 1)[0] for start, kind in duckdb.tokenize(text) if is_keyword(kind)]
        words = [re.match(r"\w*", word)[0] for word in words]
        assert [word for word in words if word.lower() in reserved and not word.isupper()] == []
        if dialect_of(template) != "sqlite":
            fragment = text.startswith(("(", "read_"))
            statements = con.extract_statements(f"FROM {text}" if fragment else text)
            assert len(statements) == 1 or template in SCRIPTS
        elif template != SCHEMA:
            bound = dict.fromkeys(used_in(template, source))
            ledger.execute(text if text.startswith("PRAGMA") else f"EXPLAIN {text}", bound).fetchall()


def is_keyword(kind):
    return str(kind).endswith("keyword")


def test_every_example_and_every_text_belongs_to_a_template():
    wanted = {path for template in TEMPLATES for path in texts_of(template)}
    assert set(EXAMPLES) <= set(TEMPLATES) and set(FOLDER.rglob("*.sql")) == wanted
