"""From noisy keys of a column to its categories: pure post-processing, public in and out.

The keys that passed the threshold are labels, all other values are ``__other__``. With prefixes the
beginnings that passed are labels too (``250*``). Where these are more labels than codes, all of less than
some noisy count are left out, and this count goes to the label of their longest beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from dpsyn_sql.domain.attributes import ANY_REST, OTHER, Attribute, Label, Recoding
from dpsyn_sql.domain.shape import Undiscovered
from dpsyn_sql.domain.types import enum_type
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.queries import Exact, NoisyKeys


def labels_of_keys(column: Undiscovered, found: NoisyKeys) -> dict[Label, int]:
    """The values with the largest noisy counts, and these, in the order of the values.

    A value that is spelled as the code of all others belongs to them, and one that is spelled as the label
    of a beginning (``25*``, with prefixes of 2 characters) to that label, if it is found.
    """
    order = np.argsort(-found.values, kind="stable").tolist()
    free = [place for place in order if not _is_taken(column, found.keys[place])]
    return {_label(found.keys[place]): int(found.values[place]) for place in sorted(free[: _room(column)])}


def with_stems(
    column: Undiscovered, labels: Mapping[Label, int], found: NoisyKeys, lengths: Sequence[int]
) -> dict[Label, int]:
    """The labels with the beginnings found of the last of ``lengths``; no more than there are codes.

    Kept are all labels of at least some noisy count, the least for which they are few enough. The count of
    one that is left out goes to the label of its longest beginning of ``lengths``, be it found or not, and
    makes that one heavier; what goes to none is asked for again with the next length, or is ``__other__``.
    """
    counts = {str(label): count for label, count in labels.items()}
    for key, count in zip(found.keys, found.values.tolist(), strict=True):
        stem = f"{key}{ANY_REST}"
        counts[stem] = counts.get(stem, 0) + count
    enough, too_few = sum(counts.values()) + 1, -1
    kept = dict[str, int]()
    while enough - too_few > 1:
        least = (enough + too_few) // 2
        heavy = _heavy(counts, lengths, least)
        if len(heavy) <= _room(column):
            enough, kept = least, heavy
        else:
            too_few = least
    return {label: kept[label] for label in sorted(kept, key=str.encode)}


def attribute_of_labels(column: Undiscovered, labels: Mapping[Label, int]) -> Attribute:
    """A categorical attribute of labels in their order; ``prefixes`` are those of which there is a label."""
    kind = column.type
    sql_type = column.sql_type
    if kind.family == "enum":
        # An ENUM without a name may hold the data's own values: the output knows the released ones.
        sql_type = enum_type(tuple(str(label) for label in labels)) if labels else "VARCHAR"
    return Attribute(
        column.name,
        sql_type,
        "categorical",
        tuple(labels),
        other=True,
        nullable=column.nullable,
        origin="discovered",
        prefixes=tuple(n for n in column.prefixes if any(_length_of_stem(x, (n,)) for x in labels)),
        source=column.source,
        recoding=None if column.other or not labels else Recoding((len(labels),), tuple(range(len(labels)))),
    )


def _room(column: Undiscovered) -> int:
    return max(0, column.max_codes - 1 - column.nullable)


def _is_taken(column: Undiscovered, key: Exact) -> bool:
    return key == OTHER or _length_of_stem(key, column.prefixes) > 0


def _length_of_stem(label: Exact, lengths: Sequence[int]) -> int:
    """How long the beginning is for which a label stands; 0 for a label of one value."""
    if not isinstance(label, str) or not label.endswith(ANY_REST):
        return 0
    return len(label) - 1 if len(label) - 1 in lengths else 0


def _heavy(counts: Mapping[str, int], lengths: Sequence[int], least: int) -> dict[str, int]:
    """The labels whose count is at least ``least``, with what they got from those that are not."""
    levels = defaultdict[int, dict[str, int]](dict)
    for label, count in counts.items():
        levels[_length_of_stem(label, lengths)][label] = count
    kept = dict[str, int]()
    for level in (0, *lengths):
        for label, count in levels[level].items():
            if count >= least:
                kept[label] = count
                continue
            text = label[:level] if level else label
            above = next((n for n in lengths if n <= len(text) and (not level or n < level)), None)
            if above is not None:
                stem = f"{text[:above]}{ANY_REST}"
                levels[above][stem] = levels[above].get(stem, 0) + count
    return kept


def _label(key: Exact) -> Label:
    if isinstance(key, float):
        raise InternalError("categories are text, booleans or integers")
    return key
