"""A table or file has one name in the ledger: whatever its letter case, alias, and after a move of the ledger."""

import shutil
import warnings

import duckdb
import pytest
from support import ledgers
from typer.testing import CliRunner

import dpsyn_sql
from dpsyn_sql.cli.main import app
from dpsyn_sql.engines.identities import StoredTable, refuse_one_table_twice
from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = [pytest.mark.slow, pytest.mark.required]

SPEC = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}
CSV = {"columns": {"n": {"type": "numeric", "sql_type": "INTEGER", "lower": 0, "upper": 9}}}


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    with duckdb.connect(str(folder / "w.duckdb")) as con:
        con.execute("CREATE TABLE Sales AS SELECT (i % 10)::INTEGER AS n FROM range(200) AS r(i)")
        con.execute("CREATE TABLE other AS FROM Sales")
        con.execute("CREATE TABLE codes AS SELECT i::INTEGER AS k FROM range(3) AS r(i)")
    return folder / "w.duckdb"


def release(path, source="sales", call=dpsyn_sql.release, **options):
    settings = {"domain": SPEC, "method": "independent", **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(path, source, **settings)


def plan(path, source="sales", **options):
    return release(path, source, dpsyn_sql.plan, **options).verbose()


def overview(path):
    return ledgers.overview(f"{path}.dpsyn-ledger")


def grant(path, account, epsilon="1", delta=None):
    return ledgers.granted(f"{path}.dpsyn-ledger", account, epsilon, delta)


def ledger_command(*arguments):
    return CliRunner().invoke(app, ["ledger", *map(str, arguments)])


def renamed_with_its_ledger(path, name):
    """The database under another name, as its ledger knows."""
    new = path.with_name(name)
    path.rename(new)
    path.with_name(f"{path.name}.dpsyn-ledger").rename(f"{new}.dpsyn-ledger")
    return new


@pytest.mark.parametrize("account", ["main.sales#row", "main.SALES#row", "Sales#row"])
def test_a_grant_holds_however_the_table_is_spelled(path, account):
    grant(path, account)
    release(path, "SALES")
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded):
        release(path, "main.Sales", version="2", into="o", epsilon="0.1")


def test_a_table_created_anew_in_another_case_keeps_its_account(path):
    release(path)
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE OR REPLACE TABLE SALES AS FROM Sales")
    release(path, version="2", into="o")
    (account,) = overview(path).accounts
    assert account.name == "main.sales#row" and account.sources == ("main.sales",)


def test_an_attached_database_has_one_name_under_any_alias(path):
    first = release(path)
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS alias")
        again = release(con, "alias.sales", into="alias.SALES_synthetic")
    assert again.replayed and again.id == first.id


def test_a_ledger_that_was_moved_is_refused_until_somebody_says_how(path):
    first, place = release(path), path.with_name("w.duckdb.dpsyn-ledger")
    elsewhere = path.parent / "else" / "ledger"
    elsewhere.parent.mkdir()
    place.rename(elsewhere)
    for call in (release, plan):
        with pytest.raises(dpsyn_sql.errors.LedgerError, match=r"dpsyn ledger moved .* --alone"):
            call(path, ledger=elsewhere)
    told = ledger_command("moved", elsewhere, "--alone")
    assert told.exit_code == 0, told.output
    again = release(path, ledger=elsewhere)
    assert again.replayed and again.id == first.id
    release(path, ledger=elsewhere, version="2", into="o")
    assert [one.sources for one in ledgers.overview(elsewhere).accounts] == [("main.sales",)]
    twice = ledger_command("moved", elsewhere, "--alone")
    assert twice.exit_code == 2 and "was not moved" in twice.output


def test_a_database_renamed_with_its_ledger_keeps_its_account_and_its_replays(path):
    first = release(path)
    new = renamed_with_its_ledger(path, "warehouse.duckdb")
    with pytest.raises(dpsyn_sql.errors.LedgerError, match="--with-data"):
        release(new, version="2", into="o")
    ledgers.moved_with_data(f"{new}.dpsyn-ledger")
    again = release(new)
    assert again.replayed and again.id == first.id
    release(new, version="2", into="o")
    assert [account.name for account in overview(new).accounts] == ["main.sales#row"]


def test_a_folder_of_files_moves_with_its_ledger(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "p.csv").write_text("n\n" + "3\n" * 200)
    first = release(None, str(old / "p.csv"), domain=CSV)
    shutil.move(old, new)
    ledgers.moved_with_data(new / ".dpsyn-ledger")
    again = release(None, str(new / "p.csv"), domain=CSV)
    assert again.replayed and again.id == first.id


def test_a_limit_that_holds_for_nothing_is_said(path):
    granted = ledger_command("grant", f"{path}.dpsyn-ledger", "main.sale#row", "-e", "1", "--new")
    assert granted.exit_code == 0 and "No source is charged to this account yet" in granted.output
    assert "main.sale#row" in plan(path)
    with pytest.warns(UserWarning, match=r"limit for 'main.sale#row'.*'main.sales#row', which has no limit"):
        dpsyn_sql.release(path, "sales", domain=SPEC, method="independent")


@pytest.mark.parametrize("file", ["w.duckdb", "whole path"])
def test_a_table_of_the_ledgers_own_database_is_granted_without_its_file(path, file):
    """Under the file's name no release would ever be charged to it."""
    name = path if file == "whole path" else file
    for table, meant in (("main.sales", "main.sales#row"), ("sales#person", "sales#person")):
        with pytest.raises(dpsyn_sql.errors.InputError, match=f"did you mean '{meant}'"):
            grant(path, f"{name}:{table}")
    assert overview(path).accounts == ()
    grant(path, "other.duckdb:main.t#row")  # a table of another database is named so


# -- what a hostile reader tried ----------------------------------------------------------------


def test_a_grant_is_not_passed_by_reading_its_table_beside_a_charged_one(path):
    release(path, "other", into="first")
    grant(path, "main.sales#row")
    union = "SELECT n FROM sales UNION ALL SELECT n FROM other"
    with pytest.raises(dpsyn_sql.errors.AccountError, match="belongs to"):
        release(path, union, into="o")
    release(path)
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded):
        release(path, version="2", into="o")


def test_a_file_that_is_attached_twice_is_not_two_tables(path, tmp_path):
    (tmp_path / "hard.duckdb").hardlink_to(path)
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS a (READ_ONLY); ATTACH '{tmp_path}/hard.duckdb' AS b (READ_ONLY)")
        con.execute("CREATE VIEW v AS SELECT n FROM a.Sales UNION ALL SELECT n FROM b.sales")
        for query in ("SELECT n FROM a.sales UNION ALL SELECT n FROM b.Sales", "v"):
            for trust in (False, True):
                with pytest.raises(
                    dpsyn_sql.errors.SourceError, match=r"one table under two names.*attached twice"
                ):
                    release(con, query, into=tmp_path / "o.csv", ledger=tmp_path / "l", trust_query=trust)
        anti = "SELECT n FROM a.sales ANTI JOIN b.sales AS s USING (n)"
        with pytest.raises(dpsyn_sql.errors.SourceError, match="one table under two names"):
            release(con, anti, into=tmp_path / "o.csv", ledger=tmp_path / "l", public_tables=["b.sales"])
    assert not (tmp_path / "l").exists()


def test_a_database_that_is_no_file_is_told_apart_by_its_address():
    tables = [StoredTable((name, "main", "t"), f"md:{name}") for name in "ab"]
    refuse_one_table_twice(tables)
    with pytest.raises(dpsyn_sql.errors.SourceError, match="one table under two names"):
        refuse_one_table_twice([*tables, StoredTable(("c", "main", "T"), "md:a")])


def test_two_databases_in_memory_are_two_sources():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT 1::INTEGER AS n FROM range(200)")
        con.execute("ATTACH ':memory:' AS o")
        con.execute("CREATE TABLE o.t AS SELECT 8::INTEGER AS n FROM range(900)")
        one, two = release(con, "t"), release(con, "o.t")
    assert not two.replayed and two.id != one.id and two.rows > 700


def pairs_that_look_alike(tmp_path):
    """Pairs of (con, source) that read different rows under names that look alike."""
    for folder, value in (("p", 1), ("q", 8)):
        (tmp_path / folder).mkdir()
        with duckdb.connect(str(tmp_path / folder / "x.duckdb")) as con:
            con.execute(f"CREATE TABLE t AS SELECT {value}::INTEGER AS n FROM range(200)")
            con.execute("CREATE VIEW v AS FROM t; CREATE SCHEMA data")
            con.execute("CREATE TABLE data.parquet AS FROM t")
            con.execute(f"COPY t TO '{tmp_path / folder}/data.parquet'")
    p, q = tmp_path / "p", tmp_path / "q"
    return [
        ((p / "x.duckdb", "v"), (q / "x.duckdb", "v")),
        ((p / "x.duckdb", "SELECT n FROM t"), (q / "x.duckdb", "SELECT n FROM t")),
        ((p / "x.duckdb", "data.parquet"), (None, str(p / "data.parquet"))),
        ((None, str(p)), (None, f"{p}/*.parquet")),
    ]


def test_sources_that_look_alike_are_not_replayed_for_each_other(tmp_path):
    for number, pair in enumerate(pairs_that_look_alike(tmp_path)):
        settings = {"name": "r", "account": f"study{number}", "ledger": tmp_path / f"ledger{number}"}
        if number == 2:
            settings["ledger"] = tmp_path / "p" / "x.duckdb.dpsyn-ledger"
        made = [
            release(con, source, into=tmp_path / f"o{number}-{which}.csv", new_debit=True, **settings)
            for which, (con, source) in enumerate(pair)
        ]
        assert made[0].id != made[1].id and not made[1].replayed, pair


def test_one_view_or_query_is_paid_once_under_any_alias_and_after_a_move(path):
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE VIEW v AS SELECT n FROM sales WHERE n > 2")
    sources = ("v", "SELECT n FROM sales WHERE n > 4")
    ids = [release(path, source, into=f"o{number}").id for number, source in enumerate(sources)]
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS z")
        for number, source in enumerate(("z.v", "SELECT n FROM z.sales WHERE n > 4")):
            assert release(con, source, into=f"z.o{number}").id == ids[number]
    new = renamed_with_its_ledger(path, "new.duckdb")
    ledgers.moved_with_data(f"{new}.dpsyn-ledger")
    for number, source in enumerate(sources):
        assert release(new, source, into=f"o{number}").id == ids[number]


def test_settings_that_make_no_difference_are_not_paid_for(path):
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE wide AS SELECT n, n AS m, n AS person FROM sales")
    unit = {"unit": "person", "most": 1, "exclude": ["m"]}
    first = release(path, "wide", **unit)
    for same in ({"exclude": ["m", "m"]}, {"csv": {"on_error": "fail"}}):
        assert release(path, "wide", **{**unit, **same}).id == first.id


def test_a_column_called_row_is_not_taken_for_rows_silently(path):
    with duckdb.connect(str(path)) as con:
        con.execute('CREATE TABLE odd AS SELECT 1::INTEGER AS n, 2 AS "Row"')
    with pytest.raises(dpsyn_sql.errors.InputError, match="ambiguous"):
        release(path, "odd", unit="Row")
    release(path, "odd", unit="row", exclude=["Row"])


# -- rows of results ----------------------------------------------------------------------------

MULTIPLYING = [
    "SELECT n FROM sales CROSS JOIN (VALUES (1), (2), (3)) AS v(x)",
    "SELECT n FROM sales UNION ALL SELECT n FROM Sales",
    "SELECT n FROM sales JOIN codes ON k <= n",
    "WITH s AS (SELECT n FROM sales) SELECT n FROM s UNION ALL SELECT n FROM s",
]


@pytest.mark.parametrize("query", MULTIPLYING)
def test_a_query_that_multiplies_rows_has_a_unit_of_its_own(path, query):
    settings = {"into": "q", "public_tables": ["codes"]}
    release(path, query, **settings)
    (account,) = overview(path).accounts
    assert account.unit == "row of result" and account.name == "main.sales#row of result"
    with pytest.raises(dpsyn_sql.errors.AccountError, match="does not hold for a row of the table"):
        release(path)
    assert release(path, query, **settings).replayed


def test_rows_of_results_do_not_mix_with_rows(path):
    release(path)
    for query in MULTIPLYING:
        with pytest.raises(
            dpsyn_sql.errors.AccountError, match=r"one row of a table can give several rows.*unit="
        ):
            release(path, query, into="q", public_tables=["codes"])
    for number, query in enumerate(
        ("SELECT n FROM sales WHERE n > 3", "SELECT n FROM sales SEMI JOIN codes ON k = n")
    ):
        release(path, query, into=f"r{number}", public_tables=["codes"])
    assert len(overview(path).releases) == 3


def test_a_union_of_two_tables_counts_each_row_once(path):
    release(path, "SELECT n FROM sales UNION ALL SELECT n FROM other", into="q")
    (account,) = overview(path).accounts
    assert account.unit == "row" and set(account.sources) == {"main.sales", "main.other"}


def test_no_column_passes_for_a_row_of_a_result(path):
    with duckdb.connect(str(path)) as con:
        con.execute('CREATE TABLE odd AS SELECT 1::INTEGER AS n, 2 AS "row of result"')
    with pytest.raises(dpsyn_sql.errors.InputError, match="rename the column"):
        release(path, "odd", unit="Row of Result", most=1, exclude=[])


# -- outputs and debits -------------------------------------------------------------------------


def test_the_same_settings_to_another_output_are_not_paid_twice(path):
    first = release(path)
    with pytest.raises(
        dpsyn_sql.errors.ReleaseExists, match=r"at no cost, add name='main.sales_synthetic'.*new_debit=True"
    ):
        release(path, into="copy")
    assert "name='main.sales_synthetic'" in plan(path, into="copy")
    assert release(path, into="copy", name="main.sales_synthetic").id == first.id
    again = release(path, into="second", new_debit=True)
    assert not again.replayed and again.id != first.id
    assert release(path, into="third", name="mine").id not in (first.id, again.id)
    assert len(overview(path).releases) == 3


def test_replacing_an_output_and_paying_again_are_two_words(path):
    release(path)
    with pytest.raises(dpsyn_sql.errors.ReleaseChanged, match="new_debit=True"):
        release(path, epsilon=2, replace=True)
    with pytest.raises(dpsyn_sql.errors.TargetError, match="replace=True"):
        release(path, epsilon=2, new_debit=True)
    assert not release(path, epsilon=2, new_debit=True, replace=True).replayed
    assert len(overview(path).releases) == 2


def test_a_refusal_for_want_of_budget_says_what_is_free(path):
    grant(path, "sales#row")
    release(path)
    with pytest.raises(
        dpsyn_sql.errors.PrivacyBudgetExceeded, match=r"name='main.sales_synthetic' replays it for free"
    ):
        release(path, into="o", name="other")


def test_an_output_that_is_taken_says_how_to_go_on_for_nothing(path, monkeypatch):
    from dpsyn_sql.rows.write import staging

    into, stage = path.with_name("o.csv"), staging.stage_rows

    def taken(*arguments, **options):
        into.write_text("somebody else's")
        return stage(*arguments, **options)

    monkeypatch.setattr("dpsyn_sql.rows.write.families.stage_rows", taken)
    with pytest.raises(
        dpsyn_sql.errors.PublishError, match=r"name='o.csv' and another into=, costs nothing more"
    ):
        release(path, into=into)
    monkeypatch.undo()
    assert release(path, into=path.with_name("p.csv"), name="o.csv").replayed
    assert into.read_text() == "somebody else's" and len(overview(path).releases) == 1


@pytest.mark.parametrize("ending", ["", "-journal", "-dpsyn-lock"])
def test_an_output_never_overwrites_the_ledger(path, ending):
    ledger = path.with_name("l.csv" + ("" if not ending else ".dpsyn.duckdb"))
    into = path.with_name("l.csv")
    if ending:
        ledger = path.with_name("x.csv")
        into = path.with_name(f"x.csv{ending}.csv")
        into.symlink_to(path.with_name(f"x.csv{ending}"))
    SqliteLedger(ledger).close()
    for replace in (False, True):
        with pytest.raises(dpsyn_sql.errors.TargetError):
            release(path, into=into, ledger=ledger, replace=replace)
    assert not ledgers.overview(ledger).releases


# -- threshold delta ----------------------------------------------------------------------------


@pytest.fixture
def words(path):
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE words AS SELECT 'w' || (i % 3) AS w, (i % 10)::INTEGER AS n FROM range(900) AS r(i)"
        )
    return path


@pytest.mark.parametrize(("number", "epsilon", "granted"), [(3, "1", "3"), (4, "0.25", "1")])
def test_n_default_releases_fit_a_grant_of_n_times_their_epsilon(words, number, epsilon, granted):
    grant(words, "words#row", granted)
    for count in range(number):
        release(words, "words", epsilon=epsilon, version=str(count), into=f"o{count}")
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded, match="threshold delta"):
        release(words, "words", epsilon=epsilon, version="more", into="more")


def test_what_is_left_of_epsilon_and_of_threshold_delta_is_said(words):
    granted = ledger_command(
        "grant", f"{words}.dpsyn-ledger", "words#row", "-e", "5", "--delta", "1e-9", "--new"
    )
    assert "a release of epsilon=5 with delta=1e-09 still fits" in granted.output
    release(words, "words")
    shown = ledger_command("show", f"{words}.dpsyn-ledger").output
    assert "still fits if it discovers no categories" in shown
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded, match="Declare the categories"):
        release(words, "words", version="2", into="o")
    release(words, "words", version="2", into="o", exclude=["w"])


def test_a_grant_below_what_is_spent_says_which_would_do(words):
    for count in range(3):
        release(words, "words", version=str(count), into=f"o{count}")
    place = f"{words}.dpsyn-ledger"
    low = ledger_command("grant", place, "main.words#row", "-e", "3", "--delta", "1e-9")
    assert low.exit_code == 2 and "--epsilon 3 --delta 3e-9 is enough" in " ".join(low.output.split())
    assert ledger_command("grant", place, "main.words#row", "-e", "3").exit_code == 0


# -- plan ---------------------------------------------------------------------------------------


def test_plan_says_whether_it_fits_replays_or_is_in_the_way(path):
    assert "a new debit" in plan(path) and not path.with_name("w.duckdb.dpsyn-ledger").exists()
    grant(path, "sales#row")
    assert "a new debit, which fits the account" in plan(path)
    release(path)
    assert "a replay of the answers of" in plan(path)
    text = plan(path, epsilon=2)
    assert "would be refused" in text and "other settings" in text and "exists; choose another into=" in text
    text = plan(path, version="2", into="o")
    assert "would be refused" in text and "has" in text and "left" in text
    assert len(overview(path).releases) == 1 and len(overview(path).accounts) == 1


def test_plan_says_what_delta_its_thresholds_take(words):
    assert "threshold delta = 1e-10" in plan(words, "words")
    assert "threshold delta = 5e-11" in plan(words, "words", epsilon="0.5")


def test_two_grants_under_one_name_have_to_be_chosen_from(path):
    grant(path, "main.sales#row")
    grant(path, "sales#person")
    with pytest.raises(
        dpsyn_sql.errors.AccountError, match=r"Several accounts.*main.sales#row.*sales#person"
    ):
        release(path)
    assert release(path, account="main.sales#row").notes
