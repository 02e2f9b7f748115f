"""Questions to a model: their attributes are checked, and refused, in the same way for every model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce

import numpy as np

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.source.names import name_hint


def fault(domain: Domain, attrs: Sequence[str], most: int | None = None) -> str:
    """Why a model over ``domain`` cannot answer for these attributes (a list of names, or one name): none,
    one twice, an unknown one, or more than ``most``. Empty if it can answer."""
    attrs = (attrs,) if isinstance(attrs, str) else attrs
    if not isinstance(attrs, list | tuple) or not all(isinstance(name, str) for name in attrs):
        return f"the attributes are {said(attrs)}: give a list of names of the model's attributes"
    names = tuple(attrs)
    unknown = [name for name in names if name not in domain]
    if unknown:
        owner = [one.name for one in domain.attributes for own in one.columns if own.name == unknown[0]]
        if owner:
            return f"The column {unknown[0]!r} is part of the attribute {owner[0]!r}: ask for that"
        return f"There is no attribute {unknown[0]!r}; {name_hint(unknown[0], domain.names, 'the model has')}"
    if not names or len(set(names)) < len(names):
        return f"Name at least one attribute, each once, not {list(names)}."
    if most is not None and len(names) > most:
        return (
            f"this model answers marginals of at most {most} attributes, not {len(names)}; "
            "count larger ones in the synthetic table"
        )
    return ""


def checked_names(domain: Domain, attrs: Sequence[str], most: int | None = None) -> tuple[str, ...]:
    """The attributes of a question, if a model over ``domain`` can answer it.

    Raises:
        InputError: there is a ``fault``.
    """
    if problem := fault(domain, attrs, most):
        raise InputError(problem)
    return (attrs,) if isinstance(attrs, str) else tuple(attrs)


class Answering(ABC):
    """Answers questions about attributes of ``domain``, at most ``most`` together (None: any number)."""

    __slots__ = ()

    domain: Domain
    most: int | None = None

    def supports(self, attrs: Sequence[str]) -> bool:
        """Whether ``project`` answers for these attributes; cheap."""
        return not fault(self.domain, attrs, self.most) and self._answers(self._places(attrs))

    def project(self, attrs: Sequence[str]) -> FloatArray:
        """Expected counts, axes in the order of ``attrs``; they sum to max(0, total).

        Raises:
            InputError: no attribute, one twice, an unknown one, or several that the model does not answer
                together.
        """
        return self._counts(self._places(attrs))

    def _places(self, attrs: Sequence[str]) -> tuple[int, ...]:
        names = checked_names(self.domain, attrs, self.most)
        return tuple(self.domain.index(name) for name in names)

    def _answers(self, places: tuple[int, ...]) -> bool:
        """Whether ``_counts`` has an answer for attributes at these places."""
        return True

    @abstractmethod
    def _counts(self, places: tuple[int, ...]) -> FloatArray:
        """Expected counts of the attributes at these places, axes in their order.

        Raises:
            InputError: it does not answer for them.
        """


def over_codes(
    table: FloatArray, positions: Sequence[int], bins: Sequence[IntArray], within: Sequence[FloatArray]
) -> FloatArray:
    """A table over working bins of attributes (by position) as one over their codes.

    ``bins[i]`` is the bin of each code of attribute i, ``within[i]`` its share of the bin.
    """
    for axis, position in enumerate(positions):
        table = table.take(bins[position], axis=axis)
    return np.asarray(table * reduce(np.multiply.outer, (within[position] for position in positions)))
