"""What a release says of itself to a reader without this package: certificate, domain, comments."""

import json
import warnings
from collections import Counter
from itertools import groupby

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.source.files import file_beside

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

HOSTILE = """it's "x"; -- {{ y }} /* z\nw' || error('!') || '"""
NAME = HOSTILE.replace("\n", "")
DOMAIN = {
    "columns": {
        "id": {"type": "key"},
        "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 5},
        HOSTILE: {"type": "categorical", "categories": ["", "it's", 'a"b,\n[c]; --', "NULL", "{}", "[]"]},
        "state": {"type": "constant", "value": HOSTILE},
        "nothing": {"type": "constant", "value": None},
        "twice": {"derived": "age * 2"},
        "share": {"type": "numeric", "lower": 0.0, "upper": 0.3, "bins": 3},
    },
    "never": ["age < 3 AND twice <> 1"],
}
CALLS = {
    "plain": {"method": "independent", "delta": 0, "exclude": ["day"]},
    NAME: {
        "method": "adaptive",
        "unit": "person",
        "most": 2,
        "weights": False,
        "workload": {"age": 3, ("age", HOSTILE): "0.5"},
    },
    "Copula": {"method": "copula", "unit": "person", "most": 1, "exclude": ["day"]},
    "views": {"exclude": ["day", "share"]},
}


def ident(name):
    return '"' + name.replace('"', '""') + '"'


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def source(con, name):
    """A table of its own for every release: an account has one unit."""
    con.execute(f"""CREATE TABLE {name} AS SELECT i AS id, i % 90 AS age, 'it''s' AS {ident(HOSTILE)}, 'x' AS state,
        NULL::DATE AS nothing, 2 * (i % 90) AS twice, (i % 30) / 100 AS share, i // 2 AS person,
        DATE '2020-01-01' + CAST(i % 365 AS INTEGER) AS day FROM range(1500) AS r(i)""")
    return name


def released(con, name, number=0, **options):
    settings = {
        "epsilon": 3,
        "domain": {
            **DOMAIN,
            "columns": {
                column: fact
                for column, fact in DOMAIN["columns"].items()
                if column not in CALLS.get(name, {}).get("exclude", ())
            },
        },
        "into": f"out_{number}",
        "name": name,
        **CALLS.get(name, {}),
        **options,
    }
    return dpsyn_sql.release(con, f"t_{number}", **settings)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A file with a release of every method, and what ``release`` returned."""
    path = tmp_path_factory.mktemp("shop") / "shop.duckdb"
    with duckdb.connect(str(path)) as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {}
        for number, name in enumerate(CALLS):
            source(con, f"t_{number}")
            made[name] = released(con, name, number)
    return path, made


def leaves(facts):
    """What a certificate says outside of mechanisms and columns, one text or number a fact."""
    for value in facts.values() if isinstance(facts, dict) else facts:
        if isinstance(value, dict) and isinstance(facts, list):
            yield ", ".join(
                f"{key} {json.dumps(item, separators=(',', ':')) if isinstance(item, list) else item}"
                for key, item in value.items()
            )
        elif isinstance(value, dict | list) and value:
            yield from leaves(value)
        else:
            yield "none" if value is None or value in ({}, []) else value


def read(value):
    """Numbers as numbers: JSON may spell one in several ways."""
    try:
        return float(value)
    except ValueError:
        return value


def asked(facts):
    """The mechanisms as they are told: a line a step and kind, with the least and the greatest numbers."""

    def key(item):
        step = ", column ".join(item[part] for part in ("step", "column") if item.get(part) is not None)
        return step, item["event"]

    for (step, event), group in groupby(sorted(facts, key=key), key):
        items = [{k: v for k, v in item.items() if k not in ("step", "column", "event")} for item in group]
        ranges = []
        for name in {name for item in items for name in item}:  # not every question of a step has a lattice
            numbers = [item[name] for item in items if name in item]
            ranges.append((name.replace("_", " "), *sorted({min(numbers), max(numbers)})))
        yield step, event, len(items), sorted(ranges)


def told_mechanism(fact, value):
    head, numbers = value.split(": ", 1)
    times, event = head.split(" x ")
    parts = []
    for part in numbers.split(", "):
        name, *ends = part.replace(" to ", " ").rsplit(" ", part.count(" to ") + 1)
        parts.append((name, *map(float, ends)))
    return fact, event, int(times), sorted(parts)


def check_certificate(rows, name, facts):
    """Every fact of a certificate is a row, and every row a fact."""
    sections = [section for section, _ in groupby(section for section, _, _ in rows)]
    assert len(sections) == len(set(sections)) and rows[0] == ("release", "name", name)
    others = {k: v for k, v in facts.items() if k not in ("mechanisms", "public_facts", "losses")}
    public = {k: v for k, v in facts["public_facts"].items() if k not in ("domain", "roles")}
    told = [value for section, _, value in rows[1:] if section not in ("mechanisms", "columns")]
    lost = [
        ". ".join(x for x in (one["verdict"], one.get("why", "").strip("."), one.get("lost")) if x)
        for one in facts["losses"]["columns"]
        if "lost" in one or "why" in one
    ]
    for about in ("table", "dependences"):
        lost += [facts["losses"][about][key] for key in ("verdict", "why") if key in facts["losses"][about]]
    pairs = {key: facts["losses"][key] for key in ("pairs", "warnings")}
    expected = [*leaves(others), *leaves(public), *lost, *leaves(pairs)]
    assert Counter(map(read, told)) == Counter(map(read, expected))

    named = {(section, fact): value for section, fact, value in rows}
    guarantee = facts["guarantee"]
    for fact, value in (
        (("guarantee", "epsilon"), guarantee["epsilon"]),
        (("guarantee", "delta"), guarantee["delta"]),
        (("guarantee", "privacy unit"), guarantee["privacy_unit"]),
        (("guarantee", "rows per unit, at most"), guarantee["rows_per_unit"]),
        (("budget", "used, in units of 1e-15"), facts["budget"]["used_units_of_1e-15"]),
        (("source", "name"), facts["source"]["name"]),
        (("sampling", "rows"), facts["sampling"]["rows"]),
        (("release", "id"), facts["release"]),
        (("release", "method"), facts["method"]),
    ):
        assert read(named[fact]) == read(value), fact
    assert not [fact for _, fact, _ in rows if "_" in fact and fact not in _columns(facts)]

    mechanisms = [told_mechanism(fact, value) for section, fact, value in rows if section == "mechanisms"]
    assert sorted(mechanisms) == sorted(asked(facts["mechanisms"]))
    columns = [(fact, value) for section, fact, value in rows if section == "columns"]
    assert [fact for fact, _ in columns] == _columns(facts)
    for item, (_, value) in zip(facts["public_facts"]["domain"], columns, strict=False):
        assert value.startswith(f"{item['kind']}, {item['codes']} codes, {item['origin']}")


def _columns(facts):
    public = facts["public_facts"]
    return [item["name"] for item in (*public["domain"], *public["roles"])]


def check_domain(rows, facts, domain):
    names = [name for name, *_ in rows]
    assert names == _columns(facts)
    by_name = {name: rest for name, *rest in rows}
    for attribute in domain.attributes:
        sql_type, kind, codes, labels, edges, origin, nullable, expression = by_name[attribute.name]
        stated = next(f for f in facts["public_facts"]["domain"] if f["name"] == attribute.name)
        assert (sql_type, kind, codes, origin, nullable, expression) == (
            *(stated[key] for key in ("type", "kind", "codes", "origin", "nullable")),
            stated.get("source"),
        )
        if kind == "categorical":
            assert edges is None
            assert labels == [None if label is None else str(label) for label in code_labels(attribute)]
        else:
            assert labels is None and [read(edge) for edge in edges] == [
                read(str(edge)) for edge in stated["edges"]
            ]
    for stated in facts["public_facts"]["roles"]:
        sql_type, kind, codes, labels, edges, origin, nullable, expression = by_name[stated["name"]]
        assert (sql_type, kind.replace(" ", ""), codes, edges) == (
            *(stated["type"], stated["role"]),
            *(None, None),
        )
        assert labels == ([stated["value"]] if kind == "constant" else None)
        assert expression == stated.get("expression")
        assert nullable is {"constant": stated.get("value") is None, "derived": None}.get(kind, False)
        assert origin == stated.get("origin", "declared")


@pytest.mark.parametrize("name", CALLS, ids=["plain", "hostile", "copula", "views"])
def test_every_fact_is_a_row_and_every_column_is_described(shop, name):
    path, made = shop
    release = made[name]
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS f (READ_ONLY); USE f")
        rows = con.execute(f"FROM dpsyn_certificate({quoted(name)})").fetchall()
        check_certificate(rows, name, release.certificate())
        check_domain(
            con.execute(f"FROM dpsyn_domain({quoted(name)})").fetchall(),
            release.certificate(),
            release.model.domain,
        )
        swapped = name.swapcase()
        assert con.execute(f"FROM dpsyn_certificate({quoted(swapped)})").fetchall() == rows


def test_columns_have_roles_in_words(shop):
    path, _ = shop
    with duckdb.connect(str(path), read_only=True) as con:
        told = dict(
            con.execute(
                f"SELECT fact, value FROM dpsyn_certificate({quoted(NAME)}) WHERE section = 'columns'"
            ).fetchall()
        )
        kinds = dict(con.execute(f"SELECT name, kind FROM dpsyn_domain({quoted(NAME)})").fetchall())
    assert told["id"] == "key, fresh values" and told["person"] == "unit id, fresh values"
    assert told["state"] == f"constant, {HOSTILE}" and told["nothing"] == "constant, NULL"
    assert told["twice"] == 'derived, "age" * 2' and "discovered" in told["day"]
    assert kinds["person"] == "unit id" and kinds["day"] == "temporal"


def test_a_wrong_name_lists_the_releases_in_every_macro(shop):
    path, _ = shop
    with duckdb.connect(str(path), read_only=True) as con:
        for name in ("b's", 'q"', NAME + "'", "", None):
            text = "NULL" if name is None else quoted(name).replace("\x00", "' || chr(0) || '")
            for macro, rest in (
                ("sample", ", 3"),
                ("marginal", ", ['age']"),
                ("certificate", ""),
                ("domain", ""),
            ):
                for what in ("*", "count(*)"):
                    with pytest.raises(duckdb.Error) as caught:
                        con.execute(f"SELECT {what} FROM dpsyn_{macro}({text}{rest})").fetchall()
                    message = str(caught.value)
                    shown = "NULL" if name is None else quoted(name)
                    assert f"dpsyn_{macro}: there is no release {shown} here; there are " in message
                    for known in CALLS:
                        assert quoted(known) in message
        for names in ("NULL", "[]", "[NULL]", "['age', NULL]"):
            with pytest.raises(duckdb.Error, match="name attributes of the release, each once"):
                con.execute(f"FROM dpsyn_marginal('plain', {names})").fetchall()
        with pytest.raises(duckdb.Error, match=r"it has no 'z''z', 'agee'\. FROM dpsyn_domain\('plain'\)"):
            con.execute("SELECT count(*) FROM dpsyn_marginal('plain', ['age', 'z''z', 'agee'])").fetchall()


# -- comments ----------------------------------------------------------------------------------------------


def comments(con, table):
    (whole,) = con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = ?", [table]).fetchone()
    columns = con.execute(
        "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = ?", [table]
    ).fetchall()
    return whole, dict(columns)


def test_comments_state_the_claim_and_what_each_column_is(shop):
    path, made = shop
    with duckdb.connect(str(path), read_only=True) as con:
        for number, name in enumerate(CALLS):
            whole, columns = comments(con, f"out_{number}")
            facts = made[name].certificate()
            guarantee = facts["guarantee"]
            assert f"epsilon {guarantee['epsilon']!r}, delta {guarantee['delta']!r}," in whole
            assert f"privacy unit: {guarantee['privacy_unit']}; rows per unit: at most " in whole
            assert f"Method: {facts['method']}." in whole and facts["release"] in whole
            assert whole.startswith("Synthetic rows, ")
            call = whole.split("Certificate: ")[1]
            assert con.execute(call).fetchone() == ("release", "name", name)
            for item in facts["public_facts"]["domain"]:
                codes = "1 code;" if item["codes"] == 1 else f"{item['codes']} codes;"
                assert f"{item['kind']}, {codes}" in columns[item["name"]]
            assert columns["id"] == "Fresh key, unrelated to the keys of the source."
            assert columns["twice"].endswith('"age" * 2') and "owner" in columns["state"]
            assert None not in columns.values()


def test_comments_are_new_with_a_new_table_and_stay_with_the_same_one(tmp_path):
    with duckdb.connect(str(tmp_path / "o.duckdb")) as con:
        source(con, "t_0")
        con.execute("CREATE TABLE out_0 (a INTEGER); COMMENT ON TABLE out_0 IS 'old'")
        first = released(con, "plain", replace=True)
        said = comments(con, "out_0")
        assert first.id in said[0] and "old" not in said[0]
        con.execute("COMMENT ON COLUMN out_0.age IS 'years'")
        assert released(con, "plain").id == first.id  # a replay that finds its output
        assert comments(con, "out_0") == (said[0], {**said[1], "age": "years"})
        assert released(con, "plain", replace=True).id == first.id
        assert comments(con, "out_0") == said
        second = released(con, "plain", replace=True, version="2")
        assert second.id != first.id and second.id in comments(con, "out_0")[0]


def test_a_table_and_a_source_of_alike_names(tmp_path):
    """The qualified name of a column of the output is written like that of the source."""
    with duckdb.connect(str(tmp_path / "o.duckdb")) as con:
        con.execute(
            f"ATTACH '{tmp_path / 's.duckdb'}' AS shop; CREATE SCHEMA shop.people; CREATE SCHEMA o.shop"
        )
        con.execute("CREATE TABLE shop.people.age AS SELECT i % 90 AS age FROM range(900) AS r(i)")
        release = dpsyn_sql.release(
            con,
            "shop.people.age",
            epsilon=3,
            method="independent",
            domain={"columns": {"age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 5}}},
            into="o.shop.people",
        )
        assert release.id in comments(con, "people")[0]


def test_a_parquet_file_says_what_it_is_and_its_replay_is_the_same(tmp_path):
    output = tmp_path / "it's.parquet"
    with duckdb.connect(str(tmp_path / "o.duckdb")) as con:
        source(con, "t_0")
        first = released(con, NAME, into=output)
        said = f"SELECT decode(value) FROM parquet_kv_metadata({quoted(str(output))}) WHERE decode(key) = 'dpsyn_sql'"
        (statement,) = con.execute(said).fetchone()
        whole = output.read_bytes()
        guarantee = first.certificate()["guarantee"]
        assert f"epsilon {guarantee['epsilon']!r}, delta {guarantee['delta']!r}," in statement
        assert NAME in statement and first.id in statement and "Synthetic rows" in statement
        assert released(con, NAME, into=output).replayed and output.read_bytes() == whole
        output.unlink()
        file_beside(output).unlink()
        released(con, NAME, into=output)
        assert output.read_bytes() == whole
        beside = file_beside(output)
    with duckdb.connect(str(beside), read_only=True) as con:
        rows = con.execute(f"FROM dpsyn_certificate({quoted(NAME)})").fetchall()
        check_certificate(rows, NAME, first.certificate())
        assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE comment IS NOT NULL").fetchone() == (
            0,
        )
