"""The certificate, the result and the page of a release of several tables."""

import json
from dataclasses import replace

import pytest
from support.tables import PARENTS
from support.tied_releases import BUDGET, relation, stored_tables

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.accounting.events import cost_units
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import Table, Tree
from dpsyn_sql.report.certificate import (
    certificate_in_tree,
    certificate_of_release,
    event_of,
    id_of_table,
    name_of_table,
    protected_words,
)
from dpsyn_sql.report.result import Release, ReleasedTable
from dpsyn_sql.report.stored_facts import checked_facts


def released_table(stored):
    return ReleasedTable(
        stored.name,
        dict(stored.facts),
        stored.model,
        tuple(stored.measurements),
        draw=lambda rows, seed: pytest.fail("drawn"),
        read=lambda kind: f"{stored.name} as {kind}",
    )


@pytest.fixture(scope="module")
def release():
    tables = {name: released_table(stored) for name, stored in stored_tables().items()}
    return Release.of(tables, "out", replayed=False, notes=("a note",))


def test_the_guarantee_of_the_whole_is_that_of_each_table(release):
    assert (release.epsilon, release.delta) == (1.0, 1e-9)
    for table in release.tables.values():
        assert (
            table.facts["guarantee"]["epsilon"] == 1.0
            and table.facts["guarantee"]["privacy_unit"] == "customers.customer_id"
        )
        assert table.facts["budget"]["reserved_units_of_1e-15"] == BUDGET.amount
        checked_facts(json.dumps(table.facts))
    assert release["items"].facts["guarantee"]["rows_per_unit"] == 6
    assert release["returns"].facts["database"]["tables"][-1]["rows_per_unit"] == 6


def test_one_certificate_says_what_is_shared_once(release):
    facts = release.certificate()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["release"] == "id-1" and facts["public_tables"] == ["products"]
    assert facts["not_protected"] == ["whom payee of orders names in customers"] and list(
        facts["tables"]
    ) == list(PARENTS)
    assert [one["table"] for one in facts["mechanisms"]] == list(PARENTS)
    assert facts["budget"]["used_units_of_1e-15"] == 5 * 10**11
    own = facts["tables"]["orders"]
    assert not {"guarantee", "budget", "versions", "mechanisms", "database"} & set(own)
    assert own["public_facts"]["families"]["above"][0] == {
        "name": "customers.region",
        "table": "customers",
        "attribute": "region",
    }
    facts["tables"]["orders"]["method"] = "changed"
    assert release.certificate()["tables"]["orders"]["method"] == "adaptive"


def test_the_cost_of_the_whole_is_the_sum_over_its_mechanisms(release):
    costs = [cost_units(event_of(one), "gdp") for one in release.facts["mechanisms"]]
    of_tables = [
        cost_units(event_of(one), "gdp") for own in release.tables.values() for one in own.facts["mechanisms"]
    ]
    assert costs == of_tables and sum(costs) > 0


def test_whom_a_release_protects_in_words(release):
    assert protected_words(release.facts["tree"]) == (
        "one row of customers with all rows that belong to it, of which at most 3 rows of orders (each with at "
        "most 2 rows of items (each with at most 1 row of returns)) and at most 4 rows of visits count"
    )
    alone = [{"table": "t", "parent": None, "most": 1, "rows_per_unit": 1}]
    assert protected_words(alone) == "one row of t"


def test_the_verdict_is_that_of_the_worst_table(release):
    losses = release.facts["losses"]
    assert losses["table"]["verdict"] == "rough" and losses["table"]["why"].startswith("orders: ")
    assert losses["dependences"] == {"verdict": "good"} and losses["warnings"] == ["items: few rows of items"]
    table = release.verdict
    assert list(table.columns) == ["table", "about", "column", "verdict", "why"]
    assert list(dict.fromkeys(table.table)) == list(PARENTS)
    assert (table[table.verdict == "rough"].table == "orders").all()
    said = release.summary()
    assert (
        "Protects one row of customers with" in said
        and "Not protected: whom payee of orders names in customers" in said
    )
    assert "orders: 101 rows\nVerdict: the table is rough" in said


def test_a_result_names_its_tables(release):
    assert repr(release).startswith("Release(out, rows: customers=100, orders=101, ")
    assert release["orders"].to_df("arrow") == "shop.orders as arrow" and release.notes == ("a note",)
    assert "dpsyn" not in release._repr_html_() and "↳" in release._repr_html_()


@pytest.mark.parametrize(
    "ask",
    [
        lambda release: release.table,
        lambda release: release.rows,
        lambda release: release.model,
        lambda release: release.measurements,
        lambda release: release.variances,
        lambda release: release.plot("place"),
        lambda release: release.to_df("arrow"),
    ],
)
def test_a_part_of_one_table_is_asked_of_that_table(release, ask):
    with pytest.raises(InputError, match=r"several tables.*release\['customers'\].*'orders'.*'visits'"):
        ask(release)


def test_a_release_of_one_table_has_all_parts_of_it():
    facts = {name: fact for name, fact in stored_tables()["customers"].facts.items() if name != "database"}
    table = replace(released_table(stored_tables()["customers"]), facts=facts)
    release = Release.of({"customers": table})
    assert release.certificate() == facts
    assert (release.into, release.table, release.rows) == ("shop.customers", "shop.customers", 100)
    assert release["customers"] is table and release.model is table.model
    assert release.measurements == table.measurements and release.variances == table.variances
    assert release.to_df("arrow") == "shop.customers as arrow"
    assert repr(release) == (
        f"Release(shop.customers, rows=100, epsilon={shown(release.epsilon)}, delta=1e-09, "
        f"id={release.id}, replayed)"
    )
    assert list(release.verdict.columns) == ["about", "column", "verdict", "why"]
    assert release.marginal(["region"]).equals(table.marginal(["region"]))
    assert "Synthetic table <bdi>customers</bdi>" in release._repr_html_()


def test_the_certificate_of_the_only_table_of_a_tree_is_that_of_the_table():
    facts = {"release": "id-1", "guarantee": {"epsilon": 1.0}, "budget": {}}
    alone = Tree((Table("t", relation("t"), ("k",)),))
    assert certificate_in_tree(facts, alone, "t", name="shop", budget=BUDGET) == facts
    assert certificate_of_release({"t": facts}) == facts
    assert id_of_table(alone, "id-1", "t") == "id-1" and name_of_table(alone, "shop", "t") == "shop"


def test_certificates_of_other_releases_are_no_release():
    tables = {name: one.facts for name, one in stored_tables().items()}
    for changed in (
        {name: one for name, one in tables.items() if name != "visits"},
        {**tables, "visits": stored_tables(release="id-2")["visits"].facts},
        {**tables, "visits": tables["orders"]},
        {
            **tables,
            "visits": {**tables["visits"], "guarantee": {**tables["visits"]["guarantee"], "epsilon": 0.5}},
        },
    ):
        with pytest.raises(InputError, match="not of one release"):
            certificate_of_release(changed)
    for nothing in ({}, {"t": {"release": "x"}, "u": {"release": "x"}}):
        with pytest.raises(InputError, match="not the certificates"):
            certificate_of_release(nothing)


@pytest.mark.parametrize(
    "change",
    [
        {"tables": []},
        {"table": "other"},
        {"tables": [{"table": "a", "parent": "b", "most": 1, "rows_per_unit": 1}]},
        {"name": 3},
    ],
)
def test_a_changed_tree_is_refused(change):
    facts = stored_tables()["orders"].facts
    with pytest.raises(ValueError):
        checked_facts(json.dumps({**facts, "database": {**facts["database"], **change}}))


@pytest.mark.parametrize("change", [None, {"above": None}, {"table": "items"}, {"above": [{"name": "x"}]}])
def test_a_table_whose_attributes_above_are_not_told_is_refused(change):
    facts = json.loads(json.dumps(stored_tables()["orders"].facts))
    own = facts["public_facts"]["families"]
    changed = None if change is None else {k: v for k, v in {**own, **change}.items() if v is not None}
    facts["public_facts"]["families"] = changed
    with pytest.raises(ValueError):
        checked_facts(json.dumps(facts))


def test_the_page_has_the_tree_the_promise_once_and_every_table(release, tmp_path):
    page = release.report(tmp_path / "shop.html").read_text()
    assert page.count("Suppose somebody bets") == 1 and page.count("<h1>") == 1
    assert "of which at most 3 rows of orders (each with at most 2 rows of items" in page
    for name in PARENTS:
        assert f'<section id="table-{list(_shown_order()).index(name) + 1}"' in page
        assert f"Table {name}</h2>" in page
    assert "whom payee of orders names in customers" in page and "products" in page
    assert "number of orders" not in page  # hidden attributes are no columns
    assert "Rows of orders that a row of customers has" in page
    assert "dpsyn_sample(&#39;shop.orders&#39;, 1000, seed := 7)" in page
    assert page.count("How exact counts are") == len(PARENTS)


def _shown_order():
    return ("customers", "orders", "items", "returns", "visits")


def test_the_page_of_one_table_says_what_other_tables_cost(release, tmp_path):
    page = release["orders"].report(tmp_path / "orders.html").read_text()
    assert "Other tables, and what is not used" in page and "A person&#39;s rows" not in page
    with pytest.raises(InputError, match="no ending of a page"):
        release.report(tmp_path / "x.txt")
