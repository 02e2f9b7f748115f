"""What a plan says of the error to expect, from public facts alone."""

import re

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.accounting.budget import WEAK_EPSILON, weakness
from dpsyn_sql.accounting.events import GaussianEvent, LaplaceEvent
from dpsyn_sql.private.measure.noise import ExactNoise, mean_error

LINE = r"a table of (one column|two columns) with ([\d,]+) cells is off by about ([\d,.]+) rows in all: ([\d,.]+) rows in the wrong cell"

pytestmark = pytest.mark.filterwarnings("ignore:The source is a database in memory")


@pytest.fixture
def con():
    with duckdb.connect() as con:
        con.execute("CREATE TYPE letter AS ENUM ('a', 'b', 'c', 'd')")
        con.execute("CREATE TABLE t AS SELECT 'a'::letter AS x, 'b'::letter AS y, true AS z")
        yield con


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.3, 0.8, 1.9, 2.1, 30.0])
def test_the_mean_error_is_that_of_the_noise(scale):
    zeros, noise = np.zeros(40_000, np.int64), ExactNoise()
    for event, drawn in (
        (GaussianEvent(scale, 1), noise.gaussian(zeros, scale)),
        (LaplaceEvent(scale, 1), noise.laplace(zeros, scale)),
    ):
        expected = mean_error(event)
        # Five standard errors of the mean; the square of |noise| has at most three times its mean squared.
        assert abs(np.abs(drawn).mean() - expected) <= 5 * drawn.std() / 200 + 1e-3


def test_the_error_of_typical_tables_is_told_for_known_and_reserved_steps(con):
    said = dpsyn_sql.plan(con, "t").verbose()
    assert [(what, cells) for what, cells, *_ in re.findall(LINE, said)] == [
        ("one column", "3"),
        ("one column", "5"),
        ("two columns", "15"),
    ]
    assert "if all of them are measured whole" in said
    for deviation, (_, cells, off, half) in zip(
        re.findall(r"deviation ([\d.]+) rows a cell", said)[1:], re.findall(LINE, said), strict=True
    ):
        expected = float(deviation) * np.sqrt(2 / np.pi) * int(cells)
        assert float(off) == pytest.approx(expected, abs=0.6) and float(half) == pytest.approx(
            expected / 2, abs=0.6
        )
    con.execute("CREATE TABLE w AS SELECT x, y, x AS a, y AS b, z FROM t")
    assert (
        "if it paid for 5 tables, as many as there are columns: noise of"
        in dpsyn_sql.plan(con, "w").verbose()
    )


def test_a_plan_fits_a_screen_and_begins_with_what_matters_most():
    """Fifteen columns of unknown values: what is written, what it costs, whether it fits, how far off counts are."""
    with duckdb.connect() as con:
        columns = ", ".join(f"i AS n{i}, 'x' || i AS s{i}" for i in range(8))
        con.execute(f"CREATE TABLE wide AS SELECT {columns} FROM range(3) AS r(i)")
        planned = dpsyn_sql.plan(con, "wide")
    lines = str(planned).splitlines()
    labels = [line[:12].strip() for line in lines]
    assert labels[:6] == ["Writes", "Costs", "Release", "Account", "Ledger", "Errors"] and len(lines) <= 20
    assert lines[0].endswith("wide_synthetic: 16 columns of synthetic rows")
    assert lines[1] == "Costs       epsilon = 1, delta = 1e-09" and "a new debit, which fits" in lines[2]
    deviation = float(re.findall(r"one-way.* deviation ([\d.]+) rows a cell", planned.verbose())[0])
    assert f"a count of one column is within about ±{2 * deviation:.0f} rows in 95 % of releases" in lines[5]
    assert planned.verbose().splitlines()[: len(lines) - 1] == lines[:-1]


def test_a_plan_says_what_questions_are_not_known_yet_and_that_they_need_the_encoded_table(con):
    con.execute("CREATE TABLE w AS SELECT x, y, x AS a, y AS b, z FROM t")
    said = dpsyn_sql.plan(con, "w", method="dpsyn").verbose()
    assert "Counting    encoded (one-way marginals, then those that noisy answers lead to)" in said
    assert "later at most 4,194,304 further cells, 33.6 MB" in said
    assert "marginals of at most 5 attributes and 1,875 cells each, 4,194,304 cells in all" in said
    private = dpsyn_sql.plan(con, "w", method="privbayes").verbose()
    assert "about other marginals of at most 5 attributes" in private
    assert "Counting    scan" in dpsyn_sql.plan(con, "w", method="independent").verbose()


def test_the_first_lines_tell_the_error_of_the_noisiest_table(con):
    planned = dpsyn_sql.plan(con, "t", method="adaptive")
    one_ways = re.findall(r"one-way.* deviation ([\d.]+) rows a cell", planned.verbose())
    (told,) = re.findall(r"of one column is within about ±([\d,.]+) rows", str(planned))
    assert len(set(one_ways)) == 2  # columns of other sizes have other noise
    assert float(told) == pytest.approx(2 * max(map(float, one_ways)), rel=0.05)
    assert "two columns is within about" in str(planned) and "such tables are measured" in str(planned)


def test_no_row_enters_the_expected_error(con):
    before = dpsyn_sql.plan(con, "t", method="copula").verbose()
    con.execute("INSERT INTO t SELECT 'a', 'b', true FROM range(5000)")
    assert dpsyn_sql.plan(con, "t", method="copula").verbose() == before


def test_an_epsilon_that_hardly_protects_is_called_so(con):
    assert weakness(WEAK_EPSILON) is None
    assert "e^25, more than 10^10, times as likely" in weakness("25")
    assert "10^434" in weakness(1000)
    with pytest.warns(UserWarning, match="epsilon=25 protects hardly anybody"):
        dpsyn_sql.plan(con, "t", epsilon=25)
    with pytest.warns(UserWarning, match="protects hardly anybody"):
        made = dpsyn_sql.release(con, "t", epsilon="20.5", method="independent")
    assert any("protects hardly anybody" in note for note in made.notes)


@pytest.mark.parametrize("declared", [False, True])
def test_a_plan_says_what_becomes_of_infinity(con, declared):
    con.execute("CREATE TABLE n AS SELECT 1.5::DOUBLE AS f, 2::INTEGER AS i, 'a'::letter AS x")
    domain = {"columns": {"f": {"type": "numeric", "edges": [0, 1, 10]}}} if declared else None
    lines = dpsyn_sql.plan(con, "n", domain=domain).verbose().splitlines()
    told = "    infinity and -infinity count in the outer bins, and are written as finite numbers"
    assert lines.count(told) == 1
    assert lines[lines.index(told) - 1].startswith("  f: ")
