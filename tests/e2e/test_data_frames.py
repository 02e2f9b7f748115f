"""Data frames from end to end: what the ledger knows them by, what is written, and what never shows."""

import secrets
import warnings
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from support.canaries import Watched, everything_of, holding
from support.ledgers import granted

import dpsyn_sql
from dpsyn_sql.front.request import Request
from dpsyn_sql.source.slices import Partition

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

DOMAIN = {
    "columns": {
        "age": {"type": "numeric", "lower": 0, "upper": 99, "bins": 10},
        "sex": {"type": "categorical", "categories": ["f", "m"], "other": False},
    }
}
OPTIONS = {"domain": DOMAIN, "method": "independent", "epsilon": 2}


@pytest.fixture
def people():
    return pd.DataFrame({"age": [index % 100 for index in range(600)], "sex": ["f", "m", "m"] * 200})


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "people.ledger"


def test_every_spelling_of_one_frame_is_one_source(people, ledger, tmp_path):
    first = dpsyn_sql.release(people, "people", ledger=ledger, **OPTIONS)
    con = duckdb.connect()
    others = [
        dpsyn_sql.release(people, name="people", ledger=ledger, **OPTIONS),
        dpsyn_sql.release(None, people, name="people", ledger=ledger, **OPTIONS),
        dpsyn_sql.release(con, people, name="people", ledger=ledger, **OPTIONS),
        dpsyn_sql.release(None, Request(people, name="people", ledger=ledger, **OPTIONS)),
        dpsyn_sql.release(people, "people", ledger=ledger, into=tmp_path / "o.parquet", **OPTIONS),
        dpsyn_sql.release(
            people.iloc[:5], "people", ledger=ledger, **OPTIONS
        ),  # what it holds is not looked at
    ]
    for other in others:
        assert other.replayed and other.id == first.id
        assert other.to_df().equals(first.to_df())
    assert con.execute("FROM people_synthetic").df().equals(first.to_df())


AGAIN = {
    "another version": {"version": "2"},
    "another name": {"name": "other"},
    "other settings": {"exclude": ["sex"], "new_debit": True, "domain": None},
}


@pytest.mark.parametrize("case", AGAIN)
def test_releases_of_one_frame_add_up_in_one_account(people, ledger, case):
    options = {**OPTIONS, **AGAIN[case], "ledger": ledger}
    assert ":frame:people#row" in dpsyn_sql.plan(people, "people", ledger=ledger, **OPTIONS).verbose()
    dpsyn_sql.release(people, "people", ledger=ledger, **OPTIONS)
    granted(ledger, ":frame:people#row", 2)  # exactly what is spent
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded):
        dpsyn_sql.release(people, "PEOPLE", **options)
    granted(ledger, ":frame:people#row", 9, None)
    assert not dpsyn_sql.release(people, "PEOPLE", **options).replayed
    assert not dpsyn_sql.release(people, "others", **options).replayed


@pytest.mark.parametrize(
    "into",
    [
        None,
        "file.parquet",
        "table",
        "file.csv",
        "file.csv.gz",
    ],
)
@pytest.mark.parametrize("source", ["frame", "table"])
def test_the_rows_of_every_output(people, ledger, tmp_path, into, source):
    people["who"] = pd.Series(["", None, 'a "b", c\nd'] * 200, dtype=object)
    who = {"type": "categorical", "categories": ["", 'a "b", c\nd'], "other": False, "nullable": True}
    spec = {"columns": {**DOMAIN["columns"], "who": who}}
    con = duckdb.connect(str(tmp_path / "w.duckdb"))
    con.execute("CREATE TABLE people AS FROM people")
    place = tmp_path / into if into and "." in into else into
    options = {**OPTIONS, "domain": spec, "ledger": ledger, "into": place, "name": "people"}
    if source == "frame" and into == "table":
        release = dpsyn_sql.release(con, people, **options)
    else:
        release = dpsyn_sql.release(*((people,) if source == "frame" else (con, "people")), **options)
    frame = release.to_df()
    assert list(frame) == ["age", "sex", "who"] and len(frame) == release.rows > 300
    assert set(frame.sex) == {"f", "m"} and set(frame.who.dropna()) <= {"", 'a "b", c\nd'}
    assert frame.who.isna().sum() > 50 and (frame.who == "").sum() > 50
    assert frame.age.between(0, 99).all() and frame.age.dtype.kind == "i"
    for kind, module in (("polars", "polars"), ("arrow", "pyarrow")):
        pytest.importorskip(module, reason=f"{module} is not installed")
        other = release.to_df(kind)
        assert other.shape == frame.shape
        ages = other["age"].to_list() if kind == "polars" else other["age"].to_pylist()
        assert sorted(ages) == sorted(frame.age)
    with pytest.raises(dpsyn_sql.errors.InputError, match="to_df"):
        release.to_df("excel")
    if place is not None and into != "table":
        Path(place).unlink()
        with pytest.raises(dpsyn_sql.errors.InputError, match="was replaced, changed or removed"):
            release.to_df()
        with pytest.raises(dpsyn_sql.errors.InputError, match="was loaded"):
            dpsyn_sql.load(f"{place}.dpsyn.duckdb").to_df()


@pytest.mark.parametrize("into", ["other", "o.parquet", "o.csv"])
def test_other_rows_in_the_place_of_the_output_are_not_read(people, tmp_path, into):
    """The owner may put the real rows there: nobody takes them for synthetic ones."""
    con = duckdb.connect(str(tmp_path / "w.duckdb"))
    con.execute("CREATE TABLE people AS FROM people")
    release = dpsyn_sql.release(con, "people", into=tmp_path / into if "." in into else into, **OPTIONS)
    assert len(release.to_df()) == release.rows
    if into == "other":
        con.execute("DROP TABLE other; CREATE TABLE other AS FROM people")
    else:
        con.execute(f"COPY people TO '{tmp_path / into}'")
    with pytest.raises(dpsyn_sql.errors.InputError, match="was replaced, changed or removed"):
        release.to_df()


REFUSED = {
    "no name": (lambda df, ledger: dpsyn_sql.release(df, ledger=ledger), "no name of its own"),
    "no name beside a connection": (
        lambda df, ledger: dpsyn_sql.release(duckdb.connect(), df),
        "no name of its own",
    ),
    "no ledger": (lambda df, ledger: dpsyn_sql.release(df, "people"), "its ledger must be named"),
    "a query": (
        lambda df, ledger: dpsyn_sql.release(df, "SELECT * FROM df", ledger=ledger),
        "cannot be queried",
    ),
    "two frames": (lambda df, ledger: dpsyn_sql.release(df, df, ledger=ledger), "<DataFrame> is no name"),
    "trust": (
        lambda df, ledger: dpsyn_sql.release(df, "people", trust_query=True, ledger=ledger),
        "are for queries",
    ),
    "public tables": (
        lambda df, ledger: dpsyn_sql.release(df, "people", public_tables=["t"], ledger=ledger),
        "are for queries",
    ),
    "a slice": (
        lambda df, ledger: dpsyn_sql.release(df, "people", window=Partition("sex", "f"), ledger=ledger),
        "parts of a table or a file",
    ),
    "plain data": (lambda df, ledger: Request.from_mapping({"source": df}), "no plain data"),
    "a column": (lambda df, ledger: dpsyn_sql.release(df.age, "people", ledger=ledger), "con is a Series"),
    "an empty name": (
        lambda df, ledger: dpsyn_sql.release(df, " ", ledger=ledger),
        "no name for a data frame",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_frame_cannot_do(people, ledger, tmp_path, monkeypatch, case):
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    call, message = REFUSED[case]
    with pytest.raises(dpsyn_sql.DpsynError, match=message):
        call(people, ledger)
    assert list(tmp_path.iterdir()) == []


def test_a_lazy_frame_is_refused(people, ledger):
    pl = pytest.importorskip("polars", reason="Polars is not installed")
    lazy = pl.LazyFrame({"a": [1]})
    for call in (
        lambda: dpsyn_sql.release(lazy, "p", ledger=ledger),
        lambda: dpsyn_sql.release(None, lazy, name="p"),
    ):
        with pytest.raises(dpsyn_sql.errors.InputError, match=r"collect\(\)"):
            call()


def test_empty_frames(ledger, tmp_path):
    empty = pd.DataFrame({"age": pd.Series([], dtype="int64"), "sex": pd.Series([], dtype="str")})
    release = dpsyn_sql.release(empty, "nobody", ledger=ledger, rows=5, **OPTIONS)
    assert len(release.to_df()) == 5


# -- canaries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("call", ["release", "plan", "init", "unsupported", "refused"])
def test_no_value_of_a_frame_shows(tmp_path, monkeypatch, library, call):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    canary = f"canary{secrets.token_hex(8)}"
    values = {"v": [canary, "a", "a"] * 200, "c": [canary, "b", "b"] * 200, "d": [[canary]] * 600}
    if call != "unsupported":
        del values["d"]
    if library == "pandas":
        frame = pd.DataFrame(values).astype({"c": "category"})
        frame["o"] = pd.Series([{canary: canary}, canary, 3] * 200, dtype=object)
        if call == "unsupported":
            frame["d"] = pd.cut(range(600), [0, 5, 600])
    elif library == "polars":
        frame = module.DataFrame(values).with_columns(module.col("c").cast(module.Enum([canary, "b"])))
    else:
        frame = module.table(values)
        frame = frame.set_column(1, "c", frame["c"].dictionary_encode())
    ledger = tmp_path / "l"
    work = {
        "release": lambda: dpsyn_sql.release(frame, "p", ledger=ledger, epsilon=1, into=tmp_path / "o.csv"),
        "plan": lambda: dpsyn_sql.plan(frame, "p", ledger=ledger).verbose(),
        "init": lambda: dpsyn_sql.init(frame, "p"),
        "unsupported": lambda: dpsyn_sql.release(frame, "p", ledger=ledger),
        "refused": lambda: dpsyn_sql.release(frame, "p", ledger=ledger, discover=False),
    }[call]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = value = None
        try:
            value = work()
        except dpsyn_sql.DpsynError as caught:
            error = caught
    if call in ("unsupported", "refused"):
        assert isinstance(error, dpsyn_sql.errors.DomainError)
        # The caller's frame is a local variable of its own calls: a tool that prints those shows it.
        assert canary not in everything_of(error, locals_too=False)
    else:
        assert error is None and canary not in repr(value) + str(value)
    assert holding(tmp_path, canary) == [] or call == "release"
    assert list(scratch.iterdir()) == []


def test_a_failure_while_the_rows_are_read_says_no_value(tmp_path, monkeypatch):
    from dpsyn_sql.engines import frames

    own = frames.pandas_columns

    def failing(frame):
        if len(frame):
            raise ValueError("k9secret")
        return own(frame)

    monkeypatch.setattr(frames, "pandas_columns", failing)
    frame = pd.DataFrame({"b": [True, False]})
    watched = Watched(lambda: dpsyn_sql.release(frame, "p", ledger=tmp_path / "l"))
    assert isinstance(watched.error, dpsyn_sql.errors.EngineFailure)
    assert "k9secret" not in everything_of(watched.error, locals_too=False)
