"""Choices of families: sensitivities of their scores by brute force, the scores themselves, and the door."""

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy.optimize import linprog
from support.doors import FakeCounter, NoNoise, OneRelease, ReadAtOnce

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.accounting.events import SelectionEvent, cost_units
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InternalError, ReleaseChanged
from dpsyn_sql.planning.queries import FamilyChoice, MarginalQuery
from dpsyn_sql.private.measure.scores import MOST_BITS, STEPS, most_slope, scored

WAYS = [("I", 1), ("I", 4), ("I", 17), ("I", MOST_BITS), ("F", 0), ("R", 0)]


# -- sensitivities -------------------------------------------------------------------------------


def small(shape, most):
    """Every table of at most ``most`` rows."""
    cells = math.prod(shape)
    for rows in range(most + 1):
        for places in combinations_with_replacement(range(cells), rows):
            yield np.bincount(places, minlength=cells).reshape(shape)


def extreme():
    """Tables of two by two whose cells are small, beside powers of two, and huge."""
    for cells in product((0, 1, 2, 15, 16, 2**17, 2**30 - 1, 2**44), repeat=4):
        yield np.array(cells).reshape(2, 2)


def largest_change(tables, score, bits):
    """Of any table beside it with one row more, in any cell."""
    worst = 0
    for table in tables:
        before = scored(table, 1, score, bits)
        for cell in np.ndindex(table.shape):
            more = table.copy()
            more[cell] += 1
            worst = max(worst, abs(scored(more, 1, score, bits) - before))
    return worst


@pytest.mark.parametrize(("shape", "most"), [((2, 2), 8), ((3, 2), 5), ((2, 3), 5), ((5, 2), 3), ((1, 2), 9)])
@pytest.mark.parametrize(("score", "bits"), WAYS)
def test_a_row_changes_no_score_of_a_small_table_by_more_than_its_steps(shape, most, score, bits):
    if score != "F" or shape[1] == 2:
        assert largest_change(small(shape, most), score, bits) <= STEPS[score](bits)


@pytest.mark.parametrize(("score", "bits"), WAYS)
def test_a_row_changes_scores_of_extreme_tables_by_just_as_many_steps(score, bits):
    """So that a smaller number would be wrong."""
    assert largest_change(extreme(), score, bits) == STEPS[score](bits)


@pytest.mark.parametrize(("score", "bits"), WAYS)
def test_a_row_changes_no_score_of_a_random_table_by_more_than_its_steps(score, bits):
    rng = np.random.default_rng(1)
    shapes = [(int(rng.integers(1, 9)), 2 if score == "F" else int(rng.integers(2, 6))) for _ in range(60)]
    tables = [(2 ** rng.uniform(0, rng.integers(1, 36), shape)).astype(np.int64) - 1 for shape in shapes]
    assert largest_change(tables, score, bits) <= STEPS[score](bits)


def test_tables_of_more_rows_than_there_can_be_are_scored_and_a_row_more_changes_nothing():
    table = np.full((4, 2), 2**62)
    for score, bits in WAYS:
        more = table.copy()
        more[1, 1] += 1
        assert scored(table, 1, score, bits) == scored(more, 1, score, bits)


# -- scores --------------------------------------------------------------------------------------


def counts(parents, child, number=12, rows=4000):
    rng = np.random.default_rng(3)
    for _ in range(number):
        joint = rng.dirichlet(np.full(parents * child, 0.4)).reshape(parents, child)
        joint[rng.random(joint.shape) < 0.2] = 0
        if joint.sum():
            yield np.rint(rows * joint / joint.sum()).astype(np.int64)


@pytest.mark.parametrize("shape", [(2, 2), (4, 3), (1, 5), (30, 6)])
def test_i_and_r_are_their_definitions_cell_by_cell(shape):
    for table in counts(*shape):
        rows, above, own = table.sum(), table.sum(axis=1), table.sum(axis=0)
        cells = [cell for cell in np.ndindex(shape) if table[cell]]
        bits = sum(table[c] * math.log2(table[c] * rows / (above[c[0]] * own[c[1]])) for c in cells)
        assert scored(table, 1, "I", 16) / 256 == pytest.approx(bits, abs=2e-3 * rows)
        apart = np.abs(table - np.outer(above, own) / rows).sum()
        assert scored(table, 1, "R", 0) == math.floor(apart + 1e-9)


def test_r_of_many_rows_is_exact_beyond_64_bits():
    table = np.array([[2**40, 3], [5, 2**40 + 1]])
    rows = int(table.sum())
    above, own = [int(n) for n in table.sum(axis=1)], [int(n) for n in table.sum(axis=0)]
    apart = sum(abs(rows * int(table[i, j]) - above[i] * own[j]) for i in (0, 1) for j in (0, 1))
    assert scored(table, 1, "R", 0) == apart // rows


def test_i_is_mutual_information_up_to_its_rows_and_another_score_beyond():
    equal = np.array([[2**11, 0], [0, 2**11]])
    assert scored(equal, 1, "I", 12) == pytest.approx(256 * 2**12, rel=1e-3)
    assert scored(equal, 1, "I", 2) < 256 * 2**11
    assert most_slope(12) == math.floor(
        256 * (2**12 * math.log2(2**12) - (2**12 - 1) * math.log2(2**12 - 1)) + 0.5
    )


def test_the_axis_of_the_child_is_the_one_that_is_named():
    rng = np.random.default_rng(5)
    table = rng.integers(0, 99, (2, 3, 4))
    for axis, (score, bits) in product(range(3), [("I", 12), ("R", 0)]):
        moved = np.moveaxis(table, axis, -1).reshape(-1, table.shape[axis])
        assert scored(table, axis, score, bits) == scored(moved, 1, score, bits)


def nearest_of_most_information(joint):
    """Half the L1 distance to the nearest joint distribution of one bit of mutual information: for every way to
    give the parents' values to the child's, a linear program over all distributions with that support."""
    parents = len(joint)
    best = math.inf
    for given in product((0, 1), repeat=parents):
        support = np.zeros((parents, 2))
        support[np.arange(parents), given] = 1
        # Variables: the distribution p, and t >= |joint - p|.
        cells = joint.size
        above = np.block([[np.eye(cells), -np.eye(cells)], [-np.eye(cells), -np.eye(cells)]])
        halves = np.array([[(cell % 2 == x) for cell in range(cells)] + [0] * cells for x in (0, 1)], float)
        bounds = [(0, None if allowed else 0) for allowed in support.ravel()] + [(0, None)] * cells
        found = linprog(
            np.r_[np.zeros(cells), np.ones(cells)],
            A_ub=above,
            b_ub=np.r_[joint.ravel(), -joint.ravel()],
            A_eq=halves,
            b_eq=[0.5, 0.5],
            bounds=bounds,
        )
        if found.success:
            best = min(best, found.fun / 2)
    return best


@pytest.mark.parametrize("parents", [2, 4])
def test_f_is_the_distance_to_the_nearest_joint_distribution_of_most_information(parents):
    for table in counts(parents, 2):
        wanted = 2 * table.sum() * nearest_of_most_information(table / table.sum())
        assert -scored(table, 1, "F", 0) == pytest.approx(wanted, abs=1e-3)


def test_f_of_the_example_in_the_slides():
    assert scored(np.array([[5, 2], [0, 3]]), 1, "F", 0) == -4  # -0.2, of 10 rows
    assert scored(np.array([[5, 0], [0, 5]]), 1, "F", 0) == 0


@pytest.mark.parametrize("rows", [9, 4001])
def test_f_of_sixteen_configurations_is_the_best_of_all_divisions(rows):
    given = np.array(list(product((0, 1), repeat=16)))
    for table in counts(16, 2, 4, rows):
        number = table.sum()
        missing = np.maximum(number - 2 * (1 - given) @ table[:, 0], 0)
        missing += np.maximum(number - 2 * given @ table[:, 1], 0)
        assert -scored(table, 1, "F", 0) == missing.min()


def test_a_table_without_rows_scores_nothing():
    assert {scored(np.zeros((3, 2), np.int64), 1, score, bits) for score, bits in WAYS} == {0}


# -- the door ------------------------------------------------------------------------------------

DOMAIN = Domain(
    (
        *(Attribute(name, "BOOLEAN", "categorical", labels=(False, True)) for name in "abc"),
        Attribute("many", "INTEGER", "categorical", labels=(1, 2, 3)),
    )
)
TABLES = {
    ("a", "b"): [[400, 100], [100, 400]],
    ("a", "c"): [[250, 250], [250, 250]],
    ("a", "many"): [[300, 100, 100], [100, 300, 100]],
}
FAMILIES = [MarginalQuery(("a", "c")), MarginalQuery(("a", "b")), MarginalQuery(("a", "many"))]
CHILDREN = ["c", "b", "a"]
SHARE = Budget("gdp", 10**13)


def door(rows=1, kind="gdp"):
    entry = OneRelease(Budget(kind, 10**15)).open()
    counter = FakeCounter(lambda query: np.array(TABLES[query.attrs]))
    return ReadAtOnce(counter, DOMAIN, rows, entry, NoNoise()), entry


@pytest.mark.parametrize("kind", ["gdp", "pure"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("score", "bits"), [("I", 11), ("F", 0), ("R", 0)])
def test_the_most_dependent_child_is_chosen_at_the_price_of_its_sensitivity(score, bits, rows, kind):
    curator, entry = door(rows, kind)
    share = Budget(kind, 10**13)
    assert curator.ask(FamilyChoice(FAMILIES, CHILDREN, score, bits), share) == 1
    (event,) = entry.events
    assert event == SelectionEvent(event.scale, STEPS[score](bits) * rows)
    assert 0.999 * share.amount < cost_units(event, kind) <= share.amount


def test_a_replay_gives_the_stored_choice_and_another_score_stops_it():
    release = OneRelease(Budget("gdp", 10**15))

    def ask(*settings):
        counter = FakeCounter(lambda query: np.array(TABLES[query.attrs]))
        curator = ReadAtOnce(counter, DOMAIN, 1, release.open(), NoNoise())
        return curator.ask(FamilyChoice(FAMILIES, *settings), SHARE), counter.asked

    assert ask(CHILDREN, "I", 11) == (1, [FAMILIES])
    assert ask(CHILDREN, "I", 11) == (1, [])
    for other in ((CHILDREN, "I", 12), (CHILDREN, "R", 0), (["a", "b", "a"], "I", 11)):
        with pytest.raises(ReleaseChanged, match="question 0 differs"):
            ask(*other)


class Lying(str):
    """Text that is equal to whatever it is compared with."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    ("candidates", "children", "score", "bits"),
    [
        ([], [], "R", 0),
        (FAMILIES, CHILDREN[:2], "R", 0),
        (FAMILIES, ["c", "b", "c"], "R", 0),
        (FAMILIES, CHILDREN, "L1", 0),
        (FAMILIES, CHILDREN, Lying("R"), 0),
        (FAMILIES, CHILDREN, "R", 5),
        (FAMILIES, CHILDREN, "I", 0),
        (FAMILIES, CHILDREN, "I", MOST_BITS + 1),
        (FAMILIES, CHILDREN, "I", 11.0),
        (FAMILIES, CHILDREN, "I", True),
        (FAMILIES, ["c", "b", "many"], "F", 0),  # three values
        ([MarginalQuery(("a", "c"), (None, (0, 0)))], ["c"], "F", 0),  # one bin
        ([MarginalQuery(("a", "c"), (None, (0, 2)))], ["c"], "R", 0),  # an empty bin
    ],
)
def test_what_cannot_be_asked_is_refused_before_the_charge(candidates, children, score, bits):
    curator, entry = door()
    with pytest.raises(InternalError):
        curator.ask(FamilyChoice(candidates, children, score, bits), SHARE)
    assert entry.events == ()
