"""load(): a release comes back from where it is stored, the same in every answer, and nothing is written."""

import hashlib
import json
import shutil
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_any_table import DDL, DOMAIN, ROWS

import dpsyn_sql
from dpsyn_sql.errors import InputError, TargetError
from dpsyn_sql.methods import METHODS
from dpsyn_sql.methods.models.margins import ViewsModel
from dpsyn_sql.methods.models.networks import NetworkModel
from dpsyn_sql.report.certificate import attribute_facts
from dpsyn_sql.source.files import file_beside

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PEOPLE = """CREATE TABLE people AS SELECT
    'p' || (i // 3) AS person,
    CASE WHEN i % 7 = 0 THEN NULL WHEN i % 2 = 0 THEN 'it''s "x"' ELSE 'Köln' END AS city,
    CASE WHEN i % 5 > 0 THEN (i % 400) / 8 END::DECIMAL(8,2) AS pay,
    DATE '1990-01-01' + (i % 3650)::INTEGER AS born,
    CASE i % 3 WHEN 0 THEN TRUE WHEN 1 THEN FALSE END AS "Flag"
FROM range(6000) r(i)"""
CITIES = {
    "columns": {"city": {"type": "categorical", "categories": ["Köln", ""], "other": True, "nullable": True}}
}
COMPUTING = (NetworkModel, ViewsModel)
"""Models that compute any marginal that is asked for; only tables are stored."""
UNITS = {"unit": "person", "most": 3, "weights": False}


def names_of(release):
    return release.model.domain.names


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A database with releases of declared and discovered tables by every method, and what release() said
    of them; the sources and the ledger are gone."""
    folder = tmp_path_factory.mktemp("stored")
    path = folder / "warehouse.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(DDL.format(name="source"))
        con.execute(ROWS)
        con.execute(PEOPLE)
    fresh = {}
    for method in METHODS:
        common = {"method": method, "epsilon": 10, "seed": 3, "rows": 500}
        fresh[f"every {method}"] = dpsyn_sql.release(
            path, "source", into=f"every_{method}", name=f"every {method}", domain=DOMAIN, **common
        )
        fresh[f"people_{method}"] = dpsyn_sql.release(
            path, "people", into=f"people_{method}", domain=CITIES, **common, **UNITS
        )
    with duckdb.connect(str(path)) as con:
        con.execute("DROP TABLE source; DROP TABLE people")
    for file in folder.iterdir():
        if file != path:
            file.unlink()
    return path, fresh


@pytest.fixture(scope="module")
def loaded(stored):
    path, fresh = stored
    before = digest(path)
    found = {name: dpsyn_sql.load(path, name.upper()) for name in fresh}
    assert digest(path) == before and list(path.parent.iterdir()) == [path]
    return found


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def same_marginal(one, other, names):
    """Seven digits of the model are stored; what was measured is exact, labels and their types too."""
    expected, found = one.marginal(names), other.marginal(names)
    modelled = ["estimate", "estimate_error"]
    pd.testing.assert_frame_equal(found.drop(columns=modelled), expected.drop(columns=modelled))
    for name in names:
        assert [type(label) for label in found[name]] == [type(label) for label in expected[name]]
    for figure in modelled:
        np.testing.assert_allclose(found[figure], expected[figure], rtol=1e-6, atol=1e-9)


def refusal(release, names):
    with pytest.raises(InputError) as caught:
        release.marginal(names)
    return str(caught.value)


def test_facts_domain_and_noisy_answers_are_those_of_the_release(stored, loaded):
    for name, one in stored[1].items():
        other = loaded[name]
        for field in ("rows", "epsilon", "delta", "rho", "id"):
            assert getattr(one, field) == getattr(other, field)
        assert other.table == name and other.replayed and other.notes == ()
        assert other.certificate() == json.loads(json.dumps(one.certificate()))
        # How bins are filled is decided after the fit: it is in the certificate, not in a fresh model.
        mine, theirs = (
            [replace(attribute, fill=()) for attribute in each.model.domain.attributes]
            for each in (one, other)
        )
        assert mine == theirs and other.model.total == one.model.total
        told = [attribute_facts(attribute) for attribute in other.model.domain.attributes]
        assert told == other.certificate()["public_facts"]["domain"]
        for mine, theirs in zip(one.measurements, other.measurements, strict=True):
            assert (mine.attrs, mine.sigma, mine.composed) == (theirs.attrs, theirs.sigma, theirs.composed)
            assert any(mine.maps) == any(theirs.maps) and (mine.maps == theirs.maps or not theirs.maps)
            assert mine.values.dtype == theirs.values.dtype and np.array_equal(mine.values, theirs.values)


@settings(max_examples=60)
@given(data=st.data())
def test_any_marginal_is_the_same_or_refused_alike(stored, loaded, data):
    name = data.draw(st.sampled_from(sorted(stored[1])))
    one, other = stored[1][name], loaded[name]
    asked = data.draw(st.lists(st.sampled_from(names_of(one)), min_size=1, max_size=4, unique=True))
    if one.model.domain.cells(asked) > 100_000:
        asked = asked[:2]
    try:
        one.model.project(asked)
    except InputError as error:
        told = refusal(other, asked)
        assert not other.model.supports(asked) and (type(one.model) in COMPUTING or told == str(error))
    else:
        if type(one.model) in COMPUTING and not other.model.supports(asked):
            # A network that the noise made wide leaves out pairs, too: its tables may take so much work together.
            why = "fitted together" if len(asked) > 2 else "the largest tables are left out"
            assert why in refusal(other, asked) and len(asked) > 1
            return
        same_marginal(one, other, asked)
        assert other.model.supports(asked)


@pytest.mark.parametrize("asked", [[], ["nobody"], ["city", "city"], "nobody", [1], None, ["CITY"]])
def test_wrong_attributes_are_refused_in_the_same_words(stored, loaded, asked):
    assert not any(release.model.supports(asked) for release in loaded.values())
    assert refusal(loaded["people_adaptive"], asked) == refusal(stored[1]["people_adaptive"], asked)


def test_rows_are_the_same_from_the_release_from_load_and_from_sql(stored, loaded):
    path, fresh = stored
    with duckdb.connect(str(path), read_only=True) as con:
        by_connection = {name: dpsyn_sql.load(con, name) for name in fresh}
        for name, one in fresh.items():
            if one.model.network() is None:
                for release in (one, loaded[name], by_connection[name]):
                    with pytest.raises(InputError, match="is not a network"):
                        release.sample(5)
                continue
            for options, sql in (
                ({}, ""),
                ({"seed": 2**64 - 1}, f", seed := {2**64 - 1}"),
                ({"seed": 0}, ", seed := 0"),
            ):
                rows = con.execute(f"FROM dpsyn_sample('{name}', 300{sql})").df()
                pd.testing.assert_frame_equal(by_connection[name].sample(300, **options), rows)
            assert 100 < len(rows) <= 300
            assert by_connection[name].sample(0).columns.tolist() == rows.columns.tolist()
    for name, one in fresh.items():
        if one.model.network() is not None:
            pd.testing.assert_frame_equal(loaded[name].sample(300, 0), one.sample(300, seed=0))
    assert not loaded["people_adaptive"].sample(50, 1).equals(loaded["people_adaptive"].sample(50, 2))
    assert loaded["people_adaptive"].sample(50)["person"].isna().all()


@pytest.mark.parametrize(
    ("rows", "seed"),
    [(-1, 1), (1.5, 1), (True, 1), (None, 1), ("5", 1), (2**63, 1), (5, -1), (5, 2**64), (5, "1")],
)
def test_numbers_out_of_range_are_refused_before_the_database_is_asked(loaded, rows, seed):
    with pytest.raises(InputError, match=r"(rows|seed)=.* is out of range"):
        loaded["people_adaptive"].sample(rows, seed)


def test_a_release_in_a_file_comes_from_the_database_beside_it(stored, tmp_path, monkeypatch):
    source = tmp_path / "people.parquet"
    with duckdb.connect() as con:
        con.execute(PEOPLE)
        con.execute(f"COPY people TO '{source}'")
    out = tmp_path / "out.csv.gz"
    fresh = dpsyn_sql.release(source, into=out, ledger=tmp_path / "ledger", **UNITS)
    source.unlink()
    (tmp_path / "ledger").unlink()
    beside = file_beside(out)
    for path in (out, beside):
        path.chmod(0o444)
    before = digest(beside)
    monkeypatch.chdir(tmp_path)
    releases = [dpsyn_sql.load(where) for where in (out, "out.csv.gz", beside, str(beside))]
    monkeypatch.chdir("/")
    for release in releases:
        assert release.table == str(out) and release.id == fresh.id
        same_marginal(fresh, release, ["city", "Flag"])
        pd.testing.assert_frame_equal(release.sample(20), fresh.sample(20))
    assert digest(beside) == before
    out.unlink()
    assert dpsyn_sql.load(out).id == fresh.id  # the model is enough
    beside.unlink()
    for ask in (lambda: dpsyn_sql.load(out), lambda: releases[0].sample(1)):
        with pytest.raises(InputError, match=r"There is no file '.*out\.csv\.gz'\.$"):
            ask()


def test_a_copy_is_found_under_any_name_of_an_attached_database(stored, loaded, tmp_path):
    copy, other = tmp_path / 'an "odd" name.duckdb', tmp_path / "b.duckdb"
    shutil.copy(stored[0], copy)
    shutil.copy(stored[0], other)
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{copy}' AS \"A.b\" (READ_ONLY)")
        found = dpsyn_sql.load(con, "people_adaptive")
        same_marginal(loaded["people_adaptive"], found, ["city", "pay"])
        pd.testing.assert_frame_equal(found.sample(9), loaded["people_adaptive"].sample(9))
        con.execute(f"ATTACH '{other}' AS second (READ_ONLY)")
        with pytest.raises(InputError, match=r"2 releases.*'A\.b', 'second': USE one of them"):
            dpsyn_sql.load(con, "people_adaptive")
        con.execute("USE second")
        assert dpsyn_sql.load(con, "people_adaptive").id == found.id
        assert con.execute("SELECT current_database()").fetchone() == ("second",)
        assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchone() == (0,)


def test_a_name_is_needed_among_several_and_a_replaced_release_is_gone():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS b FROM range(900) r(i)")
        options = {"into": "o", "name": "Only", "method": "independent"}
        first = dpsyn_sql.release(con, "t", **options)
        old = dpsyn_sql.load(con)
        assert old.id == first.id and len(old.sample(5)) == 5
        second = dpsyn_sql.release(con, "t", **options, version="2", replace=True)
        assert dpsyn_sql.load(con).id == second.id != first.id
        for release in (old, first):
            same_marginal(first, release, ["b"])
            with pytest.raises(InputError, match="'Only' is no longer in .*: it was replaced"):
                release.sample(5)
        dpsyn_sql.release(con, "t", into="p", name='it\'s "x"', epsilon=2, method="independent")
        assert len(dpsyn_sql.load(con, 'IT\'s "X"').sample(5)) == 5
        with pytest.raises(InputError, match="several releases in .*: give name="):
            dpsyn_sql.load(con)
        with pytest.raises(InputError) as caught:
            dpsyn_sql.load(con, "ONLYY")
        assert "There is no release 'ONLYY'" in str(caught.value)
        assert "'Only'" in str(caught.value) and 'it\\\'s "x"' in str(caught.value)


def test_pairs_that_were_too_large_to_store_are_refused_by_their_name(monkeypatch):
    monkeypatch.setattr("dpsyn_sql.fit.network.MOST_CELLS", 60)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i % 30 AS a, i % 20 AS b, i % 2 = 0 AS c FROM range(900) r(i)")
        columns = {
            name: {"type": "categorical", "categories": list(range(n))} for name, n in (("a", 30), ("b", 20))
        }
        fresh = dpsyn_sql.release(con, "t", domain={"columns": columns}, method="copula", epsilon=9)
        found = dpsyn_sql.load(con)
    same_marginal(fresh, found, ["a"])
    assert len(fresh.marginal(["a", "b"])) == 31 * 21
    assert "no table of 'a', 'b' is stored" in refusal(found, ["a", "b"])
    assert refusal(found, ["a", "b", "c"]) == refusal(fresh, ["a", "b", "c"])


# -- what cannot be loaded ----------------------------------------------------------------------------------

TABLES = (
    "releases",
    "attributes",
    "codes",
    "measurements",
    "axes",
    "measured_bins",
    "measured_cells",
    "model_cells",
    "shares",
)
DAMAGE = {f"no {table}": f"DROP TABLE dpsyn.{table}" for table in TABLES} | {
    "a column more": "ALTER TABLE dpsyn.codes ADD COLUMN note VARCHAR",
    "a column of another type": "ALTER TABLE dpsyn.measured_cells ALTER noisy TYPE VARCHAR",
    "NULL": "ALTER TABLE dpsyn.codes ALTER label DROP NOT NULL; UPDATE dpsyn.codes SET label = NULL WHERE code = 0",
    "another label": "UPDATE dpsyn.codes SET label = 'secret' WHERE code = 0",
    "a code less": "DELETE FROM dpsyn.codes WHERE code = 1",
    "a code twice": "INSERT INTO dpsyn.codes FROM dpsyn.codes",
    "a bin too far": "UPDATE dpsyn.codes SET bin = bin + 99 WHERE code = 0",
    "an error of nothing": "UPDATE dpsyn.variances SET precision = 0",
    "a precision below 0": "UPDATE dpsyn.variances SET precision = -precision",
    "an endless dispersion": "UPDATE dpsyn.variances SET dispersion = 'inf'",
    "an error of no attribute": "UPDATE dpsyn.variances SET marginal = '99'",
    "an error of no marginal": "UPDATE dpsyn.variances SET marginal = 'secret'",
    "an error twice": "INSERT INTO dpsyn.variances FROM dpsyn.variances",
    "another share": "UPDATE dpsyn.codes SET within = within + 1",
    "an attribute less": "DELETE FROM dpsyn.attributes WHERE attribute = 0",
    "another type": "UPDATE dpsyn.attributes SET sql_type = 'secret'",
    "another name": "UPDATE dpsyn.attributes SET name = 'secret' || attribute",
    "a size": "UPDATE dpsyn.attributes SET size = size + 1",
    "NULL among the releases": "ALTER TABLE dpsyn.releases ALTER total DROP NOT NULL; UPDATE dpsyn.releases SET total = NULL",
    "no sigma": "UPDATE dpsyn.measurements SET sigma = 'nan'",
    "an answer less": "DELETE FROM dpsyn.measurements WHERE measurement = 0",
    "a noisy cell less": "DELETE FROM dpsyn.measured_cells WHERE cell = 1",
    "a noisy cell twice": "INSERT INTO dpsyn.measured_cells FROM dpsyn.measured_cells",
    "cells of a model less": "DELETE FROM dpsyn.model_cells WHERE cell < 2",
    "a model cell beyond": "UPDATE dpsyn.model_cells SET cell = cell + 1000000000",
    "a probability below 0": "UPDATE dpsyn.model_cells SET probability = -probability",
    "an axis less": "DELETE FROM dpsyn.axes WHERE attribute = 1",
    "an axis of another size": "UPDATE dpsyn.axes SET size = 4000000000, stride = 1",
    "no axes": "DELETE FROM dpsyn.axes",
    "a certificate of nothing": "UPDATE dpsyn.releases SET certificate = '{}'",
    "a certificate that is none": "UPDATE dpsyn.releases SET certificate = '[1, \"secret\"]'",
    "a certificate of other columns": "UPDATE dpsyn.releases SET certificate = replace(certificate::VARCHAR, 'K\\u00f6ln', 'secret')",
    "a guarantee in words": "UPDATE dpsyn.releases SET certificate = replace(certificate::VARCHAR, '\"epsilon\"', '\"secret\"')",
    "a total that is none": "UPDATE dpsyn.releases SET total = 'inf'",
    "one number for two": "INSERT INTO dpsyn.releases FROM dpsyn.releases",
    "a view for a table": (
        "ALTER TABLE dpsyn.releases RENAME TO before;"
        "CREATE VIEW dpsyn.releases AS SELECT release, release_id, content AS name, created, total, certificate "
        f"FROM dpsyn.before, read_text('{__file__}')"
    ),
    "a certificate without end": "UPDATE dpsyn.releases SET certificate = repeat('[', 200000) || repeat(']', 200000)",
    "bins without end": "UPDATE dpsyn.attributes SET bins = 4000000000000",
    "cells without end": (
        "UPDATE dpsyn.axes SET size = 4000000000000, stride = 1, original = false; "
        "UPDATE dpsyn.measurements SET cells = 4000000000000; "
        "DELETE FROM dpsyn.axes a WHERE attribute > (SELECT min(attribute) FROM dpsyn.axes b "
        "WHERE (a.kind, a.number) = (b.kind, b.number))"
    ),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "small.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(PEOPLE)
        dpsyn_sql.release(con, "people", name="r", domain=CITIES, **UNITS, epsilon=9)
    return path


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_was_damaged_is_one_clear_error_of_ours(small, tmp_path, damage):
    path = tmp_path / "o.duckdb"
    shutil.copy(small, path)
    with duckdb.connect(str(path)) as con:
        con.execute(DAMAGE[damage])
        sources = (path, con)
        for con_or_path in reversed(sources):
            if con_or_path is path:
                con.close()
            with pytest.raises(InputError) as caught:
                dpsyn_sql.load(con_or_path, "r")
            error = caught.value
            assert type(error) is InputError and error.__cause__ is None and error.__context__ is None
            assert "damaged" in str(error) and "secret" not in str(error)
            assert "Error:" not in str(error) and "replace=True" in str(error)


def test_a_macro_that_is_gone_is_missed_only_by_rows(small, tmp_path):
    path = tmp_path / "o.duckdb"
    shutil.copy(small, path)
    with duckdb.connect(str(path)) as con:
        con.execute("DROP MACRO TABLE main.dpsyn_sample; DROP MACRO TABLE main.dpsyn_marginal")
    release = dpsyn_sql.load(path)
    assert len(release.marginal(["city"])) > 2
    with pytest.raises(InputError, match="cannot draw rows of release 'r'") as caught:
        release.sample(5)
    assert caught.value.__context__ is None


def test_releases_of_the_first_version_are_refused_before_anything_is_charged(small, tmp_path):
    path = tmp_path / "o.duckdb"
    shutil.copy(small, path)
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t AS SELECT i % 2 = 0 AS b FROM range(900) r(i)")
        con.execute("ALTER TABLE dpsyn.releases DROP COLUMN format")
        with pytest.raises(InputError, match=r"made by dpsyn_sql 0\.1, .*Keep the file.*another database"):
            dpsyn_sql.load(con, "r")
        with pytest.raises(TargetError, match=r"made by dpsyn_sql 0\.1, .*Nothing was read or charged"):
            dpsyn_sql.release(con, "t", name="new", ledger=tmp_path / "l")
        assert not (tmp_path / "l").exists()
        assert con.execute("SELECT count(*) FROM dpsyn.releases").fetchone() == (1,)


def test_what_is_no_stored_release_says_where_releases_are_stored(small, tmp_path):
    empty, text = tmp_path / "empty.duckdb", tmp_path / "notes.duckdb"
    duckdb.connect(str(empty)).close()
    text.write_text("notes " * 100)
    wrong = {
        empty: "There is no release in .*empty.duckdb'. A release is stored in schema 'dpsyn'",
        text: "cannot be opened as a DuckDB database",
        tmp_path / "nothing.duckdb": "There is no file",
        tmp_path / "nothing.parquet": "There is no file '.*nothing.parquet'.$",
        tmp_path: "There is no file",
        "": "path is empty",
        None: "give a DuckDB connection",
        7: "give a DuckDB connection",
    }
    for con, message in wrong.items():
        with pytest.raises(InputError, match=message):
            dpsyn_sql.load(con)
    with pytest.raises(InputError, match="name=7: give the name"):
        dpsyn_sql.load(small, 7)
    con = duckdb.connect(str(small))
    with pytest.raises(InputError, match="pass the connection itself"):
        dpsyn_sql.load(small)
    release = dpsyn_sql.load(con)
    con.close()
    for ask in (lambda: dpsyn_sql.load(con), lambda: release.sample(1)):
        with pytest.raises(InputError, match="connection cannot be used"):
            ask()
    with duckdb.connect() as nothing, pytest.raises(InputError, match="no release in the databases of this"):
        dpsyn_sql.load(nothing)
