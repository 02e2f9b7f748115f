"""From noisy keys of a column to its categories: pure post-processing, public in and out.

The keys that passed the threshold are labels, all other values are ``__other__``. With prefixes the
beginnings that passed are labels too (``250*``). Where these are more labels than codes, all of less than
some noisy count are left out, and this count goes to the label of their longest beginning.

With a hierarchy of text, codes lie along the prefix tree of whole texts and of beginnings. A code is an
interval of keys. Within it rows are spread over the texts that were found there, and over beginnings that
stand for the rest, by their counts.

``__other__`` and NULL are not written where their codes are nothing but noise (``recoded``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpsyn_sql.attributes.attribute import ANY_REST, OTHER, Attribute, Label, Recoding
from dpsyn_sql.attributes.leaves import code_starts
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.attributes.text import END, Texts
from dpsyn_sql.attributes.trees import Leaves
from dpsyn_sql.attributes.types import enum_type
from dpsyn_sql.discovery.branches import Branches, joined
from dpsyn_sql.discovery.leaves import Run, attribute_of, coarsened, labels_of_runs
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.variances import OneWayCounts
from dpsyn_sql.planning.queries import Exact, NoisyKeys


def labels_of_keys(column: Undiscovered, noisy: NoisyKeys) -> dict[Label, int]:
    """The values with the largest noisy counts, and these, in the order of the values.

    A value that is spelled as the code of all others belongs to them, and one that is spelled as the label
    of a beginning (``25*``, with prefixes of 2 characters) to that label, if it is found.
    """
    order = np.argsort(-noisy.values, kind="stable").tolist()
    free = [index for index in order if not _is_taken(column, noisy.keys[index])]
    return {_label(noisy.keys[index]): int(noisy.values[index]) for index in sorted(free[: _room(column)])}


def both_looks(first: NoisyKeys, second: NoisyKeys) -> NoisyKeys:
    """The values that either look shows, with the mean of their counts, each weighted by its precision.

    A look that does not show a value says that its count is below the threshold. There the value counts as
    in the other look, or as the most that is below the threshold. To leave such a look out would keep counts
    that noise made too large, and none that it made too small.
    """
    looks = [(look, dict(zip(look.keys, look.values.tolist(), strict=True))) for look in (first, second)]
    weights = np.array([first.sigma**-2, second.sigma**-2])
    pooled = dict[Exact, int]()
    for key in sorted({*first.keys, *second.keys}, key=_rank):
        most = max(counts[key] for _, counts in looks if key in counts)
        pair = [counts.get(key, min(most, look.threshold - 1)) for look, counts in looks]
        pooled[key] = round(float(np.average(pair, weights=weights)))
    counts = np.array(list(pooled.values()), np.int64)
    sigma = float(weights.sum() ** -0.5)
    return NoisyKeys(first.attr, tuple(pooled), counts, sigma, min(first.threshold, second.threshold))


def _rank(key: Exact) -> tuple[float, bytes]:
    """Numbers by their value, text by its bytes."""
    return (0, key.encode()) if isinstance(key, str) else (key, b"")


def with_stems(
    column: Undiscovered, labels: Mapping[Label, int], stems: NoisyKeys, lengths: Sequence[int]
) -> dict[Label, int]:
    """The labels with the beginnings found of the last of ``lengths``; no more than there are codes.

    Kept are all labels of at least some noisy count, the least for which they are few enough. The count of
    one that is left out goes to the label of its longest beginning of ``lengths``, be it found or not, and
    makes that one heavier; what goes to none is asked for again with the next length, or is ``__other__``.
    """
    counts = {str(label): count for label, count in labels.items()}
    for key, count in zip(stems.keys, stems.values.tolist(), strict=True):
        stem = f"{key}{ANY_REST}"
        counts[stem] = counts.get(stem, 0) + count
    enough, too_few = sum(counts.values()) + 1, -1
    retained = dict[str, int]()
    while enough - too_few > 1:
        least = (enough + too_few) // 2
        heavy = _heavy(counts, lengths, least)
        if len(heavy) <= _room(column):
            enough, retained = least, heavy
        else:
            too_few = least
    return {label: retained[label] for label in sorted(retained, key=str.encode)}


def attribute_of_labels(column: Undiscovered, labels: Mapping[Label, int]) -> Attribute:
    """A categorical attribute of labels in their order; ``prefixes`` are those of which there is a label."""
    sql_type = column.sql_type
    if column.type.family == "enum":
        # An ENUM without a name may hold the data's own values: the output knows the released ones.
        sql_type = enum_type(tuple(str(label) for label in labels)) if labels else "VARCHAR"
    prefixes = tuple(n for n in column.prefixes if any(_length_of_stem(x, (n,)) for x in labels))
    return attribute_of(column, tuple(labels), sql_type=sql_type, prefixes=prefixes)


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
    heavy = dict[str, int]()
    for level in (0, *lengths):
        for label, count in levels[level].items():
            if count >= least:
                heavy[label] = count
                continue
            text = label[:level] if level else label
            above = next((n for n in lengths if n <= len(text) and (not level or n < level)), None)
            if above is not None:
                stem = f"{text[:above]}{ANY_REST}"
                levels[above][stem] = levels[above].get(stem, 0) + count
    return heavy


def _label(key: Exact) -> Label:
    if isinstance(key, float):
        raise InternalError("categories are text, booleans or integers")
    return key


_CLEAR, _SOME = 3.0, 0.25
# What a code has more than was found in it says something beyond so many standard errors of its count, and
# beyond this part of the found rows, which is two standard errors of a count just above the threshold.


def attribute_of_texts(
    column: Undiscovered, texts: Texts, labels: Mapping[Label, int], least: float
) -> Attribute:
    """The attribute of a column of text: at most ``max_codes`` codes.

    Args:
        column: the column.
        texts: its hierarchy.
        labels: noisy rows of texts, and of beginnings (``car*``) the rest of their rows: of
            ``with_stems``.
        least: rows that a code should have at least.
    """
    rows_of_node = _nodes(texts, labels)
    branches = _branches(texts, rows_of_node)
    beyond = np.array([rows_of_node.get(id_, 0.0) for id_ in branches.ids.tolist()])
    counts = _with_children(branches, beyond)
    most = max(1, column.max_codes - 1 - column.nullable)
    runs = coarsened(branches, counts, most, max(1.0, least))
    leaves = _leaves(texts, branches, beyond, runs)
    return attribute_of(column, labels_of_runs(texts, branches, counts, runs), leaves)


def with_rest(attribute: Attribute, counts: OneWayCounts) -> Attribute:
    """The attribute, where each code writes what was not found in it as the beginnings above it.

    A code reaches up to the next one, so it also holds texts that lie between the ones that were found. By
    ``counts`` their number is known: what the code has more than the found ones. Of leaves that are a
    partition nothing changes.
    """
    leaves = attribute.leaves
    if leaves is None or not isinstance(leaves.hierarchies[0], Texts) or len(leaves.codes) < 2:
        return attribute
    if len(leaves.hierarchies) > 1 or leaves.levels[0][0] != 0:
        return attribute
    texts, number = leaves.hierarchies[0], attribute.regular
    starts = [*map(str, code_starts(texts, leaves)), ""]
    codes, rows = np.array(leaves.codes), np.array(leaves.rows)
    first = np.diff(codes, prepend=-1) > 0
    begins = [str(node) for node, new in zip(leaves.nodes[0], first, strict=True) if new]
    of_codes = zip(leaves.codes, map(str, leaves.nodes[0]), strict=True)
    above = np.array(
        [
            starts[code + 1].startswith(node)
            or (0 < len(node) < len(begins[code]) and begins[code].startswith(node))
            for code, node in of_codes
        ]
    )
    above &= ~first
    known_rows = np.bincount(codes, np.where(above, 0.0, rows), number)
    guessed = np.bincount(codes, np.where(above, rows, 0.0), number)
    more = counts.counts[:number] - known_rows
    clear = more > np.maximum(_CLEAR * counts.sigma[:number], _SOME * known_rows)
    missing = np.where(clear, more, 0.0)
    scale = np.divide(missing, guessed, out=np.zeros(number), where=guessed > 0)
    with_guesses = list[_Leaf]()
    for index, code in enumerate(leaves.codes):
        level, id_ = leaves.levels[0][index], str(leaves.nodes[0][index])
        with_guesses.append(
            _Leaf(level, id_, float(rows[index] * (scale[code] if above[index] else 1)), code)
        )
        if first[index] and guessed[code] <= 0 < missing[code]:
            shared = _shared(texts, starts[code], starts[code + 1])
            level = bisect_right(texts.lengths, len(shared))
            with_guesses.append(
                _Leaf(level, shared[: (0, *texts.lengths)[level]], float(missing[code]), code)
            )
    return replace(attribute, leaves=_together(texts, with_guesses))


def _shared(texts: Texts, start: str, stop: str) -> str:
    """The beginning of all keys from ``start`` to ``stop``, exclusive; an empty ``stop`` is the end."""
    highest = texts.alphabet[-1] * texts.longest
    if stop:
        before = stop.removesuffix(END)
        below = texts.alphabet.index(before[-1])
        highest = before[:-1] + (texts.alphabet[below - 1] + highest if below else END)
    shared = 0
    while shared < min(len(start), len(highest)) and start[shared] == highest[shared] != END:
        shared += 1
    return start[:shared]


def _nodes(texts: Texts, labels: Mapping[Label, int]) -> dict[str, float]:
    """Rows by id, above 0. Texts outside of the hierarchy belong to its ``__other__``."""
    last, allowed = texts.lengths[-1], frozenset(texts.alphabet)
    rows_of_node = dict[str, float]()
    for label, rows in labels.items():
        text, begins = str(label), str(label).endswith(ANY_REST)
        text = text.removesuffix(ANY_REST)
        if rows <= 0 or not allowed.issuperset(text[:last]) or text == OTHER:
            continue
        id_ = text if begins or len(text) >= last else text + END
        rows_of_node[id_[:last]] = rows_of_node.get(id_[:last], 0.0) + rows
    return rows_of_node


def _branches(texts: Texts, nodes_with_rows: Iterable[str]) -> Branches:
    """The tree of the ids and of all nodes above them; a gap between neighbours belongs to the former."""
    lengths = (0, *texts.lengths)
    levels = [{""}] + [set[str]() for _ in texts.lengths]
    for id_ in nodes_with_rows:
        deepest = next(level for level, length in enumerate(lengths) if length >= len(id_))
        for level in range(deepest + 1):
            levels[level].add(id_[: lengths[level]])
    ids = [np.array(sorted(nodes), object) for nodes in levels if nodes]
    above, split = [np.array([-1])], set[str]()
    for level in range(1, len(ids)):
        index_of = {node: index for index, node in enumerate(ids[level - 1].tolist())}
        parents = [node[: lengths[level - 1]] for node in ids[level].tolist()]
        split.update(parents)
        above.append(np.array([index_of[parent] for parent in parents]))
    ends = sorted(node for nodes in ids for node in nodes.tolist() if node not in split)
    rank = {node: index for index, node in enumerate(ends)}
    return joined(
        ids, above, [np.array([rank.get(node, -1) for node in level_ids.tolist()]) for level_ids in ids]
    )


def _with_children(branches: Branches, beyond: FloatArray) -> FloatArray:
    """The rows of each node and of all below it."""
    counts = beyond.copy()
    for block in reversed(list(branches.blocks())):
        np.add.at(counts, branches.parents[block], counts[block])
    return counts


@dataclass(frozen=True, slots=True)
class _Leaf:
    level: int
    id: str
    rows: float
    code: int


def _leaves(texts: Texts, branches: Branches, beyond: FloatArray, runs: Sequence[Run]) -> Leaves:
    """A leaf for where each code begins, then the beginnings above the code, each with a part of its rows,
    and what was found in the code."""
    code_of = _codes(branches, runs)
    inside = np.flatnonzero((beyond > 0) & (code_of >= 0))
    rows_of_code = np.bincount(code_of[inside], beyond[inside], len(runs))
    levels, ids = branches.levels.tolist(), branches.ids.tolist()
    all_leaves = [_Leaf(0, "", 0.0, 0)]
    all_leaves += [
        _Leaf(levels[run.nodes[0]], ids[run.nodes[0]], 0.0, code) for code, run in enumerate(runs) if code
    ]
    for node, codes in _above(branches, beyond, code_of).items():
        part = rows_of_code[codes] if rows_of_code[codes].sum() > 0 else np.ones(len(codes))
        for code, rows in zip(codes, (part / part.sum() * beyond[node]).tolist(), strict=True):
            all_leaves.append(_Leaf(levels[node], ids[node], rows, code))
    leaves_inside = [
        _Leaf(levels[node], ids[node], float(beyond[node]), int(code_of[node])) for node in inside.tolist()
    ]
    all_leaves += sorted(leaves_inside, key=lambda leaf: (_lowest(texts, leaf), leaf.level))
    all_leaves.sort(key=lambda leaf: leaf.code)
    return _together(texts, all_leaves)


def _together(texts: Texts, leaves: Sequence[_Leaf]) -> Leaves:
    return Leaves(
        (texts,),
        (tuple(leaf.level for leaf in leaves),),
        (tuple(leaf.id for leaf in leaves),),
        tuple(leaf.rows for leaf in leaves),
        tuple(leaf.code for leaf in leaves),
    )


def _above(branches: Branches, beyond: FloatArray, code_of: IntArray) -> dict[int, list[int]]:
    """Beginnings with rows above the codes, each with the codes below it."""
    ends = np.flatnonzero(~branches.split)
    codes = np.empty(ends.size, np.int64)
    codes[branches.starts[ends]] = code_of[ends]
    return {
        node: np.unique(codes[branches.starts[node] : branches.ends[node]]).tolist()
        for node in np.flatnonzero((beyond > 0) & (code_of < 0)).tolist()
    }


def _lowest(texts: Texts, leaf: _Leaf) -> str:
    return leaf.id if leaf.level == texts.depth or leaf.id.endswith(END) else leaf.id + END


def _codes(branches: Branches, runs: Sequence[Run]) -> IntArray:
    """The code of each node that is in a run or below it, -1 above."""
    code_of = np.full(branches.parents.size, -1)
    for code, run in enumerate(runs):
        code_of[list(run.nodes)] = code
    for block in branches.blocks():
        parents = branches.parents[block]
        code_of[block] = np.where(code_of[block] < 0, code_of[parents], code_of[block])
    return code_of


# -- codes -------------------------------------------------------------------------------------------

# Codes that are nothing but noise are not written; public, from noisy counts.
#
# ``__other__`` and NULL have a code wherever a value could need one. Where no row does, the noise of their
# counts would still write some: a value that the column does not have.

NOISE = 3.0
"""Standard errors below which a count is noise. A code without rows is written in one release of 740, and a
code that has six standard errors of rows is left out in one of 740."""

MOST_LEFT_OUT = 0.02
"""A code with a larger noisy share of the rows is written, however uncertain the share is."""

_PLACES = 256
"""Entries of a list of codes by their shares; it becomes a constant list of SQL."""


def recoded(shape: Shape, counts: Mapping[str, OneWayCounts], total: float) -> Shape:
    """The shape whose attributes say which codes are not written.

    Args:
        shape: complete.
        counts: of ``one_way_counts``.
        total: noisy number of rows.
    """
    return replace(shape, measured=tuple(_recoded(item, counts, total) for item in shape.domain.attributes))


def _recoded(attribute: Attribute, counts: Mapping[str, OneWayCounts], total: float) -> Attribute:
    table = counts.get(attribute.name)
    if table is None:
        return attribute
    codes = set() if attribute.recoding is None else set(attribute.recoding.codes)
    codes |= {code for code in _extra(attribute) if _is_noise(table, code, total)}
    if not _writes_other(attribute, codes):
        codes |= {code for code in (attribute.other_code,) if code is not None}
    if not codes or len(codes) == attribute.size:
        return attribute
    return replace(attribute, recoding=Recoding(tuple(sorted(codes)), _by_share(table.counts, codes)))


def _extra(attribute: Attribute) -> list[int]:
    """The codes of ``__other__`` and NULL."""
    return [code for code in (attribute.other_code, attribute.null_code) if code is not None]


def _is_noise(table: OneWayCounts, code: int, total: float) -> bool:
    return bool(table.counts[code] < min(NOISE * table.sigma[code], MOST_LEFT_OUT * total))


def _writes_other(attribute: Attribute, codes: set[int]) -> bool:
    """Whether a row of ``__other__`` can be written: as text, or as NULL where the column has NULL."""
    if attribute.leaves is not None:
        texts = all(hierarchy.text for hierarchy in attribute.leaves.hierarchies)
    else:
        texts = attribute.type.family == "text"
    if texts:
        return True
    return attribute.null_code is not None and attribute.null_code not in codes


def _by_share(counts: FloatArray, codes: set[int]) -> tuple[int, ...]:
    """The other codes, each as often as its share of their positive counts."""
    weights = np.maximum(counts, 0.0)
    weights[list(codes)] = 0.0
    if not weights.any():
        weights = np.ones_like(counts)
        weights[list(codes)] = 0.0
    ends = np.cumsum(weights)
    if not ends[-1] > 0:
        raise InternalError("no code of an attribute is left to be written")
    positions = (np.arange(_PLACES) + 0.5) / _PLACES * ends[-1]
    return tuple(int(code) for code in np.searchsorted(ends, positions, side="right"))
