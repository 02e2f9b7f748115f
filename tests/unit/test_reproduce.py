"""Repeated experiments: noise of the papers' budgets, scores by hand, and the page they write."""

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.gdp import half_mu_squared
from dpsyn_sql.errors import BudgetError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
reproduce = pytest.importorskip("reproduce", reason="the benchmarks are not beside the tests")
import report2019  # noqa: E402
from papers import proposal, wild  # noqa: E402
from papers.part import Shown, table  # noqa: E402


@pytest.mark.parametrize("rows", [700, 31_655])
@pytest.mark.parametrize("epsilon", [0.1, 0.8, 3.2])
def test_the_pair_that_is_asked_has_the_noise_of_the_reports_delta(epsilon, rows):
    wanted = Fraction(1, 10 * rows)
    with pytest.raises(BudgetError):
        Budget.from_epsilon(str(epsilon), wanted)  # the library refuses the report's delta
    asked, delta = wild.same_noise(epsilon, rows)
    assert delta == 1e-6 and asked > epsilon
    bought = Budget.from_epsilon(asked, delta).amount
    meant = half_mu_squared(Fraction(str(epsilon)), wanted * Fraction(9, 10))
    assert bought == pytest.approx(meant, rel=1e-9)
    assert Budget.from_epsilon(epsilon, delta).amount < bought


def test_squared_error_of_rows_is_that_of_full_tables():
    rng = np.random.default_rng(0)
    sizes = [3, 4, 2]
    source, copy = (np.stack([rng.integers(0, size, n) for size in sizes], axis=1) for n in (50, 37))
    for axes in [(0,), (0, 1), (2, 0, 1)]:
        tables = [
            np.histogramdd(rows[:, axes], [np.arange(sizes[axis] + 1) for axis in axes])[0] / len(rows)
            for rows in (source, copy)
        ]
        expected = np.square(tables[0] - tables[1]).sum()
        assert proposal.squared_error(source, copy, sizes, axes) == pytest.approx(expected)
    assert proposal.squared_error(source, source, sizes, (0, 1, 2)) == 0


def test_a_run_replaces_the_tables_of_its_part_and_leaves_the_text(tmp_path):
    page, command = tmp_path / "page.md", "script.py --only"
    first, last = reproduce.begins("a", command), reproduce.ends("a")
    page.write_text(f"# Page\n\nBefore.\n\n{first}\nold\n{last}\n\nAfter.\n")
    shown = Shown(table(["x", "y"], [[1, 2]], "caption"))
    for _ in range(2):
        reproduce.write("a", command, "page.md", shown, tmp_path)
        tables = "| x | y |\n|---|---|\n| 1 | 2 |\n\ncaption"
        assert page.read_text() == f"# Page\n\nBefore.\n\n{first}\n\n{tables}\n\n{last}\n\nAfter.\n"
    reproduce.write("b", command, "page.md", Shown("new"), tmp_path)
    assert page.read_text().endswith(
        f"After.\n\n## b\n\n{reproduce.begins('b', command)}\n\nnew\n\n{reproduce.ends('b')}\n"
    )


@pytest.mark.parametrize("script", [reproduce, report2019], ids=["reproduce", "report2019"])
def test_every_part_has_its_place_on_the_page(script):
    page = (reproduce.REPOSITORY / "docs" / script.PAGE).read_text(encoding="utf-8")
    for name in script.PARTS:
        assert page.count(reproduce.begins(name, script.COMMAND)) == page.count(reproduce.ends(name)) == 1
    for line in page.splitlines():
        if line.startswith("!["):
            file = line.rpartition("(")[2].rstrip(")")
            assert (reproduce.REPOSITORY / "docs" / file).exists(), file
