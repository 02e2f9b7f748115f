"""The scorer that benchmarks hold every synthesizer against."""

import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsyn_sql.errors import InputError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
comparison = pytest.importorskip("comparison", reason="the benchmarks are not beside the tests")


def test_distances_of_a_table_to_itself_to_a_shuffled_and_to_a_disjoint_one():
    rng = np.random.default_rng(1)
    source = np.repeat(rng.integers(0, 3, (50_000, 1)), 4, axis=1)
    shuffled = np.stack([rng.permutation(column) for column in source.T], axis=1)
    sizes = [6] * 4
    assert comparison.mean_distances(source, source, sizes) == (0, 0)
    assert comparison.mean_distances(source, source + 3, sizes) == (1, 1)
    # On the diagonal lies 1/3 in place of 1, then 1/9.
    assert comparison.mean_distances(source, shuffled, sizes) == pytest.approx((2 / 3, 8 / 9), abs=0.02)


def test_codes_of_two_tables_follow_one_rule():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE a AS FROM (VALUES (1, 0.0, 'x'), (0, 100.0, NULL)) t(code, number, word)")
        con.execute(
            "CREATE TABLE b AS "
            "FROM (VALUES (2, NULL, 'y'), (1, 49.9, 'x'), (1, 1e9, 'x')) t(code, number, word)"
        )
        columns = {"word": None, "number": (0, 100), "code": 3}
        (a, b), sizes = comparison.codes_of(con, ("a", "b"), columns)
    assert sizes == [3, comparison.EQUAL_BINS + 1, 3]
    assert a[:, 1].tolist() == [0, 19] and b[:, 1].tolist() == [20, 9, 19]
    assert a[:, 2].tolist() == [1, 0] and b[:, 2].tolist() == [2, 1, 1]
    words = np.concatenate([a[:, 0], b[:, 0]]).tolist()
    assert words[0] == words[3] == words[4] and len({*words}) == 3


def test_the_same_sets_of_attributes_are_chosen_every_time_and_none_comes_twice():
    assert comparison.chosen(4, 3) == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    for attributes, ways in ((14, 3), (128, 6)):  # few enough to list, and too many
        sets = comparison.chosen(attributes, ways, 200)
        assert sets == comparison.chosen(attributes, ways, 200)
        assert len({*sets}) == 200 and all(len({*one}) == ways and [*one] == sorted(one) for one in sets)


def test_squared_error_is_of_shares():
    rows = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    assert comparison.shares(rows, [2, 2], (0, 1)).tolist() == [0.25, 0.25, 0, 0.5]
    true = comparison.shares(rows, [2, 2], (1,))
    assert comparison.squared_error(true, np.array([0.5, 0.5])) == pytest.approx(2 * 0.25**2)


def figures_of(accuracy, method, epsilon, one, *two):
    return [accuracy.Figures("adult", method, epsilon, one, way, 2 * way, 1.5, 1.25, 300.0) for way in two]


def test_figures_of_releases_are_kept_and_read_back(tmp_path):
    accuracy = pytest.importorskip("accuracy", reason="the benchmarks are not beside the tests")
    file, releases = tmp_path / "a.csv", figures_of(accuracy, "adaptive", 0.1, 0.002, 0.04, 0.05)
    assert accuracy.stored(file) == []
    for one in releases:
        accuracy.keep(file, one)
    assert accuracy.stored(file) == releases
    assert len(file.read_text().splitlines()) == 3


def test_a_mean_is_better_or_worse_beyond_two_standard_errors_of_the_difference():
    accuracy = pytest.importorskip("accuracy", reason="the benchmarks are not beside the tests")
    mean = accuracy.mean_of(figures_of(accuracy, "adaptive", 1.0, 0.002, 0.1, 0.2, 0.3), "two_way")
    assert mean == pytest.approx((0.2, 0.1 / 3**0.5))
    stored = accuracy.Mean(0.100, 0.003)  # of the difference 0.005
    judged = [accuracy.verdict(accuracy.Mean(value, 0.004), stored) for value in (0.089, 0.091, 0.109, 0.111)]
    assert judged == ["better", "same", "same", "worse"]
    single = accuracy.mean_of(figures_of(accuracy, "adaptive", 1.0, 0.002, 0.1), "two_way")
    assert accuracy.verdict(single, stored) == "one release"


def test_the_table_of_accuracy_has_the_difference_from_the_stored_run(capsys):
    accuracy = pytest.importorskip("accuracy", reason="the benchmarks are not beside the tests")
    ours = figures_of(accuracy, "adaptive", 1.0, 0.002, 0.0899, 0.0901)
    theirs = figures_of(accuracy, "adaptive", 1.0, 0.002, 0.0999, 0.1001)
    accuracy.accuracy_table(ours, theirs, ["adult"], [1.0, 10.0])
    (line,) = [text for text in capsys.readouterr().out.splitlines() if text.startswith("| adult")]
    assert line.split(" | ")[4] == "0.0900 ± 0.0001, stored 0.1000: -10.0 % ± 0.1, **better**"
    assert line.split(" | ")[3].endswith("+0.0 % ± 0.0, same") and "0.0385 / 0.0887" in line
    accuracy.one_way_table(ours + figures_of(accuracy, "independent", 1.0, 0.001, 0.3, 0.3), ["adult"], 1.0)
    assert "| adult | 0.00200 ± 0.00000 | 0.00100 ± 0.00000 | 2.00 |" in capsys.readouterr().out


def test_a_measurement_by_cells_goes_on_where_it_stopped(tmp_path, monkeypatch):
    cells = pytest.importorskip("papers.cells", reason="the benchmarks are not beside the tests")
    monkeypatch.setattr(cells, "STORED", tmp_path)
    asked = []

    def measure(key):
        asked.append(key)
        if len(asked) == 4:
            raise KeyboardInterrupt
        if key == "c":
            raise InputError("too many columns\nand more")
        return {"svm": len(asked) / 10, "svm, counts": [1, 2]}

    with pytest.raises(KeyboardInterrupt):
        cells.Cells("some").fill("abc", measure, 2)
    assert asked == ["a", "b", "c", "a"]
    again = cells.Cells("some")
    assert again.refused == {"c": "too many columns"} and len(again.of("a")) == len(again.of("b")) == 1
    again.fill("abc", measure, 2)
    assert asked[4:] == ["a", "b"] and again.numbers == "2 runs each"
    assert cells.mean_and_spread(again.of("a"), "svm") == "0.300 ± 0.283"
    again.forget(["a"])
    assert {*again.runs} >= {"b"} and "a" not in again.runs and again.refused
    again.forget()
    assert again.runs == again.refused == {}


@pytest.mark.filterwarnings("ignore")
def test_a_release_without_noise_is_the_same_twice_and_what_differs_is_named(capsys):
    same = pytest.importorskip("same", reason="the benchmarks are not beside the tests")
    case = same.cases()["method independent"]
    other = case.tables.replace("range(4000)", "range(3999)")
    before, again, dearer, fewer = (
        same.made(one)
        for one in (
            case.changed(),
            case.changed(),
            case.changed(epsilon=2),
            replace(case.changed(), tables=other),
        )
    )
    assert before["summary"]["sum of answers"] == 6 * 4000  # of each column every row
    assert same.compare({"a": before}, {"a": again})
    assert not same.compare({"a": before, "b": before}, {"a": dearer})
    told = capsys.readouterr().out
    assert "| a | same |  |" in told and "| b | only before |  |" in told
    assert "| a | plan, price, questions, rows | question 1: sigma was " in told
    assert same.differences(before, fewer) == ["answers", "rows"]
    assert same.first_difference(before, fewer).startswith("another answer to question 1")
