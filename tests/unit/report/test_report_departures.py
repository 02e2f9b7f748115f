"""Where drawn rows depart from the noisy answers: the figures by hand, what is beyond the limits, whom it blames."""

from dataclasses import replace
from math import log, pi, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from support.domains import attribute

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.discovery.one_look import Looked
from dpsyn_sql.fit.reconstruct import projected
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.queries import NoisyMarginal, NoisyResidual
from dpsyn_sql.report.departures import departures
from dpsyn_sql.report.verdict import Terms, judged
from dpsyn_sql.rows.sample.tables import DrawnRows

ROWS, SIGMA, EVENLY = 10_000, 5.0, 0.25
A, B = attribute("a", 4), attribute("b", 2)
TOTAL = NoisyMarginal((), np.array([ROWS]), SIGMA)


def table(*attrs, values, **options):
    return NoisyMarginal(attrs, np.array(values), SIGMA, **options)


def rows(counts):
    """Rows with these counts of (a, b)."""
    a, b = (np.repeat(one.ravel(), np.ravel(counts)).astype(np.uint8) for one in np.indices((4, 2)))
    return DrawnRows({"a": a, "b": b}, np.ones(a.size), evenly=True)


def made(*answers, never=(), measured=None, written=("a", "b"), weight=1, looks=()):
    domain = Domain((A, B))
    return SimpleNamespace(
        answers=(TOTAL, *answers),
        measurements=(TOTAL, *(answers if measured is None else measured)),
        weight=weight,
        looks=looks,
        families=None,
        model=SimpleNamespace(total=float(ROWS), domain=domain),
        shape=SimpleNamespace(never=never, domain=Domain(tuple(domain[name] for name in written))),
    )


EVEN = np.full((4, 2), ROWS // 8)
OF_A = table("a", values=[ROWS // 4] * 4)


def moved(share, to=1):
    """Rows of which this share of all has another a than was counted."""
    part = round(ROWS * share / 2)
    counts = EVEN.copy()
    counts[0] -= part
    counts[to] += part
    return rows(counts)


def test_rows_as_they_were_counted_do_not_depart():
    assert departures(made(OF_A, table("a", "b", values=EVEN)), rows(EVEN), pairs=True) == ()


def test_the_figures_are_those_of_the_formulas():
    (found,) = departures(made(OF_A), moved(0.05), pairs=True)
    x, y = np.array([2_000, 3_000, 2_500, 2_500]), 2_500
    sd = np.sqrt(SIGMA**2 + EVENLY * np.maximum(x, y) + 1 / 12)
    part = (np.abs(x - y).sum() - sqrt(2 / pi) * sd.sum()) / (2 * ROWS)
    cell = ((np.abs(x - y) - (sqrt(2 * log(8)) + 1) * sd - log(8) / 3) / ROWS).max()
    assert found.moved == pytest.approx(max(part, cell), rel=1e-9) and not found.gross
    assert (found.rows, found.counted, found.error) == (pytest.approx(0.2), 0.25, SIGMA / ROWS)
    assert found.text.startswith(
        "4.6% of the rows have another value of 'a' than was counted: 0 has 20.0% of them"
    )


@pytest.mark.parametrize(
    ("share", "departs", "gross"), [(0.001, 0, 0), (0.02, 1, 0), (0.07, 1, 0), (0.12, 1, 1)]
)
def test_a_cell_that_moved_is_told_and_a_column_that_is_wrong_is_gross(share, departs, gross):
    found = departures(made(OF_A), moved(share), pairs=False)
    assert [one.gross for one in found] == [bool(gross)] * departs


def test_many_small_differences_are_told_if_they_are_clear():
    """Cells of sd 25 that are off by 75 each do not stand out alone, and 16 of them together do."""
    wide = attribute("a", 16)
    counts = np.full(16, 600)
    drawn = DrawnRows(
        {"a": np.repeat(np.arange(16), counts + np.tile([75, -75], 8))}, np.ones(9_600), evenly=True
    )
    given = made(table("a", values=counts))
    given.model = SimpleNamespace(total=9_600.0, domain=Domain((wide, B)))
    (found,) = departures(given, drawn, pairs=False)
    sd = np.sqrt(SIGMA**2 + EVENLY * np.maximum(counts, counts + np.tile([75, -75], 8)) + 1 / 12)
    assert found.moved == pytest.approx((16 * 75 - sqrt(2 / pi) * sd.sum()) / 19_200)
    few = replace(drawn, row=64.0)  # as if of few rows: sampling explains it
    assert departures(given, few, pairs=False) == ()


@pytest.mark.parametrize("evenly", [True, False])
@pytest.mark.parametrize(("codes", "number"), [(400, 200), (300, 150), (1_000, 500), (400, 1_000), (30, 120)])
def test_chance_moves_few_rows_of_many_codes_and_nobody_is_blamed(codes, number, evenly):
    """A hundred outputs of few rows, drawn one by one from a model of many: no column of them departs."""
    many = given_of(codes, 100_000)
    generator = np.random.default_rng(number)
    for _ in range(100):
        drawn = DrawnRows({"a": generator.integers(0, codes, number)}, np.ones(number), evenly=evenly)
        assert departures(many, drawn, pairs=False) == ()


def test_few_rows_of_another_column_are_told():
    """Of 1,000 rows half have one of 100 codes that a hundredth of the rows was counted to have."""
    drawn = DrawnRows({"a": np.repeat([0, *range(100)], [500, *[5] * 100])}, np.ones(1_000), evenly=True)
    (found,) = departures(given_of(100, ROWS), drawn, pairs=False)
    assert found.gross and found.moved == pytest.approx(0.45, abs=0.05)


@pytest.mark.parametrize(("number", "departs"), [(99, False), (100, True)])
def test_fewer_than_a_hundred_rows_are_not_judged(number, departs):
    """Nobody draws conclusions from them: here all have one of four codes that were counted alike often."""
    drawn = DrawnRows({"a": np.zeros(number, np.int64)}, np.ones(number), evenly=True)
    assert bool(departures(given_of(4, ROWS), drawn, pairs=False)) is departs


def given_of(codes, total):
    """A release of one column of so many codes, all of which were counted alike often."""
    given = made(table("a", values=np.full(codes, total // codes)))
    given.model = SimpleNamespace(total=float(total), domain=Domain((attribute("a", codes), B)))
    return given


def test_a_pair_that_was_ignored_is_told_of_methods_that_keep_pairs():
    """All rows of a = 0, 1 have b = 0, and the sampler draws b by itself."""
    counted = np.array([[2_500, 0], [2_500, 0], [0, 2_500], [0, 2_500]])
    whole = table("a", "b", values=counted)
    residual = NoisyResidual(("a", "b"), np.rint(projected(counted * 8.0)).astype(np.int64), 8 * SIGMA)
    for answer in (whole, residual):
        (found,) = departures(made(answer, measured=[whole]), rows(EVEN), pairs=True)
        assert found.attrs == ("a", "b") and found.moved == pytest.approx(0.5, abs=0.03) and not found.gross
        assert "of the rows have other values of 'a' and 'b' together" in found.text
        assert departures(made(answer, measured=[whole]), rows(EVEN), pairs=False) == ()


def test_weights_bins_and_scale_are_those_of_the_answers():
    """Half the rows, each of half a unit; answers count 6 a unit, over bins of a."""
    counted = table("a", values=[5_000 * 6, 5_000 * 6], maps=((0, 0, 1, 1),))
    drawn = rows(EVEN // 2)
    halves = replace(drawn, weights=drawn.weights / 2)
    assert departures(made(counted, weight=6), halves, pairs=True) == ()
    wrong = table("a", values=[7_000 * 6, 3_000 * 6], maps=((0, 0, 1, 1),))
    (found,) = departures(
        made(wrong, weight=6, measured=[table("b", values=[5_000, 5_000])]), halves, pairs=True
    )
    assert found.rows == pytest.approx(0.5) and found.counted == pytest.approx(0.3)
    assert "2 to 3 has 50.0% of them" in found.text


def test_answers_that_contradict_each_other_blame_nobody():
    counted = table("a", values=[4_000, 1_000, 2_500, 2_500])
    assert departures(made(counted), rows(EVEN), pairs=False)[0].gross
    others = {
        "another total": table("b", values=[9_000, 9_000]),
        "far below zero": table("b", values=[10_400, -400]),
        "another share": table("a", "b", values=EVEN),
    }
    for other in others.values():
        assert not departures(made(counted, measured=[counted, other]), rows(EVEN), pairs=False)[0].gross


def test_conditions_and_columns_that_are_not_written_blame_nobody():
    counted = table("a", values=[4_000, 1_000, 2_500, 2_500])
    on_purpose = departures(made(counted, never=("a = 1",)), rows(EVEN), pairs=False)[0]
    assert not on_purpose.gross and on_purpose.text.endswith("Conditions of never: or CHECK may be why.")
    assert not departures(made(counted, written=("b",)), rows(EVEN), pairs=False)[0].gross


@pytest.mark.parametrize(("rows_of_a_person", "gross"), [(1, True), (30, True), (60, False)])
def test_noise_adds_up_along_rows_that_follow_each_other(rows_of_a_person, gross):
    """15 % of the rows moved; beyond 8 % the limit is 3 errors of a share (.0005) for each row of a person."""
    counted = made(table("a", values=[4_000, 1_000, 2_500, 2_500]), table("b", values=[9_000, 1_000]))
    counted.families = Families(Domain((A, B)), 2, frozenset({"b"}), "size", (("a before", "a"),))
    even = rows(EVEN)
    drawn = replace(even, weights=even.weights / rows_of_a_person, row=even.row / rows_of_a_person)
    shared, followed = departures(counted, drawn, pairs=False)
    assert shared.attrs == ("b",) and shared.gross
    assert followed.gross == gross == followed.text.endswith("Neither noise nor sampling explains it.")


def test_conditions_may_be_why_columns_go_together_otherwise():
    counted = table("a", "b", values=np.array([[2_500, 0]] * 2 + [[0, 2_500]] * 2))
    plain, on_purpose = (
        departures(made(counted, never=never), rows(EVEN), pairs=True)[0].text for never in ((), ("a = 1",))
    )
    assert plain.endswith("counted. Neither noise nor sampling explains it.")
    assert on_purpose.endswith("counted. Conditions of never: or CHECK may be why.")


def test_a_method_that_cannot_follow_its_tables_is_told_of_them_alone():
    counted = made(table("a", values=[4_000, 1_000, 2_500, 2_500]))
    assert [one.gross for one in departures(counted, rows(EVEN), columns=False, pairs=False)] == [False]


def test_of_a_total_that_is_noise_nothing_is_said():
    given = made(table("a", values=[4_000, 1_000, 2_500, 2_500]))
    given.measurements = (replace(TOTAL, sigma=ROWS / 3),)
    assert departures(given, rows(EVEN), pairs=False) == ()


def test_a_departure_is_a_verdict_on_its_column_or_on_the_dependences():
    found = departures(made(table("a", values=[4_500, 500, 2_500, 2_500])), rows(EVEN), pairs=True)
    few = departures(made(OF_A), moved(0.02), pairs=True)
    nothing = dict(shares=(), ends=(), faint=(), labels_found=None, other=None, shortened=None)
    columns = tuple(SimpleNamespace(name=one.name, attribute=one, **nothing) for one in (A, B))
    losses = SimpleNamespace(
        total=ROWS, columns=columns, pairs=SimpleNamespace(measured=1, modelled=0, independent=0), alone=()
    )
    given = SimpleNamespace(measurements=(TOTAL,), families=None)
    for told, grade in ((found, "do not use"), (few, "rough"), ((), "good")):
        verdicts = judged(given, losses, Terms(1.0, departures=told))
        assert verdicts.columns["a"].grade == grade and verdicts.columns["b"].grade == "good"
        assert verdicts.columns["a"].why == (told[0].text if told else "")
        assert verdicts.dependences.grade == "good"
    pair = replace(found[0], attrs=("a", "b"))
    verdicts = judged(given, losses, Terms(1.0, departures=(pair, pair)))
    assert verdicts.columns["a"].grade == "good" and verdicts.dependences.grade == "rough"
    assert verdicts.dependences.why == f"{pair.text} So it is with 1 more table."


def looked(counts, groups=(0, 1, 1, 2), cells=(1, 4, 1)):
    """Discovery counted a: codes 1 and 2 share cells, of which there are four."""
    return Looked("a", groups, np.array(counts), np.array(cells), SIGMA)


@pytest.mark.parametrize("weight", [1, 6])
def test_rows_are_compared_with_what_one_look_counted(weight):
    """Discovery counts each unit once, whatever its weight in other answers."""
    right = made(looks=(looked([2_500, 5_000, 2_500]),), weight=weight)
    assert departures(right, rows(EVEN), pairs=False) == ()
    wrong = made(looks=(looked([1_000, 6_500, 2_500]),), weight=weight)
    (found,) = departures(wrong, rows(EVEN), pairs=False)
    x, y = np.array([2_500, 5_000, 2_500]), np.array([1_000, 6_500, 2_500])
    noise = SIGMA * np.sqrt([1, 4, 1])
    sd = np.sqrt(noise**2 + EVENLY * np.maximum(x, y) + 1 / 12)
    part = (np.abs(x - y).sum() - sqrt(2 / pi) * sd.sum()) / (2 * ROWS)
    cell = ((np.abs(x - y) - (sqrt(2 * log(6)) + 1) * sd) / ROWS).max()
    assert found.moved == pytest.approx(max(part, cell), rel=1e-9) and not found.gross
    assert found.rows == pytest.approx(0.25)


def test_a_curve_may_smooth_what_one_look_counted():
    """What is told of a measured table is none of a curve: 1 % of the rows in the next code."""
    near = [2_350, 5_150, 2_500]
    assert departures(made(looks=(looked(near),)), rows(EVEN), pairs=False) == ()
    assert departures(made(table("a", values=[2_350, 2_650, 2_500, 2_500])), rows(EVEN), pairs=False)
