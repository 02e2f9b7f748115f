"""Codes along the prefix tree of texts and beginnings that were found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.hierarchies.base import HierarchyColumn
from dpsyn_sql.domain.hierarchies.leaves import code_starts
from dpsyn_sql.domain.hierarchies.text import END, Texts
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.fit.found_labels import attribute_of_texts, with_rest
from dpsyn_sql.fit.variances import OneWayCounts

LONGEST = 4
TEXTS = Texts(HierarchyColumn("name", "VARCHAR"), "abc", (1, 2, 3, 4), LONGEST)
WORDS = st.text("abc", max_size=LONGEST)
BEGINNINGS = st.text("abc", min_size=1, max_size=3).map(lambda text: f"{text}*")
FOUND = st.dictionaries(WORDS | BEGINNINGS, st.integers(-3, 900), max_size=40)


def column(most: int = 100) -> Undiscovered:
    return Undiscovered("name", "VARCHAR", "categorical", False, most, hierarchy=TEXTS)


def key(text: str) -> str:
    return text + END if len(text) < LONGEST else text


@given(FOUND, st.integers(2, 20))
def test_codes_are_intervals_that_hold_what_was_found(found: dict[str, int], most: int) -> None:
    attribute = attribute_of_texts(column(most), TEXTS, found, 5.0)
    leaves = attribute.leaves
    assert leaves is not None
    assert 1 <= attribute.regular <= max(1, most - 1)
    starts = code_starts(TEXTS, leaves)
    assert starts[0] == TEXTS.lowest(TEXTS.root(), 0)[0]
    assert len(starts) == attribute.regular == len(attribute.labels)
    for node, level, code in zip(leaves.nodes[0], leaves.levels[0], leaves.codes, strict=True):
        low = str(TEXTS.lowest(np.array([node], object), level)[0])
        after = [*starts, ""][code + 1]
        if not str(starts[code]).startswith(str(node)) and not str(after).startswith(str(node)):
            assert sum(start <= low for start in starts) - 1 == code
    assert list(leaves.codes) == sorted(leaves.codes)
    assert sum(leaves.rows) == pytest.approx(sum(max(0, rows) for rows in found.values()))


@given(FOUND)
def test_every_text_keeps_its_rows(found: dict[str, int]) -> None:
    leaves = attribute_of_texts(column(), TEXTS, found, 5.0).leaves
    assert leaves is not None
    rows = dict[str, float]()
    for node, own in zip(leaves.nodes[0], leaves.rows, strict=True):
        rows[str(node)] = rows.get(str(node), 0.0) + own
    for text, own in found.items():
        if not text.endswith("*"):
            assert rows.get(key(text), 0.0) >= max(0, own) - 1e-6


def test_texts_outside_of_the_alphabet_belong_to_others() -> None:
    attribute = attribute_of_texts(column(), TEXTS, {"ab": 50, "xyz": 70, "__other__": 80, "x*": 10}, 5.0)
    assert attribute.leaves is not None
    assert sum(attribute.leaves.rows) == 50


def test_nothing_found_is_one_code() -> None:
    attribute = attribute_of_texts(column(), TEXTS, {}, 5.0)
    assert attribute.leaves is not None
    assert (attribute.labels, attribute.leaves.codes, attribute.leaves.rows) == (("*",), (0,), (0.0,))


def test_the_rest_of_a_beginning_goes_with_the_codes_below_it() -> None:
    """300 rows begin with a and were not found whole; 600 and 300 were, in two codes."""
    attribute = attribute_of_texts(column(), TEXTS, {"aaaa": 600, "abca": 300, "a*": 300}, 5.0)
    leaves = attribute.leaves
    assert leaves is not None
    assert attribute.regular == 2
    assert np.bincount(leaves.codes, leaves.rows).tolist() == pytest.approx([800, 400])
    assert all(before <= after for before, after in pairwise(leaves.codes))


def counts_of(attribute: Attribute, rows: Sequence[float], sigma: float = 1.0) -> OneWayCounts:
    found = np.zeros(attribute.size)
    found[: len(rows)] = rows
    return OneWayCounts(found, np.full(attribute.size, sigma))


def test_texts_between_the_found_ones_are_written_as_the_beginning_they_share() -> None:
    """900 rows lie after abca and before b: all begin with a, not with abca."""
    attribute = attribute_of_texts(column(), TEXTS, {"aaaa": 600, "abca": 300, "bbbb": 500}, 5.0)
    assert attribute.leaves is not None and attribute.regular == 3
    leaves = with_rest(attribute, counts_of(attribute, [605, 1200, 500])).leaves
    assert leaves is not None
    rows = dict(zip(zip(leaves.codes, leaves.nodes[0], strict=True), leaves.rows, strict=True))
    assert rows[0, "aaaa"] == 600 and rows[1, "abca"] == 300 and rows[2, "bbbb"] == 500
    rest = {node: own for (code, node), own in rows.items() if code == 1 and node != "abca"}
    assert max(rest.values()) == 900 and sum(rest.values()) == 900
    (node,) = (node for node, own in rest.items() if own)
    assert "abca".startswith(node) and node != "abca"
    assert sum(own for (code, _), own in rows.items() if code != 1) == 1100
    assert code_starts(TEXTS, leaves) == code_starts(TEXTS, attribute.leaves)


@given(FOUND, st.integers(2, 20), st.integers(0, 10**6))
def test_the_rest_of_a_code_is_a_beginning_of_all_its_texts(
    found: dict[str, int], most: int, seed: int
) -> None:
    """By brute force over all texts of the alphabet."""
    attribute = attribute_of_texts(column(most), TEXTS, found, 5.0)
    rows = np.random.default_rng(seed).integers(0, 3000, attribute.regular)
    leaves = with_rest(attribute, counts_of(attribute, rows.tolist())).leaves
    assert leaves is not None and attribute.leaves is not None
    assert code_starts(TEXTS, leaves) == code_starts(TEXTS, attribute.leaves)
    if len(attribute.leaves.codes) < 2:
        return
    starts = [*code_starts(TEXTS, leaves), "d"]
    every = [key("".join(own)) for n in range(LONGEST + 1) for own in product("abc", repeat=n)]
    for node, own, code in zip(leaves.nodes[0], leaves.rows, leaves.codes, strict=True):
        held = [text for text in every if str(starts[code]) <= text < str(starts[code + 1])]
        assert held and (not own or any(text.startswith(str(node)) for text in held))
