"""Which counts of one look belong to which codes."""

from fractions import Fraction

import numpy as np

from dpsyn_sql.attributes.attribute import Attribute, Recoding
from dpsyn_sql.discovery.one_look import looked_at
from dpsyn_sql.planning.queries import NoisyMarginal

CUTS = tuple(map(Fraction, (0, 1, 2, 3, 10, 20, 30)))
NOISY = NoisyMarginal(("x",), np.array([1, 10, 100, 1_000, 10_000, 100_000, 7]), 5.0)


def numbers(*fill, nullable=True, sql_type="INTEGER", **others):
    edges = (*(cuts[0] for cuts in fill), fill[-1][-1] if len(fill[-1]) > 1 else fill[-1][0] + 1)
    if sql_type == "DOUBLE":
        edges, fill = tuple(map(float, edges)), tuple(tuple(map(float, cuts)) for cuts in fill)
    return Attribute("x", sql_type, "numeric", edges=edges, fill=fill, nullable=nullable, **others)


def test_a_code_has_the_cells_in_which_its_values_lie():
    """What was counted where no value is written, in 2 and 10 to 19, belongs to no code."""
    for sql_type in ("INTEGER", "DOUBLE"):
        found = looked_at(numbers((0, 2), (3, 8), (20,), sql_type=sql_type), CUTS, NOISY)
        assert found.groups == (0, 1, 2, 3)
        assert found.values.tolist() == [11, 1_000, 100_000, 7] and found.cells.tolist() == [2, 1, 1, 1]
        assert (found.attr, found.sigma) == ("x", 5.0)


def test_null_of_a_column_that_has_none_is_counted_with_its_first_code():
    found = looked_at(numbers((0, 2), (3, 8), nullable=False), CUTS, NOISY)
    assert found.values.tolist() == [11 + 7, 1_000] and found.cells.tolist() == [3, 1]


def test_codes_that_share_a_cell_are_judged_together():
    found = looked_at(numbers((1,), (3, 12), (12, 30)), CUTS, NOISY)
    assert found.groups == (0, 1, 1, 2) and found.values.tolist() == [10, 111_000, 7]


def test_cells_that_were_counted_together_have_one_count():
    """1 stands alone in a cell from 0 to 2: what lies before and after it is counted as cell 0."""
    owners = (0, 1, 0, 3, 4, 5)
    found = looked_at(numbers((0,), (1,), (2,), (3, 10)), CUTS, NOISY, owners)
    assert found.groups == (0, 1, 0, 2, 3) and found.values.tolist() == [1, 10, 1_000, 7]


def test_of_a_column_of_which_nothing_was_found_null_alone_is_judged():
    nothing = numbers((0,), recoding=Recoding((0,), (1,)))
    assert looked_at(nothing, CUTS, NOISY).values.tolist() == [111_111, 7]
