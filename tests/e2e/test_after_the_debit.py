"""Every error after a debit says what was charged and that the same call goes on, and it does; no error passes on
what may quote a row."""

import json
import re
import warnings
from contextlib import closing
from datetime import datetime

import duckdb
import pytest
from support.released_shop import SHOP
from support.released_shop import released as shop_released
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.cli.main import app
from dpsyn_sql.errors import (
    EngineFailure,
    InternalError,
    LedgerError,
    PlanTooLarge,
    PrivacyBudgetExceeded,
    PublishError,
    ReleaseUnfinished,
)
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.schedule import run
from dpsyn_sql.source.slices import Window

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

SECRET = "k9secret"
STAYS = "The release 'o' stays charged (epsilon=1 at delta=1e-09); the same call goes on from here at no further cost."
UPGRADE = "after an upgrade of dpsyn_sql that mends the fault"
MEASURE = "dpsyn_sql.front.release.measured"
FITTED = "dpsyn_sql.front.publish.lost_of"
WRITE = "dpsyn_sql.front.publish._Drawing._staged"


def failing(error):
    def fails(*_, **__):
        raise error

    return fails


@pytest.fixture
def con(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS b FROM range(300) AS r(i)")
        con.execute("COPY t TO 't.parquet'")
        yield con


def released(con, **options):
    call = {"into": "o", "name": "o", "method": "independent", "ledger": "l.ledger", **options}
    return dpsyn_sql.release(con, "t", **call)


def costs():
    with closing(SqliteLedger("l.ledger")) as ledger:
        return [account.epsilon for account in ledger.overview().accounts]


@pytest.mark.parametrize("place", [MEASURE, FITTED, WRITE])
@pytest.mark.parametrize(
    ("error", "kind", "ours"),
    [
        (lambda: ValueError(SECRET), InternalError, True),
        (lambda: ZeroDivisionError(SECRET), InternalError, True),
        (lambda: duckdb.ConversionException(SECRET), InternalError, True),
        (lambda: InternalError("two parts differ"), InternalError, True),
        (lambda: MemoryError(SECRET), ReleaseUnfinished, False),
        (lambda: OSError(28, SECRET), ReleaseUnfinished, False),
        (lambda: PlanTooLarge("too many cells"), ReleaseUnfinished, False),
        (lambda: PrivacyBudgetExceeded("the door"), ReleaseUnfinished, False),
        (lambda: EngineFailure("counting", "Error", "SELECT"), EngineFailure, False),
        (lambda: LedgerError("full"), LedgerError, False),
    ],
    ids=lambda value: type(value()).__name__ if callable(value) and not isinstance(value, type) else "",
)
def test_an_error_says_what_stays_and_the_same_call_goes_on(con, monkeypatch, place, error, kind, ours):
    with monkeypatch.context() as broken, pytest.raises(kind) as caught:
        broken.setattr(place, failing(error()))
        released(con)
    told, found = str(caught.value), caught.value
    assert type(found) is kind and told.count(STAYS) == 1
    assert (UPGRADE in told) == ours and SECRET not in told
    assert found.__context__ is None and found.__cause__ is None
    spent = costs()
    again = released(con)
    assert again.replayed and costs() == spent == [pytest.approx(1)]


def test_the_line_of_our_code_is_named(con, monkeypatch):
    with monkeypatch.context() as broken, pytest.raises(InternalError) as caught:
        broken.setattr("dpsyn_sql.front.publish.rows_wanted", failing(ValueError(SECRET)))
        released(con)
    assert re.search(r" in front/publish\.py, line \d+\. This is a fault of dpsyn_sql", str(caught.value))


def test_a_replay_that_fails_has_charged_nothing(con, monkeypatch):
    released(con)
    with monkeypatch.context() as broken, pytest.raises(ReleaseUnfinished) as caught:
        broken.setattr(WRITE, failing(MemoryError()))
        released(con)
    assert "Nothing was charged this time: the release 'o' stays charged; the same call goes on" in str(
        caught.value
    )


def test_a_message_that_says_it_already_is_not_told_twice(con, monkeypatch):
    said = "It is taken. The debit stands: the same call, with another into=, costs nothing more."
    with monkeypatch.context() as broken, pytest.raises(PublishError) as caught:
        broken.setattr(WRITE, failing(PublishError(said)))
        released(con)
    assert str(caught.value).count("costs nothing more") == 1 and "goes on from here" not in str(caught.value)


def test_before_a_debit_errors_are_as_they_were(con, monkeypatch):
    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError, match="^none$"):
        broken.setattr("dpsyn_sql.front.release.opened_ledger", failing(ZeroDivisionError("none")))
        released(con)


def test_a_warning_that_is_an_error_keeps_its_class(con):
    with warnings.catch_warnings(), pytest.raises(UserWarning) as caught:
        warnings.simplefilter("error")
        released(con, epsilon=0.0001, method="adaptive")
    (note,) = caught.value.__notes__
    assert "'o' stays charged (epsilon=0.0001" in note


def test_all_tables_of_a_database_are_told_once(tmp_path, monkeypatch):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as con:
        con.execute(SHOP)
    call = {"into": str(tmp_path / "copy.duckdb"), "ledger": tmp_path / "l.ledger"}
    with monkeypatch.context() as broken, pytest.raises(InternalError) as caught:
        broken.setattr("dpsyn_sql.front.release.write_release", failing(IndexError(SECRET)))
        shop_released(str(tmp_path / "shop.duckdb"), **call)
    told = str(caught.value)
    assert "stays charged (epsilon=" in told and UPGRADE in told and SECRET not in told
    assert shop_released(str(tmp_path / "shop.duckdb"), **call).replayed


def test_periods_that_were_charged_before_a_refusal_are_named(con, monkeypatch):
    con.execute(
        "CREATE TABLE s AS SELECT i % 9 AS p, DATE '2100-01-01' + (i % 3)::INTEGER AS day, i % 2 AS n FROM range(90) AS r(i)"
    )
    edges = tuple(f"2100-01-0{day}" for day in (1, 2, 3, 4))

    def total(period):
        return dpsyn_sql.release(
            con, "s", name="x", into=f"x{period}", series="total", ledger="l.ledger", unit="row",
            window=Window("day", "days", edges, period - 1, labels=("1", "2", "3")), exclude=("p",), method="independent",
            domain={"columns": {"n": {"type": "numeric", "lower": 0, "upper": 1}, "day": {"type": "temporal", "lower": "2100-01-01", "upper": "2100-01-04", "bins": 3}}},
        )  # fmt: skip

    opened = SqliteLedger.open_release

    def limited(self, key, *arguments, **options):
        if key.version == "2":
            raise PrivacyBudgetExceeded("The release costs too much. Nothing was read.")
        return opened(self, key, *arguments, **options)

    with monkeypatch.context() as small, pytest.raises(PrivacyBudgetExceeded) as caught:
        small.setattr(SqliteLedger, "open_release", limited)
        total(2)
    assert re.fullmatch(
        r"The release costs too much. Nothing was read. The release 'x 1' stays charged \(epsilon=0\.\d+ at "
        r"delta=1e-09\); the same call goes on from here at no further cost.",
        str(caught.value),
    )
    assert total(2).rows >= 0


@pytest.mark.parametrize(
    "place", [MEASURE, "dpsyn_sql.front.release.opened_ledger", "dpsyn_sql.cli.main._report"]
)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_shows_no_traceback(con, monkeypatch, place, as_json):
    call = ["release", "t.parquet", "--into", "o.parquet", "--epsilon", "1", "--method", "independent"]
    with monkeypatch.context() as broken:
        broken.setattr(place, failing(ValueError(SECRET)))
        result = CliRunner().invoke(app, [*call, *(["--json"] if as_json else [])])
    shown = result.output + result.stderr
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert "Traceback" not in shown and SECRET not in shown
    if as_json:
        shown = json.loads(result.stdout)["error"]["message"]
    assert "Something unexpected happened (ValueError)" in " ".join(shown.split())
    assert "no further cost" in " ".join(shown.split())
    again = CliRunner().invoke(app, call)
    assert again.exit_code == 0


def test_sql_and_a_schedule_tell_it_too(con, monkeypatch, tmp_path):
    dpsyn_sql.attach(con)
    con.execute("COPY (SELECT b, TIMESTAMP '2100-01-01' + INTERVAL 1 HOUR AS at FROM t) TO 's.parquet'")
    (tmp_path / "dpsyn.yml").write_text(
        "ledger: l.ledger\naccounts: {people: {limit: {epsilon: 20}}}\n"
        "sources: {s: {path: s.parquet, window: at, domain: d.yml}}\nreleases:\n"
        "  o: {source: s, output: 'o-{period}.csv', cadence: month, start: 2100-01-01, method: independent}\n"
    )
    domain = "columns: {at: {type: temporal, lower: 2100-01-01, upper: 2103-01-01, bins: 2}}"
    (tmp_path / "d.yml").write_text(domain)
    due = datetime(2100, 2, 2)
    with monkeypatch.context() as broken:
        broken.setattr(MEASURE, failing(ValueError(SECRET)))
        with pytest.raises(duckdb.Error) as caught:
            con.sql("FROM dpsyn_release('t', 'copy', method := 'independent', epsilon := 1)").fetchall()
        (outcome,) = run("dpsyn.yml", now=due).outcomes
    for told in (str(caught.value), outcome.message):
        assert "stays charged (epsilon=" in told and UPGRADE in told and SECRET not in told
    assert run("dpsyn.yml", now=due).outcomes[0].result == "published"
