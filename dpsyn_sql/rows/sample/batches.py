"""Rows come in batches, each with a stream of random numbers of its own, two drawn side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from dpsyn_sql.fit.arrays import Codes

BATCH_ROWS = 2**18
"""Rows of a batch: a constant, so that a seed means the same rows on every machine."""

_AT_A_TIME = 2
# Batches that are drawn side by side.

_STEPS = 2**32
# Streams of steps after a batch; those of the batches are below.

T = TypeVar("T")


def batch_sizes(rows: int, largest: int) -> Sequence[int]:
    """Sizes, as equal as possible and at most ``largest``, that sum to ``rows``."""
    if rows <= 0:
        return ()
    number = -(-rows // largest)
    return [rows // number + (index < rows % number) for index in range(number)]


def streams(rows: int, largest: int, seed: int) -> Iterator[tuple[int, np.random.Generator]]:
    """``batch_sizes``, each with a stream of random numbers of its own."""
    for index, size in enumerate(batch_sizes(rows, largest)):
        yield size, generator_of(seed, index)


def generator_of(seed: int, index: int) -> np.random.Generator:
    """The stream of a batch: the order in which batches are drawn does not matter."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, index))))


def code_type(largest_size: int) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
    """The smallest unsigned type for codes of an attribute with so many codes."""
    if largest_size <= 2**8:
        return np.uint8
    return np.uint16 if largest_size <= 2**16 else np.uint32


def side_by_side(draws: Iterable[Callable[[], T]]) -> Iterator[T]:
    """What these give, in order. The one after the next begins when one is complete."""
    pending = deque[Future[T]]()
    with ThreadPoolExecutor(max_workers=_AT_A_TIME) as cores:
        for draw in draws:
            complete = [pending.popleft().result()] if len(pending) == _AT_A_TIME else []
            pending.append(cores.submit(draw))
            yield from complete
        while pending:
            yield pending.popleft().result()


Batch = Callable[[], Codes]
"""Draws one batch: codes (n, attributes) in domain order, unsigned."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Draws rows that are each by themselves.

    ``begin(rows, seed)`` gives what draws each batch, in order; ``drawn``: how, in the words of certificates.
    """

    begin: Callable[[int, int], Iterable[Batch]]
    drawn: str

    def batches(self, rows: int, seed: int) -> Iterator[Codes]:
        """Arrays (batch, attributes) of codes in domain order, unsigned, ``rows`` in all.

        Deterministic in ``seed`` (not negative) on one kind of machine; rows <= 0 yields nothing.
        """
        return side_by_side(self.begin(rows, seed))

    def then(self, step: Callable[[Codes, np.random.Generator], None], drawn: str) -> Batches:
        """The same rows, each batch changed in place by a ``step`` with a stream of its own."""

        def stepped(draw: Batch, generator: np.random.Generator) -> Codes:
            codes = draw()
            step(codes, generator)
            return codes

        def begin(rows: int, seed: int) -> Iterator[Batch]:
            for index, draw in enumerate(self.begin(rows, seed)):
                yield partial(stepped, draw, generator_of(seed, _STEPS + index))

        return Batches(begin, drawn)


def by_themselves(
    prepared: Callable[[int], Callable[[int, np.random.Generator], Codes]], drawn: str
) -> Batches:
    """Batches that do not depend on each other: ``prepared(rows)`` gives what draws so many of them."""

    def begin(rows: int, seed: int) -> Iterator[Batch]:
        draw = prepared(rows)
        for size, generator in streams(rows, BATCH_ROWS, seed):
            yield partial(draw, size, generator)

    return Batches(begin, drawn)
