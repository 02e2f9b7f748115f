"""A method of one file: what the registry, its settings and its dataclass are enough for."""

import json
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import duckdb
import pytest
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent
from dpsyn_sql.auditing import audit
from dpsyn_sql.auditing.testing import RecordingLedger, toy_domain
from dpsyn_sql.cli.main import app
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.views import Measurements, fit_margins
from dpsyn_sql.methods import METHODS, Recipe, described, method_help, method_of, with_settings
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.planning.asking import Reserve, tables_of
from dpsyn_sql.planning.limits import NO_TERMS
from dpsyn_sql.planning.queries import MarginalQuery, Marginals
from dpsyn_sql.report.certificate import _mechanisms
from dpsyn_sql.source.relation import Relation, Source

SPEC = {"columns": {"a": {"type": "categorical", "categories": ["x", "y"], "other": False}}}


@dataclass(frozen=True, slots=True)
class Toy(Recipe):
    """One-way marginals, each of them so many times."""

    name = "toy"
    model = ProductModel
    static = True
    degree: int = 1
    share: float = 0.5
    twice: bool = False
    label: str = "plain"
    colour: str = "red"

    choices: ClassVar = {"colour": ("red", "green")}

    def run(self, door, domain, budget, terms=NO_TERMS):
        one_way = Marginals(tuple(MarginalQuery((name,)) for name in domain.names))
        parts = budget.split([1] * self.degree)
        handles = [door.ask(one_way, part, f"again {number}") for number, part in enumerate(parts)]
        return ProductModel(domain, fit_margins(domain, Measurements(tables_of(handles))))


@pytest.fixture(autouse=True)
def there(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", Toy())


@pytest.fixture
def con():
    with duckdb.connect() as found:
        found.execute(
            "CREATE TABLE t AS SELECT CASE WHEN i % 3 = 0 THEN 'x' ELSE 'y' END AS a FROM range(500) r(i)"
        )
        yield found


def run(*arguments):
    return CliRunner().invoke(app, arguments, terminal_width=200)


# -- settings ----------------------------------------------------------------------------------------


def test_a_method_is_a_name_a_value_or_a_mapping():
    assert method_of("toy") == method_of({"name": "toy"}) == method_of(Toy()) == Toy()
    given = {"degree": 2, "share": 1, "twice": True, "label": "7"}
    assert method_of({"name": "toy", **given}) == Toy(2, 1.0, True, "7")
    assert with_settings("toy", {k: str(v).lower() for k, v in given.items()}) == Toy(2, 1.0, True, "7")
    assert type(method_of({"name": "toy", "share": 1}).share) is float


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "tow",
            "method='tow' is not known; use one of auto, adaptive, copula, dpcopula, dpsyn, "
            "hierarchical, independent, mixture, privbayes, toy, traces",
        ),
        (None, "method=None is not known"),
        (Toy, "is not known"),
        ({"degree": 2}, "method=None is not known"),
        (
            {"name": "toy", "rounds": 2},
            r"has no setting 'rounds'; it has settings: degree \(a whole number; default 1\), share",
        ),
        ({"name": "independent", "degree": 2}, "'independent' has no setting 'degree'; it has no settings"),
        (
            {"name": "copula", "degree": 2},
            r"it has settings: correlation \(fitted, none, identity or ones; default fitted\)",
        ),
        ({"name": "auto", "degree": 2}, "method='auto' has no setting 'degree'"),
        ({"name": "toy", "degree": "2"}, "setting degree, which is a whole number, not '2'"),
        ({"name": "toy", "degree": True}, "setting degree, which is a whole number, not True"),
        ({"name": "toy", "degree": 2.0}, "which is a whole number, not 2.0"),
        ({"name": "toy", "share": math.nan}, "setting share, which is a finite number, not nan"),
        ({"name": "toy", "colour": "blue"}, "colour='blue'; it can be 'red' or 'green'"),
        (Toy(colour="blue"), "method='toy' has the setting colour='blue'"),
        ({"name": "toy", "twice": 1}, "setting twice, which is true or false, not 1"),
        ({"name": "toy", "label": None}, "setting label, which is text, not None"),
        (Toy(degree="2"), "setting degree, which is a whole number, not '2'"),
    ],
)
def test_what_is_no_method_or_no_setting_of_it_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        method_of(given)


@pytest.mark.parametrize("texts", [{"degree": "2.5"}, {"share": "inf"}, {"twice": "yes"}, {"other": "1"}])
def test_text_that_is_no_value_of_a_setting_is_refused(texts):
    with pytest.raises(InputError, match="method='toy' has"):
        with_settings("toy", texts)


# -- where a method of one file shows up -------------------------------------------------------------


def test_help_texts_name_it():
    assert (
        method_help()
        == "auto, adaptive, dpsyn, privbayes, copula, dpcopula, mixture, independent, toy, hierarchical or traces"
    )
    assert described()[-3] == (
        "toy: One-way marginals, each of them so many times; settings: degree (a whole number; default 1), "
        "share (a finite number; default 0.5), twice (true or false; default false), label (text; default "
        "plain), colour (red or green; default red)"
    )
    for command in ("release", "plan", "audit"):
        shown = " ".join(run(command, "--help").output.split())
        assert (
            "auto, adaptive, dpsyn, privbayes, copula, dpcopula, mixture, independent, toy, hierarchical or traces."
            in shown
            and "toy: One-way marginals" in shown
        )


def test_the_command_takes_its_settings(tmp_path, con, monkeypatch):
    monkeypatch.chdir(tmp_path)
    con.execute("COPY t TO 't.parquet'")
    (tmp_path / "d.yml").write_text(json.dumps(SPEC))
    asked = ("t.parquet", "--domain", "d.yml", "--method", "toy")
    assert "Method      toy\n" in run("plan", *asked).output
    shown = run("plan", *asked, "-v", "--set", "degree=2", "--set", "label=new")
    assert (
        "Method      toy (degree=2, label='new')\n" in shown.output
        and "again 1: 1 marginal, " in shown.output
    )
    assert run("release", *asked, "--set", "degree=2").exit_code == 0
    for wrong, message in (
        ("degree", "--set 'degree': write degree=2"),
        ("x=1", "--method 'toy' has no setting 'x'"),
    ):
        refused = run("plan", *asked, "--set", wrong)
        assert refused.exit_code == 2 and message in refused.output


def test_audit_attacks_it():
    once, twice = (audit(method=method, epsilon=4, runs=50) for method in ("toy", Toy(degree=2)))
    assert (once.method, once.marginals, twice.marginals) == ("toy", 3, 6)
    assert not once.adaptive and not twice.adaptive


def released(con, ledger, **options):
    return dpsyn_sql.release(con, "t", domain=SPEC, ledger=ledger, **options)


def test_other_settings_are_another_release_and_the_certificate_has_them(con):
    ledger = RecordingLedger()
    plain = released(con, ledger, method="toy", into="one")
    other = released(con, ledger, method=Toy(degree=2), into="two")
    mapped = released(con, ledger, method={"name": "toy", "degree": 3}, into="three")
    facts = [made.certificate() for made in (plain, other, mapped)]
    assert {fact["method"] for fact in facts} == {"toy"}
    assert [fact.get("settings") for fact in facts] == [None, {"degree": 2}, {"degree": 3}]
    assert [len(fact["mechanisms"]) for fact in facts] == [1, 2, 3]
    assert facts[1]["public_facts"]["workload"] == []
    configurations = [key.configuration for key in ledger.keys]
    assert [found.get("settings") for found in configurations] == [None, {"degree": 2}, {"degree": 3}]
    assert {found["method"] for found in configurations} == {"toy"}


def test_settings_changed_under_one_name_are_refused(con, tmp_path):
    released(con, tmp_path / "l.ledger", method="toy", name="r", into="one")
    with pytest.raises(dpsyn_sql.errors.ReleaseChanged, match="settings"):
        released(con, tmp_path / "l.ledger", method=Toy(degree=2), name="r", into="one", replace=True)


# -- steps and their events ------------------------------------------------------------------------------


def test_each_event_belongs_to_its_question_or_to_what_was_reserved():
    source, budget = Source(Relation("t", "table", "t", ())), Budget("gdp", 10**13)
    plan = METHODS["toy"].plan(source, toy_domain(), budget)
    (known,) = plan.steps
    reserved = Reserve("rounds", budget, plan.queries[:1])
    events = [GaussianEvent(float(number), 1) for number in range(1, 6)]

    def names(*steps):
        mixed = replace(plan, steps=steps)
        assert mixed.static is (reserved not in steps)
        return [found["step"] for found in _mechanisms(mixed, events)]

    assert names(known, reserved) == ["again 0"] + ["rounds"] * 4
    assert names(known, reserved, known) == ["again 0"] * 2 + ["rounds"] * 3
    assert names(reserved, reserved) == ["rounds; rounds"] * 5
