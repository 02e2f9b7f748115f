"""Verdicts: how far a column can be believed, what its losses say, dependences, the table."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain, Recoding
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.fit.variances import one_way_counts
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.loss_words import facts_of_losses, lines_of_verdicts, summary_of_losses, verdict_table
from dpsyn_sql.report.losses import Losses, PairLosses, _column
from dpsyn_sql.report.trust import trust_of
from dpsyn_sql.report.verdict import Terms, correlation_error, judged

ROWS, NO_PAIRS = 2_000, PairLosses(0, 0, 0)
YES_NO = Attribute(
    "married", "DOUBLE", "numeric", edges=(0.0, 0.5, 1.0), origin="discovered", fill=((0.0,), (1.0,))
)
RANGES = Attribute(
    "x", "INTEGER", "numeric", edges=tuple(range(0, 101, 10)), origin="discovered",
    fill=tuple(pairwise(range(0, 101, 10))),
)  # fmt: skip
TEXT = Attribute("t", "VARCHAR", "categorical", tuple("abcd"), other=True, origin="discovered")


def trust(attribute, shares, sigma, hidden=0.0):
    return trust_of(attribute, np.array(shares) * ROWS, sigma, ROWS, hidden)


def verdict(
    attribute,
    shares,
    sigma,
    *,
    named=(),
    hidden=None,
    pairs=NO_PAIRS,
    error=1.0,
    above=(),
    epsilon=1.0,
    bounded=None,
    **others,
):
    domain, counts = Domain((attribute,)), np.rint(np.array(shares) * ROWS).astype(np.int64)
    tables = [NoisyMarginal((attribute.name,), counts, sigma)]
    known = one_way_counts(domain, tables)[attribute.name]
    losses = Losses(ROWS, (_column(attribute, known, ROWS, (1, 0), {attribute.name: 40}, bounded),), pairs)
    hidden = {} if hidden is None else {attribute.name: hidden}
    terms = Terms(epsilon=epsilon, hidden=hidden, named=named, **others)
    tied = [NoisyMarginal((attribute.name, name), np.full((2, 2), ROWS // 4), 0.5) for name in above]
    made = SimpleNamespace(
        measurements=[NoisyMarginal((), np.array([ROWS]), error), *tied],
        families=SimpleNamespace(table="orders") if above else None,
    )
    found = judged(made, losses, terms)
    return found.columns[attribute.name], found, losses


def test_the_chance_falls_with_noise_and_is_certain_without():
    chances = [trust(YES_NO, [0.8, 0.2], sigma).chance for sigma in (0, 10, 30, 100, 1000)]
    assert chances[0] == 1 and chances[-1] < 0.15
    assert chances == sorted(chances, reverse=True)


def test_the_chance_is_that_of_its_own_law():
    """The share p of ones is believed within max(p, sd / 5) / 10 of itself; simplex noise of two counts has the
    deviation sigma / sqrt(2). With p = .5 the median decides, and is that of a coin."""
    from scipy.stats import norm

    p, sigma = 0.2, 40.0
    deviation = sigma / ROWS / np.sqrt(2)
    wanted = 2 * norm.cdf(0.1 * max(p, np.sqrt(p * (1 - p)) / 5) / deviation) - 1
    assert trust(YES_NO, [1 - p, p], sigma).chance == pytest.approx(wanted, abs=0.12)
    assert trust(YES_NO, [0.5, 0.5], 2.0).worst == "median"


def test_values_that_are_not_found_are_values_that_are_wrong():
    assert trust(TEXT, [0.3, 0.3, 0.2, 0.1, 0.1], 1.0).chance == 1
    assert trust(TEXT, [0.3, 0.3, 0.15, 0.05, 0.2], 1.0).chance == 0


def test_hidden_rows_stretch_a_column_as_its_variance_says():
    """q rows of all at twice the distance r sd of the last value from the median add q (2 r)^2 to the variance in
    sd^2: half of it to the sd."""
    own = trust(RANGES, [0.1] * 10, 1.0, hidden=20.0)
    values = np.arange(100)
    reach = (99 - np.median(values)) / values.std()
    assert own.stretch == pytest.approx(0.01 * (2 * reach) ** 2 / 2, rel=0.05)
    assert trust(YES_NO, [0.5, 0.5], 1.0, hidden=20.0).stretch == 0


def test_dates_are_judged_by_what_sampling_moves_between_months():
    from datetime import date

    many = Attribute("d", "DATE", "temporal", edges=(date(1920, 1, 1), date(2020, 1, 1)))
    few = replace(many, edges=(date(2019, 1, 1), date(2020, 1, 1)))
    assert trust(many, [1.0], 1.0).chance == 0 and trust(few, [1.0], 1.0).chance == 1


def test_an_exact_release_is_good_and_says_nothing():
    for attribute, shares in ((YES_NO, [0.7, 0.3]), (RANGES, [0.1] * 10), (TEXT, [0.4, 0.3, 0.2, 0.1, 0.0])):
        own, found, _ = verdict(attribute, shares, 0.5, hidden=0.5)
        assert (own.grade, own.why) == ("good", "") and found.table.grade == "good"


def test_noise_is_named_with_the_epsilon_that_helps():
    own, found, losses = verdict(YES_NO, [0.92, 0.08], 150.0)
    assert own.grade == "do not use" and own.why.startswith(
        "'married' is nearly all noise: 0/1 shares may be off"
    )
    helps = float(own.why.split("Spend epsilon ")[1].split()[0].rstrip(".,"))
    assert verdict(YES_NO, [0.92, 0.08], 150.0 / helps)[0].grade == "good"
    assert found.table.grade == "do not use" and "'married'" in found.table.why
    facts = facts_of_losses(losses, found, ())
    ((name, grade, why),) = lines_of_verdicts(facts)
    assert (name, grade, why) == ("married", own.grade, own.why)
    assert sum(own.why in line for line in summary_of_losses(facts)) == 1
    frame = verdict_table(facts)
    assert list(frame["verdict"]) == ["do not use", "good", "do not use"] and frame["why"][2] == own.why


def test_a_tail_that_noise_hides_is_named_with_its_end():
    own, *_ = verdict(RANGES, [0.45, 0.3, 0.15, 0.07, 0.03, 0, 0, 0, 0, 0], 2.0, hidden=100.0)
    assert (
        own.grade != "good" and "Values of 'x' above 99 may be missing: noise hides up to 100 rows" in own.why
    )
    assert "declare its bounds" in own.why


def test_noise_is_named_and_not_the_bounds_where_the_range_ends_at_them():
    stated = Undiscovered("x", "INTEGER", "numeric", least=Fraction(0), most=Fraction(99), clipped=True)
    shares = [0.45, 0.3, 0.15, 0.07, 0.03, 0, 0, 0, 0, 0]
    assert verdict(RANGES, shares, 2.0, hidden=100.0, bounded=stated)[0].grade == "good"
    assert "its bounds" not in verdict(RANGES, shares, 900.0, hidden=900.0, bounded=stated)[0].why
    one = replace(RANGES, edges=(0, 100), fill=((0, 100),))
    why = verdict(one, [1.0], 2.0, bounded=stated)[0].why
    assert "Noise hides it" in why and "bounds" not in why


def test_one_value_and_no_value_are_named():
    one = replace(YES_NO, edges=(0.0, 0.5), fill=((0.0,),), nullable=True)
    own, *_ = verdict(one, [1.0, 0.0], 20.0, hidden=20.0)
    assert own.grade == "do not use" and own.why.startswith(
        "Every row of 'married' is 0: other values, of fewer"
    )
    own, *_ = verdict(one, [0.3, 0.7], 20.0, hidden=20.0)
    assert own.why.startswith("Every row that has a value of 'married' is 0")
    own, *_ = verdict(replace(one, recoding=Recoding((0,), (1,))), [0.5, 0.5], 20.0, hidden=20.0)
    assert own.grade == "do not use" and "every row is NULL" in own.why


DAYS = Attribute("d", "DATE", "temporal", edges=(date(2020, 1, 1), date(2020, 7, 1), date(2021, 1, 1)))


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_dates_of_a_text_file_that_cannot_be_read_are_the_cause(epsilon):
    """Of a database all of them are NULL, and are known to be."""
    nulls = replace(DAYS, nullable=True)
    told = "convert it in a query, try_strptime(x, '%d/%m/%Y')."
    text, *_ = verdict(nulls, [0.0, 0.0, 1.0], 1.0, epsilon=epsilon, texts=["d"])
    assert text.grade == "rough" and text.why.startswith("Hardly any row of 'd' has a value. Of a CSV file")
    assert text.why.endswith(told) and "psilon" not in text.why
    table, *_ = verdict(nulls, [0.0, 0.0, 1.0], 1.0, epsilon=epsilon)
    assert table.grade == "good"
    strict, *_ = verdict(DAYS, [1.0, 0.0], 1.0, epsilon=epsilon, texts=["d"])
    assert strict.grade == "rough" and "NULL is counted there, too." in strict.why
    assert strict.why.endswith(told) and "psilon" not in strict.why
    year = replace(DAYS, edges=(date(2020, 1, 1), date(2021, 1, 1)))
    whole, *_ = verdict(year, [1.0], 1.0, epsilon=epsilon, texts=["d"])
    assert "NULL is counted there, too." in whole.why and whole.why.endswith(told)
    other, *_ = verdict(DAYS, [1.0, 0.0], 1.0, epsilon=epsilon)
    assert other.grade == "rough" and "CSV" not in other.why


def test_what_is_known_to_be_constant_or_null_is_good():
    """Where discovery counted the one value; elsewhere by its measured share."""
    one = replace(YES_NO, edges=(0.0, 0.5), fill=((0.0,),), nullable=True)
    nothing = replace(one, recoding=Recoding((0,), (1,)))
    for attribute, shares in ((one, [1.0, 0.0]), (nothing, [0.0, 1.0])):
        assert verdict(attribute, shares, 5.0, beyond={"married": 0.01})[0].grade == "good"
        assert verdict(attribute, shares, 5.0, beyond={"married": 0.4})[0].grade == "do not use"
        assert verdict(attribute, shares, 5.0)[0].grade == "good"
        assert verdict(attribute, shares, 40.0)[0].grade == "do not use"
    text = replace(TEXT, labels=(), nullable=True)
    assert (
        verdict(text, [0.0, 1.0], 5.0)[0].grade == "good"
        and verdict(text, [0.3, 0.7], 5.0)[0].grade != "good"
    )
    always = Attribute("yes", "BOOLEAN", "categorical", (False, True), nullable=True, origin="catalog")
    assert verdict(always, [0.001, 0.999, 0.0], 5.0)[0].grade == "good"
    assert verdict(always, [0.001, 0.999, 0.0], 5.0, named={"yes"})[0].grade == "rough"
    assert verdict(always, [0.0, 0.6, 0.4], 5.0)[0].grade == "good"
    closed = replace(always, nullable=False, origin="declared")  # what is outside of the list counts as false
    assert verdict(closed, [1.0, 0.0], 5.0)[0].grade == "do not use"


def test_a_range_of_several_values_is_no_constant():
    wide = replace(YES_NO, edges=(0.0, 8.0), fill=((0.0, 8.0),))
    assert verdict(wide, [1.0], 5.0)[0].why.startswith("100 % of the rows are in the one range")


@pytest.mark.parametrize(("short", "grade"), [(0.97, "rough"), (0.2, "rough"), (0.1, "good")])
def test_what_keeps_only_its_beginning_counts_as_lost(short, grade):
    zip_code = replace(TEXT, name="zip", labels=("010*", "02139"), prefixes=(3,))
    own, *_ = verdict(zip_code, [short, 1 - short, 0.0], 1.0)
    assert own.grade == grade and ("keep only the beginning of 'zip', written as '010*'" in own.why) == (
        grade != "good"
    )


def test_a_sixth_of_the_rows_is_not_nearly_all_noise():
    many = replace(TEXT, labels=tuple(f"v{i}" for i in range(40)), other=False)
    own, *_ = verdict(many, [1 / 40] * 40, 22.0)
    assert own.grade == "rough" and own.why.startswith("'t' is rough: up to ")
    assert 0.15 < float(own.why.split("up to ")[1].split("%")[0]) / 100 < 0.25
    own, *_ = verdict(many, [1 / 40] * 40, 200.0)
    assert own.grade == "do not use" and own.why.startswith("'t' is nearly all noise: up to ")


def test_pairs_that_were_looked_at_are_not_scolded():
    """A dependence of a tenth of the rows would have been seen, or would not."""
    for pairs in (PairLosses(0, 0, 10), PairLosses(2, 0, 8)):
        seen, hidden, unknown = (
            verdict(YES_NO, [0.7, 0.3], 0.5, pairs=pairs, seen=rows)[1].dependences
            for rows in (0.1 * ROWS, 0.11 * ROWS, None)
        )
        assert (seen.grade, seen.why) == ("good", "") and hidden == unknown and hidden.grade != "good"
    _, found, losses = verdict(YES_NO, [0.7, 0.3], 0.5, pairs=PairLosses(2, 0, 8), seen=0.05 * ROWS)
    facts = facts_of_losses(losses, found, ())
    assert facts["pairs"] == {"measured": 2, "modelled": 0, "independent": 8, "seen_from": 0.05}
    told = "Pairs of columns: 2 measured, 0 modelled through others, 8 independent (of all pairs, dependence that moves 5.0% of the rows shows)."
    assert told in summary_of_losses(facts)


@pytest.mark.parametrize("pairs", [PairLosses(0, 0, 10), PairLosses(8, 0, 2)])
def test_a_pair_that_was_seen_and_is_independent_all_the_same_is_named(pairs):
    """It moves more than a tenth of the rows, and no table joins it; a smaller one, or a joined one, is no harm."""
    losses = verdict(YES_NO, [0.7, 0.3], 0.5, pairs=pairs)[2]
    (column,) = losses.columns
    several = [replace(column, attribute=replace(YES_NO, name=name)) for name in "abcd"]
    losses = replace(losses, columns=tuple(several))

    def found(clear, *joined):
        tables = [NoisyMarginal(names, np.full((2, 2), ROWS // 4), 0.5) for names in joined]
        made = SimpleNamespace(
            measurements=[NoisyMarginal((), np.array([ROWS]), 1.0), *tables], families=None
        )
        rows = {pair: share * ROWS for pair, share in clear.items()}
        return judged(made, losses, Terms(epsilon=1.0, seen=0.05 * ROWS, clear=rows)).dependences

    for harmless in ({}, {("a", "b"): 0.1}):
        assert (found(harmless).grade, found(harmless).why) == ("good", "")
    assert found({("a", "b"): 0.5}, ("a", "c"), ("b", "c")).grade == "good"
    told = found({("a", "b"): 0.11, ("c", "d"): 0.53})
    assert told.grade == ("rough" if pairs.measured else "do not use")
    alone = "" if pairs.measured else "No pair of columns is measured. "
    assert told.why == (
        f"{alone}'c' and 'd' go together, which moves about 53% of the rows, but are independent in the output: the "
        "release saw it, and it was not worth its noise at this epsilon. So it is with 1 more pair. Spend a larger epsilon, "
        "or give weight to what matters: workload={('c', 'd'): 10}."
    )
    assert "'a' and 'b' go together" in found({("a", "b"): 0.11, ("c", "d"): 0.53}, ("d", "c")).why


@pytest.mark.parametrize(("attribute", "shares", "sigma"), [
    (YES_NO, [0.92, 0.08], 150.0),
    (replace(YES_NO, edges=(0.0, 0.5), fill=((0.0,),), nullable=True), [1.0, 0.0], 40.0),
    (TEXT, [0.3, 0.2, 0.1, 0.0, 0.4], 1.0),
    (replace(TEXT, labels=("010*", "02139"), prefixes=(3,)), [0.97, 0.03, 0.0], 1.0),
    (replace(YES_NO, edges=(0.0, 8.0), fill=((0.0, 8.0),)), [1.0], 5.0),
    (replace(TEXT, labels=("a", "b", "c"), origin="declared"), [0.7, 0.3, 0.0, 0.0], 20.0),
])  # fmt: skip
def test_no_epsilon_above_ten_is_advised(attribute, shares, sigma):
    few, many = (
        verdict(attribute, shares, sigma, epsilon=epsilon, pairs=PairLosses(1, 0, 9))
        for epsilon in (1.0, 10.0)
    )
    assert "epsilon" in few[0].why and "epsilon" in few[1].dependences.why
    assert many[0].why and "epsilon" not in many[0].why and "epsilon" not in many[1].dependences.why
    advised = verdict(YES_NO, [0.92, 0.08], 60.0, epsilon=4.0)[0].why
    assert float(advised.split("Spend epsilon ")[1].split()[0].rstrip(".,")) <= 10


def test_hidden_text_is_named_with_its_threshold():
    own, *_ = verdict(TEXT, [0.3, 0.2, 0.1, 0.0, 0.4], 1.0)
    assert (
        own.grade == "rough" and "40 % of the rows" in own.why and "fewer than 40 rows are hidden" in own.why
    )
    own, *_ = verdict(TEXT, [0.1, 0.1, 0.1, 0.0, 0.7], 1.0)
    assert own.grade == "do not use"


def test_of_rows_that_may_be_noise_nothing_is_known():
    own, found, _ = verdict(YES_NO, [0.7, 0.3], 0.5, error=600.0)
    assert own.grade == found.table.grade == "do not use" and "rows in all may be noise" in own.why


def test_what_the_workload_names_harms_most():
    shares = [0.92, 0.08]
    assert (
        verdict(YES_NO, shares, 60.0, named={"married"})[0].harm == verdict(YES_NO, shares, 60.0)[0].harm + 1
    )


@pytest.mark.parametrize(
    ("measured", "independent", "grade"), [(10, 0, "good"), (2, 8, "rough"), (0, 10, "do not use")]
)
def test_dependences_that_nobody_measured_are_named(measured, independent, grade):
    found = verdict(YES_NO, [0.7, 0.3], 0.5, pairs=PairLosses(measured, 0, independent))[1]
    assert found.dependences.grade == grade and (not found.dependences.why) is (grade == "good")


def test_columns_that_go_with_rows_above_are_not_called_independent():
    alone, tied = (
        verdict(YES_NO, [0.7, 0.3], 0.5, pairs=PairLosses(0, 0, 10), above=above)[1].dependences
        for above in ((), ("customers.region",))
    )
    assert alone.grade == "do not use" and tied.grade == "good"


def test_the_error_of_correlations_is_that_of_the_noise():
    random, sigma, total = np.random.default_rng(5), 30.0, 20_000
    truth = np.outer(np.full(6, 1 / 6), [0.2, 0.5, 0.3]) * total
    tables = [np.rint(truth + random.normal(0, sigma, truth.shape)).astype(np.int64) for _ in range(400)]
    told = correlation_error([NoisyMarginal(("a", "b"), table, sigma) for table in tables], total)
    x, y = (_scores(truth.sum(axis=axis)) for axis in (1, 0))
    found = [x @ table @ y / total for table in tables]
    assert told == pytest.approx(np.std(found), rel=0.1)
    assert correlation_error([], total) == 0


def _scores(rows):
    shares = rows / rows.sum()
    middles = np.cumsum(shares) - shares / 2
    middles = middles - shares @ middles
    return middles / np.sqrt(shares @ middles**2)


@pytest.mark.filterwarnings("error")
def test_the_unit_of_a_column_does_not_matter():
    ends = tuple(float(x) for x in range(0, 101, 10))
    found = []
    for scale in (1.0, 1e305, 1e-300):
        cuts = tuple(x * scale for x in ends)
        own = Attribute("x", "DOUBLE", "numeric", edges=cuts, origin="discovered", fill=tuple(pairwise(cuts)))
        found.append(trust(own, [0.4, 0.3, 0.2, 0.1, 0, 0, 0, 0, 0, 0], 50.0, hidden=20.0))
    assert found[0].chance == found[1].chance == found[2].chance
    assert found[1].stretch == pytest.approx(found[0].stretch) == found[2].stretch


def test_a_tail_that_noise_hides_is_named_and_a_column_without_one_is_not():
    """The body is the same; beyond the found range one column has a few rows far out, the other none."""
    edges = (*range(11), 20, 80, 640, 5_120)
    attribute = Attribute(
        "x", "INTEGER", "numeric", edges=edges, ordered=True, origin="discovered", beyond=(0, 4)
    )
    body = [4_000.0, 9_000.0, 14_000.0, 16_000.0, 15_000.0, 13_000.0, 11_000.0, 9_000.0, 6_000.0, 3_000.0]
    short = trust_of(attribute, np.array([*body, 0, 0, 0, 0]), 25.0, 100_000.0)
    long = trust_of(attribute, np.array([*body, 1_500, 400, 100, 60.0]), 25.0, 105_000.0)
    assert short.stretch < 0.05 and short.chance > 0.9
    assert long.stretch > 0.3
