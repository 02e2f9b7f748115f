"""Cells, cuts and categories from noisy answers, against what was put in."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.domain.grids import grid_cuts
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.types import parse_type
from dpsyn_sql.fit.cells import Atoms, Cells, Piece, _of_sum, pieces_of, refined_cuts, standing_cells
from dpsyn_sql.fit.discovered import attribute_of_pieces
from dpsyn_sql.fit.found_labels import attribute_of_labels, labels_of_keys
from dpsyn_sql.planning.queries import NoisyKeys

INTEGER = parse_type("INTEGER")


def cells_of(kind, heavy, amount=1000, sigma=10.0):
    cuts = grid_cuts(kind)
    counts = [amount * any(low <= value < high for value in heavy) for low, high in pairwise(cuts)]
    return Cells(cuts, np.array(counts, dtype=float), sigma)


def chosen_lows(kind, cells, atoms=None):
    chosen = standing_cells(kind, cells, Atoms() if atoms is None else atoms)
    return [int(low) for low, is_chosen in zip(cells.cuts, chosen, strict=False) if is_chosen]


def test_cells_that_stand_out_are_kept():
    assert chosen_lows(INTEGER, cells_of(INTEGER, [17, 40, 90])) == [16, 32, 64]


def test_a_cell_with_an_atom_is_kept_whatever_its_count():
    atoms = Atoms((Fraction(5),), np.array([60.0]), 10.0)
    assert chosen_lows(INTEGER, cells_of(INTEGER, [90]), atoms) == [4, 64]


@pytest.mark.parametrize(
    ("name", "near", "far"),
    [
        ("INTEGER", 40, -(2**30)),
        ("DECIMAL(10,2)", 4_000, 2**33),
        ("DOUBLE", 5, 2**99),
        ("DATE", 9_000, -600_000),
    ],
)
def test_where_nothing_stands_out_everyday_values_are_likelier(name, near, far):
    kind = parse_type(name)
    counts = cells_of(kind, [near], 30).counts + cells_of(kind, [far], 35).counts
    cells = Cells(grid_cuts(kind), counts, 10.0)
    (low,) = chosen_lows(kind, cells)
    assert low <= near < next(cut for cut in cells.cuts if cut > low)
    more = Cells(cells.cuts, counts + cells_of(kind, [far], 30).counts, 10.0)
    assert any(low <= far for low in chosen_lows(kind, more)) or far > 0


def test_cells_side_by_side_outweigh_a_lucky_one_far_away():
    kind = parse_type("BIGINT")
    cells = cells_of(kind, [600, 1500, 3000, 5000], amount=300, sigma=114.0)
    cells.counts[3] = -400
    cells.counts[10] = 430  # about -2^53: larger than any cell of the values
    assert chosen_lows(kind, cells) == [512, 1024, 2048, 4096]


def test_next_to_a_cell_that_stands_out_less_is_enough():
    counts = cells_of(INTEGER, [40]).counts
    for value, count in ((70, 21), (200, 21), (20, 19), (10, 44), (2_000, 44)):
        counts = counts + cells_of(INTEGER, [value], count).counts
    assert chosen_lows(INTEGER, Cells(grid_cuts(INTEGER), counts, 10.0)) == [32, 64, 128]


def test_heavy_cells_get_more_pieces_and_atoms_cells_of_their_own():
    cells = Cells(tuple(map(Fraction, (0, 64, 128, 1024, 2048))), np.array([5000.0, 1000, 0, 500]), 10.0)
    atoms = Atoms((Fraction(70),), np.array([900.0]), 10.0)
    chosen = np.array([True, True, False, True])
    cuts = [int(cut) for cut in refined_cuts(INTEGER, cells, chosen, atoms, 50.0, None)]
    assert {0, 64, 70, 71, 128, 1024, 2048} <= set(cuts) and cuts == sorted(set(cuts))
    inside = [
        sum(low <= cut < high for cut in cuts)
        for low, high in ((0, 64), (64, 128), (128, 1024), (1024, 2048))
    ]
    assert inside[0] == 64 and inside[2] == 1 and inside[3] > 1
    assert inside[1] < inside[0]  # what is left of it beside the atom is light


def test_pieces_are_not_narrower_than_a_granularity():
    cells = Cells((Fraction(0), Fraction(1024)), np.array([1e6]), 1.0)
    cuts = refined_cuts(INTEGER, cells, np.array([True]), Atoms(), 1.0, 100)
    assert all(cut % 100 == 0 for cut in cuts[:-1]) and len(cuts) > 5


@given(
    values=st.lists(st.floats(-100, 100), min_size=1, max_size=20),
    total=st.floats(0.5, 500),
)
def test_the_nearest_numbers_of_a_sum(values, total):
    """The conditions of an optimum: the same shift where positive, not more than it elsewhere."""
    values = np.array(values)
    found = _of_sum(values, total)
    assert np.all(found >= 0) and found.sum() == pytest.approx(total)
    shifts = (values - found)[found > 1e-9]
    assert np.ptp(shifts) < 1e-6 and np.all(values[found <= 1e-9] <= shifts.max() + 1e-6)


def test_cells_of_noise_are_left_out_and_both_looks_count():
    cuts = tuple(map(Fraction, (0, 8, 16, 32)))
    cells = Cells(cuts, np.array([1000.0, 20, 0]), 10.0)
    fine = Cells(tuple(map(Fraction, (0, 4, 8, 16, 32))), np.array([700.0, 320, -15, 9]), 10.0)
    pieces = pieces_of(cells, np.array([True, True, False]), Atoms(), fine)
    assert [(int(piece.low), int(piece.high)) for piece in pieces] == [(0, 4), (4, 8)]
    # The sum of the pieces counts half as much as the coarse cell: (1000 / 100 + 1020 / 200) / (1 / 100 + 1 /
    # 200).
    assert sum(piece.mass for piece in pieces) == pytest.approx(1006.67, abs=0.01)


def test_light_neighbours_are_merged_first_and_gaps_are_not_written():
    masses = [5, 900, 10, 12, 800]
    lows = [0, 10, 20, 30, 1000]
    pieces = [Piece(Fraction(low), Fraction(low + 10), mass) for low, mass in zip(lows, masses, strict=True)]
    found = attribute_of_pieces(
        Undiscovered("x", "INTEGER", "numeric", nullable=False, max_codes=4), pieces, None
    )
    assert found.edges == (0, 10, 20, 520, 1010)
    assert found.fill[0] == (0, 10) and found.fill[3] == (1000, 1010)
    assert len(found.fill[2]) == 9 and (found.fill[2][0], found.fill[2][-1]) == (20, 40)


def attribute_of_keys(column, found):
    return attribute_of_labels(column, labels_of_keys(column, found))


def test_keys_with_the_largest_counts_are_kept_in_order():
    column = Undiscovered("city", "VARCHAR", "categorical", max_codes=4)
    found = NoisyKeys("city", ("__other__", "a", "b", "c"), np.array([99, 50, 90, 70]), 5.0, 40)
    attribute = attribute_of_keys(column, found)
    assert attribute.labels == ("b", "c") and attribute.other and attribute.size == 4


def test_no_key_passed():
    column = Undiscovered("city", "VARCHAR", "categorical", nullable=False)
    attribute = attribute_of_keys(column, NoisyKeys("city", (), np.zeros(0, np.int64), 5.0, 40))
    assert attribute.labels == () and attribute.size == 1


def test_an_enum_without_a_name_gets_the_released_values_only():
    column = Undiscovered("mood", "ENUM('secret', 'ok')", "categorical")
    attribute = attribute_of_keys(column, NoisyKeys("mood", ("ok",), np.array([50]), 5.0, 40))
    assert attribute.sql_type == "ENUM('ok')"
