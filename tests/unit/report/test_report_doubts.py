"""What a release says when its output cannot say what goes with what: once, and for every method."""

import warnings

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.methods import METHODS

NOT_MEASURED, NO_PAIR = "No pair of columns is measured", "The noise is too large to tell"
ABOUT_PAIRS = (NOT_MEASURED, NO_PAIR, "too large for a table")
ADAPTING = sorted(name for name, method in METHODS.items() if not method.static)


def said(method, sizes, epsilon=5):
    """Notes of a release of columns of so many codes, and its warnings, that are about pairs."""
    spec = {
        f"x{i}": {"type": "numeric", "lower": 0, "upper": size - 1, "bins": size}
        for i, size in enumerate(sizes)
    }
    columns = ", ".join(f"(i % {size})::INTEGER AS x{i}" for i, size in enumerate(sizes))
    with duckdb.connect() as con, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        con.execute(f"CREATE TABLE t AS SELECT {columns} FROM range(2000) r(i)")
        options = {"domain": {"columns": spec}, "epsilon": epsilon, "seed": 1, "ledger": MemoryLedger()}
        notes = dpsyn_sql.release(con, "t", method=method, **options).notes
    texts = notes, [str(one.message) for one in warned]
    return tuple([text for text in part if any(start in text for start in ABOUT_PAIRS)] for part in texts)


@pytest.mark.parametrize("method", ADAPTING)
def test_a_release_in_which_nothing_stands_out_warns_once(method):
    notes, warned = said(method, (6, 6), epsilon="0.0001")
    assert notes == warned and len(notes) == 1 and notes[0].startswith(NO_PAIR)


@pytest.mark.parametrize(
    "method", ["independent", *({"name": "copula", "correlation": c} for c in ("none", "identity", "ones"))]
)
def test_a_method_that_measures_no_pair_says_so_once_and_does_not_warn(method):
    notes, warned = said(method, (3, 3))
    assert len(notes) == 1 and notes[0].startswith(NOT_MEASURED) and not warned


@pytest.mark.slow
@pytest.mark.parametrize("method", ["adaptive", "privbayes"])
def test_columns_too_large_for_any_pair_are_named_in_a_warning(method):
    notes, warned = said(method, (3000, 3000))
    assert notes == warned and len(notes) == 1 and "'x0', 'x1' are too large" in notes[0]
    notes, warned = said(method, (40, 40, 2**17))
    assert notes == warned and len(notes) == 1 and "'x2' is too large" in notes[0]


@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"independent"}))
def test_a_release_with_pairs_says_nothing_of_them(method):
    assert said(method, (3, 6)) == ([], [])
    assert said(method, (3,)) == ([], [])
