"""Labels of beginnings: what they stand for, how many there are, and what each holds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.discovery import discovered
from dpsyn_sql.domain.shape import Shape, Undiscovered
from dpsyn_sql.fit.found_labels import attribute_of_labels, labels_of_keys, with_stems
from dpsyn_sql.planning.discovery import planned_discovery
from dpsyn_sql.planning.queries import NoisyKeys
from dpsyn_sql.source.relation import PrivacyUnit


def label_of(attribute, text):
    """The label that a text is encoded as; None for ``__other__``."""
    if text in attribute.labels:
        return text
    stems = (f"{text[:n]}*" for n in attribute.prefixes if len(text) >= n)
    return next((stem for stem in stems if stem in attribute.labels), None)


class Exact:
    """A door without noise that shows keys of at least ``least`` rows."""

    def __init__(self, texts, least):
        self.texts, self.least, self.labels = texts, least, []

    def ask(self, query, budget):
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
    steps, _ = planned_discovery(shape, PrivacyUnit(), Budget("gdp", 10**13, 10**8))
    found = discovered(shape, steps, door, 1)
    assert found.asked == steps
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
