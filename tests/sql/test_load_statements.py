"""SQL that reads a stored release: the text of each template (``tests/e2e/test_load.py`` runs them)."""

import pytest

from dpsyn_sql.sqltext.fragments import ident, literal, qualified
from dpsyn_sql.sqltext.render import render, templates_folder

SCHEMA = qualified('a"b', "dpsyn")
GOLDEN = {
    "load/releases": (
        {"schema": SCHEMA},
        """SELECT
    release,
    release_id,
    name,
    total,
    CAST(certificate AS VARCHAR) AS certificate
FROM "a""b"."dpsyn".releases
ORDER BY
    created,
    name""",
    ),
    "load/rows": (
        {
            "schema": SCHEMA,
            "table": ident("codes"),
            "columns": [ident("code"), ident("label")],
            "release": 3,
        },
        """SELECT
    "code",
    "label"
FROM "a""b"."dpsyn"."codes"
WHERE release = 3""",
    ),
    "load/nodes": (
        {"table": qualified("db", "dpsyn", "shares"), "release": 3},
        """SELECT
    count(DISTINCT node) AS nodes
FROM "db"."dpsyn"."shares"
WHERE release = 3""",
    ),
    "load/sample": (
        {
            "database": ident("db"),
            "name": literal("it's"),
            "rows": 5,
            "seeded": 1,
            "seed": literal(2**64 - 1),
        },
        """SELECT *
FROM "db".main.dpsyn_sample('it''s', 5, seed := 18446744073709551615)""",
    ),
}


def body(template, **values):
    """The statement without its header comment."""
    lines = render(template, **values).splitlines()
    return "\n".join(line for line in lines if not line.startswith("--")).strip()


@pytest.mark.parametrize("template", GOLDEN)
def test_the_text_is_as_written_here(template):
    values, text = GOLDEN[template]
    assert body(template, **values) == text


def test_without_a_seed_the_macro_takes_its_own():
    text = body("load/sample", **GOLDEN["load/sample"][0] | {"seeded": 0, "seed": literal(None)})
    assert text.endswith("dpsyn_sample('it''s', 5)")


def test_every_template_that_loads_is_here_and_says_what_goes_in_and_out():
    found = {f"load/{path.stem}": path.read_text() for path in (templates_folder() / "load").glob("*.sql")}
    assert set(found) == set(GOLDEN)
    assert all("-- in: " in text and "-- out: " in text for text in found.values())
