"""A certificate that somebody else edited: a page without anything that runs, or one error of our own."""

import copy
import json
import random
import warnings

import duckdb
import numpy as np
import pytest
from unit.report.test_report_html import check_harmless

import dpsyn_sql
from dpsyn_sql.engines.stored_releases import opened_releases
from dpsyn_sql.errors import InputError
from dpsyn_sql.report.public.page import report_page, short_report
from dpsyn_sql.report.result import Release, ReleasedTable
from dpsyn_sql.report.stored import read_parts

pytestmark = pytest.mark.slow

SCRIPT = "<script>alert(1)</script>"
NUMBERS = [-1, 0, 0.5, 1e308, 10**400, -5000, float("nan"), float("inf"), -float("inf")]
OTHERS = [None, True, "", SCRIPT, "\ud800", "1e999", [], {}, [None], [[1]], [{}], ["x"], {"a": 1}]
GONE = object()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A release, its tables and its certificate."""
    folder = tmp_path_factory.mktemp("hostile")
    with duckdb.connect(str(folder / "a.duckdb")) as con, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        con.execute(
            "CREATE TABLE t AS SELECT (i % 5)::INTEGER AS a, CASE i % 3 WHEN 0 THEN 'x' WHEN 1 THEN 'y' END AS b "
            "FROM range(3000) AS r(i)"
        )
        dpsyn_sql.release(con, "t", into="o", epsilon=3, ledger=folder / "l")
        with opened_releases(con) as session:
            one = session.find(None)
            return one, session.tables(one)


def places(value, above=()):
    """Paths of all facts; of a list its first two items."""
    if above:
        yield above
    items = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for key, item in items:
        yield from places(item, (*above, key))


def shown(stored, facts):
    """The pages of a release with other facts."""
    one, tables = stored
    parts = read_parts(one.total, json.dumps(facts), tables)
    drawn = {"draw": None, "read": None}
    table = ReleasedTable(
        "o", parts.facts, parts.model, parts.measurements, **drawn, variances=parts.variances
    )
    release = Release({one.name: table}, "o", parts.facts, replayed=True, notes=())
    release.summary().encode()
    return report_page(release.public), short_report(release.public)


def changed(stored, place, value):
    """Pages of a changed fact, or None if the release is refused."""
    facts = copy.deepcopy(json.loads(stored[0].certificate))
    *above, last = place
    inner = facts
    for key in above:
        inner = inner[key]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    try:
        return shown(stored, facts)
    except InputError:
        return None


def some(stored, number):
    whole = [(p, v) for p in places(json.loads(stored[0].certificate)) for v in [*NUMBERS, *OTHERS, GONE]]
    return random.Random(7).sample(whole, min(number, len(whole)))


def test_any_changed_fact_is_a_harmless_page_or_an_error_of_ours(stored):
    pages = [changed(stored, *change) for change in some(stored, 600)]
    assert None in pages and any(pages)
    for page in (page for found in pages if found for page in found):
        assert SCRIPT not in page
    for page in next(found for found in pages if found):
        check_harmless(page)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("guarantee", "epsilon"), 0),
        (("guarantee", "epsilon"), -5000),
        (("guarantee", "epsilon"), 10**400),
        (("guarantee", "epsilon"), float("nan")),
        (("guarantee", "delta"), 1),
        (("guarantee", "rows_per_unit"), "1e999"),
        (("budget",), [[1]]),
        (("budget", "reserved_units_of_1e-15"), -1),
        *((("budget", name), GONE) for name in ("kind", "reserved_units_of_1e-15", "threshold_delta")),
        *((("mechanisms", 0, "sigma"), noise) for noise in (0, float("nan"), float("inf"), "x", None)),
        (("mechanisms", 0, "keys_per_unit"), "x"),
        (("mechanisms", 0, "event"), "other"),
        (("mechanisms",), 0.5),
        (("mechanisms", 0), ["x"]),
        (("not_promised", 0), True),
        (("versions",), ["x"]),
        (("losses",), {}),
        (("losses", "columns", 0, "name"), "\ud800"),
        (("losses", "pairs", "measured"), "many"),
        (("public_facts", "roles"), [{}]),
        (("source",), "x"),
    ],
)
def test_facts_that_no_release_has_are_refused(stored, place, value):
    assert changed(stored, place, value) is None


def test_rows_that_stay_together_are_no_way_in(stored):
    """Of a release of single rows: any attribute as the number of rows, and names that are markup."""
    names = [one["name"] for one in json.loads(stored[0].certificate)["public_facts"]["domain"]]
    for size in [*names, SCRIPT]:
        families = {"hidden": [SCRIPT], "persons": [SCRIPT, *names], "size": size, "order": SCRIPT}
        found = changed(stored, ("public_facts", "families"), families)
        for page in found:
            assert SCRIPT not in page
        check_harmless(found[0])
    for wrong in ([], {"hidden": []}, {"hidden": "x", "persons": [], "size": "x", "order": ""}, "x"):
        assert changed(stored, ("public_facts", "families"), wrong) is None


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("measurements", "sigma", 1e308),
        ("measurements", "sigma", 5e-324),
        ("measurements", "sigma", -1.0),
        ("variances", "precision", 5e-324),
        ("variances", "precision", float("inf")),
        ("variances", "dispersion", 1e308),
    ],
)
def test_errors_that_no_release_has_are_refused(stored, table, column, value):
    one, tables = stored
    other = np.full(len(tables[table][column]), value)
    with pytest.raises(InputError, match="was changed or is damaged"):
        read_parts(one.total, one.certificate, {**tables, table: {**tables[table], column: other}})
