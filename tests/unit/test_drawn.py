"""Which codes of drawn rows are compared with the answers."""

from types import SimpleNamespace

import numpy as np

from dpsyn_sql.rows.write.drawn import table_codes


def test_what_a_row_keeps_of_the_rows_above_is_its_own_code():
    """Of a person who was absent in the period before nothing is known above."""
    families = SimpleNamespace(
        domain=SimpleNamespace(names=("x", "y")), drawn=2, size="", table="", previous=(), place=""
    )
    codes = np.array([[0, 3], [1, 2]], np.uint8)
    rows = SimpleNamespace(
        families=families, codes=codes, above=object(), parent=np.array([1, 2]), total=2, weights=np.ones(2)
    )
    above = {"x": np.array([1, 0, -1]), "x before": np.array([1, 0, 2])}
    found = table_codes(rows, 1, above).columns
    assert {name: one.tolist() for name, one in found.items()} == {
        "x": [0, 1],
        "y": [3, 2],
        "x before": [0, 2],
    }
