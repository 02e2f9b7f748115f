"""What was lost, and what is said about it: shares, wide bins, pairs, each warning and its cure."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpsyn_sql.attributes.attribute import Attribute, Domain, Recoding
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.fit.variances import one_way_counts
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.complaints import complaint_of, independent
from dpsyn_sql.report.doubts import Doubts
from dpsyn_sql.report.loss_words import column_facts, facts_of_losses, summary_of_losses
from dpsyn_sql.report.losses import Losses, _column, _joining, pair_losses
from dpsyn_sql.report.verdict import Judged, Verdict

ROWS, SIGMA = 10_000, 20.0
TEXT = Attribute("a", "VARCHAR", "categorical", ("x", "y", "z"), other=True, nullable=True)
FOUND = replace(TEXT, origin="discovered")
CLOSED = replace(TEXT, other=False, nullable=False)
AGE = Attribute("a", "INTEGER", "numeric", edges=tuple(range(200, 301, 10)))


def lost(attribute, shares, *, hidden=None, tables=(), sigma=SIGMA, more=(), bounded=None):
    """Losses of one column with these shares of the rows, and of ``more`` attributes without a table."""
    domain = Domain((attribute, *more))
    values = np.rint(np.array(shares) * ROWS).astype(np.int64)
    measured = [NoisyMarginal((attribute.name,), values, sigma), *tables]
    counts, sizes = one_way_counts(domain, measured), {a.name: a.size for a in domain.attributes}
    columns = tuple(
        _column(
            a, counts.get(a.name), ROWS, _joining(measured, sizes).get(a.name, (0, 0)), hidden or {}, bounded
        )
        for a in domain.attributes
    )
    return Losses(ROWS, columns, pair_losses([name for name, size in sizes.items() if size > 1], measured))


def said(losses, *named):
    found = [
        complaint_of(column, in_workload=column.name in named, units="rows", total=losses.total)
        for column in losses.columns
    ]
    return [one.text for one in found if one]


def facts_of(losses, warnings=()):
    """Facts of losses in which everything is good."""
    good = Verdict()
    return facts_of_losses(losses, Judged(good, good, {x.name: good for x in losses.columns}), warnings)


def test_shares_have_their_standard_errors():
    (column,) = facts_of(lost(TEXT, [0.6, 0.1, 0.05, 0.2, 0.05]))["columns"]
    assert column["other"] == {"code": "__other__", "share": 0.2, "standard_error": SIGMA / ROWS}
    assert column["null"] == {"code": "NULL", "share": 0.05, "standard_error": SIGMA / ROWS}
    assert column["lost"] == (
        "20.0 % ± 0.2 of the rows have a value that is not named (__other__); 5.0 % ± 0.2 of the rows have no value (NULL)"
    )
    assert column["tables"] == 1 and "found" not in column


AGES = Attribute("a", "INTEGER", "numeric", edges=(0, 10, 20, 24_575), nullable=True)


@pytest.mark.parametrize(
    ("attribute", "shares", "words"),
    [
        (AGES, [0.1, 0.839, 0, 0.061], "6.1 % ± 0.2 of the rows have no value (NULL)"),
        (
            replace(AGES, recoding=Recoding((3,), (0, 1, 2))),
            [0.1, 0.839, 0, 0.061],
            "6.1 % ± 0.2 of the rows have no value, and are written with another",
        ),
        (CLOSED, [1, 0, 0], "2 categories cannot be told from the noise"),
        (
            AGES,
            [0.061, 0.939, 0, 0],
            "6.1 % ± 0.2 are in the lowest range, 0 to 9: values below 0 are written as at least that",
        ),
        (
            replace(AGES, nullable=False),
            [0.061, 0.939, 0],
            "6.1 % ± 0.2 are in the lowest range, 0 to 9: values below 0, and rows without a value, are written as "
            "at least that (if there are any, declare nullable: true)",
        ),
        (
            AGES,
            [0.03, 0.909, 0.061, 0],
            "6.1 % ± 0.2 are in the highest range, 20 to 24,574: values above 24,574 are written as at most that",
        ),
        (
            Attribute("a", "DOUBLE", "numeric", edges=(0.0, 10.0, 20.0, 30.0)),
            [0.03, 0.909, 0.061],
            "6.1 % ± 0.2 are in the highest range, 20 up to 30: values above 30, also infinite ones, are written "
            "as at most that",
        ),
        (AGES, [0, 0, 1.007, 0], "100.0 % ± 0.2 share the wide range 20 to 24,574: where in it is lost"),
        (
            Attribute("a", "DOUBLE", "numeric", edges=(0.0, 1.0000000000000002, 2.0, 3.0)),
            [0.05, 0.9, 0.05],
            "90.0 % ± 0.2 share the wide range 1 up to 2: where in it is lost",
        ),
    ],
)
def test_losses_in_words_for_people(attribute, shares, words):
    assert column_facts(lost(attribute, shares).columns[0])["lost"].split("; ")[0] == words


def test_the_end_bins_are_told():
    shares = [0.3, *[0.07] * 9, 0.07]
    (column,) = facts_of(lost(replace(AGE, edges=(0, *range(10, 111, 10))), shares))["columns"]
    assert column["first_bin"]["share"] == 0.3 and column["last_bin"]["code"] == "[100, 110)"


def test_a_wide_bin_is_one_that_is_wide_beside_the_others():
    edges = (0, *range(100, 200), 2_000)
    attribute = replace(AGE, edges=edges)
    shares = np.full(len(edges) - 1, 0.8 / (len(edges) - 2))
    shares[-1] = 0.2
    (wide,) = lost(attribute, shares).columns[0].wide
    assert wide.label == "[199, 2000)"
    shares[:] = (1 - 0.3) / (shares.size - 1)
    shares[5] = 0.3  # one value
    assert not lost(attribute, shares).columns[0].wide


def test_pairs_are_measured_modelled_or_independent():
    pairs = pair_losses(
        list("abcd"),
        [NoisyMarginal(tuple(names), np.zeros((2, 2), np.int64), 1.0) for names in ("ab", "bc", "ba")],
    )
    assert (pairs.measured, pairs.modelled, pairs.independent) == (2, 1, 3)


def test_an_accurate_release_says_nothing():
    assert said(lost(TEXT, [0.6, 0.2, 0.1, 0.05, 0.05])) == []
    assert said(lost(AGE, [0.1] * 10)) == []
    zeros = replace(AGE, edges=(0, 1, *range(10, 101, 10)))
    assert said(lost(zeros, [0.95, *[0.005] * 10])) == []


def test_text_without_a_found_value_may_be_a_key():
    nothing = replace(FOUND, labels=(), nullable=False)
    (text,) = said(lost(nothing, [1.0], hidden={"a": 1_204}))
    assert "No value of 'a'" in text and "1,204 rows" in text and "a: {type: key}" in text


def test_values_that_are_hidden_name_their_number_and_the_cure():
    (text,) = said(lost(FOUND, [0.05, 0.03, 0.02, 0.9, 0.0], hidden={"a": 300}))
    assert (
        text.startswith("90 % of the rows") and "3 values are found" in text and "fewer than 300 rows" in text
    )
    assert all(cure in text for cure in ("Declare its categories", "larger epsilon", "type: key"))


@pytest.mark.parametrize("labels", [("250.1", "401.9", "V57"), ("2000", "1999", "7")])
def test_hidden_codes_can_keep_their_beginnings(labels):
    codes = replace(FOUND, labels=labels)
    shares = [0.05, 0.03, 0.02, 0.9, 0.0]
    (text,) = said(lost(codes, shares, hidden={"a": 300}))
    assert "keep the beginnings of its codes with {type: discover, prefixes: [3, 1]}, or write" in text
    for other in (
        replace(codes, prefixes=(4,)),
        replace(codes, labels=("Bonn", "Köln", "Ulm 2")),
        replace(codes, labels=("1", "2", "3")),
        replace(codes, sql_type="ENUM('a')"),
    ):
        (text,) = said(lost(other, shares, hidden={"a": 300}))
        assert "prefixes" not in text


@pytest.mark.parametrize("origin", ["declared", "discovered"])
def test_rows_that_keep_a_beginning_are_told(origin):
    codes = replace(TEXT, labels=("2*", "250*", "401.9"), prefixes=(3, 1), origin=origin)
    (column,) = facts_of(lost(codes, [0.2, 0.1, 0.6, 0.06, 0.04], hidden={"a": 80}))["columns"]
    error = round(2**0.5 * SIGMA / ROWS, 6)
    assert column["prefixes"] == {
        "code": "prefixes",
        "share": pytest.approx(0.3),
        "standard_error": error,
        "found": 2,
    }
    words = [
        "6.0 % ± 0.2 of the rows have a value that is not named (__other__)",
        "4.0 % ± 0.2 of the rows have no value (NULL)",
        "30.0 % ± 0.3 keep only the beginning of their text",
    ]
    found = ["1 value and 2 prefixes found, those below 80 hidden"] if origin == "discovered" else []
    assert column["lost"] == "; ".join(words + found)
    (kept,) = facts_of(lost(codes, [0, 0, 0.9, 0, 0.1], hidden={"a": 80}))["columns"]
    assert "prefix" not in kept["lost"]


def test_a_list_that_does_not_fit_shows_in_other():
    (text,) = said(lost(TEXT, [0.0, 0.0, 0.0, 1.0, 0.0]))
    assert text.startswith("100 % of the rows") and "not among its categories" in text


@pytest.mark.parametrize("attribute", [CLOSED, replace(CLOSED, nullable=True)])
def test_a_list_that_does_not_fit_shows_in_the_code_that_takes_the_rest(attribute):
    shares = [1.0, 0.001, 0.0] if not attribute.nullable else [0.0, 0.001, 0.0, 1.0]
    (text,) = said(lost(attribute, shares))
    taken = "NULL" if attribute.nullable else "x"
    assert text.startswith(f"'{taken}' is the only value of 'a'") and "check the list" in text


@pytest.mark.parametrize(
    ("end", "side"), [(0, "lowest range of 'a', 200 to 209"), (-1, "highest range of 'a', 290 to 299")]
)
def test_bounds_that_do_not_fit_show_in_an_end_bin(end, side):
    shares = np.full(10, 0.26 / 9)
    shares[end] = 0.74
    (text,) = said(lost(AGE, shares))
    assert text.startswith(f"74 % of the rows are in the {side},") and "wider bounds" in text
    assert ("nullable: true" in text) is (end == 0)


def test_gaps_between_values_are_no_clipping():
    """Whole numbers in bins of a third: every third bin holds a tenth of the rows."""
    attribute = Attribute("a", "DOUBLE", "numeric", edges=tuple(np.linspace(0, 9.01, 33).tolist()))
    shares = np.zeros(32)
    np.add.at(shares, np.searchsorted(attribute.edges, np.arange(10), side="right") - 1, 0.1)
    assert said(lost(attribute, shares)) == []


@pytest.mark.parametrize(("bounds", "told"), [((200, 299), True), ((0, 299), True), ((200, 400), False)])
def test_stated_bounds_are_blamed_also_if_the_bins_between_them_are_learnt(bounds, told):
    """Ten bins, and an atom at the upper bound that holds what lies beyond it."""
    least, most = map(Fraction, bounds)
    column = Undiscovered("a", "INTEGER", "numeric", least=least, most=most, clipped=True)
    edges = (*range(200, 291, 10), 299, 300)
    fill = (*pairwise(edges[:-1]), (299,))
    learnt = replace(AGE, edges=edges, fill=fill, origin="discovered")
    shares = [*[0.05] * 10, 0.5]
    text = " ".join(said(lost(learnt, shares, bounded=column)))
    assert ("If so many are not 299 in the source, declare wider bounds" in text) is told
    assert not said(lost(learnt, shares, bounded=replace(column, most=None)))


def test_a_bin_that_is_filled_with_one_value_hides_none():
    learnt = replace(AGE, edges=(0, 10, 90, 100), fill=((0, 10), (50,), (90, 100)), origin="discovered")
    told = lost(learnt, [0.05, 0.9, 0.05])
    assert told.columns[0].wide == () and not said(told)
    assert lost(replace(learnt, fill=()), [0.05, 0.9, 0.05]).columns[0].wide


def test_found_bounds_are_not_blamed():
    shares = np.full(10, 0.26 / 9)
    shares[-1] = 0.74
    (text,) = said(lost(replace(AGE, origin="discovered"), shares))
    assert "bounds do not fit" not in text and "where in it they lie is lost" in text


@pytest.mark.parametrize(
    ("cuts", "quiet"),
    [((0,), True), ((0,) * 8 + (544,), True), ((0,) * 6 + (1, 2, 544), False), ((0, 544), False)],
)
def test_a_learnt_bin_of_one_value_hides_nothing(cuts, quiet):
    """95 % of the rows are at zero, and are written as zero."""
    edges = (0, 544, *range(600, 1200, 100))
    fill = (cuts, *((low, high) for low, high in pairwise(edges[1:])))
    attribute = Attribute("a", "INTEGER", "numeric", edges=edges, origin="discovered", fill=fill)
    shares = [0.95, *[0.01] * 6]
    losses = lost(attribute, shares)
    assert (said(losses) == []) is quiet
    assert (summary_of_losses(facts_of(losses))[1].startswith("Pairs")) is quiet
    declared = lost(replace(attribute, origin="declared"), shares)
    assert said(declared), "the fill of a declared bin is a guess"


def test_one_more_wide_bin_is_one():
    edges, shares = (0, 1000, 2000, 3000, 3001), [0.3, 0.3, 0.3, 0.1]
    (column,) = facts_of(lost(replace(AGE, edges=edges), shares))["columns"]
    assert column["lost"].endswith("1 more wide range")


def test_a_category_that_vanishes_is_named_where_it_matters():
    rare = replace(CLOSED, labels=("no", "yes", "unknown"))
    (text,) = said(lost(rare, [0.9, 0.0005, 0.1]))
    assert text.startswith("'yes' of 'a' cannot be told") and "larger epsilon" in text and "workload=" in text
    many = replace(CLOSED, labels=tuple("abcdefgh"))
    shares = [0.3, 0.3, 0.2, 0.2, 0.0, 0.0, 0.0, 0.0]
    assert said(lost(many, shares)) == []
    assert len(said(lost(many, shares), "a")) == 1


def test_columns_left_independent_are_told_if_they_matter():
    others = tuple(replace(CLOSED, name=name) for name in "bcdef")
    chain = [NoisyMarginal(pair, np.full((3, 3), 999), 9.0) for pair in (("b", "c"), ("c", "d"), ("e", "f"))]
    losses = lost(CLOSED, [0.5, 0.3, 0.2], tables=chain, more=others)
    assert independent(losses, ()) == ""
    text = independent(losses, {"a"})
    assert text.startswith("'a' is independent of all other columns") and "workload={'a': 10}" in text


def test_every_doubt_is_a_warning_after_the_notes(recwarn):
    told = Doubts(("one doubt", "another"), ("a note",))
    assert told.warned() == ("a note", "one doubt", "another")
    assert [str(one.message) for one in recwarn] == ["one doubt", "another"]


def test_no_noisy_total_no_shares():
    (column,) = facts_of(replace(lost(TEXT, [1, 0, 0, 0, 0]), total=0.0))["columns"]
    assert column["name"] == "a"
    empty = _column(TEXT, None, 0.0, (0, 0), {})
    assert column_facts(empty) == {"name": "a", "tables": 0} and empty.other is None and empty.ends == ()


def test_rows_that_are_written_as_other_values_are_told():
    recoded = replace(FOUND, recoding=Recoding((3,), (0, 1, 2)))
    facts = facts_of(lost(recoded, [0.5, 0.2, 0.1, 0.2, 0.0], hidden={"a": 80}), ["w"])
    assert (
        "not named, and are written with another; 3 values found, those below 80 hidden"
        in summary_of_losses(facts)[1]
    )
    assert summary_of_losses(facts)[-1] == "Warning: w"
