"""Cells, cuts and categories from noisy answers, against what was put in."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.attributes.grids import grid_cuts, rounded
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.types import parse_type
from dpsyn_sql.discovery.attributes import attribute_of_pieces
from dpsyn_sql.discovery.cells import (
    Atoms,
    Cells,
    Piece,
    occupied_cells,
    refined_cuts,
    with_atoms,
    with_finer_counts,
    without_atoms,
)
from dpsyn_sql.discovery.labels import attribute_of_labels, labels_of_keys
from dpsyn_sql.planning.queries import NoisyKeys

INTEGER = parse_type("INTEGER")


def cells_of(kind, heavy, amount=1000, sigma=10.0):
    cuts = grid_cuts(kind)
    counts = [amount * any(low <= value < high for value in heavy) for low, high in pairwise(cuts)]
    return Cells(cuts, np.array(counts, dtype=float), sigma)


def chosen_lows(kind, cells, atoms=None):
    chosen = occupied_cells(kind, cells, Atoms() if atoms is None else atoms)
    return [int(low) for low, is_chosen in zip(cells.cuts, chosen, strict=False) if is_chosen]


def test_cells_that_stand_out_are_kept():
    assert chosen_lows(INTEGER, cells_of(INTEGER, [17, 40, 90])) == [16, 32, 64]


def test_a_lone_cell_far_away_needs_more():
    """A price of 2^60 would ruin the mean: luck of five deviations is not enough there, of fifteen it is."""
    kind = parse_type("DOUBLE")
    body, far = cells_of(kind, [5, 9, 20]), cells_of(kind, [2.0**60], amount=1)
    for deviations, kept in ((5, False), (15, True)):
        cells = Cells(body.cuts, body.counts + far.counts * deviations * body.sigma, body.sigma)
        assert (2**60 in chosen_lows(kind, cells)) is kept


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
    for value, count in ((70, 11), (200, 11), (20, 9), (10, 44), (2_000, 44)):
        counts = counts + cells_of(INTEGER, [value], count).counts
    assert chosen_lows(INTEGER, Cells(grid_cuts(INTEGER), counts, 10.0)) == [32, 64, 128]


def test_heavy_cells_get_more_pieces_and_atoms_cells_of_their_own():
    cells = Cells(tuple(map(Fraction, (0, 64, 128, 1024, 2048))), np.array([5000.0, 1000, 0, 500]), 10.0)
    atoms = Atoms((Fraction(70),), np.array([900.0]), 10.0)
    chosen = np.array([True, True, False, True])
    parts = without_atoms(cells, chosen, atoms)
    assert [(int(part.low), part.mass, part.variance) for part in parts] == [
        (0, 5000.0, 100.0),
        (64, 100.0, 200.0),
        (1024, 500.0, 100.0),
    ]
    cuts = [int(cut) for cut in refined_cuts(INTEGER, parts, atoms, 50.0, None)]
    assert {0, 64, 70, 71, 128, 1024, 2048} <= set(cuts) and cuts == sorted(set(cuts))
    inside = [
        sum(low <= cut < high for cut in cuts)
        for low, high in ((0, 64), (64, 128), (128, 1024), (1024, 2048))
    ]
    assert inside[0] == 64 and inside[2] == 1 and inside[3] > 1
    assert inside[1] < inside[0]  # what is left of it beside the atom is light


def test_pieces_are_not_narrower_than_a_granularity():
    cuts = refined_cuts(INTEGER, [piece(0, 1024, 1e6)], Atoms(), 1.0, 100)
    assert all(cut % 100 == 0 for cut in cuts[:-1]) and len(cuts) > 5


def piece(low, high, mass, variance=1.0):
    return Piece(Fraction(low), Fraction(high), mass, variance)


def looked(parts, cuts, counts, sigma=10.0, atoms=None, **more):
    fine = Cells(tuple(map(Fraction, cuts)), np.array(counts, dtype=float), sigma)
    found, both = with_finer_counts(INTEGER, parts, Atoms() if atoms is None else atoms, fine, **more)
    return [(int(one.low), int(one.high), one.mass) for one in found], both


@given(
    counts=st.lists(st.floats(-100, 1000), min_size=1, max_size=40),
    mass=st.floats(200, 5000),
    sigma=st.floats(0.5, 50),
)
def test_a_closer_look_keeps_the_sum_of_a_part_and_its_ends(counts, mass, sigma):
    """Pieces are positive, ascending, inside of the part, and hold the mean of both looks at it."""
    part = piece(0, 10 * len(counts), mass)
    found, _ = looked([part], range(0, 10 * len(counts) + 1, 10), counts, sigma, again=True)
    noise = len(counts) * sigma**2
    wanted = (mass / 1 + sum(counts) / noise) / (1 + 1 / noise)
    if wanted <= 0.5 / np.sqrt(1 + 1 / noise):
        assert found == []
        return
    assert sum(own for _, _, own in found) == pytest.approx(wanted)
    assert all(own > 0 and low < high for low, high, own in found)
    assert all(one[1] <= two[0] for one, two in pairwise(found))


def test_noise_at_the_ends_of_a_part_is_no_range():
    """5,000 rows in two of sixteen cells: the others hold noise of up to 2 deviations."""
    counts = [15, -12, 20, -8, 9, 2500, 2500, 18, -20, 11, 3, -5, 14, -17, 20, 6]
    found, _ = looked([piece(0, 1600, 5000.0, 400.0)], range(0, 1700, 100), counts)
    assert [one[:2] for one in found] == [(500, 600), (600, 700)]
    assert sum(one[2] for one in found) == pytest.approx(5000, rel=0.02)


def test_halves_that_noise_hides_stay_one_piece():
    """Eight cells of about half a deviation each: no cut between them is told by their counts."""
    found, _ = looked([piece(0, 80, 50.0, 100.0)], range(0, 90, 10), [4, 13, 4, 8, -3, 12, 3, 7])
    assert [one[:2] for one in found] == [(0, 80)]


def test_a_tail_that_only_shows_as_a_sum_is_kept():
    """Thirty-two cells of a third of a deviation hold 96 units: 2.4 deviations of their difference from the others."""
    counts = [2000] * 32 + [3] * 32
    found, _ = looked([piece(0, 640, 64_096.0, 100.0)], range(0, 650, 10), counts)
    beyond = [one for one in found if one[0] >= 320]
    assert beyond == [(320, 640, pytest.approx(96, rel=0.1))]


def test_parts_that_are_nothing_but_noise_are_left_out_and_both_looks_count():
    parts = [piece(0, 8, 1000.0, 100.0), piece(8, 16, 20.0, 100.0)]
    found, _ = looked(parts, (0, 4, 8, 16, 32), [700, 320, -15, 9])
    assert [one[:2] for one in found] == [(0, 4), (4, 8)]
    # The sum of the cells counts half as much as the part: (1000 / 100 + 1020 / 200) / (1 / 100 + 1 / 200).
    assert sum(one[2] for one in found) == pytest.approx(1006.67, abs=0.01)


def test_a_light_part_is_a_tail_only_where_values_end_beside_it():
    """25 units, 2.9 deviations: kept beside cells that reach the part, or an atom; left out far from them."""
    parts = [piece(0, 16, 4000.0, 100.0), piece(16, 32, 26.0, 100.0)]
    for counts, tail in (([0, 4000], True), ([4000, 0], False)):
        found, _ = looked(parts, (0, 8, 16, 32), [*counts, 24])
        assert any(one[0] == 16 for one in found) == tail
    atoms = Atoms((Fraction(15),), np.array([400.0]), 10.0)
    found, _ = looked(parts, (0, 7, 15, 16, 32), [4000, 0, 400, 24], atoms=atoms)
    assert [one[:2] for one in found] == [(0, 7), (16, 32)]


def test_a_gap_between_parts_needs_to_stand_out():
    parts = [piece(0, 8, 500.0), piece(16, 32, 500.0)]
    for count, gap in ((44, []), (46, [(8, 16, 46.0)])):
        found, _ = looked(parts, (0, 8, 16, 32), [500, count, 500])
        assert [one for one in found if one[0] == 8] == gap


def test_atoms_are_counted_twice_and_lie_in_no_piece():
    atoms = Atoms((Fraction(20),), np.array([400.0]), 10.0)
    found, both = looked([piece(0, 40, 60.0, 200.0)], (0, 20, 21, 40), [30, 440, 30], atoms=atoms)
    assert both.counts.tolist() == [420.0] and both.sigma == pytest.approx(10 / np.sqrt(2))
    assert [one[:2] for one in found] == [(0, 20), (21, 40)]
    together = with_atoms(
        INTEGER, [Piece(Fraction(low), Fraction(high), mass) for low, high, mass in found], both
    )
    assert [(int(one.low), int(one.high)) for one in together] == [(0, 20), (20, 21), (21, 40)]


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


def test_what_the_last_look_finds_in_a_gap_lies_beside_what_is_known():
    parts = (Piece(Fraction(0), Fraction(8), 900.0, 25.0), Piece(Fraction(1000), Fraction(1004), 900.0, 25.0))
    cuts = tuple(Fraction(cut) for cut in (0, 8, 1000, 1004))
    fine = Cells(cuts, np.array([900.0, 400.0, 900.0]), 5.0)
    pieces, _ = with_finer_counts(INTEGER, parts, Atoms(), fine, again=True)
    assert [(piece.low, piece.high) for piece in pieces] == [(0, 8), (8, 16), (996, 1000), (1000, 1004)]
    assert [piece.mass for piece in pieces][1:3] == [200.0, 200.0]
    (_, gap, _), _ = with_finer_counts(INTEGER, parts, Atoms(), fine)
    assert (gap.low, gap.high, gap.mass) == (8, 1000, 400.0)


def test_what_is_found_in_a_gap_ends_at_values_of_the_type():
    single = parse_type("FLOAT")
    fine = Cells(tuple(map(Fraction, (0, 1, 2**20, 2**20 + 1))), np.array([900.0, 400.0, 900.0]), 5.0)
    for narrow in (Fraction(1, 2**10), Fraction(1, 2**3)):  # the first is finer than FLOAT has it at 2^20
        parts = (
            Piece(Fraction(0), Fraction(1), 9e2, 25.0),
            Piece(2**20 + 1 - narrow, fine.cuts[-1], 9e2, 25.0),
        )
        pieces, _ = with_finer_counts(single, parts, Atoms(), fine, again=True)
        assert all(piece.low < piece.high for piece in pieces)
        assert all(rounded(single, end) == end for piece in pieces for end in (piece.low, piece.high))
