"""Real dbt: no build, preview or retry spends twice, and nothing that it prints or leaves holds a private row."""

import json
import shutil

import duckdb
import pytest
from support.dbt import ROOT, dbt, dbt_in_turn, is_here, released

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_here(), reason="dbt-duckdb is not installed")]

CANARIES = ("CANARYcity", "CANARYnote", "7391739")
ODD_TABLE = """odd "t"; DROP TABLE people_raw; -- {{ x }} $$"""
ODD_NAME = """it's a "name"; -- {{ 1 }} {% x %} $$ \\"""
ODD_COLUMN = """no"te'; --{{ x }}"""


@pytest.mark.required
def test_the_example_builds_from_a_clean_checkout_and_spends_once(tmp_path):
    shutil.copytree(ROOT / "dbt", tmp_path / "dbt")
    shutil.copytree(ROOT / "examples" / "dbt_project", tmp_path / "examples" / "dbt_project")
    shutil.copy(ROOT / "examples" / "adult.parquet", tmp_path / "examples")
    project = tmp_path / "examples" / "dbt_project"
    for line in ("deps", "build", "build"):
        done = dbt(project, line)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "replayed, nothing charged" in done.stdout
    results, _ = dbt_in_turn(project, ["build", "--target", "prod"], ["docs", "generate"])
    assert all(result["success"] for result in results)
    outputs, releases = released(project / "private.duckdb.dpsyn-ledger")
    assert releases == 1
    assert outputs["people_synthetic", None].keys() == {
        "dev.duckdb:main.people_synthetic",
        "prod.duckdb:main.people_synthetic",
    }
    with duckdb.connect(project / "prod.duckdb", read_only=True) as con:
        assert con.execute("SELECT count(*) FROM dpsyn_sample('people_synthetic', 10)").fetchone() == (10,)


# -- a project with private rows that are easy to find ------------------------------------------

DOMAIN = {
    "columns": {
        "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 5},
        "city": {"type": "categorical", "categories": ["A", "B"]},
        "income": {"type": "numeric", "lower": 0, "upper": 100000, "bins": 4},
    }
}
OPTIONS = {"epsilon": 1.0, "unit": "row", "domain": "people.domain.yml", "exclude": [ODD_COLUMN]}
BODY = "{{ dpsyn_sql.release(ref('people')) }}"


def config(dpsyn, **others):
    return "{{ config(materialized='dp_release', " + (
        f"meta={ ({'dpsyn': dpsyn})!r}, "
        + ", ".join(f"{key}={value!r}" for key, value in others.items())
        + ") }}"
    )


WRONG = {
    "wrong_body": (config(OPTIONS), "select * from {{ ref('people') }}", "nothing else, because `dbt show`"),
    "wrong_two": (config(OPTIONS), BODY + "\n-- {{ ref('people_view') }}", "names 'people', 'people_view'"),
    "wrong_none": (config(OPTIONS), "{{ dpsyn_sql.release('people') }}", "this model names none"),
    "wrong_type": (config("epsilon"), BODY, "are a mapping"),
    "wrong_flat": (
        config(OPTIONS).replace("meta={", "meta={'epsilon': 9, "),
        BODY,
        "belongs under meta.dpsyn",
    ),
    "wrong_again": (config(OPTIONS), "{{ dpsyn_sql.release(ref('people_synthetic')) }}", "a release itself"),
    "wrong_contract": (config(OPTIONS, contract={"enforced": True}), BODY, "a contract is not enforced here"),
    "wrong_view": (
        config(OPTIONS),
        "{{ dpsyn_sql.release(ref('short_lived')) }}",
        "short_lived is ephemeral",
    ),
}

PROJECT = """
name: canary
version: "1.0"
profile: canary
models:
  canary:
    private: {+database: private}
    wrong: {+tags: [wrong]}
"""
PROFILES = """
canary:
  target: dev
  outputs:
    dev: &output {type: duckdb, path: dev.duckdb, threads: 2, attach: [{path: private.duckdb, alias: private}]}
    prod: {<<: *output, path: prod.duckdb}
    memory: {<<: *output, path: ":memory:"}
"""
MODELS = f"""
sources:
  - name: raw
    database: private
    schema: main
    tables:
      - {{name: people_raw}}
      - {{name: odd, identifier: {json.dumps("{% raw %}" + ODD_TABLE + "{% endraw %}")}}}
models:
  - name: people_synthetic
    data_tests:
      - dpsyn_sql.within_domain
      - dpsyn_sql.is_release: {{arguments: {{max_epsilon: 1, max_delta: "1e-9"}}}}
  - name: made_by_hand
    data_tests:
      - dpsyn_sql.within_domain: {{name: not_within, arguments: {{release: people_synthetic}}}}
      - dpsyn_sql.is_release: {{name: not_released, arguments: {{max_epsilon: 9, release: people_synthetic}}}}
      - dpsyn_sql.is_release: {{name: by_variable, arguments: {{max_epsilon: "{{{{ var('limit', '1') }}}}"}}}}
  - name: odd_synthetic
    data_tests: [dpsyn_sql.within_domain]
  - name: python_synthetic
    data_tests:
      - dpsyn_sql.within_domain
      - dpsyn_sql.is_release: {{name: too_much, arguments: {{max_epsilon: 0.1}}}}
  - name: wrong_contract
    columns: [{{name: age, data_type: integer}}]
"""

FILES = {
    "dbt_project.yml": PROJECT,
    "profiles.yml": PROFILES,
    "people.domain.yml": json.dumps(DOMAIN),
    "models/private/people.sql": "{{ config(materialized='table') }} select * from {{ source('raw', 'people_raw') }}",
    "models/private/people_view.sql": "{{ config(materialized='view') }} select age, city from {{ ref('people') }}",
    "models/private/broken.sql": "{{ config(materialized='view') }} "
    "select age, cast(city as integer) as city from {{ ref('people') }}",
    "models/private/short_lived.sql": "{{ config(materialized='ephemeral') }} select * from {{ ref('people') }}",
    "models/public/people_synthetic.sql": config({**OPTIONS, "delta": "1e-9"})
    + "\n-- A comment is no body.\n"
    + BODY,
    "models/public/counts.sql": "select city, count(*) as n from {{ ref('people_synthetic') }} group by city",
    "models/public/made_by_hand.sql": "select 10 as age, 'nowhere' as city, 5 as income from {{ ref('counts') }}",
    "models/public/odd_synthetic.sql": config(
        {"epsilon": 0.5, "unit": "row", "name": ODD_NAME, "version": ODD_NAME, "account": ODD_NAME}
    )
    + "{{ dpsyn_sql.release(source('raw', 'odd')) }}",
    "models/public/python_synthetic.py": f"""
def model(dbt, session):
    dbt.config(materialized="dp_release")
    dbt.ref("people_view")
    domain = {DOMAIN!r}
    domain["columns"].pop("income")
    return {{"epsilon": 0.25, "unit": "row", "domain": domain}}
""",
    "models/public/broken_synthetic.sql": config({"epsilon": 0.1, "unit": "row"})
    + "{{ dpsyn_sql.release(ref('broken')) }}",
    "models/memory/local_people.sql": "{{ config(materialized='table') }} select 1 as n from {{ ref('people') }}",
    "models/memory/local_synthetic.sql": config({"epsilon": 0.1, "unit": "row"})
    + "{{ dpsyn_sql.release(ref('local_people')) }}",
    "models/models.yml": MODELS,
    **{f"models/wrong/{name}.sql": f"{head}\n{body}\n" for name, (head, body, _) in WRONG.items()},
}


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree(ROOT / "dbt", tmp_path / "dbt_packages" / "dpsyn_sql")
    with duckdb.connect(tmp_path / "private.duckdb") as con:
        quoted = [text.replace('"', '""') for text in (ODD_COLUMN, ODD_TABLE)]
        con.execute(
            f"CREATE TABLE people_raw AS SELECT CAST(i % 90 AS INTEGER) AS age, "
            "CASE WHEN i % 7 = 0 THEN 'CANARYcity' || i WHEN i % 2 = 0 THEN 'A' ELSE 'B' END AS city, "
            "CASE WHEN i % 11 = 0 THEN 7391739 ELSE i * 50 END AS income, "
            f"""'CANARYnote' || i AS "{quoted[0]}" FROM range(600) AS r(i)"""
        )
        con.execute(
            f"""CREATE TABLE "{quoted[1]}" AS SELECT i % 2 = 0 AS "b""'; --" FROM range(500) AS r(i)"""
        )
    return tmp_path


def canaries_in(folder, printed):
    """Where a private value can be found, outside the private database."""
    found = {text: text for text in CANARIES if text in printed}
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("private.duckdb."):
            own = path.name == "private.duckdb" or path.is_relative_to(folder / "models")
            found.update(
                {str(path): text for text in CANARIES if not own and text.encode() in path.read_bytes()}
            )
    for name in ("dev.duckdb", "prod.duckdb"):
        if not (folder / name).exists():
            continue
        with duckdb.connect(folder / name, read_only=True) as con:
            for schema, table in con.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() UNION ALL "
                "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"
            ).fetchall():
                rows = str(con.execute(f'FROM "{schema}"."{table}"').fetchall())
                found.update({f"{name}: {table}": text for text in CANARIES if text in rows})
    return found


RIGHT = ("--exclude", "tag:wrong", "broken_synthetic", "local_people+")
FAILING = {"too_much": "fail", "not_within": "fail", "not_released": "fail", "by_variable": "fail"}
SHOW = ["show", "--indirect-selection", "empty", "-s", "people_synthetic"]


def test_everything_that_dbt_does_spends_once_and_shows_no_private_row(project):
    ledger = project / "private.duckdb.dpsyn-ledger"
    (preview, empty, shown_empty, odd, wrong, memory), before = dbt_in_turn(
        project,
        SHOW,
        ["build", "--empty", *RIGHT],
        [*SHOW, "--output", "json"],
        ["parse", "--vars", "limit: 1; DROP TABLE counts"],
        ["build", "-s", "tag:wrong"],
        ["build", "-s", "local_people+", "--target", "memory"],
    )
    assert not preview["success"]
    assert empty["nodes"]["people_synthetic"][0] == "success" and '"show": []' in before
    assert shown_empty["success"] and not wrong["success"]
    assert "max_epsilon must be a number, not 1; DROP TABLE counts" in odd["exception"]
    for name, (_, _, message) in WRONG.items():
        status, told = wrong["nodes"][name]
        assert status == "error" and message in told, (name, told)
    assert "database in memory" in memory["nodes"]["local_synthetic"][1]
    assert not ledger.exists()

    again = ["build", *RIGHT]
    results, printed = dbt_in_turn(
        project,
        again,
        again,
        [*again, "--full-refresh"],
        ["retry"],
        [*again, "--empty"],
        ["compile"],
        ["docs", "generate"],
        SHOW,
        ["show", "--inline", "select * from {{ ref('people_synthetic') }}"],
        [*again, "--target", "prod"],
        ["build", "-s", "broken_synthetic"],
    )
    first, second, *others, prod, broken = results
    for result in (first, second, prod):
        assert result["nodes"]["people_synthetic"][0] == "success", printed
        failed = {
            name: status for name, (status, _) in result["nodes"].items() if status in ("fail", "error")
        }
        assert failed == FAILING
    assert all(result["success"] for result in others[3:])
    assert "unexpected" not in printed and "CANARY" not in broken["nodes"]["broken_synthetic"][1]
    assert broken["nodes"]["broken_synthetic"][0] == "error"
    outputs, releases = released(ledger)
    assert releases == 4  # the one that failed on the way among them
    assert outputs["people_synthetic", None].keys() == {
        "dev.duckdb:main.people_synthetic",
        "prod.duckdb:main.people_synthetic",
    }
    assert {("python_synthetic", None), (ODD_NAME, ODD_NAME), ("broken_synthetic", None)} < outputs.keys()
    assert not canaries_in(project, before + printed)
    with duckdb.connect(project / "dev.duckdb", read_only=True) as con:
        assert con.execute("SELECT count(*) FROM people_synthetic").fetchone()[0] > 0
        assert [name for name, *_ in con.execute("DESCRIBE odd_synthetic").fetchall()] == ["b\"'; --"]
    with duckdb.connect(project / "private.duckdb", read_only=True) as con:
        assert con.execute("SELECT count(*) FROM people_raw").fetchone() == (600,)
    (private,), printed = dbt_in_turn(project, ["show", "-s", "people", "--limit", "99"])
    assert private["success"] and set(CANARIES) <= canaries_in(project, printed).keys()  # they can be found
