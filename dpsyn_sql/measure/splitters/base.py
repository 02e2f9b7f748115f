"""What every splitter is: a tree is grown level by level from the root, and read again from what was stored.

At each level all nodes that are still there are asked about at once: the children of the nodes that were
split one level above, empty ones included. For every level one array is stored. Reading needs these arrays
and the public hierarchy, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.events import PrivacyEvent
from dpsyn_sql.interfaces import NoiseSource

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Level:
    """What the stored array of a level says; public.

    ``split``: bool[n], which nodes are split if the hierarchy refines them. ``counts``: int64[n], the noisy
    or committed number of rows of each node; None where the algorithm shows no counts.
    """

    split: NDArray[np.bool_]
    counts: IntArray | None = None


class Tests(Protocol):
    """PRIVATE: the levels of one growing tree, in turn from the root."""

    def level(self, counts: IntArray, parents: IntArray) -> IntArray:
        """The array to store for the next level.

        Args:
            counts: int64[n], exact rows of every node of the level.
            parents: int64[n], never descending: the place of each node's parent among the nodes of the level
                above. For the root: 0.
        """


class Reading(Protocol):
    """Public: what stored arrays say, level by level from the root."""

    def level(self, stored: IntArray, parents: IntArray) -> Level:
        """What the next stored array says; ``parents`` as for ``Tests.level``."""


class Splitter(Protocol):
    """An algorithm with its noise. ``event``: what growing one tree costs. ``leaves``: whether the nodes of
    the deepest level are asked about as well; they are never split."""

    @property
    def event(self) -> PrivacyEvent: ...
    @property
    def leaves(self) -> bool: ...

    def tests(self, noise: NoiseSource) -> Tests:
        """The tests of one tree."""

    def reading(self) -> Reading:
        """A reading of one tree."""
