"""The form of ``dpsyn init``: valid YAML, complete once filled, and silent about the data."""

import re
from decimal import Decimal

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsyn_sql.attributes.file import json_schema, read_domain
from dpsyn_sql.planning.template import template_text
from dpsyn_sql.source.relation import CheckDomain, Column, Relation

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


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(names=st.lists(NAMES, min_size=1, max_size=5, unique_by=str.lower), source=NAMES, data=st.data())
def test_any_names_round_trip(tmp_path_factory, names, source, data):
    kinds = st.sampled_from(sorted(FILLED))
    columns = tuple(Column(name, data.draw(kinds)) for name in names)
    text = template_text(Relation(source, "table", "t", columns))
    assert yaml.safe_load(text) == {"columns": None}
    path = tmp_path_factory.mktemp("d") / "d.yml"
    path.write_text(filled(text, columns), encoding="utf-8")
    assert read_domain(path).to_shape(columns).domain.names == tuple(names)


def test_text_can_be_discovered_with_its_beginnings():
    columns = (Column("icd", "VARCHAR"), Column("n", "INTEGER"))
    text = template_text(Relation("t", "table", "t", columns))
    assert text.count("{type: discover, prefixes: [3, 1]}") == 1 and "prefixes: [3, 1] for text" in text
    entry = yaml.safe_load("{type: discover, prefixes: [3, 1]}")
    shape = read_domain({"columns": {"icd": entry}}).to_shape(columns, discover=True)
    assert shape.measured[0].prefixes == (3, 1)


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
    assert read_domain(path).to_shape(columns).domain.names == tuple(names)


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


@settings(max_examples=30)
@given(names=st.lists(NAMES, min_size=1, max_size=5, unique_by=str.lower), data=st.data())
def test_every_column_of_a_csv_file_has_a_type_to_fill_in(names, data):
    columns = tuple(Column(name, "VARCHAR") for name in names)
    text = template_text(Relation("f.csv", "csv", "t", columns))
    assert yaml.safe_load(text) == {"columns": None}
    head, forms = text.split("columns:\n", 1)
    offered = re.search(r"sql_type: (.*) or (\w+)$", forms, flags=re.MULTILINE)
    types = [*re.split(", (?![0-9])", offered[1]), offered[2]]
    assert len(types) == 8 and all(kind in head for kind in types)
    chosen = [data.draw(st.sampled_from(types)) for _ in names]
    left = iter(chosen)
    lines = [
        line[4:].replace("FILL", f'"{next(left)}"' if "FILL" in line else "")
        for line in forms.splitlines()
        if line[:4] == "  # "
    ]
    domain = yaml.safe_load("columns:\n" + "".join(f"  {line}\n" for line in lines))
    shape = read_domain(domain).to_shape(columns, csv=True, discover=True)
    assert shape.untyped == () and [item.sql_type for item in shape.measured] == chosen


def test_what_constraints_say_need_not_be_written():
    columns = (
        Column("id", "INTEGER", unique=True),
        Column("u", "UUID"),
        Column("kind", "VARCHAR", check=CheckDomain(("a", "b"))),
        Column("age", "INTEGER", check=CheckDomain((), Decimal(0), Decimal(120))),
        Column("odd", "INTEGER", check=CheckDomain(("x",))),
        Column("open", "TIME"),
    )
    text = template_text(Relation("t", "table", "t", columns))
    assert '# "id": a key, unique by a constraint of the table: gets fresh values; nothing' in text
    assert '# "u": a key, a UUID: gets fresh values; nothing' in text
    assert '# "kind": VARCHAR of 2 values, known from a CHECK constraint; nothing' in text
    assert '# "age": INTEGER with bounds, known from a CHECK constraint; nothing' in text
    assert '# "odd": {type: numeric, lower: FILL' in text
    assert '## TIME; or instead: {type: discover}\n  # "open": {type: temporal' in text


def test_the_form_explains_every_kind():
    head = template_text(Relation("t", "table", "t", ()))
    explained = {f"{word.capitalize()}Spec" for word in re.findall(r"^#   (\w+) ", head, flags=re.MULTILINE)}
    assert set(json_schema()["$defs"]) <= explained


def test_the_entries_that_the_form_explains_are_valid():
    """What a person copies from the comments must work."""
    text = template_text(Relation("t", "table", "t", ()))
    examples = [yaml.safe_load(found) for found in re.findall(r"(?m)(\{[td].*\}): ", text)]
    table = re.search(r"\{derived: \{.*\}, else: 0\}", text)
    examples.append(yaml.safe_load(table[0]))
    assert len(examples) == 5
    columns = (*(Column(f"c{i}", "INTEGER") for i in range(5)), Column("age", "BOOLEAN"))
    spec = {"columns": {f"c{i}": entry for i, entry in enumerate(examples)}}
    spec.update(yaml.safe_load(re.search(r"never: \[.*\]", text)[0]))
    shape = read_domain(spec).to_shape(columns, discover=True)
    assert len(shape.order) == 6 and len(shape.never) == 1
