"""Limits on memory and time: what they change, what they may not, and what they refuse."""

import math
import warnings

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.errors import InputError, PlanTooLarge, ReleaseChanged
from dpsyn_sql.ledger.sqlite import MemoryLedger

pytestmark = pytest.mark.slow


def spec(columns, size):
    names = [f"a{i}" for i in range(columns)]
    return {"columns": {name: {"type": "categorical", "categories": list(range(size))} for name in names}}


SPEC, SMALL = spec(10, 300), spec(6, 30)


def written(path, columns, size):
    listed = ", ".join(f"(i * {i + 7} + i // {i + 2}) % {size} AS a{i}" for i in range(columns))
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT {listed} FROM range(3000) AS r(i)) TO '{path}'")
    return path


@pytest.fixture
def source(tmp_path):
    """Pairs of 90,000 cells: what a limit is felt by."""
    return written(tmp_path / "t.parquet", 10, 300)


@pytest.fixture
def small(tmp_path):
    return written(tmp_path / "t.parquet", 6, 30)


def released(source, tmp_path, into="o.parquet", domain=SPEC, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(
            None,
            source,
            into=tmp_path / into,
            domain=domain,
            ledger=tmp_path / "ledger",
            name="r",
            rows=100,
            **options,
        )


BAD = {
    "unparsable": (dict(limits={"memory": "plenty"}), InputError, "limits={'memory': 'plenty'}"),
    "zero": (dict(limits={"memory": 0}), InputError, "'memory': 0}"),
    "negative": (dict(limits={"memory": "-1GB"}), InputError, "'memory': '-1GB'"),
    "below any release": (dict(limits={"memory": "100MB"}), InputError, "512MiB"),
    "no time": (dict(limits={"time": 0}), InputError, "'time': 0}"),
    "nan": (dict(limits={"time": math.nan}), InputError, "'time': nan}"),
    "time as text": (dict(limits={"time": "5 s"}), InputError, "'time': '5 s'}"),
    "too small for the plan": (dict(limits={"memory": "512MiB"}, method="copula"), PlanTooLarge, "needs limits={'memory': '[0-9]+MB'}"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_refused_before_anything_is_charged(source, tmp_path, case):
    options, error, message = BAD[case]
    ledger, before = MemoryLedger(), sorted(tmp_path.iterdir())
    for call in (dpsyn_sql.release, dpsyn_sql.plan):
        with pytest.raises(error, match=message) as caught:
            call(None, source, domain=SPEC, ledger=ledger, **options)
        assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert ledger.overview().releases == () and sorted(tmp_path.iterdir()) == before


def test_the_setting_of_a_callers_connection_is_the_callers(tmp_path):
    with duckdb.connect(str(tmp_path / "w.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT true AS b")
        ledger = MemoryLedger()
        with pytest.raises(InputError, match="settings of your connection"):
            dpsyn_sql.release(con, "t", limits={"memory": "1GB"}, ledger=ledger)
        assert ledger.overview().releases == ()


def test_a_roomy_limit_is_the_same_release_a_tight_one_another(small, tmp_path):
    options = {"domain": SMALL, "method": "adaptive"}
    first = released(small, tmp_path, **options)
    again = released(small, tmp_path, limits={"memory": "8GB", "time": "1e6"}, **options)
    assert again.replayed and again.id == first.id
    with pytest.raises(ReleaseChanged):
        released(small, tmp_path, "p.parquet", limits={"memory": "512MiB"}, **options)
    text = dpsyn_sql.plan(
        None, small, domain=SMALL, ledger=tmp_path / "l", limits={"memory": "512MiB"}
    ).verbose()
    assert "within the memory limit" in text


def test_short_of_time_the_answers_are_the_same_and_a_note_says_what_was_left_out(small, tmp_path):
    options = {"domain": SMALL, "method": "adaptive", "epsilon": 50}
    plain = released(small, tmp_path, **options)
    assert not any("'time'" in note for note in plain.notes)
    hurried = released(small, tmp_path, limits={"time": 1e-3}, replace=True, **options)
    assert hurried.replayed and hurried.id == plain.id
    for one, other in zip(plain.measurements, hurried.measurements, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    (note,) = [note for note in hurried.notes if "'time'" in note]
    assert "the last fit stopped early" in note and "not balanced" in note
    assert "stopped early" not in str(hurried.certificate())


def test_the_instance_gets_its_share(small, tmp_path, monkeypatch):
    """Both the session that reads and the one that writes."""
    from dpsyn_sql.engines import instance

    asked, made = [], instance.private_instance
    monkeypatch.setattr(
        instance, "private_instance", lambda limit=None: (asked.append(limit), made(limit))[1]
    )
    released(small, tmp_path, domain=SMALL, method="independent", limits={"memory": "1GB"})
    assert asked == [asked[0]] * len(asked) and asked[0].endswith("MiB") and len(asked) >= 2
