"""The form of ``dpsyn init``: valid YAML, complete once filled, and silent about the data."""

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.domain.file import read_domain
from dpsyn_sql.domain.template import template_text
from dpsyn_sql.source.relation import Column, Relation

FILLED = {
    "VARCHAR": ("[FILL]", "[a]"),
    "INTEGER": ("lower: FILL, upper: FILL", "lower: 1, upper: 5"),
    "DOUBLE": ("lower: FILL, upper: FILL", "lower: 1, upper: 5"),
    "DATE": ("lower: FILL, upper: FILL", "lower: 2020-01-01, upper: 2020-12-31"),
    "TIMESTAMP": ("lower: FILL, upper: FILL", "lower: 2020-01-01, upper: 2020-12-31"),
}
NAMES = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=150)


def filled(text, columns):
    """What a person does: uncomment the forms and replace FILL, type by type."""
    kinds = iter([column.sql_type for column in columns])
    lines = []
    for line in text.split("columns:\n", 1)[1].splitlines():
        if line.startswith("  ## "):
            blank, answer = FILLED[next(kinds)]
        elif line.startswith("  # "):
            lines.append("  " + line[4:].replace(blank, answer))
    return "columns:\n" + "\n".join(lines)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(names=st.lists(NAMES, min_size=1, max_size=5, unique_by=str.lower), source=NAMES, data=st.data())
def test_any_names_round_trip(tmp_path_factory, names, source, data):
    kinds = st.sampled_from(sorted(FILLED))
    columns = tuple(Column(name, data.draw(kinds)) for name in names)
    text = template_text(Relation(source, "table", "t", columns))
    assert yaml.safe_load(text) == {"columns": None}
    path = tmp_path_factory.mktemp("d") / "d.yml"
    path.write_text(filled(text, columns), encoding="utf-8")
    assert read_domain(path).to_domain(columns).names == tuple(names)


def test_very_long_and_awkward_names(tmp_path):
    names = [
        "x" * 5000,
        'a"b',
        "a: b",
        "- a",
        "{{ x }}",
        "שלום",
        "# no",
        "null",
        "1",
        "~",
        "a\nb: {type: numeric}",
    ]
    columns = tuple(Column(name, "INTEGER") for name in names)
    path = tmp_path / "d.yml"
    path.write_text(filled(template_text(Relation("t", "table", "t", columns)), columns), encoding="utf-8")
    assert read_domain(path).to_domain(columns).names == tuple(names)


def test_known_unsupported_and_anonymous_columns():
    columns = (
        Column("flag", "BOOLEAN"),
        Column("kind", "ENUM('x', 'y')", enum_labels=("x", "y")),
        Column("anonymous", "ENUM('secret')"),
        Column("nested", "STRUCT(secret INTEGER)"),
        Column("list", "STRUCT(secret INTEGER)[]"),
        Column("must", "INTEGER", not_null=True),
    )
    text = template_text(Relation("t", "table", "t", columns))
    assert "secret" not in text
    assert '"flag": BOOLEAN, known from the catalog' in text
    assert '"kind": ENUM of 2 labels, known from the catalog' in text
    assert '"nested": type STRUCT is not supported; exclude' in text
    assert '# "must": {type: numeric, lower: FILL, upper: FILL, nullable: false}' in text


def test_csv_explains_types():
    text = template_text(Relation("f.csv", "csv", "t", (Column("a", "VARCHAR"),)))
    assert "sql_type" in text and "text of a CSV file" in text
