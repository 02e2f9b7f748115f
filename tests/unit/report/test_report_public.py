"""Figures of the public report against closed forms and brute force."""

import math
from dataclasses import replace
from datetime import date, time
from decimal import Decimal

import numpy as np
import pytest
from scipy.stats import norm

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import GaussianEvent, event_to_dict
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.labels import (
    code_words,
    percent,
    public_name,
    release_name,
    rounded_up,
    type_words,
)
from dpsyn_sql.report.losses import joined_columns
from dpsyn_sql.report.public.accuracy import (
    Exactness,
    Pair,
    Pairs,
    accuracy_lines,
    count_to_report,
    cramers_v,
    measured_tables,
    of_all_counts,
    of_estimates,
    smallest_group,
)
from dpsyn_sql.report.public.columns import ColumnFigures, histogram, largest, position, special
from dpsyn_sql.report.public.page import TableReport, _parts
from dpsyn_sql.report.public.promise import Promise, chance_in_words, of_hundred, promise_of, spending_of


def certificate(epsilon, delta, threshold=0.0):
    budget = Budget.from_epsilon(epsilon, delta)
    return {
        "guarantee": {"epsilon": epsilon, "delta": delta, "privacy_unit": "row", "rows_per_unit": 1},
        "budget": {
            "kind": budget.kind,
            "reserved_units_of_1e-15": budget.amount,
            "threshold_delta": threshold,
        },
    }


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
def test_a_pure_promise_is_the_bet_of_randomised_response(epsilon):
    found = promise_of(certificate(epsilon, 0))
    assert found.mu is None
    assert found.best == pytest.approx(math.exp(epsilon) / (1 + math.exp(epsilon)))
    assert found.of_group(3) == pytest.approx(math.exp(3 * epsilon) / (1 + math.exp(3 * epsilon)))


def test_exact_accounting_is_the_bet_between_two_normal_laws():
    found = promise_of(certificate(1, 1e-9))
    assert found.mu == pytest.approx(0.181397, abs=1e-6)
    # Between N(0, 1) and N(mu, 1) the best guess is whether the output is above mu / 2.
    right = (norm.cdf(found.mu / 2) + norm.sf(found.mu / 2, loc=found.mu)) / 2
    assert right <= found.best <= right + 1e-8
    assert found.best < found.by_epsilon
    assert of_hundred(found.best) == "54 of 100"
    assert of_hundred(found.by_epsilon) == "74 of 100"
    five = norm.cdf(5 * found.mu / 2)
    assert five <= found.of_group(5) <= five + 1e-6


@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("threshold", [0.0, 1e-9, 1e-4])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_bet_about_several_rows_covers_the_best_test_of_all(mu, threshold, rows):
    """One row more raises the chance a of a result to G(a) + threshold at most, again and again."""
    without = np.concatenate([[0.0], np.geomspace(1e-300, 1, 20_001), 1 - np.geomspace(1e-16, 0.5, 2_001)])
    with_rows = without
    for _ in range(rows):
        with_rows = np.minimum(1.0, threshold + norm.cdf(norm.ppf(with_rows) + mu))
    best = ((1 + with_rows - without) / 2).max()
    found = Promise(100.0, threshold, 1.0, 1.0, mu).of_group(rows)
    assert best <= found


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0), (1.0, 1e-9), (1.0, 1e-3), (3.0, 1e-4)])
def test_the_bet_by_epsilon_and_delta_covers_its_worst_mechanism(epsilon, delta):
    """Again and again a result becomes e^epsilon times as likely, plus delta, in both directions."""
    e = math.exp(epsilon)
    without = np.linspace(0, 1, 100_001)
    with_rows = without
    for _ in range(5):
        with_rows = np.minimum(e * with_rows + delta, 1 - np.maximum(0, (1 - delta - with_rows) / e))
    found = Promise(epsilon, delta, 1.0, None, None).of_group(5)
    assert ((1 + with_rows - without) / 2).max() <= found + 1e-12


@pytest.mark.parametrize(
    ("chance", "words"),
    [(0.5, "50 of 100"), (0.75, "75 of 100"), (0.75 + 1e-9, "76 of 100"), (0.531, "54 of 100")],
)
def test_bets_are_rounded_up(chance, words):
    assert of_hundred(chance) == words


def test_a_large_epsilon_is_weak_and_never_promises_less_than_guessing():
    assert promise_of(certificate(9, 1e-9)).weak
    assert not promise_of(certificate(8, 1e-9)).weak
    assert of_hundred(promise_of(certificate(25, 0)).best) == "practically all"
    assert of_hundred(promise_of(certificate(6, 0)).best) == "99.76 of 100"
    assert promise_of(certificate(1000, 1e-9)).of_group(5) <= 1


@pytest.mark.parametrize(
    ("delta", "words"), [(1e-9, "one in a billion"), (1e-6, "one in a million"), (2e-7, "one in 5 million")]
)
def test_a_tiny_chance_in_words(delta, words):
    assert chance_in_words(delta) == words


def part(name, **shown):
    """A part of the page with what it shows."""
    values = dict.fromkeys(TableReport.__dataclass_fields__) | {"facts": {}} | shown
    return " ".join(str(getattr(_parts(), name)(TableReport(**values))).split())


# -- figures ----------------------------------------------------------------------------------------


def figures(attribute, rows, errors=None, error_of="noise"):
    rows = np.asarray(rows, dtype=float)
    errors = np.full(rows.size, np.nan) if errors is None else np.asarray(errors, dtype=float)
    return ColumnFigures(attribute, tuple(code_words(attribute)), rows, errors, error_of)


def test_mean_and_quartiles_are_those_of_the_rows_that_are_written():
    attribute = Attribute("a", "INTEGER", "numeric", edges=(0, 4, 10, 11), nullable=True)
    rows = np.array([40.0, 120.0, 7.0, 50.0])
    values = np.concatenate([np.repeat(range(4), 1000), np.repeat(range(4, 10), 2000), np.repeat([10], 700)])
    found = position(figures(attribute, rows))
    assert found.mean == pytest.approx(values.mean())
    for mine, wanted in zip(found.quartiles, np.quantile(values, [0.25, 0.5, 0.75]), strict=True):
        assert abs(mine - wanted) <= 1


def test_atoms_and_pieces_of_a_fill_count():
    attribute = Attribute("a", "DOUBLE", "numeric", edges=(0.0, 10.0, 20.0), fill=((3.0,), (12.0, 14.0)))
    found = position(figures(attribute, [10, 30]))
    assert found.mean == pytest.approx((10 * 3 + 30 * 13) / 40)
    assert found.quartiles == pytest.approx((3.0, 12 + 2 / 3, 12 + 4 / 3), abs=1e-9)


def test_decimals_are_in_their_own_unit():
    attribute = Attribute("a", "DECIMAL(8,2)", "numeric", edges=(Decimal("0.00"), Decimal("1.00")))
    found = position(figures(attribute, [5]))
    assert found.mean == pytest.approx(0.495)


def test_no_rows_and_categories_have_no_position():
    numbers = Attribute("a", "INTEGER", "numeric", edges=(0, 4))
    assert position(figures(numbers, [0])) is None
    assert position(figures(Attribute("c", "VARCHAR", "categorical", labels=("x",)), [3])) is None


def test_bars_have_one_width_so_that_bins_of_equal_shares_do_not_look_flat():
    """Of an exponential column in 50 bins of equal shares, against the shares of its values."""
    edges = tuple(float(edge) for edge in -np.log1p(-np.linspace(0, 0.99, 51)) * 1000)
    attribute = Attribute("a", "DOUBLE", "numeric", edges=edges, nullable=True)
    own = figures(attribute, [*[200.0] * 50, 99], np.full(51, 2.0))
    found = histogram(own, 40)
    rows = np.array([one.rows for one in found.bars])
    assert len(rows) <= 40 and rows.sum() == pytest.approx(10_000) and not found.beyond
    cuts = np.linspace(0, len(rows) * 200, len(rows) + 1)
    density = np.interp(cuts, edges, np.arange(51) * 200.0)
    assert rows == pytest.approx(np.diff(density)) and rows[0] > 5 * rows[-4]
    assert (found.bars[0].words, found.bars[-1].words) == ("0 up to 200", "4,600 up to 4,800")
    assert special(own)[0].rows == 99


def test_the_error_of_a_bar_is_that_of_all_bins_that_reach_into_it():
    attribute = Attribute("a", "INTEGER", "numeric", edges=(0, 4, 8, 16, 32, *range(40, 101, 4)))
    errors = np.full(20, 3.0)
    independent, together = (
        histogram(figures(attribute, np.arange(20), errors, of), 20).bars for of in ("noise", "estimate")
    )
    assert [one.words for one in independent[:3]] == ["0 to 4", "5 to 9", "10 to 14"]
    assert independent[0].error == pytest.approx(math.hypot(3, 3))
    assert together[0].error == pytest.approx(3 + 3)
    assert independent[0].rows == pytest.approx(0 + 1 / 4)


def test_a_long_tail_of_few_rows_is_cut_off_and_counted():
    attribute = Attribute("a", "INTEGER", "numeric", edges=(*range(0, 101, 5), 10_000))
    found = histogram(figures(attribute, [*[50.0] * 20, 4]), 20)
    assert len(found.bars) == 20 and found.bars[-1].words == "95 to 99"
    assert [(one.words, one.rows) for one in found.beyond] == [("100 and above", pytest.approx(4))]
    heavy = histogram(figures(attribute, [*[50.0] * 20, 40]), 20)  # no few rows
    assert not heavy.beyond and heavy.bars[-1].words == "9,500 to 9,999"


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (Attribute("a", "DATE", "temporal", edges=(date(1, 1, 1), date(9999, 12, 31))), "0001-01-01 to "),
        (Attribute("a", "TIME", "temporal", edges=(time(0), time.max)), "00:00:00 up to 01:00:00"),
        (Attribute("a", "DOUBLE", "numeric", edges=(3.0, 4.0), fill=((3.0,),)), "3 up to 3"),
        (Attribute("a", "BIGINT", "numeric", edges=(-(2**63), 2**63 - 1)), "-9,500,000,000,000,000,000 to "),
        (Attribute("a", "DECIMAL(8,2)", "numeric", edges=(Decimal(0), Decimal(1))), "0.00 to 0.04"),
    ],
)
def test_ends_of_types_and_single_values_have_bars(attribute, words):
    found = histogram(figures(attribute, [8.0], [1.0]), 40)
    assert sum(one.rows for one in (*found.bars, *found.beyond)) == pytest.approx(8)
    assert found.bars[0].words.startswith(words) and len(found.bars) <= 41


def test_the_largest_categories_and_the_rest():
    attribute = Attribute("c", "VARCHAR", "categorical", labels=tuple("abcde"), other=True)
    shown, rest = largest(figures(attribute, [1, 5, 3, 4, 2, 100]), 2)
    assert [one.words for one in shown] == ["b", "d"]
    assert (rest.rows, rest.words) == (6, "and 3 more")


# -- pairs ------------------------------------------------------------------------------------------


def test_strength_of_independence_and_of_identity():
    assert cramers_v(np.outer([1, 2, 3], [4, 5])) == pytest.approx(0, abs=1e-9)
    assert cramers_v(np.diag([1.0, 2, 3])) == pytest.approx(1)
    assert cramers_v(np.array([[3.0, 0], [0, 0]])) == 0
    assert cramers_v(np.zeros((2, 2))) is None


def test_strength_against_a_direct_sum():
    joint = np.random.default_rng(4).random((3, 5))
    shares = joint / joint.sum()
    square = sum(
        (shares[i, j] - shares[i].sum() * shares[:, j].sum()) ** 2 / (shares[i].sum() * shares[:, j].sum())
        for i in range(3)
        for j in range(5)
    )
    assert cramers_v(joint) == pytest.approx(math.sqrt(square / 2))


def table(*attrs, sigma=1.0, size=4):
    return NoisyMarginal(attrs, np.zeros((size,) * len(attrs), dtype=np.int64), sigma)


def test_columns_that_tables_join():
    group = joined_columns("abcde", [table("a", "b"), table("c", "b"), table("d"), table("d", "x")])
    assert group["a"] == group["b"] == group["c"]
    assert len({group["a"], group["d"], group["e"]}) == 3


def test_accuracy_is_the_known_noise():
    found = measured_tables(
        [table("a", sigma=10), table("a", "b", sigma=31.0), table(), table("a", sigma=20)], 5_000
    )
    assert [one.attrs for one in found] == [("a",), ("a", "b")]
    assert [one.exactness.within for one in found] == pytest.approx([1.96 * 10, 1.96 * 31])
    assert smallest_group(found[:1]) == pytest.approx(2 * 1.96 * 10)
    assert math.isnan(smallest_group([]))


def test_no_count_is_further_off_than_all_rows():
    (one,) = measured_tables([table("a", "b", sigma=17_809.0)], 20_086.0)
    assert one.exactness.within == 20_086 and one.exactness.smallest == math.inf
    assert of_all_counts(17_809.0, 0.0).within == pytest.approx(1.96 * 17_809)  # no total is known


def test_errors_that_are_all_alike_have_the_smallest_group_of_noise():
    rows = np.geomspace(1, 10_000, 400).reshape(20, 20)
    found = of_estimates(rows, np.full((20, 20), 30.0), 500)
    assert found.within == pytest.approx(1.96 * 30)
    assert found.smallest == pytest.approx(2 * 1.96 * 30, rel=0.03)
    assert found.count == pytest.approx(500, rel=0.03)
    assert of_all_counts(30.0, 5_000).smallest == pytest.approx(2 * 1.96 * 30)


def test_of_errors_that_grow_with_the_rows_the_nearest_count():
    rows = np.arange(2000.0)
    found = of_estimates(rows, np.sqrt(rows), 100)
    assert (found.count, found.within) == (pytest.approx(100, abs=5), pytest.approx(19.6, rel=0.03))
    # 3.92 sqrt(m) <= m from 3.92^2 = 15.4 rows on.
    assert found.smallest == pytest.approx(15.4, abs=1)


def test_a_table_of_large_counts_is_useful_below_them_and_one_of_noise_never():
    large = of_estimates(np.array([3000.0, 4000.0]), np.array([20.0, 25.0]), 500)
    assert large.count == 3500
    assert large.smallest <= 2 * 1.96 * 25
    assert of_estimates(np.array([5.0, 0.0]), np.array([9.0, 0.0]), 500).smallest == math.inf
    assert count_to_report(50_000) == 500 and count_to_report(100) == 25 and count_to_report(0) == 1


def test_lines_have_errors_of_estimates_where_they_are_known_and_of_noise_elsewhere():
    names = [Attribute(name, "VARCHAR", "categorical", labels=("x", "y")) for name in "abc"]
    own = [
        figures(names[0], [50, 50], [7, 7], "estimate"),
        figures(names[1], [50, 50], [8, 8]),
        figures(names[2], [1, 1]),
    ]
    own[2] = replace(own[2], error_of="none")
    known = Pair("a", "b", "measured", 0.5, True, Exactness(500, 61, 130))
    through = Pair("a", "c", "modelled", 0.4, None, Exactness(400, 90, 200))
    counted = Pair("b", "c", "measured", 0.3, True)
    pairs = Pairs(
        tuple("abc"), {}, (known, through, counted), {"measured": 2, "modelled": 1, "independent": 0}, 3
    )
    tables = measured_tables([table(*attrs, sigma=10) for attrs in ("c", "ba", "cb", "abc")], 5_000)
    found = accuracy_lines(own, pairs, tables)
    assert [("".join(one.attrs), one.of, one.together, one.exactness.within) for one in found] == [
        ("a", "estimate", True, pytest.approx(1.96 * 7)),
        ("b", "noise", True, pytest.approx(1.96 * 8)),
        ("c", "noise", True, pytest.approx(19.6)),
        ("ab", "estimate", True, 61),
        ("ac", "estimate", False, 90),
        ("bc", "noise", True, pytest.approx(19.6)),
        ("abc", "noise", True, pytest.approx(19.6)),
    ]
    told = part("accuracy", accuracy=found, total=5000)
    assert "count of 500 in " in told and "within ±61 of the truth" in told
    for words in ("through other columns", "counted together, noisy count", "(noisy count)", 'href="#use"'):
        assert words in told
    assert "counted together, noisy count" not in part(
        "accuracy", accuracy=found[:1] + found[3:5], total=5000
    )


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        ((54, 51, 0), "Of 105 pairs of columns, 54 are counted together with noise, and 51 are known only"),
        ((1, 0, 0), "Of 1 pair of columns, 1 is counted together with noise."),
        ((0, 2, 4), "2 are known only through other columns, and 4 are taken as independent. Of independent"),
        ((3, 2, 1), "Of 6 pairs of columns, 3 are counted together with noise, 2 are known only through"),
    ],
)
def test_ways_without_pairs_are_not_told(counted, words):
    numbers = dict(zip(("measured", "modelled", "independent"), counted, strict=True))
    told = part("pairs", pairs=Pairs(("a",), {}, (), numbers, sum(counted)))
    assert words in told
    assert "0 are" not in told
    assert ("do not say what goes with what" in told) == (counted[2] > 0)


# -- words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("/x/a.parquet", "a"),
        ("o.CSV.gz", "o"),
        ("memory.main.t", "t"),
        ('"d".main."my t"', "my t"),
        ("p.csv", "p"),
    ],
)
def test_the_name_of_a_release_is_that_of_its_table_or_file(table, name):
    assert release_name(table) == name


# -- the budget -------------------------------------------------------------------------------------


def test_shares_of_the_budget_add_up():
    event = GaussianEvent(100.0, 2)
    facts = {
        "budget": {"kind": "gdp", "reserved_units_of_1e-15": 4 * 10**11},
        "mechanisms": [
            {"step": "discover keys", "column": "a", **event_to_dict(event)},
            {"step": "one-way", "marginals": 2, **event_to_dict(event)},
            {"step": "one-way again", "marginals": 2, **event_to_dict(event)},
        ],
    }
    found = spending_of(facts)
    assert found.columns == {"a": pytest.approx(0.25, rel=2e-3)}
    assert found.steps == {
        "Learning which values occur": pytest.approx(0.25, rel=2e-3),
        "Counts of single columns": pytest.approx(0.5, rel=1e-3),
    }
    assert found.unused == pytest.approx(0.25, rel=2e-3)


# -- words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("/home/me/secret/out.parquet", "out.parquet"),
        ("C:\\me\\out.csv", "out.csv"),
        ("memory.main.t", "t"),
        ('"my.db".main."a.b""c"', 'a.b"c'),
        ("people", "people"),
    ],
)
def test_a_public_name_has_no_folder(table, name):
    assert public_name(table) == name


def test_numbers_in_words():
    assert [percent(share) for share in (0, 0.0001, 0.123, 1.007)] == [
        "0 %",
        "<0.1 %",
        "12.3 %",
        "100 %",
    ]
    assert [rounded_up(rows) for rows in (0, 3.2, 127, 1234)] == [0, 4, 130, 1300]
    assert rounded_up(math.nan) == 0


def test_types_in_words():
    assert type_words(Attribute("a", "INTEGER", "numeric", edges=(0, 1, 2))) == "whole numbers, 2 values"
    assert type_words(Attribute("a", "INTEGER", "numeric", edges=(0, 1, 5))) == "whole numbers in 2 ranges"
    assert type_words(Attribute("c", "VARCHAR", "categorical", labels=("x",))) == "1 category"


def test_bins_in_words():
    whole = Attribute("a", "INTEGER", "numeric", edges=(0, 1, 5), other=False, nullable=True)
    assert code_words(whole) == ["0", "1 to 4", "(no value)"]
    assert code_words(Attribute("x", "DOUBLE", "numeric", edges=(0.0, 2.5))) == ["0 up to 2.5"]
    flags = Attribute("f", "BOOLEAN", "categorical", labels=(False, True), other=True)
    assert code_words(flags) == ["false", "true", "(other values)"]
    assert code_words(Attribute("t", "VARCHAR", "categorical", labels=("", "x"))) == ["“”", "x"]
