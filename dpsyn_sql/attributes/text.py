"""Text over a public alphabet: a tree of beginnings.

The id of a node is the first characters of its texts, as many as its level is long; where a text has
ended before, ``END`` follows its last character. ``END`` sorts below every character of an alphabet, so
ids sort, by code points as by bytes, as the tree does. Characters are code points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainValidator, WithJsonSchema

from dpsyn_sql.attributes.attribute import ANY_REST, OTHER
from dpsyn_sql.attributes.fields import Depth, Lengths, TextLength
from dpsyn_sql.attributes.leaf_values import LeafColumn, LeafFact, lists_by_leaf
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.spec import Terms, TreeSpec, TypedColumn, Unfit, natural_kind, shown, tree_to_learn
from dpsyn_sql.attributes.trees import LONGEST, HierarchyColumn, OfOneColumn
from dpsyn_sql.attributes.types import SqlType
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, fits_pattern, literal, text_bytes

END = "\x03"
"""End of text: a character of no alphabet."""

MAX_CHILDREN = 2**20
"""Children that a node can have at most."""

_ELLIPSIS = "\u2026"  # marks text that goes on where the alphabet has an asterisk


@dataclass(frozen=True, slots=True)
class Texts(OfOneColumn):
    """A ``Hierarchy`` over a column of text; level l holds the beginnings of ``lengths[l - 1]`` characters.

    ``alphabet``: the characters that a text may have, ascending. Text with another one in the part that
    counts, its first ``lengths[-1]`` characters, is outside, and so is ``__other__``. ``longest``: where
    text is cut; a beginning that long stands for itself, a shorter one for all text that begins with it. Its
    label ends in ``*``, or in an ellipsis if the alphabet has an asterisk.

    Raises:
        InternalError: the alphabet or the lengths are not as ``alphabet_fault``, ``lengths_fault`` ask.
    """

    text: ClassVar[bool] = True
    column: HierarchyColumn
    alphabet: str
    lengths: tuple[int, ...]
    longest: int
    nullable: bool = False
    _endings: tuple[NDArray[Any], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        fault = alphabet_fault(self.alphabet) or lengths_fault(self.lengths, self.longest)
        if fault or list(self.alphabet) != sorted(set(self.alphabet)) or self.branching > MAX_CHILDREN:
            raise InternalError(f"the alphabet or the lengths of {self.name!r} make no tree")
        steps = zip((0, *self.lengths), self.lengths, strict=False)
        endings = {gap: np.array(_endings(self.alphabet, gap), dtype=object) for gap in gaps(self.lengths)}
        object.__setattr__(self, "_endings", tuple(endings[end - start] for start, end in steps))

    @property
    def depth(self) -> int:
        return len(self.lengths)

    @property
    def branching(self) -> int:
        return children_of(len(self.alphabet), max(gaps(self.lengths)))

    def root(self) -> NDArray[Any]:
        return np.array([""], dtype=object)

    def children(self, nodes: NDArray[Any], level: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        ids = np.asarray(nodes, dtype=object)
        open_ = np.flatnonzero(np.array([not node.endswith(END) for node in ids], dtype=bool))
        if level >= self.depth or not len(open_):
            return np.empty(0, dtype=object), np.empty(0, dtype=np.int64)
        endings = self._endings[level]
        parents = np.repeat(open_.astype(np.int64), len(endings))
        texts = ids[parents] + np.tile(endings, len(open_))
        if set(OTHER) <= set(self.alphabet):
            excluded = (OTHER + END, OTHER) if self.lengths[level] == self.longest else (OTHER + END,)
            allowed = np.array([node not in excluded for node in texts], dtype=bool)
            return texts[allowed], parents[allowed]
        return texts, parents

    def lowest(self, nodes: NDArray[Any], level: int) -> NDArray[Any]:
        if level == self.depth:
            return np.asarray(nodes, dtype=object)
        texts = (node if node.endswith(END) else node + END for node in nodes)
        return np.array(list(texts), dtype=object)

    def finished(self, nodes: NDArray[Any], level: int) -> NDArray[np.bool_]:
        """Whether each node is a single text, perhaps cut; else it is a beginning."""
        cut = level > 0 and self.lengths[level - 1] == self.longest
        return np.array([cut or node.endswith(END) for node in nodes], dtype=bool)

    def labels(self, nodes: NDArray[Any], level: int) -> list[str]:
        mark = _ELLIPSIS if ANY_REST in self.alphabet else ANY_REST
        ending = "" if level > 0 and self.lengths[level - 1] == self.longest else mark
        return [node[:-1] if node.endswith(END) else node + ending for node in nodes]

    def key(self, values: Sequence[Fragment]) -> Fragment:
        (text,) = values
        length = self.lengths[-1]
        start = f"substr({text}, 1, {length})"
        inside = fits_pattern(start, f"[{_class(self.alphabet)}]*")
        ended = f"CASE WHEN length({text}) < {length} THEN {text} || chr({ord(END)}) ELSE {start} END"
        if set(OTHER) <= set(self.alphabet):
            longest = f"substr({text}, 1, {self.longest})"
            other_text = text_bytes(literal(OTHER))
            inside = Fragment(f"{inside} AND {text_bytes(longest)} <> {other_text}")
        return Fragment(f"CASE WHEN {inside} THEN {ended} END")

    def at(self, key: Fragment, level: int) -> Fragment:
        return Fragment(f"substr({key}, 1, {0 if level == 0 else self.lengths[level - 1]})")

    def leaf_columns(
        self, levels: tuple[int, ...], nodes: NDArray[Any], first: int, *, nullable: bool
    ) -> list[LeafColumn]:
        """Text is its leaf as labels have it: ``car``, ``car*``."""
        (texts,) = lists_by_leaf(levels, nodes, lambda ids, level: [self.labels(ids, level)])
        fact = LeafFact(f"text{first}", "VARCHAR", [*texts, OTHER, None])
        return [LeafColumn((fact,), lambda prefix, _: Fragment(f"{prefix}{fact.name}"))]

    def named(self) -> Mapping[str, Any]:
        return {
            "kind": "string",
            **self.column.named,
            "alphabet": self.alphabet,
            "lengths": list(self.lengths),
            "longest": self.longest,
            **({"nullable": True} if self.nullable else {}),
        }


def children_of(characters: int, gap: int) -> int:
    """Children of a beginning that is refined by ``gap`` characters of an alphabet of so many."""
    return sum(characters**length for length in range(gap + 1))


def alphabet_fault(alphabet: str) -> str | None:
    """What is wrong with the characters of an alphabet, or None."""
    if not alphabet:
        return "must have characters: those that the text may have, such as a-zA-Z"
    if any("\ud800" <= character <= "\udfff" for character in alphabet):
        return "holds half a surrogate pair, which SQL text cannot hold"
    if any(character <= END for character in alphabet):
        return "holds a control character from U+0000 to U+0003, which the tree needs; leave it out"
    if ANY_REST in alphabet and _ELLIPSIS in alphabet:
        return f"holds {ANY_REST!r} and {_ELLIPSIS!r}, one of which marks text that goes on; leave one out"
    return None


def lengths_fault(lengths: Sequence[int], longest: int) -> str | None:
    """What is wrong with the lengths of the levels, or None."""
    if not lengths or list(lengths) != sorted(set(lengths)) or lengths[0] < 1:
        return "lengths must ascend, each 1 or more: [1, 3, 6]"
    if not lengths[-1] <= longest <= LONGEST:
        return f"longest is {longest}; allowed are {lengths[-1]} (the last of the lengths) to {LONGEST}"
    return None


def gaps(lengths: Sequence[int]) -> set[int]:
    """By how many characters the levels refine one another."""
    return {end - start for start, end in zip((0, *lengths), lengths, strict=False)}


def _endings(alphabet: str, gap: int) -> list[str]:
    """What can follow a beginning, up to ``gap`` characters further on, ascending."""
    if gap == 0:
        return [""]
    return [END, *(first + further for first in alphabet for further in _endings(alphabet, gap - 1))]


def _class(alphabet: str) -> str:
    """The inside of a character class of RE2."""
    return "".join(
        character if character.isalnum() and character.isascii() else f"\\x{{{ord(character):x}}}"
        for character in alphabet
    )


# -- declarations ------------------------------------------------------------------------------------


def _alphabet(value: Any) -> str:
    """The characters of a class such as "a-zA-Z' -", ascending; a hyphen at either end is itself."""
    if not isinstance(value, str):
        raise ValueError("must be text: the characters, with ranges such as a-z")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("holds half a surrogate pair, which SQL text cannot hold; leave it out")
    characters, index = set[str](), 0
    while index < len(value):
        first, last = value[index], value[index]
        if value[index + 1 : index + 2] == "-" and index + 2 < len(value):
            last = value[index + 2]
            if last < first:
                raise ValueError(f"has the range {first}-{last}, which does not ascend; write {last}-{first}")
            index += 2
        characters.update(
            chr(point) for point in range(ord(first), ord(last) + 1) if not 0xD800 <= point < 0xE000
        )
        index += 1
    alphabet = "".join(sorted(characters))
    fault = alphabet_fault(alphabet)
    if fault is not None:
        raise ValueError(fault)
    return alphabet


Alphabet = Annotated[
    Any,
    PlainValidator(_alphabet),
    WithJsonSchema({"type": "string"}),
    Field(description="Characters that the text may have, with ranges such as a-z; other text is one value."),
]


class StringSpec(TreeSpec):
    """Text over a public alphabet: its frequent beginnings are learnt, down to whole values."""

    type: Literal["string"]
    alphabet: Alphabet
    longest: TextLength | None = None
    lengths: Annotated[
        Lengths | None, Field(description="Ascending: the lengths that beginnings are refined to.")
    ] = None
    depth: Depth | None = None

    def checked(self, folder: Path) -> Self:
        """With its ``longest`` and its ``lengths``, which are as many as its ``depth``."""
        if self.longest is None and self.lengths is None:
            raise ValueError("write longest:, the length at which text is cut, such as 20")
        longest = self.longest or (self.lengths or [1])[-1]
        lengths = tuple(self.lengths or range(1, longest + 1))
        fault = lengths_fault(lengths, longest)
        if fault is not None:
            raise ValueError(fault)
        return self.model_copy(update={"longest": longest, "lengths": list(lengths[: self.depth])})

    def attribute(self, name: str, columns: Sequence[TypedColumn], terms: Terms) -> Undiscovered:
        ((column, kind),) = columns
        if kind.family != "text":
            raise Unfit(f"type {shown(kind)} is no text; {_instead(kind)}cast it to text in a query")
        lengths, longest = tuple(self.lengths or ()), self.longest or 0
        characters, gap = len(self.alphabet), max(gaps(lengths))
        if children_of(characters, gap) > MAX_CHILDREN:
            most = max(step for step in range(1, gap) if children_of(characters, step) <= MAX_CHILDREN)
            raise Unfit(
                f"lengths have a step of {gap}, by which each beginning has more than {MAX_CHILDREN:,} "
                f"children with {characters} characters; make the steps {most} or less"
            )
        of_text = HierarchyColumn(column.name, kind.text)
        return tree_to_learn(Texts(of_text, self.alphabet, lengths, longest, self.may_be_null(columns)), self)


SPECS = {"string": StringSpec}


def _instead(kind: SqlType) -> str:
    halved = natural_kind(kind) != "categorical" and (kind.discrete or kind.family == "float")
    return "write type: dyadic, or " if halved else ""
