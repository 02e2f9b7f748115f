"""The public report of real releases: of every method, fresh and loaded; hostile names; no private value."""

import json
import secrets
import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner
from unit.report.test_report_html import check_harmless

import dpsyn_sql
from dpsyn_sql.cli.main import app
from dpsyn_sql.methods import METHODS
from dpsyn_sql.report.public import accuracy
from dpsyn_sql.report.public.page import report_page

pytestmark = pytest.mark.slow

DOMAIN = {
    "columns": {
        "a": {"type": "numeric", "lower": 0, "upper": 4},
        "b": {"type": "categorical", "categories": ["x", "y"]},
        "day": {"type": "temporal", "lower": "2020-01-01", "upper": "2020-12-31"},
    }
}


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (i % 5)::INTEGER AS a, CASE i % 3 WHEN 0 THEN 'x' WHEN 1 THEN 'y' END AS b, "
            "DATE '2020-01-01' + (i % 300)::INTEGER AS day FROM range(3000) AS r(i)"
        )
        yield connection


@pytest.fixture
def released(con, tmp_path):
    def release(source="t", **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dpsyn_sql.release(
                con,
                source,
                **{"into": "o", "epsilon": 3, "ledger": tmp_path / "l", "domain": DOMAIN, **options},
            )

    return release


def texts(page):
    return " ".join("".join(check_harmless(page).texts).split())


@pytest.mark.parametrize("method", [*METHODS])
def test_a_report_of_every_method_fresh_and_loaded(con, released, method, tmp_path):
    release = released(method=method)
    path = release.report(tmp_path / "r.html")
    told = texts(path.read_text(encoding="utf-8"))
    for part in ("bets 50:50", "Good for", "Not good for", "95 %", "What goes with what", "How to cite it"):
        assert part in told
    assert (release.id in told and "3,0" in told) or "2,9" in told
    loaded = texts(report_page(dpsyn_sql.load(con, "o").public))
    for part in ("bets 50:50", "What the privacy budget was spent on", release.id):
        assert part in loaded
    short = release._repr_html_()
    assert "What was lost" in texts(short) or "Pairs of columns" in texts(short)
    assert "<style" not in short


def test_a_release_of_units_with_several_rows_is_loaded_and_has_a_page(con, released):
    """It asks how many rows a unit has, a question about no column."""
    release = released("SELECT *, a AS who FROM t", unit="who", most=3, weights=False)
    assert any(step.get("column", "") is None for step in release.certificate()["mechanisms"])
    told = texts(report_page(dpsyn_sql.load(con, "o").public))
    assert "What the privacy budget was spent on" in told


def test_pairs_have_the_errors_of_their_estimates_fresh_and_loaded(con, released):
    release = released()
    loaded = dpsyn_sql.load(con, "o")
    assert release.variances.components
    for one in (release, loaded):
        found = [
            pair
            for pair in accuracy.pairs_of(one.model, one.measurements, one.variances).strongest
            if pair.exactness is not None
        ]
        assert len(found) == 3
        for pair in found:
            table = one.marginal([pair.first, pair.second])
            near = table.iloc[(np.log(table["estimate"] + 1) - np.log(501)).abs().argsort()[:9]]
            assert pair.exactness.within == pytest.approx(1.96 * near["estimate_error"].median(), rel=1e-4)
            assert pair.exactness.count == pytest.approx(near["estimate"].median(), rel=1e-4)
        told = texts(report_page(one.public))
        assert "A count of" in told and "noisy count of" not in told
        assert "FROM dpsyn_marginal('o', ['a']);" in told


HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</svg></style><b>",
    "a\x01\x07\u202eb",
]


def test_hostile_names_are_text_everywhere(con, released, tmp_path):
    columns = [
        *(f"{name}{place}" for place, name in enumerate(HOSTILE)),
        "long" * 60,
        "estimate",
        "estimate_error",
    ]
    categories = [*HOSTILE, "x" * 400, "&amp;", ""]
    generator = np.random.default_rng(5)
    frame = pd.DataFrame({name: generator.choice(categories, 500) for name in columns})
    domain = {"columns": {name: {"type": "categorical", "categories": categories} for name in columns}}
    release = dpsyn_sql.release(frame, "<i>x", epsilon=20, ledger=tmp_path / "f", domain=domain)
    for page in (report_page(release.public), release._repr_html_()):
        found = check_harmless(page)
        assert "script" not in found.tags and "img" not in found.tags and "b" not in found.tags
    assert "<script>alert(1)</script>0" in "".join(check_harmless(report_page(release.public)).texts)


def test_a_private_value_a_folder_and_a_file_of_the_source_are_not_in_the_page(tmp_path):
    canary, folder = f"canary{secrets.token_hex(8)}", f"folder{secrets.token_hex(8)}"
    number = 7_654_321
    (tmp_path / folder).mkdir()
    source = tmp_path / folder / "people.parquet"
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT CASE WHEN i = 5 THEN $canary ELSE 'k' || i % 3 END AS word, "
            "CASE WHEN i = 6 THEN $number ELSE i % 50 END AS figure FROM range(4000) AS r(i)) "
            f"TO '{source}' (FORMAT parquet)",
            {"canary": canary, "number": number},
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = dpsyn_sql.release(
            source, into=tmp_path / folder / "out.parquet", epsilon=1, ledger=tmp_path / folder / "ledger"
        )
    page = (
        report_page(release.public)
        + release._repr_html_()
        + report_page(dpsyn_sql.load(tmp_path / folder / "out.parquet").public)
    )
    assert (
        "people.parquet" in page and "out.parquet" in page and "k1" in page
    )  # the search finds what is there
    for secret in (canary, str(number), f"{number:,}", folder, str(tmp_path)):
        assert secret not in page


def test_a_wide_table_has_a_limited_matrix_and_says_what_is_left_out(con, released, monkeypatch):
    monkeypatch.setattr(accuracy, "MOST_COLUMNS", 4)
    monkeypatch.setattr(accuracy, "MOST_PAIRS", 5)
    columns = ", ".join(f"((i // {place + 1}) % 2)::INTEGER AS c{place}" for place in range(12))
    con.execute(f"CREATE TABLE w AS SELECT {columns} FROM range(3000) AS r(i)")
    domain = {"columns": {f"c{place}": {"type": "numeric", "lower": 0, "upper": 1} for place in range(12)}}
    release = released("w", domain=domain)
    found = accuracy.pairs_of(release.model, release.measurements, release.variances)
    assert len(found.columns) == 4
    assert found.possible == 66
    assert found.computed <= 5 + 6
    told = texts(report_page(release.public))
    assert f"the strength of {66 - found.computed} pairs was not computed" in told


# -- where it is written ----------------------------------------------------------------------------


def test_the_command_writes_the_same_page(tmp_path, monkeypatch):
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as con:
        con.execute(
            "CREATE TABLE t AS SELECT (i % 5)::INTEGER AS a, 'x' AS b, DATE '2020-01-01' AS day FROM range(900) AS r(i)"
        )
        for epsilon, name in ((1, "one"), (2, "two")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                dpsyn_sql.release(
                    con,
                    "t",
                    into=name,
                    epsilon=epsilon,
                    domain=DOMAIN,
                    method="independent",
                    ledger=tmp_path / "l",
                )

    def run(*arguments):
        return CliRunner().invoke(app, ["report", *map(str, arguments)])

    page = tmp_path / "r.html"
    monkeypatch.chdir(tmp_path)
    named = run(file, "two")
    assert named.exit_code == 0 and "Wrote two_report.html" in named.output + (named.stderr or "")
    assert (tmp_path / "two_report.html").read_text(encoding="utf-8") == report_page(
        dpsyn_sql.load(file, "two").public
    )
    done = run(file, "two", "--into", page, "--json")
    assert done.exit_code == 0
    loaded = dpsyn_sql.load(file, "two")
    assert json.loads(done.stdout) == {"release": "two", "id": loaded.id, "file": str(page), "warnings": []}
    assert page.read_text(encoding="utf-8") == report_page(loaded.public)
    for arguments, words in (
        ((file, "--into", page), "two"),
        ((file, "three", "--into", page), "no release 'three'"),
        ((file, "two", "--into", tmp_path), "is a folder"),
        ((file, "two", "--into", tmp_path / "r.txt"), "no ending of a page"),
        ((tmp_path / "none.duckdb", "--into", page), "none.duckdb"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 2
        assert words in refused.output + (refused.stderr or "")
