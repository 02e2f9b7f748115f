"""Where a ledger is when nobody says."""

import os
import warnings

import pytest

from dpsyn_sql.errors import LedgerError
from dpsyn_sql.ledger.locations import default_place, find_ledger, memory_ledger, place_for
from dpsyn_sql.ledger.sqlite import MemoryLedger


def test_beside_the_database_that_owns_the_table(tmp_path):
    place = default_place(databases=[str(tmp_path / "warehouse.duckdb")])
    assert place == tmp_path / "warehouse.duckdb.dpsyn-ledger"


@pytest.mark.parametrize(
    "pattern, folder",
    [
        ("a/b/part.parquet", "a/b"),
        ("a/b/*.parquet", "a/b"),
        ("a/**/*.parquet", "a"),
        ("a/b?/x.csv", "a"),
        ("a/b[0-9]/x.csv", "a"),
        ("a/x-*/../y.csv", "a"),
        ("*.csv", ""),
        ("x.csv", ""),
    ],
)
def test_in_the_deepest_folder_before_a_wildcard(tmp_path, monkeypatch, pattern, folder):
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for written in (pattern, str(tmp_path / pattern)):
        assert default_place(pattern=written) == tmp_path / folder / ".dpsyn-ledger"


def test_links_lead_to_one_ledger(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "x.parquet").touch()
    (tmp_path / "link.parquet").symlink_to(real / "x.parquet")
    (tmp_path / "folder").symlink_to(real)
    names = ("real/x.parquet", "link.parquet", "folder/x.parquet")
    assert {default_place(files=[tmp_path / name]) for name in names} == {real / ".dpsyn-ledger"}
    assert default_place(pattern=f"{tmp_path}/folder/*.parquet") == real / ".dpsyn-ledger"
    (real / "w.duckdb").touch()
    (tmp_path / "w.duckdb").symlink_to(real / "w.duckdb")
    places = {default_place(databases=[str(folder / "w.duckdb")]) for folder in (tmp_path, real)}
    assert places == {real / "w.duckdb.dpsyn-ledger"}


def tree(tmp_path, *ledgers):
    """Two folders of a file each; ``ledgers`` are folders that have one."""
    for name in ("g/x", "g/y"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "1.parquet").touch()
    for folder in ledgers:
        (tmp_path / folder / ".dpsyn-ledger").touch()
    files = [tmp_path / "g/x/1.parquet", tmp_path / "g/y/1.parquet"]
    return {"pattern": f"{tmp_path}/g/*/*.parquet", "files": files}, {"files": files[1:]}


def test_a_ledger_serves_everything_below_its_folder(tmp_path):
    glob, file = tree(tmp_path, "g")
    assert default_place(**glob) == default_place(**file) == tmp_path / "g" / ".dpsyn-ledger"


@pytest.mark.parametrize("ledgers", [["g/y"], ["g/x", "g/y"], ["g", "g/y"], ["", "g"]])
def test_ledgers_of_subfolders_are_not_passed_over(tmp_path, ledgers):
    glob, file = tree(tmp_path, *ledgers)
    with pytest.raises(LedgerError, match=r"Several ledgers .*: .*dpsyn-ledger.*ledger=.*Nothing was read"):
        default_place(**glob)
    if len(ledgers) == 1 or "g" not in ledgers:  # no other one above or beside it
        assert default_place(**file) == tmp_path / "g/y/.dpsyn-ledger"
    else:
        with pytest.raises(LedgerError, match="Several ledgers"):
            default_place(**file)


def test_links_out_of_the_folder_ask_for_a_place(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b.parquet").touch()
    (tmp_path / "a" / "link.parquet").symlink_to(tmp_path / "b.parquet")
    with pytest.raises(LedgerError, match=r"Links of the source lead to files outside.*ledger="):
        default_place(pattern=f"{tmp_path}/a/*.parquet", files=[tmp_path / "a/link.parquet"])


def test_two_links_to_one_ledger_are_one(tmp_path):
    glob, file = tree(tmp_path)
    (tmp_path / "central").touch()
    for folder in ("g", "g/y"):
        (tmp_path / folder / ".dpsyn-ledger").symlink_to(tmp_path / "central")
    assert os.path.realpath(default_place(**glob)) == os.path.realpath(default_place(**file))


def test_a_ledger_behind_a_broken_link_is_not_passed_over(tmp_path):
    _, file = tree(tmp_path)
    (tmp_path / "g" / ".dpsyn-ledger").symlink_to(tmp_path / "unmounted" / "ledger")
    assert default_place(**file) == tmp_path / "g/.dpsyn-ledger"


def test_names_with_wildcards_in_them_are_names(tmp_path):
    folder = tmp_path / "[2024]"
    folder.mkdir()
    (folder / "x*.csv").touch()
    (tmp_path / "link").symlink_to(folder)
    for name in (folder / "x*.csv", tmp_path / "link" / "x*.csv"):
        assert default_place(files=[name]) == folder / ".dpsyn-ledger"


@pytest.mark.parametrize(
    "source",
    [
        {"databases": ["md:cloud"]},
        {"files": ["s3://bucket/x.parquet"]},
        {"files": ["https://host/x.csv"]},
        {"databases": ["/a.duckdb", "/b.duckdb"]},
        {"databases": ["/a.duckdb", None]},
        {"databases": ["/a.duckdb"], "files": ["/x.csv"]},
        {"files": ["a/x.csv", "b/x.csv"]},
        {"pattern": "s3://bucket/*.parquet"},
        {"files": ["/no/such/folder/x.csv"]},
        {},
    ],
)
def test_no_default_place_asks_for_one(source):
    with pytest.raises(LedgerError, match=r"ledger=.*DPSYN_LEDGER.*Nothing was read"):
        default_place(**source)


def test_a_folder_that_cannot_be_written_asks_for_a_place(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    with pytest.raises(LedgerError, match="cannot be written"):
        default_place(files=[tmp_path / "x.csv"])


def test_one_database_several_times_is_one(tmp_path):
    assert default_place(databases=[str(tmp_path / "a.db")] * 3) == tmp_path / "a.db.dpsyn-ledger"


@pytest.mark.parametrize("memory", [None, "", ":memory:"])
def test_a_database_in_memory_has_no_file(memory):
    assert place_for(databases=[memory], environment={}) is None


def test_a_ledger_in_memory_is_one_for_an_instance_and_warns_once():
    with pytest.warns(UserWarning, match="ends with the database"):
        ledger = memory_ledger("this one")
    assert isinstance(ledger, MemoryLedger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert memory_ledger("this one") is ledger
    with pytest.warns(UserWarning):
        assert memory_ledger("another one") is not ledger


def test_the_callers_choice_comes_first_then_the_variable(tmp_path):
    environment = {"DPSYN_LEDGER": str(tmp_path / "variable")}
    for chosen, expected in ((tmp_path / "chosen", "chosen"), (None, "variable")):
        place = place_for(ledger=chosen, databases=[None], environment=environment)
        assert place == tmp_path / expected
    assert place_for(files=[tmp_path / "x.csv"], environment={}) == tmp_path / ".dpsyn-ledger"


def test_a_second_ledger_of_a_source_is_told(tmp_path):
    usual, other = tmp_path / "w.duckdb.dpsyn-ledger", tmp_path / "other"
    given = {"databases": [str(tmp_path / "w.duckdb")], "environment": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert place_for(ledger=other, **given) == other  # there is no other yet
    usual.touch()
    other.symlink_to(usual)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert place_for(ledger=other, **given) == other  # the same one
    other.unlink()
    with pytest.warns(UserWarning, match="There is also a ledger beside the source"):
        assert place_for(ledger=other, **given) == other


@pytest.mark.parametrize("variable", ["spent.db", ":memory:", "~/spent.db", "./:memory:"])
def test_a_ledger_that_the_next_call_does_not_find_is_refused(variable):
    """Each call would spend again, and no record would show it."""
    with pytest.raises(LedgerError, match=r"Nothing was read"):
        place_for(files=["x.csv"], environment={"DPSYN_LEDGER": variable})
    with pytest.raises(LedgerError):
        find_ledger(None, {"DPSYN_LEDGER": variable})
    with pytest.raises(LedgerError, match=r"would be forgotten"):
        place_for(ledger=":memory:", files=["x.csv"], environment={})
