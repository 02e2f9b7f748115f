"""Real dbt and tables that keys tie: a model for each table, one release behind them, one debit."""

import json
import shutil

import duckdb
import pytest
from support.dbt import ROOT, dbt_in_turn, is_here, released
from support.example_shop import TABLES, dangling, make_shop

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_here(), reason="dbt-duckdb is not installed")]

PROJECT = """
name: shop
version: "1.0"
profile: shop
models:
  shop:
    public:
      +materialized: dp_release
      +schema: made
      +meta: {dpsyn: OPTIONS}
"""
OPTIONS = {"name": "shop", "epsilon": 1.0, "domain": "shop.domain.yml", "most": {"orders": 8}}
PROFILES = """
shop:
  target: dev
  outputs:
    dev: &output {type: duckdb, path: dev.duckdb, threads: 2, attach: [{path: shop.duckdb, alias: private}]}
    prod: {<<: *output, path: prod.duckdb}
"""
SOURCES = """
sources:
  - name: raw
    database: private
    schema: main
    tables: [{name: customers}, {name: orders}, {name: items}, {name: products}]
models:
""" + "\n".join(
    f"""  - name: {name}_synthetic
    data_tests:
      - dpsyn_sql.within_domain: {{config: {{tags: [within]}}}}
      - dpsyn_sql.is_release: {{arguments: {{max_epsilon: 1}}}}"""
    for name in TABLES
)
BODY = (
    "{{ dpsyn_sql.release(" + ", ".join(f"source('raw', '{name}')" for name in (*TABLES, "products")) + ") }}"
)


@pytest.fixture
def project(tmp_path):
    make_shop(tmp_path)
    (tmp_path / "models" / "public").mkdir(parents=True)
    shutil.copytree(ROOT / "dbt", tmp_path / "dbt_packages" / "dpsyn_sql")
    (tmp_path / "dbt_project.yml").write_text(PROJECT.replace("OPTIONS", json.dumps(OPTIONS)))
    (tmp_path / "profiles.yml").write_text(PROFILES)
    (tmp_path / "models" / "models.yml").write_text(SOURCES)
    for name in TABLES:
        model = tmp_path / "models" / "public" / f"{name}_synthetic.sql"
        model.write_text("{{ config(alias='" + name + "') }}\n" + BODY)
    (tmp_path / "models" / "joined.sql").write_text(
        "select count(*) as n from {{ ref('items_synthetic') }} join {{ ref('orders_synthetic') }} using (order_id)"
    )
    return tmp_path


def rows(path):
    with duckdb.connect(path, read_only=True) as con:
        con.execute("ATTACH 'shop.duckdb' AS private (READ_ONLY)")
        assert dangling(con, "main_made", "private.main.products") == 0
        return [con.execute(f"FROM main_made.{name} ORDER BY ALL").fetchall() for name in TABLES]


def test_all_models_are_one_release_and_one_debit(project, monkeypatch):
    monkeypatch.chdir(project)
    (show, empty), _ = dbt_in_turn(project, ["show", "-s", "orders_synthetic"], ["build", "--empty"])
    assert not show["success"] and empty["success"], empty
    ledger = project / "shop.duckdb.dpsyn-ledger"
    assert not ledger.exists()
    with duckdb.connect("dev.duckdb", read_only=True) as con:
        assert con.execute("SELECT count(*) FROM main_made.items").fetchone() == (0,)
        columns = [name for name, *_ in con.execute("DESCRIBE main_made.items").fetchall()]
        assert columns == ["order_id", "line", "product_id", "quantity", "price"]

    results, printed = dbt_in_turn(
        project, ["build"], ["build", "-s", "items_synthetic"], ["build", "--target", "prod"]
    )
    assert all(result["success"] for result in results), printed
    assert [
        printed.count(words) for words in ("charged in", "replayed, nothing", "which this build has")
    ] == [
        1,
        2,
        4,
    ], printed
    outputs, number = released(ledger)
    assert number == 1 and outputs["shop", None].keys() == {
        'dev.duckdb:main_made."*"',
        'prod.duckdb:main_made."*"',
    }
    assert rows("dev.duckdb") == rows("prod.duckdb")
    with duckdb.connect("dev.duckdb", read_only=True) as con:
        joined, items = con.execute(
            "SELECT (FROM main.joined), (SELECT count(*) FROM main_made.items)"
        ).fetchone()
        assert joined == items > 0


@pytest.mark.parametrize(
    ("options", "name", "body", "words"),
    [
        ({"name": None}, "orders", BODY, "name is missing"),
        ({"tables": ["orders"]}, "orders", BODY, "tables is not an option here"),
        ({"unit": "row"}, "orders", BODY, "unit="),
        ({}, "other", BODY, "give the model the alias of one of them"),
        ({}, "products", BODY, "give the model the alias of one of them"),
        ({}, "orders", BODY.replace(", source('raw', 'products')", ""), "'products' is not in the body"),
        ({"unit": "orders.order_id"}, "orders", BODY, "orders"),
    ],
)
def test_what_a_model_gets_wrong_is_refused_before_a_charge(project, options, name, body, words):
    given = {key: value for key, value in {**OPTIONS, **options}.items() if value is not None}
    (project / "dbt_project.yml").write_text(PROJECT.replace("OPTIONS", json.dumps(given)))
    (project / "models" / "models.yml").write_text(SOURCES.partition("models:")[0])
    shutil.rmtree(project / "models" / "public")
    (project / "models" / "public").mkdir()
    (project / "models" / "joined.sql").unlink()
    (project / "models" / "public" / "one.sql").write_text("{{ config(alias='" + name + "') }}\n" + body)
    ((result,), printed) = dbt_in_turn(project, ["build"])
    assert result["nodes"]["one"][0] == "error" and words in result["nodes"]["one"][1], printed
    assert not (project / "shop.duckdb.dpsyn-ledger").exists()
