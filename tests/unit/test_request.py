"""One request, of one table or several: a value, a YAML file, arguments and options of the command are the same."""

import inspect
import traceback
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy
import pandas
import pytest
from support.commands import run

import dpsyn_sql
from dpsyn_sql.front.arguments import takes_request
from dpsyn_sql.front.request import DEFAULTS, OPTIONS, Request
from dpsyn_sql.source.relation import PrivacyUnit
from dpsyn_sql.source.slices import Partition

DOMAIN = """
columns:
  n: {type: numeric, lower: 0, upper: 9}
  s: {type: categorical, categories: [x, y], other: false}
"""
ASKED = """
source: t.parquet
into: out/o.parquet
epsilon: 0.5
delta: 1e-9
method: independent
domain: d.yml
ledger: out/ledger
rows: 20
seed: 7
exclude: [gone]
version: "2026-01"
csv: {on_error: null}
"""


TABLES_ASKED = """
unit: customers.customer_id
source: [customers, orders]
public_tables: [products]
into: out/shop.duckdb
epsilon: 0.5
most: {orders: 32}
domain: shop.yml
version: 7
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A request in a folder of its own, beside its data; the process is elsewhere."""
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "job"
    (place / "out").mkdir(parents=True)
    (place / "d.yml").write_text(DOMAIN)
    (place / "ask.yml").write_text(ASKED)
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT (i % 10)::INTEGER AS n, CASE i % 2 WHEN 0 THEN 'x' ELSE 'y' END AS s, i AS gone"
            " FROM range(500) AS r(i)) TO 'job/t.parquet'"
        )
    return place


def written(tmp_path, text):
    file = tmp_path / "ask.yml"
    file.write_text(text)
    return file


def by_function(folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(
            None,
            folder / "t.parquet",
            into=folder / "out/o.parquet",
            epsilon=0.5,
            method="independent",
            domain=folder / "d.yml",
            ledger=folder / "out/ledger",
            rows=20,
            seed=7,
            exclude=["gone"],
            version="2026-01",
            **options,
        )


def by_file(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(None, Request.from_yaml(folder / "ask.yml"))


def by_command(folder, *options):
    result = run("release", "--request", folder / "ask.yml", *options)
    assert result.exit_code == 0, result.output
    return result


def test_a_file_says_what_arguments_say(folder):
    assert Request.from_yaml("job/ask.yml") == Request(
        Path("job/t.parquet"),
        into=Path("job/out/o.parquet"),
        epsilon=0.5,
        delta="1e-9",
        method="independent",
        domain=Path("job/d.yml"),
        ledger=Path("job/out/ledger"),
        rows=20,
        seed=7,
        exclude=("gone",),
        version="2026-01",
        csv={"on_error": None},
    )


def test_a_file_of_several_tables_says_what_arguments_say(tmp_path):
    assert Request.from_yaml(written(tmp_path, TABLES_ASKED)) == Request(
        ("customers", "orders"),
        unit="customers.customer_id",
        public_tables=("products",),
        into=tmp_path / "out/shop.duckdb",
        epsilon=0.5,
        most={"orders": 32},
        domain=tmp_path / "shop.yml",
        version="7",
    )


def test_a_request_replays_however_it_is_asked(folder):
    first = by_function(folder)
    assert not first.replayed
    assert by_file(folder).id == by_function(folder).id == first.id
    assert first.id in by_command(folder).stdout


def test_options_beside_a_request_win(folder):
    assert "20 synthetic rows" in by_command(folder).stdout
    assert "30 synthetic rows" in by_command(folder, "--rows", "30", "--replace").stdout
    (folder.parent / "here").mkdir()
    elsewhere = by_command(folder, "--into", "here/p.csv", "--name", "o.parquet")
    assert (folder.parent / "here/p.csv").exists() and "Wrote here/p.csv" in elsewhere.stdout
    planned = run("plan", folder / "missing.parquet", "--request", folder / "ask.yml")
    assert planned.exit_code == 2 and "missing.parquet" in planned.output


def test_a_command_needs_a_source_of_its_own_or_of_a_request(folder):
    alone = run("plan")
    assert alone.exit_code == 2 and "SOURCE" in alone.output
    (folder / "no_source.yml").write_text("epsilon: 30\n")
    assert run("plan", "--request", folder / "no_source.yml").exit_code == 2
    result = run("plan", folder / "t.parquet", "--request", folder / "no_source.yml")
    assert result.exit_code == 0 and "--epsilon 30 protects hardly" in result.output


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("t.parquet", Path("F/t.parquet")),
        ("data/", Path("F/data")),
        ("./data", Path("F/data")),
        ("../*.csv", Path("F/../*.csv")),
        ("/data/t.csv.gz", Path("/data/t.csv.gz")),
        ("people", "people"),
        ("main.people", "main.people"),
        ('main."a.csv"', 'main."a.csv"'),
        ("SELECT * FROM 'a/t.parquet'", "SELECT * FROM 'a/t.parquet'"),
    ],
)
def test_paths_begin_at_the_folder_and_names_and_queries_stay(text, read):
    assert Request.from_mapping({"source": text}, folder="F").source == read
    assert Request.from_mapping({"source": text}).source == text


@pytest.mark.parametrize("source", [["customers", "orders"], None])
@pytest.mark.parametrize(
    ("into", "path"),
    [
        ("shop_synthetic", False),
        ("db.shop", False),
        ("s.duckdb", True),
        ("S.DB", True),
        ("out/", True),
        ("a/b", True),
    ],
)
def test_a_schema_is_no_path(source, into, path):
    """``source`` may be missing: then the file of the tables names them."""
    made = Request.from_mapping({"source": source, "into": into}, folder="/job").into
    assert made == (Path("/job", into) if path else into)


def test_an_output_of_one_table_is_a_path_by_its_file():
    def made(into):
        return Request.from_mapping({"source": "people", "into": into}, folder="/job").into

    assert made("s.parquet") == Path("/job/s.parquet") and made("a/b") == Path("/job/a/b")
    assert made("people_synthetic") == "people_synthetic" and made("main.db") == "main.db"


def test_a_workload_has_names_as_in_a_line_of_csv(tmp_path):
    text = "source: t\nworkload:\n  income: 5\n  age,sex: 2\n  '\"a,b\",c': 0.5\n"
    read = Request.from_yaml(written(tmp_path, text)).workload
    assert read == {("income",): 5, ("age", "sex"): 2, ("a,b", "c"): 0.5}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epsilom: 1\nrow: 3\n", ["'epsilom'", "'epsilon'", "'row'", "'rows'"]),
        ("con: w.duckdb\n", ["'con'", "--database"]),
        ("tables: [customers, orders]\n", ["'tables'", "source: [customers, orders]"]),
        ("privacy_unit: id\n", ["unknown key 'privacy_unit'", "unit"]),
        ("mosst: 16\n", ["'mosst'", "'most'"]),
        ("window: 2026\n", ["unknown key 'window'"]),
        ("zzz: 1\n", ["'zzz'", "Allowed are source, into, epsilon", "most, order, weights"]),
        ("1: 1\n", ["unknown key 1"]),
        ("- source\n", ["mapping"]),
        ("", ["mapping"]),
        ("source: [\n", ["line"]),
        ("rows: 1\nrows: 2\n", ["occurs twice"]),
        ("version: 2026-01-01\n", ["version=", "in quotes"]),
        ("name: true\n", ["name=True", "in quotes"]),
        ("order: no\n", ["order=False is no text: YAML reads the words no, off, yes and on", "order: 'no'"]),
        ("workload: no\n", ["workload=False is no text", "workload: 'no'"]),
        ("csv: {delimeter: tab}\n", ["csv=", "'delimeter'", "'delimiter'"]),
        ("limits: 4GB\n", ["limits='4GB': give a mapping"]),
        ("unit: on\n", ["unit=True is no text", "in quotes: unit: 'yes'"]),
        ("account: 1.5\n", ["account=1.5", "in quotes"]),
        ("workload: [a]\n", ["workload="]),
        ("workload: {'a,': x, 3: 1}\n", ["workload"]),
    ],
)
def test_faults_of_a_file_are_one_message(tmp_path, text, words):
    with pytest.raises(dpsyn_sql.errors.InputError) as caught:
        Request.from_yaml(written(tmp_path, text)).check()
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize(
    "text", ["epsilon:", "rows: many", "replace: 1", "exclude: a", "domain: 3", "seed: -1"]
)
def test_values_of_a_file_are_checked_as_arguments_are(tmp_path, text):
    asked = Request.from_yaml(written(tmp_path, f"source: t\n{text}\n"))
    with pytest.raises(dpsyn_sql.errors.InputError, match=f"{text.partition(':')[0]}="):
        asked.check()


SHOP = ["customers", "orders"]
TREE = {"tables": {"customers": {}, "orders": {"parent": "customers", "foreign_key": "cid"}}}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"source": 3}, ["source=3", "a list of tables"]),
        ({"source": [3, 4]}, ["source=<list>: give a list of names"]),
        ({"unit": ""}, ["unit=''"]),
        ({"unit": 3}, ["unit=3", "'row'", "customers.customer_id"]),
        ({"public_tables": [3]}, ["public_tables=<list>: give a list of names"]),
        ({"public_tables": "orders"}, ["public_tables='orders': give a list"]),
        ({"exclude": "a"}, ["exclude='a': give a list"]),
        ({"rows": -1}, ["rows=-1"]),
        ({"rows": 2.5}, ["rows=2.5"]),
        ({"seed": 2**64}, ["seed="]),
        ({"epsilon": 0}, ["epsilon"]),
        ({"delta": 1}, ["delta"]),
        ({"into": 3}, ["into=3"]),
        ({"into": ""}, ["into=''"]),
        ({"domain": 3}, ["domain=3"]),
        ({"ledger": 3}, ["ledger=3"]),
        ({"constraints": "yes"}, ["constraints='yes': give True or False"]),
        ({"weights": "yes"}, ["weights='yes': give True or False"]),
        ({"replace": 1}, ["replace=1"]),
        ({"discover": None}, ["discover=None"]),
        ({"version": ""}, ["version=''"]),
        ({"limits": {"memory": "much"}}, ["limits={'memory': 'much'}", "'4GB'"]),
        ({"limits": {"memory": 1}}, ["limits={'memory': 1} is too small: give 512MiB"]),
        ({"limits": {"time": 0}}, ["limits={'time': 0}: give a positive number of seconds"]),
        ({"limits": {"time": True}}, ["limits={'time': True}: give a positive number"]),
        ({"limits": {"scratch": "paper"}}, ["limits={'scratch': 'paper'}", "one of encrypted, plain"]),
        ({"limits": "4GB"}, ["limits='4GB': give a mapping, such as {'memory': '4GB'}"]),
        ({"limits": {"memry": "4GB"}}, ["limits= has the unknown key 'memry' (did you mean 'memory'?)"]),
        ({"limits": {"x": 1, "tme": 1}}, ["keys 'x', 'tme' (did", "Allowed are memory, time, scratch"]),
        ({"csv": ";"}, ["csv=';': give a mapping, such as {'delimiter': ';', 'decimal': ','}"]),
        ({"csv": {"delimeter": ";"}}, ["csv= has the unknown key 'delimeter' (did you mean 'delimiter'?)"]),
        ({"csv": {3: ";"}}, ["csv= has the unknown key 3. Allowed are delimiter, decimal, encoding, quote"]),
        ({"csv": {"on_error": "stop"}}, ["csv={'on_error': 'stop'} is not known; use one of null, fail"]),
        ({"csv": {"quote": 3}}, ["csv={'quote': 3}: give one character, or ''"]),
        ({"workload": ""}, ["workload='': give the column that others are to predict, or a mapping"]),
        ({"workload": 3}, ["workload=3: give the column"]),
        ({"workload": {"a": "target", "b": "target"}}, ["the target 'a', 'b': name one column"]),
        ({"workload": {("a", "b"): "target"}}, ["the target 'a', 'b': name one column"]),
        ({"workload": {"": "target"}}, ["the target '': name one column"]),
        ({"workload": {"a": "aim"}}, ["the weight 'aim' for 'a'", "or 'target'"]),
        ({"most": "16"}, ["most='16'", "a whole number", '{"orders": 16}']),
        ({"most": 2.0}, ["most=2.0", "a whole number"]),
        ({"most": {"orders": 0}}, ["{'orders': 0} is out of range"]),
        ({"most": {"orders": 2**20 + 1}}, ["from 1 to 1048576"]),
        ({"most": {"orders": True}}, ["out of range"]),
        ({"most": {"orders": "16"}}, ["out of range"]),
        ({"most": {3: 16}}, ["out of range"]),
        ({"series": "totals"}, ["series='totals'", "'total', 'panel'"]),
    ],
)
@pytest.mark.parametrize("source", ["t", SHOP], ids=["one", "several"])
def test_what_is_wrong_is_refused_by_its_name(source, options, words):
    with pytest.raises(dpsyn_sql.errors.InputError) as caught:
        Request(**{"source": source, **options}).check()
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"constraints": True}, ["constraints= is for several tables", "leave it out"]),
        ({"unit": "p", "most": {"t": 5}}, ["most= by the names of tables", "one whole number"]),
        ({"unit": "p", "most": 0}, ["most=0 is out of range", "1 or more with a column"]),
        ({"unit": "p", "most": -3}, ["most=-3 is out of range"]),
        ({"unit": "p", "most": True}, ["most=True is out of range"]),
        ({"unit": "p", "most": 2**31}, ["most=2147483648 is out of range"]),
        ({"unit": "p", "most": 2**20 + 1}, ["most=1048577 is out of range", "1048576 or less, or weights="]),
        ({"unit": "row", "most": 2}, ["most=2 is out of range", "leave it out with unit='row'"]),
        ({"most": 2}, ["most=2 is out of range", "1 or more with a column"]),
        ({"order": "t"}, ["order= orders the rows of a unit", "unit='customer_id'"]),
        ({"order": ""}, ["order=''"]),
        ({"unit": "p", "most": 1, "order": "t"}, ["order= orders the rows of a unit", "2 or more"]),
        (
            {"unit": "p", "weights": False, "order": "t"},
            ["order= orders the rows of a unit", "weights=False"],
        ),
        ({"unit": "p", "method": "independent", "order": "t"}, ["order= orders the rows of a unit"]),
    ],
)
def test_what_one_table_does_not_take_is_refused(options, words):
    with pytest.raises(dpsyn_sql.errors.InputError) as caught:
        Request("t", **options).check()
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "Row"}, ["unit='Row' means single rows", "'customers.customer_id'"]),
        ({"most": 16}, ["most=16 does not say of which table", '{"orders": 16}']),
        ({"most": True}, ["most=True"]),
        ({"order": "day"}, ["order= is for one table", "domain=", "table by table"]),
        ({"method": "independent"}, ["method= is for one table", "leave it out"]),
        ({"weights": False}, ["weights= is for one table"]),
        ({"workload": {"a": 2}}, ["workload= is for one table"]),
        ({"workload": "a"}, ["workload= is for one table"]),
        ({"trust_query": True}, ["trust_query= is for one table"]),
        ({"csv": {"on_error": "fail"}}, ["csv= is for one table"]),
        ({"csv": {"delimiter": ";"}}, ["csv= is for one table"]),
        ({"window": Partition("day", "2026-01-01")}, ["window= is for one table"]),
        ({"series": "total"}, ["series= is for one table"]),
    ],
)
def test_what_several_tables_do_not_take_is_refused(options, words):
    with pytest.raises(dpsyn_sql.errors.InputError) as caught:
        Request(SHOP, **{"unit": "customers.id", **options}).check()
    assert all(word in str(caught.value) for word in words), str(caught.value)
    with pytest.raises(dpsyn_sql.errors.InputError, match=words[0].split("=")[0]):
        dpsyn_sql.plan(None, domain=TREE, **options)


def test_what_is_right_is_accepted():
    Request().check()
    Request("t", unit="p", most=5, order="day").check()
    Request("t", unit="p", most=5, weights=False).check()
    Request("t", unit="p", most=2**20).check()
    Request("t", unit="p", most=2**20 + 1, weights=False).check()
    Request("t", unit="row", most=1).check()
    Request(["row", "o"], unit="row").check()  # the table of this name
    Request(domain=TREE, most={"orders": 3}, constraints=True).check()  # the file names the tables
    many = {"o": 2**20, "c": 1}
    Request(["c", "o"], unit="c.id", most=many, rows=0, constraints=True, method="adaptive").check()


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        ({}, PrivacyUnit(None, 1)),
        ({"unit": "ROW"}, PrivacyUnit(None, 1)),
        ({"unit": "p"}, PrivacyUnit("p", 16, together=True)),
        ({"unit": "p", "method": "traces"}, PrivacyUnit("p", 16, together=True)),
        ({"unit": "p", "method": "independent"}, PrivacyUnit("p", 1)),
        ({"unit": "p", "method": "independent", "most": 3}, PrivacyUnit("p", 3, together=True)),
        ({"unit": "p", "most": 1}, PrivacyUnit("p", 1)),
        ({"unit": "p", "most": 5}, PrivacyUnit("p", 5, together=True)),
        ({"unit": "p", "weights": False}, PrivacyUnit("p", 1)),
        ({"unit": "p", "most": 5, "weights": False}, PrivacyUnit("p", 5)),
        ({"unit": "p", "series": "total"}, PrivacyUnit("p", 1)),
        ({"unit": "p", "series": "total", "most": 5}, PrivacyUnit("p", 5)),
        ({"unit": "p", "series": "panel"}, PrivacyUnit("p", 1)),
    ],
)
def test_rows_of_a_unit_stay_together_unless_something_says_otherwise(options, unit):
    assert Request("t", **options).protected() == unit


def test_a_whole_number_is_a_label_by_its_decimal_text(tmp_path):
    asked = Request.from_yaml(written(tmp_path, "version: 202611\nname: 7\naccount: 010\n"))
    assert (asked.version, asked.name, asked.account) == ("202611", "7", "010")
    assert Request(version=0) == Request(version="0") == replace(Request(), version=numpy.int64(0))
    assert repr(Request(version=0)) == "Request(version='0')"
    for wrong in (True, 1.0, numpy.float64(3)):
        with pytest.raises(dpsyn_sql.errors.InputError, match="version=.* is not a usable label"):
            Request("t.csv", version=wrong).check()


def frames_of_ours(error):
    package = str(Path(dpsyn_sql.__file__).parent)
    return [one.name for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith(package)]


WRONG_CALLS = {
    "epsilon": (dpsyn_sql.errors.BudgetError, lambda: dpsyn_sql.release(None, "t.parquet", epsilon=-1)),
    "source": (dpsyn_sql.errors.SourceError, lambda: dpsyn_sql.plan(None, "none.parquet")),
    "column": (dpsyn_sql.errors.InputError, lambda: dpsyn_sql.release(None, "t.parquet", unit="who", most=1)),
    "form": (dpsyn_sql.errors.SourceError, lambda: dpsyn_sql.init(None, "none.parquet")),
    "advice": (dpsyn_sql.errors.InputError, lambda: dpsyn_sql.suggest(None, domain="none.yml")),
    "stored": (dpsyn_sql.errors.InputError, lambda: dpsyn_sql.load("none.parquet")),
    "evaluation": (dpsyn_sql.errors.InputError, lambda: dpsyn_sql.evaluate(None, "t.parquet", "t.parquet")),
    "audit": (dpsyn_sql.errors.InputError, lambda: dpsyn_sql.audit(epsilon=0)),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_what_is_wrong_reaches_the_caller_without_our_frames(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    kind, call = WRONG_CALLS[case]
    with pytest.raises(kind) as caught:
        call()
    assert len(frames_of_ours(caught.value)) <= 2
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("kind", [dpsyn_sql.errors.InternalError, RuntimeError])
def test_a_bug_of_ours_keeps_its_frames(folder, monkeypatch, kind):
    def broken(*_, **__):
        raise kind("a bug")

    monkeypatch.chdir(folder)
    monkeypatch.setattr(Request, "check", broken)
    with pytest.raises(kind) as caught:
        dpsyn_sql.plan(None, "t.parquet")
    assert len(frames_of_ours(caught.value)) > 2


def test_a_misspelt_option_names_the_function_and_a_request_comes_alone():
    with pytest.raises(TypeError, match=r"^plan\(\) got an unexpected keyword argument 'epsilom'$"):
        dpsyn_sql.plan(None, "t.csv", epsilom=1)
    with pytest.raises(dpsyn_sql.errors.InputError, match="Give a Request alone"):
        dpsyn_sql.release(None, Request("t.csv"), epsilon=2)


@takes_request(Request)
def ask(con, request):
    """Say what is asked.

    Args:
        con: a connection.
        request: a request; or its fields:

    Raises:
        InputError: never.
    """
    return con, request


def test_a_function_takes_a_request_or_its_options():
    asked = Request(["c", "o"], unit="c.id", epsilon=2)
    assert ask(None, asked) == (None, asked)
    assert ask(None, ["c", "o"], unit="c.id", epsilon=2) == (None, asked)
    assert ask(con=None, source=["c", "o"], unit="c.id", epsilon=2) == (None, asked)
    with pytest.raises(dpsyn_sql.errors.InputError, match="Give a Request alone"):
        ask(None, asked, epsilon=3)
    with pytest.raises(TypeError, match="epsilom"):
        ask(None, ["c", "o"], epsilom=3)
    with pytest.raises(TypeError, match="tables"):
        ask(None, tables=["c", "o"])
    assert list(inspect.signature(ask).parameters) == ["con", *DEFAULTS]
    for option in OPTIONS:
        assert f"    {option}: " in ask.__doc__


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(dpsyn_sql.errors.InputError, match="no.yml"):
        Request.from_yaml(tmp_path / "no.yml")
    with pytest.raises(dpsyn_sql.errors.InputError, match="from the path of a YAML file, not from"):
        Request.from_yaml({"source": "t"})
    result = run("release", "--request", tmp_path / "no.yml")
    assert result.exit_code == 2 and "no.yml" in result.output and "Traceback" not in result.output


def test_a_request_is_a_value_and_its_repr_shows_what_is_not_default():
    asked = Request("t", epsilon=Fraction(1, 2), domain={"columns": {"n": "Anna Secret"}})
    assert repr(asked) == "Request(source='t', epsilon=Fraction(1, 2), domain=<dict>)"
    assert replace(asked, domain=None) == Request("t", epsilon=0.5)
    several = Request(["c", "o"], unit="c.id", epsilon=2, most={"o": 3})
    assert repr(several) == "Request(source=<list>, epsilon=2, unit='c.id', most=<dict>)"
    window = Partition("day", "2026-01-01")
    assert repr(replace(several, window=window, series="total")).endswith(
        f"most=<dict>, window={window!r}, series='total')"
    )
    assert repr(Request()) == "Request()"
    with pytest.raises(AttributeError):
        asked.epsilon = 2


def test_requests_for_data_frames_are_compared_without_their_values():
    people = pandas.DataFrame({"n": [1, 2]})
    request = Request(people, epsilon=2)
    assert request == Request(people, epsilon=2) and request == replace(request)
    assert request != Request(people, epsilon=3) and request != Request(people.copy(), epsilon=2)
    assert request != Request("t", epsilon=2) and Request("t") != request and request != people.shape
    assert hash(Request("t")) == hash(Request("t")) and Request("t") != Request("u")


def test_warnings_point_at_the_line_that_called(folder):
    with pytest.warns(UserWarning) as caught:
        dpsyn_sql.release(None, Request(folder / "t.parquet", epsilon=30, rows=5, method="independent"))
    assert len(caught) > 0 and {item.filename for item in caught} == {__file__}


def test_the_signatures_are_those_of_the_request():
    fields = inspect.signature(Request).parameters
    for function in (dpsyn_sql.release, dpsyn_sql.plan):
        asked = dict(inspect.signature(function).parameters)
        assert list(asked) == ["con", *fields] and asked.pop("con").default is inspect.Parameter.empty
        for name, parameter in asked.items():
            assert (parameter.default, parameter.kind) == (fields[name].default, fields[name].kind)
            assert parameter.annotation == fields[name].annotation
    assert str(inspect.signature(dpsyn_sql.plan)).endswith("Explanation'")


def test_every_field_is_explained_once_for_python_and_the_command():
    for_programs = ["window", "series"]
    assert [*OPTIONS, *for_programs] == list(inspect.signature(Request).parameters)
    told = run("release", "--help").stdout
    told, planned = (" ".join(text.split()) for text in (told, run("plan", "--help").stdout))
    for name, option in OPTIONS.items():
        assert option.help.endswith(".")
        for explained in (dpsyn_sql.release, dpsyn_sql.plan, Request):
            assert f"\n    {name}: {option.help[:40]}" in inspect.getdoc(explained)
        for text in (told, planned):
            told_otherwise = name in ("source", "method")  # by its own words, and by the registry of methods
            assert told_otherwise or " ".join(option.help.removesuffix(".").split()[:3]) in text
