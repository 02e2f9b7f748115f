"""Labels of values and beginnings: what they stand for, how many there are, and what each holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.doors import FakeDoor

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.leaves import code_starts
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.text import END, Texts
from dpsyn_sql.attributes.trees import HierarchyColumn
from dpsyn_sql.discovery.designs import design
from dpsyn_sql.discovery.labels import (
    attribute_of_labels,
    attribute_of_texts,
    labels_of_keys,
    with_rest,
    with_stems,
)
from dpsyn_sql.discovery.learn import Chooser, discovered
from dpsyn_sql.fit.variances import OneWayCounts
from dpsyn_sql.planning.queries import GridQuery, NoisyKeys, NoisyMarginal
from dpsyn_sql.source.relation import PrivacyUnit


def label_of(attribute, text):
    """The label that a text is encoded as; None for ``__other__``."""
    if text in attribute.labels:
        return text
    stems = (f"{text[:n]}*" for n in attribute.prefixes if len(text) >= n)
    return next((stem for stem in stems if stem in attribute.labels), None)


class Exact(FakeDoor):
    """A door without noise that shows keys of at least ``least`` rows."""

    def __init__(self, texts, least):
        self.texts, self.least, self.labels = texts, least, []

    def answer(self, query, budget):
        if isinstance(query, GridQuery):
            return NoisyMarginal(("rows",), np.array([10**9, 0]), 1.0)
        one = query.beginning
        keys = self.texts
        if one is not None:
            self.labels.append(len(one.known.labels))
            keys = [
                text[: one.length]
                for text in self.texts
                if len(text) >= one.length and label_of(one.known, text) is None
            ]
        counts = sorted((key, count) for key, count in Counter(keys).items() if count >= self.least)
        values = np.array([count for _, count in counts], dtype=np.int64)
        return NoisyKeys("s", tuple(key for key, _ in counts), values, 1.0, self.least)


def learnt(texts, least=1, **options):
    column = Undiscovered("s", "VARCHAR", "categorical", **options)
    shape, door = Shape((column,)), Exact(texts, least)
    budget, unit = Budget("gdp", 10**13, 10**8), PrivacyUnit()
    looks = design(shape, unit, budget)
    found = discovered(shape, looks, door, Chooser(budget, unit, lambda _: Fraction(1)))
    assert found.asked == tuple(look for look in looks if look.ask != "again")
    return found.shape.domain["s"], door


@settings(max_examples=200)
@given(
    texts=st.lists(st.text("abc*_", max_size=5), max_size=60),
    prefixes=st.sampled_from([(), (1,), (2,), (3, 1), (4, 2, 1)]),
    room=st.integers(1, 30),
    nullable=st.booleans(),
    least=st.integers(1, 4),
)
def test_never_more_labels_than_codes_and_none_that_is_mistaken(texts, prefixes, room, nullable, least):
    found, door = learnt(texts, least, prefixes=prefixes, max_codes=room + 1 + nullable, nullable=nullable)
    assert found.regular <= room and all(size <= room for size in door.labels)
    assert list(found.labels) == sorted(set(found.labels), key=str.encode)
    assert all(found.stems(length) for length in found.prefixes) and set(found.prefixes) <= set(prefixes)
    for length in prefixes:
        # What looks like the label of a beginning is one: enough rows begin so.
        for label in (x for x in found.labels if len(x) == length + 1 and x.endswith("*")):
            assert length in found.prefixes
            assert sum(text.startswith(label[:-1]) for text in texts) >= least


@settings(max_examples=200)
@given(
    texts=st.lists(st.text("abc", max_size=4), max_size=60),
    prefixes=st.sampled_from([(1,), (2,), (3, 1), (3, 2, 1)]),
    room=st.integers(1, 12),
)
def test_without_noise_no_label_is_empty_and_the_light_are_left_out(texts, prefixes, room):
    found, _ = learnt(texts, prefixes=prefixes, max_codes=room + 1, nullable=False)
    held = Counter(label_of(found, text) for text in texts)
    assert set(held) - {None} == set(found.labels)
    # A beginning that is left out is lighter than every label.
    left = [text for text in texts if label_of(found, text) is None]
    for length in prefixes:
        beginnings = Counter(text[:length] for text in left if len(text) >= length)
        assert not found.labels or max(beginnings.values(), default=0) <= min(held[x] for x in found.labels)


def test_counts_of_values_that_are_left_out_go_to_their_beginning():
    column = Undiscovered("icd", "VARCHAR", "categorical", max_codes=4, nullable=False, prefixes=(3, 1))
    whole = labels_of_keys(
        column, NoisyKeys("icd", ("250.1", "250.2", "401.9", "V5"), np.array([60, 50, 900, 70]), 1.0, 40)
    )
    assert whole == {"250.1": 60, "401.9": 900, "V5": 70}
    three = with_stems(column, whole, NoisyKeys("icd", ("250",), np.array([90]), 1.0, 40), (3,))
    assert three == {"250*": 150, "401.9": 900, "V5": 70}
    one = with_stems(column, three, NoisyKeys("icd", ("V", "4"), np.array([80, 10]), 1.0, 40), (3, 1))
    assert one == {"250*": 150, "401.9": 900, "V*": 150}
    assert attribute_of_labels(column, one).prefixes == (3, 1)


@pytest.mark.parametrize("star", ["25*", "251", "__other__"])
def test_a_value_that_is_spelled_as_a_beginning_is_none_of_its_own(star):
    found, _ = learnt([star] * 50 + ["251"] * 3, least=10, prefixes=(2,))
    assert found.labels == (("25*",) if star == "25*" else (("251",) if star == "251" else ("__*",)))
    assert [label for label, _ in found.stems(2)] == [x for x in found.labels if x.endswith("*")]


def test_labels_that_end_in_a_star_stay_values_where_no_beginning_has_their_length():
    found, _ = learnt(["M*A*S*H*"] * 50 + ["M*"] * 40 + ["xx"] * 5, least=10, prefixes=(3,))
    assert found.labels == ("M*", "M*A*S*H*") and found.prefixes == ()
    assert label_of(found, "M*A*S*Hx") is None


def test_numbers_have_no_beginnings():
    column = Undiscovered("zone", "INTEGER", "categorical", max_codes=4)
    found = attribute_of_labels(
        column, labels_of_keys(column, NoisyKeys("zone", (5, 10, 70), np.array([9, 7, 8]), 1.0, 5))
    )
    assert found.labels == (5, 70) and found.prefixes == ()


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
