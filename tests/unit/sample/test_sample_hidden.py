"""Codes of hidden attributes that rows decide, beside a brute force row by row."""

import numpy as np
import pytest
from support.families import chain

from dpsyn_sql.planning.families import PLACES
from dpsyn_sql.rows.sample.tables import with_hidden


@pytest.mark.parametrize("sizes", [[1, 2, 3, 1, 6], [], [4]])
def test_numbers_of_rows_the_row_before_and_places(sizes):
    families = chain().families
    owners = np.repeat(np.arange(len(sizes)), sizes)
    state = np.random.default_rng(3).integers(0, 3, owners.size).astype(np.uint8)
    found = with_hidden(families, {"state": state}, owners)
    rows = [(size, rank) for size in sizes for rank in range(size)]
    assert list(found["n"]) == [size - 1 for size, _ in rows]
    nothing = families.domain["state before"].size - 1
    assert list(found["state before"]) == [
        state[place - 1] if rank else nothing for place, (_, rank) in enumerate(rows)
    ]
    names = [
        "only" if size == 1 else "first" if rank == 0 else "last" if rank == size - 1 else "middle"
        for size, rank in rows
    ]
    assert [PLACES[code] for code in found["place"]] == names
