"""A release that stops after learning: what it says, what it costs, and how it goes on."""

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import ReleaseChanged, ReleaseStopped
from dpsyn_sql.ledger.sqlite import MemoryLedger

ONE = Budget.from_epsilon(1, 1e-9)
IDS = tuple(f"id{number}" for number in range(8))


@pytest.fixture
def con():
    """1,200 rows of 8 texts that no two rows share and 12 columns of few values: 8 standard errors below the rows
    from which pairs would be asked about, so whether it stops is no chance."""
    texts = [f"md5(i || '{name}') AS {name}" for name in IDS]
    flags = [f"(i * {number} % 7 < 3) AS f{number}" for number in range(1, 13)]
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE visits AS SELECT {', '.join(texts + flags)} FROM range(1200) r(i)")
        yield con


@pytest.fixture
def ledger():
    return MemoryLedger()


def released(con, ledger, **options):
    return dpsyn_sql.release(con, "visits", epsilon=1, ledger=ledger, **options)


def stopped(con, ledger, **options):
    with pytest.raises(ReleaseStopped) as told:
        released(con, ledger, **options)
    return told.value


def spent(ledger):
    (account,) = ledger.overview().accounts
    return account.spent


def asked(ledger, name="visits_synthetic"):
    """What the questions of a stopped release cost."""
    rows = ledger._store.all("all_events")
    return sum(row["amount"] for row in rows if row["sequence"] >= 0 and row["entry_id"] == 1)


def tables(con):
    return {name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


def test_it_names_the_columns_and_writes_nothing_and_says_it_again_for_nothing(con, ledger):
    told = stopped(con, ledger)
    assert told.columns == IDS and tables(con) == {"visits"}
    text = str(told)
    assert "Of 20 columns 8 have no value that is frequent enough to be found" in text
    for name in (*map(repr, IDS), "exclude=", "type: key", "method='adaptive'", "':memory:main.visits#row'"):
        assert name in text
    (before,) = ledger.overview().releases
    assert before.state == "stopped" and before.cost.amount == ONE.amount == spent(ledger).amount
    assert 0 < asked(ledger) < ONE.amount // 2
    assert str(stopped(con, ledger)) == text and ledger.overview().releases == (before,)
    assert ledger.verify()


def test_the_rest_pays_for_the_release_without_these_columns_and_never_twice(con, ledger):
    stopped(con, ledger)
    first = asked(ledger)
    plan = dpsyn_sql.plan(con, "visits", epsilon=1, ledger=ledger, exclude=IDS)
    assert plan.cost.amount == first
    release = released(con, ledger, exclude=IDS)
    assert release.rows > 0 and not release.replayed
    assert spent(ledger).amount == ONE.amount + first
    assert release.facts["guarantee"]["epsilon"] <= 1
    assert str(stopped(con, ledger, replace=True)).endswith("it cannot go on.")
    with pytest.raises(ReleaseChanged, match="took over what it had left") as told:
        released(con, ledger, method="adaptive", replace=True)
    assert "goes on" not in str(told.value)
    assert spent(ledger).amount == ONE.amount + first and ledger.verify()


def test_within_the_limit_of_one_release_it_still_fits_at_the_epsilon_that_is_named(con, ledger):
    ledger.grant(":memory:main.visits#row", 1)
    text = str(stopped(con, ledger))
    epsilon = text.split("a release of epsilon=")[1].split(" ")[0]
    with pytest.raises(
        dpsyn_sql.errors.PrivacyBudgetExceeded, match=f"epsilon={epsilon} with delta=1e-09 still fits"
    ):
        released(con, ledger, exclude=IDS)
    release = dpsyn_sql.release(con, "visits", epsilon=epsilon, ledger=ledger, exclude=IDS)
    assert release.rows > 0 and spent(ledger) == ONE


def test_who_names_the_method_goes_on_under_the_same_debit(con, ledger):
    stopped(con, ledger)
    release = released(con, ledger, method="adaptive")
    (entry,) = ledger.overview().releases
    assert (
        release.id == entry.release_id and entry.state == "published" and spent(ledger).amount == ONE.amount
    )
    assert released(con, ledger, replace=True).id == release.id  # by either name it is the same release
    other = released(con, ledger, exclude=IDS, into="other")
    assert not other.replayed and spent(ledger).amount == 2 * ONE.amount and ledger.verify()


def test_columns_that_are_declared_do_not_stop_it(con, ledger):
    release = released(con, ledger, domain={"columns": {name: {"type": "key"} for name in IDS}})
    assert release.rows > 0 and {one.state for one in ledger.overview().releases} == {"published"}


def test_a_plan_says_that_it_stopped(con, ledger):
    stopped(con, ledger)
    text = str(dpsyn_sql.plan(con, "visits", epsilon=1, ledger=ledger))
    assert "stopped after learning that little can be kept: costs nothing more" in text
    assert "was not asked for and pays for the next release" in text


def test_the_plan_foretold_which_values_are_lost_and_that_no_pair_is_told(con, ledger):
    """For 1,000 rows and for 1,200 the same questions are asked: the plan's number is that of the release."""
    plan = str(dpsyn_sql.plan(con, "visits", epsilon=1, ledger=ledger))
    needed = str(stopped(con, ledger)).split("one needs about ")[1].split(" ")[0]
    line = next(line for line in plan.splitlines() if "of 1,000 rows: " in line)
    assert f"(of text, values of fewer than {needed} rows may be lost), 0 of 190 pairs" in line
