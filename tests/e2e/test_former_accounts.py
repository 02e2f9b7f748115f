"""Accounts of zCDP in a ledger of the version before: they open, replay, grant and release as they did, and are
priced anew from their events."""

import json
import math
import os
import shutil
import signal
import sqlite3
import tarfile
import warnings
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from former.make_zcdp import GRANTED, RELEASES, TOTALS, make_sources, released, totalled
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.accounting.account import granted_budget
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.gdp import choice_cost, gaussian_cost, pure_cost
from dpsyn_sql.cli import ledger as cli_ledger
from dpsyn_sql.cli.main import app
from dpsyn_sql.errors import AccountError, BudgetError, DpsynError, PrivacyBudgetExceeded
from dpsyn_sql.ledger.sqlite import SqliteLedger

ARCHIVE = Path(__file__).parent / "former" / "zcdp.tar.gz"
PEOPLE, VISITS = "people#row", "visits#customer"
UNITS = 10**15


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """The ledger of before, and a database whose rows were made again."""
    folder = tmp_path_factory.mktemp("former")
    with tarfile.open(ARCHIVE) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.3 and older have none
        packed.extractall(folder)
    make_sources(folder / "shop")
    return folder / "shop"


@pytest.fixture
def shop(once, tmp_path):
    """A copy that says where it is."""
    folder = shutil.copytree(once, tmp_path / "shop")
    with closing(opened(folder)) as ledger:
        ledger.moved(with_data=True)
    return folder


def opened(folder, **options):
    return SqliteLedger(folder / "shop.duckdb.dpsyn-ledger", **options)


def account(folder, name):
    with closing(opened(folder, read_only=True)) as ledger:
        ledger.verify()
        return next(one for one in ledger.overview().accounts if one.name == name)


def priced_anew(folder, name):
    with closing(opened(folder)) as ledger:
        told = ledger.repricing(name)
        assert ledger.reprice(name, told) == told
    return told


def quiet(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments, **options)


def same_answers(folder, name, release):
    with np.load(folder / f"{name}.npz") as stored:
        assert len(stored.files) == len(release.measurements)
        for key, table in zip(sorted(stored.files), release.measurements, strict=True):
            np.testing.assert_array_equal(stored[key], table.values)


def test_looking_at_it_changes_no_byte(once):
    file = once / "shop.duckdb.dpsyn-ledger"
    before = file.read_bytes()
    with closing(SqliteLedger(file, read_only=True)) as ledger:
        ledger.verify()
        shown = ledger.overview()
    kinds = {one.name: one.kind for one in shown.accounts}
    assert kinds == {one: "pure" if one.startswith("main.alone") else "zcdp" for one in kinds}
    assert all(one.former is None for one in shown.accounts)
    assert file.read_bytes() == before
    with closing(sqlite3.connect(file)) as con:
        assert con.execute("PRAGMA user_version").fetchone() == (2,)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RELEASES if name != "begun"])
@pytest.mark.parametrize("anew", [False, True])
def test_a_stored_release_replays_at_no_cost_before_and_after_pricing_anew(shop, name, anew):
    if anew and name in ("alone", "large"):
        pytest.skip("its account cannot be priced anew")
    table, options = RELEASES[name]
    unit = options.get("privacy_unit", "row")
    of = f"{table}#{unit}" if f"{table}#{unit}" in GRANTED else f"main.{table}#{unit}"
    if anew:
        priced_anew(shop, of)
    before = account(shop, of)
    release = quiet(released, shop, name, rows=50)  # of nothing but noise it would be a million
    assert release.replayed and release.id == (shop / f"{name}.id").read_text()
    same_answers(shop, name, release)
    assert account(shop, of) == before
    facts = release.facts
    kind = "pure" if options.get("delta") == 0 else "zcdp"
    assert facts["budget"]["kind"] == kind and facts["guarantee"]["bounds"]["gdp"] is None
    assert not any("lattice" in one for one in facts["mechanisms"])


@pytest.mark.slow
def test_a_new_release_and_one_that_was_begun_go_on_by_zcdp(shop):
    before = account(shop, PEOPLE)
    made = quiet(released, shop, "declared", version="2")
    after = account(shop, PEOPLE)
    assert made.facts["budget"]["kind"] == "zcdp" and "zCDP" in made.facts["guarantee"]["accounting"]
    assert after.kind == "zcdp"
    cost = Budget.of_release(1, 1e-9, "zcdp").without_thresholds()
    assert after.spent.amount == before.spent.amount + cost.amount
    assert not any("lattice" in one for one in made.facts["mechanisms"])
    begun = quiet(released, shop, "begun")
    assert begun.replayed and begun.facts["budget"]["kind"] == "zcdp"
    plan = quiet(dpsyn_sql.plan, shop / "shop.duckdb", "people", exclude=["customer"], name="n", into="n")
    assert plan.plan.budget.kind == "zcdp" and "zCDP (rho = " in str(plan) and "(zCDP)" in plan.account


def test_a_grant_stays_within_its_kind(shop):
    with closing(opened(shop)) as ledger:
        granted = ledger.grant(PEOPLE, 20, "1e-8")
        assert granted.limit == granted_budget("20", "1e-8", "zcdp")
        with pytest.raises(AccountError, match="approximate"):
            ledger.grant(PEOPLE, 20, 0)
        with pytest.raises(BudgetError, match="below what is spent"):
            ledger.grant(PEOPLE, "0.1", "1e-8")
        made = ledger.grant("new", 1)
        assert made.kind == "gdp" and made.limit == granted_budget("1", "1e-9", "gdp")
        ledger.verify()


def by_hand(shop, name):
    """The price of each release of an account by the formulas, from the rows alone."""
    with closing(sqlite3.connect(shop / "shop.duckdb.dpsyn-ledger")) as con:
        entries = con.execute(
            "SELECT entry_id, e.kind, amount FROM entry e JOIN account a USING (account_id) WHERE a.name = ?",
            [name],
        ).fetchall()
        total = 0
        for number, kind, amount in entries:
            if kind == "pure":
                total += math.ceil(pure_cost(Fraction(amount, UNITS)) * UNITS)
                continue
            for (text,) in con.execute("SELECT event FROM event WHERE entry_id = ?", [number]):
                event = json.loads(text)
                assert "lattice" not in event
                if event["event"] == "selection":
                    eta = Fraction(2 * event["sensitivity"]) / Fraction(event["scale"])
                    cost = event["number"] * choice_cost(eta)
                else:
                    l2_squared = event.get("l2_squared", event.get("keys_per_unit"))
                    cost = Fraction(l2_squared) / (2 * (Fraction(event["sigma"]) ** 2 - 4))
                    assert cost == gaussian_cost(l2_squared, event["sigma"], 1)
                total += math.ceil(cost * UNITS)
    return total


@pytest.mark.parametrize("name", [PEOPLE, VISITS, "main.tiny#row", "main.whole#customer"])
def test_the_new_sum_is_that_of_the_events_and_the_limit_that_of_the_grant(shop, name):
    before = account(shop, name)
    told = priced_anew(shop, name)
    after = account(shop, name)
    assert told.before == before and told.before.kind == "zcdp" and after.kind == told.after.kind == "gdp"
    assert after.spent == told.after.spent == Budget("gdp", by_hand(shop, name), before.spent.delta)
    granted = GRANTED.get(name)
    assert after.limit == (None if granted is None else granted_budget(*granted, "gdp"))
    assert after.former.spent == before.spent and after.former.limit == before.limit
    assert (after.former.epsilon, after.former.delta) == (before.epsilon, before.delta)
    if name != PEOPLE:  # it has choices and a pure release, which cost more
        assert after.epsilon < before.epsilon


@pytest.mark.slow
def test_releases_after_it_are_priced_by_mu(shop):
    priced_anew(shop, PEOPLE)
    before = account(shop, PEOPLE)
    made = quiet(released, shop, "declared", version="2")
    cost = Budget.of_release(1, 1e-9).without_thresholds()
    assert made.facts["budget"]["kind"] == "gdp"
    assert made.facts["guarantee"]["bounds"]["gdp"] == 1.0 >= made.epsilon > 0.99
    assert account(shop, PEOPLE).spent.amount == before.spent.amount + cost.amount
    pure = quiet(released, shop, "pure", version="2")
    assert pure.facts["budget"]["kind"] == "pure" and pure.epsilon == 0.5
    added = math.ceil(pure_cost(Fraction(1, 2)) * UNITS)
    assert account(shop, PEOPLE).spent.amount == before.spent.amount + cost.amount + added
    with pytest.raises(PrivacyBudgetExceeded):
        quiet(released, shop, "declared", version="3", epsilon=15, replace=True)
    with closing(opened(shop)) as ledger:
        limit = ledger.grant(PEOPLE, 20, "1e-8").limit
        assert limit == granted_budget("20", "1e-8", "gdp")
        ledger.verify()


@pytest.mark.parametrize(
    "name, said",
    [
        ("main.begun#row", "'begun'.*was begun and is not measured.*Finish it first"),
        ("main.large#row", "no price for noise up to 2"),
        ("main.partial#customer", "has measured 2 of its 3 periods.*after its last period"),
        ("main.alone#row", "counts by pure differential privacy"),
        ("nobody", "no account 'nobody'"),
    ],
)
def test_what_cannot_be_priced_is_refused_and_nothing_changes(shop, name, said):
    with closing(opened(shop)) as ledger:
        head = ledger.verify()
        for call in (ledger.repricing, ledger.reprice):
            with pytest.raises(AccountError, match=f"(?s){said}.*Nothing was changed") as error:
                call(name)
            assert error.value.__context__ is None
        assert ledger.verify() == head


def test_it_is_priced_anew_once(shop):
    priced_anew(shop, VISITS)
    with closing(opened(shop)) as ledger:
        with pytest.raises(AccountError, match="counts by exact Gaussian accounting"):
            ledger.reprice(VISITS)
        with pytest.raises(sqlite3.IntegrityError, match="never falls"):
            ledger._store._connection.execute("UPDATE account SET kind = 'zcdp' WHERE kind = 'gdp'")
        for change in ("UPDATE price SET amount = 0", "DELETE FROM price"):
            with pytest.raises(sqlite3.IntegrityError, match="price"):
                ledger._store._connection.execute(change)


def test_a_shown_release_has_its_debit_and_its_price(shop):
    lines = {
        False: "units: published, rho 0.0558175 of",
        True: "units: published, rho 0.0558175, priced anew as ",
    }
    for anew, line in lines.items():
        if anew:
            spent = priced_anew(shop, VISITS).after.spent
            line += f"mu^2/2 {float(spent.fraction):.6g} of {VISITS}"
        shown = CliRunner().invoke(app, ["ledger", "show", str(shop / "shop.duckdb.dpsyn-ledger")])
        assert shown.exit_code == 0 and line in shown.output


def test_a_balance_that_was_told_must_still_hold(shop):
    with closing(opened(shop)) as ledger, closing(opened(shop)) as other:
        told = ledger.repricing(VISITS)
        other.grant(VISITS, 4, "1e-9")
        with pytest.raises(AccountError, match=r"meanwhile.*Run the same command again"):
            ledger.reprice(VISITS, told)
        ledger.verify()
    assert account(shop, VISITS).kind == "zcdp"


@pytest.mark.slow
@pytest.mark.parametrize("anew", [False, True])
def test_running_totals_go_on_by_zcdp(shop, anew):
    if anew:
        priced_anew(shop, "main.whole#customer")
    before = account(shop, "main.whole#customer")
    replayed = quiet(totalled, shop, "whole", 3)
    assert replayed.replayed and replayed.facts["budget"]["kind"] == "zcdp"
    same_answers(shop, "whole", replayed)
    assert account(shop, "main.whole#customer") == before
    if anew:
        return
    last = quiet(totalled, shop, "partial", 3)
    assert not last.replayed and last.facts["budget"]["kind"] == "zcdp"
    nodes = last.facts["public_facts"]["running_total"]["nodes"]
    assert len(nodes) == len(TOTALS) or len(nodes) >= 1
    told = priced_anew(shop, "main.partial#customer")  # it is complete
    assert told.releases == 3


def by_command(shop, *options, **given):
    """``dpsyn ledger reprice``."""
    file = str(shop / "shop.duckdb.dpsyn-ledger")
    return CliRunner().invoke(app, ["ledger", "reprice", file, VISITS, *options], **given)


def at_a_terminal(monkeypatch):
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(cli_ledger, "sys", SimpleNamespace(stdin=terminal, stdout=terminal))


def tells(output, before):
    """The balance before, then after."""
    first, second = (line for line in output.splitlines() if line.startswith(("Before ", "After ")))
    return f"epsilon={before.epsilon:.4g}" in first and "exact Gaussian accounting" in second


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_command_tells_the_balance_and_refuses_without_a_terminal(shop, options):
    before = account(shop, VISITS)
    done = by_command(shop, *options)
    assert done.exit_code == 2 and "Add --yes" in done.output and "nothing was changed" in done.output
    assert options or tells(done.stdout, before)
    assert account(shop, VISITS) == before


def test_the_command_asks_at_a_terminal_after_it_told_the_balance(shop, monkeypatch):
    at_a_terminal(monkeypatch)
    before = account(shop, VISITS)
    refused = by_command(shop, input="n\n")
    assert refused.exit_code == 2 and "nothing was changed" in refused.output
    assert tells(refused.output.split("It cannot be priced back")[0], before)
    assert account(shop, VISITS) == before
    agreed = by_command(shop, input="y\n")
    assert agreed.exit_code == 0 and "counts by exact Gaussian accounting from here on" in agreed.output
    assert account(shop, VISITS).kind == "gdp"


def test_the_command_asks_nothing_with_yes(shop):
    before = account(shop, VISITS)
    done = by_command(shop, "--yes", "--json")
    after = account(shop, VISITS)
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and after.kind == "gdp" and after.former.spent == before.spent
    assert found["before"]["kind"] == "zcdp" and found["after"]["kind"] == "gdp" and found["releases"] == 1
    again = by_command(shop, "--yes")
    assert again.exit_code != 0 and "never priced by another rule" in again.output


def test_the_help_says_what_holds_if_answers_decide():
    said = " ".join(CliRunner().invoke(app, ["ledger", "reprice", "--help"]).output.split())
    assert "noisy answers" in said and "2 delta" in said


def killed_at(shop, step):
    """Price an account anew in a process that dies before a statement; False if it got to its end."""
    child = os.fork()
    if child == 0:
        try:
            with closing(opened(shop)) as ledger:
                seen = [0]

                def before(statement):
                    seen[0] += 1
                    if seen[0] == step:
                        os.kill(os.getpid(), signal.SIGKILL)

                ledger._store._connection.set_trace_callback(before)
                ledger.reprice(PEOPLE)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return status != 0


@pytest.mark.slow
def test_killed_at_every_step_it_is_done_or_not(shop):
    before, seen = account(shop, PEOPLE), set()
    step = 1
    while killed_at(shop, step):
        found = account(shop, PEOPLE)  # verified
        seen.add(found.kind)
        if found.kind == "gdp":
            break
        assert found == before
        step += 1
    found = account(shop, PEOPLE)
    assert found.kind == "gdp" and found.spent.amount == by_hand(shop, PEOPLE)
    assert step > 20 and "zcdp" in seen


@pytest.mark.slow
def test_two_processes_price_it_once(shop):
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with closing(opened(shop)) as ledger:
                    ledger.reprice(PEOPLE)
                code = 0
            except DpsynError:
                code = 7
            finally:
                os._exit(code)
        children.append(child)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0, 7, 7, 7]
    assert account(shop, PEOPLE).spent.amount == by_hand(shop, PEOPLE)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE price SET amount = amount - 1",
        "DELETE FROM price WHERE entry_id = (SELECT max(entry_id) FROM price)",
        "INSERT INTO price SELECT max(entry_id) + 1, 5 FROM price",
        "UPDATE account SET spent_amount = spent_amount - 1 WHERE kind = 'gdp'",
        "UPDATE account SET kind = 'zcdp' WHERE kind = 'gdp'",
    ],
)
def test_verify_finds_a_changed_price(shop, change):
    priced_anew(shop, VISITS)
    file = shop / "shop.duckdb.dpsyn-ledger"
    with closing(sqlite3.connect(file)) as con, con:
        triggers = con.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            con.execute(f"DROP TRIGGER {name}")
        assert con.execute(change).rowcount == 1
        for _, text in triggers:
            con.execute(text)
    with closing(opened(shop)) as ledger, pytest.raises(DpsynError, match="broken|no record made|damaged"):
        ledger.verify()


def test_events_of_the_ledger_have_every_kind_of_question(once):
    """The tests above price choices, thresholds and tables: all of them are there."""
    with closing(sqlite3.connect(once / "shop.duckdb.dpsyn-ledger")) as con:
        found = {json.loads(text)["event"] for (text,) in con.execute("SELECT event FROM event")}
    assert {"gaussian", "selection", "threshold", "laplace"} <= found
